//! The hosts that plans are made for, and the places on them where disks can be.

use std::path::PathBuf;

use vmdisk::facts::{BlockKind, FileKind};
use vmdisk::{Facts, Target};
use vmdisk_tests::{fixtures, repository};

/// A recorded host, and what a spec can name on it.
#[derive(Debug)]
pub(crate) struct Host {
    /// The facts file it is recorded in.
    pub(crate) name: String,
    /// Everything known of it; nothing for the host that nobody looked at.
    pub(crate) facts: Facts,
    /// Directories in which images can be made.
    pub(crate) directories: Vec<String>,
    /// Images that exist, with the format of their header.
    pub(crate) images: Vec<(String, Option<String>)>,
    /// Block devices.
    pub(crate) devices: Vec<String>,
    /// Logical volumes that exist: group and volume.
    pub(crate) volumes: Vec<(String, String)>,
    /// Thin volumes that exist: group, volume and pool.
    pub(crate) thin_volumes: Vec<(String, String, Option<String>)>,
    /// Thin pools that exist: group and pool.
    pub(crate) pools: Vec<(String, String)>,
    /// Volume groups.
    pub(crate) groups: Vec<String>,
}

impl Host {
    fn new(name: String, facts: Facts) -> Self {
        // Somewhere that no facts file knows of.
        let mut directories = vec!["/elsewhere".to_owned()];
        directories.extend(facts.mounts.iter().map(|mount| {
            let point = mount.point.trim_end_matches('/');
            format!("{point}/new")
        }));
        directories.extend(facts.dirs.iter().map(|directory| directory.path.clone()));
        let mut images = vec![("/elsewhere/old.img".to_owned(), None)];
        for file in &facts.files {
            if file.kind.is(&FileKind::Regular) || file.image.is_known() {
                let format = file.image.value().and_then(|image| image.format.value());
                images.push((file.path.clone(), format.cloned()));
            }
        }
        let mut host = Host {
            name,
            directories,
            images,
            devices: vec!["/dev/disk/by-id/wwn-0x5000c50015ea71aa".to_owned()],
            volumes: vec![("elsewhere".to_owned(), "old".to_owned())],
            thin_volumes: Vec::new(),
            pools: Vec::new(),
            groups: vec!["elsewhere".to_owned()],
            facts: Facts::default(),
        };
        for device in &facts.blockdevs {
            host.devices.extend(device.paths.iter().cloned());
            let Some(lvm) = device.lvm.value() else {
                continue;
            };
            let (Some(group), Some(volume)) = (lvm.vg.value(), lvm.lv.value()) else {
                continue;
            };
            let name = (group.clone(), volume.clone());
            host.groups.push(name.0.clone());
            if device.kind == BlockKind::LvmThinPool {
                host.pools.push(name);
            } else if device.kind == BlockKind::LvmThin {
                let pool = lvm.pool.value().cloned();
                host.thin_volumes.push((name.0, name.1, pool));
            } else {
                host.volumes.push(name);
            }
        }
        host.groups.sort();
        host.groups.dedup();
        host.facts = facts;
        host
    }

    /// What guests on it may be meant for: itself, nothing that is known, and older programs.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let mut targets = vec![Target::from_facts(&self.facts), Target::default()];
        for text in [
            "qemu=4.2,libvirt=6.0,kernel=5.4",
            "qemu=7.2,libvirt=9.0,kernel=6.1",
            "qemu=10.1,libvirt=11.6,kernel=6.18",
        ] {
            targets.push(text.parse().expect("a target"));
        }
        targets
    }
}

/// A host where each thread with native AIO counts. A plan counts them, and does not weigh whether disks that were
/// asked to have it should share an iothread for that.
const FEW_AIO_SLOTS: &str = "facts/aio-slots-few.json";

/// All facts files of the repository but one, and a host that nobody looked at.
pub(crate) fn all() -> Vec<Host> {
    let mut files = Vec::new();
    for folder in [
        "facts",
        "facts-lab",
        "articles",
        "sysroots",
        "clean",
        "mistakes",
    ] {
        collect(fixtures().join(folder), &mut files);
    }
    files.retain(|file| !file.ends_with(FEW_AIO_SLOTS));
    files.sort();
    let mut hosts = vec![Host::new("nothing is known".to_owned(), Facts::default())];
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let read =
            Facts::from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let name = file.strip_prefix(repository()).unwrap_or(&file);
        hosts.push(Host::new(name.display().to_string(), read.facts));
    }
    hosts
}

fn collect(folder: PathBuf, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_facts = name == "facts.json"
            || name.ends_with(".facts.json")
            || (folder.ends_with("facts") || folder.ends_with("facts-lab"))
                && name.ends_with(".json");
        if is_facts {
            files.push(path);
        } else if path.is_dir() && !folder.ends_with("sysroots") {
            collect(path, files);
        }
    }
}
