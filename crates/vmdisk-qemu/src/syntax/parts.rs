//! Text that only counts under a condition: it is checked once, with the words around it.

use std::collections::HashSet;
use std::ops::Range;

use vmdisk_source::Span;

use super::expand::{Splitting, split_too, value_span};
use super::hole::{Fields, Hole};
use super::script::{Found, Run, Shell};
use super::steps::CAPTURE;
use super::text::Text;
use super::variables::{Part, Value};
use crate::failure::ReadFailure;

impl Shell<'_> {
    pub(super) fn add_parts(&mut self, run: &mut Run, first: usize) -> Result<(), ReadFailure> {
        const MAX_PARTS: usize = 1024;
        /// Each part has the words of its start.
        const MAX_WORDS: usize = 1 << 18;
        let words = self.starts[first..].iter().map(|it| it.words.len()).max();
        let most = (MAX_WORDS / (words.unwrap_or_default() + 1)).clamp(8, MAX_PARTS);
        let (mut seen, mut inside) = (HashSet::new(), HashSet::new());
        let mut nth = first;
        let own = self.starts.len();
        while nth < self.starts.len() {
            // Those of a script within this one have theirs.
            let is_own = self.starts[nth].depth == self.depth;
            let words = self.starts[nth].words.clone();
            let holes = words.iter().filter(|_| is_own).flat_map(|word| {
                let is_inside = |range: Range<usize>| range.len() < word.as_str().len();
                word.holes()
                    .map(move |(range, number)| (number, is_inside(range)))
            });
            for (number, is_inside) in holes {
                let mut parts = self.parts_of(run, number);
                // Other words may need the value as it is: it may be a counter.
                let texts = parts
                    .iter()
                    .filter(|_| is_inside)
                    .flat_map(|it| it.value.texts());
                let spans = texts.map(Text::whole);
                self.shared.extend(spans.filter(|it| inside.insert(*it)));
                parts.retain(|it| seen.insert((it.at, value_span(&it.value, it.at))));
                self.add_parts_of(nth, &words, number, parts, own + most)
                    .map_err(|at| too_many_parts(at, most))?;
            }
            nth += 1;
        }
        Ok(())
    }

    /// Adds the starts with the parts in place of a hole. The error is the place of the first part after `most` starts.
    fn add_parts_of(
        &mut self,
        base: usize,
        words: &[Text],
        number: u32,
        parts: Vec<Part>,
        most: usize,
    ) -> Result<(), usize> {
        for part in parts {
            if self.starts.len() >= most {
                return Err(part.at);
            }
            if let Some(words) = with_part(words, number, &part, &mut self.holes) {
                self.add_part(base, words, part.condition);
            }
        }
        Ok(())
    }

    /// Adds a start with the words that count under one more condition.
    fn add_part(&mut self, base: usize, words: Vec<Text>, condition: String) {
        let base = &self.starts[base];
        let conditions = base.conditions.iter().cloned();
        let found = Found {
            words,
            at: base.at,
            owner: base.owner.clone(),
            conditions: conditions.chain([condition]).collect(),
            folder: base.folder.clone(),
            is_part: true,
            is_command: false,
            depth: base.depth,
        };
        self.starts.push(found);
    }

    /// The words that may be the value of a hole, each with its condition.
    pub(super) fn alternatives(&self, run: &Run, number: u32) -> Vec<(Text, String)> {
        let parts = self.parts_of(run, number).into_iter();
        let words = parts.filter_map(|part| match part.value {
            Value::Word(text) => Some((text, part.condition)),
            Value::List(_) | Value::Unknown(_) => None,
        });
        words.collect()
    }

    /// The text that may be the value of a hole.
    pub(super) fn parts_of(&self, run: &Run, number: u32) -> Vec<Part> {
        let Some(hole) = self.holes.get(number as usize) else {
            return Vec::new();
        };
        let alternatives = hole.alternatives.iter().map(|(text, condition)| Part {
            value: Value::Word(text.clone()),
            at: text.whole().start,
            condition: condition.clone(),
            is_certain: false,
            block: (None, None),
        });
        let variable = run.variables.all.get(&hole.variable);
        let parts = variable.into_iter().flat_map(|it| &it.parts);
        let parts = parts
            .filter(|it| !(hole.is_addition && it.is_certain))
            .cloned();
        alternatives.chain(parts).collect()
    }
}

fn too_many_parts(at: usize, most: usize) -> ReadFailure {
    let message = format!("the script has more than {most} texts that depend on conditions");
    ReadFailure::new(Span::empty(at), message).help(CAPTURE)
}

/// The words with a part in place of a hole, and of all others that are the value of its variable.
fn with_part(words: &[Text], number: u32, part: &Part, holes: &mut Vec<Hole>) -> Option<Vec<Text>> {
    let target = holes.get(number as usize)?.clone();
    // A value that is set later adds nothing here.
    if matches!(&part.value, Value::Word(value) if value.as_str().is_empty()) {
        return None;
    }
    // What make computes is read by a shell.
    if let (true, Value::Word(value)) = (target.variable.is_empty(), &part.value)
        && value.has_outside_holes(&['"', '\'', '\\'])
    {
        return None;
    }
    let is_same = |it: u32, holes: &[Hole]| {
        let hole = holes.get(it as usize);
        let is_value = |hole: &Hole| !hole.variable.is_empty() && hole.variable == target.variable;
        it == number
            || !target.is_addition && hole.is_some_and(|it| is_value(it) && !it.is_addition)
    };
    let mut out = Vec::new();
    for word in words {
        let Some((range, nth)) = word.holes().find(|it| is_same(it.1, holes)) else {
            out.push(word.clone());
            continue;
        };
        let fields = holes.get(nth as usize).map_or(Fields::One, |it| it.fields);
        let is_whole = range.len() == word.as_str().len();
        let is_several = is_whole && fields != Fields::One && fields != Fields::Joined;
        match &part.value {
            Value::List(list) if is_several => out.extend(list.iter().cloned()),
            Value::Word(value) if is_several => {
                let mut fields = Splitting::default();
                fields.split(&split_too(value, holes));
                fields.end();
                out.extend(fields.words);
            }
            Value::Word(value) => {
                let text = word.replacing(|out, _, number| {
                    let is_it = is_same(number, holes);
                    if is_it {
                        out.push_text(value);
                    }
                    is_it
                });
                out.push(text);
            }
            Value::List(_) | Value::Unknown(_) => return None,
        }
        // There may be more. What stands for an addition has the place of its text, which is that of the part.
        if is_several && target.is_addition {
            let end = value_span(&part.value, part.at).end;
            let mut more = Text::empty(end);
            more.push_hole(word.as_str(), Span::empty(end), nth);
            out.push(more);
        } else if is_several && target.default_of.is_empty() {
            out.push(word.clone());
        }
    }
    Some(out)
}
