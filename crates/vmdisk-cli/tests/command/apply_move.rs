//! `vmdisk apply --change move`: the data of a guest that is there moves to other storage.

use std::fs;
use std::process::{Command, Stdio};

use vmdisk_testing::{installed, needed};

use crate::apply_changes::{
    command, run, text_of, wait_for_programs, with_qemu_img, with_virsh, without_own, write_spec,
};
use crate::{Place, real_libvirt};

/// What makes the state of a case.
type Preparation = fn(&Place);

const MOVE: [&str; 2] = ["--change", "move"];

pub(crate) fn spec(image: &str) -> String {
    format!(
        "version: 1\nguest: {{name: web1, type: qemu, memory: 256M}}\ndisks:\n- {image}\n  cache: none\n  io: threads\n  serial: one\n"
    )
}

pub(crate) const BEFORE: &str = "qcow2: {path: D/a.qcow2, size: 8M}";
const AFTER: &str = "raw: {path: D/b.img, size: 8M}";

/// 8 MiB with data at both ends and a hole between.
pub(crate) fn data() -> Vec<u8> {
    let mut data = vec![0; 8 << 20];
    for (nth, byte) in data
        .iter_mut()
        .enumerate()
        .filter(|(nth, _)| nth % (7 << 20) < (1 << 20))
    {
        *byte = u8::try_from(nth * 31 % 251).unwrap();
    }
    data
}

fn qemu_img(words: &[&str]) -> String {
    vmdisk_testing::run("qemu-img", words).unwrap()
}

pub(crate) fn path(place: &Place, name: &str) -> String {
    place.path("images").join(name).display().to_string()
}

/// Fills an image with the data.
fn fill(place: &Place, format: &str, name: &str) {
    fill_with(place, format, name, 8 << 20);
}

/// Fills an image with the beginning of the data.
pub(crate) fn fill_with(place: &Place, format: &str, name: &str, size: usize) {
    let file = place.path("data");
    fs::write(&file, &data()[..size]).unwrap();
    let (file, image) = (file.display().to_string(), path(place, name));
    qemu_img(&["convert", "-n", "-f", "raw", "-O", format, &file, &image]);
}

/// What a guest reads from an image.
pub(crate) fn read(place: &Place, format: &str, name: &str) -> Vec<u8> {
    let out = place.path("out").display().to_string();
    qemu_img(&[
        "convert",
        "-f",
        format,
        "-O",
        "raw",
        &path(place, name),
        &out,
    ]);
    fs::read(out).unwrap()
}

/// A place with a guest that has data in an image; none without `qemu-img`.
fn prepared_with(image: &str, format: &str, name: &str) -> Option<Place> {
    needed(installed("qemu-img"))?;
    let place = Place::with(&[]);
    fs::create_dir(place.path("images")).unwrap();
    with_virsh(&place, "");
    write_spec(&place, &spec(image));
    let (code, said, errors) = run(&place, &[]);
    assert_eq!(code, Some(0), "{said}{errors}");
    fill(&place, format, name);
    Some(place)
}

pub(crate) fn prepared() -> Option<Place> {
    let place = prepared_with(BEFORE, "qcow2", "a.qcow2")?;
    write_spec(&place, &spec(AFTER));
    Some(place)
}

/// The files below the folder of images.
pub(crate) fn files(place: &Place) -> Vec<String> {
    let all = fs::read_dir(place.path("images")).unwrap();
    let mut names: Vec<String> = all
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn data_moves_between_forms_and_the_old_storage_stays() {
    for (before, from, old, after, to, new) in [
        (BEFORE, "qcow2", "a.qcow2", AFTER, "raw", "b.img"),
        (
            AFTER,
            "raw",
            "b.img",
            "qcow2: {path: D/c.qcow2, size: 8M, cluster-size: 128K}",
            "qcow2",
            "c.qcow2",
        ),
        (
            BEFORE,
            "qcow2",
            "a.qcow2",
            "raw: {path: D/full.img, size: 16M, preallocation: full, mode: '0640'}",
            "raw",
            "full.img",
        ),
        (
            "raw: {path: D/a b.img, size: 8M}",
            "raw",
            "a b.img",
            "raw: {path: 'D/b,c.img', size: 8M}",
            "raw",
            "b,c.img",
        ),
    ] {
        let Some(place) = prepared_with(before, from, old) else {
            return;
        };
        let (definition, bytes) = (
            place.read("guests/web1"),
            fs::read(path(&place, old)).unwrap(),
        );
        write_spec(&place, &spec(after));
        let (code, said, errors) = run(&place, &[]);
        assert_eq!(code, Some(1), "{said}{errors}");
        for shown in [
            "not-asked: move vda: ",
            "  command: qemu-img convert -n ",
            "  then: qemu-img compare ",
            "  down time: off\n",
        ] {
            assert!(said.contains(shown), "{shown}\n{said}");
        }
        assert!(errors.contains("`--change move"), "{errors}");
        assert_eq!(files(&place), [old]);
        assert_eq!(place.read("guests/web1"), definition);
        // Full preallocation has other discards.
        let (code, said, errors) = run(&place, &["--change", "move,options"]);
        assert_eq!(code, Some(0), "{new}: {said}{errors}");
        assert!(said.contains(" stays and takes "), "{said}");
        let mut wanted = data();
        wanted.resize(read(&place, to, new).len(), 0);
        assert!(read(&place, to, new) == wanted, "{new}");
        assert!(fs::read(path(&place, old)).unwrap() == bytes, "{new}");
        let now = place.read("guests/web1");
        assert!(
            now.contains(&path(&place, new)) && !now.contains(&path(&place, old)),
            "{now}"
        );
        assert!(now.contains("<serial>one</serial>"), "{now}");
        assert_eq!(files(&place).len(), 2);
        let (code, said, _) = run(&place, &MOVE);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.ends_with("nothing-to-do\n"), "{said}");
    }
}

#[test]
fn a_copy_has_the_data_of_the_images_below_and_holes_stay_holes() {
    let Some(place) = prepared() else { return };
    let (base, top) = (path(&place, "base.qcow2"), path(&place, "a.qcow2"));
    fs::rename(&top, &base).unwrap();
    qemu_img(&[
        "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", &base, &top,
    ]);
    let (code, said, errors) = run(&place, &MOVE);
    assert_eq!(code, Some(0), "{said}{errors}");
    assert!(said.contains(&format!("with the data of {base}")), "{said}");
    assert!(read(&place, "raw", "b.img") == data());
    let blocks =
        std::os::unix::fs::MetadataExt::blocks(&fs::metadata(path(&place, "b.img")).unwrap());
    assert!(blocks * 512 < 6 << 20, "{blocks}");
}

#[test]
fn what_is_in_the_way_refuses_before_anything_is_copied() {
    let rows: &[(Preparation, &str)] = &[
        (
            |place| place.write("state", b"running\n"),
            "a block job of the disk vda of the guest web1 runs",
        ),
        (
            |place| place.write("info", b"Managed save:   yes\n"),
            "has a saved state",
        ),
        (|place| place.write("snapshots", b"s1\n"), "has snapshots"),
        (
            |place| place.write("no-info", b""),
            "libvirt does not say whether the guest web1 has a saved state or snapshots",
        ),
        (
            |place| place.write("no-snapshots", b""),
            "libvirt does not say whether the guest web1 has a saved state or snapshots",
        ),
        (
            |place| place.write("state", b"\n"),
            "libvirt does not say that the guest web1 is off",
        ),
        (
            |place| drop(qemu_img(&["snapshot", "-c", "s", &path(place, "a.qcow2")])),
            "internal snapshots, which a copy does not have",
        ),
        (
            |place| drop(qemu_img(&["bitmap", "--add", &path(place, "a.qcow2"), "b"])),
            "bitmaps of backups",
        ),
        (
            |place| {
                let other = place.read("guests/web1").replace("web1", "web2");
                place.write("guests/web2", other.as_bytes());
            },
            "the guest web2 of libvirt uses it, too",
        ),
        (
            |place| write_spec(place, &spec("raw: {path: D/b.img, size: 4M}")),
            "what the guest wrote beyond would be lost; write `size: 8 MiB` or more",
        ),
        (
            |place| {
                write_spec(
                    place,
                    &spec("raw: {path: D/b.img, size: 900T, preallocation: falloc}"),
                )
            },
            "has too little space",
        ),
        (
            |place| {
                write_spec(
                    place,
                    &spec(
                        "qcow2: {path: D/b.qcow2, size: 8M, backing: {path: D/a.qcow2, format: qcow2}}",
                    ),
                )
            },
            "a copy has all data in itself",
        ),
        (
            |place| {
                write_spec(
                    place,
                    &spec(
                        "raw: {path: D/b.img, size: 8M, source: {path: D/a.qcow2, format: qcow2}}",
                    ),
                )
            },
            "remove that key",
        ),
        (
            |place| place.write("images/b.img", &[1; 8 << 20]),
            "b.img does not have the data of ",
        ),
        (
            |place| place.write("images/b.img", &[1; 4 << 20]),
            "b.img exists with another size, and nothing is overwritten",
        ),
        (
            |place| std::os::unix::fs::symlink("nothing", place.path("images/b.img")).unwrap(),
            "it is a symbolic link",
        ),
        (
            |place| fs::create_dir(place.path("images/b.img.part")).unwrap(),
            "b.img.part exists, perhaps of a run that was killed: remove it",
        ),
        (
            |place| fs::remove_file(place.path("images/a.qcow2")).unwrap(),
            "a.qcow2 cannot be read",
        ),
    ];
    for (prepare, why) in rows {
        let Some(place) = prepared() else { return };
        prepare(&place);
        refused_without_a_change(&place, &MOVE, why);
    }
}

/// A run that is refused for a reason, and leaves all images and the definition as they are.
pub(crate) fn refused_without_a_change(place: &Place, options: &[&str], why: &str) {
    let state = || {
        let names = files(place);
        let bytes = names.iter().map(|name| fs::read(path(place, name)).ok());
        let images: Vec<_> = bytes.collect();
        (images, names, fs::read(place.path("guests/web1")).ok())
    };
    let before = state();
    let (code, said, errors) = run(place, options);
    assert_eq!(code, Some(1), "{why}: {said}{errors}");
    assert!(errors.contains(why), "{why}: {said}{errors}");
    assert!(state() == before, "{why}");
}

#[test]
fn an_image_that_a_qemu_has_open_is_not_copied() {
    let Some(place) = prepared() else { return };
    if needed(installed("qemu-io")).is_none() {
        return;
    }
    let mut open = Command::new("qemu-io");
    open.args(["-f", "qcow2"]).arg(path(&place, "a.qcow2"));
    let mut open = open
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Its prompt says that the image is open.
    std::io::Read::read_exact(open.stdout.as_mut().unwrap(), &mut [0; 4]).unwrap();
    let (code, said, errors) = run(&place, &MOVE);
    drop(open.stdin.take());
    open.wait().unwrap();
    assert_eq!(code, Some(1), "{said}{errors}");
    assert!(errors.contains("lock"), "{errors}");
    assert_eq!(files(&place), ["a.qcow2"]);
}

#[test]
fn what_happens_in_the_middle_leaves_the_guest_and_its_data_as_they_were() {
    let rows: &[(Preparation, &str)] = &[
        (
            |place| {
                with_qemu_img(
                    place,
                    "compare",
                    "printf x | dd of=\"$8\" conv=notrunc status=none",
                    "",
                )
            },
            "does not have the data of",
        ),
        (
            |place| {
                with_qemu_img(
                    place,
                    "compare",
                    "",
                    &format!("echo running >'{}'", place.path("state").display()),
                )
            },
            "was started meanwhile",
        ),
        (
            |place| with_qemu_img(place, "convert", "echo no space >&2; exit 1", ""),
            "qemu-img fails: no space",
        ),
        (
            |place| {
                with_virsh(
                    place,
                    "echo running >../state; cat >new; mv new web1; sed -i 's/b.img/a.qcow2/' web1; exit",
                )
            },
            "it was started meanwhile; it is defined as before",
        ),
        (|place| with_virsh(place, "exit 1"), "virsh define fails"),
        (
            |place| {
                let guest = place.path("guests/web1");
                let edit = format!("sed -i 's/262144/524288/' '{}'", guest.display());
                with_qemu_img(place, "convert", &edit, "");
            },
            "the guest web1 was changed meanwhile: run it again",
        ),
    ];
    for (prepare, why) in rows {
        let Some(place) = prepared() else { return };
        let (definition, bytes) = (
            place.read("guests/web1"),
            fs::read(path(&place, "a.qcow2")).unwrap(),
        );
        prepare(&place);
        let (code, said, errors) = run(&place, &MOVE);
        assert!([Some(1), Some(2)].contains(&code), "{why}: {said}{errors}");
        assert!(errors.contains(why), "{why}: {errors}");
        assert_eq!(files(&place), ["a.qcow2"], "{why}");
        assert!(fs::read(path(&place, "a.qcow2")).unwrap() == bytes, "{why}");
        let now = place.read("guests/web1").replace("524288", "262144");
        if !why.contains("it is defined as before") {
            assert_eq!(now, definition, "{why}");
        }
    }
}

#[test]
fn an_interrupted_move_loses_nothing_and_the_next_run_ends_it() {
    for signal in ["TERM", "INT", "KILL"] {
        let kill = format!("kill -{signal} $PPID; sleep 0.2");
        let in_define = format!("cat >new; mv new web1; {kill}; exit");
        for (name, what, before, after, virsh) in [
            ("before the image", "create", kill.as_str(), "", ""),
            ("before the copy", "convert", &kill, "", ""),
            ("after the copy", "convert", "", &kill, ""),
            ("before the comparison", "compare", &kill, "", ""),
            ("after the comparison", "compare", "", &kill, ""),
            ("before the definition", "-", "", "", &kill),
            ("in the definition", "-", "", "", &in_define),
        ] {
            let Some(place) = prepared() else { return };
            let before_run = place.read("guests/web1");
            with_qemu_img(&place, what, before, after);
            with_virsh(&place, virsh);
            let (code, said, errors) = run(&place, &MOVE);
            wait_for_programs(&place);
            assert_ne!(code, Some(1), "{signal} {name}: {said}{errors}");
            assert!(
                read(&place, "qcow2", "a.qcow2") == data(),
                "{signal} {name}"
            );
            let now = place.read("guests/web1");
            let is_after = now.contains("b.img");
            assert!(is_after || now == before_run, "{signal} {name}: {now}");
            // A name is given only to what was compared.
            if fs::exists(path(&place, "b.img")).unwrap() {
                assert!(read(&place, "raw", "b.img") == data(), "{signal} {name}");
            } else {
                assert!(!is_after, "{signal} {name}");
            }
            with_qemu_img(&place, "-", "", "");
            with_virsh(&place, "");
            let part = place.path("images/b.img.part");
            if part.exists() {
                assert_eq!(signal, "KILL", "{name}");
                let (code, _, errors) = run(&place, &MOVE);
                assert_eq!(code, Some(1), "{errors}");
                assert!(
                    errors.contains("b.img.part exists, perhaps of a run that was killed"),
                    "{errors}"
                );
                fs::remove_dir_all(part).unwrap();
            }
            let (code, said, errors) = run(&place, &MOVE);
            assert_eq!(code, Some(0), "{signal} {name}: {said}{errors}");
            assert!(read(&place, "raw", "b.img") == data(), "{signal} {name}");
            assert_eq!(run(&place, &[]).0, Some(0));
        }
    }
}

#[test]
fn data_moves_to_a_file_and_to_a_pool_of_a_real_libvirt() {
    let Some((_root, uri)) = real_libvirt() else {
        return;
    };
    let place = Place::with(&[]);
    fs::create_dir(place.path("images")).unwrap();
    let virsh =
        |words: &[&str]| vmdisk_testing::run("virsh", &[&["--connect", &uri], words].concat());
    let apply = |image: &str, arguments: &[&str]| {
        write_spec(&place, &spec(image));
        let mut command = command(&place, arguments);
        text_of(&command.env("LIBVIRT_DEFAULT_URI", &uri).output().unwrap())
    };
    let definition = || without_own(&virsh(&["dumpxml", "--inactive", "web1"]).unwrap());
    let (code, said, errors) = apply(AFTER, &[]);
    assert_eq!(code, Some(0), "{said}{errors}");
    let wanted = definition();
    virsh(&["undefine", "web1"]).unwrap();
    fs::remove_file(path(&place, "b.img")).unwrap();
    assert_eq!(apply(BEFORE, &[]).0, Some(0));
    fill(&place, "qcow2", "a.qcow2");
    let (code, said, errors) = apply(AFTER, &MOVE);
    assert_eq!(code, Some(0), "{said}{errors}");
    assert_eq!(definition(), wanted);
    assert!(read(&place, "raw", "b.img") == data());
    assert!(apply(AFTER, &MOVE).1.ends_with("nothing-to-do\n"));
    // And to a pool, where programs find the volume by what libvirt says.
    let folder = place.path("images").display().to_string();
    let pool = ["pool-create-as", "fast", "dir", "--target", &folder];
    if let Err(why) = virsh(&pool) {
        println!("no pool: {why}");
        return;
    }
    let volume = "volume: {pool: fast, volume: v.qcow2, format: qcow2, size: 8M}";
    let (code, said, errors) = apply(volume, &MOVE);
    assert_eq!(code, Some(0), "{said}{errors}");
    assert!(read(&place, "qcow2", "v.qcow2") == data());
    let now = definition().join("\n");
    assert!(
        now.contains("<source pool='fast' volume='v.qcow2'"),
        "{now}"
    );
    assert!(apply(volume, &MOVE).1.ends_with("nothing-to-do\n"));
}
