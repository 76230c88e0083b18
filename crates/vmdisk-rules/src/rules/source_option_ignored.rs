//! `source-option-ignored`

use vmdisk_fields::{DiskName, phrase};
use vmdisk_model::{FieldPath, Image, ImageField, NetworkProtocol, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A source has a snapshot, configuration file or credentials that libvirt silently ignores.
    ///
    /// ## What it reports
    /// Reports `<snapshot>` and `<config>` on a network source other than rbd, and `<auth>` on a source that is not a
    /// network source, in XML for libvirt.
    ///
    /// ## Why it matters
    /// libvirt accepts the definition and shows the element in `virsh dumpxml`, but does not pass it to QEMU. The
    /// guest opens the current image instead of the snapshot.
    ///
    /// ## Use instead
    /// Remove the element. To open a snapshot of an image on gluster or another server, create the snapshot there as
    /// an image of its own, and use that as the source.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='gluster' name='volume/web1'>
    ///     <host name='store.example'/>
    ///     <snapshot name='monday'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='rbd' name='pool/web1'>
    ///     <snapshot name='monday'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "source-option-ignored",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "define succeeds and dumpxml shows the element, but domxml-to-native has nothing for it",
                how: "virsh of libvirt 9.0 and 11.3, tests/tests/integration/silent.rs",
            },
            Evidence::Source("libvirt src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne: the check for rbd passes every network protocol"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    if !context.is_for_libvirt() {
        return;
    }
    for (index, _, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            for (field, what, needs) in ignored(image) {
                let at = FieldPath::Image(index, depth, field);
                report
                    .finding(
                        at,
                        phrase!(
                            "{disk} has {what}, which libvirt only uses for {needs}",
                            disk = DiskName(index),
                            what,
                            needs,
                        ),
                    )
                    .label("libvirt does not pass it to QEMU")
                    .help(phrase!(
                        "remove {field}, or move the image to {needs}",
                        field = at,
                        needs
                    ));
            }
        }
    }
}

/// The ignored fields of an image: the option, and the sources for which libvirt uses it.
fn ignored(image: &Image) -> impl Iterator<Item = (ImageField, &'static str, &'static str)> {
    let (snapshot, config, login) = match &image.protocol {
        Protocol::Network(network) => {
            let is_rbd = network.protocol == NetworkProtocol::Rbd;
            let is_ignored = |text: &Option<String>| !is_rbd && text.is_some();
            let snapshot = is_ignored(&network.snapshot);
            (snapshot, is_ignored(&network.config_file), false)
        }
        Protocol::File { .. }
        | Protocol::HostDevice { .. }
        | Protocol::Directory { .. }
        | Protocol::Nvme(_)
        | Protocol::VhostVdpa { .. } => (false, false, image.authentication.is_some()),
        // libvirt looks up volumes only when the guest starts.
        Protocol::Volume(_) | Protocol::Other(_) => (false, false, false),
    };
    [
        (snapshot, ImageField::Snapshot, "a snapshot", "rbd"),
        (
            config,
            ImageField::ConfigFile,
            "a configuration file",
            "rbd",
        ),
        (
            login,
            ImageField::Authentication,
            "credentials",
            "network storage",
        ),
    ]
    .into_iter()
    .filter(|(is_ignored, ..)| *is_ignored)
    .map(|(_, field, what, needs)| (field, what, needs))
}
