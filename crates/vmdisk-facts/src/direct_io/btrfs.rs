//! What O_DIRECT does on btrfs: by checksum, data profile and kernel, unless a trial decided.

use super::effect::{Buffered, DirectIo, DirectIoEffect, DirectIoInputs, undecided};
use crate::btrfs_regime::{self, Write};
use crate::fact::{Fact, Reason};
use crate::filesystem::{Btrfs, Filesystem};
use crate::path::TrialOutcome;
use crate::version::Version;

/// Whether a file on btrfs has data checksums.
fn checksummed(evidence: DirectIoInputs<'_>) -> Fact<bool> {
    let nocow = match evidence.nocow {
        Fact::Known(nocow) => *nocow,
        Fact::Absent => {
            return Fact::unknown(
                Reason::Conflict,
                "btrfs has a NOCOW flag, and the facts say it has none",
            );
        }
        Fact::Unknown(unknown) => return Fact::Unknown(unknown.clone()),
        Fact::NotCollected => return Fact::NotCollected,
    };
    if nocow {
        return Fact::Known(false);
    }
    let option = |name| {
        evidence
            .mount
            .map_or(Fact::NotCollected, |mount| mount.has_option(name))
    };
    if option("nodatasum").is_true() || option("nodatacow").is_true() {
        return if evidence.exists {
            Fact::unknown(
                Reason::Undecided,
                "the mount has nodatasum or nodatacow, which applies only to files that were created with it",
            )
        } else {
            Fact::Known(false)
        };
    }
    Fact::Known(true)
}

pub(super) fn conclude(evidence: DirectIoInputs<'_>) -> Fact<DirectIo> {
    let checksums = checksummed(evidence);
    let redundant = evidence
        .filesystem
        .btrfs
        .as_ref()
        .and_then(Btrfs::keeps_several_copies);
    if let Some(verdict) = tried(evidence, &checksums, &redundant) {
        return verdict
            .probed("a direct overwrite there did not have to wait (RWF_NOWAIT succeeded)");
    }
    let row = match evidence.kernel.version.clone().and_then(|version| {
        let vendor = evidence.kernel.vendor.value().map(String::as_str);
        btrfs_regime::regime(version, vendor).map(|row| (version, row))
    }) {
        Fact::Known(row) => row,
        Fact::Absent => return Fact::unknown(Reason::Conflict, "the kernel has no version"),
        Fact::Unknown(unknown) => return Fact::Unknown(unknown),
        Fact::NotCollected => return Fact::NotCollected,
    };
    let (version, row) = row;
    if row.checksummed == Write::Refused {
        let because = format!("btrfs has direct I/O since Linux 2.6.35 (Linux {version})");
        return DirectIoEffect::Unsupported.by_table(because);
    }
    by_kernel(evidence, checksums, redundant, version, row)
}

/// The verdict of a trial write, which distinguishes the two only if it did not have to wait.
fn tried(
    evidence: DirectIoInputs<'_>,
    checksums: &Fact<bool>,
    redundant: &Fact<bool>,
) -> Option<DirectIoEffect> {
    if !evidence.dio.nowait_overwrite.is(&TrialOutcome::Ok) {
        return None;
    }
    match (checksums, redundant) {
        (Fact::Known(false), Fact::Known(true)) => Some(DirectIoEffect::DirectUnstableMirrors),
        (Fact::Known(true), _) | (Fact::Known(false), Fact::Known(false)) => {
            Some(DirectIoEffect::Direct)
        }
        _ => None,
    }
}

/// The verdict of the table of kernels.
fn by_kernel(
    evidence: DirectIoInputs<'_>,
    checksums: Fact<bool>,
    redundant: Fact<bool>,
    version: Version,
    row: &btrfs_regime::BtrfsRow,
) -> Fact<DirectIo> {
    let (verdict, what, written) = match (checksums, redundant) {
        (Fact::Known(true), _) => {
            let verdict = match row.checksummed {
                Write::Direct => DirectIoEffect::DirectUnstableChecksums,
                Write::Buffered => DirectIoEffect::AcceptedButBuffered(Buffered::BtrfsChecksums),
                Write::Bounced => DirectIoEffect::Direct,
                Write::Refused | Write::NotVerified => return not_verified(version, row),
            };
            (
                verdict,
                "the file has checksums".to_owned(),
                row.checksummed,
            )
        }
        (Fact::Known(false), Fact::Known(true)) => {
            let verdict = match row.plain_redundant {
                Write::Direct => DirectIoEffect::DirectUnstableMirrors,
                Write::Buffered => DirectIoEffect::AcceptedButBuffered(Buffered::BtrfsRedundant),
                Write::Bounced => DirectIoEffect::Direct,
                Write::Refused | Write::NotVerified => return not_verified(version, row),
            };
            (
                verdict,
                no_checksums(evidence.filesystem),
                row.plain_redundant,
            )
        }
        (Fact::Known(false), Fact::Known(false)) => {
            let what = no_checksums(evidence.filesystem);
            (DirectIoEffect::Direct, what, row.plain)
        }
        (Fact::Known(false), profile) => {
            return profile
                .and_then(|_| not_verified(version, row))
                .or_excuse("the btrfs data profile");
        }
        (checksums, _) => {
            return checksums
                .and_then(|_| not_verified(version, row))
                .or_excuse("the NOCOW flag");
        }
    };
    verdict.by_table(format!(
        "{what}, and btrfs of Linux {version} {}",
        does(written)
    ))
}

/// The effect of a write, as the end of a sentence about btrfs.
const fn does(written: Write) -> &'static str {
    match written {
        Write::Refused => "has no direct I/O",
        Write::Direct => "writes the caller's buffer to the device, uncopied",
        Write::Buffered => "writes such a file through the page cache",
        Write::Bounced => "copies the buffer first and writes the copy past the page cache",
        Write::NotVerified => "has not been tested yet",
    }
}

fn no_checksums(filesystem: &Filesystem) -> String {
    let profile = filesystem
        .btrfs
        .as_ref()
        .and_then(|btrfs| btrfs.data_profile.clone())
        .known()
        .map_or_else(String::new, |profiles| profiles.join("+"));
    format!("the file has no checksums and the data profile is {profile}")
}

fn not_verified(version: Version, row: &btrfs_regime::BtrfsRow) -> Fact<DirectIo> {
    undecided(format!(
        "the effect on btrfs of Linux {version} is not verified ({})",
        row.source
    ))
}

impl Fact<DirectIo> {
    /// Says which fact is missing where the reason alone would not.
    fn or_excuse(self, what: &str) -> Self {
        match self {
            Self::Unknown(unknown) if unknown.detail().is_empty() => {
                Self::unknown(unknown.reason().clone(), what)
            }
            known @ (Self::Known(_) | Self::Absent | Self::Unknown(_) | Self::NotCollected) => {
                known
            }
        }
    }
}
