//! `duplicate-disk-source`

use std::collections::HashMap;

use vmdisk_facts::{Fact, HostIndex, Identity};
use vmdisk_model::{Disk, FieldPath, Image, ImageField};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Missing, Report, Severity};

declare_rule! {
    /// Two disks of a guest open the same file or device, and at least one of them writes.
    ///
    /// ## What it does
    /// Reports a disk whose file or device another disk of the guest has too. With host facts the names do not
    /// matter: `/dev/sdb` and its link under `/dev/disk/by-id`, a hard link, a symbolic link; a loop device and the
    /// file behind it; a partition and its whole disk. Two read-only disks are fine, and so are two that are both
    /// `<shareable/>`, where the guest's software has to agree who writes. A `<transient/>` disk counts as one
    /// that does not write, and so does an image that another one stands on, as far as a `<backingStore>` says so.
    ///
    /// ## Why it matters
    /// The guest has two disks, each with a cache of its own, over the same sectors: what one writes the other
    /// overwrites, and both file systems are lost. QEMU locks the files and does not start. A loop device, a
    /// partition, or image locking that is switched off gets past its locks, and then the damage is done.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// `vdb` stands on what `vda` writes:
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/img/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2'/>
    ///       <source file='/srv/img/overlay.qcow2'/>
    ///       <backingStore type='file'>
    ///         <format type='qcow2'/>
    ///         <source file='/srv/img/web1.qcow2'/>
    ///         <backingStore/>
    ///       </backingStore>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// With facts, one device under two names:
    /// ```xml,reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/vg0/db1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/mapper/vg0-db1'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/vg0/db1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/vg0/db1-log'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Without facts, two names may be one device:
    /// ```xml,not-checked
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/vg0/db1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/mapper/vg0-db1'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    pub(super) static RULE = {
        name: "duplicate-disk-source",
        group: Group::DataSafety,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU 5.2, 7.2, 10.0 and 11.1",
                text: "Failed to get \"write\" lock",
                source: "block/file-posix.c, raw_check_lock_bytes",
            },
            Evidence::Measured {
                figures: "a loop device and the file behind it, both read-write, start without a word",
                how: "two QEMUs of the same version, 5.2, 7.2, 10.0 and 11.1",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut users = Users::default();
    // Of the disks whose file is not known: the first, which stands for all of them.
    let mut unknown: Option<(FieldPath, Missing)> = None;
    for (index, depth, disk, image) in images(context) {
        let Some(path) = image.host_path().filter(|path| !path.is_empty()) else {
            continue;
        };
        let what = || format!("which file or device {path} leads to");
        let identity = context
            .host(what)
            .and_then(|host| Context::known(host.identity(path), what));
        let identity = match identity {
            Ok(identity) => identity,
            Err(missing) => {
                unknown.get_or_insert((path_of(index, depth), missing));
                None
            }
        };
        let user = User {
            index,
            depth,
            disk,
            path,
        };
        match users.conflict(&user, identity.as_ref()) {
            Some(other) => report_same(report, &user, &other),
            None => users.writes |= user.writes(),
        }
        users.insert(user, identity);
    }
    if let Some((at, missing)) = unknown
        && users.all.len() > 1
        && users.writes
    {
        report.not_checked(at, missing);
    }
    if let Some(host) = context.host {
        for user in &users.all {
            for (container, how) in containers(host, user.path) {
                if let Some(other) = users.in_container(user, &container) {
                    report_overlap(report, user, &other, how);
                }
            }
        }
    }
}

/// Every image that is written, with its depth in its chain.
fn images<'a>(
    context: &Context<'a>,
) -> impl Iterator<Item = (usize, usize, &'a Disk, &'a Image)> + use<'a> {
    context.images().flat_map(|(index, disk, top)| {
        top.chain()
            .enumerate()
            .map(move |(depth, image)| (index, depth, disk, image))
    })
}

/// A disk and the path it opens.
#[derive(Clone, Copy)]
struct User<'a> {
    index: usize,
    /// How deep the image stands in the chain of the disk.
    depth: usize,
    disk: &'a Disk,
    path: &'a str,
}

impl User<'_> {
    /// Whether it keeps the file open for writing.
    fn writes(&self) -> bool {
        self.depth == 0 && self.disk.is_writable() && !self.disk.backend.is_transient
    }

    fn does(&self) -> &'static str {
        match self.depth {
            0 => "opens it",
            _ => "stands on it",
        }
    }

    fn is_shareable(&self) -> bool {
        self.disk.backend.is_shareable
    }

    /// Whether QEMU's locks on one file keep the two apart.
    fn conflicts_with(&self, other: &User<'_>) -> bool {
        (self.writes() || other.writes()) && !(self.is_shareable() && other.is_shareable())
    }
}

/// The first user of a file in each of the four classes that locks tell apart, so that looking for a
/// conflict takes four steps however many disks there are.
type FirstUsers<'a> = [Option<User<'a>>; 4];

/// Who opens what, by the path as written and by what it leads to.
#[derive(Default)]
struct Users<'a> {
    all: Vec<User<'a>>,
    writes: bool,
    by_path: HashMap<&'a str, FirstUsers<'a>>,
    by_identity: HashMap<Identity, FirstUsers<'a>>,
}

impl<'a> Users<'a> {
    fn insert(&mut self, user: User<'a>, identity: Option<Identity>) {
        let class = usize::from(user.writes()) * 2 + usize::from(user.is_shareable());
        let by_identity = identity.map(|identity| self.by_identity.entry(identity).or_default());
        for first in [
            Some(self.by_path.entry(user.path).or_default()),
            by_identity,
        ]
        .into_iter()
        .flatten()
        {
            first[class].get_or_insert(user);
        }
        self.all.push(user);
    }

    /// The first disk before this one that opens the same and must not.
    fn conflict(&self, user: &User<'_>, identity: Option<&Identity>) -> Option<User<'a>> {
        let by_identity = identity.and_then(|identity| self.by_identity.get(identity));
        first_conflict(user, [self.by_path.get(user.path), by_identity])
    }

    /// The first disk that opens this container, which holds what `user` opens.
    fn in_container(&self, user: &User<'_>, container: &Container<'_>) -> Option<User<'a>> {
        let by_path = container.path.and_then(|path| self.by_path.get(path));
        let by_identity = container.identity.as_ref();
        let by_identity = by_identity.and_then(|identity| self.by_identity.get(identity));
        first_conflict(user, [by_path, by_identity])
    }
}

fn first_conflict<'a>(user: &User<'_>, places: [Option<&FirstUsers<'a>>; 2]) -> Option<User<'a>> {
    let candidates = places.into_iter().flatten().flatten().flatten();
    candidates
        .filter(|other| other.index != user.index && user.conflicts_with(other))
        .min_by_key(|other| other.index)
        .copied()
}

/// Something that the data of a path is a part of.
struct Container<'a> {
    path: Option<&'a str>,
    identity: Option<Identity>,
}

/// What holds the data behind a path, and how to say so.
fn containers<'a>(host: &'a HostIndex<'a>, path: &str) -> Vec<(Container<'a>, &'static str)> {
    let Fact::Known(device) = host.block_device(path) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if let Fact::Known(partition) = &device.partition
        && let Fact::Known(parent) = &partition.parent
        && let Some(Fact::Known(number)) = host.device(parent).map(|parent| &parent.dev)
    {
        let identity = Some(Identity::Device(*number));
        let path = None;
        found.push((Container { path, identity }, "a partition of"));
    }
    if let Fact::Known(file) = &device.loop_file
        && let Fact::Known(backing) = &file.backing_file
    {
        let container = Container {
            path: Some(backing),
            identity: host.identity(backing).known(),
        };
        found.push((container, "a loop device over"));
    }
    found
}

const fn path_of(index: usize, depth: usize) -> FieldPath {
    FieldPath::Image(index, depth, ImageField::Path)
}

fn report_same(report: &mut Report, user: &User<'_>, other: &User<'_>) {
    let (name, other_name) = (user.disk.name(), other.disk.name());
    let title = if user.path == other.path {
        format!(
            "`{other_name}` and `{name}` open the same image, {}",
            user.path
        )
    } else {
        format!(
            "`{other_name}` and `{name}` open the same image under two names, {} and {}",
            other.path, user.path
        )
    };
    let finding = report.finding(path_of(user.index, user.depth), title);
    finding
        .label(format!("`{name}` {} here", user.does()))
        .related(
            path_of(other.index, other.depth),
            format!("`{other_name}` {} here", other.does()),
        )
        .note(who_writes(user, other));
    if user.path != other.path {
        finding.note("the facts of this host show one file or device behind both names");
    }
    if user.is_shareable() != other.is_shareable() {
        finding.note("only one of the two is marked <shareable/>, which is not enough");
    }
    finding
        .note("QEMU locks the image for writing and does not start: Failed to get \"write\" lock")
        .help("give each disk an image of its own; if the guest's software agrees who writes, as a cluster file system does, mark both <shareable/>");
}

fn report_overlap(report: &mut Report, user: &User<'_>, other: &User<'_>, how: &str) {
    let (name, other_name) = (user.disk.name(), other.disk.name());
    report
        .finding(
            path_of(user.index, user.depth),
            format!(
                "`{name}` opens {}, {how} what `{other_name}` opens",
                user.path
            ),
        )
        .label(format!("{how} {}", other.path))
        .related(
            path_of(other.index, other.depth),
            format!("`{other_name}` opens it here"),
        )
        .note(who_writes(user, other))
        .note("QEMU's locks are on two different inodes and do not meet, so the guest starts and the disks overwrite each other")
        .help("give each disk storage of its own");
}

fn who_writes(user: &User<'_>, other: &User<'_>) -> String {
    match (other.writes(), user.writes()) {
        (true, true) => "both may write".to_owned(),
        (true, false) => format!(
            "`{}` may write, and the other reads what it does not expect to change",
            other.disk.name()
        ),
        (false, _) => format!(
            "`{}` may write, and the other reads what it does not expect to change",
            user.disk.name()
        ),
    }
}
