//! What happens to the guest when a write fails.

use vmdisk_facts::BlockKind;
use vmdisk_model::{
    BackendSource, Creation, Device, DiskField, ErrorPolicy, ReadErrorPolicy, TargetBus,
};

use super::choice::Chosen;
use super::planner::Planner;
use crate::spec::{BackendSpec, DiskSpec};

impl Planner<'_> {
    /// Decides the error policies of a disk.
    ///
    /// QEMU pauses the guest when a write finds no space, and reports every other error. A thin pool without space for
    /// its metadata fails writes with an I/O error, which a guest takes for a broken drive.
    pub(crate) fn plan_error_policy(&mut self, index: usize, spec: &DiskSpec) {
        let is_thin = self.is_on_thin_pool(index, spec);
        let at = DiskField::ErrorPolicy;
        let policy = self.decide_disk(index, at, "error-policy", spec.error_policy, |_| {
            is_thin.then(|| {
                let reason = "when the thin pool is full, the guest pauses until it has space";
                Chosen::by_default(ErrorPolicy::Stop, reason)
            })
        });
        let is_chosen = spec.error_policy.is_none() && policy.is_some();
        let at = DiskField::ReadErrorPolicy;
        let asked = spec.read_error_policy;
        let reads = self.decide_disk(index, at, "read-error-policy", asked, |_| {
            is_chosen.then(|| {
                let reason = "reads need no space; by default they use the policy of writes";
                Chosen::by_default(ReadErrorPolicy::Report, reason)
            })
        });
        let frontend = &mut self.disk(index).frontend;
        frontend.error_policy = policy;
        frontend.read_error_policy = reads;
    }

    fn is_on_thin_pool(&self, index: usize, spec: &DiskSpec) -> bool {
        let disk = &self.domain.disks[index];
        let BackendSource::Image(image) = &disk.backend.source else {
            return false;
        };
        let has_policies = disk.frontend.device == Some(Device::Disk)
            && disk.frontend.effective_bus() != TargetBus::Nvme
            && disk.is_writable();
        let is_thin = matches!(spec.backend, BackendSpec::LvmThin(_))
            || matches!(image.creation, Some(Creation::ThinVolume(_)))
            || self
                .host
                .device(image)
                .is_some_and(|device| device.kind == BlockKind::LvmThin);
        has_policies && is_thin
    }
}
