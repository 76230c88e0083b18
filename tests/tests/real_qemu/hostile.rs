//! Names that try to be options: the file that is opened is the file that was named.

use vmdisk_model::*;
use vmdisk_qemu::{Options, write};
use vmdisk_tests::on_each_qemu;

use crate::agree::differences;
use crate::matrix::guest;
use crate::qemu::{open_files, start_paused};
use crate::storage::Storage;

/// Names of files, each a bait for some parser between here and `open(2)`.
const NAMES: &[&str] = &[
    "plain.img",
    "a,if=none,readonly=on.img",
    "a,,b.img",
    ",",
    "=",
    "json:{\"driver\":\"null-co\"}",
    "nbd:localhost:10809",
    "fat:rw:.",
    "http:",
    "colon:name.img",
    "-drive",
    "--help",
    "'single' quotes",
    "\"double\" quotes",
    "back\\slash\\n",
    "two\nlines",
    "tab\tand\rreturn",
    "bell\u{7}escape\u{1b}delete\u{7f}",
    "$HOME `id` $(id) ${IFS}",
    "* ? [a-z] {a,b} ~",
    "%s%n%d",
    "# not a comment; & | > <",
    " leading and trailing ",
    "\u{e9}\u{2603}\u{1f600}",
    "\u{feff}mark",
    "\u{202e}txet",
];

fn disk(path: &str) -> Disk {
    Disk::new(
        Frontend::new("vda", TargetBus::Virtio),
        Image::file(path, Format::Raw),
    )
}

#[test]
fn the_file_that_is_opened_is_the_file_that_was_named() {
    on_each_qemu(
        "the file that is opened is the file that was named",
        |installed| {
            let storage = Storage::new();
            let options = Options {
                target: installed.target(),
            };
            for name in NAMES {
                let path = storage.raw(name, 1 << 20);
                let mut domain = guest("q35");
                domain.disks.push(disk(&path));
                domain.name = Some((*name).to_owned());
                let line = write(&domain, &options).unwrap();
                let mut qemu = start_paused(installed, &line)
                    .unwrap_or_else(|error| panic!("{name:?}: {error}"));
                assert_eq!(differences(&mut qemu, &line), [""; 0], "{name:?}");
                let opened = open_files(&qemu);
                assert!(
                    opened.iter().any(|(file, _)| file.to_str() == Some(&path)),
                    "{name:?}: {opened:?}"
                );
                let seen = qemu.ask("query-name", serde_json::json!({})).unwrap();
                assert_eq!(seen["name"], *name);
            }
        },
    );
}

#[test]
fn a_shell_reads_the_text_back_as_the_same_words() {
    for name in NAMES {
        let mut domain = guest("q35");
        domain.name = Some((*name).to_owned());
        domain.disks.push(disk(&format!("/{name}")));
        let line = write(&domain, &Options::default()).unwrap();
        // The words between zero bytes, as the shell hands them to a program.
        let script = format!("set -- {}\nprintf '%s\\0' \"$@\"", line.to_shell());
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> = text.split_terminator('\0').collect();
        assert_eq!(words, line.argv(), "{name:?}");
    }
}

#[test]
fn serial_numbers_and_sockets_are_taken_as_they_are() {
    on_each_qemu(
        "serial numbers and sockets are taken as they are",
        |installed| {
            let storage = Storage::new();
            let options = Options {
                target: installed.target(),
            };
            let path = storage.raw("a.img", 1 << 20);
            for name in NAMES {
                let mut disk = disk(&path);
                disk.frontend.serial = Some((*name).to_owned());
                let mut domain = guest("q35");
                domain.disks.push(disk);
                let line = write(&domain, &options).unwrap();
                let mut qemu = start_paused(installed, &line).unwrap();
                assert_eq!(differences(&mut qemu, &line), [""; 0], "{name:?}");
            }
            let listeners: Vec<(String, std::os::unix::net::UnixListener)> = NAMES
                .iter()
                .map(|name| {
                    let path = storage.path(&format!("{name}.sock"));
                    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
                    listener.set_nonblocking(true).unwrap();
                    (path, listener)
                })
                .collect();
            for (path, listener) in listeners {
                let mut domain = guest("q35");
                domain.memory_backing.access = Some(MemoryAccess::Shared);
                domain.disks.push(Disk::new(
                    Frontend::new("vda", TargetBus::Virtio),
                    VhostUserSocket::new(&path),
                ));
                let mut line = write(&domain, &options).unwrap();
                // A daemon would have to answer the device; the socket alone is looked at here.
                line.arguments
                    .retain(|argument| argument.option != vmdisk_qemu::QemuOption::Device);
                let qemu = start_paused(installed, &line)
                    .unwrap_or_else(|error| panic!("{path:?}: {error}"));
                assert!(
                    listener.accept().is_ok(),
                    "QEMU did not connect to {path:?}"
                );
                drop(qemu);
            }
        },
    );
}
