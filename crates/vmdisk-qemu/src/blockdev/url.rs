//! URLs in libvirt's form for libcurl and in QEMU's legacy syntax.

use std::fmt;

/// The parts of a URL.
pub(crate) struct Url<'a> {
    pub(crate) scheme: &'a str,
    pub(crate) host: &'a str,
    pub(crate) port: u32,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
}

impl fmt::Display for Url<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Url {
            scheme,
            host,
            port,
            path,
            query,
        } = self;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let (open, close) = if host.contains(':') {
            ("[", "]")
        } else {
            ("", "")
        };
        write!(f, "{scheme}://{open}{host}{close}:{port}{slash}")?;
        for byte in path.bytes() {
            // The characters that libxml2 does not escape in a path.
            if byte.is_ascii_alphanumeric() || b"-_.!~*'()/;:@&=+$,".contains(&byte) {
                write!(f, "{}", char::from(byte))?;
            } else {
                write!(f, "%{byte:02X}")?;
            }
        }
        match query {
            Some(query) => write!(f, "?{query}"),
            None => Ok(()),
        }
    }
}

/// The parts of a URL from the input; names are unescaped, the query is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrittenUrl {
    pub(crate) scheme: String,
    pub(crate) user: Option<String>,
    pub(crate) host: String,
    pub(crate) port: Option<u32>,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
}

impl WrittenUrl {
    /// Splits a URL; `None` if the text is not one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (path, None),
        };
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(unescape(user)?), host),
            None => (None, authority),
        };
        let (host, port) = if let Some(inside) = host.strip_prefix('[') {
            let (host, port) = inside.split_once(']')?;
            (host, port.strip_prefix(':'))
        } else {
            match host.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (host, None),
            }
        };
        let port = match port {
            Some(port) => Some(port.parse().ok()?),
            None => None,
        };
        Some(WrittenUrl {
            scheme: scheme.to_owned(),
            user,
            host: unescape(host)?,
            port,
            path: unescape(path)?,
            query,
        })
    }

    /// The value of a member of the query.
    pub(crate) fn query_value(&self, name: &str) -> Option<String> {
        let pairs = self.query.as_deref()?.split(['&', ';']);
        pairs
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| *key == name)
            .and_then(|(_, value)| unescape(value))
    }
}

fn unescape(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_together_comes_apart_again(
            host in "[a-z0-9.:]{1,12}", port in 0_u32..65536, path in "/?[ -~é]{0,12}", query in proptest::option::of("[a-z=&]{0,8}")
        ) {
            let url = Url { scheme: "https", host: &host, port, path: &path, query: query.as_deref() };
            let parsed = WrittenUrl::parse(&url.to_string()).expect("it is a URL");
            prop_assert_eq!(parsed.host, host);
            prop_assert_eq!(parsed.port, Some(port));
            prop_assert_eq!(parsed.path.trim_start_matches('/'), path.trim_start_matches('/'));
            prop_assert_eq!(parsed.query, query);
        }

        #[test]
        fn no_text_is_too_strange(text in any::<String>()) {
            let _ = WrittenUrl::parse(&text);
            let _ = WrittenUrl::parse(&format!("nbd://{text}"));
        }
    }
}
