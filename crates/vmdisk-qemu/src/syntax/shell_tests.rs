//! Tests: `[ … ]` and `[[ … ]]`.

use std::rc::Rc;

use super::expansion;
use super::script_text::Script;
use super::shell_state::{Done, Flow, Shell, literal};
use super::text::Text;

impl Shell {
    /// `[[ … ]]`
    pub(super) fn double_bracket(
        &mut self,
        script: &Rc<Script>,
        at: &mut usize,
        live: bool,
    ) -> Done {
        *at += 1;
        let mut words = Vec::new();
        let mut is_simple = live;
        self.has_assumed = false;
        while *at < script.tokens.len() && script.word(*at) != Some("]]") {
            match script.word(*at) {
                Some(_) if live => words.push(self.word(script, *at)),
                Some(_) => {}
                None => match script.operator(*at) {
                    Some("&&") => words.push(literal("-a")),
                    Some("||") => words.push(literal("-o")),
                    _ => is_simple = false,
                },
            }
            *at += 1;
        }
        *at += 1;
        let status = if is_simple {
            self.status_of_test(&words)
        } else {
            None
        };
        (Flow::Next, status)
    }

    /// The result of a test, if it is certain.
    pub(super) fn test(&mut self, words: &[Text]) -> Option<bool> {
        let assumed: Option<Vec<String>> =
            words.iter().map(|it| self.out.assumed_text(it)).collect();
        let words = assumed?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        tested(&words)
    }

    /// The status of a test: certain, or only without arguments and variables of the caller.
    pub(super) fn status_of_test(&mut self, words: &[Text]) -> Option<bool> {
        let status = self.test(words);
        let is_certain = !self.has_assumed && !words.iter().any(Text::has_hole);
        self.assumed = status.filter(|_| !is_certain);
        status.filter(|_| is_certain)
    }
}

/// The result of a test of known words.
fn tested(words: &[&str]) -> Option<bool> {
    let number = |word: &str| word.trim().parse::<i64>().ok();
    match words {
        ["!", rest @ ..] => tested(rest).map(|status| !status),
        ["-n", word] => Some(!word.is_empty()),
        ["-z", word] => Some(word.is_empty()),
        ["-e" | "-f" | "-d" | "-r" | "-w" | "-s" | "-b", ""] => Some(false),
        [] => Some(false),
        [word] => Some(!word.is_empty()),
        [a, "=" | "==", b] => Some(expansion::matches(b, a)),
        [a, "!=", b] => Some(!expansion::matches(b, a)),
        [
            a,
            operator @ ("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"),
            b,
        ] => {
            let (a, b) = (number(a)?, number(b)?);
            Some(match *operator {
                "-eq" => a == b,
                "-ne" => a != b,
                "-lt" => a < b,
                "-le" => a <= b,
                "-gt" => a > b,
                _ => a >= b,
            })
        }
        _ => {
            let last = |operator| words.iter().rposition(|word| *word == operator);
            let at = last("-o").or_else(|| last("-a"))?;
            let (first, second) = (tested(&words[..at])?, tested(&words[at + 1..])?);
            Some(if words[at] == "-a" {
                first && second
            } else {
                first || second
            })
        }
    }
}
