//! Text that another program fills in before it is read.

/// True for text with a variable, a substitution or a placeholder: `$X`, `${X}`, `$(…)`, `` `…` ``, `%X%`, `%i` of a systemd
/// unit, `{{ X }}`. A percent sign before a digit is one of a URL.
///
/// ```
/// use vmdisk_source::has_expansion;
/// assert!(["$X", "a${X}b", "$(pwd)/a", "`pwd`", "%X%", "%i", "{{ x }}"].iter().all(|text| has_expansion(text)));
/// assert!(!["/srv/a.img", "100%", "a%20b", "{\"a\":{\"b\":1}}"].iter().any(|text| has_expansion(text)));
/// ```
pub fn has_expansion(text: &str) -> bool {
    let is_mark = |byte: u8| matches!(byte, b'$' | b'`' | b'%' | b'{');
    // Nearly every text has no mark. Without an early end, the compiler compares many bytes at once.
    if !text.bytes().fold(false, |any, byte| any | is_mark(byte)) {
        return false;
    }
    let starts_name = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'~' | b'{');
    let is_percent = |pair: &[u8]| pair[0] == b'%' && starts_name(&pair[1]);
    text.contains(['$', '`']) || text.contains("{{") || text.as_bytes().windows(2).any(is_percent)
}
