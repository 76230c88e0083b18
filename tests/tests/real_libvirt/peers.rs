//! The table of the README: the verdicts of other checks on twelve common mistakes.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use vmdisk::facts::Version;
use vmdisk_tests::{
    LibvirtBuild, Step, Verdict, assert_golden, fixtures, has_program, real, repository,
};

/// The libvirt and the QEMU that the table is about.
const LIBVIRT: Version = Version(9, 0, 0);
const QEMU: (u32, u32) = (7, 2);

const BEGIN: &str = "<!-- peers: written by a test -->\n";
const END: &str = "<!-- end of peers -->\n";

/// The folder of the images in the fixtures.
const IMAGES: &str = "/srv/img";

#[test]
fn the_readme_compares_what_other_checks_say_of_the_same_files() {
    let test = "the_readme_compares_what_other_checks_say_of_the_same_files";
    let has_programs = has_program("qemu-img") && has_program("virt-xml-validate");
    if !real(has_programs, test, "qemu-img and virt-xml-validate") {
        return;
    }
    let installed = LibvirtBuild::installed();
    let fits =
        installed.filter(|build| build.version == LIBVIRT && (build.qemu.0, build.qemu.1) == QEMU);
    let needs = format!("libvirt {LIBVIRT} with QEMU {}.{}", QEMU.0, QEMU.1);
    if !real(fits.is_some(), test, &needs) {
        return;
    }
    let libvirt = fits.expect("it was just tested");
    let session = libvirt.session();
    make_images(session.folder());
    let mistakes = mistakes();
    let verdicts = |step, prefix| {
        let guests: Vec<String> = mistakes
            .iter()
            .map(|name| guest(name, prefix, session.folder()))
            .collect();
        session.verdicts(step, guests.iter().map(String::as_str))
    };
    let defined = verdicts(Step::Define, "defined");
    let started = verdicts(Step::Start, "started");
    let mut table = String::from(
        "| mistake | `virt-xml-validate` | `virsh define` | `virsh start` | `vmdisk lint` |\n|---|---|---|---|---|\n",
    );
    for (name, (defined, started)) in mistakes.iter().zip(defined.iter().zip(&started)) {
        let schema = Command::new("virt-xml-validate")
            .arg(fixtures().join("mistakes").join(name))
            .output()
            .expect("it was just found");
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} |",
            title(name),
            word(schema.status.success()),
            word(*defined == Verdict::Accepted),
            word(*started == Verdict::Accepted),
            finding(name)
        );
    }
    let readme = repository().join("README.md");
    let page = std::fs::read_to_string(&readme).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the README has the table");
    let (_, after) = rest.split_once(END).expect("the table ends");
    assert_golden(&readme, &format!("{before}{BEGIN}{table}{END}{after}"));
}

fn word(is_accepted: bool) -> &'static str {
    if is_accepted { "accepts" } else { "refuses" }
}

/// The guest of a mistake under a name of its own, with its images in `images` and without KVM.
fn guest(mistake: &str, prefix: &str, images: &Path) -> String {
    let text = std::fs::read_to_string(fixtures().join("mistakes").join(mistake)).unwrap();
    let name = format!("<name>{prefix}-{}</name>", &mistake[..2]);
    text.replace(IMAGES, &images.display().to_string())
        .replace("<domain type='kvm'>", "<domain type='qemu'>")
        .replace("<name>web1</name>", &name)
}

/// The files of the mistakes, in their order.
fn mistakes() -> Vec<String> {
    let entries = std::fs::read_dir(fixtures().join("mistakes")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".xml")).collect();
    names.sort();
    names
}

/// A link to the file, with the words of its name.
fn title(name: &str) -> String {
    let words = name.trim_end_matches(".xml")[3..].replace('-', " ");
    format!("[{words}](fixtures/mistakes/{name})")
}

/// The first finding, with its line.
fn finding(name: &str) -> String {
    let path = format!("fixtures/mistakes/{name}");
    let facts = path.replace(".xml", ".facts.json");
    let mut arguments = vec!["lint", &path, "--format", "concise"];
    if repository().join(&facts).exists() {
        arguments.extend(["--facts", &facts]);
    }
    let run = vmdisk_tests::run(env!("CARGO_BIN_EXE_vmdisk-under-test"), &arguments, "");
    let line = run.stdout.lines().next().expect("each mistake is found");
    let mut parts = line[path.len() + 1..].splitn(3, ':');
    let (number, _, rest) = (parts.next(), parts.next(), parts.next());
    let (severity, rest) = rest.unwrap_or_default().trim().split_once('[').unwrap();
    let (rule, _) = rest.split_once(']').unwrap();
    format!(
        "{severity}, line {}: [`{rule}`](docs/rules/{rule}.md)",
        number.unwrap_or_default()
    )
}

/// The images that the mistakes name, but for the one that is missing.
fn make_images(folder: &Path) {
    for name in ["web1.qcow2", "data.qcow2"] {
        let image = folder.join(name);
        let made = Command::new("qemu-img")
            .args(["create", "-q", "-f", "qcow2"])
            .arg(&image)
            .arg("1G")
            .status();
        assert!(made.expect("qemu-img was just found").success());
        // An image that was written to ends at a cluster. QEMU refuses the size of a new one as raw, by chance.
        let file = std::fs::File::options().write(true).open(&image).unwrap();
        file.set_len(1 << 20).unwrap();
    }
}
