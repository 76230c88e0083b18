//! A place with a form, planned and judged.

use vmdisk_facts::MeasuredStorage;
use vmdisk_facts::verdict::redundancy::RedundancyVerdict;
use vmdisk_model::Bytes;
use vmdisk_plan::{Plan, Spec};

use super::intent::{StorageForm, Want};
use super::wants::Mechanism;
use crate::Diagnostic;
use crate::trace::CrashLoss;

/// A place with a form, planned and judged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StorageCandidate {
    /// A directory, volume group, thin pool or device.
    pub place: String,
    /// What the place is, such as `xfs on /dev/nvme0n1p2`.
    pub kind: String,
    /// The form.
    pub form: StorageForm,
    /// The disk, with each chosen option.
    pub spec: Spec,
    /// The plan, with the reason for each option.
    pub plan: Plan,
    /// What the disk has, in the order of [`Want::ALL`].
    pub gives: Vec<(Want, Mechanism)>,
    /// The data that a crash of the host can lose.
    pub loss: CrashLoss,
    /// The findings that remain, whatever options are chosen.
    pub findings: Vec<Diagnostic>,
    /// Bytes that the disk takes when it is made.
    pub taken: Bytes,
    /// Bytes that are free there; `None` if the facts do not say.
    pub free: Option<Bytes>,
    /// The most bytes that can be free there, where they are not known.
    pub most_free: Option<Bytes>,
    /// Whether data survives the failure of a drive.
    pub redundancy: RedundancyVerdict,
    /// True if its medium is removable or on USB; `None` if the facts do not say.
    pub is_removable: Option<bool>,
    /// The bytes there that should stay free.
    pub reserve: Bytes,
    /// True for a directory that QEMU's user may not enter.
    pub is_closed: bool,
    /// True for the directory at which a file system is mounted: one for images is still to be made.
    pub is_mount_point: bool,
    /// True if it is memory, and gone when the host stops.
    pub is_memory: bool,
    /// What was measured on the same storage with the same form and settings.
    pub measured: Vec<MeasuredStorage>,
    /// What was measured otherwise on the host, each with the reason for which it does not count.
    pub unused: Vec<(MeasuredStorage, String)>,
    /// True if the drives do not rotate; `None` if the facts do not say.
    pub is_fast: Option<bool>,
    /// True if all drives are NVMe drives.
    pub is_nvme: bool,
}

impl StorageCandidate {
    /// What it has of something.
    pub fn mechanism(&self, want: Want) -> &Mechanism {
        &self.gives[want as usize].1
    }

    /// The findings that a command or a setting on the host ends: what to do before the disk is used.
    pub fn todo(&self) -> impl Iterator<Item = &Diagnostic> {
        self.findings.iter().filter(|it| it.is_about_host)
    }
}
