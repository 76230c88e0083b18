//! `source-option-ignored`

use vmdisk_fields::{Phrase, Unused, all_of, phrase, unused_members};
use vmdisk_model::{Change, FieldPath, Image, ImageField, Protocol};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A source has a snapshot, timeout, credentials or another option that libvirt silently ignores.
    ///
    /// ## What it reports
    /// Reports options of a network source that its protocol does not have, and `<auth>` on a source that is not a
    /// network source, in XML for libvirt. Only rbd has `<snapshot>` and `<config>`, only iscsi `<initiator>`, only
    /// http and https `query` and `<cookies>`, only these, ftp and ftps `<readahead>` and `<timeout>`, only https and
    /// ftps `<ssl>`, only nbd `<reconnect>`, and only ssh `<knownHosts>`; of `<identity>`, nfs has `user` and `group`,
    /// and ssh the others.
    ///
    /// ## Why it matters
    /// libvirt accepts the definition, but does not pass the option to QEMU. `virsh dumpxml` still shows a snapshot,
    /// configuration file, initiator or login; the others are dropped. The guest opens the current image instead of
    /// the snapshot, and uses QEMU's default timeout.
    ///
    /// ## Use instead
    /// Remove the option. To open a snapshot of an image on gluster or another server, create the snapshot there as
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
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='nbd' name='web1'>
    ///     <host name='store.example'/>
    ///     <timeout seconds='10'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='nbd' name='web1'>
    ///     <host name='store.example'/>
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
    name: "source-option-ignored",
    group: Group::Clarity,
    severity: Severity::Warning,
    libvirt_only: true,
    evidence: &[
        Evidence::measured("define succeeds, and domxml-to-native has nothing for the option; dumpxml shows 3 of 15 options", "virsh of libvirt 9.0 and 11.3, tests/tests/real_libvirt/sources.rs"),
        Evidence::Source("libvirt src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne: the check for rbd passes every network protocol"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, _, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            for (field, what, needs, label) in ignored(image) {
                let at = FieldPath::Image(index, depth, field);
                let finding = report
                    .finding(
                        at,
                        phrase!(
                            "{disk} has {what}, which libvirt only uses for {needs}",
                            what,
                            needs,
                        ),
                    )
                    .label(label);
                match field {
                    // It says which data is meant: the source may be the mistake.
                    ImageField::Snapshot => finding.help(phrase!("remove {field}", field = at)),
                    _ => finding.remedy(Fix::safe([Change::remove(at)])),
                };
            }
        }
    }
}

/// The ignored fields of an image: the option, the sources for which libvirt uses it, and what libvirt does with it.
fn ignored(image: &Image) -> Vec<(ImageField, &'static str, Phrase, &'static str)> {
    const IGNORES: &str = "libvirt does not pass it to QEMU";
    match &image.protocol {
        Protocol::Network(network) => unused_members(network)
            .filter_map(|member| {
                let label = match member.unused {
                    Unused::Dropped => "libvirt drops it from the definition",
                    Unused::Ignored => IGNORES,
                    Unused::Refused | Unused::RefusedAtStart => return None,
                };
                let protocols = member.protocols.iter().map(|it| it.as_str());
                Some((member.field, member.noun, all_of(protocols), label))
            })
            .collect(),
        // libvirt looks up volumes only when the guest starts.
        Protocol::Volume(_) | Protocol::Other(_) => Vec::new(),
        Protocol::File { .. }
        | Protocol::HostDevice { .. }
        | Protocol::Directory { .. }
        | Protocol::Nvme(_)
        | Protocol::VhostVdpa { .. } => {
            let login = image.authentication.as_ref().map(|_| {
                let needs = "network storage".into();
                (ImageField::Authentication, "credentials", needs, IGNORES)
            });
            login.into_iter().collect()
        }
    }
}
