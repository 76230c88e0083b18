//! The images that the same text makes with `qemu-img`.

use vmdisk_model::{BackendSource, Backing, Domain, Format, Image, MadeAs};

use super::folder::Folder;
use super::text::Text;

/// An image that a command of the text makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MadeImage {
    name: String,
    folder: Folder,
    made_as: MadeAs,
}

/// True for `qemu-img`, whatever its folder.
pub(super) fn is_qemu_img(name: &str) -> bool {
    name.rsplit('/').next() == Some("qemu-img")
}

/// The image that a command makes: `qemu-img create [-f FORMAT] NAME` or `qemu-img convert [-O FORMAT] … NAME`.
pub(super) fn made_image(words: &[Text], folder: &Folder) -> Option<MadeImage> {
    let mut words = words.iter().skip(1);
    let is_copy = match words.next()?.as_str() {
        "create" => false,
        "convert" => true,
        _ => return None,
    };
    let (format, with_value, long) = match is_copy {
        false => ('f', "fbFo", "format"),
        true => ('O', "fOtTBFolSrm", "target-format"),
    };
    let mut made_as = MadeAs::Format(Format::Raw);
    let mut names = Vec::new();
    while let Some(word) = words.next() {
        let text = word.as_str();
        if let Some(option) = text.strip_prefix("--") {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let has_value = value.is_empty() && LONG_WITH_VALUE.contains(&name);
            let value = if has_value { words.next() } else { None }.map_or(value, Text::as_str);
            if name == long {
                made_as = format_named(value);
            }
            continue;
        }
        let Some(letters) = text.strip_prefix('-').filter(|it| !it.is_empty()) else {
            names.push(word);
            continue;
        };
        let Some(at) = letters.find(|letter| with_value.contains(letter)) else {
            continue;
        };
        let rest = &letters[at + 1..];
        let value = if rest.is_empty() { words.next() } else { None }.map_or(rest, Text::as_str);
        if letters[at..].starts_with(format) {
            made_as = format_named(value);
        }
    }
    let name = if is_copy { names.last() } else { names.first() };
    let name = name.filter(|it| !it.has_hole())?;
    Some(MadeImage {
        name: name.as_str().to_owned(),
        folder: folder.clone(),
        made_as,
    })
}

/// Long options of both commands whose value is the next word.
const LONG_WITH_VALUE: [&str; 9] = [
    "backing",
    "backing-format",
    "format",
    "object",
    "options",
    "parallel",
    "source-format",
    "target-cache",
    "target-format",
];

/// An unknown part of the word, or a format that no image has, is no format.
fn format_named(word: &str) -> MadeAs {
    Format::of_qemu_driver(word).map_or(MadeAs::Unclear, MadeAs::Format)
}

/// Notes in the images of a guest, which is started in a folder, how the text makes them.
pub(crate) fn note_made(domain: &mut Domain, made: &[MadeImage], folder: &Folder) {
    if made.is_empty() {
        return;
    }
    for disk in &mut domain.disks {
        let BackendSource::Image(top) = &mut disk.backend.source else {
            continue;
        };
        let mut next = Some(top);
        while let Some(image) = next {
            image.made_as = made_as(image, made, folder);
            next = match &mut image.backing {
                Backing::Image(below) => Some(below),
                Backing::Unspecified | Backing::Terminated => None,
            };
        }
    }
}

/// True for the same path: `./disk.img` is `disk.img`.
fn is_same(one: &str, other: &str) -> bool {
    let plain = |path| str::trim_start_matches(path, "./");
    plain(one) == plain(other)
}

fn made_as(image: &Image, made: &[MadeImage], folder: &Folder) -> Option<MadeAs> {
    let path = image.host_path()?;
    let is_it = |it: &&MadeImage| {
        is_same(&it.name, path) && (path.starts_with('/') || it.folder == *folder)
    };
    let mut all = made.iter().filter(is_it).map(|it| it.made_as);
    let first = all.next()?;
    Some(if all.all(|it| it == first) {
        first
    } else {
        MadeAs::Unclear
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk_made_as(text: &str) -> Option<MadeAs> {
        let document = crate::read(text).unwrap();
        document.domain.disks[0].backend.image().unwrap().made_as
    }

    #[test]
    fn what_the_text_makes_has_the_format_that_it_names() {
        let qcow2 = Some(MadeAs::Format(Format::Qcow2));
        let raw = Some(MadeAs::Format(Format::Raw));
        for (line, expected) in [
            ("qemu-img create -f qcow2 a.img 1G", qcow2),
            ("qemu-img create -fqcow2 a.img 1G", qcow2),
            ("qemu-img create -f qcow2 ./a.img 1G", qcow2),
            ("qemu-img create -q --format=qcow2 a.img 1G", qcow2),
            ("qemu-img create --format qcow2 a.img 1G", qcow2),
            ("qemu-img create -b b.img -F raw -f qcow2 a.img", qcow2),
            ("sudo /usr/bin/qemu-img create -f qcow2 a.img 1G", qcow2),
            ("[ -e a.img ] || qemu-img create -f qcow2 a.img 1G", qcow2),
            (
                "if [ ! -e a.img ]; then\nqemu-img create -f qcow2 a.img 1G\nfi",
                qcow2,
            ),
            ("IMG=a.img\nqemu-img create -f qcow2 \"$IMG\" 1G", qcow2),
            ("qemu-img create a.img 1G", raw),
            ("qemu-img convert -f raw -pO qcow2 cloud.raw a.img", qcow2),
            ("qemu-img convert -f qcow2 cloud.qcow2 a.img", raw),
            ("qemu-img create -f $F a.img 1G", Some(MadeAs::Unclear)),
            (
                "qemu-img create -f raw a.img 1G\nqemu-img create -f qcow2 a.img 1G",
                Some(MadeAs::Unclear),
            ),
            ("qemu-img create -f qcow2 b.img 1G", None),
            ("qemu-img create -f qcow2 -b a.img -F raw b.img", None),
            ("qemu-img resize a.img 2G", None),
            ("cd /srv && qemu-img create -f qcow2 a.img 1G; cd /", None),
            ("echo qemu-img create -f qcow2 a.img 1G", None),
        ] {
            let text = format!("#!/bin/sh\n{line}\nqemu-system-x86_64 -m 1G -hda a.img\n");
            assert_eq!(disk_made_as(&text), expected, "{line}");
        }
    }

    #[test]
    fn an_image_below_is_noted_too() {
        let text = "qemu-img create -f qcow2 base.img 1G\nqemu-system-x86_64 -blockdev \
                    driver=qcow2,node-name=d,file.driver=file,file.filename=top,backing.driver=raw,\
                    backing.file.driver=file,backing.file.filename=base.img -device virtio-blk-pci,drive=d\n";
        let document = crate::read(text).unwrap();
        let image = document.domain.disks[0].backend.image().unwrap();
        let made: Vec<_> = image.chain().map(|image| image.made_as).collect();
        assert_eq!(made, [None, Some(MadeAs::Format(Format::Qcow2))]);
    }
}
