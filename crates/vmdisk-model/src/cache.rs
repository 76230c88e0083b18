//! Cache modes and their three switches.

use vmdisk_source::words;

words! {
    /// How writes and flushes of the guest meet the host's page cache.
    ///
    /// libvirt: `driver/@cache`. QEMU: `cache=` of `-drive`; with `-blockdev` three switches on two
    /// layers, see [`CacheMode::switches`]. Default: `writeback`, since QEMU 1.2.
    pub enum CacheMode as as_str {
        /// `O_DIRECT`, guest flushes are honoured.
        None = "none",
        /// Page cache, and the host flushes after every write.
        Writethrough = "writethrough",
        /// Page cache, guest flushes are honoured.
        Writeback = "writeback",
        /// `O_DIRECT`, and the host flushes after every write.
        Directsync = "directsync",
        /// Page cache, and guest flushes are thrown away.
        Unsafe = "unsafe",
    }
}

/// The three switches that one [`CacheMode`] sets.
///
/// Source: libvirt `src/qemu/qemu_domain.c`, `qemuDomainDiskCachemodeFlags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheSwitches {
    /// Frontend, QEMU `write-cache`: the guest sees a volatile write cache and sends flushes.
    pub write_cache: bool,
    /// Backend, QEMU `cache.direct`: the file is opened with `O_DIRECT`.
    pub direct: bool,
    /// Backend, QEMU `cache.no-flush`: flushes of the guest are dropped.
    pub no_flush: bool,
}

impl CacheMode {
    /// The switches that the mode sets on the two layers.
    pub const fn switches(self) -> CacheSwitches {
        let (write_cache, direct, no_flush) = match self {
            CacheMode::None => (true, true, false),
            CacheMode::Writethrough => (false, false, false),
            CacheMode::Writeback => (true, false, false),
            CacheMode::Directsync => (false, true, false),
            CacheMode::Unsafe => (true, false, true),
        };
        CacheSwitches {
            write_cache,
            direct,
            no_flush,
        }
    }

    /// The mode that sets exactly these switches, if one does.
    pub fn from_switches(switches: CacheSwitches) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|mode| mode.switches() == switches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_is_found_again_by_its_switches() {
        for mode in CacheMode::ALL {
            assert_eq!(CacheMode::from_switches(mode.switches()), Some(*mode));
        }
    }
}
