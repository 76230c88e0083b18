//! Formats against headers, and sources that are not there.

use super::support::{FORMAT, disk, missed, on, said, written};

#[test]
fn a_format_is_held_against_the_header_where_there_is_one() {
    let facts = written(
        "files:\n\
         - {path: /raw, image: {format: raw}}\n\
         - {path: /qcow2, image: {format: qcow2}}\n\
         - {path: /vmdk, image: {format: vmdk}}\n\
         - {path: /luks, image: {format: luks}}\n\
         - {path: /new-format, image: {format: hologram}}\n\
         - {path: /hidden, image: {unknown: permission}}\n\
         - {path: /gone, present: false}\n",
    );
    let (open, container) = ("format-missing warning", "format-missing error");
    let mismatch = "format-mismatch error";
    for (device, format, path, expected, is_missed) in [
        ("disk", "type='raw'", "/raw", &[][..], false),
        ("disk", "type='raw'", "/luks", &[], false),
        ("disk", "type='raw'", "/new-format", &[], false),
        ("disk", "type='raw'", "/gone", &[], false),
        ("disk", "type='raw'", "/hidden", &[], true),
        ("disk", "type='raw'", "/elsewhere", &[], true),
        ("disk", "type='raw'", "/qcow2", &[mismatch], false),
        ("cdrom", "type='raw'", "/vmdk", &[mismatch], false),
        ("disk", "type='qcow2'", "/qcow2", &[], false),
        ("disk", "type='qcow2'", "/raw", &[mismatch], false),
        ("disk", "type='vpc'", "/raw", &[], false),
        ("disk", "", "/raw", &[open], false),
        ("disk", "", "/hidden", &[open], false),
        ("disk", "", "/qcow2", &[container], false),
        ("cdrom", "", "/raw", &[], false),
        ("cdrom", "", "/qcow2", &[container], false),
        ("floppy", "", "/raw", &[], false),
        ("lun", "", "/dev/raw", &[], false),
    ] {
        let xml = disk(device, format, path, "");
        let outcome = on(&facts, &xml);
        assert_eq!(said(&outcome, &FORMAT), expected, "{xml}");
        assert_eq!(!missed(&outcome, &FORMAT).is_empty(), is_missed, "{xml}");
    }
}

#[test]
fn a_source_is_missing_only_if_somebody_looked() {
    let facts = written(
        "files:\n- {path: /there, kind: regular}\n- {path: /gone, present: false}\n\
         blockdevs:\n- {id: b1, dev: '8:16', kind: disk, paths: [/dev/sdb]}\n",
    );
    let rule = ["source-missing"];
    for (device, path, expected, is_missed) in [
        ("disk", "/there", &[][..], false),
        ("disk", "/dev/sdb", &[], false),
        ("disk", "/nobody-looked", &[], true),
        ("disk", "/gone", &["source-missing error"], false),
        // A drive may do without its medium, if startupPolicy says so.
        ("cdrom", "/gone", &["source-missing error"], false),
        ("cdrom", "", &[], false),
    ] {
        let outcome = on(&facts, &disk(device, "type='raw'", path, ""));
        assert_eq!(said(&outcome, &rule), expected, "{device} {path}");
        assert_eq!(
            !missed(&outcome, &rule).is_empty(),
            is_missed,
            "{device} {path}"
        );
    }
}

#[test]
fn what_is_known_of_a_backing_image_does_not_depend_on_the_images_above_it() {
    let facts = written(
        "files:\n\
         - {path: /base, image: {format: qcow2}}\n\
         - {path: /gone, present: false}\n",
    );
    for (base, expected) in [
        ("/base", "format-mismatch error"),
        ("/gone", "source-missing error"),
    ] {
        let xml = format!(
            "<disk type='file'><driver name='qemu' type='qcow2'/><source file='/new'/>\
             <backingStore type='file'><format type='raw'/><source file='{base}'/></backingStore>\
             <target dev='vda' bus='virtio'/></disk>"
        );
        let outcome = on(&facts, &xml);
        let rules = ["format-mismatch", "source-missing"];
        assert_eq!(said(&outcome, &rules), [expected], "{xml}");
        for rule in rules {
            assert_eq!(missed(&outcome, &[rule]).len(), 1, "{rule}: {xml}");
        }
    }
}

#[test]
fn sources_that_are_no_whole_file_of_this_host_are_judged_by_what_they_are() {
    let facts = written(
        "files:\n\
         - {path: /qcow2, image: {format: qcow2}}\n\
         - {path: /there, image: {format: raw}}\n\
         - {path: /gone, present: false}\n",
    );
    let rules = ["format-mismatch", "format-missing", "source-missing"];
    let of = |kind: &str, format: &str, source: &str| {
        format!(
            "<disk type='{kind}'><driver name='qemu' type='{format}'/>{source}\
             <target dev='vda' bus='virtio'/></disk>"
        )
    };
    for (xml, expected) in [
        // A part of a file, an encrypted one and one whose descriptor is passed in have other first bytes.
        (
            of(
                "file",
                "raw",
                "<source file='/qcow2'><slices><slice type='storage' offset='4096' size='4096'/></slices></source>",
            ),
            &[][..],
        ),
        (
            of("file", "qcow2", "<source file='/gone' fdgroup='a'/>"),
            &[],
        ),
        (
            of(
                "file",
                "raw",
                "<source file='/qcow2'><encryption format='luks'><secret type='passphrase' usage='a'/>\
                 </encryption></source>",
            ),
            &[],
        ),
        // What is elsewhere is not missing here.
        (
            of(
                "network",
                "qcow2",
                "<source protocol='nbd'><host name='h'/></source>",
            ),
            &[],
        ),
        (
            of(
                "file",
                "qcow2",
                "<source file='/qcow2'><dataStore type='file'><format type='raw'/><source file='/there'/>\
                 </dataStore></source>",
            ),
            &[],
        ),
        (
            of(
                "file",
                "qcow2",
                "<source file='/qcow2'><dataStore type='file'><format type='raw'/><source file='/gone'/>\
                 </dataStore></source>",
            ),
            &["source-missing error"],
        ),
        (
            of(
                "file",
                "raw",
                "<source file='/gone' startupPolicy='optional'/>",
            ),
            &["source-missing warning"],
        ),
    ] {
        let outcome = on(&facts, &xml);
        assert_eq!(said(&outcome, &rules), expected, "{xml}");
        assert_eq!(missed(&outcome, &rules), Vec::<&str>::new(), "{xml}");
    }
}

/// What the header shows goes before what the text makes, and a header that agrees does not hide what the text makes.
#[test]
fn a_format_that_the_text_makes_is_held_against_the_header() {
    let facts = written(
        "files:\n\
         - {path: /raw, image: {format: raw}}\n\
         - {path: /qcow2, image: {format: qcow2}}\n\
         - {path: /gone, present: false}\n",
    );
    let host = vmdisk::Host::new(facts);
    for (path, written, expected, is_fixed) in [
        ("/raw", ",format=raw", "format-mismatch", false),
        ("/raw", ",format=qcow2", "format-mismatch", false),
        ("/gone", ",format=raw", "format-mismatch", false),
        ("/raw", "", "format-missing", false),
        ("/qcow2", "", "format-missing", true),
        ("/gone", "", "format-missing", true),
    ] {
        let text = format!(
            "qemu-img create -f qcow2 {path} 10G\nqemu-system-x86_64 -drive file={path},if=virtio{written}\n"
        );
        let options = vmdisk::LintOptions::default().host(host.clone());
        let document = vmdisk::read(&text).expect("it is a script");
        let report = vmdisk::lint(&document, &options);
        let mut found = report.diagnostics.iter();
        let found = found.find(|it| FORMAT.contains(&it.rule.name));
        let found = found.unwrap_or_else(|| panic!("nothing is found\n{text}"));
        assert_eq!(found.rule.name, expected, "{text}");
        assert_eq!(found.fix.is_some(), is_fixed, "{text}{found:#?}");
    }
}

#[test]
fn an_owner_matters_only_where_libvirt_is_told_to_leave_it_alone() {
    let rule = ["image-permission-denied"];
    for (setting, expected) in [
        ("false", &["image-permission-denied error"][..]),
        ("true", &[]),
        ("null", &[]),
        ("{unknown: permission}", &[]),
    ] {
        let facts = written(&format!(
            "libvirt: {{qemu_conf: {{dynamic_ownership: {setting}}}}}\n\
             files:\n- {{path: /a, qemu_access: {{search: true, read: false, write: false}}}}\n"
        ));
        let outcome = on(&facts, &disk("disk", "type='raw'", "/a", ""));
        assert_eq!(said(&outcome, &rule), expected, "{setting}");
    }
}

#[test]
fn fixes_of_a_disk_wait_until_its_format_is_settled() {
    let facts = written(
        "files:\n\
         - {path: /raw, image: {format: raw}}\n\
         - {path: /qcow2, image: {format: qcow2}}\n",
    );
    for (path, count) in [("/raw", 1), ("/qcow2", 0)] {
        let driver = "type='raw' cache='unsafe'";
        let outcome = on(&facts, &disk("disk", driver, path, ""));
        let fixes = outcome.findings.iter().filter(|it| it.fix.is_some());
        assert_eq!(fixes.count(), count, "{path}: {:#?}", outcome.findings);
    }
}
