//! The images of a guest that a copy can replace.

use std::collections::BTreeMap;

use serde_json::Value;
use vmdisk::model::{Bytes, Disk, Domain, Format, Image, Protocol};
use vmdisk::plan::PresentImage;

use super::guest::{self, Existing};
use super::program::{ask, output};

/// Why an image with internal snapshots is not copied.
pub(super) const SNAPSHOTS: &str =
    "it has internal snapshots, which a copy does not have: delete them first";

/// The images that no disk of a plan has, by the numbers of the disks.
pub(super) fn replaced(
    guest: &Domain,
    planned: &Domain,
    (is_running, is_reclaiming): (bool, bool),
) -> BTreeMap<usize, PresentImage> {
    let protocol = |disk: &'_ Disk| Some(disk.backend.image()?.protocol.clone());
    let is_planned = |disk: &Disk| {
        let mut disks = planned.disks.iter();
        disks.any(|it| protocol(it) == protocol(disk))
    };
    let disks = guest.disks.iter().enumerate();
    let disks = disks.filter(|(_, disk)| is_reclaiming && is_running || !is_planned(disk));
    let look = |image: &Image| look(image, is_running, is_reclaiming);
    let looked = disks.filter_map(|(nth, disk)| Some((nth, look(disk.backend.image()?)?)));
    let mut images: BTreeMap<usize, PresentImage> = looked.collect();
    if !images.is_empty() {
        let name = guest.name.as_deref().unwrap_or_default();
        let of_guest = obstacles_of(name, is_running);
        let live = is_running.then(|| guest::existing(name, false));
        for (nth, image) in &mut images {
            image.obstacles.extend(of_guest.clone());
            let of_disk = live
                .as_ref()
                .and_then(|it| live_obstacle(it, name, &guest.disks[*nth]));
            image.obstacles.extend(of_disk);
        }
    }
    images
}

/// The reason why a disk of a guest that runs stays where it is.
fn live_obstacle(live: &Existing, name: &str, disk: &Disk) -> Option<String> {
    let is_same = |it: &Disk| {
        let image = |disk: &Disk| disk.backend.image().map(|image| image.protocol.clone());
        it.frontend.target == disk.frontend.target && image(it) == image(disk)
    };
    let Existing::There(live) = live else {
        return Some(format!(
            "libvirt does not say what the guest {name} runs with"
        ));
    };
    let target = disk.name();
    if !live.domain().disks.iter().any(is_same) {
        return Some(format!(
            "the guest {name} runs with another disk {target} than its definition has: shut it off first"
        ));
    }
    let job = output(&["virsh", "blockjob", "--", name, target]);
    let is_idle = job.is_some_and(|job| job.contains("No current block job"));
    (!is_idle).then(|| format!(
        "a block job of the disk {target} of the guest {name} runs: wait until it ends, or end it (`virsh blockjob --abort`)"
    ))
}

/// The reasons why all disks of a guest stay where they are. Anything that libvirt does not say is one.
fn obstacles_of(name: &str, is_running: bool) -> Vec<String> {
    let is_off = is_running || guest::is_off(name) == Some(true);
    let info = output(&["virsh", "dominfo", "--", name]);
    let snapshots = output(&["virsh", "snapshot-list", "--name", "--", name]);
    let is_known = info.is_some() && snapshots.is_some();
    let is_line = |line: &str| line.split_whitespace().eq(["Managed", "save:", "yes"]);
    let is_saved = info.is_some_and(|info| info.lines().any(is_line));
    let has_snapshots = snapshots.is_some_and(|names| !names.trim().is_empty());
    let found = [
        (!is_off).then(|| format!("libvirt does not say that the guest {name} is off")),
        (!is_known).then(|| format!("libvirt does not say whether the guest {name} has a saved state or snapshots")),
        is_saved.then(|| {
            format!("the guest {name} has a saved state, which needs its disks unchanged: start it, and shut it off")
        }),
        has_snapshots.then(|| {
            format!("the guest {name} has snapshots, which need the old image: delete them first (`virsh snapshot-delete`)")
        }),
    ];
    found.into_iter().flatten().collect()
}

/// An image of the host as `qemu-img` sees it; none if it is on no host path, or of a kind that is not copied.
fn look(image: &Image, is_running: bool, is_reclaiming: bool) -> Option<PresentImage> {
    let path = match &image.protocol {
        Protocol::Volume(volume) => {
            let (pool, volume) = (&volume.pool, &volume.volume);
            let path = output(&["virsh", "vol-path", "--pool", pool, "--", volume])?;
            path.trim().to_owned()
        }
        _ => image.host_path()?.to_owned(),
    };
    let format = image.format;
    let format = format.filter(|it| matches!(it, Format::Raw | Format::Qcow2))?;
    let mut found = PresentImage::default();
    let asked = |words: &[&str]| asked(words, format, &path, is_running);
    let data = is_reclaiming.then(|| asked(&["map"]).ok());
    found.data = data.flatten().map(|extents| {
        let with_data = extents.iter().filter(|it| it["data"] == Value::Bool(true));
        Bytes(with_data.filter_map(|it| it["length"].as_u64()).sum())
    });
    match asked(&["info", "--backing-chain"]) {
        Ok(chain) => {
            let first = chain.first()?;
            found.size = first["virtual-size"].as_u64().map(Bytes);
            // Of a device, QEMU says that it takes nothing.
            let taken = chain.iter().filter_map(|it| it["actual-size"].as_u64());
            found.allocated = Some(Bytes(taken.sum())).filter(|taken| taken.0 > 0);
            let below = chain.iter().skip(1);
            found.below = below
                .filter_map(|it| text_of(it, "filename"))
                .map(str::to_owned)
                .collect();
            let faults = faults_of(&chain, image, &found.below);
            let faults = faults.map(|why| format!("{path} is not copied: {why}"));
            found.obstacles = faults.collect();
        }
        Err(why) => found
            .obstacles
            .push(format!("{path} cannot be read: {why}")),
    }
    found.path = path;
    Some(found)
}

/// What `qemu-img` says of an image and those below it. Without `-U`, it fails if a program such as a guest writes one of
/// them.
fn asked(
    words: &[&str],
    format: Format,
    path: &str,
    is_running: bool,
) -> Result<Vec<Value>, String> {
    let mut argv = [
        &["qemu-img"],
        words,
        &["--output=json", "-f", format.as_str()],
    ]
    .concat();
    argv.extend(is_running.then_some("-U"));
    argv.extend(["--", path]);
    let argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
    let answer = ask(&argv)?;
    match answer.is_success {
        true => serde_json::from_str(&answer.stdout).map_err(|error| error.to_string()),
        false => Err(answer.stderr.trim().to_owned()),
    }
}

fn text_of<'a>(of: &'a Value, key: &str) -> Option<&'a str> {
    of[key].as_str()
}

/// The data that a copy would lose, or would read in another way.
fn faults_of<'a>(
    chain: &'a [Value],
    image: &Image,
    below: &[String],
) -> impl Iterator<Item = &'static str> + use<'a> {
    let nothing = Value::Null;
    let first = chain.first().unwrap_or(&nothing);
    let data = &first["format-specific"]["data"];
    let has = |of: &Value, key: &str| of[key].as_array().is_some_and(|all| !all.is_empty());
    let written = image.chain().skip(1).filter_map(Image::host_path);
    let written: Vec<&str> = written.collect();
    let is_unnamed = |it: &Value| {
        text_of(it, "backing-filename").is_some()
            && text_of(it, "backing-filename-format").is_none()
    };
    let rows = [
        (has(first, "snapshots"), SNAPSHOTS),
        (
            has(data, "bitmaps"),
            "it has bitmaps of backups, which a copy does not have: remove them first (`qemu-img bitmap --remove`)",
        ),
        (
            first["encrypted"].as_bool() == Some(true),
            "it is encrypted",
        ),
        (
            data["corrupt"].as_bool() == Some(true),
            "it is corrupt: repair it first (`qemu-img check -r all`)",
        ),
        (
            chain.iter().any(is_unnamed),
            "an image in its chain does not say the format of the one below: write it (`qemu-img rebase -u -F FORMAT`)",
        ),
        (
            !written.is_empty() && written != *below,
            "the definition has other images below it than its header",
        ),
    ];
    rows.into_iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, why)| why)
}
