//! Remedies that are commands do what they promise: each is taken from the text and run.

use std::process::Command;

use vmdisk_testing::{installed, make_key, needed};

use crate::Place;

/// The command between backticks that starts with these words.
fn command(text: &str, start: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let at = text
        .find(&format!("`{start}"))
        .expect("the text has the command");
    text[at + 1..].split('`').next().unwrap().to_owned()
}

/// Runs a command in a place, without a shell.
fn run(place: &Place, command: &str) -> String {
    let mut words = command.split(' ');
    let program = words.next().unwrap();
    let mut command = Command::new(program);
    let output = make_key(command.args(words).current_dir(place.path("")));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_image_with_aes_becomes_one_with_luks() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    let place = Place::with(&[("old.key", "old secret"), ("new.key", "new secret")]);
    let create = "qemu-img create -q -f qcow2 --object secret,id=s,file=old.key -o encrypt.format=aes,encrypt.key-secret=s";
    run(&place, &format!("{create} old.qcow2 1M"));
    let page = place.run(&["explain", "qcow2-aes-encryption"]).stdout;
    let convert = command(&page, "qemu-img convert")
        .replace("OLDKEY", "old.key")
        .replace("NEWKEY", "new.key")
        .replace("filename=OLD", "filename=old.qcow2")
        .replace(" NEW", " new.qcow2");
    run(&place, &convert);
    let info = run(&place, "qemu-img info --output=json new.qcow2");
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["format-specific"]["data"]["encrypt"]["format"], "luks");
    assert_eq!(info["virtual-size"], 1 << 20);
}

#[test]
fn an_overlay_that_is_resized_shows_all_of_its_backing_image() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    let place = Place::with(&[]);
    run(&place, "qemu-img create -q -f qcow2 base.qcow2 8M");
    run(
        &place,
        "qemu-img create -q -f qcow2 -b base.qcow2 -F qcow2 top.qcow2 4M",
    );
    let image = |name: &str| place.path(name).to_str().unwrap().to_owned();
    let xml = format!(
        "<disk type='file' device='disk'>\n<driver name='qemu' type='qcow2' cache='writeback'/>\n<source file='{}'/>\n\
         <backingStore type='file'><format type='qcow2'/><source file='{}'/></backingStore>\n<target dev='vda' bus='virtio'/>\n</disk>\n",
        image("top.qcow2"),
        image("base.qcow2")
    );
    place.write("a.xml", xml.as_bytes());
    let lint = || place.run(&["lint", "--live", "a.xml"]).stdout;
    let found = lint();
    assert!(found.contains("[overlay-smaller-than-backing]"), "{found}");
    run(&place, &command(&found, "qemu-img resize"));
    let found = lint();
    assert!(!found.contains("overlay-smaller"), "{found}");
}
