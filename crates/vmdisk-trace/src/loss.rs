//! The data that a crash of the host can lose.

use vmdisk_model::Disk;

use crate::path::{
    CrashLoss, Layer, RequestKind, RequestOutcome, Statement, StatementBasis, Survival, TraceStep,
};

/// Derives the loss from the steps of a path.
pub(crate) fn of(disk: &Disk, steps: &[TraceStep]) -> CrashLoss {
    if !disk.is_writable() {
        let basis = StatementBasis::Step { step: 0 };
        return CrashLoss {
            flushed: Survival::Kept,
            unflushed: Survival::Kept,
            statements: vec![statement("the guest writes nothing", basis)],
        };
    }
    let (flushed, mut statements) = flushed(disk, steps);
    let flushes_each_write = steps
        .first()
        .is_some_and(|step| step.effect(RequestKind::Flush).outcome == RequestOutcome::Blocking);
    let unflushed = if flushes_each_write {
        statements.push(statement(
            "QEMU flushes each write before it completes, so every completed write counts as flushed",
            StatementBasis::Step { step: 0 },
        ));
        flushed
    } else {
        let (unflushed, volatile) = unflushed(steps);
        statements.extend(volatile);
        unflushed
    };
    CrashLoss {
        flushed,
        unflushed,
        statements,
    }
}

fn statement(text: impl Into<String>, basis: StatementBasis) -> Statement {
    let text = text.into();
    Statement { text, basis }
}

/// Flushed data is lost where a step drops the flush.
fn flushed(disk: &Disk, steps: &[TraceStep]) -> (Survival, Vec<Statement>) {
    if disk.backend.is_transient {
        let text = "the disk is transient: every write is lost when the guest stops";
        return (
            Survival::Lost,
            vec![statement(text, StatementBasis::Step { step: 0 })],
        );
    }
    let of = |wanted: RequestOutcome| {
        let steps = steps.iter().enumerate();
        steps.filter(move |(_, step)| step.effect(RequestKind::Flush).outcome == wanted)
    };
    let mut statements: Vec<Statement> = of(RequestOutcome::Dropped)
        .map(|(number, step)| {
            let text = format!(
                "flushed data can be lost: the {} `{}` drops flushes",
                step.layer.name(),
                step.name
            );
            statement(text, StatementBasis::Step { step: number })
        })
        .collect();
    if !statements.is_empty() {
        return (Survival::Lost, statements);
    }
    statements.extend(of(RequestOutcome::Unknown).map(|(number, step)| {
        let text = format!(
            "it is unknown whether flushed data survives the {} `{}`",
            step.layer.name(),
            step.name
        );
        statement(text, StatementBasis::Step { step: number })
    }));
    if !statements.is_empty() {
        return (Survival::Unknown, statements);
    }
    statements.extend(of(RequestOutcome::Honoured).map(|(number, step)| {
        let text = format!("flushed data is on `{}`", step.name);
        statement(text, StatementBasis::Step { step: number })
    }));
    match statements.is_empty() {
        true => (Survival::Unknown, statements),
        false => (Survival::Kept, statements),
    }
}

/// Data that is not flushed is lost from memory and from caches that lose it with the power.
fn unflushed(steps: &[TraceStep]) -> (Survival, Vec<Statement>) {
    let of = |wanted: RequestOutcome| {
        let steps = steps.iter().enumerate();
        steps.filter(move |(_, step)| step.effect(RequestKind::Write).outcome == wanted)
    };
    // A cache in front of a drive keeps what it was given.
    let volatile = of(RequestOutcome::Cached).filter(|(_, step)| step.layer != Layer::Cache);
    let statements: Vec<Statement> = volatile
        .map(|(number, step)| {
            let place = match step.layer {
                Layer::Drive => format!("the cache of the drive `{}`", step.name),
                _ => "the host's page cache".to_owned(),
            };
            let text = format!("data that is not flushed can be lost from {place}");
            statement(text, StatementBasis::Step { step: number })
        })
        .collect();
    let survival = if !statements.is_empty() {
        Survival::Lost
    } else if of(RequestOutcome::Unknown).next().is_some()
        // A server and its client may cache writes: librbd does, unless the cache mode is none or directsync.
        || steps.iter().any(|it| {
            matches!(it.layer, Layer::Unknown | Layer::Server)
                && it.effect(RequestKind::Write).outcome != RequestOutcome::Absent
        })
    {
        Survival::Unknown
    } else {
        Survival::Kept
    };
    (survival, statements)
}
