//! Languages that start QEMU and are not read.

use vmdisk_source::Span;

use super::program::{is_program, only_asks};
use crate::failure::ReadFailure;

/// The language that the first lines of a text name.
pub(super) fn declared(text: &str) -> Option<&'static str> {
    let first = text.lines().next().unwrap_or_default();
    let interpreter = first.strip_prefix("#!").unwrap_or_default();
    let named = [
        ("python", "Python"),
        ("perl", "Perl"),
        ("ruby", "Ruby"),
        ("node", "JavaScript"),
        ("tclsh", "Tcl"),
        ("expect", "Tcl"),
        ("wish", "Tcl"),
        ("pwsh", "PowerShell"),
        ("fish", "fish"),
        ("lua", "Lua"),
        ("awk", "awk"),
        ("php", "PHP"),
    ];
    let by_interpreter = named
        .into_iter()
        .find(|(program, _)| interpreter.contains(program));
    if let Some((_, language)) = by_interpreter {
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

/// The language that the words of a text suggest, if it has no command line.
fn suggested(text: &str) -> Option<&'static str> {
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
    ReadFailure::new(span, format!("{language} is not read{place}")).help(
        "check the arguments that it starts QEMU with, as a JSON array of strings, or `vmdisk lint --running`",
    )
}

/// No command line, with the line that looks most like one.
pub(super) fn no_command(text: &str) -> ReadFailure {
    if let Some(language) = suggested(text) {
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
    ReadFailure::new(span, format!("no QEMU command line found: this line {why}"))
        .help("expected a word such as qemu-system-x86_64 with its options, or lines of options")
}

fn nothing(span: Span) -> ReadFailure {
    ReadFailure::new(span, "no QEMU command line found")
        .help("expected a word such as qemu-system-x86_64, or lines of options")
}

/// The line that names QEMU, with options if there is such a line, and its number; else the first line.
fn line_of_qemu(text: &str) -> (Span, Option<usize>) {
    let is_end = |letter: char| letter.is_whitespace() || "\"'`,[](){}=;&|@".contains(letter);
    let names = |line: &str| line.split(is_end).any(is_program);
    let (mut start, mut found) = (0, None);
    for (nth, line) in text.split_inclusive('\n').enumerate() {
        let span = Span::new(start, start + line.trim_end().len());
        start += line.len();
        if names(line) {
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
