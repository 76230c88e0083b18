//! Backends that QEMU drives itself or that only libvirt locates: `nvme`, `vhost-vdpa`, `directory` and `volume`.

use vmdisk_model::{
    Bytes, Creation, Format, Image, NvmeSource, PciAddress, Protocol, Switch, VolumeMode,
    VolumeSource,
};

use super::section::section;

section! {
    /// A namespace of an NVMe controller of the host, which QEMU drives itself.
    pub struct NvmeSpec {
        /// PCI address of the controller on the host, such as `0000:01:00.0`.
        address: String = "address",
        /// Namespace, from 1; default 1.
        namespace: Option<u64> = "namespace",
        /// Whether libvirt detaches the controller from the host's driver and returns it; libvirt's default is yes.
        managed: Option<bool> = "managed",
    }
}

section! {
    /// A block device of a vDPA parent (libvirt 9.8, QEMU 8.1).
    pub struct VhostVdpaSpec {
        /// Path of the character device, such as `/dev/vhost-vdpa-0`.
        path: String = "path",
    }
}

section! {
    /// A directory of the host, which the guest reads as a FAT file system.
    pub struct DirectorySpec {
        /// Absolute path on the host.
        path: String = "path",
    }
}

section! {
    /// A ZFS volume.
    pub struct ZvolSpec {
        /// Dataset, such as `tank/web1`.
        dataset: String = "dataset",
        /// Size; with it the volume is created, without it the volume exists.
        size: Option<Bytes> = "size",
    }
}

section! {
    /// A volume of a storage pool of libvirt, which locates it when the guest starts.
    pub struct VolumeSpec {
        /// Pool.
        pool: String = "pool",
        /// Volume in the pool.
        volume: String = "volume",
        /// Size; with it the volume is created, without it the volume exists.
        size: Option<Bytes> = "size",
        /// Format of the image; default `raw`, never guessed.
        format: Option<Format> = "format",
        /// Whether a volume of an iSCSI pool is a device of the host, or QEMU connects directly; libvirt's default is `host`.
        mode: Option<VolumeMode> = "mode",
    }
}

/// The parts of `0000:01:00.0`; the domain may be left out.
pub(super) fn pci_address(text: &str) -> Option<PciAddress> {
    let (rest, function) = text.rsplit_once('.')?;
    let mut parts = rest.split(':').rev();
    let (slot, bus, domain) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let hex = |part: &str, most: u32| {
        let is_hex = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(part, 16).ok().filter(|_| is_hex)?;
        (number <= most).then_some(number)
    };
    if parts.next().is_some() {
        return None;
    }
    Some(PciAddress {
        domain: hex(domain, 0xffff)?,
        bus: hex(bus, 0xff)?,
        slot: hex(slot, 0x1f)?,
        function: hex(function, 7)?,
        multifunction: None,
    })
}

impl NvmeSpec {
    /// The image, in the model.
    pub(crate) fn to_image(&self) -> Image {
        let NvmeSpec {
            address,
            namespace,
            managed,
        } = self;
        let source = NvmeSource {
            // Checked before.
            address: pci_address(address).unwrap_or_default(),
            namespace: namespace.unwrap_or(1),
            managed: managed.map(|on| if on { Switch::On } else { Switch::Off }),
        };
        Image::new(Some(Format::Raw), Protocol::Nvme(source))
    }

    /// The same in a spec.
    pub(crate) fn of_model(source: &NvmeSource) -> Self {
        let NvmeSource {
            address,
            namespace,
            managed,
        } = source;
        NvmeSpec {
            address: address.to_string(),
            namespace: Some(*namespace),
            managed: managed.map(|switch| switch == Switch::On),
        }
    }

    /// A name for what it opens, however its address is written.
    pub(super) fn storage(&self) -> String {
        let address = pci_address(&self.address).unwrap_or_default();
        format!("nvme:{address:?}/{}", self.namespace.unwrap_or(1))
    }
}

impl ZvolSpec {
    /// The image, in the model.
    pub(crate) fn to_image(&self) -> Image {
        let mut image = Image::host_device(self.device_path());
        image.creation = self.size.map(|size| Creation::Other { size: Some(size) });
        image
    }

    /// Path of the block device, which udev makes.
    pub fn device_path(&self) -> String {
        format!("/dev/zvol/{}", self.dataset)
    }
}

impl VolumeSpec {
    /// The image, in this format.
    pub(crate) fn to_image(&self, format: Format) -> Image {
        let VolumeSpec {
            pool,
            volume,
            size,
            format: _, // the planner's choice
            mode,
        } = self;
        let source = VolumeSource {
            pool: pool.clone(),
            volume: volume.clone(),
            mode: *mode,
        };
        let mut image = Image::new(Some(format), Protocol::Volume(source));
        image.creation = size.map(|size| Creation::Other { size: Some(size) });
        image
    }

    /// The same in a spec.
    pub(crate) fn of_model(source: &VolumeSource, format: Option<Format>) -> Self {
        let VolumeSource { pool, volume, mode } = source.clone();
        VolumeSpec {
            pool,
            volume,
            size: None,
            format,
            mode,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pci_address_is_read_with_and_without_its_domain() {
        let address = |text| pci_address(text).map(|a| (a.domain, a.bus, a.slot, a.function));
        assert_eq!(address("0000:01:00.0"), Some((0, 1, 0, 0)));
        assert_eq!(address("ffff:ff:1f.7"), Some((0xffff, 0xff, 0x1f, 7)));
        assert_eq!(address("3b:00.1"), Some((0, 0x3b, 0, 1)));
        for wrong in [
            "",
            "1",
            "0000:01:00",
            "01:20.0",
            "01:00.8",
            "a:b:c:d.0",
            "+1:00.0",
            "1:: .0",
        ] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }
}
