//! Checks of secrets, and of backends that QEMU drives itself or that only libvirt locates.

use super::SpecPath;
use super::direct::{NvmeSpec, ZvolSpec, pci_address};
use super::faults::{Faults, is_uuid};
use super::network::SecretSpec;
use super::node::shortened;

pub(super) fn check_nvme(nvme: &NvmeSpec, at: &SpecPath, faults: &mut Faults) {
    if pci_address(&nvme.address).is_none() {
        let message = format!("`{}` is not a PCI address", shortened(&nvme.address));
        faults.refuse(at.key("address"), message).help =
            Some("write DOMAIN:BUS:SLOT.FUNCTION, such as 0000:01:00.0".to_owned());
    }
    let message = "namespaces are numbered from 1";
    faults.refuse_unless(nvme.namespace != Some(0), at.key("namespace"), message);
}

pub(super) fn check_zvol(zvol: &ZvolSpec, at: &SpecPath, faults: &mut Faults) {
    let ZvolSpec { dataset, size } = zvol;
    let message = "the size of a ZFS volume is a multiple of its blocks of 16 KiB";
    let is_whole = size.is_none_or(|size| size.0.is_multiple_of(16 << 10));
    faults.refuse_unless(is_whole, at.key("size"), message);
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    let mut parts = dataset.split('/');
    let is_dataset = dataset.contains('/')
        && parts.all(|part| {
            !part.is_empty() && ![".", ".."].contains(&part) && part.chars().all(is_fit)
        });
    if !is_dataset {
        let message = format!("`{}` is not a dataset in a pool", shortened(dataset));
        faults.refuse(at.key("dataset"), message).help =
            Some("write POOL/NAME, such as tank/web1".to_owned());
    }
}

/// Checks that a secret is identified in one way.
pub(super) fn check_secret(secret: &SecretSpec, at: &SpecPath, faults: &mut Faults) {
    let SecretSpec { uuid, usage } = secret;
    match (uuid, usage) {
        (Some(_), Some(_)) => {
            let message = "identify a secret by its `uuid` or its `usage`, not both";
            faults.refuse(at.key("usage"), message);
        }
        (None, None) => {
            let message = "identify a secret by its `uuid` or its `usage`";
            faults.refuse(at.clone(), message);
        }
        (Some(uuid), None) => {
            let message = format!("`{}` is not a UUID", shortened(uuid));
            faults.refuse_unless(is_uuid(uuid), at.key("uuid"), message);
        }
        (None, Some(_)) => {}
    }
}
