//! `format-missing`

use vmdisk_model::{Change, Device, Disk, FieldPath, Format, Image, ImageField};

use crate::format_words::is_container;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity, TakenBy, host};

declare_rule! {
    /// A disk does not say the format of its image.
    ///
    /// ## What it does
    /// Reports a disk the guest can write without `type=` in its `<driver>`, or `format=` on its `-drive`. Under libvirt
    /// it is an error where the facts hold the image's header and it is not raw; then disks that are only read are
    /// reported as well.
    ///
    /// ## Why it matters
    /// libvirt takes raw and does not look at the image. If it is qcow2, the guest gets the container
    /// instead of the disk in it, and may write over it. QEMU started by hand with `-drive` and no `format=`
    /// looks at the first bytes, and they belong to the guest: a guest that writes a qcow2 header with a
    /// backing file into its raw disk reads that file of the host after the next start. It works on QEMU 5.2 to
    /// 11.1, and the same mistake in tools around QEMU made CVE-2008-2004, CVE-2022-47951 and CVE-2026-24708.
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
    /// An error, because the header is known to be qcow2.
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
    ///
    /// On a command line QEMU guesses, and the guest has a say in it.
    /// ```args,reported
    /// qemu-system-x86_64 -drive file=/srv/img/web2.img,if=virtio,cache=none
    /// ```
    /// ```args,fixed
    /// qemu-system-x86_64 -drive file=/srv/img/web2.img,if=virtio,cache=none,format=raw
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
    pub(super) static RULE = {
        name: "format-missing",
        group: Group::Security,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "a raw disk into which the guest wrote a qcow2 header with a backing file gave back that file of the host when opened without format=; \
                          a VMDK descriptor does the same; with format=raw neither does",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1",
            },
            Evidence::Measured {
                figures: "no type= on a qcow2 image is defined and starts, and the guest sees the container",
                how: "virsh of libvirt 9.0 with QEMU 7.2",
            },
            Evidence::Source("libvirt src/qemu/qemu_postparse.c, qemuDomainDeviceDiskDefPostParse: raw if nothing is written"),
            Evidence::Cve("CVE-2008-2004"),
            Evidence::Cve("CVE-2022-47951"),
            Evidence::Cve("CVE-2026-24708"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        // A logical unit that is passed through can only be raw.
        if image.format.is_some() || disk.frontend.effective_device() == Device::Lun {
            continue;
        }
        // What is not known of the header makes the finding milder, and keeps nothing back.
        let header = image
            .host_path()
            .filter(|_| image.is_headed_by_its_format())
            .and_then(|path| host::header_format(context, path).ok())
            .flatten();
        let is_written = disk.is_writable() && disk.frontend.effective_device() == Device::Disk;
        match (context.taken_by, header) {
            (TakenBy::Libvirt, Some(header)) if is_container(header) => {
                report_container(report, index, disk, image, header);
            }
            (TakenBy::Libvirt, _) if is_written => report_raw(report, index, disk, image, header),
            (TakenBy::Qemu, _) if is_written => report_guess(report, index, disk, image, header),
            (TakenBy::Libvirt | TakenBy::Qemu, _) => {}
        }
    }
}

/// libvirt takes raw, and the image is known to be something else.
fn report_container(report: &mut Report, index: usize, disk: &Disk, image: &Image, header: &str) {
    let at = FieldPath::Image(index, 0, ImageField::Format);
    let path = image.host_path().unwrap_or_default();
    let finding = report.finding(
        at,
        format!(
            "`{}` has no format, so libvirt takes raw, and its image is {header}",
            disk.name()
        ),
    );
    finding
        .label("no type= here")
        .severity(Severity::Error)
        .note(format!("{path} begins with a {header} header"))
        .note("the guest gets the bytes of the container instead of the disk in it, and can write over them");
    match Format::of_qemu_driver(header) {
        Some(format) => finding
            .help(format!("write type='{format}' if the image was made as {header}; if a guest wrote that header into its raw disk, write type='raw'"))
            .fix(Fix::needs_consent([Change::set(at, format.as_wire())])),
        None => finding.help("write the format that the image was made as"),
    };
}

/// libvirt takes raw, and nothing speaks against it.
fn report_raw(report: &mut Report, index: usize, disk: &Disk, image: &Image, header: Option<&str>) {
    let at = FieldPath::Image(index, 0, ImageField::Format);
    let finding = report.finding(
        at,
        format!(
            "`{}` does not say the format of its image; libvirt takes raw",
            disk.name()
        ),
    );
    finding
        .label("no type= here")
        .note("QEMU's -drive would look at the first bytes instead, which a guest can write");
    let raw = Change::set(at, Format::Raw.as_wire());
    if let Some(header) = header {
        let path = image.host_path().unwrap_or_default();
        finding
            .note(format!("the header of {path} says {header}"))
            .help("write type='raw', which is what happens now")
            .fix(Fix::safe([raw]));
        return;
    }
    match format_by_name(image) {
        Some(format) => finding.help(format!(
            "write type='{format}' if the file's name is right, or type='raw', which is what happens now"
        )),
        None => finding
            .help("write type='raw', which is what happens now, if the image is raw")
            .fix(Fix::needs_consent([raw])),
    };
}

/// QEMU takes what the first bytes look like, and the guest writes them.
fn report_guess(
    report: &mut Report,
    index: usize,
    disk: &Disk,
    image: &Image,
    header: Option<&str>,
) {
    let at = FieldPath::Image(index, 0, ImageField::Format);
    let finding = report.finding(
        at,
        format!(
            "`{}` does not say the format of its image; QEMU takes what its first bytes look like",
            disk.name()
        ),
    );
    finding.label("no format= here").note(
        "a guest that writes those bytes says by them what QEMU opens next time, files of the host among it",
    );
    let path = image.host_path().unwrap_or_default();
    if let Some(header) = header {
        finding.note(format!("the header of {path} says {header}"));
    }
    match (header.and_then(Format::of_qemu_driver), format_by_name(image)) {
        (Some(Format::Raw), _) => finding
            .help("write type='raw', which is what happens now")
            .fix(Fix::safe([Change::set(at, Format::Raw.as_wire())])),
        (Some(format), _) => finding
            .help(format!("write type='{format}' if the image was made as that; if a guest wrote that header into its raw disk, write type='raw'"))
            .fix(Fix::needs_consent([Change::set(at, format.as_wire())])),
        (None, Some(format)) => finding.help(format!(
            "write type='{format}' if the file's name is right, or type='raw' if the image is raw"
        )),
        (None, None) => finding
            .help("write type='raw' if the image is raw")
            .fix(Fix::needs_consent([Change::set(at, Format::Raw.as_wire())])),
    };
}

/// The format other than raw that the end of the path's name stands for.
fn format_by_name(image: &Image) -> Option<Format> {
    let (_, ending) = image.host_path()?.rsplit_once('.')?;
    Format::from_wire(ending).filter(|format| *format != Format::Raw && *format != Format::Iso)
}
