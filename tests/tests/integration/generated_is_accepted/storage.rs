//! The storage that a spec names, made for real as far as this host can.

use vmdisk::model::Format;
use vmdisk::plan::{BackendSpec, Spec};
use vmdisk_tests::run;

use super::generate_anyway;

/// Makes the files of a spec: those that exist by hand, the others with the generated script.
pub(super) fn make_files(spec: &Spec, target: &str) {
    let mut made = spec.clone();
    for disk in &spec.disks {
        match &disk.backend {
            BackendSpec::Raw(raw) if raw.size.is_none() => make(&raw.path, Format::Raw),
            BackendSpec::Qcow2(qcow2) => {
                if let Some(below) = &qcow2.backing {
                    make(&below.path, below.format);
                }
            }
            BackendSpec::Raw(_)
            | BackendSpec::Lvm(_)
            | BackendSpec::LvmThin(_)
            | BackendSpec::Device(_)
            | BackendSpec::VhostUserBlk(_)
            | BackendSpec::Network(_)
            | BackendSpec::Zvol(_)
            | BackendSpec::Seed(_)
            | BackendSpec::Nvme(_)
            | BackendSpec::VhostVdpa(_)
            | BackendSpec::Directory(_)
            | BackendSpec::Volume(_)
            | BackendSpec::Empty(_) => {}
        }
    }
    made.disks.retain(|disk| {
        let is_file = matches!(disk.backend, BackendSpec::Raw(_) | BackendSpec::Qcow2(_));
        is_file && disk.backend.is_made()
    });
    let script = generate_anyway(&made.to_yaml(), target, &["--to", "script"]);
    let said = run("sh", &["-s"], &script);
    assert_eq!(said.code, 0, "{said:?}\n{script}");
}

fn make(path: &str, format: Format) {
    let said = run(
        "qemu-img",
        &["create", "-f", &format.to_string(), path, "64M"],
        "",
    );
    assert_eq!(said.code, 0, "{said:?}");
}
