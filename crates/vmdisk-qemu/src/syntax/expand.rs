//! The values of variables, and the words that a word gives with them.

use vmdisk_source::Span;

use super::hole::{Fields, Hole, UNSET};
use super::lexer::Word;
use super::script::{MAX_BYTES, Run, Shell};
use super::steps::{Assignment, Step, Written};
use super::text::Text;
use super::variables::{Part, Reason, SOURCED, Unknown, Value, Variable};

impl Shell<'_> {
    /// `declare -a NAME` makes an empty array.
    pub(super) fn declare(&mut self, run: &mut Run, step: &Step) {
        let words: Vec<&str> = step.words.iter().map(|it| it.text.as_str()).collect();
        if step.is_certain && words.contains(&"-a") {
            for name in words.iter().skip(1).filter(|it| !it.starts_with('-')) {
                if let Some(variable) = run.variables.all.get_mut(*name) {
                    variable.value.get_or_insert(Value::List(Vec::new()));
                }
            }
        }
    }

    pub(super) fn assign(
        &mut self,
        run: &mut Run,
        nth: usize,
        step: &Step,
        assignment: &Assignment,
    ) {
        let name = assignment.name.as_str();
        let (written, is_append) = self.without_itself(assignment);
        let value = match &written {
            Written::Word(text) => Value::Word(self.scalar(run, nth, step, text)),
            Written::List(words) if words.iter().any(|it| self.has_subscript(it)) => {
                Value::Unknown("its members have numbers or names".to_owned())
            }
            Written::List(words) => {
                let words = words.iter().flat_map(|it| self.expand(run, nth, step, it));
                Value::List(words.collect())
            }
        };
        let is_open = run.variables.is_open(name);
        let is_sourced = run.variables.is_sourced(name, nth);
        let line = self.line(step.at);
        let place = value_span(&value, step.at);
        let hole = || {
            let reason = format!("line {line} may set it");
            let mut hole = Hole::new(&format!("${name}"), place, &reason);
            hole.variable = name.to_owned();
            (hole.fields, hole.is_addition) = (Fields::Split, true);
            // Nothing, or this: if it is no disk, it takes nothing away.
            if let Some(text) = literal(&value) {
                hole.values = vec![String::new(), text];
            }
            hole
        };
        let Some(variable) = run.variables.all.get_mut(name) else {
            return;
        };
        if is_open && !assignment.is_member {
            let part = Part {
                value: value.clone(),
                at: step.at,
                condition: format!("if line {line} runs"),
                is_certain: step.is_certain,
                block: (step.block, step.owner.clone()),
            };
            add_part(&mut variable.parts, part, is_append);
        }
        variable.last = nth;
        match (step.is_certain, is_append) {
            (true, false) => variable.value = Some(replaced(variable, value)),
            (false, false) => {
                variable.value = Some(Value::Unknown(format!(
                    "line {line} sets it under a condition"
                )));
            }
            (true, true) => {
                let former = variable.value.take().filter(|_| !is_sourced);
                let former = former.unwrap_or_else(|| {
                    let mut hole = hole();
                    (hole.is_of_caller, hole.is_addition) = (true, false);
                    hole.values = Vec::new();
                    hole.reason = if is_sourced { SOURCED } else { UNSET }.to_owned();
                    one_like(&value, Text::of_hole(hole, &mut self.holes))
                });
                variable.value = Some(appended(former, value));
            }
            (false, true) => {
                let mut text = Text::empty(step.at);
                let is_spaced =
                    matches!(&value, Value::Word(it) if it.as_str().starts_with([' ', '\t', '\n']));
                if is_spaced {
                    text.push_escape(" ", place);
                }
                text.push_new(hole(), &mut self.holes);
                let added = one_like(&value, text);
                let former = variable.value.take().unwrap_or_else(|| empty_like(&value));
                variable.value = Some(appended(former, added));
            }
        }
    }

    /// True for a member of an array with a subscript: `[1]=a`.
    fn has_subscript(&self, word: &Word) -> bool {
        let hole = word.text.hole_at(0);
        hole.is_some_and(|(end, number)| {
            let hole = self.holes.get(number as usize);
            let rest = &word.text.as_str()[end..];
            hole.is_some_and(|it| it.whole.starts_with('[')) && rest.starts_with(['=', '+'])
        })
    }

    /// The text after a variable that is assigned its own value with more text, and whether it is so.
    fn without_itself(&self, assignment: &Assignment) -> (Written, bool) {
        let is_own = |text: &Text| {
            let (range, number) = text.holes().next().filter(|it| it.0.start == 0)?;
            let hole = self.holes.get(number as usize)?;
            (hole.variable == assignment.name).then_some((range.end, hole.fields))
        };
        match &assignment.value {
            Written::Word(text) if !assignment.is_append => match is_own(text) {
                Some((end, Fields::One | Fields::Split)) => {
                    (Written::Word(text.part(end..text.as_str().len())), true)
                }
                _ => (assignment.value.clone(), false),
            },
            Written::List(words) if !assignment.is_append => {
                let first = words.first().and_then(|it| {
                    let (end, fields) = is_own(&it.text)?;
                    (end == it.text.as_str().len()).then_some(fields)
                });
                match first {
                    Some(Fields::Members) => (Written::List(words[1..].to_vec()), true),
                    _ => (assignment.value.clone(), false),
                }
            }
            value => (value.clone(), assignment.is_append),
        }
    }

    /// The value of the variable of a hole, or nothing: then the hole has the reason.
    fn value(&mut self, run: &mut Run, nth: usize, step: &Step, number: u32) -> Option<Value> {
        let hole = self.holes.get(number as usize)?;
        let (name, span, fields) = (hole.variable.clone(), hole.span, hole.fields);
        if name.is_empty() {
            return self.given(&hole.default_of).map(given);
        }
        if self.bytes > MAX_BYTES {
            return None;
        }
        let (mut alternatives, mut default_of) = (Vec::new(), String::new());
        let is_single = matches!(fields, Fields::One | Fields::Split);
        let may_be_list = !is_single && run.variables.may_be_list(nth);
        let found = match run.variables.value(&name, nth, step) {
            Ok(Value::Word(_)) if may_be_list => Err(partly()),
            Ok(value) => expanded(value, fields, span.start, step.condition.is_some()),
            Err(unknown) => Err(unknown),
        };
        let splits = matches!(fields, Fields::Split | Fields::SplitMembers);
        let is_separated =
            run.variables.has_separators && fields != Fields::One && fields != Fields::Members;
        let found = match found {
            Ok(value) if splits && has_pattern(&value) || is_separated => {
                drop(value);
                Err(Unknown {
                    reason: Reason::Text("a shell splits or expands its value".to_owned()),
                    is_of_caller: false,
                })
            }
            found => found,
        };
        let found = match found {
            Ok(Value::Word(text)) if text.is_one_hole() => {
                let number = text.holes().next().map_or(0, |it| it.1);
                let inner = self.holes.get(number as usize).cloned().unwrap_or_default();
                alternatives = self.alternatives(run, number);
                default_of = inner.default_of;
                Err(Unknown {
                    reason: Reason::Text(inner.reason),
                    is_of_caller: inner.is_of_caller,
                })
            }
            found => found,
        };
        // The members of an array that are known stay.
        let is_open = match &found {
            Ok(Value::List(_)) => false,
            Ok(value) => self.is_of_itself(&name, value),
            Err(_) => true,
        };
        if is_open && let Some(text) = self.given(&name) {
            self.note_use(span, Ok(text.to_owned()));
            return Some(given(text));
        }
        match found {
            Ok(value) => {
                self.share(run, &name, &value);
                self.bytes += value.texts().iter().map(Text::bytes).sum::<usize>();
                self.note_use(span, Ok(shown(&value)));
                Some(value)
            }
            Err(Unknown {
                reason,
                is_of_caller,
            }) => {
                let reason = match (reason, self.reason) {
                    (Reason::At(at, what), _) => format!("line {} {what}", self.line(at)),
                    (Reason::Text(_), Some(reason)) if is_of_caller => reason.to_owned(),
                    (Reason::Text(text), _) => text,
                };
                self.note_use(span, Err(reason.clone()));
                let is_stable = run.variables.is_stable(&name);
                let is_of_caller = is_of_caller && self.reason.is_none();
                let hole = self.holes.get_mut(number as usize)?;
                (hole.alternatives, hole.default_of) = (alternatives, default_of);
                (hole.reason, hole.is_of_caller, hole.is_stable) =
                    (reason, is_of_caller, is_stable);
                None
            }
        }
    }

    /// True if the former value of the variable is a part of the value.
    fn is_of_itself(&self, name: &str, value: &Value) -> bool {
        let holes = value.texts().iter().flat_map(Text::holes);
        let mut holes = holes.filter_map(|it| self.holes.get(it.1 as usize));
        holes.any(|it| it.variable == name)
    }

    /// Text of a variable that is used more than once cannot change for one use alone.
    fn share(&mut self, run: &Run, name: &str, value: &Value) {
        if run.variables.all.get(name).is_some_and(|it| it.uses > 1) {
            self.shared.extend(value.texts().iter().map(Text::whole));
        }
    }

    /// A word where nothing is split: the value of an assignment.
    pub(super) fn scalar(&mut self, run: &mut Run, nth: usize, step: &Step, text: &Text) -> Text {
        let out = text.replacing(|out, range, number| {
            match self.value(run, nth, step, number) {
                Some(Value::Word(value)) => out.push_text(&value),
                Some(Value::List(list)) if !list.iter().any(Text::has_hole) => {
                    push_joined(out, &list, text.span(range));
                }
                _ => return false,
            }
            true
        });
        self.bytes += out.as_str().len();
        out
    }

    /// A value that is not split: a blank at the place of what a condition adds is a part of that.
    fn with_whole_additions(value: &Text) -> Text {
        let text = value.as_str();
        let mut out = Text::empty(value.whole().start);
        let mut at = 0;
        for (range, _) in value.holes() {
            let place = value.span(range.clone());
            let before = range.start.saturating_sub(1)..range.start;
            let after = range.end..text.len().min(range.end + 1);
            for blank in [before, after] {
                if text.get(blank.clone()) == Some(" ") && value.span(blank.clone()) == place {
                    out.push_part(value, at..blank.start.max(at));
                    at = at.max(blank.end);
                }
            }
        }
        out.push_part(value, at..text.len());
        out
    }

    /// True for a pattern of file names, and for a variable that holds one.
    fn is_pattern(&self, run: &mut Run, nth: usize, step: &Step, number: u32) -> bool {
        let Some(hole) = self.holes.get(number as usize) else {
            return false;
        };
        let is_split = matches!(hole.fields, Fields::Split | Fields::SplitMembers);
        let value = run.variables.value(&hole.variable, nth, step);
        // An unknown value may be one.
        let is_held = is_split && value.map_or(true, |it| has_pattern(it));
        hole.whole.starts_with(['*', '?', '[']) || is_held
    }

    /// The words that a word gives.
    pub(super) fn expand(
        &mut self,
        run: &mut Run,
        nth: usize,
        step: &Step,
        word: &Word,
    ) -> Vec<Text> {
        let text = &word.text;
        if !text.has_hole() {
            return vec![text.clone()];
        }
        let start = text.whole().start;
        let mut holes = text.holes();
        if run.drops_patterns && holes.any(|it| self.is_pattern(run, nth, step, it.1)) {
            // It is no word if no file fits.
            let mut hole = Hole::new(text.as_str(), text.whole(), "it is a pattern of file names");
            hole.fields = Fields::Split;
            return vec![Text::of_hole(hole, &mut self.holes)];
        }
        let mut fields = Splitting {
            words: Vec::new(),
            word: (word.bare != usize::MAX).then(|| Text::empty(start)),
        };
        let mut at = 0;
        for (range, number) in text.holes() {
            fields.push(text, at..range.start);
            at = range.end;
            let kind = self.holes.get(number as usize).map(|it| it.fields);
            match (self.value(run, nth, step, number), kind.unwrap_or_default()) {
                (Some(Value::Word(value)), Fields::Split | Fields::SplitMembers) => {
                    fields.split(&split_too(&value, &mut self.holes));
                }
                (Some(Value::Word(value)), _) => {
                    let value = Self::with_whole_additions(&value);
                    fields.push(&value, 0..value.as_str().len());
                }
                (Some(Value::List(list)), Fields::Members)
                    if text.as_str().len() > range.len() && list.iter().any(Text::has_hole) =>
                {
                    fields.push(text, range);
                }
                (Some(Value::List(list)), Fields::Members) => {
                    let is_alone = list.is_empty() && text.as_str().len() == range.len();
                    if is_alone {
                        fields.word = None;
                    }
                    fields.push_members(&list, start);
                }
                (Some(Value::List(list)), Fields::Joined) => {
                    let mut joined = Text::empty(start);
                    push_joined(&mut joined, &list, text.span(range));
                    fields.push(&joined, 0..joined.as_str().len());
                }
                (Some(Value::List(list)), _) => {
                    let members = list.iter().map(|it| split_too(it, &mut self.holes));
                    fields.split_members(&members.collect::<Vec<Text>>());
                }
                _ => fields.push(text, range),
            }
        }
        fields.push(text, at..text.as_str().len());
        fields.end();
        fields.words
    }
}

/// Adds text that may count: with what stands before it in the same block, if it is appended to that.
fn add_part(parts: &mut Vec<Part>, part: Part, is_append: bool) {
    /// Parts of blocks within the block, at most.
    const MAX_BETWEEN: usize = 16;
    let mut last = parts.iter_mut().rev().take(MAX_BETWEEN);
    let before = last.find(|it| is_append && it.block == part.block);
    match (before, &part.value) {
        (Some(before), Value::Word(_) | Value::List(_))
            if !matches!(before.value, Value::Unknown(_)) =>
        {
            let former = std::mem::replace(&mut before.value, Value::List(Vec::new()));
            before.value = appended(former, part.value);
        }
        _ => parts.push(part),
    }
}

/// A value whose unknown parts a shell splits, as it does the value.
pub(super) fn split_too(value: &Text, holes: &mut Vec<Hole>) -> Text {
    let mut value = value.clone();
    value.number_holes(&mut |number| {
        let Some(hole) = holes
            .get(number as usize)
            .filter(|it| it.fields == Fields::One)
        else {
            return number;
        };
        let fields = Fields::Split;
        let hole = Hole {
            fields,
            ..hole.clone()
        };
        push(holes, hole)
    });
    value
}

/// Words in the making.
#[derive(Default)]
pub(super) struct Splitting {
    pub(super) words: Vec<Text>,
    pub(super) word: Option<Text>,
}

impl Splitting {
    fn push(&mut self, text: &Text, range: std::ops::Range<usize>) {
        if !range.is_empty() {
            let start = text.span(range.clone()).start;
            self.word
                .get_or_insert_with(|| Text::empty(start))
                .push_part(text, range);
        }
    }

    /// Appends the members of an array, each as a word.
    fn push_members(&mut self, list: &[Text], start: usize) {
        for (nth, member) in list.iter().enumerate() {
            if nth > 0 {
                self.end();
            }
            self.push(member, 0..member.as_str().len());
            self.word.get_or_insert_with(|| Text::empty(start));
        }
    }

    /// Appends the members of an array, whose blanks separate words too.
    fn split_members(&mut self, list: &[Text]) {
        for (nth, member) in list.iter().enumerate() {
            if nth > 0 {
                self.end();
            }
            self.split(member);
        }
    }

    pub(super) fn end(&mut self) {
        self.words.extend(self.word.take());
    }

    /// Appends a value whose blanks separate words.
    pub(super) fn split(&mut self, value: &Text) {
        let text = value.as_str();
        let is_in_hole = |at: usize| value.hole_at(at).is_some();
        let mut start = 0;
        for (at, _) in text.match_indices([' ', '\t', '\n']) {
            if is_in_hole(at) {
                continue;
            }
            self.push(value, start..at);
            self.end();
            start = at + 1;
        }
        self.push(value, start..text.len());
    }
}

/// The reason for words of members of which one is unknown.
fn partly() -> Unknown {
    Unknown {
        reason: Reason::Text("a part of its value is unknown".to_owned()),
        is_of_caller: false,
    }
}

/// What a value gives where it is expanded: of an array, only the first member may count.
fn expanded(
    value: &Value,
    fields: Fields,
    start: usize,
    is_conditional: bool,
) -> Result<Value, Unknown> {
    let is_single = matches!(fields, Fields::One | Fields::Split);
    match value {
        Value::Word(text)
            if is_conditional && fields == Fields::One && text.as_str().is_empty() =>
        {
            Err(Unknown {
                reason: Reason::Text("it is empty, and a condition may ask for it".to_owned()),
                is_of_caller: false,
            })
        }
        Value::List(list) if is_single => match list.first() {
            // It may be several words or none.
            Some(first) if first.has_hole() => Err(partly()),
            Some(first) => Ok(Value::Word(first.clone())),
            None => Ok(Value::Word(Text::empty(start))),
        },
        Value::List(list) if fields == Fields::Joined && list.iter().any(Text::has_hole) => {
            Err(partly())
        }
        value => Ok(value.clone()),
    }
}

/// Appends the members of an array with blanks between, which stand for `place`.
fn push_joined(out: &mut Text, list: &[Text], place: Span) {
    for (nth, member) in list.iter().enumerate() {
        if nth > 0 {
            out.push_escape(" ", place);
        }
        out.push_text(member);
    }
}

/// A text as a value of the kind of another: an array of one member, or a word.
fn one_like(value: &Value, text: Text) -> Value {
    match value {
        Value::List(_) => Value::List(vec![text]),
        _ => Value::Word(text),
    }
}

/// Nothing, as a value of the kind of another.
fn empty_like(value: &Value) -> Value {
    match value {
        Value::List(_) => Value::List(Vec::new()),
        _ => Value::Word(Text::empty(0)),
    }
}

fn given(text: &str) -> Value {
    let mut word = Text::empty(0);
    word.push_escape(text, Span::empty(0));
    Value::Word(word)
}

/// Adds a hole, and returns its number.
pub(super) fn push(holes: &mut Vec<Hole>, hole: Hole) -> u32 {
    holes.push(hole);
    u32::try_from(holes.len() - 1).unwrap_or(u32::MAX)
}

/// The value that an assignment gives: text that is assigned to an array becomes its first member.
fn replaced(variable: &Variable, value: Value) -> Value {
    match (&variable.value, value) {
        (Some(Value::List(list)), Value::Word(text)) if !list.iter().any(Text::has_hole) => {
            let others = list.iter().skip(1).cloned();
            Value::List(std::iter::once(text).chain(others).collect())
        }
        (Some(_), Value::Word(_)) if variable.is_list => {
            Value::Unknown("text is assigned to an array".to_owned())
        }
        (_, value) => value,
    }
}

/// A value with another after it.
fn appended(former: Value, added: Value) -> Value {
    match (former, added) {
        (Value::Word(mut text), Value::Word(more)) => {
            text.push_text(&more);
            Value::Word(text)
        }
        (Value::List(mut list), Value::List(more)) => {
            list.extend(more);
            Value::List(list)
        }
        (Value::Word(first), Value::List(mut more)) => {
            more.insert(0, first);
            Value::List(more)
        }
        (Value::List(_), Value::Word(_)) => {
            Value::Unknown("text is appended to the first member of an array".to_owned())
        }
        (unknown @ Value::Unknown(_), _) => unknown,
        (_, unknown) => unknown,
    }
}

pub(super) fn value_span(value: &Value, at: usize) -> Span {
    match (value.texts().first(), value.texts().last()) {
        (Some(first), Some(last)) => {
            let (start, end) = (first.whole().start, last.whole().end);
            Span::new(start.min(end), end.max(start))
        }
        _ => Span::empty(at),
    }
}

/// True for a value that a shell may take for a pattern of file names, or whose words it splits in a way of its own.
fn has_pattern(value: &Value) -> bool {
    let mut texts = value.texts().iter();
    texts.any(|text| text.has_outside_holes(&['*', '?', '[']))
}

/// The text of a short value without a hole.
fn literal(value: &Value) -> Option<String> {
    let texts = value.texts();
    let is_list = !matches!(value, Value::Unknown(_)) && texts.len() <= 20;
    let is_known = is_list && !texts.iter().any(Text::has_hole);
    let texts: Vec<&str> = texts.iter().map(Text::as_str).collect();
    let text = texts.join(" ").trim().to_owned();
    (is_known && text.len() < 200).then_some(text)
}

/// The beginning of a value, for a reader.
fn shown(value: &Value) -> String {
    let cut = |text: &Text| text.as_str().chars().take(80).collect::<String>();
    let texts = value.texts().iter().take(20);
    texts.map(cut).collect::<Vec<_>>().join(" ")
}
