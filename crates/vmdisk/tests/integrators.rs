//! Disks as other programs write them, with the findings that `docs/decide.md` names.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read fixtures, and fail by panicking"
)]

use std::collections::BTreeSet;
use std::path::Path;

use vmdisk::model::{AioMode, CacheMode, Discard};
use vmdisk::{Host, LintOptions, decide, lint, read};

fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn btrfs() -> Host {
    Host::parse(&text("fixtures/facts/btrfs-checksums-6.1.json")).unwrap()
}

/// The names in backticks.
fn names(cell: &str) -> BTreeSet<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn each_configuration_has_the_findings_of_the_guide() {
    let (page, host) = (text("docs/decide.md"), btrfs());
    let rows = page
        .lines()
        .filter_map(|line| line.split_once("](../fixtures/integrators/"));
    let mut seen = 0;
    for (_, row) in rows {
        let (file, cells) = row.split_once(')').unwrap();
        let options = match file.contains("btrfs") {
            true => host.options(),
            false => LintOptions::default(),
        };
        let document = read(&text(&format!("fixtures/integrators/{file}"))).unwrap();
        let found = lint(&document, &options).diagnostics;
        let found: BTreeSet<String> = found.iter().map(|it| it.rule.name.to_owned()).collect();
        let findings = cells.trim_end_matches(" |").rsplit('|').next().unwrap();
        assert_eq!(found, names(findings), "{file}");
        seen += 1;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/integrators");
    assert_eq!(seen, std::fs::read_dir(folder).unwrap().count());
}

#[test]
fn ours_for_the_disk_on_btrfs_has_no_finding_about_its_cache() {
    let theirs = text("fixtures/integrators/kubevirt-nova-btrfs.xml");
    let open = theirs.replace(" cache='none' io='native'", "");
    let host = btrfs();
    let decisions = decide(&read(&open).unwrap(), |_| true, &read, &host.options());
    let decided = decisions.disks[0].options.as_ref().unwrap();
    let backend = &decided.disk.backend;
    assert_eq!(
        (backend.cache, backend.aio),
        (Some(CacheMode::Writeback), Some(AioMode::Threads))
    );
    let mut rules = decisions.disks[0].findings.iter().map(|it| it.rule.name);
    assert!(!rules.any(|rule| rule.starts_with("cache-") || rule == "btrfs-dio-csum-corruption"));
}

/// Storage, as the programs look at it.
struct Storage {
    what: &'static str,
    facts: &'static str,
    path: &'static str,
    format: &'static str,
    /// The kind of the file system; none for a block device.
    filesystem: Option<&'static str>,
    /// O_DIRECT can be opened.
    is_direct: bool,
    /// The image has all its blocks.
    is_full: bool,
    has_nocow: bool,
}

/// Cache mode, asynchronous I/O and discard; none is not set.
type Options = [Option<&'static str>; 3];

const fn file(what: &'static str, facts: &'static str, path: &'static str) -> Storage {
    Storage {
        what,
        facts,
        path,
        format: "raw",
        filesystem: Some("other"),
        is_direct: true,
        is_full: true,
        has_nocow: false,
    }
}

const SITUATIONS: [Storage; 8] = [
    file("raw on XFS", "xfs-nvme", "/srv/img/web2.img"),
    Storage {
        format: "qcow2",
        is_full: false,
        ..file("qcow2 on XFS", "xfs-nvme", "/srv/img/web1.qcow2")
    },
    Storage {
        filesystem: Some("btrfs"),
        ..file(
            "raw on btrfs, Linux 6.1",
            "btrfs-checksums-6.1",
            "/srv/img/web1.img",
        )
    },
    Storage {
        filesystem: Some("btrfs"),
        has_nocow: true,
        ..file(
            "raw on btrfs without copy-on-write, Linux 6.18",
            "btrfs-nocow-6.18",
            "/srv/nocow/db1.img",
        )
    },
    Storage {
        filesystem: Some("zfs"),
        ..file("raw on ZFS", "unsafe-mounts", "/srv/zfs/web1.img")
    },
    file("raw on NFS", "unsafe-mounts", "/srv/hard/web1.img"),
    Storage {
        is_direct: false,
        ..file("raw on ramfs", "ramfs", "/run/build/build1.img")
    },
    Storage {
        filesystem: None,
        is_full: false,
        ..file("a thin volume of LVM", "lvm-thin-64k", "/dev/vg0/web1")
    },
];

/// KubeVirt d923fdb8, `converter.go:100` and `:172`, `storage/disk.go`: asks whether O_DIRECT opens, and takes native AIO for
/// what has no holes.
fn kubevirt(storage: &Storage) -> Option<Options> {
    let cache = if storage.is_direct {
        "none"
    } else {
        "writethrough"
    };
    let is_native = storage.is_direct && (storage.filesystem.is_none() || storage.is_full);
    Some([Some(cache), is_native.then_some("native"), Some("unmap")])
}

/// Nova 00a03040, `driver.py:668`, `imagebackend.py`, `privsep/utils.py:43`: writes with O_DIRECT into the directory of all
/// instances, and takes native AIO for images that it preallocated and for volumes.
fn nova(storage: &Storage) -> Option<Options> {
    let cache = if storage.is_direct {
        "none"
    } else {
        "writethrough"
    };
    let is_native = storage.filesystem.is_none() || storage.is_full;
    Some([Some(cache), is_native.then_some("native"), None])
}

/// Proxmox e6352be6, `Drive.pm:1092` to `:1140`: the kind of the storage decides, and nothing is tried. Its pools of ZFS have
/// volumes, and a directory on ZFS is a directory.
fn proxmox(storage: &Storage) -> Option<Options> {
    let is_cached = storage.filesystem == Some("btrfs") && !storage.has_nocow;
    let cache = if is_cached { "writeback" } else { "none" };
    Some([Some(cache), Some("io_uring"), None])
}

/// Incus be7afc5d, `driver_qemu.go:5096` to `:5247`: the file system decides, then whether O_DIRECT opens; it has no qcow2 in
/// a directory.
fn incus(storage: &Storage) -> Option<Options> {
    if storage.format != "raw" {
        return None;
    }
    let is_cached = matches!(storage.filesystem, Some("btrfs" | "zfs")) || !storage.is_direct;
    let (cache, io) = if is_cached {
        ("writeback", "threads")
    } else {
        ("none", "io_uring")
    };
    Some([Some(cache), Some(io), Some("unmap")])
}

/// A guest with a disk on the storage.
fn guest(storage: &Storage, options: &Options) -> String {
    let (kind, source) = match storage.filesystem {
        Some(_) => ("file", "file"),
        None => ("block", "dev"),
    };
    let named = ["cache", "io", "discard"].iter().zip(options);
    let written = named.filter_map(|(name, value)| Some(format!(" {name}='{}'", (*value)?)));
    let written: String = written.collect();
    let Storage { path, format, .. } = storage;
    format!(
        "<disk type='{kind}' device='disk'>\n<driver name='qemu' type='{format}'{written}/>\n<source {source}='{path}'/>\n\
         <target dev='vda' bus='virtio'/>\n</disk>"
    )
}

/// The options as a cell of a table, with the findings that another choice does not have.
fn cell(
    storage: &Storage,
    host: &Host,
    options: Option<Options>,
    ours: &BTreeSet<String>,
) -> String {
    let Some(options) = options else {
        return "–".to_owned();
    };
    let words = options.map(|it| it.unwrap_or("–"));
    let found = lint(&read(&guest(storage, &options)).unwrap(), &host.options()).diagnostics;
    let found = found.iter().filter(|it| !ours.contains(it.rule.name));
    let names: BTreeSet<String> = found.map(|it| format!("`{}`", it.rule.name)).collect();
    let names: Vec<String> = names.into_iter().collect();
    format!("{} {}", words.join(", "), names.join(" "))
        .trim()
        .to_owned()
}

#[test]
fn the_guide_compares_the_decisions_of_other_programs() {
    const BEGIN: &str = "<!-- decisions of others: VMDISK_BLESS=yes writes them -->\n";
    let mut table = String::from(
        "| disk | vmdisk | KubeVirt | Nova | Proxmox | Incus |\n|---|---|---|---|---|---|\n",
    );
    for storage in &SITUATIONS {
        let host = Host::parse(&text(&format!("fixtures/facts/{}.json", storage.facts))).unwrap();
        let open = read(&guest(storage, &[None; 3])).unwrap();
        let decisions = decide(&open, |_| true, &read, &host.options());
        let backend = &decisions.disks[0].options.as_ref().unwrap().disk.backend;
        let chosen = [
            backend.cache.map(CacheMode::as_str),
            backend.aio.map(AioMode::as_str),
            backend.discard.map(Discard::as_str),
        ];
        let found = lint(&read(&guest(storage, &chosen)).unwrap(), &host.options()).diagnostics;
        let ours: BTreeSet<String> = found.iter().map(|it| it.rule.name.to_owned()).collect();
        let mut row = vec![storage.what.to_owned()];
        row.push(cell(storage, &host, Some(chosen), &ours));
        for theirs in [kubevirt, nova, proxmox, incus] {
            row.push(cell(storage, &host, theirs(storage), &ours));
        }
        table += &format!("| {} |\n", row.join(" | "));
    }
    let page = text("docs/decide.md");
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once("\n\n").unwrap();
    if std::env::var_os("VMDISK_BLESS").is_some_and(|value| value == "yes") {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::write(
            root.join("docs/decide.md"),
            format!("{before}{BEGIN}{table}\n{after}"),
        )
        .unwrap();
        return;
    }
    assert_eq!(found, table.trim_end(), "VMDISK_BLESS=yes writes the table");
}
