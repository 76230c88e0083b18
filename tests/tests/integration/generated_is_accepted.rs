//! What `vmdisk generate` writes, libvirt and QEMU take, and mean the same by it.
//!
//! Each file in `fixtures/specs/accepted` is a claim. Where a program of this version, or this host, cannot take
//! what a spec asks for, that is an [`Exception`] with its reason, and the refusal is looked at too.

#[path = "generated_is_accepted/acpi.rs"]
mod acpi;
#[path = "generated_is_accepted/boots.rs"]
mod boots;
#[path = "generated_is_accepted/devices.rs"]
mod devices;
#[path = "generated_is_accepted/exception.rs"]
mod exception;
#[path = "generated_is_accepted/libvirt.rs"]
mod libvirt;
#[path = "generated_is_accepted/qemu.rs"]
mod qemu;
#[path = "generated_is_accepted/storage.rs"]
mod storage;

use std::path::Path;

use vmdisk::facts::Target;
use vmdisk_tests::{fixtures, has_program, run};

/// A spec of the repository.
struct Fixture {
    name: String,
    text: String,
}

fn fixtures_of_specs() -> Vec<Fixture> {
    let mut found: Vec<Fixture> = std::fs::read_dir(fixtures().join("specs/accepted"))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            Fixture {
                name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
                text: std::fs::read_to_string(&path).unwrap(),
            }
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(found.len() >= 40, "only {} specs", found.len());
    found
}

/// What the command writes for a spec.
fn generate(spec: &str, target: &str, arguments: &[&str]) -> Result<String, String> {
    let all = [&["generate", "-", "--target", target], arguments].concat();
    let result = run(crate::VMDISK, &all, spec);
    match result.code {
        0 => Ok(result.stdout),
        _ => Err(result.stderr),
    }
}

/// What the command writes for a spec, also where the linter knows that the programs refuse it: they are asked.
fn generate_anyway(spec: &str, target: &str, arguments: &[&str]) -> String {
    let ignored = "unsupported-by-target,machine-missing-in-qemu";
    generate(spec, target, &[arguments, &["--ignore", ignored]].concat()).unwrap()
}

/// The programs that are installed, as a target; those of Debian 12 in place of missing ones.
fn installed() -> String {
    let version = |program: &str, default: &str| {
        if !has_program(program) {
            return default.to_owned();
        }
        let text = run(program, &["--version"], "").stdout;
        let start = text.find(|c: char| c.is_ascii_digit()).unwrap();
        let rest = &text[start..];
        let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())]
            .trim_end_matches('.')
            .to_owned()
    };
    let qemu = version(qemu::PROGRAM, "7.2");
    let libvirt = version("virsh", "9.0");
    format!("qemu={qemu},libvirt={libvirt}")
}

/// The major and minor version of the libvirt of a target.
fn libvirt_version(target: &str) -> (u32, u32) {
    let (_, version) = target.split_once("libvirt=").unwrap();
    let mut numbers = version.split('.').map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// A QEMU together with the libvirt that is installed.
fn target_with(qemu: &Target) -> String {
    let libvirt = installed().split(',').find_map(|part| {
        part.strip_prefix("libvirt=")
            .map(|version| format!(",libvirt={version}"))
    });
    format!("{qemu}{}", libvirt.unwrap_or_default())
}

#[test]
fn the_same_spec_gives_the_same_bytes_and_the_linter_has_nothing_against_them() {
    let target = installed();
    for Fixture { name, text } in fixtures_of_specs() {
        for form in ["libvirt-xml", "disk-xml", "qemu", "blockdev-json", "script"] {
            let arguments = ["--to", form];
            let once = generate(&text, &target, &arguments);
            assert_eq!(
                once,
                generate(&text, &target, &arguments),
                "{name} as {form}"
            );
            let is_xml = matches!(form, "libvirt-xml" | "disk-xml");
            let libvirt = exception::of_libvirt(&name, libvirt_version(&target));
            let is_refused =
                exception::of_form(&name, form).is_some() || (is_xml && libvirt.is_some());
            assert_eq!(once.is_err(), is_refused, "{name} as {form}: {once:?}");
        }
        let xml = generate_anyway(&text, &target, &[]);
        let mut lint = vec![
            "lint",
            "-",
            "--target",
            &target,
            "--fail-on",
            "warning",
            "--format",
            "concise",
        ];
        if text.contains("discard: unmap") {
            // Discards that are asked for are kept, also for a QEMU that can corrupt an image by them.
            lint.extend(["--ignore", "qcow2-discard-corruption"]);
        }
        let found = run(crate::VMDISK, &lint, &xml);
        // The linter reports what this libvirt refuses.
        let is_refused = exception::of_libvirt(&name, libvirt_version(&target)).is_some();
        let bug = exception::of_bug(&name, libvirt_version(&target));
        assert_eq!(
            found.code,
            i32::from(is_refused || bug.is_some()),
            "{name}: {found:?}\n{xml}"
        );
        let (about_libvirt, worse): (Vec<&str>, Vec<&str>) = found
            .stdout
            .lines()
            .filter(|line| !line.contains(": advice["))
            .filter(|line| !bug.is_some_and(|bug| line.contains(bug.says)))
            .partition(|line| line.contains("[unsupported-by-target]") && line.contains("libvirt"));
        assert_eq!(
            !about_libvirt.is_empty(),
            is_refused,
            "{name}: {about_libvirt:?}"
        );
        assert!(worse.is_empty(), "{name}: {worse:?}");
    }
}

/// A folder with what a spec names in `/srv/images`, and the spec moved there.
fn moved(text: &str, folder: &Path) -> String {
    text.replace("/srv/images", folder.to_str().unwrap())
}
