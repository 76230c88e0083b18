//! The words that a shell makes of braces: `d{1..3}`, `{a,b}.img`.

use std::ops::Range;

use super::text::Text;

/// Maximum number of words from one word. A word with more stays unchanged.
const MAX_WORDS: usize = 1000;

/// The alternatives in braces: parts of the text, or the members of a sequence.
enum Members {
    Parts(Vec<Range<usize>>),
    Sequence(Vec<String>),
}

/// True if a shell may make several words of the braces in a text.
pub(super) fn may_have_braces(text: &str) -> bool {
    let mut found = text.match_indices('{');
    found.any(|(at, _)| !text[..at].ends_with('$') && members(text, at).is_some())
}

/// The words that a word stands for, with the quotes of each; `None` if it has no such braces.
pub(super) fn expand(word: &Text) -> Option<Vec<Text>> {
    let mut done = Vec::new();
    // The last of these is next.
    let mut open = vec![word.clone()];
    while let Some(word) = open.pop() {
        let Some((braces, members)) = first(word.as_str()) else {
            done.push(word);
            continue;
        };
        let with = |middle: &dyn Fn(&mut Text)| {
            let mut all = word.part(0..braces.start);
            middle(&mut all);
            all.push_part(&word, braces.end..word.as_str().len());
            all
        };
        let place = word.span(braces.clone());
        let words: Vec<Text> = match members {
            Members::Parts(parts) => parts
                .into_iter()
                .map(|part| with(&|all| all.push_part(&word, part.clone())))
                .collect(),
            Members::Sequence(members) => members
                .iter()
                .map(|member| with(&|all| all.push_escape(member, place)))
                .collect(),
        };
        if done.len() + open.len() + words.len() > MAX_WORDS {
            return None;
        }
        open.extend(words.into_iter().rev());
    }
    (done.len() > 1).then_some(done)
}

/// The first braces of a word that have alternatives.
fn first(text: &str) -> Option<(Range<usize>, Members)> {
    let mut at = 0;
    while let Some(next) = next(text, at) {
        if text.as_bytes()[at] == b'{'
            && let Some((end, members)) = members(text, at)
        {
            return Some((at..end, members));
        }
        at = next;
    }
    None
}

/// The end of the braces that open here, and what stands for them.
///
/// A JSON object, which somebody copied from a list of processes without its quotes, does not.
fn members(text: &str, open: usize) -> Option<(usize, Members)> {
    if text[open + 1..].starts_with('"') && text[open..].contains("\":") {
        return None;
    }
    let (mut at, mut depth) = (open + 1, 0_usize);
    let mut parts = Vec::new();
    let mut start = at;
    while let Some(next) = next(text, at) {
        match text.as_bytes()[at] {
            b' ' | b'\t' | b'\n' => return None,
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b'}' if parts.is_empty() => {
                let members = sequence(&text[start..at])?;
                return Some((next, Members::Sequence(members)));
            }
            b'}' => {
                parts.push(start..at);
                return Some((next, Members::Parts(parts)));
            }
            b',' if depth == 0 => {
                parts.push(start..at);
                start = next;
            }
            _ => {}
        }
        at = next;
    }
    None
}

/// The end of the character here, or of the quoted text or the expansion that begins here.
fn next(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let letter = rest.chars().next()?;
    let closing = |close: char| {
        let length = rest[1..].find(close);
        at + length.map_or(rest.len(), |length| length + 2)
    };
    let nested = |open: u8, close: u8| {
        let mut depth = 0_usize;
        let ends = |byte: u8| {
            depth = match byte {
                _ if byte == open => depth + 1,
                _ if byte == close => depth - 1,
                _ => depth,
            };
            depth == 0
        };
        let length = rest[1..].bytes().position(ends);
        at + length.map_or(rest.len(), |length| length + 2)
    };
    Some(match letter {
        '\\' => at + 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        '"' => {
            let mut is_escaped = true;
            let ends = |byte: u8| {
                let ends = byte == b'"' && !is_escaped;
                is_escaped = byte == b'\\' && !is_escaped;
                ends
            };
            at + rest
                .bytes()
                .position(ends)
                .map_or(rest.len(), |end| end + 1)
        }
        '\'' | '`' => closing(letter),
        '$' if rest.starts_with("${") => nested(b'{', b'}'),
        '$' if rest.starts_with("$(") => nested(b'(', b')'),
        _ => at + letter.len_utf8(),
    })
}

/// The members of `a..e`, `1..9` and `01..20..2`.
fn sequence(text: &str) -> Option<Vec<String>> {
    let parts: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, 1),
        [first, last, step] => (first, last, step.parse::<i64>().ok()?.abs().max(1)),
        _ => return None,
    };
    let letter = |text: &str| {
        let mut letters = text.chars();
        let letter = letters.next().filter(char::is_ascii_alphabetic);
        letter.filter(|_| letters.next().is_none())
    };
    let is_padded = |text: &str| {
        let digits = text.trim_start_matches('-');
        digits.len() > 1 && digits.starts_with('0')
    };
    let (start, end, is_letters) = match (letter(first), letter(last)) {
        (Some(first), Some(last)) => (i64::from(first as u32), i64::from(last as u32), true),
        _ => (first.parse().ok()?, last.parse().ok()?, false),
    };
    let width = match is_padded(first) || is_padded(last) {
        true => first.len().max(last.len()),
        false => 0,
    };
    let count = usize::try_from(end.abs_diff(start) / step.unsigned_abs()).ok()? + 1;
    let step = if end < start { -step } else { step };
    let members = (0..count).map(|nth| {
        let number = start + step * i64::try_from(nth).unwrap_or_default();
        match u8::try_from(number) {
            Ok(code) if is_letters => char::from(code).to_string(),
            _ => format!("{number:0width$}"),
        }
    });
    (count <= MAX_WORDS).then(|| members.collect())
}
