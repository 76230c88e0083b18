//! `encryption-refused`

use vmdisk_facts::Version;
use vmdisk_model::{
    Encryption, EncryptionEngine, EncryptionFormat, FieldPath, Format, Image, ImageField,
    NetworkProtocol, Protocol,
};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// Encryption is asked for in a way that neither QEMU nor the Ceph library offers.
    ///
    /// ## What it does
    /// Reports a cipher or initial vectors on a disk of a guest, the old encryption of qcow and qcow2, encryption
    /// on formats other than raw and qcow2, luks2 and luks-any with QEMU, more or less than one secret with QEMU,
    /// and librbd on anything but rbd.
    ///
    /// ## Why it matters
    /// Cipher and vectors are in the header of the image and are chosen when it is made. libvirt refuses the guest.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='vmdk'/>
    ///   <source file='/srv/a.vmdk'>
    ///     <encryption format='luks'>
    ///       <secret type='passphrase' usage='disk'/>
    ///     </encryption>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/a.qcow2'>
    ///     <encryption format='luks'>
    ///       <secret type='passphrase' usage='disk'/>
    ///     </encryption>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "encryption-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("supplying <cipher> for domain disk definition is unnecessary", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
            Evidence::refused_by_libvirt("old qcow/qcow2 encryption is not supported", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("encryption is supported only with 'raw' and 'qcow2' image format", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("luks2 is currently not supported by the qemu encryption engine", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("'luks2' is currently not supported by the qemu encryption engine", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("'luks-any' is currently not supported by the qemu encryption engine", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("qemu encryption engine expects only a single secret", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
            Evidence::refused_by_libvirt("librbd encryption is supported only with RBD backed disks", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    // 9.0 takes several secrets, and uses the first.
    let takes_more_secrets = context.libvirt_is_before(Version(9, 1, 0)) == Some(true);
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Some(encryption) = &image.encryption else {
                continue;
            };
            let Some((what, help)) = wrong(image, encryption, takes_more_secrets) else {
                continue;
            };
            report
                .finding(
                    FieldPath::Image(index, depth, ImageField::Encryption),
                    format!("`{}`: {what}", disk.name()),
                )
                .label("nothing decrypts this")
                .note("libvirt refuses the guest for it")
                .help(help);
        }
    }
}

/// The first thing wrong, and what to write instead.
fn wrong(
    image: &Image,
    encryption: &Encryption,
    takes_more_secrets: bool,
) -> Option<(&'static str, &'static str)> {
    let Encryption {
        format,
        engine,
        secrets,
        cipher,
        ivgen: _,
    } = encryption;
    if *format == Some(EncryptionFormat::Luks) && cipher.is_some() {
        return Some((
            "the cipher is in the image's header and cannot be chosen here",
            "leave <cipher> and <ivgen> out",
        ));
    }
    match engine.unwrap_or(EncryptionEngine::Qemu) {
        EncryptionEngine::Librbd => {
            let is_rbd = matches!(
                &image.protocol,
                Protocol::Network(network) if network.protocol == NetworkProtocol::Rbd
            );
            (!is_rbd && !matches!(image.protocol, Protocol::Network(_))).then_some((
                "the Ceph library decrypts rbd images alone",
                "leave engine out",
            ))
        }
        EncryptionEngine::Qemu => {
            if matches!(
                format,
                Some(EncryptionFormat::Qcow | EncryptionFormat::Default)
            ) {
                return Some((
                    "the old encryption of qcow and qcow2 is broken, and QEMU runs no guest on it",
                    "convert the image to LUKS: qemu-img convert -o encrypt.format=luks,encrypt.key-secret=…",
                ));
            }
            if matches!(
                format,
                Some(EncryptionFormat::Luks2 | EncryptionFormat::LuksAny)
            ) {
                return Some((
                    "QEMU decrypts version 1 of LUKS alone",
                    "write format='luks'; engine='librbd' knows the others on rbd",
                ));
            }
            if !matches!(
                image.format,
                Some(Format::Raw | Format::Qcow2 | Format::Luks) | None
            ) {
                return Some((
                    "QEMU decrypts raw and qcow2 images alone",
                    "convert the image to qcow2",
                ));
            }
            (secrets.len() > 1 && !takes_more_secrets)
                .then_some(("QEMU takes one secret", "leave one <secret> in place"))
        }
    }
}
