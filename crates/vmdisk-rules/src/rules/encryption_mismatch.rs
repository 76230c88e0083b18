//! `encryption-mismatch`

use vmdisk_facts::ImageHeader;
use vmdisk_model::{
    Encryption, EncryptionEngine, EncryptionFormat, FieldPath, Format, Image, ImageField,
};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Missing, Report, Severity, host};

declare_rule! {
    /// What is written of an image's encryption is not what its header says.
    ///
    /// ## What it does
    /// Reports qcow2 images that are written as encrypted and are not, or are LUKS inside and written without
    /// encryption or as the old AES; and raw images written as encrypted whose file is no LUKS container, or one of
    /// version 2.
    ///
    /// ## Why it matters
    /// QEMU compares what it is told with the header and refuses what differs: the guest does not start. A raw file
    /// that is a LUKS container and is written without encryption is left alone: the guest may well have made it.
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
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none'/>
    ///   <source file='/srv/img/locked.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "encryption-mismatch",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "No encryption in image header, but options specified format 'luks'",
                source: "block/qcow2.c, qcow2_update_options_prepare",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "Header reported 'luks' encryption format but options specify 'aes'",
                source: "block/qcow2.c, qcow2_update_options_prepare",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "Parameter 'encrypt.key-secret' is required for cipher",
                source: "crypto/block-luks.c, for a qcow2 image that is LUKS inside",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "Volume is not in LUKS format",
                source: "crypto/block-luks.c",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "LUKS version 2 is not supported",
                source: "crypto/block-luks.c",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let at = FieldPath::Image(index, depth, ImageField::Encryption);
            let found = match difference(context, image) {
                Ok(found) => found,
                Err(missing) => {
                    report.not_checked(at, missing);
                    // One missing fact is enough to say about one disk.
                    break;
                }
            };
            let Some(Difference { what, says, help }) = found else {
                continue;
            };
            let of = if depth == 0 { "" } else { "an image below " };
            report
                .finding(at, format!("{of}`{}` {what}", disk.name()))
                .label("not what the header says")
                .note(format!("QEMU says `{says}`, and the guest does not start"))
                .help(help);
        }
    }
}

/// What differs.
struct Difference {
    what: &'static str,
    says: &'static str,
    help: &'static str,
}

fn difference(context: &Context<'_>, image: &Image) -> Result<Option<Difference>, Missing> {
    let Some(path) = image.host_path() else {
        return Ok(None);
    };
    let is_at_the_start = image.slice.is_none_or(|slice| slice.offset == 0);
    let by_qemu = |encryption: &&Encryption| encryption.engine != Some(EncryptionEngine::Librbd);
    let written = image.encryption.as_ref().filter(by_qemu);
    match image.format {
        Some(Format::Qcow2) if is_at_the_start => {
            let Some(header) = host::qcow2_header(context, image).transpose()?.flatten() else {
                return Ok(None);
            };
            let what = || format!("how {path} is encrypted");
            let encrypted = Context::known(header.encryption.as_ref(), what)?;
            Ok(of_qcow2(context, encrypted.map(String::as_str), written))
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

/// A qcow2 image has in its header whether and how it is encrypted.
fn of_qcow2(
    context: &Context<'_>,
    encrypted: Option<&str>,
    written: Option<&Encryption>,
) -> Option<Difference> {
    let is_old = |encryption: &Encryption| encryption.format == Some(EncryptionFormat::Qcow);
    match (encrypted, written) {
        (None, Some(_)) => Some(Difference {
            what: "is written as encrypted, and the image is not",
            says: "No encryption in image header, but options specified format 'luks'",
            help: "take the encryption away, or make the image anew with it: qemu-img convert -O qcow2 -o encrypt.format=luks",
        }),
        (Some("luks"), None) => Some(Difference {
            what: "is encrypted, and no secret is written that opens it",
            says: "Parameter 'encrypt.key-secret' is required for cipher",
            help: context.for_taker(
                "write <encryption format='luks'> with its secret in the source",
                "write encrypt.format=luks, and encrypt.key-secret with the id of an -object secret",
            ),
        }),
        (Some("luks"), Some(encryption)) if is_old(encryption) => Some(Difference {
            what: "is written as encrypted with the old AES, and the image is LUKS inside",
            says: "Header reported 'luks' encryption format but options specify 'aes'",
            help: "write luks",
        }),
        // The old AES is another rule's business.
        (_, _) => None,
    }
}

/// An encrypted raw image is a LUKS container.
fn of_container(header: &ImageHeader, path: &str) -> Result<Option<Difference>, Missing> {
    let what = || format!("the header of {path}");
    let format = Context::known(header.format.as_str(), what)?;
    if format != Some("luks") {
        return Ok(Some(Difference {
            what: "is written as encrypted, and the image is no LUKS container",
            says: "Volume is not in LUKS format",
            help: "take the encryption away, or give the path of the container",
        }));
    }
    let is_second = Context::known(header.version.as_ref(), what)? == Some(&2);
    Ok(is_second.then_some(Difference {
        what: "is a LUKS container of version 2, which QEMU does not open",
        says: "LUKS version 2 is not supported",
        help: "open it on the host (cryptsetup open) and give the guest the device that makes, or convert it: cryptsetup convert --type luks1",
    }))
}
