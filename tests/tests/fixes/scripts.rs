//! Generated scripts, run by bash with a stand-in for QEMU: what fixes change, and what a conversion loses.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "bash judges what is read"
)]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use vmdisk::{Document, FixScope, LintOptions, fix, read, write};

/// Scripts of each test; `VMDISK_SCRIPTS` asks for more.
fn count() -> usize {
    let asked = std::env::var("VMDISK_SCRIPTS").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(250)
}

/// The variables that only the caller sets, and that conditions do not look at.
const OF_CALLER: [&str; 3] = ["X1", "X2", "EXTRA"];

/// The arguments of QEMU in each start of each script; `None` without bash.
fn real(scripts: &[String]) -> Option<Vec<Vec<Vec<String>>>> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("qemu-system-x86_64");
    let stub = "#!/bin/sh\nprintf '%s\\001' \"${0##*/}\" \"$@\"\nprintf '\\002'\n";
    vmdisk_testing::write_program(&program, stub);
    let one = |script: &String| {
        format!("bash <<'END OF SCRIPT'\n{script}\nEND OF SCRIPT\nprintf '\\003'\n")
    };
    let all: String = scripts.iter().map(one).collect();
    let bash = Command::new("bash")
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
        .envs(OF_CALLER.map(|name| (name, format!("of-{name}"))))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut bash) = bash else {
        let is_required = std::env::var("VMDISK_REAL").is_ok_and(|it| it == "require");
        assert!(!is_required, "there is no bash");
        println!("skipped: there is no bash");
        return None;
    };
    let mut input = bash.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(all.as_bytes()));
    let output = bash.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = |start: &str| start.split_terminator('\u{1}').map(str::to_owned).collect();
    let starts = |script: &str| script.split_terminator('\u{2}').map(words).collect();
    Some(text.split_terminator('\u{3}').map(starts).collect())
}

/// Writes random scripts.
struct Writer {
    state: u64,
    drives: usize,
    /// True while nothing is written that only the caller or a shell knows.
    is_plain: bool,
}

impl Writer {
    fn next(&mut self, below: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695);
        usize::try_from(self.state >> 33).unwrap() % below
    }

    fn of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.next(words.len())]
    }

    /// The value of a `-drive`, of which each has its own path and serial number.
    fn drive(&mut self) -> String {
        self.drives += 1;
        let nth = self.drives;
        let folders = ["/d", "/d/e", "$DIR", "${DIR:-/e}", "/d/$X1", "/$SUB"];
        let formats = ["format=raw", "format=qcow2", "format=$FMT", "formt=raw"];
        let caches = [
            "cache=none",
            "cache=unsafe",
            "readonly=on",
            "cache=$CACHE",
            "cahce=writeback",
            "cache=$X2",
        ];
        // The first of each are plain.
        let most = if self.is_plain { 3 } else { usize::MAX };
        let folder = self.of(&folders[..most.min(folders.len())]);
        let format = self.of(&formats[..most.min(formats.len())]);
        let cache = self.of(&caches[..most.min(caches.len())]);
        let mut keys = [
            format!("file={folder}/u{nth}.raw"),
            format.to_owned(),
            "if=virtio".to_owned(),
            cache.to_owned(),
        ];
        let last = self.next(keys.len());
        keys.swap(0, last);
        format!("{},id=d{nth}", keys.join(","))
    }

    /// A function that may end early, sets a variable on some ways, and is called.
    fn function(&mut self, depth: usize) -> String {
        let condition = self.of(&[
            "[ -n \"$FLAG\" ]",
            "[ -z \"$FLAG\" ]",
            "[ \"$1\" = a ]",
            "[ \"${MODE:-a}\" = a ]",
        ]);
        let (early, late) = (self.statement(depth + 1), self.statement(depth + 1));
        let way = self.of(&["return", "return 1", "CACHE=unsafe", "SUB=${MODE:+m}"]);
        let end = self.of(&["", "[ -n \"$FLAG\" ] && return", "CACHE=${MODE:-none}", "h"]);
        let nth = self.drives;
        let argument = self.of(&["a", "b", "\"$KNOWN\"", ""]);
        format!(
            "h() {{ FMT=${{MODE:+qcow2}}; FMT=${{FMT:-raw}}; }}\ng{nth}() {{\nif {condition}; then\n{early}\n{way}\nfi\n\
             {late}\n{end}\n}}\ng{nth} {argument}"
        )
    }

    /// A drive for QEMU in one of the first `kinds` ways.
    fn addition(&mut self, kinds: usize) -> String {
        let drive = self.drive();
        match self.next(kinds) {
            0 => format!("OPTS=\"$OPTS -drive {drive}\""),
            1 => format!("OPTS+=\" -drive {drive}\""),
            2 => format!("ARGS+=(-drive \"{drive}\")"),
            _ => format!("set -- \"$@\" -drive {drive}"),
        }
    }

    fn statement(&mut self, depth: usize) -> String {
        if depth > 2 || self.next(11) < 4 {
            return self.addition(4);
        }
        match self.next(7) + 4 {
            4 => {
                let condition = self.of(&[
                    "[ -n \"$FLAG\" ]",
                    "[ -z \"$FLAG\" ]",
                    "[ \"$KNOWN\" = 1 ]",
                    "[[ \"${MODE:-a}\" == a ]]",
                ]);
                let (yes, no) = (self.statement(depth + 1), self.statement(depth + 1));
                match self.next(2) {
                    0 => format!("if {condition}; then\n{yes}\nfi"),
                    _ => format!("if {condition}; then\n{yes}\nelse\n{no}\nfi"),
                }
            }
            5 => {
                let (a, b) = (self.statement(depth + 1), self.statement(depth + 1));
                format!("case ${{MODE:-a}} in\n a) {a} ;;\n *) {b} ;;\nesac")
            }
            6 => {
                let body = self.statement(depth + 1);
                format!("f{0}() {{\n{body}\n}}\nf{0}", self.drives)
            }
            7 => format!("[ -n \"$FLAG\" ] && {}", self.statement(3)),
            8 | 9 => self.function(depth),
            _ => {
                let nth = self.drives;
                format!(
                    "for i in a b; do ARGS+=(-drive \"file=/l{nth}/$i.raw,format=raw,if=virtio,id=l{nth}$i\"); done"
                )
            }
        }
    }

    fn script(&mut self) -> String {
        let mut lines =
            vec!["DIR=/d; FMT=raw; CACHE=none; SUB=${DIR#/}; KNOWN=1; OPTS=-S; ARGS=()".to_owned()];
        let count = 1 + self.next(4);
        // What a script adds at its top level, without conditions, is known.
        self.is_plain = self.next(2) == 0;
        if self.is_plain {
            lines.extend((0..count).map(|_| self.addition(3)));
            let start = "qemu-system-x86_64 -m 1G $OPTS \"${ARGS[@]}\"";
            lines.push([start, self.of(&["", " \"$@\""])].concat());
            return lines.join("\n") + "\n";
        }
        lines.extend((0..count).map(|_| self.statement(0)));
        let extra = self.of(&["", " $EXTRA", " \"$@\""]);
        let start = format!("qemu-system-x86_64 -m 1G $OPTS \"${{ARGS[@]}}\" \"$@\"{extra}");
        lines.push(match self.next(4) {
            0 => format!("one() {{\n{start}\n}}\none \"$@\""),
            1 => {
                let (own, before) = (self.drive(), self.statement(2));
                format!(
                    "one() {{\n{start}\n}}\ntwo() {{\nlocal FMT=raw\n{before}\n\
                     qemu-system-x86_64 -m 2G -drive {own} $OPTS\n}}\none \"$@\"\ntwo"
                )
            }
            _ => start,
        });
        lines.join("\n") + "\n"
    }
}

fn scripts() -> Vec<String> {
    let mut writer = Writer {
        state: 11,
        drives: 0,
        is_plain: false,
    };
    (0..count()).map(|_| writer.script()).collect()
}

/// The expansions of a script, in order.
fn expansions(script: &str) -> Vec<&str> {
    let marks = script.match_indices('$');
    marks
        .map(|(at, _)| {
            let rest = &script[at..];
            let end =
                rest[1..].find(|it: char| !it.is_ascii_alphanumeric() && !"{}[]@:-#/".contains(it));
            &rest[..end.map_or(rest.len(), |end| end + 1)]
        })
        .collect()
}

#[test]
fn a_fix_of_a_script_changes_its_arguments_as_it_would_change_them_alone() {
    let options = LintOptions::default();
    let before = scripts();
    let fixed: Vec<String> = before
        .iter()
        .map(|script| {
            let fixed = fix(script, &options, FixScope::SafeAndUnsafe);
            fixed
                .expect("it is a command line")
                .document
                .text
                .to_string()
        })
        .collect();
    let changed = before.iter().zip(&fixed).filter(|(a, b)| a != b).count();
    for (before, after) in before.iter().zip(&fixed) {
        assert_eq!(expansions(before), expansions(after), "{before}\n{after}");
    }
    let (Some(old), Some(new)) = (real(&before), real(&fixed)) else {
        return;
    };
    for (script, (old, new)) in fixed.iter().zip(old.iter().zip(&new)) {
        assert_eq!(old.len(), new.len(), "{script}");
        for (old, new) in old.iter().zip(new) {
            let argv = format!("{old:?}");
            let alone = fix(&argv, &options, FixScope::SafeAndUnsafe).expect("it is an argv");
            let known: BTreeSet<&str> = old.iter().map(String::as_str).collect();
            for word in new.iter().filter(|word| !known.contains(word.as_str())) {
                assert!(
                    alone.document.text.contains(word.as_str()),
                    "`{word}` of\n{script}\nbefore: {old:?}\nalone: {}",
                    alone.document.text
                );
            }
        }
    }
    println!("{changed} of {} scripts were fixed", before.len());
    assert!(changed * 10 > before.len(), "{changed}");
}

/// What a conversion says and writes: of the start without arguments and variables of the caller.
fn converted(document: Document) -> (String, Option<String>) {
    let starts = document.into_starts();
    let document = starts.into_iter().find(Document::is_default_start);
    let document = document.expect("each condition is known without the caller");
    let losses = vmdisk::losses(&document);
    let is_refused = losses.iter().any(|loss| loss.changes_guest);
    let mut said: Vec<String> = losses.into_iter().map(|loss| loss.what).collect();
    said.extend(vmdisk::not_about_disks(&document));
    let written =
        (!is_refused).then(|| write::document_disks_xml(&document).expect("it is written"));
    (said.join("\n"), written)
}

#[test]
fn a_conversion_of_a_script_carries_names_or_refuses_each_option() {
    let scripts = scripts();
    let Some(real) = real(&scripts) else { return };
    let mut carried = 0;
    for (script, real) in scripts.iter().zip(real) {
        let (said, written) = converted(read(script).expect("it is a command line"));
        let argv = real.first().unwrap_or_else(|| panic!("{script}"));
        let Some(written) = written else { continue };
        for name in OF_CALLER {
            let value = format!("of-{name}");
            if argv.iter().any(|word| word.contains(&value)) {
                assert!(
                    said.contains(&format!("${name}")),
                    "{name} of\n{script}\n{said}"
                );
            }
        }
        carried += 1;
        let drives = argv.windows(2).filter(|pair| pair[0] == "-drive");
        let mut count = 0;
        for [_, drive] in drives.map(|pair| [&pair[0], &pair[1]]) {
            count += 1;
            for pair in drive.split(',') {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                let is_kept = match key {
                    "file" => written.contains(&format!("file='{value}'")),
                    "format" => written.contains(&format!("type='{value}'")),
                    "cache" => written.contains(&format!("cache='{value}'")),
                    "readonly" => written.contains("<readonly/>"),
                    "if" | "id" => true,
                    _ => false,
                };
                assert!(
                    is_kept || said.contains(key),
                    "{pair} of\n{script}\n{said}\n{written}"
                );
            }
        }
        assert_eq!(
            written.matches("<disk ").count(),
            count,
            "{script}\n{written}"
        );
    }
    println!("{carried} of {} scripts were converted", scripts.len());
    assert!(carried * 5 > scripts.len(), "{carried}");
}

/// A value inside a word of QEMU may be a counter, which other commands need as it is.
#[test]
fn a_fix_changes_no_value_that_stands_inside_a_word() {
    for (script, is_fixed) in [
        (
            "N=1\nwhile [ $N -le 2 ]; do\nA=\"$A -drive if=virtio,file=/d.img,index=$N\"\nN=$(( $N+1 ))\ndone\n",
            false,
        ),
        (
            "C=unsafe\nmkdir /tmp/$C\n[ -n \"$X\" ] && C=none\nA=\"-drive format=raw,file=/d.img,cache=$C\"\n",
            false,
        ),
        (
            "[ -n \"$X\" ] && A='-drive format=raw,file=/d.img,cache=unsafe'\n",
            true,
        ),
    ] {
        let script = format!("{script}qemu-system-x86_64 -m 1G $A\n");
        let options = LintOptions::default();
        let fixed = fix(&script, &options, FixScope::SafeAndUnsafe).unwrap();
        let text = &fixed.document.text;
        assert_eq!(**text != *script, is_fixed, "{text}");
    }
}
