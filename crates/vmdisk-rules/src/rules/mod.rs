//! All rules, one file each, sorted by name.

mod allowance_unknown_rule;
mod allowance_unused;
mod allowance_without_reason;
mod backing_format_missing;
mod backing_missing;
mod backing_protocol_url;
mod btrfs_cow_image;
mod btrfs_dio_buffered;
mod btrfs_dio_csum_corruption;
mod btrfs_dio_raid_mirror_divergence;
mod btrfs_nocow_snapshotted;
mod bus_emulated;
mod cache_implicit;
mod cache_unsafe;
mod cache_writethrough;
mod chain_too_long;
mod detect_zeroes_unmap_no_discard;
mod direct_on_one_node;
mod discard_crypt_blocked;
mod discard_missing_thin;
mod discard_on_one_node;
mod duplicate_disk_source;
mod duplicate_target;
mod duplicate_value;
mod format_mismatch;
mod format_missing;
mod guest_sector_512_on_4kn;
mod hugepages_insufficient;
mod invalid_value;
mod io_native_on_buffered_dio;
mod io_uring_disabled;
mod iothread_missing_fast_media;
mod iothread_undefined;
mod iothread_unsupported_bus;
mod iothread_unused;
mod machine_newer_than_qemu;
mod md_degraded;
mod migration_direct_io_differs;
mod migration_discard_granularity_differs;
mod migration_io_uring_differs;
mod migration_machine_differs;
mod migration_sector_size_differs;
mod migration_source_missing;
mod missing_value;
mod native_without_direct;
mod odirect_silently_buffered;
mod odirect_unsupported;
mod qcow2_corrupt_bit;
mod qcow2_dirty_bit;
mod queues_gt_vcpus;
mod read_only_on_one_node;
mod shareable_cached;
mod source_is_mounted;
mod source_missing;
mod target_bus_mismatch;
mod tcg_instead_of_kvm;
mod thin_chunk_large_with_snapshots;
mod thin_zeroing_off;
mod undeclared_prefix;
mod unknown_attribute;
mod unknown_element;
mod unstable_device_path;
mod vhost_user_needs_shared_mem;

use vmdisk_source::ProblemKind;

use crate::{Applicability, Context, Fix, Report, Rule};

/// Every rule, sorted by name.
pub static RULES: &[&Rule] = &[
    &allowance_unknown_rule::RULE,
    &allowance_unused::RULE,
    &allowance_without_reason::RULE,
    &backing_format_missing::RULE,
    &backing_missing::RULE,
    &backing_protocol_url::RULE,
    &btrfs_cow_image::RULE,
    &btrfs_dio_buffered::RULE,
    &btrfs_dio_csum_corruption::RULE,
    &btrfs_dio_raid_mirror_divergence::RULE,
    &btrfs_nocow_snapshotted::RULE,
    &bus_emulated::RULE,
    &cache_implicit::RULE,
    &cache_unsafe::RULE,
    &cache_writethrough::RULE,
    &chain_too_long::RULE,
    &detect_zeroes_unmap_no_discard::RULE,
    &direct_on_one_node::RULE,
    &discard_crypt_blocked::RULE,
    &discard_missing_thin::RULE,
    &discard_on_one_node::RULE,
    &duplicate_disk_source::RULE,
    &duplicate_target::RULE,
    &duplicate_value::RULE,
    &format_mismatch::RULE,
    &format_missing::RULE,
    &guest_sector_512_on_4kn::RULE,
    &hugepages_insufficient::RULE,
    &invalid_value::RULE,
    &io_native_on_buffered_dio::RULE,
    &io_uring_disabled::RULE,
    &iothread_missing_fast_media::RULE,
    &iothread_undefined::RULE,
    &iothread_unsupported_bus::RULE,
    &iothread_unused::RULE,
    &machine_newer_than_qemu::RULE,
    &md_degraded::RULE,
    &migration_direct_io_differs::RULE,
    &migration_discard_granularity_differs::RULE,
    &migration_io_uring_differs::RULE,
    &migration_machine_differs::RULE,
    &migration_sector_size_differs::RULE,
    &migration_source_missing::RULE,
    &missing_value::RULE,
    &native_without_direct::RULE,
    &odirect_silently_buffered::RULE,
    &odirect_unsupported::RULE,
    &qcow2_corrupt_bit::RULE,
    &qcow2_dirty_bit::RULE,
    &queues_gt_vcpus::RULE,
    &read_only_on_one_node::RULE,
    &shareable_cached::RULE,
    &source_is_mounted::RULE,
    &source_missing::RULE,
    &target_bus_mismatch::RULE,
    &tcg_instead_of_kvm::RULE,
    &thin_chunk_large_with_snapshots::RULE,
    &thin_zeroing_off::RULE,
    &undeclared_prefix::RULE,
    &unknown_attribute::RULE,
    &unknown_element::RULE,
    &unstable_device_path::RULE,
    &vhost_user_needs_shared_mem::RULE,
];

/// The rule with this name.
pub fn find(name: &str) -> Option<&'static Rule> {
    RULES
        .binary_search_by(|rule| rule.name.cmp(name))
        .ok()
        .map(|at| RULES[at])
}

/// Reports what the reader stumbled over, one finding for each.
fn report_problems(context: &Context<'_>, report: &mut Report, kind: ProblemKind) {
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
            (None, ProblemKind::Duplicate) => "keep the one that is meant and take the other away",
            (
                None,
                ProblemKind::DiscardOnOneNode
                | ProblemKind::DirectOnOneNode
                | ProblemKind::ReadOnlyOnOneNode,
            ) => "write it on both nodes",
            (None, ProblemKind::UndeclaredPrefix) => {
                "declare the prefix on the root element, such as xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'"
            }
        });
        if !problem.fix.is_empty() {
            finding.fix(Fix {
                changes: Vec::new(),
                edits: problem.fix.clone(),
                applicability: Applicability::Safe,
            });
        }
    }
}

/// The check of a rule about allowances: they belong to the file and not to the disks, so whoever
/// holds the file reports them.
fn reported_with_the_allowances(_context: &Context<'_>, _report: &mut Report) {}

/// The check of a rule that compares hosts: one alone gives it nothing to say.
fn compares_hosts(_context: &Context<'_>, _report: &mut Report) {}
