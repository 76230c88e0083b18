//! How a drive is attached: inside the host, removable, or on the other side of a network, a controller or a hypervisor.

use crate::blockdev::{BlockDevice, BlockKind};
use crate::fact::Fact;
use crate::index::HostIndex;

use super::media::is_virtual;

/// How a drive is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// In the host, and only there.
    Inside,
    /// Removable, or on USB.
    Removable,
    /// A volume of a RAID controller, which hides its drives.
    Controller,
    /// A volume of the hypervisor under this host.
    Hypervisor,
    /// Storage on a network, which other hosts may see too.
    Network,
}

/// Drivers of host adapters whose drives are not just drives in this host.
const HOSTS: &[(&str, Attachment)] = &[
    ("usb-storage", Attachment::Removable),
    ("uas", Attachment::Removable),
    ("megaraid", Attachment::Controller),
    ("aacraid", Attachment::Controller),
    ("hpsa", Attachment::Controller),
    ("smartpqi", Attachment::Controller),
    ("arcmsr", Attachment::Controller),
    ("3w-", Attachment::Controller),
    ("virtio_scsi", Attachment::Hypervisor),
    ("vmw_pvscsi", Attachment::Hypervisor),
    ("storvsc", Attachment::Hypervisor),
    ("hv_storvsc", Attachment::Hypervisor),
    ("xen", Attachment::Hypervisor),
    ("iscsi", Attachment::Network),
    ("iser", Attachment::Network),
    ("ib_iser", Attachment::Network),
    ("bnx2", Attachment::Network),
    ("be2iscsi", Attachment::Network),
    ("cxgb", Attachment::Network),
    ("qedi", Attachment::Network),
    ("qedf", Attachment::Network),
    ("qla", Attachment::Network),
    ("lpfc", Attachment::Network),
    ("efct", Attachment::Network),
    ("bfa", Attachment::Network),
    ("csiostor", Attachment::Network),
    ("fnic", Attachment::Network),
    ("fcoe", Attachment::Network),
    ("libfc", Attachment::Network),
    ("zfcp", Attachment::Network),
    ("ibmvfc", Attachment::Network),
];

impl Attachment {
    /// How a drive, the last device of a stack, is attached.
    ///
    /// # Errors
    /// Fails with the reason if the facts do not show it.
    pub fn of(drive: &BlockDevice) -> Result<Self, String> {
        let by_id = |bus: &str| {
            let names = drive.by_id.value().into_iter().flatten();
            let mut names = names.chain(&drive.paths);
            names.any(|name| name.starts_with(&format!("/dev/disk/by-id/{bus}-")))
        };
        if drive.removable.is_true() || by_id("usb") {
            return Ok(Attachment::Removable);
        }
        let unknown = |fact: &str| Err(format!("{fact} of {} was not collected", drive.name()));
        match &drive.kind {
            kind if is_on_network(kind) => Ok(Attachment::Network),
            BlockKind::Nvme => {
                let transport = drive.nvme.as_ref().and_then(|nvme| nvme.transport.as_str());
                match transport {
                    Fact::Known("tcp" | "rdma" | "fc") => Ok(Attachment::Network),
                    Fact::Known("pcie") => Ok(Attachment::Inside),
                    _ => unknown("the transport"),
                }
            }
            BlockKind::Disk if drive.paths.iter().any(|path| is_virtual(path)) => {
                Ok(Attachment::Hypervisor)
            }
            BlockKind::Disk => match drive.scsi.as_ref().and_then(|scsi| scsi.host.as_str()) {
                Fact::Known(host) => {
                    let row = HOSTS.iter().find(|(driver, _)| host.starts_with(driver));
                    Ok(row.map_or(Attachment::Inside, |(_, attachment)| *attachment))
                }
                _ if by_id("ata") => Ok(Attachment::Inside),
                _ => unknown("the host adapter"),
            },
            _ => Err(format!(
                "the facts do not show how {} is attached",
                drive.name()
            )),
        }
    }

    /// Whether a drive is removable or on USB, of which all names in `/dev/disk/by-id` tell; `None` if the facts do not
    /// show it.
    pub fn is_removable(drive: &BlockDevice) -> Option<bool> {
        let is_named = drive.by_id.value().is_some_and(|names| !names.is_empty());
        match Attachment::of(drive) {
            Ok(attachment) => Some(attachment == Attachment::Removable),
            Err(_) => (drive.removable.is_false() && is_named).then_some(false),
        }
    }
}

/// True for devices whose data is elsewhere, whatever is below them here.
pub(super) const fn is_on_network(kind: &BlockKind) -> bool {
    matches!(
        kind,
        BlockKind::Multipath | BlockKind::Rbd | BlockKind::Nbd | BlockKind::Drbd
    )
}

impl<'a> HostIndex<'a> {
    /// The drives under a device, as they are attached: of several paths to one drive, the device that joins them.
    pub fn attached_under(&self, device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
        let walk = self.walk_down(device);
        let on_network = walk.iter().find(|it| is_on_network(&it.kind));
        match on_network {
            Some(device) => vec![device],
            None => self.leaves(device),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Facts;

    type Row = (&'static str, Result<Attachment, ()>, Option<bool>);

    fn check(rows: &[Row]) {
        for (device, expected, is_removable) in rows {
            let text = format!("schema_version: '1.0'\nblockdevs: [{{id: b, {device}}}]");
            let facts = Facts::parse(&text).unwrap().facts;
            let drive = &facts.blockdevs[0];
            let attachment = Attachment::of(drive).map_err(|_| ());
            assert_eq!(attachment, *expected, "{device}");
            assert_eq!(Attachment::is_removable(drive), *is_removable, "{device}");
        }
    }

    #[test]
    fn a_disk_is_attached_as_its_driver_and_its_names_say() {
        use Attachment::{Controller, Hypervisor, Inside, Network, Removable};
        let no = Err(());
        check(&[
            ("kind: disk, scsi: {host: ahci}", Ok(Inside), Some(false)),
            ("kind: disk, scsi: {host: mpt3sas}", Ok(Inside), Some(false)),
            (
                "kind: disk, scsi: {host: ahci}, removable: true",
                Ok(Removable),
                Some(true),
            ),
            ("kind: disk, scsi: {host: uas}", Ok(Removable), Some(true)),
            (
                "kind: disk, by_id: [/dev/disk/by-id/usb-A]",
                Ok(Removable),
                Some(true),
            ),
            (
                "kind: disk, paths: [/dev/disk/by-id/usb-A]",
                Ok(Removable),
                Some(true),
            ),
            (
                "kind: disk, scsi: {host: megaraid_sas}",
                Ok(Controller),
                Some(false),
            ),
            (
                "kind: disk, scsi: {host: virtio_scsi}",
                Ok(Hypervisor),
                Some(false),
            ),
            ("kind: disk, paths: [/dev/vda]", Ok(Hypervisor), Some(false)),
            (
                "kind: disk, scsi: {host: iscsi_tcp}",
                Ok(Network),
                Some(false),
            ),
            (
                "kind: disk, scsi: {host: qla2xxx}",
                Ok(Network),
                Some(false),
            ),
            (
                "kind: disk, by_id: [/dev/disk/by-id/ata-A]",
                Ok(Inside),
                Some(false),
            ),
            ("kind: disk", no, None),
            ("kind: disk, removable: false", no, None),
            ("kind: disk, removable: false, by_id: []", no, None),
            (
                "kind: disk, removable: false, by_id: [/dev/disk/by-id/wwn-1]",
                no,
                Some(false),
            ),
            ("kind: disk, by_id: [/dev/disk/by-id/wwn-1]", no, None),
        ]);
    }

    #[test]
    fn other_drives_are_attached_as_their_kind_and_transport_say() {
        use Attachment::{Inside, Network};
        let no = Err(());
        check(&[
            (
                "kind: nvme, nvme: {transport: pcie}",
                Ok(Inside),
                Some(false),
            ),
            (
                "kind: nvme, nvme: {transport: tcp}",
                Ok(Network),
                Some(false),
            ),
            (
                "kind: nvme, nvme: {transport: rdma}",
                Ok(Network),
                Some(false),
            ),
            (
                "kind: nvme, nvme: {transport: fc}",
                Ok(Network),
                Some(false),
            ),
            ("kind: nvme", no, None),
            ("kind: drbd", Ok(Network), Some(false)),
            ("kind: loop", no, None),
        ]);
    }

    #[test]
    fn several_paths_are_one_drive() {
        let facts = "
schema_version: '1.0'
blockdevs:
- {id: a, kind: disk}
- {id: b, kind: disk}
- {id: m, kind: multipath, slaves: [a, b]}
- {id: p, kind: multipath-partition, slaves: [m]}
- {id: md, kind: md, slaves: [a, b]}
";
        let facts = Facts::parse(facts).unwrap().facts;
        let index = HostIndex::new(&facts);
        let under = |id| {
            let found = index.attached_under(index.device(id).unwrap());
            found.iter().map(|it| it.id.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(under("p"), ["m"]);
        assert_eq!(under("md"), ["a", "b"]);
    }
}
