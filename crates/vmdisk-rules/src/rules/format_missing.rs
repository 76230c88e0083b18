//! `format-missing`

use vmdisk_model::{Change, Device, Disk, FieldPath, Format, Image, ImageField};

use crate::format_words::{format_of_qemu_word, is_container};
use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity, host};

declare_rule! {
    /// A disk does not say the format of its image.
    ///
    /// ## What it does
    /// Reports a disk the guest can write without `type=` in its `<driver>`. It is an error where the facts
    /// hold the image's header and it is not raw; then disks that are only read are reported as well.
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
        match header {
            Some(header) if is_container(header) => {
                report_container(report, index, disk, image, header);
            }
            Some(_) | None if writes(disk) => report_open(report, index, disk, image, header),
            Some(_) | None => {}
        }
    }
}

fn writes(disk: &Disk) -> bool {
    disk.is_writable() && disk.frontend.effective_device() == Device::Disk
}

/// The image is known to be something else than raw.
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
    match format_of_qemu_word(header) {
        Some(format) => finding
            .help(format!("write type='{format}' if the image was made as {header}; if a guest wrote that header into its raw disk, write type='raw'"))
            .fix(Fix::needs_consent([Change::set(at, format.as_wire())])),
        None => finding.help("write the format that the image was made as"),
    };
}

/// Nothing speaks against raw.
fn report_open(
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

/// The format other than raw that the end of the path's name stands for.
fn format_by_name(image: &Image) -> Option<Format> {
    let (_, ending) = image.host_path()?.rsplit_once('.')?;
    Format::from_wire(ending).filter(|format| *format != Format::Raw && *format != Format::Iso)
}
