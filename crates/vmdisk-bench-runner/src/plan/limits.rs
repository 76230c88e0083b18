//! Configurations that a plan leaves out because of the host or the command line.

use std::collections::BTreeSet;
use std::path::PathBuf;

use vmdisk_model::Bytes;

/// Limits of the host and permissions of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Processors of the host; a guest with more vCPUs would measure the scheduler.
    pub processors: u32,
    /// The prepared device, with its serial number.
    pub device: Option<(PathBuf, String)>,
    /// The volume group named by the user.
    pub group: Option<String>,
    /// The vhost-user-blk socket named by the user, whose disk is overwritten.
    pub socket: Option<PathBuf>,
    /// Huge pages that the host has free, in bytes.
    pub huge_page_bytes: u64,
    /// Processors on which programs of the run may run.
    pub allowed_processors: BTreeSet<u32>,
    /// NUMA nodes of the host that have processors and memory.
    pub numa_nodes: BTreeSet<u32>,
}

/// Memory of a guest that only runs a benchmark.
pub(crate) const GUEST_MEMORY: Bytes = Bytes(512 << 20);

/// Why a combination of factors is not a configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoMeaning {
    /// A value is wrong.
    Mistake(String),
    /// It is impossible, or not available here.
    Impossible(String),
}

impl From<String> for NoMeaning {
    fn from(mistake: String) -> Self {
        NoMeaning::Mistake(mistake)
    }
}
