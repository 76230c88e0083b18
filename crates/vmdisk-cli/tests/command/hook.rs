//! The hook that libvirt runs before it starts a guest, run as libvirt runs it: with the guest on standard input.

use std::path::Path;
use std::process::{Command, Stdio};

use vmdisk_testing::{copy_program, installed, needed, write_program};

use crate::{CLEAN, Place, Run, UNSAFE, finish};

/// Installs the hook below a directory, with the program at a path.
fn install(place: &Place, program: &Path, refuse: &[&str]) -> Run {
    let mut command = Command::new(program);
    command
        .args(["hook", "install", "--directory", "hooks"])
        .args(refuse)
        .current_dir(place.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(command, b"")
}

fn guest(disk: &str) -> String {
    format!(
        "<domain type='kvm'><name>g</name><memory>1048576</memory><os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features><devices>\n{disk}</devices></domain>\n"
    )
}

fn prepare(place: &Place, operation: &str, text: &str) -> Run {
    let mut command = Command::new(place.path("hooks/qemu.d/vmdisk"));
    command
        .args(["g", operation, "begin", "-"])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(command, text.as_bytes())
}

#[test]
fn the_hook_refuses_only_errors_of_the_chosen_rules_and_never_fails_itself() {
    let vmdisk = Path::new(crate::program());
    let (good, bad) = (guest(CLEAN), guest(UNSAFE));
    let place = Place::with(&[]);
    for (refuse, refuses) in [
        (&[][..], false),
        (&["--refuse", "data-safety"], true),
        (&["--refuse", "cache-unsafe,security"], true),
        (&["--refuse", "clarity"], false),
    ] {
        let installed = install(&place, vmdisk, refuse);
        assert_eq!(installed.code, 0, "{installed:?}");
        assert!(installed.stderr.contains("systemctl restart libvirtd"));
        let run = |operation, text: &str| prepare(&place, operation, text);
        assert_eq!(run("prepare", &good).code, 0, "{refuse:?}");
        let refused = run("prepare", &bad);
        assert_eq!(refused.code, i32::from(refuses), "{refuse:?}: {refused:?}");
        let is_named = refused.stderr.contains("vmdisk refuses the start of g\n")
            && refused.stderr.contains("error[cache-unsafe]");
        assert_eq!(is_named, refuses, "{refused:?}");
        // Another step of the start, and what cannot be read.
        assert_eq!(run("started", &bad).code, 0);
        for broken in ["", "<domain>", "hello", "<network/>"] {
            assert_eq!(run("prepare", broken).code, 0, "{broken}");
        }
        let allowed = bad.replace(
            "<disk",
            "<!-- vmdisk: allow(cache-unsafe) rebuilt each night -->\n<disk",
        );
        assert_eq!(run("prepare", &allowed).code, 0);
    }
}

#[test]
fn a_program_that_is_gone_or_crashes_refuses_nothing() {
    let place = Place::with(&[]);
    let name = place.path("it's a vmdisk");
    copy_program(Path::new(crate::program()), &name);
    assert_eq!(install(&place, &name, &["--refuse", "data-safety"]).code, 0);
    let bad = guest(UNSAFE);
    assert_eq!(
        prepare(&place, "prepare", &bad).code,
        1,
        "the path is quoted"
    );
    for script in [
        "#!/bin/sh\nkill -SEGV $$\n",
        "#!/bin/sh\nexit 101\n",
        "no program",
    ] {
        write_program(&name, script);
        assert_eq!(prepare(&place, "prepare", &bad).code, 0, "{script}");
    }
    std::fs::remove_file(&name).unwrap();
    assert_eq!(prepare(&place, "prepare", &bad).code, 0);
}

#[test]
fn an_unknown_rule_is_refused_when_the_hook_is_installed() {
    let place = Place::with(&[]);
    let run = install(
        &place,
        Path::new(crate::program()),
        &["--refuse", "data-safty"],
    );
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("did you mean `data-safety`?"),
        "{run:?}"
    );
    assert!(!place.path("hooks").exists());
}

/// Starts libvirtd with private directories and without KVM, and creates both guests. Arguments: the directory of the test.
const SCRIPT: &str = r#"
cd "$1" && mount --make-rprivate / && mkdir dev && mount -t tmpfs dev dev || exit 77
for name in null zero random urandom full tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/pts dev/shm
mount -t devpts devpts dev/pts -o ptmxmode=666,newinstance && ln -s pts/ptmx dev/ptmx && mount --move dev /dev || exit 77
for folder in /run/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt /etc/libvirt; do
  mkdir -p $folder; mount -t tmpfs private $folder || exit 77
done
cat >/etc/libvirt/qemu.conf <<END
user = "root"
group = "root"
security_driver = "none"
namespaces = []
cgroup_controllers = []
stdio_handler = "file"
END
"$2" hook install --refuse data-safety 2>&1
libvirtd -p /run/libvirt/pid >libvirtd.log 2>&1 &
daemon=$!
for _ in $(seq 300); do virsh -c qemu:///system version >/dev/null 2>&1 && break; sleep 0.1; done
for guest in good bad; do virsh -c qemu:///system create $guest.xml 2>&1; done
virsh -c qemu:///system list --name
virsh -c qemu:///system destroy good
kill $daemon
wait $daemon
"#;

#[test]
fn libvirtd_starts_a_good_guest_and_refuses_a_bad_one() {
    let tools = installed("virsh").and_then(|()| installed("qemu-system-x86_64"));
    let tools = tools.and_then(|()| installed("libvirtd"));
    if needed(tools).is_none() {
        return;
    }
    let place = Place::with(&[("a.img", &"\0".repeat(512))]);
    let folder = place.path("");
    let folder = folder.to_str().unwrap().trim_end_matches('/');
    for (name, cache) in [("good", "writeback"), ("bad", "unsafe")] {
        let disk = format!(
            "<emulator>/usr/bin/qemu-system-x86_64</emulator><disk type='file' device='disk'><driver name='qemu' type='raw' cache='{cache}'/><source file='{folder}/a.img'/><target dev='vda' bus='virtio'/></disk>"
        );
        let text = guest(&disk).replace("'kvm'><name>g<", &format!("'qemu'><name>{name}<"));
        let text = text.replace("<memory>1048576<", "<memory>65536<");
        place.write(&format!("{name}.xml"), text.as_bytes());
    }
    let mut command = Command::new("unshare");
    command.args(["-m", "bash", "-c", SCRIPT, "bash", folder, crate::program()]);
    let output = command.output().unwrap();
    if output.status.code() == Some(77) {
        let _: Option<()> = needed(Err("no permission to mount".to_owned()));
        return;
    }
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("Domain 'good' created"), "{said}");
    assert!(said.contains("vmdisk refuses the start of bad"), "{said}");
    assert!(said.contains("error[cache-unsafe]"), "{said}");
    assert!(said.lines().any(|line| line == "good"), "{said}");
    assert!(!said.lines().any(|line| line == "bad"), "{said}");
}
