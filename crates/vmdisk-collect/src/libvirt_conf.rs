//! Parser of libvirt's settings (src/util/virconf.c): `name = value` with a number, a string, or a list.

use std::collections::BTreeMap;
use std::fmt;

/// The value of one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    Number(i64),
    Text(String),
    List(Vec<String>),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::List(list) => write!(f, "{list:?}"),
        }
    }
}

/// Returns all settings; the last of several values counts. Invalid lines are skipped.
pub(crate) fn settings(text: &str) -> BTreeMap<String, Setting> {
    let mut found = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let name = line.split('=').next().unwrap_or_default().trim();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        match line.split_once('=').filter(|_| is_name) {
            Some((before, _)) => {
                // A list may span lines.
                let (setting, left) = value(&rest[before.len() + 1..]);
                if let Some(setting) = setting {
                    found.insert(name.to_owned(), setting);
                }
                rest = left.split_once('\n').map_or("", |(_, after)| after);
            }
            None => rest = after,
        }
    }
    found
}

/// Parses one value, and returns the rest of the text.
fn value(text: &str) -> (Option<Setting>, &str) {
    let text = text.trim_start_matches([' ', '\t']);
    if let Some((word, left)) = quoted(text) {
        return (Some(Setting::Text(word)), left);
    }
    if let Some(inner) = text.strip_prefix('[') {
        return list(inner);
    }
    let end = text
        .find(['\n', '#', ' ', '\t', '\r'])
        .unwrap_or(text.len());
    let (word, left) = text.split_at(end);
    (word.parse().ok().map(Setting::Number), left)
}

/// Parses a string in quotes of either kind, or in triple double quotes, and returns the rest. There are no escapes.
fn quoted(text: &str) -> Option<(String, &str)> {
    for quote in ["\"\"\"", "\"", "'"] {
        if let Some(inner) = text.strip_prefix(quote) {
            let (word, left) = inner.split_once(quote)?;
            // Only a triple-quoted string may contain line ends.
            return (quote.len() == 3 || !word.contains('\n')).then(|| (word.to_owned(), left));
        }
    }
    None
}

/// Parses a list after its opening bracket, and returns the rest.
fn list(text: &str) -> (Option<Setting>, &str) {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if let Some(left) = rest.strip_prefix(']') {
            return (Some(Setting::List(words)), left);
        }
        if rest.starts_with('#') {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some((word, left)) = quoted(rest) {
            words.push(word);
            rest = left;
        } else {
            // A list of numbers or without an end is not used here.
            return (None, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_strings_lists_and_comments_are_parsed() {
        let text = "# user = \"root\"\nuser = \"libvirt-qemu\"\n  group=\"kvm\" # a comment\ndynamic_ownership = 1\n\
                    namespaces = [ ]\ncgroup_device_acl = [\n    \"/dev/null\", # everybody's\n    \"/dev/zero\",\n]\n\
                    security_driver = [ \"selinux\", \"apparmor\" ]\nseccomp_sandbox = -1\nlock_manager='sanlock'\n";
        let settings = settings(text);
        let text = |text: &str| Setting::Text(text.to_owned());
        let list =
            |list: &[&str]| Setting::List(list.iter().map(|&word| word.to_owned()).collect());
        assert_eq!(settings["user"], text("libvirt-qemu"));
        assert_eq!(settings["group"], text("kvm"));
        assert_eq!(settings["dynamic_ownership"], Setting::Number(1));
        assert_eq!(settings["namespaces"], list(&[]));
        assert_eq!(
            settings["cgroup_device_acl"],
            list(&["/dev/null", "/dev/zero"])
        );
        assert_eq!(settings["security_driver"], list(&["selinux", "apparmor"]));
        assert_eq!(settings["seccomp_sandbox"], Setting::Number(-1));
        assert_eq!(settings["lock_manager"], text("sanlock"));
        assert_eq!(settings.len(), 8);
    }

    #[test]
    fn invalid_lines_are_skipped() {
        let text = "a = [ \"x\"\nb = 2\nc = \"no end\nd = 4\n= 5\n e f = 6\ng = yes\nh = 8";
        let settings = settings(text);
        assert_eq!(settings.get("d"), Some(&Setting::Number(4)));
        assert_eq!(settings.get("h"), Some(&Setting::Number(8)));
        assert!(!settings.contains_key("c") && !settings.contains_key("g"));
    }

    #[test]
    fn the_last_of_two_values_counts() {
        assert_eq!(
            settings("user = \"a\"\nuser = \"b\"")["user"],
            Setting::Text("b".to_owned())
        );
    }
}
