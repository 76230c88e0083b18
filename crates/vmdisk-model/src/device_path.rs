//! Paths of host block devices, and how stable they are.

/// Path of a block device on the host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevicePath(pub String);

/// The stability that a device name promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevicePathKind<'a> {
    /// `/dev/sda`, `/dev/nvme0n1p2`, `/dev/vdb`, `/dev/dm-3`, `/dev/md0`, `/dev/loop0`: handed out in
    /// the order of discovery, so the next boot may give it to another device.
    KernelName(&'a str),
    /// A link under `/dev/disk/by-…`, kept by udev.
    Persistent {
        /// The `by-…` directory, such as `by-id`.
        scheme: &'a str,
        /// Number of the partition, if the link ends in `-partN`.
        partition: Option<u32>,
    },
    /// `/dev/mapper/NAME`: the name of a device-mapper device.
    Mapper(&'a str),
    /// `/dev/GROUP/VOLUME`, as LVM makes it.
    LogicalVolume {
        /// Volume group.
        group: &'a str,
        /// Logical volume.
        volume: &'a str,
    },
    /// `/dev/zvol/POOL/…`.
    Zvol(&'a str),
    /// Something else.
    Other,
}

impl DevicePath {
    /// A device by its path.
    pub fn new(path: impl Into<String>) -> Self {
        DevicePath(path.into())
    }

    /// The stability that the name promises, derived from its form alone.
    pub fn kind(&self) -> DevicePathKind<'_> {
        let Some(name) = self.0.strip_prefix("/dev/") else {
            return DevicePathKind::Other;
        };
        if let Some(link) = name.strip_prefix("disk/") {
            return match link.split_once('/') {
                Some((scheme, link)) => DevicePathKind::Persistent {
                    scheme,
                    partition: link
                        .rsplit_once("-part")
                        .and_then(|(_, number)| number.parse().ok()),
                },
                None => DevicePathKind::Other,
            };
        }
        if let Some(name) = name.strip_prefix("mapper/") {
            return DevicePathKind::Mapper(name);
        }
        if let Some(dataset) = name.strip_prefix("zvol/") {
            return DevicePathKind::Zvol(dataset);
        }
        match name.split_once('/') {
            Some((
                "block" | "char" | "bus" | "shm" | "fd" | "fdset" | "md" | "input" | "pts"
                | "mqueue",
                _,
            )) => DevicePathKind::Other,
            // `/dev/hugepages`, `/dev/hugepages1G` and so on: mounts of hugetlbfs.
            Some((group, _)) if group.starts_with("hugepages") => DevicePathKind::Other,
            Some((group, volume)) if !volume.contains('/') && !volume.is_empty() => {
                DevicePathKind::LogicalVolume { group, volume }
            }
            Some(_) => DevicePathKind::Other,
            None if is_kernel_name(name) => DevicePathKind::KernelName(name),
            None => DevicePathKind::Other,
        }
    }
}

/// True for names that the kernel hands out in the order of discovery.
fn is_kernel_name(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    for prefix in [
        "dm-", "md", "loop", "zd", "rbd", "nbd", "bcache", "pmem", "sr",
    ] {
        if let Some(rest) = name.strip_prefix(prefix) {
            let number = rest.split('p').next().unwrap_or_default();
            if digits(number) {
                return true;
            }
        }
    }
    if let Some(rest) = name.strip_prefix("nvme") {
        return rest.split_once('n').is_some_and(|(controller, namespace)| {
            digits(controller) && digits(namespace.split('p').next().unwrap_or_default())
        });
    }
    if let Some(rest) = name.strip_prefix("mmcblk") {
        return digits(rest.split('p').next().unwrap_or_default());
    }
    for prefix in ["sd", "vd", "hd", "xvd", "dasd"] {
        if let Some(rest) = name.strip_prefix(prefix) {
            let letters = rest.trim_end_matches(|c: char| c.is_ascii_digit());
            return !letters.is_empty() && letters.bytes().all(|b| b.is_ascii_lowercase());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_name_tells_what_it_promises() {
        use DevicePathKind::*;
        for (path, kind) in [
            ("/dev/sda", KernelName("sda")),
            ("/dev/sdaa3", KernelName("sdaa3")),
            ("/dev/nvme0n1p2", KernelName("nvme0n1p2")),
            ("/dev/dm-3", KernelName("dm-3")),
            ("/dev/md127p1", KernelName("md127p1")),
            ("/dev/loop7", KernelName("loop7")),
            ("/dev/mapper/vg-a", Mapper("vg-a")),
            (
                "/dev/vg0/data",
                LogicalVolume {
                    group: "vg0",
                    volume: "data",
                },
            ),
            (
                "/dev/disk/by-id/wwn-0x5000-part2",
                Persistent {
                    scheme: "by-id",
                    partition: Some(2),
                },
            ),
            (
                "/dev/disk/by-path/pci-0",
                Persistent {
                    scheme: "by-path",
                    partition: None,
                },
            ),
            ("/dev/zvol/tank/vm", Zvol("tank/vm")),
            ("/dev/cdrom", Other),
            ("/dev/sdX", Other),
            ("/dev/sd1", Other),
            ("/dev/sd", Other),
            ("/dev/md", Other),
            ("/dev/mdx", Other),
            ("/dev/nvme0", Other),
            ("/dev/nvmexn1", Other),
            ("/dev/nvme0nx", Other),
            ("/dev/nvme0n", Other),
            ("/dev/mmcblk0p1", KernelName("mmcblk0p1")),
            ("/dev/mmcblkx", Other),
            ("/dev/vg0/a/b", Other),
            ("/dev/md/array", Other),
            ("/dev/fdset/1", Other),
            ("/srv/a.img", Other),
            ("/dev/", Other),
            ("/dev/vg0/", Other),
        ] {
            assert_eq!(DevicePath::new(path).kind(), kind, "{path}");
        }
    }
}
