//! Removal of credentials from image names.

/// Returns an image name without passwords: in `user:password@`, in the query of an address, which may be signed, in rbd's
/// `key=`, and in fields of `json:` with such names.
///
/// ```
/// assert_eq!(vmdisk_collect::without_secrets("https://joe:hunter2@server/a.qcow2"), "https://joe:redacted@server/a.qcow2");
/// ```
pub fn without_secrets(name: &str) -> String {
    vmdisk_source::secrets::redact(name)
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
                r#"json:{"driver":"https","password": "redacted","url":"x"}"#,
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
