//! A place with a form, planned and judged.

use vmdisk_facts::MeasuredStorage;
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
    /// What was measured on the same storage with the same form and settings.
    pub measured: Vec<MeasuredStorage>,
    /// True if the drives do not rotate; `None` if the facts do not say.
    pub is_fast: Option<bool>,
}

impl StorageCandidate {
    /// What it has of something.
    pub fn mechanism(&self, want: Want) -> &Mechanism {
        &self.gives[want as usize].1
    }
}
