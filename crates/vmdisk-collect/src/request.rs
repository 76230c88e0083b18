//! Requests to the collector.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use vmdisk_facts::FactsNeeded;

/// A request for facts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The root of the system: `/`, or a recorded system. If only [`FactGroup::Core`] is requested, a recorded system repeats
    /// the request of its recording, with its time.
    pub root: PathBuf,
    /// Requested images, devices and directories, as absolute paths.
    pub paths: Vec<PathBuf>,
    /// Requested images whose backing and data files are inspected too, with their storage; files named in other images'
    /// headers are not touched. Use [`Request::of`]: the guest of a raw image writes its header, and if such an image is in this
    /// list, the guest chooses which files of the host are opened.
    pub chains: Vec<PathBuf>,
    /// Directory for a recording, from which the same facts can be collected later and elsewhere;
    /// only the running system can be recorded. Files that facts come from are copied unchanged, so the recording contains
    /// more than the facts.
    pub record: Option<PathBuf>,
    /// The requested groups of facts; groups that start programs are not in the default.
    pub groups: BTreeSet<FactGroup>,
    /// Directory for the direct I/O trial, which uses an unnamed file of 64 KiB; nothing else is written.
    pub probe_direct_io: Option<PathBuf>,
    /// The time of collection for the facts, RFC 3339 in UTC; the collector reads no clock.
    pub collected_at: String,
    /// Timeout for a path or a program, after which its facts become unknown.
    pub timeout: Duration,
}

impl Request {
    /// Requests the core facts of the running system, without paths.
    pub fn new(collected_at: impl Into<String>) -> Self {
        Self {
            root: PathBuf::from("/"),
            paths: Vec::new(),
            chains: Vec::new(),
            record: None,
            groups: BTreeSet::from([FactGroup::Core]),
            probe_direct_io: None,
            collected_at: collected_at.into(),
            timeout: Duration::from_secs(2),
        }
    }

    /// Requests the facts that configurations need, and the core facts of the running system. QEMU is started, without a guest,
    /// only for a configuration with a block driver that it may lack. Relative paths, which have no
    /// directory here, are left out.
    pub fn of(needed: &FactsNeeded, collected_at: impl Into<String>) -> Self {
        let absolute = |paths: &BTreeSet<String>| {
            let paths = paths.iter().map(PathBuf::from);
            paths.filter(|path| path.is_absolute()).collect()
        };
        let mut request = Self {
            paths: absolute(&needed.paths),
            chains: absolute(&needed.chains),
            ..Self::new(collected_at)
        };
        if needed.block_drivers {
            request.groups.insert(FactGroup::Programs);
        }
        if needed.places {
            request.groups.insert(FactGroup::Places);
        }
        request
    }
}

vmdisk_source::words! {
    /// A group of facts.
    pub enum FactGroup as name {
        /// Facts in files and from the kernel: the host, and the requested paths.
        Core = "core",
        /// The places where disks can live: directories of libvirt's storage pools, mounted file systems, disks and volumes.
        Places = "places",
        /// LVM's thin pools and settings; starts `lvs` and `lvmconfig`, which need root.
        Lvm = "lvm",
        /// The device mapper's tables: encryption, thin pools and multipath; starts `dmsetup`, which needs root.
        Dm = "dm",
        /// The supported formats of NVMe namespaces; starts `nvme`, which needs root.
        Nvme = "nvme",
        /// The properties of ZFS datasets and volumes; starts `zfs`.
        Zfs = "zfs",
        /// The exact versions and capabilities of QEMU programs; starts each of them without a guest.
        Programs = "programs",
        /// A trial guest with KVM; starts QEMU, which is killed after ten seconds.
        Kvm = "kvm",
    }
}
