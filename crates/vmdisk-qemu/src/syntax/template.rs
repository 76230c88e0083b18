//! Command lines in a template: its text in each way through its conditions.

use std::collections::BTreeSet;

use vmdisk_source::template::{Syntax, Template};

use super::hole::decides;
use super::option::is_value_of;
use super::start::Words;
use super::template_choice::{Choice, State, required, usual};
use super::text::Text;
use crate::failure::ReadFailure;

/// Texts of a template that are read, at most.
const MAX_TEXTS: usize = 64;

/// Bytes of all these texts, at most.
const MAX_BYTES: usize = 4 << 20;

/// The template that a text is, if it is one.
pub(super) fn template(text: &str) -> Option<Template> {
    let has = |mark: &str| text.contains(mark);
    // Nobody fills in what a process was started with.
    let may_be = ["{{", "{%", "{#", "<%"].into_iter().any(has) && !has("\0");
    may_be.then(|| Template::of(text, Syntax::Script)).flatten()
}

/// The command lines of a template: those of the text in which each condition holds that may, and those that differ where
/// another alternative is taken. `written` finds the command lines of a text.
pub(super) fn in_each_way(
    template: &Template,
    text: &str,
    written: impl Fn(&str) -> Result<Vec<Words>, ReadFailure>,
) -> Result<Vec<Words>, ReadFailure> {
    let choices: Vec<Choice<'_>> = template
        .choices
        .iter()
        .map(|it| Choice::new(it, text))
        .collect();
    let usual = usual(&choices);
    let taken = |state: &State| -> Vec<Option<usize>> {
        choices.iter().map(|choice| choice.taken(state)).collect()
    };
    let text_of = |taken: &[Option<usize>]| {
        let all: Vec<(usize, Option<usize>)> = taken.iter().copied().enumerate().collect();
        template.choosing(&all)
    };
    let first_taken = taken(&usual);
    let every = choices.iter().enumerate();
    let every = every.flat_map(|(nth, choice)| choice.alternatives().map(move |it| (nth, it)));
    let others: Vec<(usize, Option<usize>)> =
        every.filter(|(nth, it)| first_taken[*nth] != *it).collect();
    if others.len() > MAX_TEXTS.min(MAX_BYTES / (text.len() + 1)) {
        let span = template.choices[0].condition;
        let message = "the template has too many conditions to read the text of each";
        return Err(ReadFailure::new(span, message).help("lint what it renders to"));
    }
    let first = written(&text_of(&first_taken));
    let mut found: Vec<Words> = Vec::new();
    // The choices that the command lines of the first text depend on, each by the place of the command line.
    let mut decisive = BTreeSet::new();
    for (nth, alternative) in others {
        let Some(required) = required(&choices, nth, alternative) else {
            continue;
        };
        let mut state = usual.clone();
        state.extend(required);
        let Ok(all) = written(&text_of(&taken(&state))) else {
            continue;
        };
        for mut words in all {
            let mut known = first.iter().flatten().chain(&found);
            if known.any(|it| is_same(it, &words)) {
                continue;
            }
            decisive.insert((words.start.offset, nth));
            words
                .start
                .conditions
                .push(choices[nth].statement(alternative));
            words.start.is_default = false;
            found.push(words);
        }
    }
    if found.is_empty() {
        return first;
    }
    let mut all = first.unwrap_or_default();
    for words in &mut all {
        let of_these = |(offset, nth): &(usize, usize)| {
            let own = || choices[*nth].statement(first_taken[*nth]);
            (*offset == words.start.offset).then(own)
        };
        let conditions: Vec<String> = decisive.iter().filter_map(of_these).collect();
        words.start.is_default &= conditions.is_empty();
        words.start.conditions.extend(conditions);
    }
    all.append(&mut found);
    Ok(all)
}

/// True for command lines of one place with the same disks and the same machine.
fn is_same(one: &Words, other: &Words) -> bool {
    if one.start.offset != other.start.offset || one.program != other.program {
        return false;
    }
    let (one, other) = (one.arguments.as_slice(), other.arguments.as_slice());
    let least = one.len().min(other.len());
    let is_equal = |(a, b): &(&Text, &Text)| a == b;
    let before = one.iter().zip(other).take_while(is_equal).count();
    let after = one.iter().rev().zip(other.iter().rev());
    let after = after.take_while(is_equal).count().min(least - before);
    let between = |words: &[Text]| decide(&words[..words.len() - after], before);
    !between(one) && !between(other)
}

/// True if the words from one on decide over disks or the machine.
fn decide(words: &[Text], from: usize) -> bool {
    (from..words.len()).any(|nth| {
        let word = words[nth].as_str();
        let before = nth.checked_sub(1).map_or("", |it| words[it].as_str());
        match (word.starts_with('-'), is_value_of(before, word)) {
            (true, _) => decides(word),
            (false, true) => decides(before),
            // An image.
            (false, false) => true,
        }
    })
}
