//! `vmdisk apply --change bus`: disks of a guest that is there get another bus.

use std::fs;

use vmdisk_testing::{installed, needed};

use crate::apply_changes::{
    command, run, text_of, wait_for_programs, with_virsh, without_own, write_spec,
};
use crate::{Place, real_libvirt};

/// A guest with a system and a disk on a bus.
fn spec(os: &str, bus: &str) -> String {
    let os = if os.is_empty() {
        String::new()
    } else {
        format!(", os: {os}")
    };
    format!(
        "version: 1\nguest: {{name: web1, type: qemu, machine: q35, memory: 256M{os}}}\ndisks:\n\
         - qcow2: {{path: D/a.qcow2, size: 8M}}\n  bus: {bus}\n  cache: none\n  io: threads\n  discard: unmap\n  serial: one\n  boot: 1\n"
    )
}

/// A place with a guest whose disk is on SATA; none without `qemu-img`.
fn prepared(os: &str) -> Option<Place> {
    needed(installed("qemu-img"))?;
    let place = Place::with(&[]);
    fs::create_dir(place.path("images")).unwrap();
    with_virsh(&place, "");
    write_spec(&place, &spec(os, "sata"));
    let (code, said, errors) = run(&place, &[]);
    assert_eq!(code, Some(0), "{said}{errors}");
    Some(place)
}

#[test]
fn the_bus_of_a_disk_changes_on_a_real_libvirt_as_in_a_new_guest() {
    let Some((_root, uri)) = real_libvirt() else {
        return;
    };
    let place = Place::with(&[]);
    let images = place.path("images");
    fs::create_dir(&images).unwrap();
    let apply = |bus: &str, arguments: &[&str]| {
        write_spec(&place, &spec("linux", bus));
        let mut command = command(&place, arguments);
        text_of(&command.env("LIBVIRT_DEFAULT_URI", &uri).output().unwrap())
    };
    let virsh =
        |words: &[&str]| vmdisk_testing::run("virsh", &[&["--connect", &uri], words].concat());
    let definition = || virsh(&["dumpxml", "--inactive", "web1"]).unwrap();
    for (from, to) in [
        ("sata", "sata"),
        ("sata", "virtio"),
        ("virtio", "virtio-scsi"),
        ("virtio-scsi", "usb"),
        ("usb", "sata"),
        ("sata", "virtio-scsi"),
    ] {
        let undefine = || virsh(&["undefine", "web1"]);
        let _ = undefine();
        let (code, said, errors) = apply(to, &[]);
        assert_eq!(code, Some(0), "{said}{errors}");
        let wanted = without_own(&definition());
        undefine().unwrap();
        assert_eq!(apply(from, &[]).0, Some(0));
        let before = definition();
        let image = fs::read(images.join("a.qcow2")).unwrap();
        if from != to {
            let (code, said, errors) = apply(to, &[]);
            assert_eq!(code, Some(1), "{said}{errors}");
            let change = format!("from {from} (");
            assert!(
                said.contains("not-asked: bus ") && said.contains(&change),
                "{said}"
            );
            assert!(errors.contains("`--change bus` allows"), "{errors}");
            assert_eq!(definition(), before);
        }
        let (code, said, errors) = apply(to, &["--change", "bus"]);
        assert_eq!(code, Some(0), "{from} {to}: {said}{errors}");
        assert_eq!(without_own(&definition()), wanted, "{from} {to}");
        let (code, said, _) = apply(to, &["--change", "bus"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.ends_with("nothing-to-do\n"), "{said}");
        assert_eq!(fs::read(images.join("a.qcow2")).unwrap(), image);
    }
}

#[test]
fn what_libvirt_notes_of_the_system_decides_as_the_spec_does() {
    for (os, noted, why) in [
        ("", "", Some("the system of this guest is not known")),
        (
            "",
            "http://microsoft.com/win/11",
            Some("install the driver"),
        ),
        ("", "http://debian.org/debian/12", None),
        ("linux", "http://microsoft.com/win/11", None),
        ("windows", "", Some("install the driver")),
        ("linux", "", None),
    ] {
        let Some(place) = prepared(os) else { return };
        let note = format!(
            "<name>web1</name>\n  <metadata>\n    <libosinfo:libosinfo xmlns:libosinfo='http://libosinfo.org/xmlns/libvirt/domain/1.0'>\n      \
             <libosinfo:os id='{noted}'/>\n    </libosinfo:libosinfo>\n  </metadata>"
        );
        let mut before = place.read("guests/web1");
        if !noted.is_empty() {
            before = before.replace("<name>web1</name>", &note);
            place.write("guests/web1", before.as_bytes());
        }
        write_spec(&place, &spec(os, "virtio"));
        let (code, said, errors) = run(&place, &["--change", "bus"]);
        let now = place.read("guests/web1");
        match why {
            Some(why) => {
                assert_eq!(code, Some(1), "{os} {noted}: {said}{errors}");
                assert!(errors.contains(why), "{os} {noted}: {errors}");
                assert_eq!(now, before, "{os} {noted}");
            }
            None => {
                assert_eq!(code, Some(0), "{os} {noted}: {said}{errors}");
                assert!(
                    said.contains("the initramfs of the guest needs `virtio_blk`"),
                    "{said}"
                );
                assert!(now.contains("<target dev='vda' bus='virtio'/>"), "{now}");
            }
        }
    }
}

#[test]
fn a_bus_changes_together_with_all_else_and_what_libvirt_alone_knows_stays() {
    let Some(place) = prepared("linux") else {
        return;
    };
    let before = place.read("guests/web1").replace(
        "<serial>one</serial>",
        "<serial>one</serial>\n      <encoding>ours</encoding>\n      <alias name='ua-root'/>\n      \
         <address type='drive' controller='0' bus='0' target='0' unit='0'/>",
    );
    place.write("guests/web1", before.as_bytes());
    let both = spec("linux", "virtio")
        .replace("serial: one", "serial: two")
        .replace("8M", "16M")
        + "- qcow2: {path: D/b.qcow2, size: 4M}\n  bus: virtio-scsi\n";
    write_spec(&place, &both);
    let (code, said, errors) = run(&place, &["--change", "bus"]);
    assert_eq!(code, Some(1), "{said}{errors}");
    let now = place.read("guests/web1");
    for kept in [
        "<serial>one</serial>",
        "<encoding>ours</encoding>",
        "ua-root",
        "<boot order='1'/>",
    ] {
        assert!(now.contains(kept), "{kept}\n{now}");
    }
    let moved = now.contains("bus='virtio'") && !now.contains("unit='0'");
    assert!(moved && !now.contains("b.qcow2"), "{now}");
    let (code, said, errors) = run(&place, &["--change", "options,grow,add"]);
    assert_eq!(code, Some(0), "{said}{errors}");
    // Together it is the same.
    let one_by_one = place.read("guests/web1");
    let Some(other) = prepared("linux") else {
        return;
    };
    let images = |place: &Place| place.path("images").display().to_string();
    let before = before.replace(&images(&place), &images(&other));
    other.write("guests/web1", before.as_bytes());
    write_spec(&other, &both);
    let (code, said, errors) = run(&other, &["--change", "bus,options,grow,add"]);
    assert_eq!(code, Some(0), "{said}{errors}");
    let at_once = other
        .read("guests/web1")
        .replace(&images(&other), &images(&place));
    assert_eq!(at_once, one_by_one);
}

#[test]
fn an_interrupted_change_of_a_bus_is_as_before_or_as_after() {
    for signal in ["TERM", "INT", "KILL"] {
        let kill = format!("kill -{signal} $PPID; sleep 0.2");
        for before_define in [kill.clone(), format!("cat >new; mv new web1; {kill}; exit")] {
            let Some(place) = prepared("linux") else {
                return;
            };
            let before = place.read("guests/web1");
            write_spec(&place, &spec("linux", "virtio"));
            with_virsh(&place, &before_define);
            let (code, said, errors) = run(&place, &["--change", "bus"]);
            wait_for_programs(&place);
            assert_ne!(code, Some(1), "{signal}: {said}{errors}");
            let now = place.read("guests/web1");
            let is_after = now.contains("<target dev='vda' bus='virtio'/>");
            assert!(now == before || is_after, "{signal}: {now}");
            with_virsh(&place, "");
            let (code, said, errors) = run(&place, &["--change", "bus"]);
            assert_eq!(code, Some(0), "{signal}: {said}{errors}");
            assert_eq!(run(&place, &[]).0, Some(0));
        }
    }
}
