//! `login-refused`

use vmdisk_model::{Authentication, FieldPath, ImageField, NetworkProtocol, Protocol};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// Credentials are given where none can be used, or of another kind than the protocol takes.
    ///
    /// ## What it does
    /// Reports `<auth>` on protocols that do not log in, and secrets of another type than ceph for rbd and iscsi
    /// for iscsi.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='nbd' name='a'>
    ///     <host name='store.example' port='10809'/>
    ///     <auth username='fred'>
    ///       <secret type='iscsi' usage='key'/>
    ///     </auth>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='iscsi' name='iqn.2013-07.com.example:disks/1'>
    ///     <host name='store.example' port='3260'/>
    ///     <auth username='fred'>
    ///       <secret type='iscsi' usage='key'/>
    ///     </auth>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "login-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("authentication is not supported for protocol '…'", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
            Evidence::refused_by_libvirt("invalid secret type '…'", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
            Evidence::refused_by_libvirt("unknown secret type '…'", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Some(authentication) = &image.authentication else {
                continue;
            };
            let Some((what, help)) = wrong(&image.protocol, authentication) else {
                continue;
            };
            report
                .finding(
                    FieldPath::Image(index, depth, ImageField::Authentication),
                    format!("`{}`: {what}", disk.name()),
                )
                .label("these credentials are of no use here")
                .note("libvirt refuses the guest for it")
                .help(help);
        }
    }
}

fn wrong(protocol: &Protocol, authentication: &Authentication) -> Option<(String, &'static str)> {
    use NetworkProtocol::{
        Ftp, Ftps, Gluster, Http, Https, Iscsi, Nbd, Nfs, Rbd, Sheepdog, Ssh, Tftp, Vxhs,
    };
    let protocol = match protocol {
        Protocol::Network(network) => network.protocol,
        // libvirt looks up what a volume is when the guest starts.
        Protocol::Volume(_) => return None,
        Protocol::File { .. }
        | Protocol::HostDevice { .. }
        | Protocol::Directory { .. }
        | Protocol::Nvme(_)
        | Protocol::VhostVdpa { .. }
        | Protocol::Other(_) => {
            // libvirt takes them there, and does nothing with them.
            return None;
        }
    };
    let wanted = match protocol {
        Iscsi => "iscsi",
        Rbd => "ceph",
        // Any kind of secret will do, but it has to say its kind.
        Http | Https | Ftp | Ftps | Ssh => match &authentication.secret {
            Some(secret) if secret.secret_type.is_none() => {
                let what = "the secret does not say of which type it is".to_owned();
                return Some((
                    what,
                    "write <secret type='iscsi' …/>, the type of a name and password",
                ));
            }
            Some(_) | None => return None,
        },
        Nbd | Gluster | Nfs | Sheepdog | Tftp | Vxhs => {
            let what = format!("{protocol} does not log in");
            return Some((what, "leave <auth> out"));
        }
    };
    let given = authentication.secret.as_ref()?.secret_type.as_deref();
    let given = given.unwrap_or("(none)");
    (given != wanted).then(|| {
        let what = format!(
            "{protocol} logs in with a secret of type '{wanted}', and this is of type '{given}'"
        );
        (what, "name a secret of that type")
    })
}
