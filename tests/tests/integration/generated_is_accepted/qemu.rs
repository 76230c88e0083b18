//! The real QEMU: what is written starts, and its block nodes are what was written.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use vmdisk::model::{BackendSource, Backing, Domain, Image, NetworkProtocol, Protocol};
use vmdisk::plan::{BackendSpec, HugePagesSpec, Spec};
use vmdisk_qmp::Launch;
use vmdisk_testing::LoopDevice;
use vmdisk_tests::{QemuBuild, has_program, on_each_qemu, real};

use super::storage::make_files;
use super::{Fixture, exception, fixtures_of_specs, generate_anyway, moved};

pub(super) const PROGRAM: &str = "qemu-system-x86_64";

/// A daemon that serves disks over a socket, while this lives.
struct Daemon(Child);

impl Daemon {
    /// One that serves a disk to a vhost-user-blk device.
    fn vhost_user(build: &QemuBuild, folder: &Path, socket: &str) -> Self {
        let export = format!(
            "type=vhost-user-blk,id=export,node-name=served,writable=on,num-queues=4,addr.type=unix,addr.path={socket}"
        );
        let blockdev = served(folder, "served");
        let options = ["--blockdev", &blockdev, "--export", &export];
        Daemon::start(build, socket, &options.map(str::to_owned))
    }

    /// One that serves the disks `web1`, `web2` and `web3` to NBD clients.
    fn nbd(build: &QemuBuild, folder: &Path, socket: &str) -> Self {
        let server = format!("addr.type=unix,addr.path={socket}");
        let mut options = vec!["--nbd-server".to_owned(), server];
        for name in ["web1", "web2", "web3"] {
            let export = format!("type=nbd,id={name},node-name={name},name={name},writable=on");
            let blockdev = served(folder, name);
            options.extend(["--blockdev", &blockdev, "--export", &export].map(str::to_owned));
        }
        Daemon::start(build, socket, &options)
    }

    fn start(build: &QemuBuild, socket: &str, options: &[String]) -> Self {
        // It complains of each QEMU that ends without a word.
        let log = format!("{socket}.log");
        let child = Command::new(build.program("qemu-storage-daemon"))
            .args(options)
            .stdin(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !Path::new(socket).exists() {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "the daemon does not listen: {}",
                std::fs::read_to_string(&log).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        Daemon(child)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The option of a daemon for a node of this name on a new file.
fn served(folder: &Path, name: &str) -> String {
    let file = folder.join(format!("{name}.img"));
    std::fs::File::create(&file)
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    format!("driver=file,node-name={name},filename={}", file.display())
}

/// The nodes that a command line asks for.
fn asked(argv: &[String]) -> Vec<Value> {
    argv.windows(2)
        .filter(|pair| pair[0] == "-blockdev")
        .map(|pair| serde_json::from_str(&pair[1]).unwrap())
        .collect()
}

/// Compares a node with the option that it comes from.
fn assert_as_asked(name: &str, asked: &Value, node: &Value) {
    let is_on = |value: &Value| value.as_bool().unwrap_or(false);
    assert_eq!(node["drv"], asked["driver"], "{name}: {node}");
    assert_eq!(node["ro"], is_on(&asked["read-only"]), "{name}: {node}");
    for switch in ["direct", "no-flush"] {
        let found = &node["cache"][switch];
        assert_eq!(
            *found,
            is_on(&asked["cache"][switch]),
            "{name}: {switch} of {node}"
        );
    }
    if let Some(mode) = asked["detect-zeroes"].as_str() {
        assert_eq!(node["detect_zeroes"], mode, "{name}: {node}");
    }
}

/// Compares the nodes with what the XML of the same spec says of its disks; how many were compared.
fn assert_as_meant(name: &str, domain: &Domain, nodes: &Map<String, Value>) -> usize {
    let mut compared = 0;
    for disk in &domain.disks {
        let BackendSource::Image(image) = &disk.backend.source else {
            continue;
        };
        let switches = disk.backend.cache.expect("a plan chooses one").switches();
        let mut below: Option<&Image> = Some(image);
        let mut is_top = true;
        while let Some(image) = below {
            if let Protocol::Network(_) = image.protocol {
                // Its nodes were compared with the options that they come from.
                break;
            }
            let path = image
                .host_path()
                .unwrap_or_else(|| panic!("{name}: {:?}", image.protocol));
            let format = image
                .format
                .map(|format| format.to_string())
                .unwrap_or_default();
            let of_image: Vec<&Value> = nodes
                .values()
                .filter(|node| {
                    node["file"]
                        .as_str()
                        .is_some_and(|file| file_name(file) == path)
                })
                .collect();
            let drivers: Vec<&str> = of_image
                .iter()
                .filter_map(|node| node["drv"].as_str())
                .collect();
            assert!(
                drivers.contains(&format.as_str()),
                "{name}: {path} has {drivers:?}"
            );
            let protocols = ["file", "host_device"];
            assert!(
                drivers.iter().any(|driver| protocols.contains(driver)),
                "{name}: {drivers:?}"
            );
            for node in of_image {
                assert_eq!(node["cache"]["direct"], switches.direct, "{name}: {node}");
                assert_eq!(
                    node["cache"]["no-flush"], switches.no_flush,
                    "{name}: {node}"
                );
                // The file below a backing image may be opened for writing later, by a block-commit.
                if node["drv"] == format {
                    let only_reads = !is_top || !disk.is_writable();
                    assert_eq!(node["ro"], only_reads, "{name}: {node}");
                }
            }
            compared += 1;
            is_top = false;
            below = match &image.backing {
                Backing::Image(image) => Some(image),
                Backing::Unspecified | Backing::Terminated => None,
            };
        }
    }
    compared
}

/// QEMU shows odd names as JSON.
fn file_name(shown: &str) -> String {
    match shown
        .strip_prefix("json:")
        .map(serde_json::from_str::<Value>)
    {
        Some(Ok(node)) => node["filename"].as_str().unwrap_or_default().to_owned(),
        Some(Err(_)) | None => shown.to_owned(),
    }
}

fn has_free_huge_pages() -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = text
        .lines()
        .find_map(|line| line.strip_prefix("HugePages_Free:"));
    free.and_then(|number| number.trim().parse().ok())
        .unwrap_or(0_u32)
        >= 32
}

/// The block devices that a spec names.
fn devices(spec: &Spec) -> Vec<String> {
    let path = |backend: &BackendSpec| match backend {
        BackendSpec::Lvm(volume) => Some(volume.name().device_path()),
        BackendSpec::LvmThin(volume) => Some(volume.name().device_path()),
        BackendSpec::Device(device) => Some(device.path.clone()),
        BackendSpec::VhostUserBlk(_)
        | BackendSpec::Network(_)
        | BackendSpec::Raw(_)
        | BackendSpec::Qcow2(_)
        | BackendSpec::Zvol(_)
        | BackendSpec::Seed(_)
        | BackendSpec::Nvme(_)
        | BackendSpec::VhostVdpa(_)
        | BackendSpec::Directory(_)
        | BackendSpec::Volume(_)
        | BackendSpec::Empty(_) => None,
    };
    spec.disks
        .iter()
        .filter_map(|disk| path(&disk.backend))
        .collect()
}

#[test]
fn each_qemu_starts_what_is_written_for_it_and_its_nodes_are_as_written() {
    let test = "generated command lines";
    let programs = [PROGRAM, "qemu-img", "losetup"];
    if !real(
        programs.iter().all(|program| has_program(program)),
        test,
        &programs.join(", "),
    ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let device = LoopDevice::new(&folder.path().join("device.img"), 64 << 20, &[]);
    if !real(device.is_ok(), test, "the right to have a loop device") {
        return;
    }
    let device = device.unwrap();
    on_each_qemu(test, |build| start_all(build, device.path()));
}

/// Starts one QEMU with what is written for it for each spec; `device` stands for all block devices.
#[allow(clippy::print_stdout, reason = "what is not tried is said")]
fn start_all(build: &QemuBuild, device: &str) {
    let target = super::target_with(&build.target());
    let mut compared = 0;
    for Fixture { name, text } in fixtures_of_specs() {
        if exception::of_form(&name, "qemu").is_some() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("disk.sock");
        let socket = socket.to_str().unwrap();
        let text = moved(&text, folder.path())
            .replace("/run/vmdisk/disk.sock", socket)
            .replace("/run/vmdisk/nbd.sock", socket);
        let spec = Spec::from_yaml(&text).unwrap();
        let pages = spec.guest.as_ref().and_then(|guest| guest.hugepages);
        if !matches!(pages, None | Some(HugePagesSpec::No)) && !has_free_huge_pages() {
            println!("skipped: starting {name}: this host has no free huge pages");
            continue;
        }
        make_files(&spec, &target);
        // Whatever device the spec names, the one that is here stands for it.
        let devices = devices(&spec);
        let on_device = |text: &str| {
            let text = text.to_owned();
            devices
                .iter()
                .fold(text, |text, path| text.replace(path, device))
        };
        let daemon = spec.disks.iter().find_map(|disk| match &disk.backend {
            BackendSpec::VhostUserBlk(_) => Some(Daemon::vhost_user(build, folder.path(), socket)),
            BackendSpec::Network(network) if network.protocol == NetworkProtocol::Nbd => {
                Some(Daemon::nbd(build, folder.path(), socket))
            }
            BackendSpec::Network(_)
            | BackendSpec::Raw(_)
            | BackendSpec::Qcow2(_)
            | BackendSpec::Lvm(_)
            | BackendSpec::LvmThin(_)
            | BackendSpec::Device(_)
            | BackendSpec::Zvol(_)
            | BackendSpec::Seed(_)
            | BackendSpec::Nvme(_)
            | BackendSpec::VhostVdpa(_)
            | BackendSpec::Directory(_)
            | BackendSpec::Volume(_)
            | BackendSpec::Empty(_) => None,
        });
        let form = ["--to", "qemu", "--qemu-format", "json"];
        let argv = on_device(&generate_anyway(&text, &target, &form));
        let argv: Vec<String> = serde_json::from_str(&argv).unwrap();
        let launch = Launch::paused(build.emulator()).args(&argv[1..]);
        let started = launch.start().and_then(|mut qemu| qemu.nodes());
        drop(daemon);
        if let Some(exception) = exception::of_start(&name, build.version) {
            let refusal = started.expect_err(exception.reason).to_string();
            assert!(refusal.contains(exception.says), "{name}: {refusal}");
            println!("skipped: starting {name}: {}", exception.reason);
            continue;
        }
        let started = started.unwrap_or_else(|refusal| panic!("{name}: {refusal}\n{argv:#?}"));
        for asked in asked(&argv) {
            let node = &started[asked["node-name"].as_str().unwrap()];
            assert_as_asked(&name, &asked, node);
        }
        let xml = on_device(&generate_anyway(&text, &target, &[]));
        compared += assert_as_meant(&name, vmdisk::read(&xml).unwrap().domain(), &started);
    }
    assert!(
        compared >= 100,
        "only {compared} nodes were compared with the XML"
    );
}
