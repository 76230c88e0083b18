//! The number of lines of a file that have code.
//!
//! A line is what rustfmt makes of it: more than a hundred columns of code, or several statements beside each other, as the
//! body of a macro can have them, are several lines. The length of a string does not count.

use std::collections::BTreeMap;

use anyhow::anyhow;
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

const WIDTH: usize = 100;

/// Lines with code: of the product, and of `#[cfg(test)]`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) code: usize,
    pub(super) tests: usize,
}

/// Counts the lines of a Rust file.
pub(super) fn rust(text: &str) -> anyhow::Result<Counted> {
    let tokens: TokenStream = text.parse().map_err(|error| anyhow!("{error}"))?;
    let mut lines = Lines::default();
    lines.walk(tokens, Delimiter::Brace, false);
    Ok(Counted {
        code: lines.code.values().map(Line::count).sum(),
        tests: lines.tests.values().map(Line::count).sum(),
    })
}

/// Counts the lines of a file in another language.
pub(super) fn script(text: &str) -> usize {
    let lines = text.lines().map(str::trim);
    let is_comment = |line: &str| {
        ["#", "//", "--", "*", "/*"]
            .iter()
            .any(|mark| line.starts_with(mark))
    };
    let code = lines.filter(|line| !line.is_empty() && !is_comment(line));
    code.map(|line| line.chars().count().div_ceil(WIDTH)).sum()
}

#[derive(Default)]
struct Line {
    columns: usize,
    statements: usize,
}

impl Line {
    fn count(&self) -> usize {
        self.columns.div_ceil(WIDTH).max(1 + self.statements)
    }
}

#[derive(Default)]
struct Lines {
    code: BTreeMap<usize, Line>,
    tests: BTreeMap<usize, Line>,
}

impl Lines {
    fn walk(&mut self, tokens: TokenStream, inside: Delimiter, is_test: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if let Some(length) = comment(&tokens[at..]) {
                at += length;
                continue;
            }
            let test = if is_test {
                0
            } else {
                item_of_tests(&tokens[at..])
            };
            if test > 0 {
                let item = tokens[at..at + test].iter().cloned().collect();
                self.walk(item, inside, true);
                at += test;
                continue;
            }
            self.token(&tokens[at], is_test);
            if inside == Delimiter::Brace
                && is_punctuation(&tokens[at], ';')
                && let Some(next) = tokens.get(at + 1)
                && comment(&tokens[at + 1..]).is_none()
                && next.span().start().line == tokens[at].span().start().line
            {
                self.line(next.span().start().line, is_test).statements += 1;
            }
            at += 1;
        }
    }

    fn token(&mut self, token: &TokenTree, is_test: bool) {
        match token {
            TokenTree::Group(group) => {
                if group.delimiter() != Delimiter::None {
                    self.columns(group.span_open(), 1, is_test);
                }
                self.walk(group.stream(), group.delimiter(), is_test);
                if group.delimiter() != Delimiter::None {
                    self.columns(group.span_close(), 1, is_test);
                }
            }
            TokenTree::Literal(literal) if literal.to_string().contains('"') => {
                self.string(literal.span(), is_test)
            }
            _ => self.columns(token.span(), token.to_string().chars().count() + 1, is_test),
        }
    }

    /// A string is on each of its lines.
    fn string(&mut self, span: Span, is_test: bool) {
        for line in span.start().line..=span.end().line {
            self.line(line, is_test).columns += 2;
        }
    }

    fn columns(&mut self, span: Span, columns: usize, is_test: bool) {
        self.line(span.start().line, is_test).columns += columns;
    }

    fn line(&mut self, line: usize, is_test: bool) -> &mut Line {
        let lines = if is_test {
            &mut self.tests
        } else {
            &mut self.code
        };
        lines.entry(line).or_default()
    }
}

/// The number of tokens of a documentation comment.
fn comment(tokens: &[TokenTree]) -> Option<usize> {
    let (length, words) = attribute(tokens)?;
    let is_value = words.get(1).is_some_and(|token| is_punctuation(token, '='));
    (is_word(words.first(), "doc") && is_value).then_some(length)
}

/// The number of tokens of an item, member or arm that `#[cfg(test)]` stands before; 0 if there is none.
fn item_of_tests(tokens: &[TokenTree]) -> usize {
    let Some((mut length, words)) = attribute(tokens) else {
        return 0;
    };
    let is_test = is_word(words.first(), "cfg")
        && matches!(words.get(1), Some(TokenTree::Group(group)) if asks_for_test(&group.stream()));
    if !is_test {
        return 0;
    }
    while let Some((more, _)) = attribute(&tokens[length..]) {
        length += more;
    }
    let rest = &tokens[length..];
    let word = rest.iter().find_map(|token| match token {
        TokenTree::Ident(word) if word != "pub" => Some(word.to_string()),
        _ => None,
    });
    let ends = |token: &TokenTree| {
        let is_block =
            matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        let is_semicolon = is_punctuation(token, ';');
        match word.as_deref() {
            Some("use" | "const" | "static" | "let" | "type") => is_semicolon,
            Some(
                "fn" | "mod" | "impl" | "struct" | "enum" | "trait" | "unsafe" | "extern"
                | "macro_rules",
            ) => is_semicolon || is_block,
            _ => is_semicolon || is_punctuation(token, ','),
        }
    };
    let end = rest.iter().position(ends).map_or(rest.len(), |at| at + 1);
    length + end
}

/// `test`, or `all` of it and more.
fn asks_for_test(condition: &TokenStream) -> bool {
    let mut words = condition.clone().into_iter();
    let Some(TokenTree::Ident(first)) = words.next() else {
        return false;
    };
    match words.next() {
        None => first == "test",
        Some(TokenTree::Group(group)) if first == "all" => {
            let mut all = group.stream().into_iter();
            all.any(|token| is_word(Some(&token), "test"))
        }
        Some(_) => false,
    }
}

/// The length of an attribute, and what stands in its brackets.
fn attribute(tokens: &[TokenTree]) -> Option<(usize, Vec<TokenTree>)> {
    if !is_punctuation(tokens.first()?, '#') {
        return None;
    }
    let before = 1 + usize::from(is_punctuation(tokens.get(1)?, '!'));
    match tokens.get(before)? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            Some((before + 1, group.stream().into_iter().collect()))
        }
        _ => None,
    }
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == word)
}

fn is_punctuation(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punctuation) if punctuation.as_char() == sign)
}

#[cfg(test)]
mod tests {
    use super::{Counted, rust, script};

    #[test]
    fn comments_and_blank_lines_do_not_count_and_tests_count_apart() {
        let text = "\
//! A file.

use std::fs; // counts

/// A function.
fn counts() {
    // Not this.
    one();
}

#[cfg(test)]
mod tests;

#[cfg(test)]
#[expect(dead_code)]
fn helper<A, B>(a: A, b: B) {
    one();
}

impl Counts {
    #[cfg(test)]
    fn helper() {
        one();
    }
    const TWO: u8 = 2;
    #[cfg(not(test))]
    fn real() {}
}
#[cfg(all(test, unix))]
use one::{
    two,
};
";
        assert_eq!(rust(text).unwrap(), Counted { code: 9, tests: 15 });
    }

    /// Code that a macro or a long line holds is code.
    #[test]
    fn nothing_is_saved_by_lines_that_rustfmt_does_not_write() {
        let code = |text: &str| rust(text).unwrap().code;
        assert_eq!(code("make! { one(); two(); three(); }"), 3);
        assert_eq!(code("make! { const A: [u8; 4] = [0; 4]; }"), 1);
        assert_eq!(code(&format!("make! {{ {} }}", "word ".repeat(45))), 3);
        assert_eq!(
            code(&format!("const A: &str = \"{}\";", "word ".repeat(45))),
            1
        );
        assert_eq!(code("const A: &str = \"one\ntwo\";"), 2);
        assert_eq!(code("fn a() {\n} /* and\n more */"), 2);
    }

    #[test]
    fn a_line_of_a_script_is_not_a_comment() {
        assert_eq!(script("#!/bin/sh\n\n# Says it.\necho it\n"), 1);
        assert_eq!(script(&"echo ".repeat(41)), 3);
    }
}
