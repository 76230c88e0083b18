//! Storage on a network: each QEMU takes every member that is written, and fails for want of a server alone.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use vmdisk_facts::Version;
use vmdisk_model::*;
use vmdisk_qemu::{CommandLine, Options, write};
use vmdisk_qmp::{Launch, QmpError};
use vmdisk_tests::{QemuBuild, on_each_qemu, real};

use crate::matrix::guest;
use crate::sources::answers;
use crate::storage::Storage;

/// A port of this host at which nobody listens.
fn closed_port() -> u32 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().into()
}

fn secret(path: &str) -> Secret {
    Secret {
        secret_type: None,
        reference: SecretReference::File {
            path: path.to_owned(),
            is_base64: true,
        },
    }
}

/// A source with every member that its protocol has.
fn full(protocol: NetworkProtocol, port: u32, storage: &Storage) -> Image {
    let name = match protocol {
        NetworkProtocol::Iscsi => "iqn.2026-11.com.example:a/3",
        NetworkProtocol::Rbd => "pool/namespace/image",
        NetworkProtocol::Nfs => "/export/a.img",
        NetworkProtocol::Nbd
        | NetworkProtocol::Gluster
        | NetworkProtocol::Http
        | NetworkProtocol::Https
        | NetworkProtocol::Ftp
        | NetworkProtocol::Ftps
        | NetworkProtocol::Tftp
        | NetworkProtocol::Sheepdog
        | NetworkProtocol::Vxhs
        | NetworkProtocol::Ssh => "volume/a.img",
    };
    let hosts = vec![NetworkHost::tcp("127.0.0.1", Some(port))];
    let mut source = NetworkSource::new(protocol, Some(name.to_owned()), hosts);
    let key = storage.path("key");
    // A key as Ceph has it, and a password for the others, which is text.
    let secret_text = match protocol == NetworkProtocol::Rbd {
        true => "AQCnLrNlAAAAABAAFBFW2oqfvkKxKqYpRkQ2kA==",
        false => "c2VjcmV0",
    };
    std::fs::write(&key, secret_text).unwrap();
    let mut login = Some(Authentication {
        username: Some("someone".to_owned()),
        secret: Some(secret(&key)),
    });
    match protocol {
        NetworkProtocol::Nbd => {
            source.reconnect_delay = Some(7);
            login = None;
        }
        NetworkProtocol::Iscsi => source.initiator = Some("iqn.2026-11.com.example:b".to_owned()),
        NetworkProtocol::Rbd => {
            let path = storage.path("ceph.conf");
            let text = "[global]\nclient_mount_timeout = 1\nrados_mon_op_timeout = 1\nrados_osd_op_timeout = 1\n";
            std::fs::write(&path, text).unwrap();
            source.config_file = Some(path);
            source.snapshot = Some("before".to_owned());
        }
        NetworkProtocol::Nfs => {
            source.user = Some("+1000".to_owned());
            source.group = Some("+1000".to_owned());
            login = None;
        }
        NetworkProtocol::Ssh => {
            source.username = Some("someone".to_owned());
            login = None;
        }
        NetworkProtocol::Http => source.query = Some("a=b".to_owned()),
        NetworkProtocol::Https | NetworkProtocol::Ftps => source.ssl_verify = Some(Switch::Off),
        NetworkProtocol::Ftp => {}
        NetworkProtocol::Gluster
        | NetworkProtocol::Tftp
        | NetworkProtocol::Sheepdog
        | NetworkProtocol::Vxhs => login = None,
    }
    if protocol.is_curl() {
        source.readahead = Some(Bytes(65536));
        source.timeout = Some(5);
    }
    let mut image = Image::new(Some(Format::Raw), Protocol::Network(Box::new(source)));
    image.authentication = login.map(Box::new);
    image
}

/// A guest with one disk on an image, around the page cache where it is of this host.
fn line(build: &QemuBuild, image: Image, is_read_only: bool) -> CommandLine {
    let mut domain = guest("q35");
    let image_protocol = image.protocol.clone();
    let mut disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), image);
    disk.backend.is_read_only = is_read_only;
    // Without it the drivers of vDPA are refused.
    if !matches!(&image_protocol, Protocol::Network(_)) {
        disk.backend.cache = Some(CacheMode::None);
    }
    domain.disks.push(disk);
    let options = Options {
        target: build.target(),
    };
    write(&domain, &options).unwrap_or_else(|problems| panic!("{problems}"))
}

/// What a QEMU says to a command line that it ends over; `change` may make another of its words.
fn said(build: &QemuBuild, line: &CommandLine, change: impl Fn(&str) -> String) -> String {
    let words = line.argv();
    let words = words[1..].iter().map(|word| change(word));
    match Launch::paused(build.emulator()).args(words).start() {
        Ok(_) => panic!("there is no server, and it starts:\n{}", line.to_shell()),
        Err(QmpError::Ended { stderr, .. }) => stderr,
        Err(other) => panic!("{other}"),
    }
}

/// True unless a QEMU says that it has not got a driver, which Debian packs apart.
fn has_driver(build: &QemuBuild, protocol: NetworkProtocol, answer: &str) -> bool {
    let needs = format!(
        "the {protocol} driver of QEMU {} (qemu-block-extra)",
        build.name
    );
    real(
        !answer.contains("Unknown driver"),
        "storage on a network",
        &needs,
    )
}

/// What each driver says when there is no server, in all of the versions.
const NO_SERVER: &[(NetworkProtocol, &str)] = &[
    (NetworkProtocol::Nbd, "Connection refused"),
    (NetworkProtocol::Iscsi, "iSCSI: Failed to connect to LUN"),
    (
        NetworkProtocol::Rbd,
        "error connecting: Connection timed out",
    ),
    (NetworkProtocol::Nfs, "Failed to mount nfs share"),
    (NetworkProtocol::Ssh, "Connection refused"),
    (NetworkProtocol::Http, "CURL: Error opening file: "),
    (NetworkProtocol::Https, "CURL: Error opening file: "),
    (NetworkProtocol::Ftp, "CURL: Error opening file: "),
    (NetworkProtocol::Ftps, "CURL: Error opening file: "),
    (
        NetworkProtocol::Gluster,
        "Gluster connection for volume volume, path a.img failed to connect",
    ),
];

#[test]
fn every_member_of_every_protocol_is_taken_and_only_the_server_is_missing() {
    on_each_qemu("storage on a network", |build| {
        let storage = Storage::new();
        let port = closed_port();
        for (protocol, text) in NO_SERVER {
            let image = full(*protocol, port, &storage);
            if *protocol == NetworkProtocol::Gluster && build.version >= Version(11, 1, 0) {
                // Has no such driver any more; the writer knows.
                let mut domain = guest("q35");
                domain
                    .disks
                    .push(Disk::new(Frontend::new("vda", TargetBus::Virtio), image));
                let options = Options {
                    target: build.target(),
                };
                let problems = write(&domain, &options).expect_err("it has no driver");
                assert_eq!(
                    problems.0[0].message,
                    "QEMU has no driver 'gluster' since 11.1"
                );
                continue;
            }
            // A web server is only read from.
            let line = line(build, image, protocol.is_curl());
            let answer = said(build, &line, str::to_owned);
            if !has_driver(build, *protocol, &answer) {
                continue;
            }
            assert!(
                answer.contains(text),
                "{protocol}: {answer}\n{}",
                line.to_shell()
            );
            // A member that there is not, or of another type, is noticed before any server is looked for.
            let driver = format!("{{\"driver\":\"{protocol}\",");
            for (member, refusal) in [
                (
                    "\"no-such-member\":1",
                    "Parameter 'no-such-member' is unexpected",
                ),
                (
                    "\"read-only\":\"no\"",
                    "Invalid parameter type for 'read-only'",
                ),
            ] {
                let wrong = said(build, &line, |word| match word.starts_with(&driver) {
                    true => word
                        .replace(&driver, &format!("{driver}{member},"))
                        .replace(",\"read-only\":false", "")
                        .replace(",\"read-only\":true", ""),
                    false => word.to_owned(),
                });
                assert!(wrong.contains(refusal), "{protocol}: {wrong}");
            }
        }
    });
}

#[test]
fn what_is_of_this_host_alone_is_taken_and_only_the_device_is_missing() {
    on_each_qemu("devices that are not there", |build| {
        let nvme = Protocol::Nvme(NvmeSource {
            address: PciAddress {
                bus: 0xfe,
                ..PciAddress::default()
            },
            namespace: 1,
            managed: Some(Switch::Off),
        });
        let image = Image::new(Some(Format::Raw), nvme);
        let answer = said(build, &line(build, image, false), str::to_owned);
        assert!(
            ["Failed to find iommu group", "/dev/vfio/vfio", "iommu"]
                .iter()
                .any(|text| answer.contains(text)),
            "{answer}"
        );
        // Its driver is of 7.2, but Debian's build of that has none.
        if build.version >= Version(10, 0, 0) {
            let path = "/dev/vhost-vdpa-99".to_owned();
            let image = Image::new(Some(Format::Raw), Protocol::VhostVdpa { path });
            let answer = said(build, &line(build, image, false), str::to_owned);
            let text = "blkio_connect failed: Failed to connect to vDPA device";
            assert!(answer.contains(text), "{answer}");
        }
    });
}

/// A web server with one file, which is read in parts; it ends with the test's process.
fn web_server(content: Vec<u8>) -> (u32, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().into();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let content = Arc::new(content);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (content, heard) = (Arc::clone(&content), Arc::clone(&heard));
            std::thread::spawn(move || serve(&stream, &content, &heard));
        }
    });
    (port, asked)
}

/// Answers the requests of one connection.
fn serve(stream: &TcpStream, content: &[u8], heard: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut request = String::new();
        let mut range = None;
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header).ok()? == 0 {
                return None;
            }
            let header = header.trim_end().to_owned();
            if header.is_empty() {
                break;
            }
            if let Some(bytes) = header.strip_prefix("Range: bytes=") {
                let (first, last) = bytes.split_once('-')?;
                let last = last.parse().unwrap_or(content.len() - 1);
                range = Some((first.parse().ok()?, last.min(content.len() - 1)));
            }
            request.push_str(&header);
            request.push('\n');
        }
        let is_head = request.starts_with("HEAD ");
        heard.lock().unwrap().push(request);
        let (status, first, last): (&str, usize, usize) = match range {
            Some((first, last)) => ("206 Partial Content", first, last),
            None => ("200 OK", 0, content.len() - 1),
        };
        let total = content.len();
        let mut stream = stream;
        write!(
            stream,
            "HTTP/1.1 {status}\r\nAccept-Ranges: bytes\r\nContent-Length: {}\r\nContent-Range: bytes {first}-{last}/{total}\r\n\r\n",
            last + 1 - first
        )
        .ok()?;
        if !is_head {
            stream.write_all(&content[first..=last]).ok()?;
        }
    }
}

#[test]
fn a_file_on_a_web_server_is_read_as_it_was_named() {
    on_each_qemu("a file on a web server", |build| {
        let hosts = vec![NetworkHost::tcp("127.0.0.1", Some(closed_port()))];
        let source = NetworkSource::new(NetworkProtocol::Http, Some("a.img".to_owned()), hosts);
        let nowhere = Image::new(Some(Format::Raw), Protocol::Network(Box::new(source)));
        let answer = said(build, &line(build, nowhere, true), str::to_owned);
        if !has_driver(build, NetworkProtocol::Http, &answer) {
            return;
        }
        let mut content = vec![0; 1 << 20];
        content[..65536].fill(0x53);
        let (port, asked) = web_server(content);
        let hosts = vec![NetworkHost::tcp("127.0.0.1", Some(port))];
        let name = Some("a b/c,d.img".to_owned());
        let mut source = NetworkSource::new(NetworkProtocol::Http, name, hosts);
        source.query = Some("x=y&z".to_owned());
        source.readahead = Some(Bytes(65536));
        source.timeout = Some(10);
        let image = Image::new(Some(Format::Raw), Protocol::Network(Box::new(source)));
        let read_only = |disk: &mut Disk| disk.backend.is_read_only = true;
        answers(build, &image, read_only, "read -q -P 0x53 0 64k");
        let asked = asked.lock().unwrap();
        assert!(
            asked
                .iter()
                .all(|request| request.contains(" /a%20b/c,d.img?x=y&z HTTP/")),
            "{asked:#?}"
        );
    });
}
