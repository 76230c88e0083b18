//! `image-unreachable`

use vmdisk_facts::HostIndex;
use vmdisk_fields::{command, phrase, quoted};
use vmdisk_model::{FieldPath, Image, ImageField, StartupPolicy};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// QEMU's user cannot reach the image of a disk: permission denied on a directory above it.
    ///
    /// ## What it reports
    /// Reports an image, a data file or a configured backing image below a directory that QEMU's user may not search
    /// (no `x` for it, by permission bits and access lists), typically `/root` or a home directory such as
    /// `/home/alice`. Owner and mode of the image itself are not considered, because libvirt gives the file to QEMU's
    /// user. The rule does not report images below `~/.local/share`, where guests of `qemu:///session` have their
    /// images, or disks with `startupPolicy='optional'`. It does not check labels of SELinux or profiles of AppArmor.
    ///
    /// ## Why it matters
    /// libvirt runs QEMU as an unprivileged user (`libvirt-qemu`, `qemu`). It changes the owner of images, but never
    /// the owner of directories. The guest does not start: `Could not open '/home/alice/web1.img': Permission denied`,
    /// or libvirt says `Cannot access storage file … (as uid:64055, gid:64055): Permission denied`.
    ///
    /// ## Use instead
    /// Move the image to the directory of a pool, such as `/var/lib/libvirt/images`. Alternatively, let QEMU's user
    /// search the directory: `setfacl -m u:libvirt-qemu:x /home/alice`. Guests of `qemu:///session` run as the user.
    ///
    /// ## Reported
    /// ```xml,reported,facts-image-permissions
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/home/alice/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-image-permissions
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/img/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/home/alice/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "image-unreachable",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::measured("`Could not open '/tmp/lab/home/alice/a.img': Permission denied` with mode 0666 on the file and 0700 on its directory", "QEMU 7.2 started as uid 65534"),
        Evidence::Source("libvirt src/security/security_dac.c: sets the owner of images, not of directories"),
    ],
    check: Model(check),
}

/// Where guests that run as a user have their images.
const SESSION: &str = "/.local/share/";

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        if disk.backend.startup_policy == Some(StartupPolicy::Optional) {
            continue;
        }
        for (depth, image) in image.chain().enumerate() {
            let own = image.host_path().map(|path| (ImageField::Path, path));
            let data = image.data_file.as_deref().and_then(Image::host_path);
            let data = data.map(|path| (ImageField::DataFile, path));
            for (field, path) in own.into_iter().chain(data) {
                let at = FieldPath::Image(index, depth, field);
                // Everybody may search /dev.
                if path.starts_with("/dev/") || path.contains(SESSION) {
                    continue;
                }
                let Some(facts) = host::facts(context, report, at, "whom QEMU runs as") else {
                    return;
                };
                let stopped_at = report.require(at, stopped_at(facts, path));
                if let Some(Some(directory)) = stopped_at {
                    report_stopped(facts, report, at, directory);
                }
            }
        }
    }
}

/// The directory that QEMU's user may not search; `None` if it reaches the path.
fn stopped_at<'a>(facts: &HostIndex<'a>, path: &str) -> Result<Option<&'a str>, Missing> {
    let what = || format!("whether QEMU's user can reach {path}");
    let Some(access) = host::qemu_access(facts, path, what)? else {
        return Ok(None);
    };
    match Context::known(access.search.clone(), what)? {
        Some(false) => {}
        Some(true) | None => return Ok(None),
    }
    let directory = access.stopped_at.value();
    Ok(Some(
        directory.map_or("a directory above it", String::as_str),
    ))
}

fn report_stopped(facts: &HostIndex<'_>, report: &mut Report, at: FieldPath, directory: &str) {
    let user = facts
        .facts()
        .libvirt
        .value()
        .and_then(|it| it.qemu_user.value());
    let user = user.and_then(|user| user.name.value());
    let user = user.map_or("libvirt-qemu", String::as_str);
    report
        .finding(
            at,
            phrase!(
                "QEMU's user cannot reach an image of {disk}: it has no search permission on {directory}",
                directory = quoted(directory.to_owned()),
            ),
        )
        .label("permission denied")
        .confidence(Confidence::Assumed)
        .note("libvirt gives an image to QEMU's user, and changes no directory")
        .help(phrase!(
            "move the image to a directory such as /var/lib/libvirt/images, or run {command}",
            command = command("setfacl -m", &[&format!("u:{user}:x"), directory]),
        ));
}
