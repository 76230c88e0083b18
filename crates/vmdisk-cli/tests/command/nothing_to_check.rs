//! Runs without an input name the reason.

use crate::{CLEAN, Place, finish};

fn excluded() -> Place {
    Place::with(&[
        (".git/HEAD", ""),
        ("vmdisk.toml", "exclude = ['old/', '*.args']\n"),
        ("old/a.xml", CLEAN),
        ("old/b.xml", CLEAN),
        ("mixed/a.args", "qemu-system-x86_64"),
        ("mixed/network.xml", "<network/>"),
    ])
}

#[test]
fn exclude_is_named_if_it_leaves_no_file() {
    let place = excluded();
    for (path, files) in [
        ("old", "2 files"),
        ("old/*.xml", "2 files"),
        ("mixed", "1 file"),
    ] {
        for more in [&[][..], &["--show-files"]] {
            let run = place.run(&[&["lint", path], more].concat());
            assert_eq!(run.code, 2, "{path}: {run:?}");
            let says = format!("`exclude` in vmdisk.toml skips {files}\n");
            assert!(run.stderr.contains(&says), "{path}: {run:?}");
        }
    }
    let named = place.run(&["lint", "old/a.xml", "--skip-foreign"]);
    assert_eq!(named.code, 0, "{named:?}");
    assert_eq!(
        named.stderr,
        "nothing to check: `exclude` in vmdisk.toml skips 1 file\n"
    );
}

#[test]
fn a_libvirt_without_guests_is_named() {
    let place = Place::with(&[]);
    place.program("bin/virsh", "case $* in *uri) echo qemu:///system;; esac");
    let mut command = place.command(["lint", "--all-domains"]);
    command.env("PATH", place.path("bin"));
    let run = finish(command, b"");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr
            .contains("nothing to check: qemu:///system has no guests\n"),
        "{run:?}"
    );
}
