//! `source-option-ignored`

use vmdisk_model::{FieldPath, Image, ImageField, NetworkProtocol, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, TakenBy, declare_rule};

declare_rule! {
    /// Something is said of a source that libvirt keeps and does nothing with.
    ///
    /// ## What it does
    /// Reports a snapshot or a configuration file of a source on the network that is not on rbd, and `<auth>` on a
    /// source that is not on the network, in XML for libvirt.
    ///
    /// ## Why it matters
    /// libvirt takes the definition, shows it in `dumpxml`, and hands none of it to QEMU: the guest opens the image
    /// as it is now and not the snapshot of it.
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
                figures: "define succeeds, dumpxml has it, and domxml-to-native has not",
                how: "virsh of libvirt 9.0 and 11.3, tests/tests/integration/silent.rs",
            },
            Evidence::Source("libvirt src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne: the check for rbd passes every network protocol"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    if context.taken_by == TakenBy::Qemu {
        return;
    }
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            for (field, what, needs) in ignored(image) {
                report
                    .finding(
                        FieldPath::Image(index, depth, field),
                        format!("`{}` has {what}, which counts only on {needs}", disk.name()),
                    )
                    .label("libvirt does nothing with it")
                    .help("leave it out, or put the image where it counts");
            }
        }
    }
}

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
        // What a volume is libvirt finds out when the guest starts.
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
        (login, ImageField::Authentication, "a login", "the network"),
    ]
    .into_iter()
    .filter(|(is_ignored, ..)| *is_ignored)
    .map(|(_, field, what, needs)| (field, what, needs))
}
