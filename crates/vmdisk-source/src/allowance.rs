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
