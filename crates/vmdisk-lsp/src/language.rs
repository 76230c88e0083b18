//! The kind of a text.

use std::path::Path;

use vmdisk::RootKind;

/// The formats that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// XML of libvirt.
    Xml,
    /// A command line of QEMU, or a file of its options.
    CommandLine,
    /// A spec.
    Spec,
}

impl Language {
    /// The format of a text; `None` for everything that vmdisk does not check, such as other XML.
    pub(crate) fn of(path: &Path, text: &str) -> Option<Self> {
        let has_extension = |names: &[&str]| {
            path.extension().is_some_and(|extension| {
                names
                    .iter()
                    .any(|name| extension.eq_ignore_ascii_case(name))
            })
        };
        let begins = text.trim_start_matches('\u{feff}').trim_start();
        if has_extension(&["xml"]) || begins.starts_with('<') {
            return is_libvirt(text).then_some(Language::Xml);
        }
        if vmdisk::is_spec(text) {
            return Some(Language::Spec);
        }
        let is_data = has_extension(&["yaml", "yml", "json"]);
        let is_command = vmdisk::is_command_line(text) || vmdisk::begins_with_group(text);
        (!is_data && is_command).then_some(Language::CommandLine)
    }
}

/// True for XML with disks, and for a text that is broken before its first element and was meant to be that.
fn is_libvirt(text: &str) -> bool {
    match vmdisk::sniff(text) {
        kind if kind.is_readable() => true,
        RootKind::NotXml => text.contains("<domain") || text.contains("<disk"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_vmdisk_checks_has_a_language() {
        for (path, text, language) in [
            ("a.xml", "<domain/>", Some(Language::Xml)),
            ("a.xml", "<<<<<<< HEAD\n<domain>", Some(Language::Xml)),
            ("a.xml", "<project/>", None),
            ("untitled:1", "<disk/>", Some(Language::Xml)),
            ("a.yaml", "version: 1\ndisks: []\n", Some(Language::Spec)),
            ("a.yaml", "run: qemu-system-x86_64 -S", None),
            ("a.sh", "qemu-system-x86_64 -S", Some(Language::CommandLine)),
            ("a.rs", "fn main() {}", None),
            ("a.xml", "", None),
        ] {
            assert_eq!(Language::of(Path::new(path), text), language, "{text}");
        }
    }
}
