//! Comments in which the author of a file allows findings of some rules, for a reason.

use crate::Span;

/// A place where the author of a file allows findings of some rules, for a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Names of the rules, each with its place.
    pub rules: Vec<(String, Span)>,
    /// The reason, if one was given.
    pub reason: Option<String>,
    /// Where the allowance itself is written.
    pub span: Span,
    /// The text it covers: a finding whose place lies within is allowed.
    pub covers: Span,
}

impl Allowance {
    /// True if it covers a place.
    pub const fn covers(&self, span: Span) -> bool {
        self.covers.start <= span.start && span.end <= self.covers.end
    }

    /// Reads `vmdisk: allow(rule, …) reason` from the inside of a comment; `None` if the comment is not for vmdisk.
    ///
    /// The allowance covers the whole text. If it is not understood, it names no rules and covers only itself.
    ///
    /// ```
    /// use vmdisk_source::{Allowance, Span};
    ///
    /// let text = "cache: unsafe # vmdisk: allow(cache-unsafe) scratch data";
    /// let allowance = Allowance::in_comment(text, Span::new(14, 56), Span::new(15, 56)).expect("it is for vmdisk");
    /// assert_eq!(allowance.rules, [("cache-unsafe".to_owned(), Span::new(30, 42))]);
    /// assert_eq!(allowance.reason.as_deref(), Some("scratch data"));
    /// ```
    pub fn in_comment(text: &str, comment: Span, inside: Span) -> Option<Self> {
        let body = inside.slice(text)?.trim_start();
        let body = body.strip_prefix("vmdisk:")?.trim_start();
        let parsed = body
            .strip_prefix("allow")
            .map(str::trim_start)
            .and_then(|rest| rest.strip_prefix('('))
            .and_then(|rest| rest.split_once(')'));
        let rules = parsed.map(|(list, _)| Self::rules_in(text, list));
        Some(match (parsed, rules.filter(|rules| !rules.is_empty())) {
            (Some((_, reason)), Some(rules)) => Allowance {
                rules,
                reason: Self::reason_in(reason),
                span: comment,
                covers: Span::new(0, text.len()),
            },
            _ => Allowance {
                rules: Vec::new(),
                reason: None,
                span: comment,
                covers: comment,
            },
        })
    }

    /// The allowances in comments of a script, which begin with `#`. A comment on a line of its own covers the lines after it,
    /// up to an empty one; after something, it covers what is before it on its line.
    ///
    /// ```
    /// use vmdisk_source::Allowance;
    ///
    /// let text = "# vmdisk: allow(cache-unsafe) scratch data\nqemu-system-x86_64 \\\n  -hda a\n\nreboot\n";
    /// let [allowance] = Allowance::in_lines(text).try_into().expect("it is for vmdisk");
    /// assert_eq!(allowance.covers.slice(text), Some("qemu-system-x86_64 \\\n  -hda a\n"));
    /// ```
    pub fn in_lines(text: &str) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        // The number of those that lines after them belong to.
        let mut growing = 0;
        let end_all = |found: &mut [Self], growing: &mut usize, end: usize| {
            let first = found.len() - std::mem::take(growing);
            let alone = found[first..]
                .iter_mut()
                .filter(|it| it.covers.start > it.span.end);
            alone.for_each(|it| it.covers.end = end);
        };
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.len();
            if line.trim().is_empty() {
                end_all(&mut found, &mut growing, start);
            }
            if let Some(mut allowance) = Self::in_line(text, Span::new(start, end)) {
                let before = Span::new(start, allowance.span.start);
                allowance.covers = match before.slice(text).is_none_or(|it| it.trim().is_empty()) {
                    _ if allowance.rules.is_empty() => allowance.span,
                    true => Span::empty(end),
                    false => before,
                };
                found.push(allowance);
                growing += 1;
            }
            start = end;
        }
        end_all(&mut found, &mut growing, text.len());
        found
    }

    /// The allowance in the comment at the end of a line.
    fn in_line(text: &str, line: Span) -> Option<Self> {
        let written = line.slice(text)?;
        let mut starts = written.match_indices('#').map(|(at, _)| at);
        starts.find_map(|at| {
            let is_word = at > 0 && !written[..at].ends_with(char::is_whitespace);
            let comment = Span::new(line.start + at, line.start + written.trim_end().len());
            let inside = Span::new(comment.start + 1, comment.end);
            Self::in_comment(text, comment, inside).filter(|_| !is_word)
        })
    }

    /// Names of rules between commas or blanks, each with its place; `list` is a part of `text`.
    pub fn rules_in(text: &str, list: &str) -> Vec<(String, Span)> {
        list.split(|c: char| c == ',' || c.is_whitespace())
            .filter(|name| !name.is_empty())
            .map(|name| {
                let start = name.as_ptr() as usize - text.as_ptr() as usize;
                (name.to_owned(), Span::new(start, start + name.len()))
            })
            .collect()
    }

    /// A reason on one line; `None` if there is none.
    pub fn reason_in(text: &str) -> Option<String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Some(words.join(" ")).filter(|reason| !reason.is_empty())
    }
}
