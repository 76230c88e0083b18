//! The completions, as the shells call them.

use std::process::{Command, Stdio};

use vmdisk_testing::{installed, needed};

use crate::{Place, finish};

/// The completions of the last of these words.
fn completed(words: &[&str]) -> Option<Vec<String>> {
    needed(installed("bash"))?;
    let script = Place::with(&[])
        .run(&["print", "completions", "bash"])
        .stdout;
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

/// A directory with the completion script of a shell.
fn script(shell: &str) -> Place {
    let script = Place::with(&[])
        .run(&["print", "completions", shell])
        .stdout;
    Place::with(&[("vmdisk.completion", &script)])
}

/// The result of a shell, in the directory of its completion script.
fn shell_output(place: &Place, shell: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(shell);
    command
        .args(arguments)
        .current_dir(place.path("."))
        .env("HOME", place.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(command, b"").stdout
}

/// The words to complete, and the completed words where there is one.
const LISTS: [(&str, &str); 5] = [
    ("vmdisk lint --select cache-uns", "cache-unsafe"),
    (
        "vmdisk lint --select startup,cache-uns",
        "startup,cache-unsafe",
    ),
    (
        "vmdisk lint --ignore=startup,clarity,cache-uns",
        "startup,clarity,cache-unsafe",
    ),
    ("vmdisk facts --group lvm,nv", "lvm,nvme"),
    ("vmdisk lint --format sar", "sarif"),
];

#[test]
fn fish_completes_every_word_of_a_list() {
    if needed(installed("fish")).is_none() {
        return;
    }
    let place = script("fish");
    for (words, expected) in LISTS {
        let ask = format!("source vmdisk.completion; complete -C '{words}'");
        let output = shell_output(&place, "fish", &["--no-config", "-c", &ask]);
        let words: Vec<&str> = output.lines().collect();
        let word = words[0].split('\t').next().unwrap();
        let word = word.rsplit('=').next().unwrap();
        assert_eq!((words.len(), word), (1, expected), "{output}");
    }
}

#[test]
fn zsh_completes_every_word_of_a_list() {
    if needed(installed("zsh")).is_none() {
        return;
    }
    let place = script("zsh");
    // Ctrl-X writes the line after Tab completed it.
    let setup = "autoload -Uz compinit; compinit -D -u; source ./vmdisk.completion; \
                 written() { print -r -- $BUFFER > line.new; mv line.new line; exit }; \
                 zle -N written; bindkey '^I' complete-word; bindkey '^X' written";
    place.write("setup.zsh", setup.as_bytes());
    for (words, expected) in LISTS {
        let ask = format!(
            "zmodload zsh/zpty; zpty shell zsh -f -i; zpty -w shell 'source ./setup.zsh'; \
             zpty -w -n shell $'{words}\\t\\x18'; \
             for try in {{1..200}}; do [[ -e line ]] && break; sleep 0.1; done; cat line; rm line"
        );
        let output = shell_output(&place, "zsh", &["-f", "-c", &ask]);
        let word = output.trim_end().rsplit([' ', '=']).next().unwrap();
        assert_eq!(word, expected, "{output}");
    }
}
