//! Text that a template engine fills in before a program reads it.
//!
//! A [`Template`] has a text that its reader understands: every byte has the same place as in the template, statements are
//! white space, and of alternatives there is one. A placeholder stays, without the characters that mean something to
//! the reader.

mod markup;
mod syntax;
mod token;

use std::sync::Arc;

use crate::Span;
use markup::Markup;
pub use syntax::{Engine, PlaceholderKind, Syntax};
use token::{Kind, statement, token, token_in_script};

/// Text that is filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    /// Its place.
    pub span: Span,
    /// What it stands for.
    pub position: PlaceholderKind,
    /// Its text in the template.
    pub name: String,
}

/// Alternatives, of which a condition chooses one, or text that is left out or repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branches {
    /// The first statement, which has the condition.
    pub condition: Span,
    /// The text of each alternative.
    pub alternatives: Vec<Span>,
    /// True if one of them is always taken.
    pub is_complete: bool,
}

/// A template.
#[derive(Clone, Debug)]
pub struct Template {
    /// Its engine.
    pub engine: Engine,
    /// Its placeholders, in the order of the text.
    pub placeholders: Vec<Placeholder>,
    /// Its alternatives and loops, the outer before the inner.
    pub choices: Vec<Branches>,
    /// All that the engine replaces, ascending and apart.
    tokens: Vec<Span>,
    syntax: Syntax,
    /// The text with all alternatives.
    whole: Arc<str>,
    /// The text to read.
    text: Arc<str>,
}

struct Token {
    span: Span,
    kind: Kind,
    engine: Engine,
    position: Option<PlaceholderKind>,
    is_text_of_metadata: bool,
}

impl Template {
    /// The template in a text; `None` if nothing is filled in. Values in `<metadata>` alone make none: oVirt writes
    /// `<jobs>{}</jobs>` there.
    ///
    /// ```
    /// use vmdisk_source::template::{Syntax, Template};
    /// let text = "{% if a %}\n<disk type='{{ kind }}'/>\n{% endif %}\n";
    /// let template = Template::of(text, Syntax::Xml).unwrap();
    /// assert_eq!(template.text().trim(), "<disk type='{{ kind }}'/>");
    /// assert_eq!(template.placeholders[0].name, "{{ kind }}");
    /// assert!(Template::of("<disk type='file'/>", Syntax::Xml).is_none());
    /// ```
    pub fn of(text: &str, syntax: Syntax) -> Option<Self> {
        let is_mark = |byte: u8| matches!(byte, b'{' | b'$' | b'%' | b'@' | b'[') || byte == b'#';
        // Nearly every text has no mark. Without an early end, the compiler compares many bytes at once.
        if !text.bytes().fold(false, |any, byte| any | is_mark(byte))
            && !text.contains("<?=")
            && !text.contains("<?php")
        {
            return None;
        }
        let tokens = tokens(text, syntax);
        let engine = tokens.iter().map(|token| token.engine).min()?;
        if tokens.iter().all(|token| token.is_text_of_metadata) {
            return None;
        }
        Some(Self::with_tokens(text, syntax, tokens, engine))
    }

    /// The template with further placeholders of values, which only their places show to be some.
    pub fn with_words(of: Option<&Self>, text: &str, words: &[Span]) -> Self {
        let mut template = of
            .cloned()
            .unwrap_or_else(|| Self::with_tokens(text, Syntax::Xml, Vec::new(), Engine::Word));
        for span in words {
            template.tokens.push(*span);
            template.placeholders.push(Placeholder {
                span: *span,
                position: PlaceholderKind::Value,
                name: span.slice(text).unwrap_or_default().to_owned(),
            });
        }
        template.tokens.sort_unstable();
        template.placeholders.sort_by_key(|it| it.span);
        template
    }

    fn with_tokens(text: &str, syntax: Syntax, tokens: Vec<Token>, engine: Engine) -> Self {
        let (choices, dropped) = choices(text, &tokens);
        let mut bytes = text.as_bytes().to_vec();
        let mut placeholders = Vec::new();
        for Token {
            span,
            kind,
            position,
            ..
        } in &tokens
        {
            let Some(position) = position.filter(|_| *kind == Kind::Value) else {
                blank(&mut bytes, *span, syntax);
                continue;
            };
            neutralize(&mut bytes, *span, position, syntax);
            if !dropped.iter().any(|it| it.overlaps(*span)) {
                placeholders.push(Placeholder {
                    span: *span,
                    position,
                    name: text[span.start..span.end].to_owned(),
                });
            }
        }
        for span in dropped {
            blank(&mut bytes, span, syntax);
        }
        if syntax == Syntax::Xml && !tokens.is_empty() {
            blank_prolog(&mut bytes, &mut placeholders);
        }
        let whole: Arc<str> = String::from_utf8(bytes).unwrap_or_default().into();
        let mut template = Template {
            engine,
            syntax,
            placeholders,
            choices,
            tokens: tokens.into_iter().map(|token| token.span).collect(),
            text: whole.clone(),
            whole,
        };
        template.text = template.choosing(&[]);
        template
    }

    /// The text to read, with the first of all alternatives.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text with these alternatives, each a choice and the number of its alternative (`None` for none of them), and
    /// with those around them; of all other choices, the first is taken.
    pub fn choosing(&self, chosen: &[(usize, Option<usize>)]) -> Arc<str> {
        let left_out = self.left_out(chosen);
        if left_out.is_empty() {
            return self.whole.clone();
        }
        let mut bytes = self.whole.as_bytes().to_vec();
        for span in left_out {
            blank(&mut bytes, span, self.syntax);
        }
        String::from_utf8(bytes).unwrap_or_default().into()
    }

    /// The template with these alternatives instead of the first ones.
    #[must_use]
    pub fn choose(&self, chosen: &[(usize, Option<usize>)]) -> Self {
        let text = self.choosing(chosen);
        Template {
            text,
            ..self.clone()
        }
    }

    /// The alternatives that are left out by [`choosing`](Self::choosing), ascending and apart.
    pub fn left_out(&self, chosen: &[(usize, Option<usize>)]) -> Vec<Span> {
        let mut out = Vec::new();
        for (nth, choice) in self.choices.iter().enumerate() {
            let own = chosen.iter().find(|(of, _)| *of == nth);
            let inner = |at: &usize| {
                let inner = chosen.iter().map(|(of, _)| self.choices[*of].condition);
                let place = choice.alternatives[*at];
                inner
                    .into_iter()
                    .any(|it| place.start <= it.start && it.end <= place.end)
            };
            let around = (0..choice.alternatives.len()).find(inner);
            let taken = match own {
                Some((_, alternative)) => *alternative,
                None => Some(around.unwrap_or(0)),
            };
            let spans = choice.alternatives.iter().enumerate();
            out.extend(
                spans
                    .filter(|(at, _)| Some(*at) != taken)
                    .map(|(_, span)| *span),
            );
        }
        join(out)
    }

    /// True if an edit of a span would touch anything that the engine replaces.
    pub fn touches(&self, span: Span) -> bool {
        let first = self.tokens.partition_point(|it| it.end < span.start);
        let token = self.tokens.get(first);
        token.is_some_and(|it| it.start <= span.end)
    }

    /// The placeholders within a span.
    pub fn placeholders_in(&self, span: Span) -> impl Iterator<Item = &Placeholder> {
        let first = self
            .placeholders
            .partition_point(|it| it.span.end < span.start);
        let near = self.placeholders[first..].iter();
        near.take_while(move |it| it.span.start <= span.end)
            .filter(move |it| it.span.overlaps(span))
    }

    /// The text that a reader has in place of a placeholder.
    pub fn read_as(&self, placeholder: &Placeholder) -> &str {
        placeholder.span.slice(&self.whole).unwrap_or_default()
    }
}

/// Sorts spans, and joins those that overlap.
fn join(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    spans.dedup_by(|span, before| {
        let overlaps = span.start <= before.end;
        if overlaps {
            before.end = before.end.max(span.end);
        }
        overlaps
    });
    spans
}

/// The tokens of a text. A statement in a value, and a condition around a part of one, are values.
fn tokens(text: &str, syntax: Syntax) -> Vec<Token> {
    let mut markup = Markup::new(syntax);
    let mut tokens: Vec<Token> = Vec::new();
    // The end of the tokens before the first command of a script.
    let mut head = Some(0);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(length) = markup.is_text().then(|| line_statement(text, at)).flatten() {
            let kind = statement(
                rest.trim_start_matches(['%', '#', ' ', '\t'])
                    .lines()
                    .next()
                    .unwrap_or_default(),
            );
            let span = Span::new(at, at + length);
            tokens.push(Token {
                span,
                kind,
                engine: Engine::Lines,
                position: None,
                is_text_of_metadata: false,
            });
            at += length;
            continue;
        }
        let token_at = match syntax {
            Syntax::Script => token_in_script,
            Syntax::Xml | Syntax::Yaml => token,
        };
        match markup
            .may_start(rest)
            .then(|| token_at(&text[..at], rest))
            .flatten()
        {
            Some((mut length, mut kind, engine)) => {
                if syntax == Syntax::Script
                    && let Some(line) = length_of_line(text, Span::new(at, at + length))
                {
                    let is_first = head.is_some_and(|head| is_without_code(&text[head..at]));
                    head = is_first.then_some(at + line);
                    // A value before the first command is a comment.
                    if is_first && kind == Kind::Value {
                        kind = Kind::Blank;
                    }
                    if kind != Kind::Value {
                        length = line;
                    }
                }
                let span = Span::new(at, at + length);
                let position = markup.position(text, span);
                // A value in a comment is nobody's.
                if position.is_some() || kind != Kind::Value {
                    tokens.push(Token {
                        span,
                        kind,
                        engine,
                        position,
                        is_text_of_metadata: kind == Kind::Value
                            && markup.is_text_of_metadata(span.slice(text).unwrap_or_default()),
                    });
                }
                at += length;
            }
            None => {
                at += markup.advance(rest);
            }
        }
    }
    join_conditions(text, syntax, &mut tokens);
    tokens
}

/// The length of a token with the end of its line, if nothing else is on the line: engines drop both.
fn length_of_line(text: &str, token: Span) -> Option<usize> {
    let before = text[..token.start].trim_end_matches([' ', '\t']);
    let after = &text[token.end..];
    let rest = after.trim_start_matches([' ', '\t', '\r']);
    let is_alone = (before.is_empty() || before.ends_with('\n'))
        && (rest.is_empty() || rest.starts_with('\n'));
    let end = rest.len().saturating_sub(1);
    is_alone.then_some(token.len() + after.len() - end)
}

/// True for empty lines and comments of a script.
fn is_without_code(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.all(|line| line.is_empty() || line.starts_with('#'))
}

/// The length of a line that is a statement: `% if a:`, `#if $a`.
fn line_statement(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let code = rest
        .strip_prefix('%')
        .or_else(|| rest.strip_prefix('#').filter(|it| !it.starts_with(' ')))?;
    let is_first = text[..at]
        .rsplit('\n')
        .next()
        .is_some_and(|it| it.trim().is_empty());
    let code = code.lines().next().unwrap_or_default();
    let is_code =
        is_first && (code.trim_start().starts_with("jinja2:") || statement(code) != Kind::Blank);
    let word = code
        .trim_start()
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default();
    let is_code = is_code || is_first && word == "set";
    is_code.then_some(code.len() + 1)
}

/// Bytes of a value with statements in it, at most.
const MAX_VALUE: usize = 10_000;

/// Joins the statements in one value, and what is between them, to one placeholder.
fn join_conditions(text: &str, syntax: Syntax, tokens: &mut Vec<Token>) {
    let mut joined: Vec<Token> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for token in tokens.drain(..) {
        let is_start = matches!(token.kind, Kind::Choose | Kind::Open);
        let is_end = token.kind == Kind::Close;
        joined.push(token);
        if is_start {
            open.push(joined.len() - 1);
        }
        let Some(first) = is_end.then(|| open.pop()).flatten() else {
            continue;
        };
        let Some(last) = joined.last().map(|it| it.span) else {
            continue;
        };
        let span = Span::new(joined[first].span.start, last.end);
        if span.len() > MAX_VALUE {
            continue;
        }
        let all: String = {
            let mut bytes = text.as_bytes()[span.start..span.end].to_vec();
            for token in &joined[first..] {
                let inner = Span::new(token.span.start - span.start, token.span.end - span.start);
                blank(&mut bytes, inner, syntax);
            }
            String::from_utf8(bytes).unwrap_or_default()
        };
        let has_value = joined[first..].iter().any(|it| it.kind == Kind::Value);
        let is_one = match syntax {
            Syntax::Xml => !all.contains(['<', '>']),
            Syntax::Yaml => !all.contains('\n'),
            Syntax::Script => {
                let before = text[..span.start].chars().next_back();
                let after = text[span.end..].chars().next();
                let is_end = |it: Option<char>| it.is_none_or(char::is_whitespace);
                let is_of_word = !is_end(before) || !is_end(after);
                let between = joined[first..].windows(2);
                let mut between = between.map(|pair| &text[pair[0].span.end..pair[1].span.start]);
                is_of_word && !between.any(|it| it.contains(char::is_whitespace))
            }
        };
        let is_text = is_one && (has_value || !all.trim().is_empty());
        let is_value = joined[first].position == Some(PlaceholderKind::Value);
        if is_value && is_text {
            joined.truncate(first + 1);
            joined[first].span = span;
            joined[first].kind = Kind::Value;
        }
    }
    *tokens = joined;
}

/// The choices of a text, the outer first, and text that definitions leave out.
fn choices(text: &str, tokens: &[Token]) -> (Vec<Branches>, Vec<Span>) {
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let (mut found, mut dropped) = (Vec::new(), Vec::new());
    for (nth, token) in tokens.iter().enumerate() {
        let mut own = open.iter_mut().rev();
        match token.kind {
            Kind::Choose | Kind::Open | Kind::Define => open.push((nth, Vec::new())),
            Kind::Else => {
                if let Some((_, marks)) =
                    own.find(|(first, _)| tokens[*first].engine.has_end_of(token.engine))
                {
                    marks.push(nth);
                }
            }
            Kind::Close => {
                let same = |(first, _): &(usize, Vec<usize>)| {
                    tokens[*first].engine.has_end_of(token.engine)
                };
                let Some(at) = open.iter().rposition(same) else {
                    continue;
                };
                let (first, marks) = open.remove(at);
                let bounds: Vec<usize> = [first].into_iter().chain(marks).chain([nth]).collect();
                let between = bounds.windows(2);
                let alternatives: Vec<Span> = between
                    .map(|pair| Span::new(tokens[pair[0]].span.end, tokens[pair[1]].span.start))
                    .collect();
                match tokens[first].kind {
                    Kind::Define => dropped.extend(alternatives),
                    Kind::Choose => found.push(choice(text, tokens, &bounds, alternatives)),
                    _ => {}
                }
            }
            Kind::Value | Kind::Blank => {}
        }
    }
    found.sort_by_key(|choice: &Branches| choice.condition);
    let has_rest =
        |span: &Span| text[..span.start].contains("<d") || text[span.end..].contains("<d");
    dropped.retain(has_rest);
    (found, dropped)
}

fn choice(text: &str, tokens: &[Token], bounds: &[usize], mut alternatives: Vec<Span>) -> Branches {
    let word = |nth: usize| {
        let span = tokens[nth].span;
        let text = &text[span.start..span.end];
        text.trim_matches(|c: char| !c.is_alphanumeric()).to_owned()
    };
    let last = bounds[bounds.len() - 2];
    let is_complete = bounds.len() > 2 && word(last) == "else";
    // Nothing is between a `case` and its first `when`.
    if word(bounds[0]).starts_with("case") && alternatives.len() > 1 {
        alternatives.remove(0);
    }
    Branches {
        condition: tokens[bounds[0]].span,
        alternatives,
        is_complete,
    }
}

/// Replaces a span by blanks; line ends stay, other than those of a script: they would end a command.
fn blank(bytes: &mut [u8], span: Span, syntax: Syntax) {
    let own = bytes[span.start..span.end].iter_mut();
    own.filter(|byte| syntax == Syntax::Script || !matches!(byte, b'\n' | b'\r'))
        .for_each(|byte| *byte = b' ');
}

/// Replaces the characters of a placeholder that mean something to the reader.
fn neutralize(bytes: &mut [u8], span: Span, position: PlaceholderKind, syntax: Syntax) {
    let own = &mut bytes[span.start..span.end];
    let is_name = position == PlaceholderKind::Name || syntax != Syntax::Xml;
    match position {
        PlaceholderKind::Attributes => return blank(bytes, span, syntax),
        PlaceholderKind::Name | PlaceholderKind::Value | PlaceholderKind::Unquoted => {}
    }
    for byte in own.iter_mut() {
        *byte = match *byte {
            b'.' if syntax == Syntax::Script => b'.',
            other if is_name && !other.is_ascii_alphanumeric() => b'_',
            b'<' => b'(',
            b'>' => b')',
            b'&' => b'+',
            b'\'' | b'"' => b'`',
            b'\n' | b'\r' => b' ',
            other => other,
        };
    }
    match (own, position) {
        ([first, .., last], PlaceholderKind::Unquoted) => (*first, *last) = (b'\'', b'\''),
        ([first, ..], PlaceholderKind::Name) => *first = b'x',
        // The reader of scripts knows it by its braces.
        ([one, two, .., three, four], _) if syntax == Syntax::Script => {
            (*one, *two, *three, *four) = (b'{', b'{', b'}', b'}');
        }
        _ => {}
    }
}

/// Blanks the placeholders, lines of comments and the XML declaration in front of the root element of a template, and the
/// placeholders behind it: nothing but white space may be there.
fn blank_prolog(bytes: &mut [u8], placeholders: &mut Vec<Placeholder>) {
    let is_root = |pair: &[u8]| pair[0] == b'<' && pair[1].is_ascii_alphabetic();
    let first = bytes.windows(2).position(is_root).unwrap_or(0);
    let last = bytes
        .iter()
        .rposition(|byte| *byte == b'>')
        .unwrap_or(bytes.len());
    placeholders.retain(|it| {
        let is_inside = first <= it.span.start && it.span.start < last;
        if !is_inside {
            blank(bytes, it.span, Syntax::Xml);
        }
        is_inside
    });
    let prolog = String::from_utf8_lossy(&bytes[..first]).into_owned();
    let declared = prolog.find("<?xml");
    if let Some(start) = declared.filter(|start| *start > 0)
        && let Some(length) = prolog[start..].find("?>")
    {
        blank(bytes, Span::new(start, start + length + 2), Syntax::Xml);
    }
    let mut at = 0;
    for line in prolog.split_inclusive('\n') {
        if line.starts_with(['#', '%']) || line.trim_end() == "---" {
            blank(bytes, Span::new(at, at + line.len()), Syntax::Xml);
        }
        at += line.len();
    }
}
