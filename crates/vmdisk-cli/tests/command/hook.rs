//! The hook that libvirt runs before it starts a guest, run as libvirt runs it: with the guest on standard input.

use std::path::Path;
use std::process::{Command, Stdio};

use vmdisk_testing::{copy_program, installed, needed, write_program};

use crate::{CLEAN, Place, Run, UNSAFE, finish};

/// Installs the hook below a directory, with the program at a path.
fn install(place: &Place, program: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(program);
    command
        .args(["hook", "install", "--directory", "hooks"])
        .args(arguments)
        .current_dir(place.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(command, b"")
}

/// As [`install`], with the program of this test; `None` where others than root can replace it.
fn hook(place: &Place, arguments: &[&str]) -> Option<()> {
    let run = install(place, Path::new(crate::program()), arguments);
    let is_refused = run.stderr.contains("would run") && run.code == 2;
    let usable = if is_refused { Err(run.stderr) } else { Ok(()) };
    needed(usable)?;
    assert_eq!(run.code, 0);
    Some(())
}

/// Changes the hook, which finds a stand-in for `logger` in `bin`.
fn change(place: &Place, change: impl Fn(&str) -> String) {
    let log = place.path("log");
    let logger = format!(
        "#!/bin/sh\necho \"$*\" >>'{0}'; cat >>'{0}'\n",
        log.display()
    );
    write_program(&place.path("bin/logger"), &logger);
    let path = "hooks/qemu.d/vmdisk";
    let bin = place.path("bin");
    let text = place
        .read(path)
        .replace("PATH=", &format!("PATH='{}':", bin.display()));
    place.write(path, change(&text).as_bytes());
}

fn guest(disk: &str) -> String {
    format!(
        "<domain type='kvm'><name>g</name><memory>1048576</memory><os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features><devices>\n{disk}</devices></domain>\n"
    )
}

fn prepare_named(place: &Place, name: &str, operation: &str, text: &str) -> Run {
    let mut command = Command::new(place.path("hooks/qemu.d/vmdisk"));
    command
        .args([name, operation, "begin", "-"])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(command, text.as_bytes())
}

fn prepare(place: &Place, operation: &str, text: &str) -> Run {
    prepare_named(place, "g", operation, text)
}

#[test]
fn the_hook_refuses_errors_of_the_chosen_rules_and_logs_all_findings() {
    let (good, bad) = (guest(CLEAN), guest(UNSAFE));
    for (refuse, refuses) in [
        (&[][..], false),
        (&["--refuse", "data-safety"], true),
        (&["--refuse", "cache-unsafe,security"], true),
        (&["--refuse", "clarity"], false),
    ] {
        let place = Place::with(&[("bin/x", "")]);
        let Some(()) = hook(&place, refuse) else {
            return;
        };
        change(&place, str::to_owned);
        let run = |operation, text: &str| prepare(&place, operation, text);
        assert_eq!(run("prepare", &good).code, 0, "{refuse:?}");
        // A guest without an error is checked once, and its image exists.
        let counted = place.path("bin/counted");
        let (program, log) = (crate::program(), place.path("log"));
        let text = format!(
            "#!/bin/sh\necho checked >>'{}'\nexec '{program}' \"$@\"\n",
            log.display()
        );
        write_program(&counted, &text);
        change(&place, |text| {
            text.replace(&format!("'{program}'"), &format!("'{}'", counted.display()))
        });
        place.write("a.img", &[0; 4096]);
        let image = place.path("a.img").display().to_string();
        let plain = good.replace("/srv/web1.qcow2", &image);
        assert_eq!(run("prepare", &plain.replace("'qcow2'", "'raw'")).code, 0);
        let log = place.read("log");
        let checks = log.lines().filter(|line| *line == "checked");
        assert_eq!(checks.count(), 1, "{refuse:?}: {log}");
        let refused = run("prepare", &bad);
        assert_eq!(refused.code, i32::from(refuses), "{refuse:?}: {refused:?}");
        let is_named = refused.stderr.contains("vmdisk refuses the start of g\n")
            && refused.stderr.contains("error[cache-unsafe]");
        assert_eq!(is_named, refuses, "{refused:?}");
        // Also those of rules that refuse nothing.
        let priority = if refuses {
            "-p daemon.err"
        } else {
            "-p daemon.warning"
        };
        let log = place.read("log");
        assert!(
            log.contains(priority) && log.contains("error[cache-unsafe]"),
            "{log}"
        );
        // Another step of the start.
        assert_eq!(run("started", &bad).code, 0);
        let allowed = bad.replace(
            "<disk",
            "<!-- vmdisk: allow(cache-unsafe) rebuilt each night -->\n<disk",
        );
        assert_eq!(run("prepare", &allowed).code, 0);
    }
}

/// Each way to fail, and whether a guest that is fine starts: with --refuse, with it and `--on-failure start`, and without.
#[test]
fn a_failure_of_any_kind_refuses_the_start_unless_it_was_chosen_otherwise_and_is_logged() {
    let good = guest(CLEAN);
    let attributes: String = (0..300).map(|nth| format!(" a{nth}='x'")).collect();
    let wide = good.replace(
        "<memory>",
        &format!("<metadata><m:m xmlns:m='http://m'{attributes}/></metadata><memory>"),
    );
    let stubs = [
        "kill -SEGV $$",
        "exit 101",
        "exit 2",
        "exec sleep 100",
        "trap '' TERM; sleep 100",
    ];
    for (arguments, starts) in [
        (&["--refuse", "data-safety"][..], false),
        (&["--refuse", "data-safety", "--on-failure", "start"], true),
        (&["--on-failure", "refuse"], false),
        (&[], true),
    ] {
        let place = Place::with(&[("bin/x", "")]);
        let Some(()) = hook(&place, &[arguments, &["--timeout", "20"]].concat()) else {
            return;
        };
        change(&place, str::to_owned);
        // What libvirt can start is read.
        assert_eq!(prepare(&place, "prepare", &wide).code, 0);
        let fails = |what: &str, text: &str| {
            place.write("log", b"");
            let run = prepare(&place, "prepare", text);
            assert_eq!(
                run.code,
                i32::from(!starts),
                "{what} {arguments:?}: {run:?}"
            );
            let log = place.read("log");
            assert!(
                log.contains("-p daemon.err\nvmdisk could not check g: "),
                "{what}: {log}"
            );
            assert_eq!(
                run.stderr.contains("the start is refused"),
                !starts,
                "{what}: {run:?}"
            );
        };
        for broken in ["", "<domain>", "hello", "<network/>"] {
            fails(broken, broken);
        }
        let program = crate::program();
        let stub = place.path("bin/stub");
        let to_stub = |text: &str| {
            let text = text.replace(&format!("'{program}'"), &format!("'{}'", stub.display()));
            text.replace("limit='20'", "limit='1'")
        };
        change(&place, to_stub);
        fails("a program that is gone", &good);
        for script in stubs {
            write_program(&stub, &format!("#!/bin/sh\n{script}\n"));
            let begun = std::time::Instant::now();
            fails(script, &good);
            assert!(begun.elapsed().as_secs() < 15, "{script}");
        }
        write_program(&stub, "no program");
        fails("no program", &good);
    }
}

#[test]
fn a_name_is_no_option_and_acts_on_no_terminal() {
    let place = Place::with(&[("bin/x", "")]);
    let Some(()) = hook(&place, &["--refuse", "data-safety"]) else {
        return;
    };
    change(&place, str::to_owned);
    for name in [
        "-bad",
        "--help",
        "-V",
        "--format=json",
        "-",
        "a.sh",
        "a.yaml",
        "a b'c\"d$(e)`f`",
        "../../etc/passwd",
        "a\u{9b}31m\u{202e}b\u{1b}[2J",
    ] {
        assert_eq!(
            prepare_named(&place, name, "prepare", &guest(CLEAN)).code,
            0,
            "{name}"
        );
        let run = prepare_named(&place, name, "prepare", &guest(UNSAFE));
        assert_eq!(run.code, 1, "{name}: {run:?}");
        assert!(
            run.stderr.starts_with("vmdisk refuses the start of "),
            "{run:?}"
        );
        let is_plain = |text: &str| text.chars().all(|it| it == '\n' || !it.is_control());
        for text in [&run.stderr, &place.read("log")] {
            assert!(is_plain(text) && !text.contains('\u{202e}'), "{text:?}");
        }
    }
}

#[test]
fn a_program_that_others_can_replace_is_not_installed() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    let place = Place::with(&[("user/x", "")]);
    let program = place.path("user/vmdisk");
    copy_program(Path::new(crate::program()), &program);
    // The directory of the test is in one for all users.
    let run = install(&place, &program, &[]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("as root, and"), "{run:?}");
    assert!(!place.path("hooks").exists());
    if chown(place.path("user"), Some(1000), None).is_ok() {
        let run = install(&place, &program, &[]);
        assert!(run.stderr.contains("user belongs to user 1000"), "{run:?}");
        chown(&program, Some(0), None).unwrap();
        chown(place.path("user"), Some(0), None).unwrap();
        let wide = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&program, wide).unwrap();
        let run = install(&place, &program, &[]);
        assert!(run.stderr.contains("vmdisk (mode 0777)"), "{run:?}");
    }
}

#[test]
fn a_hook_of_somebody_else_is_not_replaced_and_an_own_one_is() {
    let place = Place::with(&[("hooks/qemu.d/vmdisk", "#!/bin/sh\necho mine\n")]);
    let run = install(&place, Path::new(crate::program()), &[]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(place.read("hooks/qemu.d/vmdisk").contains("mine"));
    std::fs::remove_file(place.path("hooks/qemu.d/vmdisk")).unwrap();
    let Some(()) = hook(&place, &[]) else { return };
    let Some(()) = hook(&place, &["--refuse", "security"]) else {
        return;
    };
    assert!(
        place
            .read("hooks/qemu.d/vmdisk")
            .contains("refuse='security'")
    );
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

/// Makes private directories for a libvirtd without KVM, in a mount namespace. Arguments: the directory of the test.
pub(crate) const PRIVATE_LIBVIRT: &str = r#"
cd "$1" && mount --make-rprivate / && mkdir dev && mount -t tmpfs dev dev || exit 77
for name in null zero random urandom full tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/pts dev/shm
mount -t devpts devpts dev/pts -o ptmxmode=666,newinstance && ln -s pts/ptmx /proc/self/fd dev && ln -s fd/0 dev/stdin && mount --move dev /dev || exit 77
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
wait_for_libvirt() {
  for _ in $(seq 300); do virsh -c qemu:///system version >/dev/null 2>&1 && break; sleep 0.1; done
}
"#;

/// Starts libvirtd, and creates both guests. Arguments: the directory of the test, and the program.
const SCRIPT: &str = r#"
"$2" hook install --refuse data-safety 2>&1
libvirtd -p /run/libvirt/pid >libvirtd.log 2>&1 &
daemon=$!
wait_for_libvirt
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
    let script = format!("{PRIVATE_LIBVIRT}{SCRIPT}");
    command.args([
        "-m",
        "bash",
        "-c",
        &script,
        "bash",
        folder,
        crate::program(),
    ]);
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
