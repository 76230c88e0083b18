//! Booting the lab: QEMU emulates the machine, so no KVM and no privileges are needed.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::results::{self, Handed};

/// Timeout of a whole run on a busy machine, with one round of each preset.
const LIMIT: Duration = Duration::from_secs(1200);

/// Additional timeout for each further round.
const FURTHER_ROUND: Duration = Duration::from_secs(300);

/// The plain disks: serial number and MiB.
const VIRTIO_DISKS: &[(&str, u64)] = &[
    ("lab-a", 1200),
    ("lab-b", 1200),
    ("lab-c", 512),
    ("lab-d", 512),
];

/// The result of one boot.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The files sent by the guest.
    pub(crate) handed: Vec<Handed>,
    /// The lines printed by the guest's first program.
    pub(crate) said: Vec<String>,
    /// The duration.
    pub(crate) took: Duration,
}

/// Boots the kernel with the archive, and waits until the guest finishes.
pub(crate) fn boot(
    kernel: &Path,
    archive: &[u8],
    folder: &Path,
    rounds: u32,
) -> anyhow::Result<Outcome> {
    let limit = LIMIT + FURTHER_ROUND * rounds.saturating_sub(1);
    let initramfs = folder.join("initramfs");
    fs::write(&initramfs, archive)?;
    let console = folder.join("console");
    let port = folder.join("handed-over");
    let mut command = Command::new("qemu-system-x86_64");
    // QEMU 7.2 sets wrong flags after CMPXCHG16B, which makes kernels since 6.11 panic; this CPU does not have it.
    command
        .args([
            "-machine",
            "q35",
            "-accel",
            "tcg,thread=multi",
            "-cpu",
            "max,cx16=off",
        ])
        .args(["-smp", "2", "-m", "1536", "-nodefaults", "-no-reboot"])
        .args(["-display", "none", "-device", "virtio-rng-pci"])
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(&initramfs)
        // On a busy machine the emulated timer is late, and the kernel would consider it broken.
        .args([
            "-append",
            "console=ttyS0 quiet panic=-1 loglevel=4 no_timer_check",
        ])
        .arg("-serial")
        .arg(format!("file:{}", console.display()))
        .args(["-device", "virtio-serial-pci", "-chardev"])
        .arg(format!("file,id=port,path={}", port.display()))
        .args(["-device", "virtserialport,chardev=port,name=lab"]);
    add_disks(&mut command, folder)?;
    let _daemon = Shared::start(&mut command, folder)?;
    let began = Instant::now();
    let errors = folder.join("errors");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&errors)?)
        .spawn()
        .context("could not start qemu-system-x86_64")?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!(
                "the guest did not finish within {} s; its last output:\n{}",
                limit.as_secs(),
                last_lines(&console)
            );
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let took = began.elapsed();
    ensure!(
        status.success(),
        "QEMU failed ({status}): {}",
        fs::read_to_string(&errors).unwrap_or_default().trim()
    );
    let said: Vec<String> = String::from_utf8_lossy(&fs::read(&console)?)
        .lines()
        .filter_map(|line| Some(line.split_once("LAB ")?.1.trim_end().to_owned()))
        .collect();
    ensure!(
        said.iter().any(|line| line.starts_with("end ")),
        "the guest did not finish:\n{}",
        last_lines(&console)
    );
    Ok(Outcome {
        handed: results::parse(&fs::read(&port)?)?,
        said,
        took,
    })
}

/// The program of the daemon behind virtiofs, which needs root here.
pub(crate) fn virtiofsd() -> Option<&'static Path> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let programs = ["/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd"].map(Path::new);
    programs.into_iter().find(|it| is_root && it.exists())
}

/// The daemon behind a virtiofs file system, and the directory of this machine that it serves.
struct Shared(Child);

impl Shared {
    /// Starts it for a device of the command; `None` where it cannot be had.
    fn start(command: &mut Command, folder: &Path) -> anyhow::Result<Option<Self>> {
        let Some(program) = virtiofsd() else {
            return Ok(None);
        };
        let (socket, served) = (folder.join("virtiofs.sock"), folder.join("virtiofs"));
        fs::create_dir(&served)?;
        let daemon = Command::new(program)
            .arg(format!("--socket-path={}", socket.display()))
            .arg("-o")
            .arg(format!("source={}", served.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.join("virtiofsd"))?)
            .spawn()
            .context("could not start virtiofsd")?;
        let daemon = Self(daemon);
        let began = Instant::now();
        while !socket.exists() {
            ensure!(
                began.elapsed() < Duration::from_secs(30),
                "virtiofsd does not listen"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        // The daemon reads the guest's memory.
        command
            .args([
                "-object",
                "memory-backend-memfd,id=memory,share=on,size=1536M",
            ])
            .args(["-numa", "node,memdev=memory", "-chardev"])
            .arg(format!("socket,id=virtiofs,path={}", socket.display()))
            .args(["-device", "vhost-user-fs-pci,chardev=virtiofs,tag=lab"]);
        Ok(Some(daemon))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Adds every disk of the lab.
fn add_disks(command: &mut Command, folder: &Path) -> anyhow::Result<()> {
    for (serial, size) in VIRTIO_DISKS {
        disk(command, folder, serial, *size)?;
        command.args([
            "-device",
            &format!("virtio-blk-pci,drive={serial},serial={serial}"),
        ]);
    }
    command.args(["-device", "virtio-scsi-pci,id=scsi"]);
    disk(command, folder, "scsi-512e", 512)?;
    command.args([
        "-device",
        "scsi-hd,drive=scsi-512e,bus=scsi.0,scsi-id=0,serial=HDD0001,vendor=ACME,product=SpinDisk,wwn=0x5000c50015ea71aa,\
         rotation_rate=7200,physical_block_size=4096,logical_block_size=512",
    ]);
    disk(command, folder, "scsi-4k", 512)?;
    command.args([
        "-device",
        "scsi-hd,drive=scsi-4k,bus=scsi.0,scsi-id=1,serial=SSD0001,vendor=ACME,product=SolidDisk,wwn=0x5000c50015ea71bb,\
         rotation_rate=1,physical_block_size=4096,logical_block_size=4096,discard_granularity=4096",
    ]);
    // One disk with two paths.
    disk(command, folder, "two-ways", 256)?;
    for way in [2, 3] {
        command.args([
            "-device",
            &format!(
                "scsi-hd,drive=two-ways,share-rw=on,bus=scsi.0,scsi-id={way},serial=TWO0001,vendor=ACME,product=Array,\
                 wwn=0x5000c50015ea71cc"
            ),
        ]);
    }
    command.args(["-device", "nvme,id=nvme,serial=NVME0001"]);
    for (number, (name, sector)) in [("nvme-512", 512), ("nvme-4k", 4096)].iter().enumerate() {
        disk(command, folder, name, 512)?;
        let number = number + 1;
        command.args([
            "-device",
            &format!(
                "nvme-ns,drive={name},bus=nvme,nsid={number},logical_block_size={sector},physical_block_size=4096,\
                 uuid=5d7d1c1e-0f5c-4c8a-9a55-00000000000{number}"
            ),
        ]);
    }
    Ok(())
}

/// Adds an empty disk whose contents are not flushed.
fn disk(command: &mut Command, folder: &Path, name: &str, size: u64) -> anyhow::Result<()> {
    let path = folder.join(name);
    File::create(&path)?.set_len(size << 20)?;
    command.arg("-blockdev").arg(format!(
        "driver=raw,node-name={name},discard=unmap,cache.no-flush=on,file.driver=file,file.filename={},\
         file.discard=unmap,file.cache.no-flush=on",
        path.display()
    ));
    Ok(())
}

fn last_lines(console: &Path) -> String {
    let text = fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}
