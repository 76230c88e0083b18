//! What messages call a value of a spec.

use vmdisk_document::Value;

/// A value for people: its kind, and the value itself if it is short.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => format!("`{value}`"),
        Value::Unsigned(value) => format!("the number {value}"),
        Value::Signed(value) => format!("the number {value}"),
        // `{:?}` is short also for `1e300`.
        Value::Float(value) => format!("the number {value:?}"),
        Value::Text(text) => format!("`{}`", shortened(text)),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a group of keys".to_owned(),
    }
}

/// A text of the user's that is fit for one line of a message, cut if it is long.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => one_line(&text[..end]) + "…",
        None => one_line(text),
    }
}

/// A text on one line, with everything escaped that could leave it or hide in it.
pub(crate) fn one_line(text: &str) -> String {
    let escaped: String = text.chars().flat_map(char::escape_debug).collect();
    // Quotes need no escape between backticks.
    escaped.replace("\\'", "'").replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_on_one_line() {
        assert_eq!(shortened("it's \"x\"\n"), "it's \"x\"\\n");
        assert_eq!(shortened(&"x".repeat(100)).chars().count(), 81);
    }
}
