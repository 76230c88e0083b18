//! What the collector is asked for.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// What to collect.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where the system is: `/`, or the directory a system was recorded into. Asked for nothing but [`Group::Core`], a
    /// recorded system gives what it was asked for when it was recorded, and says when that was.
    pub root: PathBuf,
    /// Images, devices and directories in question, as absolute paths.
    pub paths: Vec<PathBuf>,
    /// Those of the images in question whose backing and data files are to be looked at as well, and what these stand on;
    /// of any other image nothing that its header names is touched.
    pub chains: Vec<PathBuf>,
    /// A directory to record the system into, so that the same facts can be collected from there later and elsewhere;
    /// only the running system can be recorded. The files that facts are read from are copied as they are, so that more is
    /// in it than in the facts.
    pub record: Option<PathBuf>,
    /// The groups of facts wanted; those that start a program are not among the default.
    pub groups: BTreeSet<Group>,
    /// A directory to try direct I/O in, with a nameless file of 64 KiB that is gone afterwards; the only writing there is.
    pub probe_direct_io: Option<PathBuf>,
    /// The time to write into the facts, RFC 3339 in UTC; the collector itself looks at no clock.
    pub collected_at: String,
    /// How long to wait for one path, or one program, before its facts become unknown.
    pub patience: Duration,
}

impl Request {
    /// Asks the running system for its core facts and for no path.
    pub fn new(collected_at: impl Into<String>) -> Self {
        Self {
            root: PathBuf::from("/"),
            paths: Vec::new(),
            chains: Vec::new(),
            record: None,
            groups: BTreeSet::from([Group::Core]),
            probe_direct_io: None,
            collected_at: collected_at.into(),
            patience: Duration::from_secs(2),
        }
    }
}

/// A group of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Everything that files and the kernel tell: the host, and the paths in question.
    Core,
    /// What LVM tells of thin pools, and how it is set up; starts `lvs` and `lvmconfig`, which need root.
    Lvm,
    /// What the tables of the device mapper tell of encryption, thin pools and multipath; starts `dmsetup`, which needs root.
    Dm,
    /// Which formats NVMe namespaces could have; starts `nvme`, which needs root.
    Nvme,
    /// The properties of datasets and volumes of ZFS; starts `zfs`.
    Zfs,
    /// The exact versions of QEMU and what it can do; starts each, without a guest, and asks it.
    Programs,
    /// Whether a guest runs with KVM; starts QEMU with a tiny one, which is killed after ten seconds.
    Kvm,
}

impl Group {
    /// Every group, in the order they are told of.
    pub const ALL: [Self; 7] = [
        Self::Core,
        Self::Lvm,
        Self::Dm,
        Self::Nvme,
        Self::Zfs,
        Self::Programs,
        Self::Kvm,
    ];

    /// The name in the facts and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Lvm => "lvm",
            Self::Dm => "dm",
            Self::Nvme => "nvme",
            Self::Zfs => "zfs",
            Self::Programs => "programs",
            Self::Kvm => "kvm",
        }
    }

    /// The group of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name() == name)
    }
}
