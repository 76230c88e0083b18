//! Choices for a network disk, which the host's facts do not cover.

use vmdisk_model::{CacheMode, Discard, FieldPath, Format, Image, ImageField, NetworkProtocol};

use super::choice::Chosen;
use super::planner::Planner;
use crate::spec::{BackendSpec, DiskSpec, MediaSpec, NetworkSpec, SpecPath};

impl Planner<'_> {
    /// The image, with its format.
    pub(crate) fn network_image(&mut self, index: usize, network: &NetworkSpec) -> Image {
        let format = self.unprobed_format(index, network.format);
        network.to_image(format)
    }

    /// The requested format, or raw.
    pub(crate) fn unprobed_format(&mut self, index: usize, asked: Option<Format>) -> Format {
        let at = FieldPath::Image(index, 0, ImageField::Format);
        let format = self.decide(at, "format", asked, |_| {
            let reason = "the default, because the guest could forge a probed format";
            Some(Chosen::by_default(Format::Raw, reason))
        });
        format.unwrap_or(Format::Raw)
    }

    /// Refuses `io` for storage that QEMU does not open as a file or a block device.
    pub(crate) fn refuse_aio_elsewhere(&mut self, at: &SpecPath, spec: &DiskSpec) {
        let is_elsewhere = matches!(
            spec.backend,
            BackendSpec::Nvme(_) | BackendSpec::VhostVdpa(_) | BackendSpec::Directory(_)
        );
        if is_elsewhere && spec.io.is_some() {
            let message = format!(
                "`io` only affects files and block devices, and this is `{}`",
                spec.backend.kind()
            );
            self.refuse(at.key("io"), message).help = Some("remove `io`".to_owned());
        }
        let is_directory = matches!(spec.backend, BackendSpec::Directory(_));
        if is_directory && spec.readonly == Some(false) && spec.media() != MediaSpec::Cdrom {
            self.refuse(at.key("readonly"), "libvirt shows a directory read-only")
                .help = Some("remove `readonly`, or use `readonly: true`".to_owned());
        }
    }

    /// Refuses what QEMU's own clients do not have.
    pub(crate) fn refuse_on_network(&mut self, at: &SpecPath, spec: &DiskSpec) {
        let BackendSpec::Network(network) = &spec.backend else {
            return;
        };
        if spec.io.is_some() {
            let message = "QEMU connects to the server itself; `io` only affects files and devices";
            self.refuse(at.key("io"), message).help = Some("remove `io`".to_owned());
        }
        let is_cdrom = spec.media == Some(MediaSpec::Cdrom);
        if let Some(why) = network.only_read_because()
            && spec.readonly == Some(false)
            && !is_cdrom
        {
            self.refuse(at.key("readonly"), why).help =
                Some("remove `readonly`, or use `readonly: true`".to_owned());
        }
    }
}

/// The cache mode of a network disk: no mode uses the page cache of this host.
///
/// QEMU passes it to librbd as `rbd_cache` and to glusterfs as `O_DIRECT`. With a direct mode its iscsi client queries
/// the allocation status from the target each time instead of caching it.
pub(crate) fn cache(protocol: NetworkProtocol) -> Chosen<CacheMode> {
    let (mode, reason) = match protocol {
        NetworkProtocol::Rbd => (
            CacheMode::Writeback,
            "librbd has its own cache, which `none` disables, and writes it when the guest flushes",
        ),
        _ => (
            CacheMode::None,
            "the host's page cache is not used, so QEMU's client caches nothing either",
        ),
    };
    Chosen::by_default(mode, reason)
}

/// What becomes of discards of a raw disk behind a server.
pub(crate) fn discard(protocol: NetworkProtocol) -> Chosen<Discard> {
    let (mode, reason) = match protocol {
        NetworkProtocol::Rbd => (Discard::Unmap, "an rbd image frees what the guest deletes"),
        NetworkProtocol::Nbd | NetworkProtocol::Iscsi | NetworkProtocol::Gluster => (
            Discard::Unmap,
            "the server announces its support of discards, and frees what it can",
        ),
        _ => (
            Discard::Ignore,
            "QEMU does not send discards to such a server",
        ),
    };
    Chosen::by_default(mode, reason)
}
