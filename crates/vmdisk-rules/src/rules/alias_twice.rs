//! `alias-twice`

use std::collections::HashMap;

use vmdisk_fields::{DiskName, Piece, phrase, quoted};
use vmdisk_model::{ControllerField, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// Two devices have the same alias.
    ///
    /// ## What it reports
    /// Reports disks and disk controllers whose alias another device already has. Only aliases that begin with `ua-`
    /// are checked, because libvirt replaces all others with its own.
    ///
    /// ## Why it matters
    /// libvirt uses the alias as the device id in QEMU, which must be unique. It refuses to define the guest with
    /// `non unique alias detected`. This usually happens when a disk's XML is copied.
    ///
    /// ## Use instead
    /// Give each device its own alias with the prefix `ua-`, or remove `<alias>`: libvirt then chooses one.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <alias name='ua-data'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/b.img'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///       <alias name='ua-data'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <alias name='virtio-disk0'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/b.img'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///       <alias name='virtio-disk0'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "alias-twice",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("non unique alias detected: …", "src/conf/domain_validate.c, virDomainDeviceDefValidateAliasesIterator"),
    ],
    check: Model(check),
}

/// The beginning of the aliases that libvirt keeps.
pub(super) const PREFIX: &str = "ua-";

/// True if libvirt keeps an alias.
pub(super) fn is_kept(alias: &str) -> bool {
    alias.starts_with(PREFIX) && is_plain(alias)
}

/// True for a text of characters that libvirt keeps in an alias.
pub(super) fn is_plain(alias: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !alias.is_empty() && alias.bytes().all(is_plain)
}

/// The aliases of controllers and disks, with their places and the names of their devices.
pub(super) fn aliases<'a>(
    context: &'a Context<'_>,
) -> impl Iterator<Item = (FieldPath, &'a str, Piece)> {
    let controllers = context.domain.controllers.iter().enumerate();
    let of_controllers = controllers.filter_map(|(nth, controller)| {
        let at = FieldPath::Controller(nth, ControllerField::Alias);
        Some((
            at,
            controller.alias.as_deref()?,
            Piece::from("a controller"),
        ))
    });
    let of_disks = context.disks().filter_map(|(index, disk)| {
        let at = FieldPath::Disk(index, DiskField::Alias);
        Some((at, disk.frontend.alias.as_deref()?, DiskName(index).into()))
    });
    of_controllers.chain(of_disks)
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut first: HashMap<&str, (FieldPath, Piece)> = HashMap::new();
    for (at, alias, owner) in aliases(context).filter(|(_, alias, _)| is_kept(alias)) {
        let Some((other, of)) = first.get(alias) else {
            first.insert(alias, (at, owner));
            continue;
        };
        report
            .finding(
                at,
                phrase!(
                    "{owner} has the alias {alias} of {other}",
                    owner,
                    alias = quoted(alias.to_owned()),
                    other = of.clone()
                ),
            )
            .label("already in use")
            .related(*other, "used here")
            .help(phrase!(
                "use another name after `ua-`, or remove {alias}",
                alias = at
            ));
    }
}
