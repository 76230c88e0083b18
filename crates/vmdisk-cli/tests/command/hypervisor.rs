//! Guests of libvirt and QEMU processes, with the real programs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use vmdisk_testing::{installed, libvirt_driver, needed, run};

use crate::hook::PRIVATE_LIBVIRT;
use crate::{Place, Run, finish};

/// A guest that libvirt accepts, with a cache mode that loses data and a password.
const GUEST: &str = "<domain type='qemu'>
  <name>web 1</name>
  <uuid>6d6b1a5c-7ed0-4b6c-9c73-0d5c7e1d9a01</uuid>
  <memory unit='MiB'>64</memory>
  <os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='unsafe' discard='unmap'/>
      <source file='/srv/a.img'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <graphics type='vnc' port='5999' autoport='no' passwd='secret'/>
  </devices>
</domain>
";

/// A libvirt of its own, which knows the guest.
struct Libvirt {
    place: Place,
    uri: String,
}

impl Libvirt {
    fn new() -> Option<Self> {
        let place = Place::with(&[("guest.xml", GUEST)]);
        let root = place.path("root");
        std::fs::create_dir(&root).unwrap();
        needed(libvirt_driver(&root))?;
        let uri = format!("qemu:///embed?root={}", root.display());
        let file = place.path("guest.xml");
        let file = file.to_str().unwrap();
        needed(run(
            "virsh",
            &["--quiet", "--connect", &uri, "define", file],
        ))?;
        Some(Libvirt { place, uri })
    }

    fn vmdisk(&self, arguments: &[&str]) -> Run {
        self.place
            .run(&[arguments, &["--connect", &self.uri]].concat())
    }

    fn definition(&self) -> String {
        let words = [
            "--quiet",
            "--connect",
            &self.uri,
            "dumpxml",
            "--security-info",
            "web 1",
        ];
        run("virsh", &words).unwrap()
    }

    /// Runs `vmdisk edit` with an editor that is a shell script, and with answers on standard input.
    fn edit(&self, script: &str, answers: &str) -> Run {
        finish(self.edit_command(script), answers.as_bytes())
    }

    fn edit_command(&self, script: &str) -> Command {
        self.place.program("editor", &format!("set -e\n{script}"));
        let editor = self.place.path("editor");
        let mut command = self
            .place
            .command(["edit", "web 1", "--connect", &self.uri]);
        command
            .env_remove("EDITOR")
            .env("VISUAL", format!("{} --wait", editor.display()));
        command.env("TMPDIR", self.place.path(""));
        command
    }
}

#[test]
fn a_guest_of_the_test_driver_is_checked_by_its_name() {
    let place = Place::with(&[]);
    if needed(installed("virsh")).is_none() {
        return;
    }
    let test = |more: &[&str]| {
        let words = ["lint", "-c", "test:///default", "--format", "json"];
        place.run(&[&words[..], more].concat())
    };
    for which in [&["--domain", "test"][..], &["--all-domains"]] {
        let run = test(which);
        let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        let inputs = report["inputs"].as_array().unwrap();
        assert_eq!(inputs.len(), 1, "{run:?}");
        assert_eq!(inputs[0]["path"], "<domain test>");
        assert_eq!(inputs[0]["domain"], "test");
    }
    let unknown = test(&["--domain", "tset", "--domain", "test"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(
        unknown
            .stderr
            .contains("virsh: failed to get domain 'tset'"),
        "{unknown:?}"
    );
    assert!(
        unknown.stdout.contains("<domain test>"),
        "the other one is checked"
    );
    let none = place.run(&["lint", "-c", "nosuch:///system", "--all-domains"]);
    assert_eq!(none.code, 2, "{none:?}");
    let help = "the libvirt that -c names does not answer";
    assert!(none.stderr.contains(help), "{none:?}");
}

#[test]
fn without_virsh_the_error_says_so() {
    let place = Place::with(&[]);
    let mut command = place.command(["lint", "--domain", "web1"]);
    command.env("PATH", place.path("nothing"));
    let run = finish(command, b"");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("virsh could not be started"), "{run:?}");
}

#[test]
fn guests_that_are_not_files_are_not_changed() {
    let place = Place::with(&[]);
    for (guests, says) in [
        (&["--domain", "web1"][..], "edit --fix web1"),
        (&["--all-domains", "--live"], "edit --fix --live NAME"),
        (
            &["--domain", "web 1", "-c", "qemu:///session"],
            "edit --fix -c qemu:///session 'web 1'",
        ),
    ] {
        for option in ["--fix", "--add-allowances=x"] {
            let run = place.run(&[&["lint", option], guests].concat());
            assert_eq!(run.code, 2, "{run:?}");
            let says = format!("`vmdisk {says}`");
            assert!(run.stderr.contains(&says), "{run:?}");
        }
    }
}

#[test]
fn guests_of_the_qemu_driver_are_checked() {
    let Some(libvirt) = Libvirt::new() else {
        return;
    };
    let run = libvirt.vmdisk(&["lint", "--all-domains", "--format", "concise"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.contains("<domain web 1>:") && run.stdout.contains("cache-unsafe"),
        "{run:?}"
    );
    let diff = libvirt.vmdisk(&["lint", "--domain", "web 1", "--diff"]);
    assert!(
        diff.stdout.contains("+      <driver") && diff.stdout.contains("writeback"),
        "{diff:?}"
    );
    assert!(!diff.stdout.contains("secret"), "{diff:?}");
}

/// A virsh whose URI and host name are given, and which has one guest.
fn stand_in(uri: &str, host: &str) -> Place {
    let place = Place::with(&[("guest.xml", GUEST)]);
    place.program(
        "bin/virsh",
        &format!(
            "case \"$*\" in *' uri') echo '{uri}';; *' hostname') [ -n '{host}' ] && echo '{host}';;\n\
             *' list '*) echo 'web 1';; *) cat {};; esac",
            place.path("guest.xml").display()
        ),
    );
    place
}

fn with_path(place: &Place, arguments: &[&str]) -> Run {
    let mut command = place.command(arguments);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", place.path("bin").display()));
    command.env("VISUAL", "true");
    finish(command, b"")
}

#[test]
fn guests_of_another_host_are_not_judged_by_this_one() {
    let remote = "qemu+ssh://root@kvm2/system";
    for (uri, host, is_here) in [
        (remote, "kvm2", false),
        (remote, "", false),
        (remote, "localhost", false),
        (
            "qemu+unix:///system?socket=/run/kvm2",
            "kvm2.example.com",
            false,
        ),
        ("qemu:///system", "", true),
        ("qemu:///system", "localhost.localdomain", true),
        ("qemu:///system", "$(cat /proc/sys/kernel/hostname)", true),
    ] {
        // The shell of the stand-in expands the name of this host.
        let place = stand_in(uri, &host.replace("$(", "'\"$(").replace(')', ")\"'"));
        for words in [
            &["lint", "--all-domains", "--live"][..],
            &["lint", "--domain", "web 1", "--live"],
            &["edit", "web 1", "--live"],
        ] {
            let run = with_path(&place, &[words, &["-c", uri]].concat());
            let is_refused = run
                .stderr
                .contains("--live collects the facts of this host");
            assert_eq!(is_refused, !is_here, "{words:?} {uri} {host}: {run:?}");
            if is_refused {
                assert_eq!(run.code, 2, "{run:?}");
                assert!(
                    run.stderr.contains("`ssh kvm2") || host == "localhost",
                    "{run:?}"
                );
            }
        }
    }
}

#[test]
fn facts_of_another_host_are_refused_unless_the_host_is_named() {
    let place = stand_in("qemu+ssh://kvm2/system", "kvm2");
    let facts = |name: &str| format!("schema_version: '1.0'\nhost: {{id: {name}}}\n");
    place.write("kvm1.yaml", facts("kvm1").as_bytes());
    place.write("kvm2.yaml", facts("kvm2.example.com").as_bytes());
    let lint = |more: &[&str]| {
        with_path(
            &place,
            &[&["lint", "--all-domains", "--facts"], more].concat(),
        )
    };
    let other = lint(&["kvm1.yaml"]);
    assert_eq!(other.code, 2, "{other:?}");
    assert!(
        other
            .stderr
            .contains("the facts are those of kvm1, but qemu+ssh://kvm2/system is libvirt on kvm2"),
        "{other:?}"
    );
    assert_eq!(lint(&["kvm2.yaml"]).code, 1);
    assert_eq!(lint(&["kvm1.yaml", "--host", "kvm1=<domain *>"]).code, 1);
}

/// A second libvirtd with another host name: the command is outside its UTS namespace.
const OTHER_HOST: &str = r#"
unshare -u sh -c 'hostname kvm2; exec libvirtd -p /run/libvirt/pid' >libvirtd.log 2>&1 &
daemon=$!
wait_for_libvirt
virsh -c qemu:///system define guest.xml >/dev/null
"$2" lint --all-domains --live 2>&1
echo "exit status $?"
kill $daemon
wait $daemon
"#;

#[test]
fn a_second_libvirtd_with_another_name_is_another_host() {
    let tools = installed("virsh").and_then(|()| installed("libvirtd"));
    if needed(tools).is_none() {
        return;
    }
    let place = Place::with(&[("guest.xml", GUEST)]);
    let folder = place.path("");
    let script = format!("{PRIVATE_LIBVIRT}{OTHER_HOST}");
    let mut command = Command::new("unshare");
    command.args(["-m", "bash", "-c", &script, "bash"]);
    let output = command.arg(folder).arg(crate::program()).output().unwrap();
    if output.status.code() == Some(77) {
        needed::<()>(Err("may not mount".to_owned()));
        return;
    }
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("qemu:///system is libvirt on kvm2"), "{said}");
    assert!(said.contains("exit status 2"), "{said}");
}

#[test]
fn a_session_without_guests_is_not_the_libvirt_that_is_meant() {
    let place = Place::with(&[("guest.xml", GUEST)]);
    let program = |system: &str| {
        let text = format!(
            "case \"$*\" in *system*' list '*) {system};; *' list '*) ;; *' uri') echo qemu:///session;;\n\
             *' dumpxml '*) cat {};; esac",
            place.path("guest.xml").display()
        );
        place.program("bin/virsh", &text);
    };
    program("echo 'web 1'");
    for words in [["--all-domains"].as_slice(), &["--domain", "web 1"]] {
        let run = with_path(&place, &[&["lint"], words].concat());
        assert_eq!(run.code, 1, "{run:?}");
        assert!(
            run.stderr
                .contains("qemu:///session has no guests; these are those of qemu:///system"),
            "{run:?}"
        );
    }
    for system in ["exit 1", ":"] {
        program(system);
        let run = with_path(&place, &["lint", "--all-domains"]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(
            run.stderr
                .contains("nothing to check: qemu:///session has no guests"),
            "{run:?}"
        );
    }
}

#[test]
fn a_fix_of_a_guest_that_is_no_file_is_an_edit() {
    let Some(libvirt) = Libvirt::new() else {
        return;
    };
    for format in ["full", "html"] {
        let run = libvirt.vmdisk(&["lint", "--all-domains", "--format", format]);
        assert!(run.stdout.contains("vmdisk edit --fix 'web 1'"), "{run:?}");
        for absent in ["lint --fix", "fixable with"] {
            assert!(
                !run.stdout.contains(absent) && !run.stderr.contains(absent),
                "{run:?}"
            );
        }
    }
}

#[test]
fn a_guest_is_edited_checked_and_defined_after_a_yes() {
    let Some(libvirt) = Libvirt::new() else {
        return;
    };
    let run = libvirt.edit("sed -i s/unsafe/writeback/ \"$2\"", "maybe\ny\n");
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stdout.contains("cache-unsafe") && run.stderr.contains("web 1 was defined"),
        "{run:?}"
    );
    let now = libvirt.definition();
    assert!(
        now.contains("cache='writeback'") && now.contains("passwd='secret'"),
        "{now}"
    );
    // Nothing is left behind.
    let left = std::fs::read_dir(libvirt.place.path("")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn nothing_is_defined_without_a_yes_and_the_text_is_kept() {
    let Some(libvirt) = Libvirt::new() else {
        return;
    };
    let before = libvirt.definition();
    let unchanged = libvirt.edit("true", "");
    assert_eq!(
        (unchanged.code, unchanged.stderr.contains("was not changed")),
        (0, true),
        "{unchanged:?}"
    );
    for answers in ["n\n", ""] {
        let run = libvirt.edit("sed -i s/unsafe/none/ \"$2\"", answers);
        assert_eq!(run.code, 1, "{run:?}");
        assert_eq!(libvirt.definition(), before);
        let (_, path) = run.stderr.rsplit_once("the text is in ").unwrap();
        let kept = Path::new(path.trim());
        assert!(
            std::fs::read_to_string(kept)
                .unwrap()
                .contains("cache='none'")
        );
        let mode = std::fs::metadata(kept.parent().unwrap())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "others cannot read the password");
    }
    let failed = libvirt.edit("exit 3", "y\n");
    assert_eq!(failed.code, 2, "{failed:?}");
    assert!(failed.stderr.contains("set VISUAL or EDITOR"), "{failed:?}");
    assert!(!failed.stderr.contains("the text is in"), "{failed:?}");
}

#[test]
fn fixes_of_guests_are_shown_and_defined_after_a_yes() {
    let Some(libvirt) = Libvirt::new() else {
        return;
    };
    let fix = |answers: &str| {
        let mut command = libvirt.place.command(["edit", "--fix", "web 1"]);
        command.args(["--connect", &libvirt.uri]);
        finish(command, answers.as_bytes())
    };
    let before = libvirt.definition();
    let refused = fix("n\n");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_eq!(libvirt.definition(), before);
    for shown in [
        "-      <driver name='qemu' type='raw' cache='unsafe'",
        "+      <driver name='qemu' type='raw' cache='writeback'",
    ] {
        assert!(refused.stdout.contains(shown), "{refused:?}");
    }
    let secret = "passwd='secret'";
    assert!(!refused.stdout.contains(secret), "{refused:?}");
    let defined = fix("y\n");
    assert_eq!(defined.code, 0, "{defined:?}");
    let now = libvirt.definition();
    assert!(now.contains(secret), "{now}");
    assert_eq!(now, before.replace("unsafe", "writeback"));
    let again = fix("");
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stderr.contains("was not changed"), "{again:?}");
    let unknown = libvirt.vmdisk(&["lint", "--all-domains", "--fix"]);
    assert!(
        unknown.stderr.contains("vmdisk edit --fix -c "),
        "{unknown:?}"
    );
}

#[test]
fn facts_that_cannot_be_read_leave_a_guest_as_it_is() {
    let Some(libvirt) = Libvirt::new() else {
        return;
    };
    let before = libvirt.definition();
    let run = libvirt.vmdisk(&["edit", "--fix", "web 1", "--facts", "absent.json"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert_eq!(libvirt.definition(), before);
}

#[test]
fn an_edited_text_is_kept_if_the_editor_or_virsh_fails() {
    let Some(libvirt) = Libvirt::new() else {
        return;
    };
    let undefine = format!("virsh --quiet --connect '{}' undefine 'web 1'", libvirt.uri);
    for (ending, answers) in [("exit 3", ""), (&*undefine, "y\n")] {
        let run = libvirt.edit(&format!("sed -i s/unsafe/none/ \"$2\"\n{ending}"), answers);
        assert_eq!(run.code, 2, "{run:?}");
        let (_, rest) = run.stderr.split_once("the text is in ").unwrap();
        let kept = std::fs::read_to_string(rest.lines().next().unwrap()).unwrap();
        assert!(kept.contains("cache='none'"), "{kept}");
    }
}

#[test]
fn a_signal_removes_the_copy_with_passwords() {
    let Some(libvirt) = Libvirt::new() else {
        return;
    };
    let folders = || {
        let entries = std::fs::read_dir(libvirt.place.path("")).unwrap();
        let entries = entries.map(|entry| entry.unwrap().path());
        entries
            .filter(|path| path.join("domain.xml").exists())
            .count()
    };
    let killed = libvirt.edit_command("kill -TERM $PPID; sleep 1").status();
    assert_eq!(killed.unwrap().code(), None);
    assert_eq!(folders(), 0);
    // Without the signal, an edited text is kept, and would be seen here.
    libvirt.edit("sed -i s/unsafe/none/ \"$2\"\nexit 3", "");
    assert_eq!(folders(), 1);
}

#[test]
fn a_text_that_defines_another_guest_does_not_count_as_defined() {
    let Some(libvirt) = Libvirt::new() else {
        return;
    };
    let before = libvirt.definition();
    let run = libvirt.edit("sed -i 's/>web 1</>web 2</; /<uuid>/d' \"$2\"", "y\n");
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("web 1 is as before"), "{run:?}");
    assert_eq!(libvirt.definition(), before);
}

#[test]
fn what_libvirt_refuses_is_edited_again() {
    let Some(libvirt) = Libvirt::new() else {
        return;
    };
    let script = "if grep -q cache=.unsafe \"$2\"; then sed -i s/unsafe/wrong/ \"$2\"; else sed -i s/wrong/none/ \"$2\"; fi";
    let run = libvirt.edit(script, "y\ne\ny\n");
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("invalid-value"), "{run:?}");
    assert!(
        run.stderr.contains("virsh: ") && run.stderr.contains("web 1 was defined"),
        "{run:?}"
    );
    assert!(libvirt.definition().contains("cache='none'"));
    // The same text is refused again: nobody is asked for ever.
    let run = libvirt.edit("sed -i s/none/wrong/ \"$2\"", "y\ny\ny\ny\n");
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(run.stderr.matches("define web 1? ").count(), 2, "{run:?}");
    assert!(libvirt.definition().contains("cache='none'"));
}

#[test]
fn a_change_by_somebody_else_meanwhile_is_not_overwritten() {
    let Some(libvirt) = Libvirt::new() else {
        return;
    };
    let other = GUEST.replace(">64<", ">128<");
    libvirt.place.write("other.xml", other.as_bytes());
    let script = format!(
        "sed -i s/unsafe/none/ \"$2\"\nvirsh --quiet --connect '{}' define '{}' >/dev/null",
        libvirt.uri,
        libvirt.place.path("other.xml").display()
    );
    let run = libvirt.edit(&script, "y\n");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr.contains("was changed by somebody else"),
        "{run:?}"
    );
    assert!(libvirt.definition().contains("cache='unsafe'"));
}

/// A process that ends with the test.
struct Qemu(Child);

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_qemu_that_runs_is_checked_whoever_started_it() {
    if needed(installed("qemu-system-x86_64")).is_none() {
        return;
    }
    let place = Place::with(&[]);
    std::fs::File::create(place.path("a.img"))
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    let drive = format!(
        "file={},format=raw,if=virtio,cache=unsafe",
        place.path("a.img").display()
    );
    let words = [
        "-S",
        "-display",
        "none",
        "-m",
        "64",
        "-monitor",
        "none",
        "-serial",
        "none",
        "-name",
        "guest=web 7",
        "-drive",
        &drive,
    ];
    let child = Command::new("qemu-system-x86_64")
        .args(words)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let qemu = Qemu(child);
    let name = format!("<process {} web 7>:", qemu.0.id());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let run = place.run(&["lint", "--running", "--format", "concise"]);
        let own = |line: &&str| line.starts_with(&name);
        let found: Vec<&str> = run.stdout.lines().filter(own).collect();
        if found
            .iter()
            .any(|line| line.contains("error[cache-unsafe]"))
        {
            assert_eq!(run.code, 1, "{run:?}");
            return;
        }
        // Between fork and exec it has the command line of this test.
        assert!(std::time::Instant::now() < deadline, "{run:?}");
    }
}

#[test]
fn a_guest_that_runs_has_the_change_later() {
    let guest = "<domain type='kvm'><name>web1</name><devices><disk type='file' device='disk'>\
                 <driver name='qemu' type='raw' cache='unsafe'/><source file='/srv/a.img'/><target dev='vda' bus='virtio'/>\
                 </disk></devices></domain>";
    for (state, is_told) in [("running", true), ("paused", true), ("shut off", false)] {
        let place = Place::with(&[("guest.xml", guest)]);
        let folder = place.path("");
        let virsh = format!(
            "cd {}; case \"$*\" in *domstate*) echo '{state}' ;; *dumpxml*) cat guest.xml ;; \
             *define*) for file; do :; done; cp \"$file\" guest.xml ;; esac",
            folder.display()
        );
        place.program("bin/virsh", &virsh);
        let mut command = place.command(["edit", "--fix", "web1"]);
        let path = format!("{}:/usr/bin:/bin", place.path("bin").display());
        command.env("PATH", path);
        let run = finish(command, b"y\n");
        assert_eq!(run.code, 0, "{run:?}");
        let said = "web1 was defined; it runs, and has the change after its next start";
        assert_eq!(run.stderr.contains(said), is_told, "{run:?}");
        assert!(!place.read("guest.xml").contains("unsafe"), "{run:?}");
    }
}
