//! Pools and volumes beside the guests whose disks are on them.

use crate::Place;

const POOL: &str = "<pool type='dir'><name>images</name><target><path>/srv</path></target></pool>";

const GUEST: &str = "<domain type='kvm'><name>a</name><devices>
  <disk type='volume'><driver name='qemu' type='qcow2'/>
    <source pool='images' volume='a.qcow2'/><target dev='vda' bus='virtio'/></disk>
  <disk type='file'><driver name='qemu' type='qcow2'/>
    <source file='/srv/a.qcow2'/><target dev='vdb' bus='virtio'/></disk>
</devices></domain>";

#[test]
fn a_disk_on_a_volume_is_judged_by_what_its_pool_makes_of_it() {
    let place = Place::with(&[("a.xml", GUEST), ("pool.xml", POOL)]);
    let alone = place.run(&["lint", "a.xml", "--format", "concise"]);
    assert!(!alone.stdout.contains("duplicate-disk-source"), "{alone:?}");
    let beside = place.run(&["lint", "a.xml", "pool.xml", "--format", "concise"]);
    assert!(
        beside.stdout.contains("duplicate-disk-source"),
        "{beside:?}"
    );
}

#[test]
fn a_volume_of_an_unknown_pool_is_not_checked() {
    let place = Place::with(&[("a.xml", GUEST), ("pool.xml", POOL)]);
    let alone = place.run(&["lint", "a.xml", "-v"]);
    for rule in ["format-mismatch", "btrfs-cow-image", "discard-missing-thin"] {
        let mut lines = alone.stderr.lines().filter(|line| line.contains(rule));
        let names_it = lines.any(|line| line.contains("volume a.qcow2 in pool images"));
        assert!(names_it, "{rule}: {alone:?}");
    }
    let json = place.run(&["lint", "a.xml", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let missed = json["not_checked"].as_array().unwrap();
    let is_volume = |missed: &&serde_json::Value| {
        let what = missed["what"].as_str().unwrap_or_default();
        what.contains("volume a.qcow2 in pool images")
    };
    assert!(missed.iter().filter(is_volume).count() > 10, "{missed:#?}");
    let beside = place.run(&["lint", "a.xml", "pool.xml", "-v"]);
    assert!(!beside.stderr.contains("in pool"), "{beside:?}");
}

#[test]
fn a_volume_that_libvirt_takes_for_no_disk_is_told() {
    let pool = POOL.replace("type='dir'", "type='gluster'");
    let place = Place::with(&[("a.xml", GUEST), ("pool.xml", &pool)]);
    let run = place.run(&["lint", "a.xml", "pool.xml"]);
    assert!(
        run.stdout
            .contains("libvirt does not support disks on volumes of a pool of type 'gluster'"),
        "{run:?}"
    );
}

#[test]
fn a_command_line_opens_what_the_pool_says() {
    let place = Place::with(&[("a.xml", GUEST), ("pool.xml", POOL)]);
    let alone = place.run(&["convert", "a.xml", "--to", "qemu"]);
    assert_eq!(alone.code, 2, "{alone:?}");
    assert!(alone.stderr.contains("the XML of the pool"), "{alone:?}");
    let beside = place.run(&["convert", "a.xml", "--to", "qemu", "--storage", "pool.xml"]);
    assert_eq!(beside.code, 0, "{beside:?}");
    assert!(beside.stdout.contains(r#""filename":"/srv/a.qcow2""#));
    let domain = place.run(&["convert", "a.xml", "--to", "qemu", "--storage", "a.xml"]);
    assert_eq!(domain.code, 2, "{domain:?}");
    let said = "a.xml is neither a storage pool nor a volume";
    assert!(domain.stderr.contains(said), "{domain:?}");
}

#[test]
fn a_snapshot_is_read_with_its_guest() {
    let snapshot = format!(
        "<domainsnapshot><name>before</name><disks>
           <disk name='vda' snapshot='externel'/><disk name='vdz' snapshot='no'/>
         </disks>{GUEST}</domainsnapshot>"
    );
    let place = Place::with(&[("a.xml", &snapshot)]);
    let run = place.run(&["lint", "a.xml"]);
    assert!(run.stdout.contains("did you mean `external`?"), "{run:?}");
    assert!(
        run.stdout.contains("the guest has no disk `vdz`"),
        "{run:?}"
    );
    assert!(
        run.stderr.contains("2 disks") || run.stdout.contains("vda"),
        "{run:?}"
    );
}

#[test]
fn a_daemon_that_does_not_start_ends_the_command_line() {
    let place = Place::with(&[]);
    let gone = place.path("gone").display().to_string();
    let disk = format!("vhost-user-blk:{gone}.sock,serves.path={gone}.img,serves.format=raw");
    let written = place.run(&["generate", "--disk", &disk, "--to", "qemu"]);
    // With or without the program, there is no such image.
    let output = std::process::Command::new("timeout")
        .args(["60", "sh", "-c", &written.stdout])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
