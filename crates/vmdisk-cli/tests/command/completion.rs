//! The bash completion, as bash calls it.

use std::process::{Command, Stdio};

use vmdisk_testing::{installed, needed};

use crate::{Place, finish};

/// The completions of the last of these words.
fn completed(words: &[&str]) -> Option<Vec<String>> {
    needed(installed("bash"))?;
    let script = Place::with(&[]).run(&["completions", "bash"]).stdout;
    let (last, before) = words.split_last().unwrap();
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let call = format!(
        "{script}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_vmdisk vmdisk '{last}' '{}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        before.len(),
        before.last().unwrap(),
    );
    let mut command = Command::new("bash");
    command
        .args(["--norc", "-s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let run = finish(command, call.as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    Some(run.stdout.lines().map(str::to_owned).collect())
}

#[test]
fn bash_completes_every_word_of_a_list() {
    for option in ["--select", "--extend-select", "--ignore"] {
        let of = |word: &str| completed(&["vmdisk", "lint", option, word]);
        let Some(first) = of("cache-uns") else {
            return;
        };
        assert_eq!(first, ["cache-unsafe"], "{option}");
        assert_eq!(
            of("data-safety,cache-writethrough,cache-uns").unwrap(),
            ["data-safety,cache-writethrough,cache-unsafe"],
            "{option}"
        );
        let all = of("startup,").unwrap();
        assert!(all.len() > 100, "{all:?}");
        assert!(all.iter().all(|word| word.starts_with("startup,")));
        assert_eq!(of("startup,nothing-like-it").unwrap(), [""]);
    }
    assert_eq!(
        completed(&["vmdisk", "facts", "--group", "lvm,nv"]).unwrap(),
        ["lvm,nvme"]
    );
    // `=` is a word of its own.
    assert_eq!(
        completed(&["vmdisk", "lint", "--select", "=", "startup,cache-uns"]).unwrap(),
        ["startup,cache-unsafe"]
    );
    assert_eq!(
        completed(&["vmdisk", "lint", "--format", "=", "sar"]).unwrap(),
        ["sarif"]
    );
    // An option with one value has no lists.
    assert_eq!(
        completed(&["vmdisk", "lint", "--format", "sar"]).unwrap(),
        ["sarif"]
    );
}
