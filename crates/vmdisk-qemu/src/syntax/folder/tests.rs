//! The evaluation finds the folder in which bash starts QEMU.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "bash judges the evaluation"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Folder;
use crate::syntax::hole::{Decisions, Evaluated};
use crate::syntax::script::evaluate;
use crate::syntax::text::Text;
use vmdisk_source::Span;

const START: &str = "qemu-system-x86_64";

/// What scripts do before they start QEMU. The caller sets `U`; the second column says whether the folder is known after it,
/// where it was known before.
const MOVES: [(&str, bool); 23] = [
    ("true", true),
    ("cd a", true),
    ("cd ./b || exit 1", true),
    ("cd ..", true),
    ("cd /usr/bin", true),
    ("D=/usr; cd \"$D/bin\"", true),
    ("( cd a; true )", true),
    ("A=$(cd /usr && pwd); cd \"$A\"", true),
    ("f() { cd b; }; f", true),
    ("pushd a > /dev/null", true),
    ("cd .", true),
    ("cd \"$PWD\"", false),
    ("cd \"$(dirname \"$0\")\"", false),
    ("cd \"$(dirname \"${BASH_SOURCE[0]}\")/a\" || exit", false),
    ("S=$(cd \"$(dirname \"$0\")\" && pwd); cd \"$S\"", false),
    ("R=$(cd \"$(dirname \"$0\")/a\" && pwd); cd \"$R\"", false),
    ("cd \"${0%/*}\"", false),
    ("cd \"$U\"", false),
    ("cd \"$U/..\"", false),
    ("if [ -n \"$U\" ]; then cd a; else cd b; fi", false),
    ("pushd a > /dev/null; popd > /dev/null", false),
    ("cd a; cd - > /dev/null", false),
    ("cd", false),
];

fn found(script: &str) -> Folder {
    let mut text = Text::empty(0);
    text.push_verbatim(script, Span::new(0, script.len()));
    let starts = |words: &[Text]| words[0].as_str() == START;
    let seed = Evaluated::default();
    let evaluated = evaluate(
        text,
        starts,
        &Decisions::new(),
        &std::collections::BTreeMap::new(),
        seed,
    );
    let commands = evaluated.unwrap().commands;
    let start = commands.into_iter().find(|it| starts(&it.words)).unwrap();
    start.folder
}

/// The folders in which bash runs QEMU; none without bash.
fn real(scripts: &[String], root: &Path) -> Option<Vec<PathBuf>> {
    for folder in [
        "a/a/a", "a/a/b", "a/b/a", "a/b/b", "b/a/a", "b/a/b", "b/b/a", "b/b/b",
    ] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
        // Scripts that leave the folder find the same there.
        std::fs::create_dir_all(root.join("..").join(folder)).unwrap();
    }
    // Each script is a file of its own, so that `$0` is true.
    let mut all = String::from("export HOME=/ U=/usr/lib\nexport -f qemu-system-x86_64\n");
    for (nth, script) in scripts.iter().enumerate() {
        std::fs::write(root.join(format!("{nth}.sh")), script).unwrap();
        all += &format!("bash ./{nth}.sh || echo failed\n");
    }
    let all = format!("{START}() {{ pwd -P; }}\n{all}");
    let out = Command::new("bash")
        .args(["-c", &all])
        .current_dir(root)
        .output();
    let out = out.ok()?;
    let lines = String::from_utf8(out.stdout).unwrap();
    Some(lines.lines().map(PathBuf::from).collect())
}

#[test]
fn the_folder_in_which_bash_starts_qemu_is_the_one_found_or_unknown() {
    let mut scripts = Vec::new();
    for (first, first_is_known) in MOVES {
        for (second, second_is_known) in MOVES {
            // A folder that is left has other folders in it.
            let is_deep = [first, second]
                .iter()
                .any(|it| it.contains("/usr") || it.contains("$U"));
            let is_home = first == "cd" || second == "cd";
            let enters =
                second.contains("cd a") || second.contains("b") || second.contains("pushd");
            if enters && !second.starts_with("cd /") && (is_deep || is_home) {
                continue;
            }
            let is_known = first_is_known && second_is_known;
            scripts.push((format!("{first}\n{second}\n{START} -x\n"), is_known));
        }
    }
    let outer = std::env::temp_dir().join(format!("vmdisk-folders-{}", std::process::id()));
    std::fs::create_dir_all(outer.join("root")).unwrap();
    let root = outer.join("root").canonicalize().unwrap();
    let texts: Vec<String> = scripts.iter().map(|it| it.0.clone()).collect();
    let real = real(&texts, &root);
    let Some(real) = real else { return };
    assert_eq!(real.len(), scripts.len());
    let mut wrong = Vec::new();
    for ((script, is_known), real) in scripts.iter().zip(real) {
        if real == Path::new("failed") {
            continue;
        }
        let found = found(script);
        let is_right = match &found {
            Folder::Unchanged => real == root,
            Folder::Known(place) => root.join(place).canonicalize().is_ok_and(|it| it == real),
            Folder::Unknown => !is_known,
        };
        if !is_right {
            wrong.push((script, found, real));
        }
    }
    std::fs::remove_dir_all(&outer).unwrap();
    assert!(
        wrong.is_empty(),
        "{} of {}: {wrong:#?}",
        wrong.len(),
        scripts.len()
    );
    // Where the script goes first to its own folder, that is known.
    for (script, expected) in [
        ("cd \"$(dirname \"$0\")\"", Folder::Unchanged),
        (
            "cd \"$(dirname \"$(readlink -f \"$0\")\")\"",
            Folder::Unchanged,
        ),
        (
            "S=$(cd \"$(dirname \"$0\")\" && pwd); cd \"$S\"",
            Folder::Unchanged,
        ),
        (
            "cd \"$(dirname \"$0\")/..\"",
            Folder::Known("./..".to_owned()),
        ),
        ("cd \"${0%/*}\"", Folder::Unchanged),
        ("cd \"$U\"", Folder::Unknown),
        ("cd ~/vm", Folder::Unknown),
    ] {
        assert_eq!(
            found(&format!("{script}\n{START} -x\n")),
            expected,
            "{script}"
        );
    }
}
