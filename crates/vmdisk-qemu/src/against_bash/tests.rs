//! Random scripts, which bash runs with a recorder in place of QEMU: no word that is read as known may differ.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "bash judges the reading"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::syntax::form::words;
use crate::syntax::text::Text;

/// Scripts of a run; `VMDISK_SCRIPTS` sets another number.
const SCRIPTS: usize = 200;

/// Statements: `V` and `W` are variables, `L` is a text.
const STATEMENTS: &[&str] = &[
    "V=L",
    "V=L",
    "V=L",
    "V=\"L L\"",
    "V='L L'",
    "V=\"$W L\"",
    "V=$W-L",
    "V=\"$V L\"",
    "V+=L",
    "V+=\" L\"",
    "V=(L \"L L\")",
    "V=(L L)",
    "V+=(L)",
    "V+=(L \"$W\")",
    "V+=($W)",
    "V=(\"${V[@]}\" L)",
    "V=(L \"${W[@]}\")",
    "V[1]=L",
    "V[${#V[@]}]=L",
    "V=([1]=L L)",
    "unset V",
    "unset 'V[0]'",
    "declare V=L",
    "declare -a V=(L L)",
    "declare -i V=3",
    "declare -u V=L",
    "declare -A V=([a]=L)",
    "declare -n R=V; R=L",
    "typeset V=L",
    "export V=L",
    "export V",
    "export V=\"$W\"",
    "readonly V=L",
    "printf -v V %s L",
    "printf '%s' V >/dev/null",
    "read V <<< L",
    "read -r V W <<< \"L L\"",
    "mapfile -t V <<< L",
    "let V=5",
    "(( V=7 ))",
    ": $(( V=8 ))",
    ": ${V:=L}",
    ": \"${W:=${V:=L}}\"",
    "eval \"V=L\"",
    "eval V=L",
    "V=$(echo L)",
    "V=`echo L`",
    "V=$((1+2))",
    "V=${W:-L}",
    "V=${W#a}",
    "V=${#W}",
    "V=${W^^}",
    "V=${W/a/b}",
    "V=${W:1}",
    "V=${W:+L}",
    "V=${!W}",
    ". ./conf",
    "source ./conf",
    "trap 'V=L' EXIT",
    "trap 'V=L' DEBUG",
    "set -- L L",
    "V=$1",
    "V=$#",
    "V=\"$*\"",
    "V=(\"$@\")",
    "IFS=,",
    "IFS=, read -ra V <<< a,b",
    "V=L true",
    "V=L eval :",
    "V=L W=L",
    "V=~/x",
    "V=*",
    "V='*'",
    "V=\"c*\"",
    "V={a,b}",
    "V=({a,b} L)",
    "V=$'a\\tb'",
    "V=a\\ b",
    "V=",
    "V=\"\"",
    "V=()",
    "getopts a: V -a L",
    "echo V",
    "test V = V",
    "[[ V == L ]]",
    "[[ V=5 -eq 5 ]]",
    "E=eval; $E V=L",
    "E=read; $E V <<< L",
    "r() { \"$@\"; }; r read V <<< L",
    "r() { \"$@\"; }; r eval 'V=L'",
    "r() { \"$@\"; }; r declare -g V=L",
    "g() { eval \"$1\"; }; g 'V=L'",
    "g() { printf -v \"$1\" %s L; }; g V",
    "g() { V=$1; }; g L",
    "g() { local V=L; }; g",
    "g() { local -n Q=$1; Q=L; }; g V",
    "g() { V+=(L); }; g",
    "shift",
    "cd /",
    "V=L\\\nL",
    "V=${W[0]}",
    "V=${#W[@]}",
    "V=${W[@]:1}",
    "N=V; declare \"$N=L\"",
    "exec 3>&1",
    "exec {V}>/dev/null",
    "V=L # W=L",
    "true V=L",
    "V=\"L\"'L'",
    "V=<(:)",
    "V=\"it's\"",
    "cat <<X\nV=L\nX",
    "cat <<'X'\nit's\nX",
    "V=$(cat <<X\nL\nX\n)",
    "V=$(case a in a) echo L;; esac)",
    "W=$V",
    "shopt -s nullglob",
    "set -f",
    "set -e",
    "V=${W:-`echo a`}",
    "V=\"`echo \"L\"`\"",
    "V=L; export V; V+=L",
    "unset -v V",
    "V=\"${V} L\"",
    "V=\"${V:-L} L\"",
];

/// Commands around statements `S`.
const COMPOUNDS: &[&str] = &[
    "if true; then S; fi",
    "if false; then S; else S; fi",
    "if false; then S; fi",
    "for i in 1 2; do S; done",
    "for V in L L; do S; done",
    "for ((k=0; k<2; k++)); do S; done",
    "n=0; while [ $((n++)) -lt 2 ]; do S; done",
    "n=0; until [ $((n++)) -gt 1 ]; do S; done",
    "case L in a*) S;; *) S;; esac",
    "case $V in (a|b) S;; *) S; esac",
    "f() { S; }; f",
    "f() { S; }",
    "f() ( S; ); f",
    "function h { S; }; h",
    "( S; S )",
    "{ S; S; }",
    "true && S",
    "false || S",
    "false && S",
    "{ S; } | cat",
    "S &\nwait",
    "echo L | while read V; do S; done",
    "( S )",
    "[[ a == a ]] && { S; S; }",
    "true || { S; }",
    "while read V; do S; done <<< L",
    "f 2>/dev/null",
    "f; h",
    "if S\nthen S\nfi",
    "! { S; }",
    "true &&\nS",
    "while read V; do S; done < <(echo L)",
    "select V in; do :; done",
    "h() { if true; then S; fi; }; h",
    "time { S; }",
    "for i in 1 2\ndo\nS\ndone",
    "bash -c 'S'",
    "f\nf",
];

/// Words of a start.
const WORDS: &[&str] = &[
    "L",
    "-L",
    "\"$V\"",
    "$V",
    "\"${V[@]}\"",
    "${V[@]}",
    "\"${V[*]}\"",
    "x$V",
    "\"$V,x\"",
    "'$V'",
    "\"a b\"",
    "${V}x",
    "\"$V\"y",
    "$V$W",
    "*.none",
    "L\\ b",
    "\"$1\"",
    "\"$@\"",
    "$'q\\n'",
    "~",
    "\"\"",
    "\"${V[1]}\"",
    "\"${V:-d}\"",
    "\"x${V[@]}y\"",
    "{a,b}",
    "file=~/x",
    "\"$(echo L)\"",
    "\\$V",
    "\"\\\"L\\\"\"",
    "a\"b\"'c'",
    "$((1+1))",
    "[L]",
];

/// What runs the program.
const BEFORE: &[&str] = &[
    "",
    "",
    "",
    "",
    "env ",
    "nice ",
    "command ",
    "Z=1 ",
    "V=L ",
    "env -i PATH=\"$PATH\" ",
    "setsid -w ",
];

/// Small random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn of(&mut self, list: &[&'static str]) -> &'static str {
        list[self.below(list.len())]
    }

    /// A template with variables and texts.
    fn filled(&mut self, template: &str) -> String {
        let variable = self.of(&["A", "B", "C"]);
        let other = self.of(&["A", "B", "C"]);
        let mut out = String::new();
        let letters: Vec<char> = template.chars().collect();
        for (nth, letter) in letters.iter().enumerate() {
            let is_part = |it: Option<&char>| it.is_some_and(|it| it.is_ascii_alphanumeric());
            let is_alone = !is_part(nth.checked_sub(1).and_then(|it| letters.get(it)))
                && !is_part(letters.get(nth + 1));
            match letter {
                'V' if is_alone => out.push_str(variable),
                'W' if is_alone => out.push_str(other),
                'L' if is_alone => {
                    out.push_str(self.of(&["a", "b", "c1", "-d", "e=f", "g,h", "i/j"]))
                }
                letter => out.push(*letter),
            }
        }
        out
    }

    fn statement(&mut self, depth: usize, starts: &mut usize) -> String {
        match self.below(10) {
            0 | 1 if depth < 3 => {
                let template = self.of(COMPOUNDS);
                let mut out = String::new();
                for (nth, part) in template.split('S').enumerate() {
                    if nth > 0 {
                        out += &self.statement(depth + 1, starts);
                    }
                    out += &self.filled(part);
                }
                out
            }
            2 => self.start(starts),
            _ => {
                let template = self.of(STATEMENTS);
                self.filled(template)
            }
        }
    }

    fn start(&mut self, starts: &mut usize) -> String {
        *starts += 1;
        let before = self.of(BEFORE);
        let mut out = format!("{}qemu-system-x86_64 -start{starts}", self.filled(before));
        for _ in 0..self.below(4) + 1 {
            let word = self.of(WORDS);
            let _ = write!(out, " {}", self.filled(word));
        }
        out
    }

    fn script(&mut self) -> String {
        let mut out = String::from("#!/bin/bash\n");
        let mut starts = 0;
        for _ in 0..self.below(8) + 2 {
            let statement = self.statement(0, &mut starts);
            // A text between quotes cannot have others.
            out += &statement;
            out.push('\n');
        }
        out += &self.start(&mut starts);
        out.push('\n');
        out
    }
}

/// A pattern of a command line: a zero byte ends each word, and `None` is any text.
fn pattern(arguments: &[Text]) -> Vec<Option<char>> {
    let mut out = Vec::new();
    for word in arguments {
        let mut at = 0;
        for (range, _) in word.holes() {
            out.extend(word.as_str()[at..range.start].chars().map(Some));
            out.push(None);
            at = range.end;
        }
        out.extend(word.as_str()[at..].chars().map(Some));
        // A word that is unknown may be none.
        let unknown: usize = word.holes().map(|it| it.0.len()).sum();
        let is_whole = unknown > 0 && unknown == word.as_str().len();
        if !is_whole {
            out.push(Some('\0'));
        }
    }
    out
}

fn fits(pattern: &[Option<char>], text: &[char]) -> bool {
    let (mut at, mut of, mut star) = (0, 0, None);
    while at < text.len() {
        match pattern.get(of) {
            Some(Some(letter)) if *letter == text[at] => (at, of) = (at + 1, of + 1),
            Some(None) => {
                star = Some((of, at));
                of += 1;
            }
            _ => match star {
                Some((place, from)) => {
                    star = Some((place, from + 1));
                    (of, at) = (place + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[of..].iter().all(Option::is_none)
}

/// The command lines with which bash starts QEMU, each with zero bytes after its words.
fn recorded(folder: &Path, script: &str) -> Vec<String> {
    std::fs::write(folder.join("run.sh"), script).unwrap();
    let _ = std::fs::remove_file(folder.join("record"));
    let path = format!("{}:/usr/bin:/bin", folder.join("bin").display());
    let run = Command::new("timeout")
        .args(["--signal=KILL", "10", "bash", "run.sh", "one", "two words"])
        .current_dir(folder)
        .env_clear()
        .env("PATH", path)
        .env("HOME", "/home/of")
        // A function may call itself, each time in a process of its own.
        .env("FUNCNEST", "4")
        .stdin(std::process::Stdio::null())
        .output();
    run.unwrap();
    let record = std::fs::read_to_string(folder.join("record")).unwrap_or_default();
    record
        .split("\u{1}\n")
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn no_known_word_differs_from_what_bash_passes() {
    let folder = std::env::temp_dir().join(format!("vmdisk-scripts-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("bin")).unwrap();
    std::fs::write(folder.join("conf"), "A=conf\nB=(x conf)\nC='c d'\n").unwrap();
    let stub = folder.join("bin/qemu-system-x86_64");
    let record = folder.join("record");
    let text = format!(
        "#!/bin/sh\n{{ printf '%s\\0' \"$@\"; printf '\\001\\n'; }} >> {}\n",
        record.display()
    );
    std::fs::write(&stub, text).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&stub, std::fs::Permissions::from_mode(0o755)).unwrap();
    if Command::new("bash").arg("--version").output().is_err() {
        println!("skipped: there is no bash");
        return;
    }
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let scripts = number("VMDISK_SCRIPTS").unwrap_or(SCRIPTS);
    let mut random = Random(number("VMDISK_SEED").unwrap_or(1) as u64);
    let (mut compared, mut known, mut all, mut refused, mut wrong) = (0, 0, 0, 0, Vec::new());
    for _ in 0..scripts {
        let script = random.script();
        let found = match words(&script, &BTreeMap::new()) {
            Ok(found) => found,
            Err(_) => {
                refused += 1;
                continue;
            }
        };
        let records = recorded(&folder, &script);
        for start in found.iter().filter(|it| !it.start.is_part) {
            let Some(first) = start.arguments.first() else {
                continue;
            };
            let mark = format!("{}\0", first.as_str());
            for record in records.iter().filter(|it| it.starts_with(&mark)) {
                compared += 1;
                all += record.matches('\0').count();
                known += start.arguments.iter().filter(|it| !it.has_hole()).count();
                let text: Vec<char> = record.chars().collect();
                if !fits(&pattern(&start.arguments), &text) {
                    let read: Vec<&str> = start.arguments.iter().map(Text::as_str).collect();
                    wrong.push(format!("{script}read {read:?}\nbash {record:?}"));
                }
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    println!(
        "{scripts} scripts, {refused} refused, {compared} starts, {known} of {all} words known, {} wrong",
        wrong.len()
    );
    assert!(compared > scripts / 4, "{compared}");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong
            .iter()
            .take(6)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n----\n")
    );
}
