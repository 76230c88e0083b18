//! `vmdisk capture`: what a command gives to QEMU, and what it cannot do to the machine.

use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{PATH, Place, Run, finish, program};

const GUIDE: &str = include_str!("../../../../docs/capture.md");

/// A run with the program on PATH; none, with a line that says so, where no sandbox is possible.
fn run(place: &Place, arguments: &[&str]) -> Option<Run> {
    let mut command = place.command(arguments);
    command.env("PATH", PATH);
    possible(finish(command, b""))
}

fn possible(run: Run) -> Option<Run> {
    if run.stderr.contains("the sandbox could not be made") {
        let is_required = std::env::var("VMDISK_REAL").is_ok_and(|it| it == "require");
        assert!(!is_required, "{}", run.stderr);
        vmdisk_testing::skipped_even_if_required("needs namespaces for a sandbox");
        return None;
    }
    Some(run)
}

/// The starts of an output: program, arguments and folder.
fn starts(run: &Run) -> Vec<(String, Vec<serde_json::Value>, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let lines = run.stdout.lines().map(|line| {
        let start: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(start["version"], 1);
        let argv = start["argv"].as_array().unwrap().clone();
        (text(&start["program"]), argv, text(&start["folder"]))
    });
    lines.collect()
}

/// The arguments of each start, with blanks between them.
fn arguments(run: &Run) -> Vec<String> {
    let joined = |argv: Vec<serde_json::Value>| {
        let words = argv
            .iter()
            .map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
        words.collect::<Vec<_>>().join(" ")
    };
    starts(run)
        .into_iter()
        .map(|(_, argv, _)| joined(argv))
        .collect()
}

#[test]
fn the_examples_of_the_guide_run() {
    let place = Place::with(&[]);
    std::fs::create_dir(place.path("bin")).unwrap();
    std::os::unix::fs::symlink(program(), place.path("bin/vmdisk")).unwrap();
    let mut number = 0;
    for block in GUIDE.split("```sh\n").skip(1) {
        let script = block.split("```").next().unwrap();
        let mut command = Command::new("bash");
        command
            .args(["-euo", "pipefail", "-c", script])
            .current_dir(place.path(""))
            .env("PATH", format!("{}:{PATH}", place.path("bin").display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let Some(run) = possible(finish(command, b"")) else {
            return;
        };
        assert_eq!(run.code, 0, "{script}\n{}{}", run.stdout, run.stderr);
        assert!(
            run.stderr.contains(" of QEMU\n"),
            "{script}\n{}",
            run.stderr
        );
        number += 1;
    }
    assert_eq!(number, 5);
}

#[test]
fn every_way_to_start_a_program_is_recorded_in_order() {
    let place = Place::with(&[("inner.sh", "kvm -name \"$1\" \"$A\"\n")]);
    let script = r#"
        qemu-system-x86_64 -name "a b" ''
        env -i /usr/libexec/qemu-kvm -name libexec
        /opt/none/qemu-system-x86_64 -name missing
        ln -s /usr/bin/qemu-system-x86_64 link; mkdir sub; cd sub
        sudo -u nobody A=1 sh ../inner.sh sudo
        cd ..
        taskset -c 0-3 numactl -N 0 -- sh inner.sh taskset
        systemd-run --user --scope -p MemoryMax=1G sh inner.sh systemd
        xterm -hold -e sh inner.sh xterm
        xterm -e 'sh inner.sh line'
        tmux new-session -d -s vm 'sh inner.sh tmux'
        tmux new -d -s other; tmux send-keys -t other "sh inner.sh typed" Enter
        screen -dmS vm sh inner.sh screen
        ip netns exec blue sh inner.sh netns
        su - nobody -c 'sh inner.sh su'
        strace -f -o /dev/null sh inner.sh strace
        gdb -q --args sh inner.sh gdb
        sudo -v && qemu-storage-daemon --blockdev driver=null-co,node-name=a
        sh -c 'sleep 0.3; sh inner.sh late' &
    "#;
    let wanted = [
        "-name a b ",
        "-name libexec",
        "-name missing",
        "-name sudo 1",
        "-name taskset ",
        "-name systemd ",
        "-name xterm ",
        "-name line ",
        "-name tmux ",
        "-name typed ",
        "-name screen ",
        "-name netns ",
        "-name su ",
        "-name strace ",
        "-name gdb ",
        "--blockdev driver=null-co,node-name=a",
        "-name late ",
    ];
    for sandbox in [&["--timeout=30"][..], &["--no-sandbox"]] {
        let words: Vec<&str> = [&["capture"], sandbox, &["--", "sh", "-c", script]].concat();
        let Some(run) = run(&place, &words) else {
            return;
        };
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(arguments(&run), wanted, "{}", run.stderr);
        let starts = starts(&run);
        let programs = [
            "qemu-system-x86_64",
            "/usr/libexec/qemu-kvm",
            "/opt/none/qemu-system-x86_64",
            "kvm",
        ];
        let found: Vec<&str> = starts
            .iter()
            .take(4)
            .map(|(program, ..)| program.as_str())
            .collect();
        assert_eq!(found, programs);
        let here = place.path("").canonicalize().unwrap();
        let folders = [&here, &here, &here, &here.join("sub"), &here];
        let found = starts.iter().map(|(.., folder)| Path::new(folder));
        assert!(found.take(5).eq(folders), "{starts:?}");
        let _ = std::fs::remove_dir(place.path("sub"));
        let _ = std::fs::remove_file(place.path("link"));
    }
}

#[test]
fn bytes_survive_a_question_is_none_and_the_folder_is_that_of_the_start() {
    let place = Place::with(&[(
        "start.sh",
        "kvm -version; qemu-system-xtensaeb -machine help\nkvm \"$(printf 'a\\377\\nb')\" 'ä'\n",
    )]);
    let Some(run) = run(&place, &["capture", "--", "sh", "start.sh"]) else {
        return;
    };
    assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
    assert!(
        run.stdout.contains(r#""argv":[{"hex":"61ff0a62"},"ä"]"#),
        "{}",
        run.stdout
    );
    let lint = place.run_with_input(&["lint", "-"], run.stdout.as_bytes());
    assert_eq!(lint.code, 2);
    assert!(
        lint.stderr.contains("an argument that is not UTF-8"),
        "{}",
        lint.stderr
    );
}

#[test]
fn a_command_without_a_start_fails_and_what_failed_is_named() {
    let place = Place::with(&[]);
    let script = "set -e; echo to stdout; ls /nowhere; kvm -S";
    let Some(run) = run(&place, &["capture", "--", "sh", "-c", script]) else {
        return;
    };
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.starts_with("to stdout\n"), "{}", run.stderr);
    let message =
        "ended with exit status 2, after `ls /nowhere` (exit status 2) failed, and started no QEMU";
    assert!(run.stderr.contains(message), "{}", run.stderr);
    let missing = self::run(&place, &["capture", "--", "./nothing"]).unwrap();
    assert_eq!(missing.code, 2);
    assert!(
        missing.stderr.contains("`./nothing` could not be started"),
        "{}",
        missing.stderr
    );
    assert!(
        missing.stderr.contains("exit status 127"),
        "{}",
        missing.stderr
    );
    assert!(!place.path("nothing").exists());
}

#[test]
fn the_time_limit_ends_everything_and_ssh_is_named() {
    let place = Place::with(&[]);
    let mark = format!("60.98765{}", std::process::id());
    let script = format!("ssh -V; kvm -S; sleep {mark} & sleep {mark}");
    for sandbox in ["--show=.", "--no-sandbox"] {
        let words = ["capture", sandbox, "--timeout=6", "--", "sh", "-c", &script];
        let Some(run) = run(&place, &words) else {
            return;
        };
        assert_eq!((run.code, arguments(&run)), (0, vec!["-S".to_owned()]));
        assert!(
            run.stderr.contains("the time of 6 s was up"),
            "{}",
            run.stderr
        );
        assert!(
            run.stderr.contains("`ssh` ran: what it starts"),
            "{}",
            run.stderr
        );
        let left = Command::new("pgrep")
            .args(["-f", &format!("^sleep {mark}")])
            .output()
            .unwrap();
        assert!(left.stdout.is_empty(), "{left:?}");
    }
}

/// What a script tries, each with the name under which it reports what came of it.
const ATTACKS: &str = r#"
    report() { if "$@" >/dev/null 2>&1; then echo "$1 $2 works"; fi; }
    [ -z "$(find /run -mindepth 1 ! -type l)" ] || echo "/run is not empty"
    report mount -o remount,rw /
    report mount -t tmpfs none /mnt
    report sh -c 'cat /proc/sys/vm/swappiness >/proc/sys/vm/swappiness'
    report sh -c 'echo h >/proc/sysrq-trigger'
    report sh -c 'cat /sys/kernel/mm/ksm/run >/sys/kernel/mm/ksm/run'
    report python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$SOCKET"
    report python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("here.sock")'
    report python3 -c 'import os; os.open("/dev/kmsg", os.O_WRONLY)'
    report python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x10000000) != 0)'
    report kill -9 "$PID"
    report pkill -f "^sleep $MARK"
    report losetup -f start.sh
    report mknod /tmp/disk b 254 0
    report touch /usr/evil /etc/evil /var/evil
    [ "$(id -u)" != 0 ] || echo "it is root"
    grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && echo "it has capabilities"
    touch "$HOME/evil" /tmp/evil-of-capture; echo '# evil' >>start.sh; rm -f here.sock data.txt; touch evil
    dd if=/dev/zero of=large bs=1M count=300 2>/dev/null && echo "dd works"
    kvm -S
"#;

#[test]
fn a_script_changes_nothing_on_the_machine_as_root_and_as_a_user() {
    // It ends on its own if this test fails, and does not keep the output of the tests open.
    let mark = format!("60.87654{}", std::process::id());
    let mut sleeper = Command::new("sleep")
        .arg(&mark)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let outside = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("capture-{mark}.sock"));
    let _socket = UnixListener::bind(&outside).unwrap();
    let loops = || {
        Command::new("losetup")
            .arg("-a")
            .output()
            .map(|it| it.stdout)
            .unwrap_or_default()
    };
    let loops_before = loops();
    for is_user in [false, true] {
        let place = Place::with(&[
            ("start.sh", ATTACKS),
            ("data.txt", "data"),
            ("home/kept", ""),
        ]);
        let _here = UnixListener::bind(place.path("here.sock")).unwrap();
        if is_user && rustix::process::geteuid().is_root() {
            // They are the user's own, who may change them outside of a sandbox.
            for file in ["", "start.sh", "data.txt", "home", "home/kept"] {
                std::os::unix::fs::chown(place.path(file), Some(65534), Some(65534)).unwrap();
            }
        }
        let (pid, home) = (sleeper.id().to_string(), place.path("home"));
        let given = BTreeMap::from([
            ("PID", pid.as_str()),
            ("MARK", &mark),
            ("SOCKET", outside.to_str().unwrap()),
            ("HOME", home.to_str().unwrap()),
            ("PATH", PATH),
        ]);
        let given = given.iter().map(|(name, value)| format!("{name}={value}"));
        let given: Vec<String> = ["env".to_owned()].into_iter().chain(given).collect();
        let words = ["capture", "--"]
            .into_iter()
            .chain(given.iter().map(String::as_str));
        let words: Vec<&str> = words.chain(["sh", "./start.sh"]).collect();
        let before = listing(&place);
        let run = match is_user {
            true => possible(place.run_unprivileged(&words)),
            false => run(&place, &words),
        };
        let Some(run) = run else { break };
        assert_eq!(arguments(&run), ["-S"], "{}", run.stderr);
        assert_eq!(run.stderr, "1 start of QEMU\n");
        let after = listing(&place);
        let new: Vec<_> = after.iter().filter(|it| !before.contains(it)).collect();
        assert!(new.iter().all(|(name, _)| name == "vmdisk"), "{new:?}");
        assert!(before.iter().all(|it| after.contains(it)), "{after:?}");
        assert!(sleeper.try_wait().unwrap().is_none());
    }
    assert!(
        [
            "/usr/evil",
            "/etc/evil",
            "/var/evil",
            "/tmp/evil-of-capture"
        ]
        .iter()
        .all(|it| !Path::new(it).exists())
    );
    assert_eq!(loops(), loops_before);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    std::fs::remove_file(&outside).unwrap();
}

/// The files of a place and of its home, with their sizes.
fn listing(place: &Place) -> Vec<(String, u64)> {
    let of = |folder: &str| -> Vec<_> {
        let files = std::fs::read_dir(place.path(folder))
            .unwrap()
            .map(Result::unwrap);
        let files = files.map(|it| {
            (
                it.file_name().into_string().unwrap(),
                it.metadata().unwrap(),
            )
        });
        files
            .filter(|(_, about)| !about.is_dir())
            .map(|(name, about)| (name, about.len()))
            .collect()
    };
    let mut all = [of(""), of("home")].concat();
    all.sort();
    all
}

/// Idioms, each with the command that runs it.
const IDIOMS: [(&str, &str, &str); 8] = [
    (
        "bash",
        "a.bash",
        "A=(-m 1G); A+=(-drive \"file=/v/a b.raw\"); declare -A D=([x]=/v/x); A[${#A[@]}]=${D[x]}; qemu-system-x86_64 \"${A[@]}\"",
    ),
    (
        "sh",
        "b.sh",
        "f() { qemu-system-x86_64 -name \"$@\"; }; for i in 1 2; do f \"$i\" ${X:+-S} ''; done",
    ),
    (
        "bash",
        "c.bash",
        "N=Yes; case $N in [Yy]*) O='-S -m 1G';; esac; eval \"exec qemu-system-x86_64 $O '$N'\"",
    ),
    (
        "sh",
        "d.sh",
        "printf -- '-drive\\nfile=x,,y\\n' | xargs qemu-system-x86_64 -S",
    ),
    (
        "make",
        "Makefile",
        "O :=\ndefine add\nO += -drive file=/v/$(1).raw\nendef\n$(foreach d,a b,$(eval $(call add,$(d))))\nall: ; @qemu-system-x86_64 $(O)",
    ),
    (
        "python3",
        "e.py",
        "import os\nos.execvp('qemu-system-x86_64', ['qemu-system-x86_64', '-m', '1\\n2', b'\\xff'])",
    ),
    (
        "python3",
        "f.py",
        "import subprocess as s\nfor n in 'ab': s.Popen(f'qemu-system-x86_64 -name {n}', shell=True).wait()",
    ),
    (
        "perl",
        "g.pl",
        "system('qemu-system-x86_64', '-drive', \"file=\\x{e4}\") == 0 or die",
    ),
];

#[test]
fn what_is_captured_is_what_strace_sees() {
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("skipped: there is no strace");
        return;
    }
    for (language, file, text) in IDIOMS {
        let place = Place::with(&[(file, text)]);
        std::fs::create_dir(place.path("bin")).unwrap();
        place.program("bin/qemu-system-x86_64", "exit 0");
        let path = format!("{}:{PATH}", place.path("bin").display());
        let words = match language {
            "make" => vec!["make", "-s"],
            _ => vec![language, file],
        };
        let mut traced = Command::new("strace");
        traced.args([
            "-f",
            "-qq",
            "-v",
            "-xx",
            "-s",
            "100000",
            "-e",
            "trace=execve",
            "-o",
            "trace",
        ]);
        let traced = traced
            .args(&words)
            .current_dir(place.path(""))
            .env("PATH", &path)
            .output()
            .unwrap();
        assert!(traced.status.success(), "{file}: {traced:?}");
        let seen: Vec<Vec<String>> = place
            .read("trace")
            .lines()
            .filter_map(qemu_of_strace)
            .collect();
        assert!(!seen.is_empty(), "{file}");
        let mut command = place.command(["capture", "--"].iter().chain(&words));
        command.env("PATH", &path);
        let Some(run) = possible(finish(command, b"")) else {
            return;
        };
        let captured: Vec<Vec<String>> = starts(&run)
            .into_iter()
            .map(|(program, argv, _)| {
                let words = argv.iter().map(|word| match word["hex"].as_str() {
                    Some(digits) => digits.to_owned(),
                    None => hex(word.as_str().unwrap().as_bytes()),
                });
                [hex(program.as_bytes())].into_iter().chain(words).collect()
            })
            .collect();
        assert_eq!(captured, seen, "{file}\n{}", run.stderr);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The words of a successful start in a line of strace, in hexadecimal.
fn qemu_of_strace(line: &str) -> Option<Vec<String>> {
    let call = line.strip_suffix(" = 0")?.split("execve(").nth(1)?;
    let (path, rest) = call.split_once(", [")?;
    let name = hex(b"/qemu-system-x86_64");
    path.replace("\\x", "")
        .trim_matches('"')
        .ends_with(&name)
        .then_some(())?;
    let words = rest.split("], [").next()?.split(", ");
    Some(
        words
            .map(|word| word.replace("\\x", "").trim_matches('"').to_owned())
            .collect(),
    )
}

#[test]
fn a_capture_of_several_starts_is_several_guests() {
    let start = |image: &str, cache: &str| {
        format!(
            "{{\"version\":1,\"program\":\"qemu-system-x86_64\",\"argv\":[\"-drive\",\"file={image},format=raw,if=virtio,cache={cache}\"],\"folder\":\"/vm\"}}\n"
        )
    };
    let text = start("a.raw", "none") + &start("b.raw", "unsafe");
    let place = Place::with(&[("two.json", &text)]);
    let lint = place.run(&["lint", "two.json"]);
    assert_eq!(lint.code, 1, "{}", lint.stderr);
    assert!(lint.stdout.contains("two.json:2:"), "{}", lint.stdout);
    assert_eq!(lint.stdout.matches("error[cache-unsafe]").count(), 1);
    let both = place.run(&["convert", "two.json", "--to", "disk-xml"]);
    assert_eq!(both.code, 2);
    assert!(
        both.stderr.contains("the input has 2 guests"),
        "{}",
        both.stderr
    );
    let second = place.run(&["convert", "two.json", "--to", "disk-xml", "--start", "2"]);
    assert!(
        second.stdout.contains("<source file='/vm/b.raw'/>"),
        "{second:?}"
    );
    let trace = place.run_with_input(&["trace", "-"], text.as_bytes());
    assert!(
        trace.stdout.contains("/vm/a.raw") && trace.stdout.contains("/vm/b.raw"),
        "{}",
        trace.stdout
    );
    let fixed = place.run(&["lint", "--fix", "two.json"]);
    assert_eq!(fixed.code, 0, "{}", fixed.stderr);
    assert_eq!(place.read("two.json"), text.replace("unsafe", "writeback"));
    let array = r#"["qemu-system-x86_64", "-drive", "file=/a,format=raw,if=virtio,cache=unsafe"]"#;
    assert_eq!(
        place.run_with_input(&["lint", "-"], array.as_bytes()).code,
        1
    );
    let broken = place.run_with_input(&["lint", "-"], text.replace("]", "").as_bytes());
    assert_eq!(broken.code, 2);
    assert!(
        broken.stderr.contains("not the output of `vmdisk capture`"),
        "{}",
        broken.stderr
    );
}

#[test]
fn several_xml_documents_on_one_input_are_several_guests() {
    let guest = |name: &str, cache: &str| {
        format!(
            "<?xml version='1.0'?>\n<domain type='kvm'>\n<name>{name}</name><os><type>hvm</type></os><features><acpi/></features>\n<devices>\n\
             <disk type='file' device='disk'><driver name='qemu' type='raw' cache='{cache}'/><source file='/srv/ä{name}'/>\
             <target dev='vda' bus='virtio'/></disk>\n</devices></domain>\n\n"
        )
    };
    let text = guest("a", "none") + &guest("b", "unsafe");
    let place = Place::with(&[("two.xml", &text)]);
    for (arguments, input) in [(["lint", "-"], text.as_str()), (["lint", "two.xml"], "")] {
        let lint = place.run_with_input(&arguments, input.as_bytes());
        assert_eq!(lint.code, 1, "{}", lint.stderr);
        assert_eq!(
            lint.stdout.matches("error[cache-unsafe]").count(),
            1,
            "{}",
            lint.stdout
        );
        assert!(lint.stdout.contains(":12:"), "{}", lint.stdout);
    }
    let second = place.run(&["convert", "two.xml", "--to", "disk-xml", "--start", "2"]);
    assert!(second.stdout.contains("/srv/äb"), "{second:?}");
    let fixed = place.run(&["lint", "--fix", "two.xml"]);
    assert_eq!(fixed.code, 0, "{}", fixed.stderr);
    assert_eq!(place.read("two.xml"), text.replace("unsafe", "writeback"));
    let other = place.run_with_input(
        &["lint", "-"],
        (guest("a", "none") + "<network/>").as_bytes(),
    );
    assert_eq!(other.code, 2, "{}", other.stdout);
}

#[test]
fn a_program_that_the_user_may_not_reach_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::with(&[]);
    place.program("start.sh", "kvm -S");
    let closed = place.path("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let run = possible(place.run_unprivileged(&["capture", "--", "./closed/start.sh"]));
    let Some(run) = run else { return };
    assert_eq!(run.code, 2, "{run:?}");
    let expected =
        "could not be started: the user who runs it here may not reach ./closed/start.sh";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
}

#[test]
fn a_script_that_is_not_executable_is_called_so() {
    let place = Place::with(&[("start.sh", "kvm -S\n")]);
    let run = possible(place.run(&["capture", "--", "./start.sh"]));
    let Some(run) = run else { return };
    assert_eq!(run.code, 2, "{run:?}");
    let expected = "could not be started: ./start.sh is not executable";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
}

#[test]
fn the_command_that_a_refusal_names_converts_the_script() {
    let text = "#!/bin/sh\nif [ -z \"$1\" ]; then\n  O='-drive file=/a,format=raw,if=virtio'\nfi\n\
        qemu-system-x86_64 $O\n";
    let place = Place::with(&[("a.sh", text)]);
    let convert = ["convert", "--to", "disk-xml"];
    let refused = place.run(&[&convert[..], &["a.sh"]].concat());
    assert_eq!(refused.code, 2, "{refused:?}");
    let named = "vmdisk capture -- COMMAND | vmdisk convert -";
    assert!(refused.stderr.contains(named), "{refused:?}");
    let Some(captured) = run(&place, &["capture", "--", "sh", "a.sh"]) else {
        return;
    };
    let run = place.run_with_input(&[&convert[..], &["-"]].concat(), captured.stdout.as_bytes());
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("<source file='/a'/>"), "{run:?}");
}
