//! `encryption-mismatch`

use vmdisk_facts::ImageHeader;
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{
    Encryption, EncryptionEngine, EncryptionFormat, FieldPath, Format, Image, ImageField,
};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The configured encryption does not match the image header.
    ///
    /// ## What it reports
    /// Reports qcow2 images that are configured as encrypted but are not; qcow2 images encrypted with LUKS that are
    /// configured without encryption or with legacy AES; and raw images that are configured as encrypted but are not a
    /// LUKS container, or are one of version 2.
    ///
    /// ## Why it matters
    /// QEMU compares the configured encryption with the header and refuses a difference: the guest does not start. A
    /// raw image that is a LUKS container and is configured without encryption is not reported, because the guest may
    /// have created it.
    ///
    /// ## Use instead
    /// Configure the encryption of the image: LUKS with its secret, or none. A LUKS version 2 container cannot be
    /// opened by QEMU: open it on the host with `cryptsetup open` and use the resulting device, or convert it with
    /// `cryptsetup convert --type luks1 IMAGE`, which works only if the container uses no features of version 2.
    ///
    /// ## Reported
    /// ```xml,reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/whole.qcow2'>
    ///     <encryption format='luks'>
    ///       <secret type='passphrase' usage='disk'/>
    ///     </encryption>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/locked.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,reported,facts-refused-images
    /// qemu-system-x86_64 -nodefaults -machine q35 -object secret,id=key0,file=/etc/keys/a \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/img/plain.img \
    ///   -blockdev driver=luks,node-name=l0,file=f0,key-secret=key0 \
    ///   -device virtio-blk-pci,drive=l0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-refused-images
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/locked.qcow2'>
    ///     <encryption format='luks'>
    ///       <secret type='passphrase' usage='disk'/>
    ///     </encryption>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/locked.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-conditions
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/container.luks'>
    ///     <encryption format='luks'>
    ///       <secret type='passphrase' uuid='0a81f5b2-8403-7b23-c8d6-21ccc2f80d60'/>
    ///     </encryption>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-conditions
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/container2.luks'>
    ///     <encryption format='luks'>
    ///       <secret type='passphrase' uuid='0a81f5b2-8403-7b23-c8d6-21ccc2f80d60'/>
    ///     </encryption>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "encryption-mismatch",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("No encryption in image header, but options specified format 'luks'", "block/qcow2.c, qcow2_update_options_prepare"),
        Evidence::refused_by_qemu("Header reported 'luks' encryption format but options specify 'aes'", "block/qcow2.c, qcow2_update_options_prepare"),
        Evidence::refused_by_qemu("Parameter 'encrypt.key-secret' is required for cipher", "crypto/block-luks.c, for a qcow2 image encrypted with LUKS"),
        Evidence::refused_by_qemu("Volume is not in LUKS format", "crypto/block-luks.c"),
        Evidence::refused_by_qemu("LUKS version 2 is not supported", "crypto/block-luks.c"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, _, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let at = FieldPath::Image(index, depth, ImageField::Encryption);
            let found = report.require_once(at, difference(context, image));
            let Some(Difference {
                what,
                message,
                help,
            }) = found.flatten()
            else {
                continue;
            };
            let of = if depth == 0 {
                ""
            } else {
                "a backing image of "
            };
            report
                .finding(at, phrase!("{of}{disk} {what}", of, what))
                .label("does not match the image header")
                .note(phrase!(
                    "QEMU: {message}; the guest does not start",
                    message = quoted(message)
                ))
                .help(help);
        }
    }
}

/// A difference between the configuration and the header.
struct Difference {
    what: &'static str,
    /// The message of QEMU.
    message: &'static str,
    help: &'static str,
}

fn difference(context: &Context<'_>, image: &Image) -> Result<Option<Difference>, Missing> {
    let Some(path) = image.host_path() else {
        return Ok(None);
    };
    let is_at_the_start = image.slice.is_none_or(|slice| slice.offset == 0);
    let by_qemu = |encryption: &&Encryption| encryption.engine != Some(EncryptionEngine::Librbd);
    let written = image.encryption.as_deref().filter(by_qemu);
    match image.format {
        Some(Format::Qcow2) if is_at_the_start => {
            let Some(header) = host::qcow2_header(context, image).transpose()?.flatten() else {
                return Ok(None);
            };
            let what = || format!("the encryption of {path}");
            let encrypted = Context::known(header.encryption.as_ref(), what)?;
            Ok(of_qcow2(encrypted.map(String::as_str), written))
        }
        Some(Format::Raw) | None if is_at_the_start && written.is_some() => {
            match host::header(context, path)? {
                Some(header) => of_container(header, path),
                None => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// Compares with the header of a qcow2 image, which names the encryption.
fn of_qcow2(encrypted: Option<&str>, written: Option<&Encryption>) -> Option<Difference> {
    let is_legacy = |encryption: &Encryption| encryption.format == Some(EncryptionFormat::Qcow);
    match (encrypted, written) {
        (None, Some(_)) => Some(Difference {
            what: "is configured as encrypted, but the image is not",
            message: "No encryption in image header, but options specified format 'luks'",
            help: "remove the encryption, or convert the image with `qemu-img convert -O qcow2 -o encrypt.format=luks,…`",
        }),
        (Some("luks"), None) => Some(Difference {
            what: "is encrypted, but no encryption is configured",
            message: "Parameter 'encrypt.key-secret' is required for cipher",
            help: "configure encryption with the format luks and the secret of the image",
        }),
        (Some("luks"), Some(encryption)) if is_legacy(encryption) => Some(Difference {
            what: "is configured with legacy AES encryption, but the image uses LUKS",
            message: "Header reported 'luks' encryption format but options specify 'aes'",
            help: "use the encryption format luks",
        }),
        // Another rule reports legacy AES.
        _ => None,
    }
}

/// An encrypted raw image is a LUKS container.
fn of_container(header: &ImageHeader, path: &str) -> Result<Option<Difference>, Missing> {
    let what = || format!("the header of {path}");
    let format = Context::known(header.format.as_str(), what)?;
    if !matches!(format, Some("luks" | "luks2")) {
        return Ok(Some(Difference {
            what: "is configured as encrypted, but the image is not a LUKS container",
            message: "Volume is not in LUKS format",
            help: "remove the encryption, or use the path of the LUKS container",
        }));
    }
    let is_second =
        format == Some("luks2") || Context::known(header.version.as_ref(), what)? == Some(&2);
    Ok(is_second.then_some(Difference {
        what: "is a LUKS container of version 2, which QEMU cannot open",
        message: "LUKS version 2 is not supported",
        help: "open it on the host with `cryptsetup open` and use that device, or convert it with `cryptsetup convert --type luks1 IMAGE`",
    }))
}
