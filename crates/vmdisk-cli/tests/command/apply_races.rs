//! Commands in a directory in which another user moves files: `apply` at each boundary of its own commands, and everything
//! that writes at random.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

use vmdisk_testing::{installed, needed};

use crate::Place;

/// Runs of the random test; more by the variable `VMDISK_RACES`.
const RACES: u64 = 10;

/// Two images, the first of them a copy with a mode, in a directory that all may write, and what must not change.
fn prepared() -> Place {
    let place = Place::with(&[]);
    fs::create_dir(place.path("images")).unwrap();
    fs::create_dir(place.path("bin")).unwrap();
    fs::create_dir(place.path("victims")).unwrap();
    for name in ["image", "a.img"] {
        place.write(&format!("victims/{name}"), b"precious");
    }
    place.write("base.img", &[7; 1 << 16]);
    let images = place.path("images");
    fs::set_permissions(&images, fs::Permissions::from_mode(0o777)).unwrap();
    // Another user's, if this is root.
    let _ = chown(&images, Some(1000), Some(1000));
    let spec = format!(
        "version: 1\ndisks:\n- raw: {{path: {0}/a.img, size: 1M, source: {{path: {1}, format: raw}}, mode: '0640'}}\n\
         - qcow2: {{path: {0}/b.qcow2, size: 1M}}\n",
        images.display(),
        place.path("base.img").display(),
    );
    place.write("web1.yaml", spec.as_bytes());
    place
}

fn apply(place: &Place) -> Output {
    let path = format!("{}:/usr/bin:/bin", place.path("bin").display());
    let mut command = place.command(["apply", "web1.yaml"]);
    command.env("PATH", path).output().unwrap()
}

fn assert_no_harm(place: &Place, at: &str) {
    for name in ["image", "a.img"] {
        let path = place.path(&format!("victims/{name}"));
        assert_eq!(fs::read(&path).unwrap(), b"precious", "{at}");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o644, "{at}");
    }
}

/// What the other user does, in the directory of images; V is the directory of victims.
const SWAPS: &[&str] = &[
    "mv a.img.part x; ln -s V a.img.part",
    "mv a.img.part x; mkdir -m 777 a.img.part; ln -s V/image a.img.part/image",
    "ln -s V/a.img a.img",
    "echo theirs >a.img",
    "mkdir a.img",
    "mv b.qcow2.part x; ln -s V b.qcow2.part",
    "ln -s V/image b.qcow2",
    "mv a.img x; ln -s V/a.img a.img",
    "mv a.img x; echo theirs >a.img",
];

#[test]
fn a_swap_at_each_boundary_of_a_command_leads_nowhere() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    let boundaries = ["create", "convert", "chmod", "-f qcow2"];
    let mut tried = 0;
    // Only the first round fails, with a swap of its own.
    for (swap, boundary) in SWAPS
        .iter()
        .flat_map(|swap| boundaries.map(|boundary| (swap, boundary)))
    {
        // Before the command, after it, and before it fails, so that all is undone.
        let rounds = [(*swap, ""), ("", *swap), ("", "fail")];
        let count = if *swap == SWAPS[0] { 3 } else { 2 };
        if swap.contains("b.qcow2") && boundary == "convert" {
            continue;
        }
        for (before, after) in rounds.into_iter().take(count) {
            let place = prepared();
            let victims = place.path("victims");
            let images = place.path("images");
            let swapped = |swap: &str| match swap {
                "" => String::new(),
                "fail" => format!("({}); exit 1", swap_in(SWAPS_AT_UNDO, &images, &victims)),
                swap => format!("({})", swap_in(swap, &images, &victims)),
            };
            for program in ["qemu-img", "chmod"] {
                let text = format!(
                    "case \"{program} $*\" in *'{boundary}'*)\n{}\n/usr/bin/{program} \"$@\"\nended=$?\n{}\nexit $ended ;;\nesac\nexec /usr/bin/{program} \"$@\"",
                    swapped(before),
                    swapped(after)
                );
                place.program(&format!("bin/{program}"), &text);
            }
            let output = apply(&place);
            let at = format!("{swap}, {boundary}, {before:?}, {after:?}: {output:?}");
            assert_no_harm(&place, &at);
            let name = images.join("a.img");
            let is_theirs = fs::read(&name).is_ok_and(|text| text == b"theirs\n");
            let is_link = fs::symlink_metadata(&name).is_ok_and(|it| it.is_symlink());
            if output.status.success() {
                assert!(name.exists(), "{at}");
            } else {
                let is_left = fs::symlink_metadata(&name).is_ok_and(|it| it.is_file());
                assert!(is_theirs || is_link || !is_left, "{at}");
            }
            // What the other user put at the name is still there.
            let has_put = swap.contains(">a.img") && after != "fail";
            assert!(!has_put || is_theirs || output.status.success(), "{at}");
            tried += 1;
        }
    }
    println!("{tried} swaps: 0 harm");
}

/// The file is named, and another one takes its name before the run fails.
const SWAPS_AT_UNDO: &str = "[ ! -e a.img ] || { mv a.img x; echo theirs >a.img; }";

fn swap_in(swap: &str, images: &Path, victims: &Path) -> String {
    let swap = swap.replace("V", &victims.display().to_string());
    format!("cd '{}' && {swap}", images.display())
}

/// A command that writes, what it writes below `images`, and how often the other user acts: once in so many pauses of so many
/// microseconds, in one round after the other.
struct Raced {
    command: &'static [&'static str],
    names: &'static [&'static str],
    once_in: [u64; 3],
    pause: u64,
}

const RACED: [Raced; 4] = [
    Raced {
        command: &["apply", "web1.yaml"],
        names: &["a.img", "b.qcow2"],
        once_in: [10, 100, 400],
        pause: 3000,
    },
    Raced {
        command: &["lint", "images/a.xml", "--fix", "--exit-zero"],
        names: &["a.xml"],
        once_in: [10, 50, 200],
        pause: 300,
    },
    Raced {
        command: &["lint", "bad.xml", "--exit-zero", "-o", "images/o.txt"],
        names: &["o.txt"],
        once_in: [10, 50, 200],
        pause: 300,
    },
    Raced {
        command: &[
            "facts",
            "redact",
            "bad.xml",
            "--level",
            "full",
            "-o",
            "images/r.xml",
        ],
        names: &["r.xml"],
        once_in: [10, 50, 200],
        pause: 300,
    },
];

/// Moves files until it is stopped, as another user if this is root. It replaces no file of its own, so that all of them are
/// there at the end.
fn race(place: &Place, raced: &Raced, is_over: &AtomicBool, seed: u64) -> Vec<(PathBuf, File)> {
    let other = rustix::process::Uid::from_raw(1000);
    // Of this thread alone.
    let _ = rustix::thread::set_thread_res_uid(other, other, other);
    let (images, victims) = (place.path("images"), place.path("victims"));
    let mut state = seed * 77 + 5;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let once_in = raced.once_in[usize::try_from(seed % 3).unwrap()];
    let mut own = Vec::new();
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        let nth = random(raced.names.len() as u64);
        let name = raced.names[usize::try_from(nth).unwrap()];
        let (at, part) = (images.join(name), images.join(format!("{name}.part")));
        let aside = images.join(format!("aside-{number}"));
        number += 1;
        // Each of them may fail.
        match random(6 * once_in) {
            0 => drop(fs::rename(&part, &aside).and_then(|()| symlink(&victims, &part))),
            1 => drop(fs::rename(&at, &aside).and_then(|()| symlink(victims.join("a.img"), &at))),
            2 if own.len() < 200 => {
                let _ = fs::rename(&at, &aside);
                let options = File::options()
                    .read(true)
                    .write(true)
                    .create_new(true)
                    .to_owned();
                if let Ok(mut file) = options.open(&at) {
                    // An image, since another text is what an output may replace.
                    std::io::Write::write_all(&mut file, THEIRS).unwrap();
                    own.push((at.clone(), file));
                }
            }
            3 => drop(symlink(&victims, &part)),
            4 => drop(fs::remove_file(&part)),
            5 if at.is_symlink() => drop(fs::rename(&at, &aside)),
            _ => std::thread::sleep(std::time::Duration::from_micros(random(raced.pause))),
        }
    }
    own
}

const THEIRS: &[u8] = b"theirs\0";

#[test]
fn random_swaps_while_it_runs_do_no_harm() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    let races = std::env::var("VMDISK_RACES")
        .ok()
        .and_then(|races| races.parse().ok())
        .unwrap_or(RACES);
    for raced in &RACED {
        let mut ended = std::collections::BTreeMap::new();
        for seed in 0..races {
            let place = prepared();
            let open = fs::Permissions::from_mode(0o755);
            fs::set_permissions(place.path(""), open).unwrap();
            place.write("bad.xml", crate::UNSAFE.as_bytes());
            place.write("images/a.xml", crate::UNSAFE.as_bytes());
            let is_over = AtomicBool::new(false);
            let (output, own) = std::thread::scope(|scope| {
                let racing = scope.spawn(|| race(&place, raced, &is_over, seed));
                let output = place.command(raced.command).output().unwrap();
                is_over.store(true, Ordering::Relaxed);
                (output, racing.join().unwrap())
            });
            let at = format!("{:?}, seed {seed}: {output:?}", raced.command);
            assert_no_harm(&place, &at);
            for (name, mut file) in own {
                let mut text = Vec::new();
                file.rewind().unwrap();
                file.read_to_end(&mut text).unwrap();
                let names = file.metadata().unwrap().nlink();
                assert_eq!((&text[..], names), (THEIRS, 1), "{}: {at}", name.display());
            }
            *ended.entry(output.status.code()).or_insert(0_u64) += 1;
        }
        println!(
            "{races} races of {:?}: 0 harm; exit statuses {ended:?}",
            raced.command
        );
        // A command that is refused each time shows nothing about its writes.
        let is_shown = ended.get(&Some(0)).is_some_and(|count| count * 4 >= races);
        assert!(races < 100 || is_shown, "{ended:?}");
    }
}

#[test]
fn a_link_of_another_user_in_the_path_is_not_followed_unless_the_directory_is_trusted() {
    let has_tools = needed(installed("qemu-img")).is_some();
    if !has_tools || !rustix::process::geteuid().is_root() {
        return;
    }
    let place = prepared();
    let link = place.path("images/link");
    symlink(place.path("victims"), &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(1000), Some(1000)).unwrap();
    let disk = format!("raw:{}/new.img,size=1M", link.display());
    let refused = place.run(&["apply", "--disk", &disk]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("link is a link of another user"),
        "{refused:?}"
    );
    assert_eq!(fs::read_dir(place.path("victims")).unwrap().count(), 2);
    let trusted = place.run(&["apply", "--disk", &disk, "--trust-directory"]);
    assert_eq!(trusted.code, 0, "{trusted:?}");
    assert!(place.path("victims/new.img").exists());
}

#[test]
fn a_directory_that_is_not_private_is_refused_unless_it_is_trusted() {
    let is_root = rustix::process::geteuid().is_root();
    // mkfs.vfat has no version to print, and fails without a device.
    let has_vfat = vmdisk_testing::run("sh", &["-c", "command -v mkfs.vfat"]).map(drop);
    let programs = [installed("qemu-img"), installed("mount"), has_vfat];
    if !is_root || programs.into_iter().any(|it| needed(it).is_none()) {
        return;
    }
    // A file system without owners: all of it belongs to another user.
    let place = prepared();
    let images = place.path("images");
    let mount = format!(
        "truncate -s 8M '{0}' && mkfs.vfat '{0}' >/dev/null && mount -o loop,uid=1000,umask=0 '{0}' '{1}'",
        place.path("fat.img").display(),
        images.display()
    );
    let is_mounted = Command::new("sh")
        .args(["-c", &mount])
        .output()
        .is_ok_and(|it| it.status.success());
    if !is_mounted {
        return;
    }
    place.write(
        "web1.yaml",
        format!(
            "version: 1\ndisks:\n- raw: {{path: {}/a.img, size: 1M}}\n",
            images.display()
        )
        .as_bytes(),
    );
    let refused = apply(&place);
    let trusted = place.run(&["apply", "web1.yaml", "--trust-directory"]);
    let is_made = images.join("a.img").exists();
    let unmounted = Command::new("umount").arg(&images).status();
    assert!(unmounted.unwrap().success());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("--trust-directory"), "{said}");
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    assert!(is_made);
}
