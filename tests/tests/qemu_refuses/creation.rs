//! Images that no QEMU's `qemu-img` makes, and that a spec cannot ask for.

use std::process::Command;

use vmdisk::plan::Spec;
use vmdisk_tests::on_each_qemu;

/// What a spec says of an image, and `qemu-img` of the same.
struct Row {
    /// The key that the spec's fault is at, with a dot in front of it.
    at: &'static str,
    /// The image in a spec; `DIR` is a folder.
    spec: &'static str,
    /// The arguments behind `qemu-img create`.
    create: &'static str,
    /// What `qemu-img` says.
    says: &'static str,
    /// The same in a spec that can be made; empty where only the fault is to be seen.
    mended: &'static str,
    /// The same for `qemu-img`.
    made: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        at: ".cluster-size",
        spec: "qcow2: {path: DIR/x, size: 16M, cluster-size: 3000}",
        create: "-f qcow2 -o cluster_size=3000 x 16M",
        says: "Cluster size must be a power of two between 512 and 2048k",
        mended: "qcow2: {path: DIR/x, size: 16M, cluster-size: 4096}",
        made: "-f qcow2 -o cluster_size=4096 x 16M",
    },
    Row {
        at: ".cluster-size",
        spec: "qcow2: {path: DIR/x, size: 16M, cluster-size: 4M}",
        create: "-f qcow2 -o cluster_size=4194304 x 16M",
        says: "Cluster size must be a power of two between 512 and 2048k",
        mended: "qcow2: {path: DIR/x, size: 16M, cluster-size: 2M}",
        made: "-f qcow2 -o cluster_size=2097152 x 16M",
    },
    Row {
        at: ".extended-l2",
        spec: "qcow2: {path: DIR/x, size: 16M, cluster-size: 8K, extended-l2: true}",
        create: "-f qcow2 -o cluster_size=8192,extended_l2=on x 16M",
        says: "only supported with cluster sizes of at least 16384 bytes",
        mended: "qcow2: {path: DIR/x, size: 16M, cluster-size: 16K, extended-l2: true}",
        made: "-f qcow2 -o cluster_size=16384,extended_l2=on x 16M",
    },
    Row {
        at: ".preallocation",
        spec: "qcow2: {path: DIR/x, size: 16M, preallocation: metadata, backing: {path: DIR/base, format: raw}}",
        create: "-f qcow2 -o preallocation=metadata -F raw -b base x 16M",
        says: "Backing file and preallocation can only be used at the same time if extended_l2 is on",
        mended: "qcow2: {path: DIR/x, size: 16M, preallocation: metadata, extended-l2: true, backing: {path: DIR/base, format: raw}}",
        made: "-f qcow2 -o preallocation=metadata,extended_l2=on -F raw -b base x 16M",
    },
    Row {
        at: ".preallocation",
        spec: "raw: {path: DIR/x, size: 16M, preallocation: metadata}",
        create: "-f raw -o preallocation=metadata x 16M",
        says: "Unsupported preallocation mode: metadata|Unsupported preallocation mode 'metadata'",
        mended: "raw: {path: DIR/x, size: 16M, preallocation: falloc}",
        made: "-f raw -o preallocation=falloc x 16M",
    },
    Row {
        at: ".preallocation",
        spec: "qcow2: {path: DIR/x, size: 16M, preallocation: some}",
        create: "-f qcow2 -o preallocation=some x 16M",
        says: "does not accept value 'some'|Invalid parameter 'some'",
        mended: "",
        made: "",
    },
];

/// What is wrong with a spec of one disk.
fn faults(spec: &str, folder: &str) -> Vec<String> {
    let text = format!("version: 1\ndisks: [{{{}}}]\n", spec.replace("DIR", folder));
    match Spec::from_yaml(&text) {
        Ok(spec) => spec.check(),
        Err(errors) => errors.into_iter().collect(),
    }
    .iter()
    .map(ToString::to_string)
    .collect()
}

#[test]
fn what_qemu_img_does_not_make_a_spec_cannot_ask_for() {
    on_each_qemu("creation", |qemu| {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap();
        std::fs::File::create(folder.path().join("base"))
            .unwrap()
            .set_len(16 << 20)
            .unwrap();
        let create = |arguments: &str| {
            let output = Command::new(qemu.program("qemu-img"))
                .args(["create", "-q"])
                .args(arguments.split(' '))
                .current_dir(folder.path())
                .env("LC_ALL", "C")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let _ = std::fs::remove_file(folder.path().join("x"));
            (output.status.success(), said)
        };
        for row in ROWS {
            let (is_made, said) = create(row.create);
            let is_told = row.says.split('|').any(|text| said.contains(text));
            assert!(!is_made && is_told, "{}: {said}", row.create);
            let found = faults(row.spec, place);
            assert!(
                found.len() == 1 && found[0].contains(row.at),
                "{}: {found:?}",
                row.spec
            );
            if row.mended.is_empty() {
                continue;
            }
            let (is_made, said) = create(row.made);
            assert!(is_made, "{}: {said}", row.made);
            let found = faults(row.mended, place);
            assert_eq!(found, Vec::<String>::new(), "{}", row.mended);
        }
    });
}
