//! `login-refused`

use vmdisk_fields::{Phrase, image, phrase};
use vmdisk_model::{Authentication, FieldPath, ImageField, NetworkProtocol, Protocol};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// Credentials are configured for a protocol that does not use them, or with the wrong type of secret.
    ///
    /// ## What it reports
    /// Reports `<auth>` for protocols without authentication; a secret of another type than ceph for rbd, or than iscsi
    /// for iscsi; and a secret without a type for http, https, ftp, ftps and ssh.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest.
    ///
    /// ## Use instead
    /// Remove `<auth>` for nbd, gluster, nfs, sheepdog, tftp and vxhs; restrict access on the server, or with TLS where
    /// the protocol supports it. For the other protocols, use a secret of the right type.
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
    name: "login-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("authentication is not supported for protocol '…'", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
        Evidence::refused_by_libvirt("invalid secret type '…'", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
        Evidence::refused_by_libvirt("unknown secret type '…'", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, _, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Some(authentication) = &image.authentication else {
                continue;
            };
            let at = FieldPath::Image(index, depth, ImageField::Authentication);
            let Some((what, help)) = report_refused(&image.protocol, authentication, at) else {
                continue;
            };
            report
                .finding(at, phrase!("{disk} {what}", what))
                .label("not usable here")
                .help(help);
        }
    }
}

/// The mistake in the credentials, and the remedy.
fn report_refused(
    protocol: &Protocol,
    authentication: &Authentication,
    at: FieldPath,
) -> Option<(String, Phrase)> {
    // libvirt looks up volumes only when the guest starts, and ignores credentials of other sources.
    let Protocol::Network(network) = protocol else {
        return None;
    };
    let protocol = network.protocol;
    if !image(ImageField::Authentication).is_of(protocol) {
        return Some((
            format!("has credentials, but {protocol} does not authenticate"),
            phrase!("remove {credentials}", credentials = at),
        ));
    }
    let needed = match protocol {
        NetworkProtocol::Iscsi => "iscsi",
        NetworkProtocol::Rbd => "ceph",
        // Any type works, but it must be set.
        _ => {
            let secret = authentication.secret.as_ref()?;
            return secret.secret_type.is_none().then(|| {
                (
                    "has a secret without a type".to_owned(),
                    "use the secret type iscsi, which holds a name and password".into(),
                )
            });
        }
    };
    let secret_type = authentication.secret.as_ref()?.secret_type.as_deref();
    let secret_type = secret_type.unwrap_or("(none)");
    (secret_type != needed).then(|| {
        (
            format!("has a secret of type {secret_type}, but {protocol} needs type {needed}"),
            phrase!("use a secret of type {needed}", needed),
        )
    })
}
