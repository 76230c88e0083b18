//! The only program of the guest: loads drivers, runs the job, and reports to the host.
//!
//! It is this program, run as process 1.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::mount::MountFlags;
use rustix::system::RebootCommand;

use super::fill;
use super::message::{DiskName, GuestJob, JOB_PATH, Message, Outcome, PLACEHOLDER, PORT, Task};
use crate::engines::counters::{flushes_of, write_cache};
use crate::engines::fio;
use crate::engines::noise::Noise;
use crate::{
    Amount, Direction, InstallReplay, Latency, Load, Measurement, Semantics, Workload, WriteCache,
};

/// Returns true if this process is process 1 of a measuring guest.
pub fn is_first_program() -> bool {
    rustix::process::getpid().as_raw_nonzero().get() == 1 && Path::new("/").join(JOB_PATH).is_file()
}

/// Runs the job, reports to the host, and powers the guest off; call it if [`is_first_program`] is true.
///
/// # Panics
/// Never; it does not return.
pub fn run_as_first_program() -> ! {
    let _ = measure_all();
    rustix::fs::sync();
    loop {
        // An error cannot be reported here; the host has a timeout.
        let _ = rustix::system::reboot(RebootCommand::PowerOff);
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn measure_all() -> std::io::Result<()> {
    for (kind, place) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
    ] {
        fs::create_dir_all(place)?;
        // The kernel may have mounted /dev already.
        let _ = rustix::mount::mount(kind, place, kind, MountFlags::empty(), None);
    }
    // fio needs shared memory.
    fs::create_dir_all("/dev/shm")?;
    let _ = rustix::mount::mount("tmpfs", "/dev/shm", "tmpfs", MountFlags::empty(), None);
    let not_loaded = load_modules();
    let mut port = port()?;
    let job: GuestJob = serde_json::from_slice(&fs::read(Path::new("/").join(JOB_PATH))?)?;
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    send(
        &mut port,
        &Message::Hello {
            release: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            uptime_seconds: uptime
                .split(' ')
                .next()
                .and_then(|word| word.parse().ok())
                .unwrap_or(0.0),
            not_loaded,
            control_iops: control(),
        },
    )?;
    let serials: Vec<&str> = job
        .tasks
        .iter()
        .filter_map(|task| match &task.disk {
            DiskName::Serial(serial) => Some(serial.as_str()),
            DiskName::TheOther => None,
        })
        .collect();
    for (index, task) in job.tasks.iter().enumerate() {
        // The host answers when the disks are idle and cold.
        wait(&mut port)?;
        let ramped = |port: &mut File| {
            rustix::fs::sync();
            send(port, &Message::Ramped { task: index })?;
            wait(port)
        };
        let outcome = match measure(task, &serials, || ramped(&mut port)) {
            Ok(measured) => Outcome::Measured(measured),
            Err(error) => Outcome::Failed(error),
        };
        rustix::fs::sync();
        send(
            &mut port,
            &Message::Done {
                task: index,
                outcome,
            },
        )?;
    }
    send(&mut port, &Message::End)?;
    // The host queries QEMU, and then ends it.
    std::thread::sleep(Duration::from_secs(30));
    Ok(())
}

/// Loads the modules in the order of their names, and returns the modules that failed to load.
fn load_modules() -> Vec<String> {
    let mut paths: Vec<PathBuf> = fs::read_dir("/modules")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    let mut not_loaded = Vec::new();
    for path in paths {
        let loaded =
            File::open(&path).and_then(|file| Ok(rustix::system::finit_module(&file, c"", 0)?));
        if let Err(error) = loaded {
            not_loaded.push(format!("{}: {error}", path.display()));
        }
    }
    not_loaded
}

fn port() -> std::io::Result<File> {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        for entry in fs::read_dir("/sys/class/virtio-ports")
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
            let node = Path::new("/dev").join(entry.file_name());
            if name.trim() == PORT
                && let Ok(file) = OpenOptions::new().read(true).write(true).open(node)
            {
                return Ok(file);
            }
        }
        if Instant::now() > until {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for one byte of the host.
fn wait(port: &mut File) -> std::io::Result<()> {
    while port.read(&mut [0])? == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn send(port: &mut File, message: &Message) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    port.write_all(&line)
}

/// Returns reads of `/dev/zero` per second: the cost of a system call in this boot.
fn control() -> f64 {
    const TIME: Duration = Duration::from_millis(300);
    let Ok(mut zero) = File::open("/dev/zero") else {
        return 0.0;
    };
    let mut block = [0; 4096];
    let began = Instant::now();
    let mut count = 0_u64;
    while began.elapsed() < TIME {
        for _ in 0..100 {
            if zero.read(&mut block).is_err() {
                return 0.0;
            }
        }
        count += 100;
    }
    count as f64 / began.elapsed().as_secs_f64()
}

/// Measures a task; `ramped` is called between the load before the sample and the sample.
fn measure(
    task: &Task,
    serials: &[&str],
    ramped: impl FnOnce() -> std::io::Result<()>,
) -> Result<Measurement, String> {
    let disk = find(&task.disk, serials)?;
    let name = disk
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let node = PathBuf::from("/dev").join(&name);
    let seen = |file: &str| fs::read_to_string(disk.join(file)).unwrap_or_default();
    let cache = write_cache(&seen("queue/write_cache"));
    let on_disk = |job: &str| job.replace(PLACEHOLDER, &node.to_string_lossy());
    for job in &task.fills {
        with_fio(&fill::workload(0), &on_disk(job))?;
    }
    if let Some(job) = &task.ramp {
        // A short ramp may end without a request.
        let _ = with_fio(&task.workload, &on_disk(job));
        ramped().map_err(|error| format!("the host does not answer: {error}"))?;
    }
    let before = flushes_of(&seen("stat"));
    let mut measured = match (&task.workload.load, &task.fio) {
        (Load::InstallReplay(replay), _) => install(replay, &node, task.seed)?,
        (Load::Blocks(_), Some(job)) => with_fio(&task.workload, &on_disk(job))?,
        (Load::Blocks(_), None) => return Err("the task has no job of fio".to_owned()),
    };
    let semantics = &mut measured.semantics;
    semantics.write_cache = cache;
    semantics.flushes_seen = match (before, flushes_of(&seen("stat"))) {
        (Some(before), Some(after)) => Some(after.saturating_sub(before)),
        _ => None,
    };
    if let (Some(WriteCache::WriteBack), Some(asked), Some(seen)) =
        (cache, semantics.flushes_asked, semantics.flushes_seen)
        && seen < task.workload.load.least_flushes(asked)
    {
        semantics.complaints.push(format!(
            "{asked} flushes were requested, but the guest sent {seen}"
        ));
    }
    Ok(measured)
}

/// Returns the directory of a disk in sysfs, once it appears.
fn find(wanted: &DiskName, serials: &[&str]) -> Result<PathBuf, String> {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
            let disk = entry.path();
            if !disk.join("device").exists() {
                continue;
            }
            let serial = serial(&disk);
            let is_it = match wanted {
                DiskName::Serial(wanted) => serial.as_deref() == Some(wanted),
                DiskName::TheOther => {
                    !serial.is_some_and(|serial| serials.contains(&serial.as_str()))
                }
            };
            let is_ready = Path::new("/dev").join(entry.file_name()).exists();
            if is_it && is_ready {
                return Ok(disk);
            }
        }
        if Instant::now() > until {
            return Err(match wanted {
                DiskName::Serial(serial) => format!(
                    "the guest's kernel shows no disk {serial}; it may have no driver for its controller"
                ),
                DiskName::TheOther => "the guest's kernel shows no disk of the daemon".to_owned(),
            });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn serial(disk: &Path) -> Option<String> {
    for file in ["serial", "device/serial"] {
        if let Ok(text) = fs::read_to_string(disk.join(file))
            && !text.trim().is_empty()
        {
            return Some(text.trim().to_owned());
        }
    }
    // The SCSI serial number follows a header of four bytes.
    let page = fs::read(disk.join("device/vpd_pg80")).ok()?;
    let text = String::from_utf8_lossy(page.get(4..)?);
    Some(text.trim_matches(['\0', ' ']).to_owned())
}

fn with_fio(workload: &Workload, job: &str) -> Result<Measurement, String> {
    fs::write("/tmp/job.fio", job).map_err(|error| error.to_string())?;
    let output = Command::new("/bin/fio")
        .args(["--eta=never", "--output-format=json+", "job.fio"])
        .current_dir("/tmp")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("fio cannot be started: {error}"))?;
    let report = String::from_utf8_lossy(&output.stdout);
    let mut measured = fio::measurement(&report, workload).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("{error} {}", said.lines().next().unwrap_or_default())
    })?;
    measured.inputs.insert("job".to_owned(), job.to_owned());
    Ok(measured)
}

/// Creates a file system on a disk and writes many small files, each synced before it is closed, as installers do.
fn install(replay: &InstallReplay, node: &Path, seed: u64) -> Result<Measurement, String> {
    let said = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let made = Command::new("/bin/mke2fs")
        .args([
            "-q",
            "-F",
            "-t",
            "ext4",
            "-E",
            "lazy_itable_init=0,lazy_journal_init=0",
        ])
        .arg(node)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| said("mke2fs", error))?;
    if !made.status.success() {
        return Err(format!(
            "mke2fs: {}",
            String::from_utf8_lossy(&made.stderr).trim()
        ));
    }
    fs::create_dir_all("/mnt").map_err(|error| said("/mnt", error))?;
    rustix::mount::mount(node, "/mnt", "ext4", MountFlags::empty(), None)
        .map_err(|error| said("mounting ext4", error.into()))?;
    let written = write_files(replay, Path::new("/mnt"), seed);
    let unmounted = rustix::mount::unmount("/mnt", rustix::mount::UnmountFlags::empty());
    unmounted.map_err(|error| said("unmounting", error.into()))?;
    written.map_err(|error| said("writing files", error))
}

/// Writes the files of an install replay into a directory.
fn write_files(
    replay: &InstallReplay,
    directory: &Path,
    seed: u64,
) -> std::io::Result<Measurement> {
    let InstallReplay {
        files,
        smallest_bytes,
        largest_bytes,
        block_bytes,
    } = replay;
    let mut noise = Noise::new(seed);
    let mut block = vec![0; usize::try_from((*block_bytes).max(1)).unwrap_or(1 << 20)];
    let mut syncs = crate::engines::latency::Latencies::new();
    let mut bytes = 0;
    let mut operations = 0;
    let began = Instant::now();
    for number in 0..*files {
        let size =
            smallest_bytes + noise.below((largest_bytes.saturating_sub(*smallest_bytes)) + 1);
        let path = directory.join(number.to_string());
        let mut file = File::create_new(&path)?;
        let mut left = size;
        while left > 0 {
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
            noise.fill(&mut block[..now]);
            file.write_all(&block[..now])?;
            left -= now as u64;
            operations += 1;
        }
        let before = Instant::now();
        file.sync_all()?;
        syncs.add(u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX));
        bytes += size;
    }
    // Syncing the files does not sync their directory.
    File::open(directory)?.sync_all()?;
    let seconds = began.elapsed().as_secs_f64();
    let sync: Option<Latency> = syncs.latency();
    Ok(Measurement {
        write: Some(Direction::over(bytes, operations, seconds)),
        sync,
        seconds,
        semantics: Semantics {
            flushes_asked: Some(u64::from(*files)),
            ..Semantics::default()
        },
        ..Measurement::default()
    })
}

/// Returns the timeout of a task, for an emulated guest on a busy host.
pub(crate) fn limit(task: &Task) -> Duration {
    let fixed = matches!(task.workload.amount, Amount::Seconds(_));
    let least = Duration::from_secs(if fixed { 60 } else { 180 });
    let filling = 3600 * u32::try_from(task.fills.len()).unwrap_or(u32::MAX);
    least + 10 * task.workload.duration() + Duration::from_secs(filling.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_install_writes_every_file_and_counts_its_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let replay = InstallReplay {
            files: 7,
            smallest_bytes: 100,
            largest_bytes: 20_000,
            block_bytes: 4096,
        };
        let measured = write_files(&replay, directory.path(), 3).unwrap();
        let sizes: Vec<u64> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(sizes.len(), 7);
        assert!(sizes.iter().all(|size| (100..=20_000).contains(size)));
        assert_eq!(measured.write.unwrap().bytes, sizes.iter().sum::<u64>());
        assert_eq!(measured.semantics.flushes_asked, Some(7));
    }

    #[test]
    fn this_process_is_not_the_first_program_of_a_guest() {
        assert!(!is_first_program());
    }
}
