//! The collector and the verdict on real filesystems on loop devices.
//!
//! Needs root, mkfs and loop devices. Without them each test prints the reason and passes; with `VMDISK_REAL=require`
//! it fails instead.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use vmdisk_collect::{Request, collect};
use vmdisk_facts::btrfs_regime::{self, Write};
use vmdisk_facts::path::{DioAlign, Directory, File, TrialOutcome};
use vmdisk_facts::{
    Buffered, DirectIoBasis, DirectIoEffect, Fact, Facts, FsKind, HostIndex, Reason, Version,
};
use vmdisk_testing::{LoopDevice, needed, run};

/// A directory with filesystems that are unmounted on drop.
struct Mounted {
    loops: Vec<LoopDevice>,
    directory: tempfile::TempDir,
    mounts: Vec<PathBuf>,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for point in self.mounts.iter().rev() {
            let unmounted = Command::new("umount").arg(point).output();
            if !unmounted.is_ok_and(|output| output.status.success()) {
                // A thread that timed out may still use the mount, which then disappears with the thread.
                let _ = Command::new("umount").arg("--lazy").arg(point).status();
            }
        }
    }
}

impl Mounted {
    fn new() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("not root".to_owned());
        }
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        Ok(Self {
            loops: Vec::new(),
            directory,
            mounts: Vec::new(),
        })
    }

    /// Returns a path inside the directory of this test.
    fn path(&self, name: &str) -> String {
        // The real path, because mountinfo contains no links.
        let real = fs::canonicalize(self.directory.path()).expect("the temporary directory exists");
        real.join(name)
            .to_str()
            .expect("temporary paths are UTF-8")
            .to_owned()
    }

    fn device(&mut self, name: &str, megabytes: u64, extra: &[&str]) -> Result<String, String> {
        let file = self.path(name);
        let made = LoopDevice::new(Path::new(&file), megabytes << 20, extra)?;
        let device = made.path().to_owned();
        self.loops.push(made);
        Ok(device)
    }

    fn mount(&mut self, name: &str, arguments: &[&str]) -> Result<String, String> {
        let point = self.path(name);
        fs::create_dir_all(&point).map_err(|error| error.to_string())?;
        run("mount", &[arguments, &[&point]].concat())?;
        self.mounts.push(PathBuf::from(&point));
        Ok(point)
    }

    /// Creates a filesystem on a new device of this size and mounts it.
    fn made(&mut self, mkfs: &[&str], megabytes: u64, options: &str) -> Result<String, String> {
        let device = self.device("disk.img", megabytes, &[])?;
        let (program, arguments) = mkfs.split_first().expect("a program to run");
        run(program, &[arguments, &[device.as_str()]].concat())?;
        self.mount("mnt", &["-o", options, &device])
    }
}

fn facts_of(paths: &[&str], probe: Option<&str>) -> Facts {
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.paths = paths.iter().map(PathBuf::from).collect();
    request.probe_direct_io = probe.map(PathBuf::from);
    let facts = collect(&request);
    // Collected facts round-trip through a facts file.
    let read = Facts::parse(&facts.to_json()).expect("collected facts are readable");
    assert_eq!(read.warnings, []);
    assert_eq!(read.facts, facts);
    facts
}

fn verdict(facts: &Facts, path: &str) -> (DirectIoEffect, DirectIoBasis) {
    let direct = HostIndex::new(facts).direct_io(path);
    let direct = direct
        .settled()
        .unwrap_or_else(|unknown| panic!("{path}: {unknown}"));
    let direct = direct.expect("direct I/O is never absent");
    (direct.verdict, direct.confidence)
}

fn directory<'a>(facts: &'a Facts, path: &str) -> &'a Directory {
    let found = facts.dirs.iter().find(|directory| directory.path == path);
    found.expect("the directory was collected")
}

fn file<'a>(facts: &'a Facts, path: &str) -> &'a File {
    let found = facts.files.iter().find(|file| file.path == path);
    found.expect("the file was collected")
}

fn kind_of(facts: &Facts, path: &str) -> Fact<FsKind> {
    HostIndex::new(facts)
        .filesystem_of(path)
        .map(|filesystem| filesystem.kind.clone())
}

fn write(path: &str) {
    fs::write(path, vec![7_u8; 128 * 1024]).expect("the mount is writable");
}

/// Returns the table's verdicts for this kernel: for files with checksums, and for files without on a redundant profile.
fn by_the_table(facts: &Facts) -> (DirectIoEffect, DirectIoEffect) {
    let kernel = facts
        .kernel
        .version
        .value()
        .expect("this host has a kernel");
    let vendor = facts.kernel.vendor.value().map(String::as_str);
    let row = btrfs_regime::regime(*kernel, vendor)
        .known()
        .expect("a kernel the table knows");
    let of = |write: Write, direct: DirectIoEffect, why: Buffered| match write {
        Write::Direct => direct,
        Write::Buffered => DirectIoEffect::AcceptedButBuffered(why),
        Write::Refused | Write::Bounced | Write::NotVerified => {
            panic!("no test was written for {row:?}")
        }
    };
    (
        of(
            row.checksummed,
            DirectIoEffect::DirectUnstableChecksums,
            Buffered::BtrfsChecksums,
        ),
        of(
            row.plain_redundant,
            DirectIoEffect::DirectUnstableMirrors,
            Buffered::BtrfsRedundant,
        ),
    )
}

fn btrfs() -> Result<(Mounted, String), String> {
    let mut mounted = Mounted::new()?;
    let point = mounted.made(
        &["mkfs.btrfs", "-q", "-f", "-d", "single"],
        256,
        "compress=zstd",
    )?;
    fs::create_dir(format!("{point}/nocow")).map_err(|error| error.to_string())?;
    run("chattr", &["+C", &format!("{point}/nocow")])?;
    run(
        "btrfs",
        &["-q", "subvolume", "create", &format!("{point}/sub")],
    )?;
    Ok((mounted, point))
}

#[test]
fn btrfs_facts_have_flags_profile_and_checksum() {
    let Some((_mounted, point)) = needed(btrfs()) else {
        return;
    };
    let path = |name: &str| format!("{point}/{name}");
    let [plain, nocow, sub] = [path("a.img"), path("nocow/b.img"), path("sub/c.img")];
    for image in [&plain, &nocow, &sub] {
        write(image);
    }
    let new = path("nocow/new.img");
    let facts = facts_of(&[&plain, &nocow, &sub, &new], None);
    let index = HostIndex::new(&facts);
    let filesystem = index
        .filesystem_of(&plain)
        .known()
        .expect("the filesystem was collected");
    assert_eq!(filesystem.kind, FsKind::Btrfs);
    let btrfs = filesystem.btrfs.value().expect("sysfs tells of btrfs");
    assert_eq!(btrfs.data_profile, Fact::Known(vec!["single".to_owned()]));
    assert_eq!(btrfs.checksum, Fact::Known("crc32c".to_owned()));
    // In a subvolume stat(2) returns another device than mountinfo.
    let other = index
        .filesystem_of(&sub)
        .known()
        .expect("so was the subvolume's");
    assert_eq!(other.id, filesystem.id);
    assert_eq!(index.nocow(&plain), Fact::Known(false));
    assert_eq!(
        index.nocow(&nocow),
        Fact::Known(true),
        "a new file inherits the flag"
    );
    assert_eq!(
        index.nocow(&new),
        Fact::Known(true),
        "and a file to come will"
    );
    let mount = index
        .mount_of(&plain)
        .known()
        .expect("the mount was collected");
    assert!(mount.has_option("compress").is_true());
    assert!(
        !index
            .leaves_of(&plain)
            .known()
            .expect("btrfs names its devices")
            .is_empty()
    );
    let holds = |points: &Vec<String>| points.contains(&point);
    assert!(
        facts
            .blockdevs
            .iter()
            .any(|device| device.mounted_at.value().is_some_and(holds))
    );
    let table = DirectIoBasis::FromVersionTable;
    assert_eq!(verdict(&facts, &plain), (by_the_table(&facts).0, table));
    assert_eq!(verdict(&facts, &new), (DirectIoEffect::Direct, table));
}

#[test]
fn a_trial_on_btrfs_agrees_with_the_table() {
    let Some((_mounted, point)) = needed(btrfs()) else {
        return;
    };
    let nocow = format!("{point}/nocow");
    let facts = facts_of(&[], Some(&nocow));
    assert_eq!(
        directory(&facts, &nocow).dio.nowait_overwrite,
        Fact::Known(TrialOutcome::Ok)
    );
    let probed = (DirectIoEffect::Direct, DirectIoBasis::Probed);
    assert_eq!(verdict(&facts, &format!("{nocow}/x.img")), probed);
    let facts = facts_of(&[], Some(&point));
    let waits = Fact::Known(TrialOutcome::Failed("EAGAIN".to_owned()));
    assert_eq!(directory(&facts, &point).dio.nowait_overwrite, waits);
    assert_eq!(
        verdict(&facts, &format!("{point}/x.img")).0,
        by_the_table(&facts).0
    );
    let left = fs::read_dir(&nocow).expect("readable").count();
    assert_eq!(left, 0, "the trial leaves nothing behind");
}

#[test]
fn mirrored_btrfs_buffers_where_its_kernel_does() {
    let made = || {
        let mut mounted = Mounted::new()?;
        let first = mounted.device("one.img", 256, &[])?;
        let second = mounted.device("two.img", 256, &[])?;
        let raid1 = ["-q", "-f", "-d", "raid1", "-m", "raid1", &first, &second];
        run("mkfs.btrfs", &raid1)?;
        let point = mounted.mount("mnt", &[&first])?;
        run("chattr", &["+C", &point])?;
        Ok((mounted, point))
    };
    let Some((_mounted, point)) = needed(made()) else {
        return;
    };
    let image = format!("{point}/a.img");
    let facts = facts_of(&[&image], Some(&point));
    let index = HostIndex::new(&facts);
    let filesystem = index
        .filesystem_of(&image)
        .known()
        .expect("the filesystem was collected");
    let profile = filesystem
        .btrfs
        .value()
        .map(|btrfs| btrfs.data_profile.clone());
    assert_eq!(profile, Some(Fact::Known(vec!["raid1".to_owned()])));
    let devices = index.devices_of(filesystem).known().unwrap().len();
    assert_eq!(
        devices, 2,
        "mountinfo shows one of the two devices, sysfs both"
    );
    let expected = by_the_table(&facts).1;
    assert_eq!(verdict(&facts, &image).0, expected);
    // A direct overwrite has to wait exactly if the table's verdict is buffered.
    let waited = directory(&facts, &point)
        .dio
        .nowait_overwrite
        .value()
        .is_some_and(|outcome| outcome.failed_with("EAGAIN"));
    assert_eq!(
        waited,
        matches!(expected, DirectIoEffect::AcceptedButBuffered(_))
    );
}

#[test]
fn xfs_gives_its_alignment() {
    let made = || {
        let mut mounted = Mounted::new()?;
        let point = mounted.made(&["mkfs.xfs", "-q", "-f"], 320, "defaults")?;
        Ok((mounted, point))
    };
    let Some((_mounted, point)) = needed(made()) else {
        return;
    };
    let image = format!("{point}/a.img");
    write(&image);
    let facts = facts_of(&[&image], Some(&point));
    assert_eq!(
        file(&facts, &image).dio.dioalign,
        Fact::Known(DioAlign::Set)
    );
    assert_eq!(
        file(&facts, &image).nocow,
        Fact::Absent,
        "XFS has no such flag"
    );
    assert_eq!(file(&facts, &image).size, Fact::Known(128 * 1024));
    let direct = HostIndex::new(&facts)
        .direct_io(&image)
        .known()
        .expect("decided");
    assert_eq!(
        (direct.verdict, direct.confidence),
        (DirectIoEffect::Direct, DirectIoBasis::Observed)
    );
    assert_eq!(
        direct.alignment.map(|alignment| alignment.offset),
        Some(512)
    );
    assert_eq!(
        directory(&facts, &point).dio.w512,
        Fact::Known(TrialOutcome::Ok)
    );
}

#[test]
fn a_filesystem_of_4k_sectors_refuses_512_bytes() {
    let made = || {
        let mut mounted = Mounted::new()?;
        let device = mounted.device("disk.img", 320, &["--sector-size", "4096"])?;
        run("mkfs.xfs", &["-q", "-f", "-s", "size=4096", &device])?;
        let point = mounted.mount("mnt", &[&device])?;
        Ok((mounted, point, device))
    };
    let Some((_mounted, point, device)) = needed(made()) else {
        return;
    };
    let image = format!("{point}/a.img");
    write(&image);
    let facts = facts_of(&[&image, &device], Some(&point));
    let index = HostIndex::new(&facts);
    let direct = index.direct_io(&image).known().expect("decided");
    assert_eq!(
        direct.alignment.map(|alignment| alignment.offset),
        Some(4096)
    );
    let refused = Fact::Known(TrialOutcome::Failed("EINVAL".to_owned()));
    assert_eq!(directory(&facts, &point).dio.w512, refused);
    let block = index
        .block_device(&device)
        .known()
        .expect("the device was collected");
    assert_eq!(block.queue.logical, Fact::Known(4096));
    assert_eq!(block.mounted_at, Fact::Known(vec![point]));
    let below = index.walk_down(block);
    assert!(
        below.len() > 1,
        "under the loop device is the device that holds its file"
    );
}

#[test]
fn ext4_with_data_journal_takes_o_direct_and_ignores_it() {
    let made = |options: &str| {
        let mut mounted = Mounted::new()?;
        let point = mounted.made(&["mkfs.ext4", "-q", "-F"], 64, options)?;
        Ok((mounted, point))
    };
    let Some((_mounted, point)) = needed(made("data=journal")) else {
        return;
    };
    let image = format!("{point}/a.img");
    write(&image);
    let facts = facts_of(&[&image], None);
    let filesystem = HostIndex::new(&facts).filesystem_of(&image).known();
    let mode = filesystem
        .expect("the filesystem was collected")
        .ext4
        .value()
        .map(|ext4| ext4.data_mode.clone());
    assert_eq!(mode, Some(Fact::Known("journal".to_owned())));
    let journal = DirectIoEffect::AcceptedButBuffered(Buffered::Ext4DataJournal);
    assert_eq!(verdict(&facts, &image), (journal, DirectIoBasis::Observed));
    let Some((_mounted, point)) = needed(made("data=ordered")) else {
        return;
    };
    let image = format!("{point}/a.img");
    write(&image);
    assert_eq!(
        verdict(&facts_of(&[&image], None), &image).0,
        DirectIoEffect::Direct
    );
}

#[test]
fn a_default_data_mode_is_detected() {
    let made = || {
        let mut mounted = Mounted::new()?;
        let device = mounted.device("disk.img", 64, &[])?;
        run("mkfs.ext4", &["-q", "-F", &device])?;
        run("tune2fs", &["-o", "journal_data", &device])?;
        let point = mounted.mount("mnt", &[&device])?;
        Ok((mounted, point))
    };
    let Some((_mounted, point)) = needed(made()) else {
        return;
    };
    let facts = facts_of(&[&point], None);
    let index = HostIndex::new(&facts);
    let mount = index
        .mount_of(&point)
        .known()
        .expect("the mount was collected");
    assert_eq!(
        mount.has_option("data"),
        Fact::Known(false),
        "mountinfo hides it"
    );
    // For a new file there is no statx(2).
    let journal = DirectIoEffect::AcceptedButBuffered(Buffered::Ext4DataJournal);
    let new = format!("{point}/new.img");
    assert_eq!(verdict(&facts, &new), (journal, DirectIoBasis::Observed));
}

#[test]
fn tmpfs_and_an_overlay_over_it_are_the_page_cache() {
    let made = || {
        let mut mounted = Mounted::new()?;
        let tmpfs = mounted.mount("tmpfs", &["-t", "tmpfs", "none"])?;
        for name in ["lower", "upper", "work"] {
            fs::create_dir(format!("{tmpfs}/{name}")).map_err(|error| error.to_string())?;
        }
        let options = format!("lowerdir={tmpfs}/lower,upperdir={tmpfs}/upper,workdir={tmpfs}/work");
        let overlay = mounted.mount("overlay", &["-t", "overlay", "-o", &options, "none"])?;
        Ok((mounted, tmpfs, overlay))
    };
    let Some((_mounted, tmpfs, overlay)) = needed(made()) else {
        return;
    };
    let [one, two] = [format!("{tmpfs}/a.img"), format!("{overlay}/b.img")];
    write(&one);
    // tmpfs accepts O_DIRECT since Linux 6.6.
    let expected = |facts: &Facts| match facts.kernel.version.value() {
        Some(version) if *version < Version(6, 6, 0) => DirectIoEffect::Unsupported,
        Some(_) | None => DirectIoEffect::AcceptedButBuffered(Buffered::Tmpfs),
    };
    let facts = facts_of(&[&one], None);
    assert_eq!(verdict(&facts, &one).0, expected(&facts));
    // The upper directory is decisive, and is collected automatically.
    let facts = facts_of(&[&two], None);
    assert_eq!(verdict(&facts, &two).0, expected(&facts));
    assert_eq!(kind_of(&facts, &two), Fact::Known(FsKind::Overlay));
}

#[test]
fn a_filesystem_without_direct_io_refuses_the_trial() {
    let made = || {
        let mut mounted = Mounted::new()?;
        let point = mounted.mount("mnt", &["-t", "ramfs", "none"])?;
        Ok((mounted, point))
    };
    let Some((_mounted, point)) = needed(made()) else {
        return;
    };
    let facts = facts_of(&[], Some(&point));
    let refused = Fact::Known(TrialOutcome::Failed("EINVAL".to_owned()));
    assert_eq!(directory(&facts, &point).dio.open, refused);
    let image = format!("{point}/a.img");
    assert_eq!(
        verdict(&facts, &image),
        (DirectIoEffect::Unsupported, DirectIoBasis::Probed)
    );
}

#[test]
fn the_topmost_of_two_mounts_on_one_point_counts() {
    let made = || {
        let mut mounted = Mounted::new()?;
        let point = mounted.mount("mnt", &["-t", "tmpfs", "none"])?;
        let device = mounted.device("disk.img", 64, &[])?;
        run("mkfs.ext4", &["-q", "-F", &device])?;
        mounted.mount("mnt", &[&device])?;
        Ok((mounted, point))
    };
    let Some((_mounted, point)) = needed(made()) else {
        return;
    };
    let image = format!("{point}/new.img");
    assert_eq!(
        kind_of(&facts_of(&[&image], None), &image),
        Fact::Known(FsKind::Ext4)
    );
}

#[test]
fn an_image_with_unusual_characters_is_found_through_a_link() {
    let made = || {
        let mut mounted = Mounted::new()?;
        let point = mounted.mount("a b\\c", &["-t", "tmpfs", "none"])?;
        Ok((mounted, point))
    };
    let Some((mounted, point)) = needed(made()) else {
        return;
    };
    let link = mounted.path("link");
    std::os::unix::fs::symlink(&point, &link).expect("a link can be made");
    let image = format!("{point}/ü,\".img");
    write(&image);
    let through = format!("{link}/ü,\".img");
    let facts = facts_of(&[&image, &through], None);
    let index = HostIndex::new(&facts);
    assert_eq!(
        index.mount_of(&through).map(|mount| mount.point.clone()),
        Fact::Known(point)
    );
    assert!(index.identity(&image).is_known());
    assert_eq!(index.identity(&image), index.identity(&through));
}

#[test]
fn an_unreadable_image_is_unknown_and_not_absent() {
    // Root may read everything, so another user is needed.
    if needed(Mounted::new()).is_none() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let open = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    open(directory.path(), 0o755);
    let image = directory.path().join("a.img");
    fs::write(&image, "x").expect("it is ours");
    open(&image, 0o600);
    let Some(example) = needed(example().ok_or_else(|| "the example was not built".to_owned()))
    else {
        return;
    };
    // The example is run from a copy that every user can access.
    let copy = directory.path().join("facts");
    fs::copy(&example, &copy).expect("the example can be copied");
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .args([&copy, &image]);
    let Some(output) = needed(command.output().map_err(|error| error.to_string())) else {
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let facts = Facts::parse(&String::from_utf8_lossy(&output.stdout))
        .expect("readable facts")
        .facts;
    let file = file(&facts, image.to_str().expect("temporary paths are UTF-8"));
    assert_eq!(file.present, Fact::Known(true));
    assert_eq!(file.size, Fact::Known(1), "stat(2) needs no right to open");
    assert!(file.dio.dioalign.is_known(), "nor does statx(2)");
    let reason = file
        .image
        .clone()
        .settled()
        .map_err(|unknown| unknown.reason().clone());
    assert_eq!(reason, Err(Reason::Permission));
    assert_eq!(facts.collector.privileged, Fact::Known(false));
}

/// Returns the path of the example, which cargo builds for the tests.
fn example() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let target = own.parent().and_then(Path::parent)?;
    Some(target.join("examples/facts")).filter(|path| path.exists())
}

/// A FUSE filesystem whose program never answers: every access hangs until it is unmounted.
fn silent_fuse() -> Result<(Mounted, String, fs::File), String> {
    use rustix::fd::AsRawFd;
    let mut mounted = Mounted::new()?;
    let fuse = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse");
    let fuse = fuse.map_err(|error| format!("/dev/fuse: {error}"))?;
    // mount(8) passes the descriptor to the kernel, so it must inherit it.
    rustix::io::fcntl_setfd(&fuse, rustix::io::FdFlags::empty())
        .map_err(|error| error.to_string())?;
    let options = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0",
        fuse.as_raw_fd()
    );
    let point = mounted.mount("mnt", &["-i", "-t", "fuse", "-o", &options, "none"])?;
    // No other process may keep it open: closing it ends the hang.
    rustix::io::fcntl_setfd(&fuse, rustix::io::FdFlags::CLOEXEC)
        .map_err(|error| error.to_string())?;
    Ok((mounted, point, fuse))
}

#[test]
fn a_hung_mount_times_out_and_the_rest_is_collected() {
    let Some((mounted, point, fuse)) = needed(silent_fuse()) else {
        return;
    };
    let healthy = mounted.path("healthy.img");
    write(&healthy);
    let paths = [
        format!("{point}/a.img"),
        format!("{point}/b.img"),
        healthy.clone(),
    ];
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.paths = paths.iter().map(PathBuf::from).collect();
    request.timeout = std::time::Duration::from_millis(200);
    let started = std::time::Instant::now();
    let facts = collect(&request);
    let took = started.elapsed();
    // Closing the device ends waiting accesses, so that unmounting does not block.
    drop(fuse);
    assert!(took.as_secs() < 10, "{took:?}");
    for path in &paths[..2] {
        let reason = file(&facts, path)
            .image
            .clone()
            .settled()
            .map_err(|unknown| unknown.reason().clone());
        assert_eq!(reason, Err(Reason::Timeout), "{path}");
    }
    assert_eq!(file(&facts, &healthy).present, Fact::Known(true));
}

#[test]
fn a_running_writer_is_detected_by_its_locks() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let image = directory.path().join("a.img");
    let path = image
        .to_str()
        .expect("temporary paths are UTF-8")
        .to_owned();
    let made = run("qemu-img", &["create", "-q", "-f", "qcow2", &path, "16M"]);
    if needed(made).is_none() {
        return;
    }
    let writer = |path: &str| {
        file(&facts_of(&[path], None), path)
            .lock
            .value()
            .map(|lock| lock.writer.clone())
    };
    assert_eq!(writer(&path), Some(Fact::Known(false)));
    let mut qemu = Command::new("qemu-io");
    // It waits for commands with the image open for writing.
    qemu.args(["-f", "qcow2", &path])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null());
    let Some(mut qemu) = needed(qemu.spawn().map_err(|error| error.to_string())) else {
        return;
    };
    let timeout = std::time::Instant::now();
    let mut seen = writer(&path);
    while seen != Some(Fact::Known(true)) && timeout.elapsed().as_secs() < 10 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        seen = writer(&path);
    }
    let facts = facts_of(&[&path], None);
    let _ = qemu.kill();
    let _ = qemu.wait();
    assert_eq!(seen, Some(Fact::Known(true)));
    let image = file(&facts, &path)
        .image
        .value()
        .expect("a header can be read while it is in use");
    assert_eq!(image.format, Fact::Known("qcow2".to_owned()));
    assert_eq!(image.virtual_size, Fact::Known(16 << 20));
}

#[test]
fn shared_and_preallocated_extents_are_reported() {
    let Some((_mounted, point)) = needed(btrfs()) else {
        return;
    };
    let path = |name: &str| format!("{point}/{name}");
    let [alone, shared, clone, reserved] = [
        path("nocow/alone.img"),
        path("shared.img"),
        path("clone.img"),
        path("nocow/reserved.img"),
    ];
    write(&alone);
    write(&shared);
    let made = run("cp", &["--reflink=always", &shared, &clone])
        .and_then(|_| run("fallocate", &["-l", "1048576", &reserved]))
        .and_then(|_| run("sync", &["-f", &point]));
    if needed(made).is_none() {
        return;
    }
    let facts = facts_of(&[&alone, &shared, &clone, &reserved], None);
    let told = |path: &str| {
        let file = file(&facts, path);
        assert_eq!(file.extents_capped, Fact::Known(false), "{path}");
        (file.shared_extents.clone(), file.unwritten.clone())
    };
    let (yes, no) = (Fact::Known(true), Fact::Known(false));
    assert_eq!(told(&alone), (no.clone(), Fact::Known(0)));
    assert_eq!(told(&shared), (yes.clone(), Fact::Known(0)));
    assert_eq!(told(&clone), (yes, Fact::Known(0)));
    assert_eq!(told(&reserved), (no, Fact::Known(1 << 20)));
    assert_eq!(file(&facts, &alone).extents, Fact::Known(1));
}

#[test]
fn a_filesystem_without_fiemap_has_no_extents() {
    let Some((_mounted, point)) = needed(Mounted::new().and_then(|mut mounted| {
        let point = mounted.mount("mnt", &["-t", "tmpfs", "tmpfs"])?;
        Ok((mounted, point))
    })) else {
        return;
    };
    let image = format!("{point}/a.img");
    write(&image);
    let facts = facts_of(&[&image], None);
    assert_eq!(file(&facts, &image).extents, Fact::Absent);
    assert_eq!(file(&facts, &image).shared_extents, Fact::Absent);
}

/// Returns an access list that grants one user all permissions, like setfacl for `user:UID:rwx`.
fn list_for(uid: u32) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    let none = u32::MAX;
    for (tag, bits, number) in [
        (0x01_u16, 7_u16, none),
        (0x02, 7, uid),
        (0x04, 0, none),
        (0x10, 7, none),
        (0x20, 0, none),
    ] {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(bits.to_le_bytes());
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

#[test]
fn a_directory_that_qemus_user_cannot_search_is_named() {
    let user = facts_of(&[], None)
        .libvirt
        .and_then(|libvirt| libvirt.qemu_user)
        .known()
        .and_then(|user| user.uid.known())
        .filter(|uid| *uid != 0);
    let Some(uid) = needed(user.ok_or_else(|| "libvirt has no user for QEMU".to_owned())) else {
        return;
    };
    let Some(mounted) = needed(Mounted::new()) else {
        return;
    };
    let (above, private) = (mounted.path(""), mounted.path("private"));
    let (directory, image) = (
        format!("{private}/images"),
        format!("{private}/images/a.img"),
    );
    fs::create_dir_all(&directory).expect("a folder can be made");
    fs::write(&image, [7; 4096]).expect("a file can be written");
    let allow = |path: &str, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    allow(&above, 0o755);
    allow(&private, 0o700);
    allow(&directory, 0o755);
    allow(&image, 0o644);
    let access = || {
        let facts = facts_of(&[&image], None);
        file(&facts, &image)
            .qemu_access
            .clone()
            .known()
            .expect("QEMU's user is known")
    };
    let stopped = access();
    assert_eq!(stopped.search, Fact::Known(false));
    assert_eq!(stopped.stopped_at, Fact::Known(private.clone()));
    assert_eq!(
        stopped.read,
        Fact::Known(true),
        "the file itself may be read"
    );
    assert_eq!(stopped.write, Fact::Known(false));
    // As an administrator would grant access.
    let set = rustix::fs::setxattr(
        &private,
        "system.posix_acl_access",
        &list_for(uid),
        rustix::fs::XattrFlags::empty(),
    );
    if needed(set.map_err(|error| format!("no access lists there: {error}"))).is_none() {
        return;
    }
    let allowed = access();
    assert_eq!(allowed.search, Fact::Known(true));
    assert_eq!(allowed.stopped_at, Fact::Absent);
}
