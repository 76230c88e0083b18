//! Where disks can live on a host: libvirt's storage pools, mounted file systems, whole disks and volumes.

use std::path::PathBuf;

use vmdisk_facts::FsKind;

use crate::mountinfo::{MountLine, MountTable};
use crate::root::Root;

/// The directory in which libvirt creates images.
const IMAGES: &str = "/var/lib/libvirt/images";

/// The definitions of libvirt's storage pools, running or not.
pub(crate) const POOLS: &str = "/etc/libvirt/storage";

/// Names of disks that stay, and of volumes.
const DEVICES: [&str; 2] = ["/dev/disk/by-id", "/dev/mapper"];

/// What is mounted there belongs to the system, to containers or to packages.
const OF_SYSTEM: [&str; 12] = [
    "/boot",
    "/dev",
    "/efi",
    "/proc",
    "/run",
    "/snap",
    "/sys",
    "/tmp",
    "/usr",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/lib/kubelet",
];

/// Returns the paths, without a program and without libvirt's daemon.
pub(crate) fn paths(root: &Root) -> Vec<PathBuf> {
    let mut paths = vec![IMAGES.to_owned()];
    for pool in root.names(POOLS).unwrap_or_default() {
        let text = root.text(format!("{POOLS}/{pool}"));
        paths.extend(text.ok().as_deref().and_then(directory_of_pool));
    }
    let mounts = root.text("/proc/self/mountinfo").unwrap_or_default();
    let (table, _) = MountTable::parse(&mounts);
    let places = table.lines.iter().filter(|mount| has_files_of_users(mount));
    paths.extend(places.map(|mount| mount.point.clone()));
    for directory in DEVICES {
        let names = root.names(directory).unwrap_or_default();
        paths.extend(names.iter().map(|name| format!("{directory}/{name}")));
    }
    paths.into_iter().map(PathBuf::from).collect()
}

/// Returns the directory with the volumes of a pool; none for pools of volume groups, devices and servers.
fn directory_of_pool(xml: &str) -> Option<String> {
    let document = roxmltree::Document::parse(xml).ok()?;
    let pool = document.root_element();
    let mut targets = pool.children().filter(|it| it.has_tag_name("target"));
    let mut paths = targets.next()?.children();
    let path = paths.find(|it| it.has_tag_name("path"))?.text()?.trim();
    let is_directory = path.starts_with('/') && !path.starts_with("/dev/");
    (pool.has_tag_name("pool") && is_directory).then(|| path.to_owned())
}

/// True for a mounted file system, not a directory of one, in which an administrator can put images.
fn has_files_of_users(mount: &MountLine) -> bool {
    let kind = FsKind::from(mount.fstype.as_str());
    let is_part = mount.root != "/" && !matches!(kind, FsKind::Btrfs);
    let is_on_device = mount.device.major != 0;
    let is_of_users = match kind {
        FsKind::Squashfs | FsKind::Erofs | FsKind::Iso9660 => false,
        FsKind::Btrfs | FsKind::Zfs | FsKind::Nfs | FsKind::Nfs4 | FsKind::Ceph => true,
        _ => is_on_device,
    };
    let is_read_only = mount.options.iter().any(|(name, _)| name == "ro");
    let below = |directory: &&str| {
        let rest = mount.point.strip_prefix(*directory);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_of_system = mount.point == "/" || OF_SYSTEM.iter().any(below);
    is_of_users && !is_part && !is_read_only && !is_of_system
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn pools_mounts_and_devices_are_places() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let pool = |kind: &str, path: &str| {
            format!(
                "<!-- generated -->\n<pool type='{kind}'>\n  <name>p</name>\n  <source/>\n  <target>\n    <path>{path}</path>\n  </target>\n</pool>\n"
            )
        };
        put("etc/libvirt/storage/vm.xml", &pool("dir", "/srv/vm"));
        put("etc/libvirt/storage/vg.xml", &pool("logical", "/dev/vg0"));
        put(
            "etc/libvirt/storage/rbd.xml",
            "<pool type='rbd'><name>r</name></pool>",
        );
        put(
            "etc/libvirt/storage/broken.xml",
            "<pool type='dir'><target><path>/x",
        );
        put("dev/disk/by-id/nvme-A", "");
        put("dev/mapper/vg0-web", "");
        put(
            "proc/self/mountinfo",
            "1 0 254:0 / / rw - ext4 /dev/vda1 rw
2 1 254:1 / /home rw - xfs /dev/vda2 rw
3 1 254:1 /srv /srv rw - xfs /dev/vda2 rw
4 1 254:2 / /boot/efi rw - vfat /dev/vda3 rw
5 1 0:40 /@data /data rw - btrfs /dev/vdb rw
6 1 0:41 / /mnt/share rw - nfs4 server:/vm rw
7 1 0:42 / /var/cache rw - tmpfs tmpfs rw
8 1 254:3 / /media/disk ro - ext4 /dev/vdc ro
9 1 7:0 / /snap/core/1 ro - squashfs /dev/loop0 ro
10 1 254:4 / /bootstrap rw - ext4 /dev/vdd rw
",
        );
        let found: Vec<String> = paths(&Root::new(folder.path()))
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        assert_eq!(
            found,
            [
                "/var/lib/libvirt/images",
                "/srv/vm",
                "/home",
                "/data",
                "/mnt/share",
                "/bootstrap",
                "/dev/disk/by-id/nvme-A",
                "/dev/mapper/vg0-web",
            ]
        );
    }
}
