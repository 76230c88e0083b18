//! The tokens of template engines.

use super::syntax::Engine;

/// The meaning of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A value that is filled in.
    Value,
    /// A comment, or a statement without text.
    Blank,
    /// The start of alternatives or of a loop.
    Choose,
    /// The start of text that is always there.
    Open,
    /// The start of a definition, whose text is used elsewhere.
    Define,
    /// The next alternative.
    Else,
    /// The end of what a start opened.
    Close,
}

/// Names, expressions and statements are at most so long.
const MAX_TOKEN: usize = 2000;

/// The token at the start of `rest`, with its length; `before` is the text in front of it.
pub(super) fn token(before: &str, rest: &str) -> Option<(usize, Kind, Engine)> {
    let bytes = rest.as_bytes();
    let second = bytes.get(1).copied().unwrap_or_default();
    let after = before.as_bytes().last().copied().unwrap_or_default();
    match (bytes.first()?, second) {
        (b'{', b'{') => {
            let end = if rest.starts_with("{{{") { "}}}" } else { "}}" };
            let code = within(rest, "{{", end)?;
            let (kind, engine) = expression(code.trim_matches('{'));
            Some((code.len() + 2 + end.len(), kind, engine))
        }
        (b'{', b'%') => {
            let code = within(rest, "{%", "%}")?;
            Some((code.len() + 4, statement(code), Engine::Jinja))
        }
        (b'{', b'#') => {
            let code = within(rest, "{#", "#}")?;
            Some((code.len() + 4, Kind::Blank, Engine::Jinja))
        }
        (b'[', b'[') if after != b'[' => {
            let code = within(rest, "[[", "]]").filter(|code| !code.contains(['\n', '<']))?;
            let is_code =
                code.starts_with([' ', '.', '-']) && !rest[code.len() + 4..].starts_with('>');
            is_code.then(|| (code.len() + 4, expression(code).0, Engine::Go))
        }
        (b'<', b'%') => {
            let code = within(rest, "<%", "%>")?;
            let kind = match bytes.get(2) {
                Some(b'#' | b'!' | b'@') => Kind::Blank,
                Some(b'=') => Kind::Value,
                _ if code.trim_start_matches('-').starts_with('=') => Kind::Value,
                _ => statement(code),
            };
            Some((code.len() + 4, kind, Engine::Erb))
        }
        (b'<', b'?') if rest.starts_with("<?=") || rest.starts_with("<?php") => {
            let code = within(rest, "<?", "?>")?;
            let kind = match code.strip_prefix("php") {
                Some(code) if code.trim_start().starts_with("echo") => Kind::Value,
                Some(code) => statement(code),
                None => Kind::Value,
            };
            Some((code.len() + 4, kind, Engine::Php))
        }
        _ => variable(before, rest),
    }
}

/// As [`token`], in text whose own language has variables, braces and redirections.
pub(super) fn token_in_script(before: &str, rest: &str) -> Option<(usize, Kind, Engine)> {
    let is_spaced = |byte: &u8| b" -+=".contains(byte);
    let is_template = !before.ends_with('$')
        && match rest.as_bytes() {
            // `{{a,b},c}` is of the shell.
            [b'{', b'{', next, ..] => {
                let code = within(rest, "{{", "}}")?;
                !code.contains('\n') && (is_spaced(next) || !code.contains([',', '"', '\'']))
            }
            [b'{', b'%' | b'#', next, ..] | [b'<', b'%', next, ..] => is_spaced(next),
            _ => false,
        };
    let found = is_template.then(|| token(before, rest)).flatten();
    // The reader sees `{{…}}`.
    found.filter(|(length, ..)| *length > 4)
}

/// A variable, or a place of a format.
fn variable(before: &str, rest: &str) -> Option<(usize, Kind, Engine)> {
    let bytes = rest.as_bytes();
    let second = bytes.get(1).copied().unwrap_or_default();
    let after = before.as_bytes().last().copied().unwrap_or_default();
    match (bytes.first()?, second) {
        (b'$', b'{') => Some((braces(&rest[1..])? + 1, Kind::Value, Engine::Variables)),
        (b'$', b'(') => {
            let name = within(rest, "$(", ")").filter(|name| !name.contains(['\n', '<', '(']))?;
            Some((name.len() + 3, Kind::Value, Engine::Variables))
        }
        (b'$', byte) if is_start(byte) => {
            Some((1 + name_length(&rest[1..]), Kind::Value, Engine::Variables))
        }
        (b'#', b'{') => Some((braces(&rest[1..])? + 1, Kind::Value, Engine::Erb)),
        (b'%', b'{') => {
            let length = braces(&rest[1..])? + 1;
            let code = &rest[2..length - 1];
            let kind = statement(code);
            let is_name = kind == Kind::Blank && name_length(code) == code.len();
            let kind = if is_name { Kind::Value } else { kind };
            Some((length, kind, Engine::Terraform))
        }
        (b'%', b'(') => {
            let name = within(rest, "%(", ")").filter(|name| !name.contains(['\n', '<']))?;
            let length = name.len() + 3;
            let is_conversion = bytes.get(length)?.is_ascii_alphanumeric();
            is_conversion.then_some((length + 1, Kind::Value, Engine::Format))
        }
        (b'%', _) => percent(after, rest).map(|length| (length, Kind::Value, Engine::Format)),
        (b'@', _) if !after.is_ascii_alphanumeric() => {
            let marks = rest.len() - rest.trim_start_matches('@').len();
            let name = &rest[marks.min(2)..];
            let length = dotted_length(name);
            let is_closed = length > 0 && is_start(name.as_bytes()[0]);
            let is_closed = is_closed && name[length..].starts_with(&"@@"[..marks.min(2)]);
            is_closed.then(|| (length + 2 * marks.min(2), Kind::Value, Engine::Configure))
        }
        (b'{', byte) if byte == b'}' || is_start(byte) || byte.is_ascii_digit() => {
            let length = braces(rest)?;
            let code = &rest[1..length - 1];
            let is_code = |c: char| c.is_ascii_alphanumeric() || "_.[]()+-*/ !:,'>".contains(c);
            let dashes = code.matches('-').count();
            // A JSON object is after a colon, and a UUID has four dashes.
            let is_other = dashes > 3 || b":,\"\\".contains(&after) || length > 80;
            let is_value = !is_other && code.chars().all(is_code);
            is_value.then_some((length, Kind::Value, Engine::Format))
        }
        _ => None,
    }
}

/// The text between two marks.
fn within<'t>(rest: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let inner = rest.strip_prefix(open)?;
    let mut most = inner.len().min(MAX_TOKEN + close.len());
    while !inner.is_char_boundary(most) {
        most -= 1;
    }
    inner[..most].find(close).map(|length| &inner[..length])
}

/// The length of `{…}` with its braces.
fn braces(rest: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in rest.bytes().enumerate().take(MAX_TOKEN) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

fn is_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn name_length(text: &str) -> usize {
    let is_in = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.bytes().take_while(is_in).count()
}

fn dotted_length(text: &str) -> usize {
    let is_in = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
    text.bytes().take_while(is_in).count()
}

/// The length of `%s`, `%02d`, `%1$lu` or `%NAME%`. The kernel fills in `vnet%d`, and `%2f` is a byte of a URL.
fn percent(after: u8, rest: &str) -> Option<usize> {
    let name = name_length(&rest[1..]);
    if name > 1 && is_start(rest.as_bytes()[1]) && rest[1 + name..].starts_with('%') {
        return Some(name + 2);
    }
    let flags = rest[1..].trim_start_matches(|c: char| c.is_ascii_digit() || ".$-+".contains(c));
    let sized = flags.trim_start_matches(['l', 'h', 'z', 'j']);
    let is_conversion = sized.starts_with(['s', 'd', 'i', 'u', 'c', 'x', 'X', 'f', 'r']);
    let next = sized.as_bytes().get(1).copied().unwrap_or_default();
    let is_byte = rest.as_bytes().get(1..3)?.iter().all(u8::is_ascii_hexdigit);
    let is_interface = after == b't' && sized.starts_with('d');
    let is_value = is_conversion && !is_byte && !is_interface && after != b'%';
    (is_value && !matches!(next, b'a'..=b'f')).then(|| rest.len() - sized.len() + 1)
}

/// The meaning of `{{ … }}`, which is a statement in Go and Mustache.
fn expression(code: &str) -> (Kind, Engine) {
    let code = code.trim_matches(|c: char| c.is_whitespace() || "-~".contains(c));
    let word = &code[..name_length(code)];
    let rest = code[word.len()..].trim_start();
    let is_alone = rest.is_empty();
    let kind = match code.as_bytes().first() {
        Some(b'/') if !code.starts_with("/*") => return (Kind::Close, Engine::Mustache),
        Some(b'/' | b'!') => Kind::Blank,
        Some(b'#' | b'^') => return (Kind::Choose, Engine::Mustache),
        Some(b'$') if code.contains(":=") => Kind::Blank,
        Some(b'.' | b'$') => Kind::Value,
        _ => match word {
            "if" | "range" | "with" if !is_alone => Kind::Choose,
            "define" if rest.starts_with('"') => Kind::Define,
            "block" if rest.starts_with('"') => Kind::Open,
            "else" if is_alone || rest.starts_with("if ") => Kind::Else,
            "end" if is_alone => Kind::Close,
            "include" | "template" if rest.starts_with('"') => Kind::Value,
            _ => return (Kind::Value, Engine::Jinja),
        },
    };
    (kind, Engine::Go)
}

/// The meaning of a statement.
pub(super) fn statement(code: &str) -> Kind {
    let code = code.trim_matches(|c: char| c.is_whitespace() || "-+~".contains(c));
    let word = &code[..name_length(code)];
    let is_block = || {
        let opens = code.ends_with(['{', ':']) || code.ends_with(" do");
        opens || code.ends_with('|') && (code.contains(" do |") || code.contains("{ |"))
    };
    match word {
        "if" | "unless" | "for" | "foreach" | "while" | "with" | "case" | "ifequal" => Kind::Choose,
        "else" | "elif" | "elsif" | "elseif" | "when" | "empty" => Kind::Else,
        "macro" | "define" | "def" => Kind::Define,
        "block" | "call" | "filter" | "raw" | "autoescape" | "verbatim" => Kind::Open,
        "set" if !code.contains('=') => Kind::Define,
        "include" | "render" | "insert" => Kind::Value,
        _ if word.starts_with("end") => Kind::Close,
        _ if code.starts_with('}') && code.contains("else") => Kind::Else,
        _ if code.starts_with('}') => Kind::Close,
        _ if is_block() => Kind::Choose,
        _ => Kind::Blank,
    }
}
