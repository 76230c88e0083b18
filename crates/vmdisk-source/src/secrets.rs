//! Secrets in a text that is shown: passwords, keys and tokens, which a log must not show because a finding is near.
//!
//! The text may be anything that a guest is written in, or a part of it, so secrets are recognised by the names before
//! them. If in doubt, more of the text after such a name is masked.

use std::borrow::Cow;
use std::ops::Range;

/// Last parts of names whose values are secret. `key-secret` and the like name a secret, and are none.
const NAMES: [&str; 17] = [
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "token",
    "cookie",
    "cookies",
    "signature",
    "sig",
    "credential",
    "credentials",
    "apikey",
    "authorization",
    "query",
    // `-object secret,data=`
    "data",
    // `rbd:pool/image:id=user:key=`
    "key",
];

/// Quotes of shells, JSON and XML.
const QUOTES: [&str; 6] = ["&quot;", "&apos;", "\\\"", "\\'", "\"", "'"];

/// The program that wrote a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    /// A file's, in which a colon may stand between a name and a value.
    Source,
    /// Ours, which may quote a value.
    Message,
}

/// A part of a file with a mark for each character of a secret, so that columns hold.
pub fn mask(text: &str) -> Cow<'_, str> {
    mask_in(text, Words::Source)
}

/// A message without the secrets that it quotes.
pub fn mask_message(text: &str) -> Cow<'_, str> {
    mask_in(text, Words::Message)
}

/// A message without the secrets that it quotes, which are those of the text that it is about too: a quoted part may
/// have lost the name of its secret.
pub fn mask_message_about(message: &str, text: &str) -> String {
    let mut masked = mask_message(message).into_owned();
    for range in secrets(text, Words::Source) {
        let secret = &text[range];
        // Shorter ones are everywhere.
        if secret.len() >= 4 && masked.contains(secret) {
            masked = masked.replace(secret, &"*".repeat(secret.chars().count()));
        }
    }
    masked
}

fn mask_in(text: &str, words: Words) -> Cow<'_, str> {
    // Most messages have no sign. Without an early end, the compiler compares many bytes at once.
    if !text.bytes().fold(false, |any, byte| any | is_sign(byte)) {
        return Cow::Borrowed(text);
    }
    let ranges = secrets(text, words);
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for range in ranges {
        if range.end <= at {
            continue;
        }
        let start = range.start.max(at);
        out.push_str(&text[at..start]);
        out.extend(
            text[start..range.end]
                .chars()
                .map(|character| match character {
                    // Lines stay lines.
                    '\n' | '\r' | '\t' => character,
                    _ => '*',
                }),
        );
        at = range.end;
    }
    out.push_str(&text[at..]);
    Cow::Owned(out)
}

/// True for the bytes that a secret follows.
const fn is_sign(byte: u8) -> bool {
    matches!(byte, b'=' | b':' | b'>')
}

/// The places of secrets, in order.
fn secrets(text: &str, words: Words) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut quotes = Quotes::default();
    for (at, byte) in text.bytes().enumerate().filter(|(_, byte)| is_sign(*byte)) {
        let rest = &text[at..];
        let is_prose = words == Words::Message && rest.starts_with(": ");
        match byte {
            b'>' => found.extend(element(text, at)),
            _ if !is_prose && is_secret_name(&text[..at], byte, words) => {
                found.extend(value(text, at + 1, quotes.is_open(text, at)));
            }
            _ if rest.starts_with("://") => {
                found.extend(in_address(text, at + 3, quotes.is_open(text, at)));
            }
            _ => {}
        }
    }
    found.sort_by_key(|range| range.start);
    found
}

/// Which quote is open on a line.
#[derive(Default)]
struct Quotes {
    open: Option<u8>,
    /// The length of the text that has been looked at.
    seen: usize,
}

impl Quotes {
    /// True if a quote is open at an offset, which is not before that of the last call.
    fn is_open(&mut self, text: &str, at: usize) -> bool {
        for byte in text.as_bytes()[self.seen..at].iter().copied() {
            self.open = match (byte, self.open) {
                (b'\n', _) => None,
                (b'"' | b'\'', None) => Some(byte),
                (byte, Some(open)) if byte == open => None,
                (_, open) => open,
            };
        }
        self.seen = at;
        self.open.is_some()
    }
}

/// True if the name at the end of `before` is the name of a secret; `sign` follows it.
fn is_secret_name(before: &str, sign: u8, words: Words) -> bool {
    let blanks = [' ', '\t'];
    let before = before.trim_end_matches(blanks);
    let quote = QUOTES.iter().find_map(|quote| before.strip_suffix(quote));
    let before = quote.unwrap_or(before);
    let is_of_name =
        |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let outside = before.trim_end_matches(is_of_name);
    let name = &before[outside.len()..];
    let last = name.rsplit(['.', '_', '-']).next().unwrap_or(name);
    let is_known = NAMES.iter().any(|known| known.eq_ignore_ascii_case(last));
    match last {
        // Messages name the mount option `data=`, and quote no object.
        "data" => words == Words::Source && (name == last || name.ends_with(".data")),
        "key" => name == last && sign == b'=' && outside.ends_with([':', '?', '&']),
        _ => is_known,
    }
}

/// The value that begins at `start` or behind blanks.
fn value(text: &str, start: usize, is_quoted: bool) -> Option<Range<usize>> {
    let rest = &text[start..];
    let start = start + rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let rest = &text[start..];
    // An object or a list is not a secret; its members may be.
    if rest.starts_with(['{', '[']) {
        return None;
    }
    if let Some(quote) = QUOTES.iter().find(|quote| rest.starts_with(**quote)) {
        let start = start + quote.len();
        let end = closing(&text[start..], quote).map_or(text.len(), |at| start + at);
        return Some(start..end).filter(|range| !range.is_empty());
    }
    let end = start + plain_length(rest, is_quoted || text.contains('\0'));
    (end > start).then_some(start..end)
}

/// Where a quoted value ends.
fn closing(text: &str, quote: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find(quote)?;
        let backslashes = text[..at]
            .bytes()
            .rev()
            .take_while(|byte| *byte == b'\\')
            .count();
        if backslashes % 2 == 0 || quote.len() != 1 {
            return Some(at);
        }
        from = at + quote.len();
    }
}

/// The length of a value without quotes of its own; blanks end it unless a quote is open around it.
fn plain_length(text: &str, has_blanks: bool) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if bytes.get(at + 1).is_some_and(|next| !b"\"'".contains(next)) => at += 1,
            b',' if bytes.get(at + 1) == Some(&b',') => at += 1,
            b',' | b'\n' | b'\0' | b'"' | b'\'' | b'\\' => break,
            b' ' | b'\t' | b'\r' if !has_blanks => break,
            b'<' if bytes.get(at + 1) == Some(&b'/') => break,
            b'&' if text[at..].starts_with("&quot;") || text[at..].starts_with("&apos;") => break,
            _ => {}
        }
        at += 1;
    }
    let mut end = at.min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    end
}

/// The secrets of an address: what follows the user's name, and the query.
fn in_address(text: &str, start: usize, is_quoted: bool) -> Vec<Range<usize>> {
    let address = &text[start..start + plain_length(&text[start..], is_quoted)];
    let mut found = Vec::new();
    let server = &address[..address.find(['/', '?', '#']).unwrap_or(address.len())];
    // A password may hold a slash that should have been escaped.
    let login = match (server.rfind('@'), address.rfind('@')) {
        (Some(at), _) => Some(at),
        (None, Some(at)) if server.contains([':', '%']) => Some(at),
        (None, _) => None,
    };
    // Where the `@` was cut off, what is no port may be a password.
    let end = login.unwrap_or(server.len());
    if let Some(sign) = address[..end].find([':', '%'])
        && (login.is_some() || is_no_port(server, sign + 1))
    {
        found.push(start + sign + 1..start + end);
    }
    if let Some(query) = address.find('?') {
        found.push(start + query + 1..start + address.len());
    }
    found.retain(|range| !range.is_empty());
    found
}

/// True if what follows a server's colon is not a port, and the server not an address of IPv6.
fn is_no_port(server: &str, start: usize) -> bool {
    !server.starts_with('[') && server[start..].contains(|digit: char| !digit.is_ascii_digit())
}

/// The text of an element of XML that is named so.
fn element(text: &str, end: usize) -> Option<Range<usize>> {
    let tag = &text[text[..end].rfind('<')? + 1..end];
    let name = tag.split_whitespace().next()?;
    let is_secret = ["cookie", "password", "passphrase"].contains(&name);
    let length = text[end + 1..].find('<').unwrap_or(text.len() - end - 1);
    (is_secret && !tag.ends_with('/') && length > 0).then(|| end + 1..end + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_secret_is_masked_and_columns_hold() {
        for (text, masked) in [
            (
                "-object secret,id=s0,data=hunter2,format=raw",
                "-object secret,id=s0,data=*******,format=raw",
            ),
            ("data=a,,b -S", "data=**** -S"),
            ("'secret,data=a b' -S", "'secret,data=***' -S"),
            ("a\0password=a b\0c", "a\0password=***\0c"),
            (
                r#"{"password":"a\"b","x":1}"#,
                r#"{"password":"****","x":1}"#,
            ),
            (r#"{\"data\":\"ab\"}"#, r#"{\"data\":\"**\"}"#),
            (
                "&quot;password&quot;:&quot;x&amp;y&quot;",
                "&quot;password&quot;:&quot;*******&quot;",
            ),
            ("nbd://me:pw@host/x", "nbd://me:**@host/x"),
            ("nbd://me:hunter2Corr", "nbd://me:***********"),
            ("iscsi://me%pw@host/x", "iscsi://me%**@host/x"),
            ("https://host/x?sig=a&b=c'", "https://host/x?*********'"),
            ("rbd:pool/i:id=me:key=AQ==", "rbd:pool/i:id=me:key=****"),
            (
                "<cookie name='a'>é\nb</cookie>",
                "<cookie name='a'>*\n*</cookie>",
            ),
            ("query='abc' x", "query='***' x"),
            ("  password = \"x\"", "  password = \"*\""),
            ("auth-token: x # y", "auth-token: * # y"),
        ] {
            assert_eq!(mask(text), masked, "{text}");
        }
    }

    #[test]
    fn what_only_names_a_secret_is_shown() {
        for text in [
            "key-secret=s0,password-secret=s1",
            "<secret type='iscsi' usage='u'/>",
            "-drive file=/x,data-file.driver=file",
            "{\"data\":{\"addr\":1}}",
            "http://host:80/x",
            "http://[fe80::1]:80/x",
            "pool:key:x monkey=1",
            "KIND:LOCATION[,OPTION=VALUE]…, such as qcow2:/srv/web1.qcow2,size=40G",
        ] {
            assert!(
                matches!(mask(text), Cow::Borrowed(_)),
                "{text}: {}",
                mask(text)
            );
        }
    }
}
