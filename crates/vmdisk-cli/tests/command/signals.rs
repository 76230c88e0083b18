//! Ctrl-C and SIGTERM leave whole files, and nothing beside them.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::{CLEAN, Place, UNSAFE};

#[test]
fn a_signal_leaves_whole_files_and_nothing_beside_them() {
    const FILES: usize = 60;
    let names: Vec<String> = (0..FILES).map(|number| format!("{number}.xml")).collect();
    let mut ended_by_signal = 0;
    for round in 0..60_u64 {
        let files: Vec<(&str, &str)> = names.iter().map(|name| (&**name, UNSAFE)).collect();
        let place = Place::with(&files);
        let mut command = place.command(["lint", "--fix", "-q", "."]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(1000 + 700 * (round % 40)));
        let signal = if round % 2 == 0 {
            Signal::INT
        } else {
            Signal::TERM
        };
        // It may have ended already.
        let _ = kill_process(Pid::from_child(&child), signal);
        let status = child.wait().unwrap();
        if let Some(number) = status.signal() {
            assert_eq!(number, signal.as_raw());
            ended_by_signal += 1;
        }
        let mut left: Vec<String> = std::fs::read_dir(place.path(""))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.retain(|name| !names.contains(name));
        assert_eq!(left, [""; 0], "round {round}");
        for name in &names {
            let text = place.read(name);
            assert!(text == UNSAFE || text == CLEAN, "{name}: {text}");
        }
    }
    assert!(ended_by_signal > 5, "{ended_by_signal}");
}

#[test]
fn a_signal_that_a_shell_ignores_stays_ignored() {
    let place = Place::with(&[("a.xml", UNSAFE)]);
    let script = "trap '' INT; \"$0\" lint --fix -q a.xml; kill -INT $$; echo on";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, crate::program()]);
    command.current_dir(place.path("")).process_group(0);
    let run = command.output().unwrap();
    assert!(run.status.success(), "{run:?}");
    assert_eq!(place.read("a.xml"), CLEAN);
}
