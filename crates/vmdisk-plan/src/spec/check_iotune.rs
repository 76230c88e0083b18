//! Limits that libvirt or QEMU refuses.

use vmdisk_fields::{has_limits, limit, limit_faults};

use super::SpecPath;
use super::faults::Faults;
use super::iotune::IotuneSpec;

/// Checks throttling.
pub(super) fn check_iotune(iotune: &IotuneSpec, at: &SpecPath, faults: &mut Faults) {
    let model = iotune.to_model();
    for fault in limit_faults(&model) {
        let key = limit(fault.at).map_or_else(String::new, |row| row.libvirt.replace('_', "-"));
        faults.refuse(at.key(key), fault.what).help = Some(fault.help);
    }
    faults.refuse_unless(
        iotune.group_name.is_none() || has_limits(&model),
        at.key("group-name"),
        "libvirt requires a group's limits",
    );
}
