//! `encryption-refused`

use vmdisk_facts::Capability;
use vmdisk_fields::phrase;
use vmdisk_model::{
    Encryption, EncryptionEngine, EncryptionFormat, FieldPath, Format, Image, ImageField, Protocol,
};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The configured encryption is not supported by QEMU or librbd.
    ///
    /// ## What it reports
    /// Reports a cipher or initial vector generator with LUKS; the legacy encryption of qcow and qcow2; encryption of
    /// images other than raw and qcow2; luks2 and luks-any with QEMU's engine; more than one secret with QEMU's engine;
    /// the engine librbd on a source that is not on the network; and encryption without a `<secret>`.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest. The cipher is recorded in the image header when the image is created, and cannot be
    /// chosen later. A guest without the secret can be defined, but not started: for a raw image libvirt says
    /// `missing secret info for 'luks' driver`, for a qcow2 image QEMU has no key, and libvirt 9.0 crashes with librbd.
    ///
    /// ## Use instead
    /// Use LUKS in a raw or qcow2 image. `qemu-img convert -O qcow2 -o
    /// encrypt.format=luks,encrypt.key-secret=ID,encrypt.hash-alg=sha512 --object secret,id=ID,file=KEYFILE IMAGE NEW`
    /// encrypts an existing image; it needs space for a second copy, and encryption costs CPU time. With the default
    /// hash, SHA-256, `qemu-img` often fails on a fast machine: `Unable to get accurate CPU usage`.
    /// `virsh secret-define` stores the secret, and `<secret type='passphrase' usage='…'/>` names it.
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
    /// ```xml,reported,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/a.luks'>
    ///     <encryption format='luks'>
    ///       <secret type='passphrase' uuid='0a81f5b2-8403-7b23-c8d6-21ccc2f80d60'/>
    ///       <secret type='passphrase' uuid='0a81f5b2-8403-7b23-c8d6-21ccc2f80d61'/>
    ///     </encryption>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,libvirt-9.0
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/a.luks'>
    ///     <encryption format='luks'>
    ///       <secret type='passphrase' uuid='0a81f5b2-8403-7b23-c8d6-21ccc2f80d60'/>
    ///       <secret type='passphrase' uuid='0a81f5b2-8403-7b23-c8d6-21ccc2f80d61'/>
    ///     </encryption>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='rbd' name='p/a'>
    ///     <host name='h'/>
    ///     <encryption format='luks2' engine='librbd'>
    ///       <secret type='passphrase' usage='a'/>
    ///       <cipher name='aes' size='256' mode='xts' hash='sha256'/>
    ///     </encryption>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'>
    ///     <encryption format='luks'>
    ///       <secret type='passphrase' usage='a'/>
    ///       <cipher name='aes' size='256' mode='xts' hash='sha256'/>
    ///     </encryption>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "encryption-refused",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("supplying <cipher> for domain disk definition is unnecessary", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
        Evidence::refused_by_libvirt("old qcow/qcow2 encryption is not supported", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("encryption is supported only with 'raw' and 'qcow2' image format", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("luks2 is currently not supported by the qemu encryption engine", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("'luks2' is currently not supported by the qemu encryption engine", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("'luks-any' is currently not supported by the qemu encryption engine", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("qemu encryption engine expects only a single secret", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt("librbd encryption is supported only with RBD backed disks", "src/qemu/qemu_domain.c, qemuDomainValidateStorageSource"),
        Evidence::refused_by_libvirt_at_start("missing secret info for 'luks' driver", "src/qemu/qemu_block.c, qemuBlockStorageSourceGetCryptoProps"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    // 9.0 accepts several secrets, and uses the first.
    let accepts_more_secrets = context.can(Capability::LibvirtRefusesUnusedSources).is_no();
    for (index, _, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Some(encryption) = &image.encryption else {
                continue;
            };
            let at = FieldPath::Image(index, depth, ImageField::Encryption);
            if let Some((what, help)) = report_refused(image, encryption, accepts_more_secrets) {
                report
                    .finding(at, phrase!("{disk} {what}", what))
                    .label("not supported here")
                    .help(help);
            } else if encryption.secrets.is_empty() {
                report
                    .finding(
                        at,
                        phrase!("{disk} is encrypted, but its configuration has no secret"),
                    )
                    .label("no `<secret>` opens the image")
                    .note("libvirt defines the guest, but cannot start it")
                    .help("add `<secret type='passphrase' usage='…'/>`, with a secret that `virsh secret-define` stored");
            }
        }
    }
}

/// The first mistake, and the remedy.
fn report_refused(
    image: &Image,
    encryption: &Encryption,
    accepts_more_secrets: bool,
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
            "sets a cipher, but the image header decides the cipher",
            "remove the cipher and the initial vector generator",
        ));
    }
    match engine.unwrap_or(EncryptionEngine::Qemu) {
        EncryptionEngine::Librbd => {
            // libvirt accepts every network protocol here.
            (!matches!(image.protocol, Protocol::Network(_))).then_some((
                "uses the encryption engine librbd, but its source is not RBD",
                "remove the engine; QEMU then decrypts the image",
            ))
        }
        EncryptionEngine::Qemu => {
            if matches!(
                format,
                Some(EncryptionFormat::Qcow | EncryptionFormat::Default)
            ) {
                return Some((
                    "uses the legacy encryption of qcow and qcow2, which is broken and not supported for guests",
                    "convert the image to LUKS: `qemu-img convert -O qcow2 -o encrypt.format=luks,encrypt.key-secret=…,encrypt.hash-alg=sha512`",
                ));
            }
            if matches!(
                format,
                Some(EncryptionFormat::Luks2 | EncryptionFormat::LuksAny)
            ) {
                return Some((
                    "uses a LUKS format that QEMU does not support; it supports version 1",
                    "use the encryption format luks; for RBD, the engine librbd supports the others",
                ));
            }
            if !matches!(
                image.format,
                Some(Format::Raw | Format::Qcow2 | Format::Luks) | None
            ) {
                return Some((
                    "is encrypted, but QEMU supports encryption only of raw and qcow2 images",
                    "convert the image to qcow2",
                ));
            }
            (secrets.len() > 1 && !accepts_more_secrets).then_some((
                "has several secrets, but QEMU supports one",
                "keep one secret",
            ))
        }
    }
}
