//! The files that rows name, and what is known of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use vmdisk::facts::Facts;
use vmdisk_collect::{Request, collect};
use vmdisk_tests::{has_program, qemus, real};

/// A folder with images, gone when the test is over.
pub(crate) struct Setting {
    folder: tempfile::TempDir,
    facts: Facts,
}

/// Raw files by name and size.
const RAW: &[(&str, u64)] = &[
    ("a.raw", 16 << 20),
    ("b.raw", 16 << 20),
    ("odd.raw", 1_000_001),
    ("empty.raw", 0),
];

/// Images that `qemu-img` makes: their name, and its arguments behind `create`.
const IMAGES: &[(&str, &str)] = &[
    ("a.qcow2", "-f qcow2 a.qcow2 16M"),
    ("v2.qcow2", "-f qcow2 -o compat=0.10 v2.qcow2 16M"),
    (
        "gone.qcow2",
        "-f qcow2 -F raw -b gone.raw -u gone.qcow2 16M",
    ),
    ("small.qcow2", "-f qcow2 -F raw -b a.raw small.qcow2 8M"),
    (
        "split.qcow2",
        "-f qcow2 -o data_file=split.raw split.qcow2 16M",
    ),
    (
        "key.luks",
        "-f luks --object secret,id=s,data=abc -o key-secret=s,iter-time=10,hash-alg=sha512 key.luks 8M",
    ),
    (
        "luks.qcow2",
        "-f qcow2 --object secret,id=s,data=abc -o encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=10,encrypt.hash-alg=sha512 luks.qcow2 8M",
    ),
    (
        "aes.qcow2",
        "-f qcow2 --object secret,id=s,data=abc -o encrypt.format=aes,encrypt.key-secret=s aes.qcow2 16M",
    ),
];

/// What is done to the bytes of an image.
type Change = fn(&mut Vec<u8>);

/// Images that are others with changed bytes: their name, that of the other, and what is changed.
const CHANGED: &[(&str, &str, Change)] = &[
    // The version, behind the magic.
    ("two.luks", "key.luks", |bytes| bytes[7] = 2),
    ("unnamed.qcow2", "small.qcow2", |bytes| {
        let magic = [0xe2, 0x79, 0x2a, 0xca];
        let at = bytes.windows(4).position(|window| window == magic);
        let at = at.expect("qemu-img records the format of what is below");
        // An extension that nobody knows is read past.
        bytes[at..at + 4].copy_from_slice(&[0x12, 0x34, 0x56, 0x78]);
    }),
];

/// The names of all images.
fn names() -> impl Iterator<Item = &'static str> {
    let raw = RAW.iter().map(|(name, _)| *name);
    let images = IMAGES.iter().map(|(name, _)| *name);
    raw.chain(images)
        .chain(CHANGED.iter().map(|(name, ..)| *name))
}

impl Setting {
    /// The files of a test, if there is a `qemu-img` to make them.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let qemu_img = qemu_img(test)?;
        let folder = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(made(&qemu_img)).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        // Made and not copied: a hole stays a hole.
        for (name, size) in RAW {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            file.set_len(*size).unwrap();
        }
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        let facts = collected(folder.path());
        Some(Setting { folder, facts })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The options with the paths of files for their names: `{a.raw}`.
    pub(crate) fn filled(&self, options: &str) -> String {
        let folder = self.folder.path().to_str().unwrap();
        let mut text = options.to_owned();
        for name in names().chain(["missing.raw", "folder", "secret"]) {
            text = text.replace(&format!("{{{name}}}"), &format!("{folder}/{name}"));
        }
        text
    }
}

/// The installed `qemu-img`, or that of the oldest QEMU at hand; without either the test is skipped.
fn qemu_img(test: &str) -> Option<PathBuf> {
    if has_program("qemu-img") {
        return Some(PathBuf::from("qemu-img"));
    }
    let oldest = qemus(test)
        .first()
        .map(|build| build.program("qemu-img"))
        .filter(|program| program.is_file());
    real(oldest.is_some(), test, "qemu-img");
    oldest
}

/// The files, made once for all tests of this program.
fn made(qemu_img: &Path) -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        // What is static is never dropped: the next run clears the folder away.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("qemu-refuses");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).unwrap();
        }
        std::fs::create_dir_all(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        for (name, size) in RAW {
            std::fs::File::create(at(name))
                .unwrap()
                .set_len(*size)
                .unwrap();
        }
        std::fs::write(at("secret"), "abc").unwrap();
        for (name, arguments) in IMAGES {
            let create = ["create", "-q"].into_iter().chain(arguments.split(' '));
            let output = Command::new(qemu_img)
                .args(create)
                .current_dir(&folder)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}: {said}");
        }
        for (name, other, change) in CHANGED {
            let mut bytes = std::fs::read(at(other)).unwrap();
            change(&mut bytes);
            std::fs::write(at(name), bytes).unwrap();
        }
        // The image stays, and what holds its data goes.
        std::fs::remove_file(at("split.raw")).unwrap();
        folder
    })
}

/// What the collector finds of the folder's files.
fn collected(folder: &Path) -> Facts {
    let mut request = Request::new("2026-11-20T00:00:00Z");
    for name in names().chain(["missing.raw", "folder", "/dev/null"]) {
        // A name from the root on stays itself.
        let path = folder.join(name);
        request.paths.push(path.clone());
        request.chains.push(path);
    }
    collect(&request)
}
