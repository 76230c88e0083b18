//! Cache modes by themselves, without a host.

use vmdisk::rules::Policy;

use super::support::{CACHE, disk, missed, run, said};

#[test]
fn one_cause_in_the_cache_attributes_is_told_once() {
    let waits = "cache-writethrough warning";
    let native = "native-without-direct error";
    for (device, driver, rest, expected) in [
        ("disk", "cache='none'", "", &[][..]),
        ("disk", "", "", &["cache-implicit pedantic"]),
        ("disk", "", "<readonly/>", &[]),
        ("disk", "", "<shareable/>", &[]),
        ("disk", "", "<transient/>", &["cache-implicit pedantic"]),
        ("cdrom", "", "<readonly/>", &[]),
        ("cdrom", "cache='writethrough'", "", &[]),
        ("floppy", "", "", &[]),
        ("lun", "", "", &[]),
        ("disk", "cache='writethrough'", "", &[waits]),
        ("disk", "cache='directsync'", "<shareable/>", &[waits]),
        ("disk", "cache='writethrough'", "<readonly/>", &[]),
        (
            "disk",
            "cache='writethrough'",
            "<shareable/>",
            &["shareable-cached error"],
        ),
        (
            "disk",
            "cache='unsafe'",
            "<shareable/>",
            &["shareable-cached error"],
        ),
        ("disk", "cache='writeback'", "<shareable/><readonly/>", &[]),
        ("disk", "io='native'", "", &[native]),
        // libvirt looks before it fills in `none` for a shareable disk.
        ("disk", "io='native'", "<shareable/>", &[native]),
        ("cdrom", "io='native'", "<readonly/>", &[native]),
        (
            "disk",
            "io='native' cache='writethrough'",
            "",
            &[waits, native],
        ),
        ("disk", "io='native' cache='directsync'", "", &[waits]),
    ] {
        let xml = disk(
            device,
            &format!("type='raw' {driver}"),
            "/srv/img/a.img",
            rest,
        );
        let outcome = run(&xml, None, "", Policy::default());
        assert_eq!(said(&outcome, &CACHE), expected, "{xml}");
        assert!(missed(&outcome, &CACHE).is_empty(), "{xml}");
    }
}
