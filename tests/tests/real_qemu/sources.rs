//! Sources that are neither a whole file nor a device: the guest sees the bytes that were meant.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk_model::*;
use vmdisk_qemu::{Options, QemuOption, write};
use vmdisk_testing::{installed, needed};
use vmdisk_tests::{QemuBuild, on_each_qemu};

use crate::matrix::guest;
use crate::qemu::{io, start_paused};
use crate::storage::Storage;

const MIB: u64 = 1 << 20;

/// Starts a guest with this image, and gives a command of qemu-io to its topmost node;
/// an answer of nothing means that all went well.
pub(crate) fn answers(build: &QemuBuild, image: &Image, change: fn(&mut Disk), command: &str) {
    let mut disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), image.clone());
    change(&mut disk);
    let mut domain = guest("q35");
    domain.disks.push(disk);
    let options = Options {
        target: build.target(),
    };
    let mut line = write(&domain, &options).unwrap();
    // It starts with its device, too.
    drop(start_paused(build, &line).unwrap_or_else(|error| panic!("{error}")));
    let device = line.arguments.iter().rfind(|argument| {
        argument.option == QemuOption::Device && argument.property("drive").is_some()
    });
    let node = device.unwrap().property("drive").unwrap();
    // qemu-io wants the node to itself.
    line.arguments
        .retain(|argument| argument.option != QemuOption::Device);
    let mut qemu = start_paused(build, &line).unwrap();
    let said = io(&mut qemu, &node, command);
    assert_eq!(said, "", "{command}\n{}", line.to_shell());
}

/// True if qemu-img could do it here.
fn qemu_img(arguments: &[&str]) -> bool {
    if needed(installed("qemu-img")).is_none() {
        return false;
    }
    let output = Command::new("qemu-img").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    true
}

fn filled(storage: &Storage, name: &str, from: u64, length: u64) -> String {
    let path = storage.raw(name, 4 * MIB);
    let mut bytes = std::fs::read(&path).unwrap();
    let range = usize::try_from(from).unwrap()..usize::try_from(from + length).unwrap();
    bytes[range].fill(0x53);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_part_of_a_file_is_what_the_guest_sees() {
    on_each_qemu("a part of a file is what the guest sees", |build| {
        let storage = Storage::new();
        let path = filled(&storage, "a.raw", MIB, MIB);
        let mut image = Image::file(path, Format::Raw);
        image.slice = Some(Slice {
            offset: MIB,
            size: MIB,
        });
        answers(build, &image, |_| {}, "read -q -P 0x53 0 1M");
    });
}

#[test]
fn an_image_with_its_data_elsewhere_finds_it() {
    on_each_qemu("an image with an external data file finds it", |build| {
        let storage = Storage::new();
        let (path, data) = (storage.path("a.qcow2"), storage.path("data.raw"));
        let options = format!("data_file={data},data_file_raw=on");
        if !qemu_img(&["create", "-q", "-f", "qcow2", "-o", &options, &path, "4M"]) {
            return;
        }
        // Elsewhere than its header says.
        let moved = storage.path("moved.raw");
        std::fs::rename(&data, &moved).unwrap();
        let mut image = Image::file(path, Format::Qcow2);
        image.data_file = Some(Box::new(Image::file(&*moved, Format::Raw)));
        answers(build, &image, |_| {}, "write -q -P 0x53 0 64k");
        assert_eq!(std::fs::read(&moved).unwrap()[0], 0x53);
    });
}

/// A raw and a qcow2 image, encrypted with the key in a file. Making them takes seconds, because
/// qemu-img measures how long a key can be stretched.
fn encrypted(storage: &Storage, key: &str) -> Option<[Image; 2]> {
    let object = format!("secret,id=s,format=base64,file={key}");
    let image = |format: Format, driver: &str, options: &str| {
        let path = storage.path(format.as_str());
        let of = [
            "create", "-q", "--object", &object, "-f", driver, "-o", options,
        ];
        let arguments: Vec<&str> = of.into_iter().chain([path.as_str(), "4M"]).collect();
        let secret = Secret {
            secret_type: Some("passphrase".to_owned()),
            reference: SecretReference::File {
                path: key.to_owned(),
                is_base64: true,
            },
        };
        qemu_img(&arguments).then(|| Image {
            encryption: Some(Box::new(Encryption {
                format: Some(EncryptionFormat::Luks),
                secrets: vec![secret],
                ..Encryption::default()
            })),
            ..Image::file(&*path, format)
        })
    };
    Some([
        image(
            Format::Raw,
            "luks",
            "key-secret=s,iter-time=10,hash-alg=sha512",
        )?,
        image(
            Format::Qcow2,
            "qcow2",
            "encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=10,encrypt.hash-alg=sha512",
        )?,
    ])
}

#[test]
fn an_encrypted_image_is_opened_with_a_secret_by_reference() {
    let storage = Storage::new();
    let key = storage.path("key");
    std::fs::write(&key, "c2VjcmV0").unwrap();
    let Some(images) = encrypted(&storage, &key) else {
        return;
    };
    on_each_qemu(
        "an encrypted image is opened with a secret by reference",
        |build| {
            for image in &images {
                answers(build, image, |_| {}, "write -q -P 0x53 0 64k");
                answers(build, image, |_| {}, "read -q -P 0x53 0 64k");
                let plain = [0x53; 4096];
                let bytes = std::fs::read(image.host_path().unwrap()).unwrap();
                assert!(!bytes.windows(plain.len()).any(|window| window == plain));
            }
        },
    );
}

/// An NBD server over a raw file; it ends with this value.
struct Server(Child);

impl Server {
    fn start(file: &str, socket: &str) -> Option<Self> {
        let child = Command::new("qemu-nbd")
            .args(["--persistent", "--shared=9", "--format=raw", "--socket"])
            .args([socket, "--export-name=disk", file])
            .stdin(Stdio::null())
            .spawn();
        let server = Server(child.ok()?);
        let start = Instant::now();
        while !Path::new(socket).exists() {
            if start.elapsed() > Duration::from_secs(10) {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_is_spoken_to_and_its_export_seen() {
    on_each_qemu("a server is spoken to and its export seen", |build| {
        let storage = Storage::new();
        let file = filled(&storage, "a.raw", 0, MIB);
        // A name with everything in it that could be syntax.
        let socket = storage.path("a,b=c:d 'e\".sock");
        let Some(_server) = Server::start(&file, &socket) else {
            eprintln!("skipped: no qemu-nbd");
            return;
        };
        let network = NetworkSource::new(
            NetworkProtocol::Nbd,
            Some("disk".to_owned()),
            vec![NetworkHost::unix(socket)],
        );
        let image = Image::new(Some(Format::Raw), Protocol::Network(Box::new(network)));
        answers(build, &image, |_| {}, "read -q -P 0x53 0 1M");
    });
}

#[test]
fn a_directory_is_shown_as_a_file_system() {
    on_each_qemu("a directory is shown as a file system", |build| {
        let storage = Storage::new();
        let path = storage.path("directory");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(format!("{path}/file"), "content").unwrap();
        let image = Image::new(Some(Format::Fat), Protocol::Directory { path });
        let read_only = |disk: &mut Disk| disk.backend.is_read_only = true;
        // The mark at the end of a boot record.
        answers(build, &image, read_only, "read -q -P 0x55 510 1");
    });
}
