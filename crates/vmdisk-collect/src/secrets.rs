//! Removal of credentials from image names.

/// Returns an image name without passwords: in `user:password@`, in the query of an address, which may be signed, in rbd's
/// `key=`, and in fields of `json:` with such names.
///
/// ```
/// assert_eq!(vmdisk_collect::without_secrets("https://joe:hunter2@server/a.qcow2"), "https://joe:redacted@server/a.qcow2");
/// ```
pub fn without_secrets(name: &str) -> String {
    const GONE: &str = "redacted";
    let mut name = name.to_owned();
    if let Some(start) = name.find("://").map(|colon| colon + 3) {
        let end = name[start..]
            .find('/')
            .map_or(name.len(), |slash| start + slash);
        if let Some(at) = name[start..end].rfind('@').map(|at| start + at)
            && let Some(colon) = name[start..at].find(':').map(|colon| start + colon)
        {
            name.replace_range(colon + 1..at, GONE);
        }
        if let Some(query) = name[start..].find('?').map(|mark| start + mark + 1) {
            let end = name[query..]
                .find('"')
                .map_or(name.len(), |quote| query + quote);
            name.replace_range(query..end, GONE);
        }
    }
    for key in [
        ":key=",
        "\"password\":",
        "\"key\":",
        "\"cookie\":",
        "password=",
    ] {
        let mut from = 0;
        while let Some(start) = name[from..].find(key).map(|found| from + found + key.len()) {
            let value = &name[start..];
            let length = match value.trim_start().strip_prefix('"') {
                Some(quoted) => (value.len() - quoted.len()) + quoted_length(quoted),
                None => value.find([':', ',', '}', '&']).unwrap_or(value.len()),
            };
            name.replace_range(start..start + length, GONE);
            from = start + GONE.len();
        }
    }
    name
}

/// Returns the length of a JSON string after its opening quote, including the closing one.
fn quoted_length(text: &str) -> usize {
    let mut escaped = false;
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_removed() {
        let cases = [
            ("nbd://server:10809/export", "nbd://server:10809/export"),
            (
                "https://joe:hunter2@server/a.qcow2",
                "https://joe:redacted@server/a.qcow2",
            ),
            ("https://joe@server/a@b:c", "https://joe@server/a@b:c"),
            (
                "https://server/a.qcow2?X-Amz-Signature=abc&x=1",
                "https://server/a.qcow2?redacted",
            ),
            (
                r#"json:{"file":{"url":"https://server/a?sig=abc"}}"#,
                r#"json:{"file":{"url":"https://server/a?redacted"}}"#,
            ),
            (
                "rbd:pool/img:id=admin:key=AQBsecret==:mon_host=a",
                "rbd:pool/img:id=admin:key=redacted:mon_host=a",
            ),
            (
                r#"json:{"driver":"https","password": "p\"w","url":"x"}"#,
                r#"json:{"driver":"https","password":redacted,"url":"x"}"#,
            ),
            (
                r#"json:{"driver":"qcow2","file":{"filename":"/a"}}"#,
                r#"json:{"driver":"qcow2","file":{"filename":"/a"}}"#,
            ),
        ];
        for (whole, safe) in cases {
            assert_eq!(without_secrets(whole), safe);
        }
    }
}
