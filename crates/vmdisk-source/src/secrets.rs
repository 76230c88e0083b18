//! Secrets in a text that is shown: passwords, keys and tokens, which a log must not show because a finding is near.
//!
//! The text may be anything that a guest is written in, or a part of it, so secrets are recognised by the names before
//! them. If in doubt, more of the text after such a name is masked. Every output that is no configuration passes here, and
//! so does what `facts redact` writes.

use std::borrow::Cow;
use std::ops::Range;

/// Last parts of names whose values are secret. The value of `key-secret` is the id of a secret, not a secret.
const NAMES: [&str; 18] = [
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
    // `-fw_cfg name=opt/x,string=`
    "string",
];

/// Options of Ceph and others, whose value is the next word.
const OPTIONS: [&str; 5] = [
    "--key ",
    "--password ",
    "--passphrase ",
    "--secret ",
    "--token ",
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
    match has_sign(text) {
        true => mask_in(text, Words::Message),
        false => Cow::Borrowed(text),
    }
}

/// A whole output: text for people by its lines, and JSON by its strings, which stay strings. A picture is what its writer made
/// of masked texts, and stays.
pub fn mask_output(text: &str) -> Cow<'_, str> {
    let whole = text.trim();
    let is_json = (whole.starts_with('{') && whole.ends_with('}'))
        || (whole.starts_with('[') && whole.ends_with(']'));
    match () {
        () if is_json => in_strings(text, |string| mask_message(string).into_owned()),
        () if whole.starts_with("<svg") => Cow::Borrowed(text),
        () => mask_lines(text),
    }
}

/// As [`mask_message`] for each line: a quote that a line leaves open hides nothing of the next ones.
pub fn mask_lines(text: &str) -> Cow<'_, str> {
    match has_sign(text) {
        true => Cow::Owned(text.split_inclusive('\n').map(mask_message).collect()),
        false => Cow::Borrowed(text),
    }
}

/// A text of any syntax in which a word replaces each secret; the lines hold.
pub fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for range in Secrets::of(text).0 {
        out.push_str(&text[at..range.start]);
        out.push_str("redacted");
        out.extend(text[range.clone()].matches('\n'));
        at = range.end;
    }
    out + &text[at..]
}

/// As [`redact`] for JSON, whose strings stay strings.
pub fn redact_json(text: &str) -> Cow<'_, str> {
    in_strings(text, redact)
}

/// Changes the strings of JSON, as they are escaped: a secret ends before the backslash of an escape, or after the whole.
fn in_strings(text: &str, change: impl Fn(&str) -> String) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(start) = text[at..].find('"').map(|found| at + found + 1) {
        let Some(length) = closing(&text[start..], "\"") else {
            break;
        };
        let end = start + length;
        at = end + 1;
        let string = &text[start..end];
        if has_sign(string) {
            out.push_str(&text[copied..start]);
            out.push_str(&change(string));
            copied = end;
        }
    }
    match copied {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(out + &text[copied..]),
    }
}

/// A message without the secrets that it quotes, which are those of the text that it is about too: a quoted part may
/// have lost the name of its secret.
pub fn mask_message_about(message: &str, text: &str) -> String {
    let mut masked = mask_message(message).into_owned();
    for range in secrets(text, Words::Source) {
        let whole = &text[range];
        // The message may quote a part. Shorter ones are everywhere.
        let is_end = |end: char| end.is_whitespace() || "<>'\"/&;,".contains(end);
        let parts = whole.split(is_end).filter(|part| part.len() >= 6);
        for secret in std::iter::once(whole).chain(parts) {
            if secret.len() >= 4 && masked.contains(secret) {
                masked = masked.replace(secret, &"*".repeat(secret.chars().count()));
            }
        }
    }
    masked
}

fn mask_in(text: &str, words: Words) -> Cow<'_, str> {
    Secrets::found(text, words).mask(text, 0..text.len())
}

/// The places of the secrets of a text.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Vec<Range<usize>>);

impl Secrets {
    /// The secrets of a file.
    pub fn of(text: &str) -> Self {
        Secrets::found(text, Words::Source)
    }

    fn found(text: &str, words: Words) -> Self {
        // Most messages have no sign. Without an early end, the compiler compares many bytes at once.
        if !has_sign(text) {
            return Secrets::default();
        }
        let mut merged: Vec<Range<usize>> = Vec::new();
        for range in secrets(text, words) {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        Secrets(merged)
    }

    /// A part of the text with a mark for each character of a secret, so that columns hold.
    pub fn mask<'t>(&self, text: &'t str, part: Range<usize>) -> Cow<'t, str> {
        let first = self.0.partition_point(|range| range.end <= part.start);
        let ranges = self.0[first..].iter();
        let mut ranges = ranges.take_while(|range| range.start < part.end).peekable();
        if ranges.peek().is_none() {
            return Cow::Borrowed(&text[part]);
        }
        let mut out = String::with_capacity(part.len());
        let mut at = part.start;
        for range in ranges {
            let (start, end) = (range.start.max(at), range.end.min(part.end));
            out.push_str(&text[at..start]);
            let mark = |character| match character {
                // Lines stay lines.
                '\n' | '\r' | '\t' => character,
                _ => '*',
            };
            out.extend(text[start..end].chars().map(mark));
            at = end;
        }
        out.push_str(&text[at..part.end]);
        Cow::Owned(out)
    }
}

/// True if there may be a secret.
fn has_sign(text: &str) -> bool {
    text.bytes().fold(false, |any, byte| any | is_sign(byte)) || text.contains("--")
}

/// True for the bytes that a secret follows.
const fn is_sign(byte: u8) -> bool {
    matches!(byte, b'=' | b':' | b'>')
}

/// The places of secrets, by their starts.
fn secrets(text: &str, words: Words) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut scan = Scan {
        text,
        has_nul: text.contains('\0'),
        words: Some(words),
        ..Scan::default()
    };
    if text.contains("--") {
        for option in OPTIONS {
            let places = text.match_indices(option).map(|(at, _)| at + option.len());
            found.extend(places.map(|at| at..at + plain_length(&text[at..], false)));
        }
    }
    for (at, byte) in text.bytes().enumerate().filter(|(_, byte)| is_sign(*byte)) {
        scan.read_to(at);
        let rest = &text[at..];
        // `the password: it`, and not `"password": "it"`.
        let is_quoted = text[..at].ends_with(['"', '\'', ';']);
        let is_prose = words == Words::Message && rest.starts_with(": ") && !is_quoted;
        match byte {
            b'>' => found.extend(scan.element(at)),
            _ if !is_prose && (is_secret_name(&text[..at], rest, words) || scan.is_value(at)) => {
                found.extend(scan.value(at + 1));
            }
            _ if rest.starts_with("://") => scan.address(at + 3, &mut found),
            _ => {}
        }
    }
    found.retain(|range| !range.is_empty());
    found.sort_by_key(|range| range.start);
    found
}

/// The state of one pass over a text. What was found around a sign is kept for the next ones, so that no text is read
/// again for each of its signs.
#[derive(Default)]
struct Scan<'t> {
    text: &'t str,
    has_nul: bool,
    words: Option<Words>,
    /// The length of the text that has been read.
    seen: usize,
    /// The quote that is open on the line.
    quote: Option<u8>,
    /// The last tag: its start, and once it is known, whether its element is a secret.
    tag: Option<(usize, Option<bool>)>,
    /// True between the angle brackets of a tag.
    is_in_tag: bool,
    /// The end of the last secret element.
    covered: usize,
    /// True after an element without an end.
    is_unclosed: bool,
    /// The last texts without quotes of their own: those that a blank ends, and those that it does not.
    plain: [Plain; 2],
}

/// A text without quotes of its own.
#[derive(Clone, Default)]
struct Plain {
    range: Range<usize>,
    last_at: Option<usize>,
    question: Option<usize>,
}

impl Scan<'_> {
    fn read_to(&mut self, at: usize) {
        for (place, byte) in self.text.as_bytes()[..at]
            .iter()
            .enumerate()
            .skip(self.seen)
        {
            self.quote = match (*byte, self.quote) {
                (b'\n', _) => None,
                (b'"' | b'\'', None) => Some(*byte),
                (byte, Some(open)) if byte == open => None,
                (_, open) => open,
            };
            match byte {
                b'<' => (self.tag, self.is_in_tag) = (Some((place + 1, None)), true),
                b'>' if self.quote.is_none() => self.is_in_tag = false,
                _ => {}
            }
        }
        self.seen = at;
    }

    /// The text without quotes of its own from `start` on.
    fn plain(&mut self, start: usize, has_blanks: bool) -> &Plain {
        let text = self.text;
        let plain = &mut self.plain[usize::from(has_blanks)];
        let find = |range: Range<usize>| Some(range.start + text[range].find('?')?);
        if !plain.range.contains(&start) {
            let end = start + plain_length(&text[start..], has_blanks);
            *plain = Plain {
                range: start..end,
                last_at: text[start..end].rfind('@').map(|at| start + at),
                question: find(start..end),
            };
        } else if plain.question.is_some_and(|at| at < start) {
            plain.question = find(start..plain.range.end);
        }
        plain
    }

    /// The value that begins at `start` or behind blanks.
    fn value(&mut self, start: usize) -> Option<Range<usize>> {
        let rest = self.text[start..].trim_start_matches([' ', '\t']);
        let start = self.text.len() - rest.len();
        // An object or a list is not a secret; its members may be.
        if rest.starts_with(['{', '[']) {
            return None;
        }
        if let Some(quote) = QUOTES.iter().find(|quote| rest.starts_with(**quote)) {
            let length = closing(&rest[quote.len()..], quote);
            let start = start + quote.len();
            let end = length.map_or(self.text.len(), |length| start + length);
            return Some(start..end);
        }
        // `Authorization: Bearer TOKEN`
        let scheme = ["Bearer ", "Basic "]
            .into_iter()
            .find(|it| rest.starts_with(it));
        let start = start + scheme.map_or(0, str::len);
        let has_blanks = self.quote.is_some() || self.has_nul;
        let end = self.plain(start, has_blanks).range.end;
        let value = &self.text[start..end];
        let before = &self.text[..start];
        // The key of rbd ends before the next option, and a value without quotes before the end of its tag.
        let length = match () {
            () if before.ends_with(":key=") => value.find(':').unwrap_or(value.len()),
            () if self.is_in_tag && self.quote.is_none() => {
                let tag = value.find('>').unwrap_or(value.len());
                value[..tag].trim_end_matches('/').len()
            }
            () => value.len(),
        };
        Some(start..start + length)
    }

    /// True if the sign at `at` is that of the attribute or option `value` of something secret: a variable of QEMU's
    /// environment, libvirt's secret, a string of SMBIOS that systemd reads as a credential.
    fn is_value(&self, at: usize) -> bool {
        let text = self.text;
        let before = text[..at].trim_end();
        if self.words != Some(Words::Source) || !before.ends_with("value") {
            return false;
        }
        let is_of_smbios = || before.ends_with("type=11,value");
        let tag = self.tag.filter(|_| self.is_in_tag);
        let name = tag.and_then(|(start, _)| text[start..at].split_whitespace().next());
        let name = name.map(|name| name.rsplit(':').next().unwrap_or(name));
        name.is_some_and(|name| ["env", "secret"].contains(&name)) || is_of_smbios()
    }

    /// The secrets of an address: what follows the user's name, and the query.
    fn address(&mut self, start: usize, found: &mut Vec<Range<usize>>) {
        let text = self.text;
        let is_quoted = self.quote.is_some();
        let Plain {
            range,
            last_at,
            question,
        } = self.plain(start, is_quoted);
        let address = &text[start..range.end.max(start)];
        let server = &address[..address.find(['/', '?', '#']).unwrap_or(address.len())];
        // A password may hold a slash that should have been escaped.
        let last_at = last_at.filter(|at| *at >= start && server.contains([':', '%']));
        let login = server.rfind('@').or(last_at.map(|at| at - start));
        // Where the `@` was cut off, what is no port may be a password.
        let end = login.unwrap_or(server.len());
        let sign = address[..end].find([':', '%']);
        if let Some(sign) = sign.filter(|sign| login.is_some() || is_no_port(server, sign + 1)) {
            found.push(start + sign + 1..start + end);
        }
        found.extend(question.map(|at| at + 1..range.end));
    }

    /// The text of an element of XML whose tag ends here, if its name says that it is secret.
    fn element(&mut self, end: usize) -> Option<Range<usize>> {
        let (start, is_secret) = self.tag.as_mut()?;
        let tag = &self.text[*start..end];
        let is_secret = *is_secret.get_or_insert_with(|| is_secret_element(tag));
        if !is_secret || tag.ends_with('/') {
            return None;
        }
        let name = tag.split_whitespace().next().unwrap_or_default();
        let rest = &self.text[end + 1..];
        self.tag = None;
        if end < self.covered {
            return None;
        }
        // To the end tag of the same element: there may be CDATA, and of <metadata> elements of others.
        let mut ends = rest.match_indices("</").map(|(at, _)| at);
        let ending = |at: &usize| rest[at + 2..].starts_with(name);
        let length = match self.is_unclosed {
            true => None,
            false => ends.find(ending),
        };
        // No text is searched twice.
        self.is_unclosed |= length.is_none();
        let length = length.or_else(|| rest.find('<').filter(|_| name != "metadata"));
        self.covered = end + 1 + length.unwrap_or(rest.len());
        Some(end + 1..self.covered)
    }
}

/// True for the start of a tag whose element is secret, or may hold anything.
fn is_secret_element(tag: &str) -> bool {
    let mut words = tag.split_whitespace();
    match words.next() {
        Some("cookie" | "password" | "passphrase" | "metadata") => true,
        // A file of fw_cfg, such as a configuration of Ignition, or a string of SMBIOS that systemd reads.
        Some("entry") => {
            words.all(|word| word.starts_with("name='opt/") || word.starts_with("name=\"opt/"))
        }
        _ => false,
    }
}

/// True if the name at the end of `before` is the name of a secret; `rest` begins with the sign after it.
fn is_secret_name(before: &str, rest: &str, words: Words) -> bool {
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
        "string" => words == Words::Source && name == last,
        "key" if name != last => {
            let kinds = ["access", "api", "auth", "encrypt", "private", "secret"];
            kinds
                .iter()
                .any(|kind| name.to_ascii_lowercase().contains(kind))
        }
        "key" if quote.is_some() => true,
        "key" if rest.starts_with('=') => {
            words == Words::Source || outside.ends_with([':', '?', '&', ','])
        }
        // A key of a spec: it is the first word of a line, of an object, or of a member.
        "key" => {
            let outside = outside.trim_end_matches(blanks);
            let outside = outside
                .strip_suffix('-')
                .unwrap_or(outside)
                .trim_end_matches(blanks);
            let is_member = outside.is_empty() || outside.ends_with(['\n', '{', ',']);
            words == Words::Source && is_member && rest.starts_with(": ")
        }
        // As in `KEY=VALUE` of a help.
        "KEY" if name == last => false,
        _ => is_known,
    }
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
            b',' | b'\n' | b'\0' | b'"' | b'\'' | b'\\' | b'\x1b' => break,
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

/// True if what follows a server's colon is not a port, and the server not an address of IPv6.
fn is_no_port(server: &str, start: usize) -> bool {
    !server.starts_with('[') && server[start..].contains(|digit: char| !digit.is_ascii_digit())
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
            ("rbd:p/i:key=A=:mon_host=m", "rbd:p/i:key=**:mon_host=m"),
            ("<graphics passwd=pw/>", "<graphics passwd=**/>"),
            (
                "<env:env name='A' value='--key K'/>",
                "<env:env name='A' value='*******'/>",
            ),
            (
                "<secret type='p' value='s'/>",
                "<secret type='p' value='*'/>",
            ),
            ("CEPH_ARGS='--key K --id a'", "CEPH_ARGS='--key * --id a'"),
            (
                "-fw_cfg name=opt/a,string=ab",
                "-fw_cfg name=opt/a,string=**",
            ),
            ("-smbios type=11,value=ab", "-smbios type=11,value=**"),
            ("encrypt.key=ab", "encrypt.key=**"),
            ("driver=rbd,key=ab,x=y", "driver=rbd,key=**,x=y"),
            ("  - key: ab", "  - key: **"),
            ("{\"key\": \"ab\"}", "{\"key\": \"**\"}"),
            (
                "<entry name='opt/x'>ab</entry>",
                "<entry name='opt/x'>**</entry>",
            ),
            ("<entry>ab</entry>", "<entry>**</entry>"),
            (
                "<cookie><![CDATA[a]]></cookie>",
                "<cookie>*************</cookie>",
            ),
            (
                "<metadata>\n<a b='c'/></metadata>",
                "<metadata>\n**********</metadata>",
            ),
            ("authorization: Bearer abc", "authorization: Bearer ***"),
        ] {
            assert_eq!(mask(text), masked, "{text}");
        }
    }

    #[test]
    fn json_and_the_lines_of_a_text_stay_what_they_are() {
        for (text, masked) in [
            (
                r#"{"a":"password=","b":"x"}"#,
                r#"{"a":"password=","b":"x"}"#,
            ),
            (
                r#"no facts about json:{"key": "ab", "password": "c"}"#,
                r#"no facts about json:{"key": "**", "password": "*"}"#,
            ),
            (r#"["nbd://u:pw@h",1]"#, r#"["nbd://u:**@h",1]"#),
            (
                r#"{"a":"x password=\"b\" y"}"#,
                r#"{"a":"x password=\"*\" y"}"#,
            ),
            (r#"{"a":"b:"#, r#"{"a":"b:"#),
            (
                "a password='b\nnbd://u:pw@h\n",
                "a password='*\nnbd://u:**@h\n",
            ),
            ("<svg b='password=c'/>", "<svg b='password=c'/>"),
        ] {
            assert_eq!(mask_output(text), masked);
        }
        let text = "a='nbd://u:pw@h/x'\n<cookie>a\nb</cookie>\n";
        let redacted = "a='nbd://u:redacted@h/x'\n<cookie>redacted\n</cookie>\n";
        assert_eq!(redact(text), redacted);
        assert_eq!(redact_json(r#"{"a":"data=b"}"#), r#"{"a":"data=redacted"}"#);
    }

    #[test]
    fn a_part_is_masked_by_the_secrets_of_the_whole() {
        let text = "a password='é\nb' ://u:pw@h";
        let all = mask(text).into_owned();
        let secrets = Secrets::of(text);
        let places = || text.char_indices().map(|(at, _)| at).chain([text.len()]);
        for (nth, start) in places().enumerate() {
            for (length, end) in places().skip(nth).enumerate() {
                let part: String = all.chars().skip(nth).take(length).collect();
                assert_eq!(secrets.mask(text, start..end), part);
            }
        }
    }

    #[test]
    fn a_text_of_signs_is_read_once() {
        for (before, repeated) in [
            ("<password ", ">"),
            ("<cookie a='", "/>"),
            ("", "<cookie>"),
            ("", "<metadata>"),
            ("", "<metadata><cookie></"),
            ("", "://a:b"),
            ("", "://a?"),
            ("", "password="),
            ("\0", "password=://"),
        ] {
            let text = format!("{before}{}", repeated.repeat(100_000));
            assert!(!mask(&text).is_empty());
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
            "<entry name='serial'>x</entry><x value='y'/>",
            "monkey: x",
            "--target KEY=VALUE",
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
