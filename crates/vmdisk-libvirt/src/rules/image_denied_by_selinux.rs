//! `image-denied-by-selinux`

use vmdisk_facts::HostIndex;
use vmdisk_fields::{DiskName, phrase, quoted};
use vmdisk_model::{FieldPath, ImageField};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Missing, Report, Severity};

use super::xml::{Xml, xml_rule};

xml_rule! {
    /// SELinux denies QEMU an image, because its file system has one label and the boolean for it is off.
    ///
    /// ## What it reports
    /// Reports, on a host where SELinux is enforcing, images with the label of a whole file system, such as `nfs_t`, if the
    /// boolean of the policy that lets guests use such file systems is off.
    ///
    /// ## Why it matters
    /// libvirt gives each image a label that only its guest may use. NFS, SMB and FUSE file systems do not store labels: each
    /// file has the label of the mount, and libvirt starts the guest without changing it. The policy allows guests these
    /// labels only with a boolean, which is off by default. QEMU says `Could not open …: Permission denied`, also if root may
    /// read the file.
    ///
    /// ## Use instead
    /// Run `setsebool -P virt_use_nfs on`, or `virt_use_samba` for SMB and `virt_use_fusefs` for FUSE. A server of NFS 4.2
    /// that stores labels needs none of them.
    ///
    /// ## Reported
    /// ```xml,reported,facts-selinux
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/nfs/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-selinux
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/smb/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// The guest is not confined:
    /// ```xml,not-reported,facts-selinux
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/nfs/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    ///   <seclabel type='none' model='selinux'/>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden,facts-selinux
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked where the policy has no such boolean, or it was not asked for:
    /// ```xml,not-checked,facts-selinux
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/fuse/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "image-denied-by-selinux",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::Source("libvirt src/security/security_selinux.c, virSecuritySELinuxFSetFilecon: `Setting security context not supported. Consider setting virt_use_nfs`"),
        Evidence::Source("selinux-policy of Fedora, policy/modules/contrib/virt.te: tunables virt_use_nfs, virt_use_samba and virt_use_fusefs, false by default"),
        Evidence::Source("cockpit issue 15606; vmnetx issues 7 and 26: Permission denied on NFS and on FUSE"),
    ],
    check: Text(check),
}

/// The types of labels that a whole file system has, with the boolean that lets guests use them.
const BOOLEANS: &[(&str, &str)] = &[
    ("cifs_t", "virt_use_samba"),
    ("fusefs_t", "virt_use_fusefs"),
    ("nfs_t", "virt_use_nfs"),
];

pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    let context = xml.context;
    let enforces = "enforcing".to_owned();
    if !xml.is_confined_by("selinux", |it| it.selinux.value() == Some(&enforces)) {
        return;
    }
    let Some(host) = context.host else {
        return;
    };
    for (index, _, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Some(path) = image.host_path() else {
                continue;
            };
            let at = FieldPath::Image(index, depth, ImageField::Path);
            let label = label_of(host, path);
            let Some((label, boolean)) = report.require(at, label).flatten() else {
                continue;
            };
            let Some(false) = report.require(at, value_of(host, boolean)) else {
                continue;
            };
            report
                .finding(
                    at,
                    phrase!(
                        "SELinux denies QEMU an image of {disk}",
                        disk = DiskName(index)
                    ),
                )
                .label(format!(
                    "it has the label `{label}`, and `{boolean}` is off"
                ))
                .confidence(Confidence::Assumed)
                .note(
                    "QEMU says `Could not open …: Permission denied`, and the guest does not start",
                )
                .help(phrase!(
                    "run {command}",
                    command = quoted(format!("setsebool -P {boolean} on"))
                ));
        }
    }
}

/// The label of a whole file system that a file has, with the boolean for it; none for another label.
fn label_of<'f>(
    host: &HostIndex<'f>,
    path: &str,
) -> Result<Option<(&'f str, &'static str)>, Missing> {
    let Some(file) = host.file(path) else {
        return Ok(None);
    };
    let label = Context::known(file.label.as_ref(), || format!("the label of {path}"))?;
    let kind = label.and_then(|label| label.split(':').nth(2));
    let mut rows = BOOLEANS.iter();
    Ok(kind.and_then(|kind| {
        let (label, boolean) = rows.find(|(label, _)| *label == kind)?;
        Some((*label, *boolean))
    }))
}

fn value_of(host: &HostIndex<'_>, boolean: &str) -> Result<bool, Missing> {
    let what = || format!("the boolean {boolean} of SELinux");
    let booleans = host.facts().security.selinux_booleans.as_ref();
    let value = Context::known(booleans, what)?.and_then(|values| values.get(boolean));
    value
        .copied()
        .ok_or_else(|| Missing::new(what(), "the policy of the host has none"))
}
