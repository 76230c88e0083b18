//! `image-denied-by-apparmor`

use vmdisk_facts::host::Security;
use vmdisk_facts::{Fact, ImageHeader, Version};
use vmdisk_fields::{DiskName, Phrase, phrase};
use vmdisk_model::{FieldPath, ImageField};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Missing, Report, Severity, image_facts};

use super::xml::{Xml, xml_rule};
use crate::RootKind;
use crate::xml::Node;

xml_rule! {
    /// AppArmor denies QEMU an image, because libvirt's `virt-aa-helper` writes no rule for it.
    ///
    /// ## What it reports
    /// Reports, on a host with AppArmor, images that `virt-aa-helper` leaves out of the guest's profile: volumes of a pool
    /// (`type='volume'`), the external data file of a qcow2 image before libvirt 11.3, a backing image that the header names
    /// as `json:`, and paths with one of `[ ] * ? { ^`, which are patterns in a profile, or with `"`, which the helper refuses. Symbolic links
    /// are resolved, and are not reported. Without facts nothing is reported, because few hosts outside Debian, Ubuntu and
    /// SUSE use AppArmor.
    ///
    /// ## Why it matters
    /// The guest does not start: `Could not open '…': Permission denied`, although owner and mode are right. The log of
    /// the kernel has `apparmor="DENIED"`. The helpers of libvirt 9.0 and 11.3 were tried. A finding is a warning for a
    /// later libvirt, and for a data file between the two.
    ///
    /// ## Use instead
    /// Write the path: `type='file'` or `type='block'` with the path that `virsh vol-path` prints. Rename a file with such a
    /// character. Name a backing image by its path (`qemu-img rebase -u -b PATH -F FORMAT IMAGE`). For a data file, add its
    /// path to `/etc/apparmor.d/local/abstractions/libvirt-qemu`: `"/srv/img/data.raw" rwk,`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-apparmor,libvirt-9.0
    /// <disk type='volume' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source pool='default' volume='web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,facts-apparmor,libvirt-9.0
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web [new].qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-apparmor,libvirt-9.0
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/with-data.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-apparmor,libvirt-9.0
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/over-json.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-apparmor,libvirt-10.6
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/with-data.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-apparmor,libvirt-11.3
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web [new].qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,facts-apparmor,libvirt-11.4
    /// <disk type='volume' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source pool='default' volume='web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-apparmor,libvirt-9.0
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// The guest has no profile:
    /// ```xml,not-reported,facts-apparmor,libvirt-9.0
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='volume' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source pool='default' volume='web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    ///   <seclabel type='none' model='apparmor'/>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden,facts-xfs-nvme
    /// <disk type='volume' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source pool='default' volume='web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-apparmor,libvirt-11.3
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/with-data.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-apparmor,libvirt-11.10
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web [new].qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "image-denied-by-apparmor",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::measured("no rule for a volume and a `json:` backing image, and in 9.0 for a data file; `f [b].qcow2` unescaped; `skipped restricted file` for a quote; a symbolic link resolved", "virt-aa-helper -d -r of libvirt 9.0 and 11.3, tests/tests/real_libvirt/apparmor.rs"),
        Evidence::Source("Launchpad bug 1677398, terraform-provider-libvirt issue 1354, ansible-role-libvirt-vm issue 61: Permission denied at start"),
        Evidence::Source("apparmor.d(5), globbing"),
    ],
    check: Text(check),
}

/// The newest libvirt whose helper was tried. It leaves out what is reported, and writes names as patterns.
const TRIED: (u32, u32) = (11, 3);

/// The newest libvirt whose helper is known to leave out data files, and the oldest that is known to add them.
const WITHOUT_DATA_FILES: (u32, u32) = (9, 0);
const WITH_DATA_FILES: (u32, u32) = TRIED;

/// The first libvirt that is known to escape names.
const ESCAPED: Version = Version(11, 5, 0);

/// Characters that AppArmor reads as patterns.
const PATTERN: &[char] = &['[', ']', '*', '?', '{', '^'];

pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    let context = xml.context;
    let is_on = |security: &Security| security.apparmor.is_true();
    if !xml.is_confined_by("apparmor", is_on) {
        return;
    }
    // The path of a volume is known if its pool is, but not to the helper.
    let is_volume_disk = |disk: Node<'_>| disk.attribute("type") == Some("volume");
    let volumes: Vec<bool> = match xml.root {
        RootKind::Disk => vec![is_volume_disk(xml.tree.root())],
        _ => xml.disks().map(|(_, disk)| is_volume_disk(disk)).collect(),
    };
    for (index, _, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let at = FieldPath::Image(index, depth, ImageField::Source);
            let is_volume = depth == 0 && volumes.get(index) == Some(&true);
            let header = image
                .host_path()
                .and_then(|path| image_facts::header(context, path).ok().flatten());
            if let Some((why, help, known)) = left_out(context, is_volume, header) {
                let severity = match context.target.libvirt {
                    Some(version) if version.release() <= known => Severity::Error,
                    _ => Severity::Warning,
                };
                denied(report, at, index, why, help).severity(severity);
            } else if image.host_path().is_some_and(|path| path.contains('"')) {
                denied(
                    report,
                    at,
                    index,
                    "`virt-aa-helper` refuses a path with a quote",
                    "rename it",
                );
            } else if image.host_path().is_some_and(|path| path.contains(PATTERN)) {
                named_as_pattern(context, report, at, index);
            }
        }
    }
}

/// The reason why the helper writes no rule for an image, or for what its header names, with the remedy and the newest
/// libvirt for which this is known.
fn left_out(
    context: &Context<'_>,
    is_volume: bool,
    header: Option<&ImageHeader>,
) -> Option<(&'static str, &'static str, (u32, u32))> {
    if is_volume {
        return Some((
            "`virt-aa-helper` does not look volumes up",
            "use `type='file'` or `type='block'` with the path that `virsh vol-path` prints",
            TRIED,
        ));
    }
    let header = header?;
    let libvirt = context.target.libvirt.map(Version::release);
    if header.data_file.is_known() && libvirt.is_none_or(|it| it < WITH_DATA_FILES) {
        return Some((
            "`virt-aa-helper` adds the image, but not its external data file",
            "add the data file to /etc/apparmor.d/local/abstractions/libvirt-qemu",
            WITHOUT_DATA_FILES,
        ));
    }
    match &header.backing {
        Fact::Known(backing) if backing.path.starts_with("json:") => Some((
            "`virt-aa-helper` does not follow a backing image in `json:`",
            "name the backing image by its path: `qemu-img rebase -u -b PATH -F FORMAT IMAGE`",
            TRIED,
        )),
        _ => None,
    }
}

/// A path that is a pattern in the profile.
fn named_as_pattern(context: &Context<'_>, report: &mut Report, at: FieldPath, index: usize) {
    match context.target.libvirt {
        Some(version) if version >= ESCAPED => {}
        Some(version) if version.release() <= TRIED => {
            denied(
                report,
                at,
                index,
                "its name is a pattern in the profile",
                "rename it",
            );
        }
        _ => report.not_checked(
            at,
            Missing::new(
                "whether libvirt escapes the name in the profile",
                "this version was not tried",
            ),
        ),
    }
}

fn denied<'r>(
    report: &'r mut Report,
    at: FieldPath,
    index: usize,
    why: &'static str,
    help: impl Into<Phrase>,
) -> &'r mut vmdisk_rule::Finding {
    report
        .finding(
            at,
            phrase!(
                "AppArmor denies QEMU an image of {disk}",
                disk = DiskName(index)
            ),
        )
        .label(why)
        .confidence(Confidence::Assumed)
        .note("QEMU says `Could not open …: Permission denied`, and the guest does not start")
        .help(help)
}
