//! `format-missing`

use vmdisk_fields::{Phrase, phrase, quoted, setting};
use vmdisk_model::{
    Change, Device, FieldPath, Format, Image, ImageField, MadeAs, Protocol, is_container,
};
use vmdisk_rule::{
    Consumer, Context, Evidence, Finding, Fix, Group, Report, Severity, declare_rule,
};

use crate::host;

declare_rule! {
    /// The image format of a disk is not set.
    ///
    /// ## What it reports
    /// Reports a disk that the guest can write without `type=` in its `<driver>`, or without `format=` in its `-drive`.
    /// With libvirt it is an error if the facts contain the image header and it is not raw; read-only disks are
    /// reported then, too.
    ///
    /// ## Why it matters
    /// libvirt uses raw without probing. If the image is qcow2, the guest sees the bytes of the container as its disk
    /// and can overwrite them. QEMU with `-drive` and no `format=` probes the first bytes, and the guest can write
    /// them: a guest that writes a qcow2 header with a backing file into its raw disk can read that host file after the
    /// next start. This works with QEMU 5.2 to 11.1. The same mistake in tools around QEMU led to CVE-2008-2004,
    /// CVE-2022-47951 and CVE-2026-24708.
    ///
    /// ## Use instead
    /// Set the format that the image was created with: `type='raw'` or `type='qcow2'`, or `format=` in a `-drive`. If a
    /// script makes the image with `qemu-img create` or `qemu-img convert`, the fix is the format that it names there.
    /// `qemu-img info IMAGE` shows the probed format; do not trust it for an image whose first bytes a guest could have
    /// written.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web2</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' cache='none'/>
    ///       <source file='/srv/img/web2.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed
    /// <domain type='kvm'>
    ///   <name>web2</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' cache='none' type='raw'/>
    ///       <source file='/srv/img/web2.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// An error, because the header is qcow2:
    /// ```xml,reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' cache='none'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed,consent,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' cache='none' type='qcow2'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// On a command line, QEMU probes bytes that the guest can write:
    /// ```args,reported
    /// qemu-system-x86_64 -drive file=/srv/img/web2.img,if=virtio,cache=none
    /// ```
    /// ```args,fixed
    /// qemu-system-x86_64 -drive file=/srv/img/web2.img,if=virtio,cache=none,format=raw
    /// ```
    /// The same script makes the image, so its format is known:
    /// ```args,reported
    /// qemu-img create -f qcow2 web3.img 10G
    /// qemu-system-x86_64 -drive file=web3.img,if=virtio,cache=none
    /// ```
    /// ```args,fixed
    /// qemu-img create -f qcow2 web3.img 10G
    /// qemu-system-x86_64 -drive file=web3.img,if=virtio,cache=none,format=qcow2
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/web2.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='file' device='cdrom'>
    ///   <source file='/srv/iso/install.iso'/>
    ///   <target dev='sda' bus='sata'/>
    /// </disk>
    /// ```
    name: "format-missing",
    group: Group::Security,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("a raw disk into which the guest wrote a qcow2 header with a backing file returned that host file when opened without format=; \
                      a VMDK descriptor does the same; with format=raw neither does", "QEMU 5.2, 7.2, 10.0 and 11.1"),
        Evidence::measured("no type= on a qcow2 image is accepted and starts, and the guest sees the container", "virsh of libvirt 9.0 with QEMU 7.2"),
        Evidence::Source("libvirt src/qemu/qemu_postparse.c, qemuDomainDeviceDiskDefPostParse: raw by default"),
        Evidence::Cve("CVE-2008-2004"),
        Evidence::Cve("CVE-2022-47951"),
        Evidence::Cve("CVE-2026-24708"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        // A passed-through device can only be raw.
        if image.format.is_some() || disk.frontend.effective_device() == Device::Lun {
            continue;
        }
        // A FAT file system that QEMU builds from a directory at each start: the guest cannot write its first bytes.
        let is_directory = matches!(image.protocol, Protocol::Directory { .. });
        if is_directory || matches!(&image.protocol, Protocol::Other(driver) if driver == "fat") {
            continue;
        }
        // Without a known header the finding is milder.
        let header = image
            .host_path()
            .filter(|_| image.is_headed_by_its_format())
            .and_then(|path| host::header_format(context, path).ok())
            .flatten();
        // What the guest writes with `-snapshot` goes to an overlay.
        let is_kept = !disk.backend.is_transient || context.consumer == Consumer::Libvirt;
        let is_written = disk.is_writable()
            && is_kept
            && match disk.frontend.effective_device() {
                Device::Disk => true,
                // libvirt always uses raw.
                Device::Floppy => context.consumer == Consumer::Qemu,
                _ => false,
            };
        match (context.consumer, header) {
            (Consumer::Libvirt, Some(header)) if is_container(header) => {
                report_container(report, index, image, header);
            }
            (Consumer::Libvirt, _) if is_written => report_raw(report, index, image, header),
            (Consumer::Qemu, _) if is_written => report_probed(report, index, image, header),
            _ => {}
        }
    }
}

/// libvirt uses raw, and the image has another format.
fn report_container(report: &mut Report, index: usize, image: &Image, header: &str) {
    let at = FieldPath::Image(index, 0, ImageField::Format);
    let path = image.host_path().unwrap_or_default();
    let finding = report.finding(
        at,
        phrase!(
            "{disk} sets no image format; libvirt uses raw, but the image is {header}",
            header = header.to_owned(),
        ),
    );
    finding
        .label(phrase!("{format} is not set here", format = at))
        .severity(Severity::Error)
        .note(phrase!(
            "{path} begins with a {header} header",
            path = quoted(path.to_owned()),
            header = header.to_owned(),
        ))
        .note("the guest sees the bytes of the container as its disk, and can overwrite them");
    match Format::of_qemu_driver(header) {
        Some(format) => finding
            .help(phrase!(
                "use {format} if the image was created as {header}; use {raw} if a guest wrote that header into its raw disk",
                format = setting(at, format),
                header = header.to_owned(),
                raw = setting(at, Format::Raw),
            ))
            .fix(Fix::needs_consent([Change::set(at, format)])),
        None => finding.help("use the format that the image was created with"),
    };
}

/// libvirt uses raw, and nothing shows that it is wrong.
fn report_raw(report: &mut Report, index: usize, image: &Image, header: Option<&str>) {
    let at = FieldPath::Image(index, 0, ImageField::Format);
    let finding = report.finding(at, phrase!("{disk} sets no image format; libvirt uses raw"));
    finding
        .label(phrase!("{format} is not set here", format = at))
        .note("QEMU without libvirt would probe the first bytes, which a guest can write");
    let raw = setting(at, Format::Raw);
    let change = Change::set(at, Format::Raw);
    if let Some(header) = header {
        finding
            .note(header_note(image, header))
            .help(phrase!("use {raw} to keep what happens now", raw))
            .fix(Fix::safe([change]));
        return;
    }
    match image.format_by_name() {
        Some(format) => finding.help(phrase!(
            "use {format} if the file name is right, or {raw} to keep what happens now",
            format = setting(at, format),
            raw,
        )),
        None => finding
            .help(phrase!(
                "if the image is raw, use {raw} to keep what happens now",
                raw
            ))
            .fix(Fix::needs_consent([change])),
    };
}

/// QEMU probes the first bytes, and the guest can write them.
fn report_probed(report: &mut Report, index: usize, image: &Image, header: Option<&str>) {
    let at = FieldPath::Image(index, 0, ImageField::Format);
    let finding = report.finding(
        at,
        phrase!("{disk} sets no image format; QEMU probes the first bytes"),
    );
    finding
        .label(phrase!("{format} is not set here", format = at))
        .note("while QEMU probes the format, it refuses a write that begins with the header of another format, and the guest gets an I/O error")
        .note("a header that the guest wrote in an earlier run with `raw` makes QEMU open any host file");
    if let Some(header) = header {
        finding.note(header_note(image, header));
    }
    if let Some(made_as) = image.made_as {
        return fix_as_made(finding, at, made_as, header);
    }
    let raw = setting(at, Format::Raw);
    match (header.and_then(Format::of_qemu_driver), image.format_by_name()) {
        (Some(Format::Raw), _) => finding
            .help(phrase!("use {raw} to keep what happens now", raw))
            .fix(Fix::safe([Change::set(at, Format::Raw)])),
        (Some(format), _) => finding
            .help(phrase!(
                "use {format} if the image was created with it; use {raw} if a guest wrote that header into its raw disk",
                format = setting(at, format),
                raw,
            ))
            .fix(Fix::needs_consent([Change::set(at, format)])),
        (None, Some(format)) => finding.help(phrase!(
            "use {format} if the file name is right, or {raw} if the image is raw",
            format = setting(at, format),
            raw,
        )),
        (None, None) => finding
            .help(phrase!("use {raw} if the image is raw", raw))
            .fix(Fix::needs_consent([Change::set(at, Format::Raw)])),
    };
}

/// The text makes the image: no other format is written, and none where the header or another command contradicts.
fn fix_as_made(finding: &mut Finding, at: FieldPath, made_as: MadeAs, header: Option<&str>) {
    match made_as {
        MadeAs::Format(format) if header.is_none_or(|it| Some(it) == format.qemu_driver()) => {
            finding
                .note(made_note(format))
                .help(phrase!("use {format}", format = setting(at, format)))
                .fix(Fix::safe([Change::set(at, format)]));
        }
        MadeAs::Format(format) => {
            finding.note(made_note(format)).help(phrase!(
                "use {format} if the image is the one that the text makes, and the format that the image has otherwise",
                format = setting(at, format),
            ));
        }
        MadeAs::Unclear => {
            finding
                .note("the text makes the image, and does not tell one format")
                .help("use the format that `qemu-img create` got");
        }
    }
}

fn made_note(format: Format) -> String {
    format!("the same text makes the image as {format}, with `qemu-img`")
}

fn header_note(image: &Image, header: &str) -> Phrase {
    phrase!(
        "the header of {path} shows the format {header}",
        path = quoted(image.host_path().unwrap_or_default().to_owned()),
        header = header.to_owned(),
    )
}
