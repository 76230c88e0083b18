//! `duplicate-disk-source`

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use vmdisk_facts::{Fact, HostIndex, Identity};
use vmdisk_fields::{DiskName, Phrase, phrase, quoted, setting};
use vmdisk_model::{
    BackendSource, Disk, DiskField, FieldPath, FieldValue, Format, Image, ImageField, Protocol,
};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::chain::{Chain, chains};
use crate::flushes::data_file;

declare_rule! {
    /// Two disks of a guest open the same file, device or vhost-user socket, and at least one of them writes.
    ///
    /// ## What it reports
    /// Reports a disk whose file or device another disk of the guest opens too: as its image, a backing image, an external
    /// data file, or the image that a daemon on the same command line serves. With host facts, different names of one
    /// file or device are recognized: `/dev/sdb` and its link in `/dev/disk/by-id`, hard and symbolic links, a loop
    /// device and the file below it, a partition and its whole disk. Two read-only disks are not reported, nor are two
    /// disks that are both `<shareable/>`, where the guest's software coordinates writes. A `<transient/>` disk counts
    /// as read-only, and so does a backing image, which a `<backingStore>` or the header of an image names. Two disks on
    /// one volume of a pool are reported too. Two disks with the same vhost-user socket are always reported.
    ///
    /// ## Why it matters
    /// The guest sees two disks with separate caches over the same sectors. Each overwrites what the other writes, and
    /// both file systems are lost. QEMU locks the files and does not start. Through a loop device, through a partition,
    /// or with image locking disabled, the locks do not meet, and the data is damaged. On a vhost-user socket,
    /// `qemu-storage-daemon` serves one disk at a time, and QEMU waits for ever at start.
    ///
    /// ## Use instead
    /// Use a separate image for each disk. If the guest's software coordinates writes, as a cluster file system does,
    /// mark both disks as `<shareable/>`; that works only with raw images and without the host's page cache.
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
    /// `vda` writes the backing image of `vdb`:
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
    /// One daemon for two disks:
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <memoryBacking>
    ///     <source type='memfd'/>
    ///     <access mode='shared'/>
    ///   </memoryBacking>
    ///   <devices>
    ///     <disk type='vhostuser' device='disk'>
    ///       <driver name='qemu'/>
    ///       <source type='unix' path='/run/db1.sock'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='vhostuser' device='disk'>
    ///       <driver name='qemu'/>
    ///       <source type='unix' path='/run/db1.sock'/>
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
    /// Not checked without host facts, because two names can be one device:
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
    /// ```xml,not-checked,hidden
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/img/a.qcow2'/>
    ///   <backingStore type='file'>
    ///     <format type='qcow2'/>
    ///     <source file='/srv/img/a.qcow2'/>
    ///     <backingStore/>
    ///   </backingStore>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>a</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <shareable/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden
    /// <domain type='kvm'>
    ///   <name>a</name>
    ///   <devices>
    ///     <disk type='vhostuser' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source type='unix' path=''>
    ///         <reconnect enabled='yes' timeout='10'/>
    ///       </source>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='vhostuser' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source type='unix' path=''>
    ///         <reconnect enabled='yes' timeout='10'/>
    ///       </source>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```args,reported,hidden
    /// qemu-storage-daemon \
    ///   --blockdev driver=file,node-name=a,filename=/srv/a.img \
    ///   --export type=vhost-user-blk,id=e,node-name=a,addr.type=unix,addr.path=/run/a.sock,writable=on &
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=m \
    ///   -object memory-backend-memfd,id=m,size=1G,share=on -m 1G \
    ///   -chardev socket,id=c,path=/run/a.sock -device vhost-user-blk-pci,chardev=c \
    ///   -blockdev driver=file,node-name=b,filename=/srv/a.img -device virtio-blk-pci,drive=b
    /// ```
    name: "duplicate-disk-source",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by("QEMU 5.2, 7.2, 10.0 and 11.1", "Failed to get \"write\" lock", "block/file-posix.c, raw_check_lock_bytes"),
        Evidence::measured("a loop device and its file, both read-write, start without a message", "two QEMUs of the same version, 5.2, 7.2, 10.0 and 11.1"),
        Evidence::measured("QEMU with two vhost-user-blk disks on one socket of qemu-storage-daemon does not get to its monitor in 10 s", "QEMU and qemu-storage-daemon 7.2, 10.0 and 11.1"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    check_sockets(context, report);
    let chains: Vec<Chain<'_>> = chains(context).collect();
    let mut users = Users::default();
    // The first disk whose file is not known; it is reported for all of them.
    let mut unknown: Option<(FieldPath, Missing)> = None;
    for user in users_of(context, &chains) {
        let path = &*user.path;
        let what = || format!("the file or device of {path}");
        let identity = match user.is_on_host {
            true => context
                .host(what)
                .and_then(|host| Context::known(host.identity(path), what)),
            false => Ok(None),
        };
        let identity = match identity {
            Ok(identity) => identity,
            Err(missing) => {
                unknown.get_or_insert((user.at, missing));
                None
            }
        };
        match users.conflict(&user, identity.as_ref()) {
            Some(other) => report_same(report, &user, other),
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
            for (container, how) in containers(host, &user.path) {
                if let Some(other) = users.in_container(user, &container) {
                    report_overlap(report, user, other, how);
                }
            }
        }
    }
}

fn check_sockets(context: &Context<'_>, report: &mut Report) {
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (index, disk) in context.disks() {
        let BackendSource::VhostUser(socket) = &disk.backend.source else {
            continue;
        };
        if socket.path.is_empty() {
            continue;
        }
        let other = *first.entry(&socket.path).or_insert(index);
        if other == index {
            continue;
        }
        let at = |index| FieldPath::Disk(index, DiskField::Source);
        let label = || phrase!("{disk} connects to it here");
        let title = phrase!(
            "{other} and {disk} connect to the same vhost-user socket: {path}",
            other = DiskName(other),
            path = quoted(socket.path.clone()),
        );
        report
            .finding(at(index), title)
            .label(label())
            .related(at(other), label())
            .note("qemu-storage-daemon serves one disk at a time, and QEMU waits for ever at start")
            .help("use a separate socket and image for each disk");
    }
}

/// The users of all images, in the order of the disks: first the configured images, then the images that headers name.
fn users_of<'a>(context: &Context<'a>, chains: &'a [Chain<'a>]) -> Vec<User<'a>> {
    let tops = context.disks();
    let tops = tops.filter_map(|(index, disk)| Some((index, disk, disk.backend.opened_image()?)));
    let configured = tops.flat_map(|(index, disk, top)| {
        let opened = top.chain().enumerate().flat_map(move |(depth, image)| {
            let data = image
                .host_path()
                .and_then(|path| data_file(context, image, path));
            let data = data.map(|path| (depth, ImageField::DataFile, without_repeats(path)));
            name_of(image)
                .map(|(field, path)| (depth, field, path))
                .into_iter()
                .chain(data)
        });
        opened.map(move |(depth, field, path)| User {
            index,
            depth,
            at: FieldPath::Image(index, depth, field),
            disk,
            path,
            is_on_host: field != ImageField::Source,
        })
    });
    let named = chains.iter().flat_map(|chain| {
        let layers = chain.layers.iter().enumerate().skip(1);
        layers.map(|(nth, layer)| User {
            index: chain.index,
            depth: chain.written_above + nth,
            at: chain.at(),
            disk: chain.disk,
            path: without_repeats(&layer.path),
            is_on_host: true,
        })
    });
    let mut users: Vec<User<'_>> = configured.chain(named).collect();
    users.sort_by_key(|user| (user.index, user.depth));
    users
}

/// The name that two disks share if they open one image, and its field: a path of the host, or the source.
fn name_of(image: &Image) -> Option<(ImageField, Cow<'_, str>)> {
    if let Protocol::Volume(volume) = &image.protocol {
        let name = format!("{}/{}", volume.pool, volume.volume);
        return Some((ImageField::Source, name.into()));
    }
    let path = image.host_path().filter(|path| !path.is_empty())?;
    Some((ImageField::Path, without_repeats(path)))
}

/// A path without `//` and `/./`, which lead to the same file. `..` may lead elsewhere if a link precedes it.
fn without_repeats(path: &str) -> Cow<'_, str> {
    let mut names = path.strip_prefix('/').unwrap_or("a").split('/');
    if names.all(|name| !matches!(name, "" | ".")) {
        return path.into();
    }
    let names = path.split('/').filter(|name| !matches!(*name, "" | "."));
    let clean = names.fold(String::new(), |path, name| path + "/" + name);
    match clean.is_empty() {
        true => path.into(),
        false => clean.into(),
    }
}

/// A disk and the image it opens.
struct User<'a> {
    index: usize,
    /// The depth of the image in the chain of the disk.
    depth: usize,
    /// Where it is configured, or the image above it whose header names it.
    at: FieldPath,
    disk: &'a Disk,
    /// Its path, or the pool and the volume.
    path: Cow<'a, str>,
    /// False for a volume of an unknown pool.
    is_on_host: bool,
}

impl User<'_> {
    /// True if it keeps the file open for writing.
    fn writes(&self) -> bool {
        self.depth == 0 && self.disk.is_writable() && !self.disk.backend.is_transient
    }

    const fn name(&self) -> DiskName {
        DiskName(self.index)
    }

    /// A label for its place.
    fn label(&self) -> Phrase {
        match self.depth {
            0 => phrase!("{disk} opens it here"),
            _ => phrase!("{disk} uses it as a backing image"),
        }
    }

    /// True if libvirt lets several guests share the image.
    fn is_raw(&self) -> bool {
        let image = self.disk.backend.image();
        image.is_some_and(|image| image.format == Some(Format::Raw))
    }

    fn is_shareable(&self) -> bool {
        self.disk.backend.is_shareable
    }

    /// True if QEMU's locks on one file exclude the two.
    fn conflicts_with(&self, other: &User<'_>) -> bool {
        (self.writes() || other.writes()) && !(self.is_shareable() && other.is_shareable())
    }
}

/// The first user of a file in each of the four classes that locks distinguish, so that finding a conflict takes
/// four steps regardless of the number of disks.
/// They are places in [`Users::all`].
type FirstUsers = [Option<usize>; 4];

/// The users of files, by the configured path and by the file or device it leads to.
#[derive(Default)]
struct Users<'a> {
    all: Vec<User<'a>>,
    writes: bool,
    by_path: BTreeMap<Cow<'a, str>, FirstUsers>,
    by_identity: HashMap<Identity, FirstUsers>,
}

impl<'a> Users<'a> {
    fn insert(&mut self, user: User<'a>, identity: Option<Identity>) {
        let class = usize::from(user.writes()) * 2 + usize::from(user.is_shareable());
        let by_identity = identity.map(|identity| self.by_identity.entry(identity).or_default());
        for first in [
            Some(self.by_path.entry(user.path.clone()).or_default()),
            by_identity,
        ]
        .into_iter()
        .flatten()
        {
            first[class].get_or_insert(self.all.len());
        }
        self.all.push(user);
    }

    /// The first earlier disk that conflicts with this one.
    fn conflict(&self, user: &User<'_>, identity: Option<&Identity>) -> Option<&User<'a>> {
        let by_identity = identity.and_then(|identity| self.by_identity.get(identity));
        self.first_conflict(user, [self.by_path.get(&user.path), by_identity])
    }

    /// The first disk that conflicts with `user` and opens this container of its data.
    fn in_container(&self, user: &User<'_>, container: &Container<'_>) -> Option<&User<'a>> {
        let by_path = container.path.and_then(|path| self.by_path.get(path));
        let by_identity = container.identity.as_ref();
        let by_identity = by_identity.and_then(|identity| self.by_identity.get(identity));
        self.first_conflict(user, [by_path, by_identity])
    }

    fn first_conflict(
        &self,
        user: &User<'_>,
        places: [Option<&FirstUsers>; 2],
    ) -> Option<&User<'a>> {
        let candidates = places.into_iter().flatten().flatten().flatten();
        candidates
            .map(|nth| &self.all[*nth])
            .filter(|other| other.index != user.index && user.conflicts_with(other))
            .min_by_key(|other| other.index)
    }
}

/// The storage that contains the data of a path.
struct Container<'a> {
    path: Option<&'a str>,
    identity: Option<Identity>,
}

/// The containers of a path's data, with their relation to it.
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

fn report_same(report: &mut Report, user: &User<'_>, other: &User<'_>) {
    let title = if user.path == other.path {
        phrase!(
            "{other} and {disk} open the same image: {path}",
            other = other.name(),
            path = quoted(user.path.clone().into_owned()),
        )
    } else {
        phrase!(
            "{other} and {disk} open the same image as {first} and {second}",
            other = other.name(),
            first = quoted(other.path.clone().into_owned()),
            second = quoted(user.path.clone().into_owned()),
        )
    };
    let finding = report.finding(user.at, title);
    finding
        .label(user.label())
        .related(other.at, other.label())
        .note(who_writes(user, other));
    if user.path != other.path {
        finding.note("the host facts show one file or device with both names");
    }
    if user.is_shareable() != other.is_shareable() {
        finding.note("only one of the two is shareable, which is not enough");
    }
    let shareable = FieldPath::Disk(user.index, DiskField::Shareable);
    finding
        .note("QEMU locks the image for writing and does not start: `Failed to get \"write\" lock`")
        .help(match user.is_raw() && other.is_raw() {
            true => phrase!(
                "use a separate image for each disk; if the guest's software coordinates writes, \
                 as a cluster file system does, use {shareable} on both",
                shareable = setting(shareable, FieldValue::Set),
            ),
            false => "use a separate image for each disk".into(),
        });
}

fn report_overlap(report: &mut Report, user: &User<'_>, other: &User<'_>, how: &'static str) {
    report
        .finding(
            user.at,
            phrase!(
                "{disk} opens {path}, {how} the storage of {other}",
                path = quoted(user.path.clone().into_owned()),
                how,
                other = other.name(),
            ),
        )
        .label(phrase!("{how} {path}", how, path = quoted(other.path.clone().into_owned())))
        .related(other.at, other.label())
        .note(who_writes(user, other))
        .note("QEMU locks two different inodes, so the guest starts and the disks overwrite each other")
        .help("use separate storage for each disk");
}

fn who_writes(user: &User<'_>, other: &User<'_>) -> Phrase {
    let (writer, reader) = match (other.writes(), user.writes()) {
        (true, true) => return "both can write".into(),
        (true, false) => (other, user),
        (false, _) => (user, other),
    };
    phrase!(
        "{writer} can write; {reader} expects its data not to change",
        writer = writer.name(),
        reader = reader.name(),
    )
}
