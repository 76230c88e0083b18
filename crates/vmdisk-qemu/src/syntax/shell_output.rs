//! The output of commands whose output is known: `$(basename "$IMAGE" .img)`, `$(seq 3)`, a function that prints.

use std::rc::Rc;

use vmdisk_source::Span;

use super::arithmetic::Numbers;
use super::expansion::printf;
use super::program::is_program;
use super::script_text::{MAX_DEPTH, Script};
use super::shell_state::{Shell, joined, literal};
use super::text::Text;

impl Shell {
    /// The output of a script that runs in a shell of its own, if it is known.
    pub(super) fn output(&mut self, text: Text) -> Option<Text> {
        let start = text.whole().start;
        self.bytes += text.as_str().len();
        let script = Rc::new(Script::new(text).ok()?);
        if self.depth + 8 > 8 * MAX_DEPTH {
            return None;
        }
        let has_assumed = self.has_assumed;
        self.depth += 8;
        self.captures.push(Some(Text::empty(start)));
        self.branch(None, |shell| shell.list(&script, &mut 0, true).0);
        self.depth -= 8;
        self.has_assumed |= has_assumed;
        let output = self.captures.pop()??;
        let length = output.as_str().trim_end_matches('\n').len();
        Some(output.part(0..length))
    }

    /// Notes that the output of the open substitution is not known.
    pub(super) fn forget_output(&mut self) {
        if let Some(capture) = self.captures.last_mut() {
            *capture = None;
        }
    }

    /// Adds the output of a program to that of the open substitution.
    pub(super) fn capture(&mut self, name: &str, arguments: &[Text]) {
        let output = match (name, arguments) {
            ("cat", []) => self.input.take(),
            ("pwd", []) => self.working_directory().as_deref().map(literal),
            ("dirname", [.., path]) if is_script(path) && self.knows_its_folder() => {
                Some(literal("."))
            }
            _ => printed(name, arguments),
        };
        if let Some(capture) = self.captures.last_mut() {
            match (capture, output) {
                (Some(capture), Some(output)) => {
                    capture.push_part(&output, 0..output.as_str().len());
                    if name == "echo" && arguments.first().is_none_or(|it| it.as_str() != "-n") {
                        capture.push_escape("\n", Span::empty(output.whole().end));
                    }
                }
                (capture, _) => *capture = None,
            }
        }
    }
}

/// True for the path of the script itself.
fn is_script(path: &Text) -> bool {
    let names = [
        "$0",
        "${0}",
        "$BASH_SOURCE",
        "${BASH_SOURCE}",
        "${BASH_SOURCE[0]}",
    ];
    path.has_hole() && names.contains(&path.as_str())
}

/// The name of `expr` and numbers are all that it reads.
struct NoNumbers;

impl Numbers for NoNumbers {
    fn number(&mut self, _: &str) -> Option<i64> {
        None
    }

    fn assign(&mut self, _: &str, _: Option<i64>) {}
}

/// What a program prints, if that follows from its arguments.
fn printed(name: &str, arguments: &[Text]) -> Option<Text> {
    let is_known = !arguments.iter().any(Text::has_hole);
    let words: Vec<&str> = arguments.iter().map(Text::as_str).collect();
    let text = |text: &str| {
        let mut moved = Text::empty(0);
        moved.push_escape(text, arguments.first().map_or(Span::empty(0), Text::whole));
        moved
    };
    match (name, words.as_slice()) {
        ("echo", words) => {
            let has_option = matches!(words, ["-n" | "-e" | "-E", ..]);
            let words = &arguments[usize::from(has_option)..];
            let is_plain = |word: &Text| !word.as_str().contains('\\');
            words.iter().all(is_plain).then(|| joined(words))
        }
        ("expr", [a, operator, b]) if is_known => {
            let number =
                super::arithmetic::evaluate(&format!("{a} {operator} {b}"), &mut NoNumbers);
            Some(text(&number?.to_string()))
        }
        ("printf", [_, ..]) if is_known => printf(&arguments[0], &arguments[1..]),
        // Where the program is does not matter.
        ("which", [program]) | ("command", ["-v", program]) | ("type", ["-p" | "-P", program])
            if is_known && is_program(program) =>
        {
            Some(text(program))
        }
        ("basename", [path, suffix @ ..]) if is_known && !path.starts_with('-') => {
            let path = path.trim_end_matches('/');
            let name = path.rsplit('/').next().unwrap_or(path);
            let suffix = suffix.first().copied().unwrap_or_default();
            let bare = name.strip_suffix(suffix).filter(|bare| !bare.is_empty());
            Some(text(bare.unwrap_or(name)))
        }
        ("dirname", [path]) if is_known => {
            let parent = path.trim_end_matches('/').rsplit_once('/');
            Some(text(match parent {
                Some(("", _)) => "/",
                Some((parent, _)) => parent,
                None => ".",
            }))
        }
        // The same file, or the script itself.
        ("readlink", ["-f" | "-e" | "-m", _]) | ("realpath", [_]) => {
            Some(arguments.last()?.clone())
        }
        ("seq", numbers) if is_known => {
            let numbers: Option<Vec<i64>> = numbers.iter().map(|it| it.parse().ok()).collect();
            let (first, step, last) = match numbers?.as_slice() {
                [last] => (1, 1, *last),
                [first, last] => (*first, 1, *last),
                [first, step, last] if *step > 0 => (*first, *step, *last),
                _ => return None,
            };
            let count = usize::try_from((last - first) / step + 1).unwrap_or(0);
            let numbers = (0..)
                .map(|nth| first + nth * step)
                .take_while(|it| *it <= last);
            let numbers: Vec<String> = numbers.take(1000).map(|it| it.to_string()).collect();
            (count <= 1000).then(|| text(&numbers.join("\n")))
        }
        _ => None,
    }
}
