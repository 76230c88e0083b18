//! Languages that start QEMU and are not read.

use vmdisk_source::Span;

use super::program::{names_program, only_asks};
use super::steps::CAPTURE;
use crate::failure::ReadFailure;

/// Languages that start QEMU and are not read: words in the names of their interpreters, and the ends of the names of files.
const LANGUAGES: [(&[&str], &[&str], &str); 15] = [
    (&["python"], &["py"], "Python"),
    (&["perl"], &["pl"], "Perl"),
    (&["ruby"], &["rb"], "Ruby"),
    (&["node"], &["js"], "JavaScript"),
    (&["tclsh", "expect", "wish"], &["tcl"], "Tcl"),
    (&["pwsh"], &["ps1"], "PowerShell"),
    (&["fish"], &["fish"], "fish"),
    (&["lua"], &["lua"], "Lua"),
    (&["awk"], &[], "awk"),
    (&["php"], &[], "PHP"),
    (&["zsh"], &["zsh"], "zsh"),
    (&["csh"], &["csh"], "csh"),
    (&[], &["bat", "cmd"], "a batch file"),
    (&[], &["go"], "Go"),
    (&[], &["rs"], "Rust"),
];

/// The language of files whose names end so.
pub(super) fn named(end: &str) -> Option<&'static str> {
    let is_it = |known: &&str| known.eq_ignore_ascii_case(end);
    let mut all = LANGUAGES.iter();
    all.find(|(_, ends, _)| ends.iter().any(&is_it))
        .map(|it| it.2)
}

/// The language that the first lines of a text name.
pub(super) fn declared(text: &str) -> Option<&'static str> {
    let first = text.lines().next().unwrap_or_default();
    let interpreter = first.strip_prefix("#!").unwrap_or_default();
    let is_it = |word: &&str| interpreter.contains(word);
    let mut all = LANGUAGES.iter();
    if let Some((_, _, language)) = all.find(|(words, ..)| words.iter().any(&is_it)) {
        return Some(language);
    }
    let is_powershell = |line: &str| {
        let name = line.trim_start().strip_prefix('$').unwrap_or_default();
        let length = name.find(|it: char| !it.is_ascii_alphanumeric() && it != '_' && it != ':');
        let (name, rest) = name.split_at(length.unwrap_or(name.len()));
        !name.is_empty() && (rest.starts_with(" = ") || rest.starts_with(" += "))
    };
    let is_shell = interpreter.contains("sh");
    (!is_shell && text.lines().any(is_powershell)).then_some("PowerShell")
}

/// True for a text with lines of a batch file.
pub(super) fn is_batch(text: &str) -> bool {
    // grub.cfg has `set`, too, and a batch file reads what it sets as `%NAME%`.
    let has_values = text.contains('%');
    let is_own = |line: &str| {
        let line = line.trim().trim_start_matches('@').to_ascii_lowercase();
        let first = line.split([' ', '\t']).next().unwrap_or_default();
        !line.starts_with('#')
            && (line.starts_with("echo off")
                || matches!(first, "rem" | "setlocal" | "::")
                || first == "set" && has_values && line.contains('=') && !line.contains(['$', '-'])
                || line.ends_with(" ^"))
    };
    !text.starts_with("#!") && text.lines().any(is_own)
}

/// The language that the words of a text suggest, if it has no command line.
pub(super) fn suggested(text: &str) -> Option<&'static str> {
    let starts = |words: &[&str]| {
        let mut lines = text.lines().map(str::trim_start);
        lines.any(|line| words.iter().any(|word| line.starts_with(word)))
    };
    let code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let first = text.lines().find(code).unwrap_or_default();
    Some(match () {
        () if first.starts_with("FROM ") || first.starts_with("ARG ") => "Dockerfile",
        () if starts(&["- qemu", "- /usr", "- \"qemu", "- -"]) => "YAML",
        () if starts(&["package main", "func "]) => "Go",
        () if starts(&["fn ", "use std", "let mut "]) => "Rust",
        () if starts(&["#include", "int main"]) => "C",
        () if starts(&["const ", "let ", "require("]) => "JavaScript",
        () if starts(&["require '", "require \"", "spawn(", "system("]) => "Ruby",
        () if starts(&["import ", "from ", "def ", "subprocess."]) => "Python",
        () if starts(&["use strict", "my $", "my @"]) => "Perl",
        () if starts(&["proc ", "set argv", "spawn "]) => "Tcl",
        () if first.trim_start().starts_with('{') => "JSON",
        () => return None,
    })
}

/// A language that is not read, with the line where QEMU is named.
pub(super) fn foreign(text: &str, language: &str) -> ReadFailure {
    let (span, number) = line_of_qemu(text);
    let place = number.map_or(String::new(), |number| {
        format!(": line {number} names QEMU")
    });
    ReadFailure::new(span, format!("{language} is not read{place}")).help(CAPTURE)
}

/// No command line, with the line that looks most like one.
pub(super) fn no_command(text: &str) -> ReadFailure {
    let is_shell = text.starts_with("#!");
    if let Some(language) = suggested(text).filter(|_| !is_shell) {
        return foreign(text, language);
    }
    let (span, number) = line_of_qemu(text);
    let line = span.slice(text).unwrap_or_default().trim_start();
    let why = match number {
        None => return nothing(span),
        Some(_)
            if line.starts_with(['#', ';']) || line.to_ascii_lowercase().starts_with("rem ") =>
        {
            "is a comment"
        }
        Some(_) if only_asks(line.split_whitespace()) => "only asks QEMU for information",
        Some(_)
            if !line
                .split_once("qemu")
                .is_some_and(|(_, rest)| rest.contains(" -")) =>
        {
            "names QEMU without an option"
        }
        Some(_) => "names QEMU, but not as the program of a command",
    };
    ReadFailure::new(span, format!("no QEMU command line found: this line {why}")).help(CAPTURE)
}

fn nothing(span: Span) -> ReadFailure {
    ReadFailure::new(span, "no QEMU command line found")
        .help("expected a word such as qemu-system-x86_64, or lines of options")
}

/// The line that names QEMU, with options if there is such a line, and its number; else the first line.
fn line_of_qemu(text: &str) -> (Span, Option<usize>) {
    let (mut start, mut found) = (0, None);
    for (nth, line) in text.split_inclusive('\n').enumerate() {
        let span = Span::new(start, start + line.trim_end().len());
        start += line.len();
        if names_program(line) {
            let is_comment = line.trim_start().starts_with('#');
            if line.contains(" -") && !is_comment {
                return (span, Some(nth + 1));
            }
            found = found.or(Some((span, Some(nth + 1))));
        }
    }
    let end = text.find('\n').unwrap_or(text.len());
    found.unwrap_or((Span::new(0, end), None))
}
