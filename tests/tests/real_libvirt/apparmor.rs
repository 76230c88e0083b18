//! What `virt-aa-helper` leaves out of the profile of a guest is what `image-denied-by-apparmor` reports.

use std::path::Path;

use serde_json::{Value, json};
use vmdisk::facts::Version;
use vmdisk::rules::Severity;
use vmdisk::{Facts, Host, lint, read};
use vmdisk_tests::{LibvirtBuild, has_program, libvirts, real, run};

const UUID: &str = "11111111-2222-3333-4444-555555555555";

/// An image for a disk, and all files that QEMU opens for it.
struct Image {
    disk_type: &'static str,
    source: String,
    opened: Vec<String>,
    /// The image as the facts have it.
    path: String,
    header: Value,
}

fn create(arguments: &[&str]) {
    let made = run("qemu-img", &[&["create", "-q"], arguments].concat(), "");
    assert_eq!(made.code, 0, "{arguments:?}: {}", made.stderr);
}

fn escaped(path: &str) -> String {
    path.replace('&', "&amp;")
        .replace('\'', "&apos;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
}

/// Images of every kind that the rule tells apart, and names with each character that could matter.
fn images(folder: &Path) -> Vec<Image> {
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let plain = json!({"format": "qcow2", "data_file": null, "backing": null});
    let file = |path: String, opened: Vec<String>, header: Value| Image {
        disk_type: "file",
        source: format!("file='{}'", escaped(&path)),
        opened,
        path,
        header,
    };
    let (base, overlay) = (at("base.qcow2"), at("overlay.qcow2"));
    create(&["-f", "qcow2", &base, "1M"]);
    create(&["-f", "qcow2", "-b", &base, "-F", "qcow2", &overlay]);
    let over =
        json!({"format": "qcow2", "data_file": null, "backing": {"path": base, "format": "qcow2"}});
    let mut found = vec![file(
        overlay.clone(),
        vec![overlay.clone(), base.clone()],
        over.clone(),
    )];
    found.push(Image {
        disk_type: "volume",
        source: "pool='default' volume='overlay.qcow2'".to_owned(),
        opened: vec![overlay.clone(), base.clone()],
        path: overlay.clone(),
        header: over,
    });
    let link = at("link.qcow2");
    std::os::unix::fs::symlink(&base, &link).unwrap();
    found.push(file(link, vec![base.clone()], plain.clone()));
    let (with_data, data) = (at("with-data.qcow2"), at("data.raw"));
    create(&[
        "-f",
        "qcow2",
        "-o",
        &format!("data_file={data},data_file_raw=on"),
        &with_data,
        "1M",
    ]);
    let header = json!({"format": "qcow2", "data_file": data, "backing": null});
    found.push(file(with_data.clone(), vec![with_data, data], header));
    let over_json = at("over-json.qcow2");
    let name = json!({"driver": "qcow2", "file": {"driver": "file", "filename": base}});
    create(&[
        "-f",
        "qcow2",
        "-b",
        &format!("json:{name}"),
        "-F",
        "qcow2",
        &over_json,
    ]);
    let header = json!({"format": "qcow2", "data_file": null, "backing": {"path": format!("json:{name}"), "format": "qcow2"}});
    found.push(file(over_json.clone(), vec![over_json, base], header));
    for letter in " !\"#$%&'()*+,-.:;<=>?@[]^_`{|}~ü"
        .chars()
        .filter(|letter| *letter != '}')
    {
        let path = at(&format!("a{letter}b.qcow2"));
        // qemu-img reads a colon as the end of a protocol.
        create(&["-f", "qcow2", &format!("file:{path}"), "1M"]);
        found.push(file(path.clone(), vec![path], plain.clone()));
    }
    found
}

/// True if the helper's rules let QEMU open every file: a rule with a pattern does not match its own name.
fn is_allowed(libvirt: &LibvirtBuild, folder: &Path, image: &Image, guest: &str) -> bool {
    let helper = libvirt.aa_helper();
    let said = run(
        "env",
        &[
            &format!("VMDISK_ROOT={}", folder.display()),
            helper.to_str().unwrap(),
            "-d",
            "-r",
            "-u",
            &format!("libvirt-{UUID}"),
        ],
        guest,
    );
    let rules: Vec<&str> = said
        .stdout
        .lines()
        .chain(said.stderr.lines())
        .filter_map(|line| line.trim().strip_prefix('"')?.rsplit_once("\" r"))
        .map(|(path, _)| path)
        .filter(|path| !path.contains(['[', ']', '*', '?', '{', '^']))
        .collect();
    image
        .opened
        .iter()
        .all(|path| rules.contains(&path.as_str()))
}

#[test]
fn the_rule_reports_what_the_helper_leaves_out() {
    const TEST: &str = "the_rule_reports_what_the_helper_leaves_out";
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let has_images = real(has_program("qemu-img"), TEST, "qemu-img");
    for libvirt in libvirts(TEST) {
        let has_helper = libvirt.aa_helper().exists();
        let needs = format!("virt-aa-helper of libvirt {}", libvirt.version);
        if has_images && real(has_helper, TEST, &needs) {
            compare(&libvirt, folder);
        }
    }
}

/// Compares the rule with the helper of a libvirt for every image.
fn compare(libvirt: &LibvirtBuild, folder: &Path) {
    let folder = tempfile::tempdir_in(folder).unwrap();
    let (mut compared, mut denied) = (0, 0);
    let mut wrong = Vec::new();
    for image in images(folder.path()) {
        let disk = format!(
            "<disk type='{}' device='disk'><driver name='qemu' type='qcow2'/><source {}/>\
             <target dev='vda' bus='virtio'/></disk>",
            image.disk_type, image.source
        );
        let guest = format!(
            "<domain type='qemu'><name>t</name><uuid>{UUID}</uuid><memory>1024</memory>\
             <os><type arch='x86_64' machine='pc'>hvm</type></os><devices>{disk}</devices></domain>"
        );
        let Version(major, minor, patch) = libvirt.version;
        let facts = json!({
            "schema": "https://github.com/vmdisk/vmdisk/facts/1",
            "schema_version": "1.0",
            "libvirt": {"version": [major, minor, patch]},
            "security": {"apparmor": true},
            "files": [{"path": image.path, "present": true, "image": image.header}],
        });
        let facts = Facts::parse(&facts.to_string()).unwrap().facts;
        let options = Host::new(facts.clone()).options();
        let report = lint(&read(&guest).unwrap(), &options);
        let mut all = report.diagnostics.iter();
        let finding = all.find(|it| it.rule.name == "image-denied-by-apparmor");
        let severity = finding.map(|finding| finding.severity);
        let expected =
            (!is_allowed(libvirt, folder.path(), &image, &guest)).then_some(Severity::Error);
        if severity != expected {
            wrong.push(format!("{severity:?}, not {expected:?}: {guest}"));
        }
        compared += 1;
        denied += usize::from(expected.is_some());
    }
    println!(
        "libvirt {}: {compared} images, {denied} denied",
        libvirt.version
    );
    assert_eq!(wrong, [""; 0], "libvirt {}", libvirt.version);
    assert!(
        compared > 30 && denied >= 2,
        "{compared} images, {denied} denied"
    );
}
