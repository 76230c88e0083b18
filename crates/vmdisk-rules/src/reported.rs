//! The checks of rules whose findings somebody else makes: the reader, a trial, or the command.

use vmdisk_facts::Version;
use vmdisk_source::ProblemKind;

use crate::{Applicability, Context, Fix, Missing, Report, Severity};

/// Reports what the reader stumbled over, one finding for each.
pub(crate) fn report_problems(context: &Context<'_>, report: &mut Report, kind: ProblemKind) {
    for problem in context.problems {
        if problem.kind != kind {
            continue;
        }
        let finding = report.finding(problem.at, problem.message.clone());
        finding.span(problem.span);
        finding.help(match (&problem.help, kind) {
            (Some(help), _) => help.as_str(),
            (None, ProblemKind::InvalidValue) => "write a value that may stand there",
            (None, ProblemKind::UnknownAttribute | ProblemKind::UnknownElement) => {
                "check the spelling against libvirt's documentation, or take it away"
            }
            (None, ProblemKind::MissingValue) => "write it",
            (None, ProblemKind::Duplicate | ProblemKind::DuplicateRefused) => "keep the one that is meant and take the other away",
            (
                None,
                ProblemKind::DiscardOnOneNode
                | ProblemKind::DirectOnOneNode
                | ProblemKind::ReadOnlyOnOneNode,
            ) => "write it on both nodes",
            (
                None,
                ProblemKind::NameRefused
                | ProblemKind::NodeOrder
                | ProblemKind::NodeUnused
                | ProblemKind::NodeUsedTwice
                | ProblemKind::SnapshotIgnored
                | ProblemKind::PropertyRefused
                | ProblemKind::BlockSizeRefused
                | ProblemKind::QueueSizeRefused
                | ProblemKind::QueueCountRefused
                | ProblemKind::Qcow2CacheRefused
                | ProblemKind::LockingOff
                | ProblemKind::ForceShareWritable
                | ProblemKind::WindowUnaligned
                | ProblemKind::SecretMissing
                | ProblemKind::BusMissing
                | ProblemKind::UnitOutOfRange
                | ProblemKind::SlotTaken
                | ProblemKind::MemorySizeMismatch
                | ProblemKind::CacheContradicted
                | ProblemKind::ProtocolUnknown
                | ProblemKind::TooFewVectors
                | ProblemKind::ServerSocket
                | ProblemKind::IoeventfdOff
                | ProblemKind::SerialTooLong
                | ProblemKind::MappingEmpty
                | ProblemKind::NodeOnTwoIothreads
                | ProblemKind::NvmeTransferSize
                | ProblemKind::Qcow2Version3Option,
            ) => "see the page of the rule for what to write instead",
            (None, ProblemKind::UndeclaredPrefix) => {
                "declare the prefix on the root element, such as xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'"
            }
        });
        if kind == ProblemKind::DuplicateRefused {
            finding.severity(Severity::Error);
        }
        if !problem.fix.is_empty() {
            finding.fix(Fix {
                changes: Vec::new(),
                edits: problem.fix.clone(),
                applicability: Applicability::Safe,
            });
        }
    }
}

/// Whether the QEMU that is meant stands behind a change; `last` and `first` are the versions on both sides of it that
/// were tried, and nothing is known of those between.
pub(crate) fn is_behind_change(
    context: &Context<'_>,
    last: Version,
    first: Version,
    what: &str,
) -> Result<bool, Missing> {
    let release = |Version(major, minor, _): Version| (major, minor);
    match context.target.qemu {
        Some(qemu) if qemu >= first => Ok(true),
        Some(qemu) if release(qemu) <= release(last) => Ok(false),
        Some(_) => {
            let why = format!("no QEMU between {last} and {first} was tried");
            Err(Missing::new(what, why))
        }
        None => Err(Missing::new(what, Missing::NO_QEMU)),
    }
}

/// Reports what the reader stumbled over where it is wrong for the target, and says where that is not known.
pub(crate) fn report_problems_if(
    context: &Context<'_>,
    report: &mut Report,
    kind: ProblemKind,
    is_wrong: &Result<bool, Missing>,
) {
    match is_wrong {
        Ok(true) => report_problems(context, report, kind),
        Ok(false) => {}
        Err(missing) => {
            for problem in context.problems.iter().filter(|it| it.kind == kind) {
                report.not_checked(problem.at, missing.clone());
            }
        }
    }
}

/// The check of a rule about allowances: they belong to the file and not to the disks, so whoever
/// holds the file reports them.
pub(crate) fn reported_with_the_allowances(_context: &Context<'_>, _report: &mut Report) {}

/// The check of the rule about trials: whoever starts the QEMU reports what it says.
pub(crate) fn reported_by_a_trial(_context: &Context<'_>, _report: &mut Report) {}
/// The check of a rule that compares hosts: one alone gives it nothing to say.
pub(crate) fn compares_hosts(_context: &Context<'_>, _report: &mut Report) {}
