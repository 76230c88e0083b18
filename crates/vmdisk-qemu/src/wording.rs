//! Settings in a text: how people who write command lines call what rules name in libvirt's words.

use std::borrow::Cow;

use vmdisk_model::Format;

/// libvirt's attributes whose values QEMU takes under another name, or under the same one without quotes.
const KEYS: [(&str, &str); 19] = [
    ("cache", "cache"),
    ("copy_on_read", "copy-on-read"),
    ("detect_zeroes", "detect-zeroes"),
    ("discard", "discard"),
    ("discard_granularity", "discard_granularity"),
    ("discard_no_unref", "discard-no-unref"),
    ("dpofua", "dpofua"),
    ("error_policy", "werror"),
    ("io", "aio"),
    ("iothread", "iothread"),
    ("logical_block_size", "logical_block_size"),
    ("physical_block_size", "physical_block_size"),
    ("product", "product"),
    ("queue_size", "queue-size"),
    ("queues", "num-queues"),
    ("rerror_policy", "rerror"),
    ("rotation_rate", "rotation_rate"),
    ("serial", "serial"),
    ("vendor", "vendor"),
];

/// Pairs of attribute and value that are a thing of their own in QEMU.
const PAIRS: [((&str, &str), &str); 7] = [
    (("bus", "virtio"), "virtio-blk-pci"),
    (("bus", "scsi"), "scsi-hd"),
    (("bus", "sata"), "ide-hd"),
    (("bus", "ide"), "ide-hd"),
    (("device", "lun"), "scsi-block"),
    (("device", "disk"), "scsi-hd"),
    (("model", "virtio-scsi"), "virtio-scsi-pci"),
];

/// Elements without content, and what stands for them.
const ELEMENTS: [(&str, &str); 5] = [
    ("<shareable/>", "share-rw=on"),
    ("<readonly/>", "read-only=on"),
    ("<transient/>", "snapshot=on"),
    ("<hugepages/>", "the memory backend of huge pages"),
    ("<backingStore>", "backing="),
];

/// A text about a disk with the settings in it as QEMU's command line has them: `cache=none` for `cache='none'`.
///
/// What has no word of QEMU's stays as it is.
pub fn in_qemu_words(text: &str) -> Cow<'_, str> {
    if !text.contains("='") && !text.contains('<') {
        return Cow::Borrowed(text);
    }
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("='") {
        let start = rest[..at]
            .rfind(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .map_or(0, |before| {
                before + rest[before..].chars().next().map_or(1, char::len_utf8)
            });
        let value = &rest[at + 2..];
        let Some(end) = value.find('\'') else {
            break;
        };
        told.push_str(&rest[..start]);
        match setting(&rest[start..at], &value[..end]) {
            Some(words) => told.push_str(&words),
            None => told.push_str(&rest[start..=at + 2 + end]),
        }
        rest = &value[end + 1..];
    }
    told.push_str(rest);
    for (element, words) in ELEMENTS {
        if told.contains(element) {
            told = told.replace(element, words);
        }
    }
    Cow::Owned(without_block_io(told))
}

/// `<blockio/>` holds properties of the device.
fn without_block_io(mut told: String) -> String {
    const OPENS: &str = "<blockio ";
    while let Some(start) = told.find(OPENS) {
        let Some(length) = told[start..].find("/>") else {
            break;
        };
        let properties = told[start + OPENS.len()..start + length].replace(' ', ",");
        told.replace_range(start..start + length + 2, &properties);
    }
    told
}

/// How QEMU writes one setting; `None` if it has no such key.
fn setting(name: &str, value: &str) -> Option<String> {
    if let Some((_, words)) = PAIRS.iter().find(|(pair, _)| *pair == (name, value)) {
        return Some((*words).to_owned());
    }
    if name == "type" {
        let driver = Format::from_wire(value)?.qemu_driver()?;
        return Some(format!("format={driver}"));
    }
    let (_, key) = KEYS.iter().find(|(attribute, _)| *attribute == name)?;
    Some(format!("{key}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_lose_their_quotes_and_get_the_names_that_qemu_has() {
        for (said, told) in [
            ("nothing to tell", "nothing to tell"),
            (
                "write cache='none' with it, or io='threads'",
                "write cache=none with it, or aio=threads",
            ),
            ("(cache='none')", "(cache=none)"),
            ("`vda` has type='qcow2'", "`vda` has format=qcow2"),
            ("é='x' io='native'", "é='x' aio=native"),
            (
                "write device='lun', bus='virtio'",
                "write scsi-block, virtio-blk-pci",
            ),
            (
                "write <blockio logical_block_size='512' physical_block_size='4096'/>",
                "write logical_block_size=512,physical_block_size=4096",
            ),
            ("mark both <shareable/>", "mark both share-rw=on"),
        ] {
            assert_eq!(in_qemu_words(said), told);
        }
    }

    #[test]
    fn what_qemu_has_no_word_for_stays_as_it_is() {
        for said in [
            "startupPolicy='optional' is written",
            "type='vhostuser'",
            "cache='none",
            "='",
            "the file is called a='b",
            "a <disk>",
        ] {
            assert_eq!(in_qemu_words(said), said);
        }
    }
}
