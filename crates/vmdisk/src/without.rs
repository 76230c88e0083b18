//! A document without some of its disks.

use std::collections::BTreeSet;

use vmdisk_facts::HostIndex;
use vmdisk_model::{BackendSource, Disk, FieldPath, Format, MadeAs};
use vmdisk_source::{SourceMap, Span};

use crate::{Document, ReadFailure, ReadFailureKind, Source};

impl Document {
    /// Removes disks from the guest, by their targets or by the ids of their devices, for a conversion. The text is
    /// not changed, and findings about it are not available afterwards.
    ///
    /// # Errors
    /// The name, if no disk has it.
    pub fn remove_disks<'n>(&mut self, names: &'n [String]) -> Result<(), &'n str> {
        let mut removed = BTreeSet::new();
        for name in names {
            let is_called = |disk: &Disk| {
                disk.frontend.target.as_deref() == Some(name)
                    || disk.frontend.alias.as_deref() == Some(name)
            };
            let found = self.domain().disks.iter().position(is_called);
            removed.insert(found.ok_or(name.as_str())?);
        }
        if removed.is_empty() {
            return Ok(());
        }
        let moved = |at: FieldPath| moved(at, &removed);
        match &mut self.source {
            Source::LibvirtXml(source) => {
                remove(&mut source.domain.disks, &removed);
                remove(&mut source.kept.disks, &removed);
                source.source_map = moved_map(&source.source_map, moved);
                source.forget_text();
            }
            Source::QemuCommandLine(source) => {
                remove(&mut source.domain.disks, &removed);
                source.kept.retain_mut(|kept| match moved(kept.at) {
                    Some(at) => {
                        kept.at = at;
                        true
                    }
                    None => false,
                });
                source.source_map = moved_map(&source.source_map, moved);
                source.problems.clear();
            }
            Source::Spec(source) => {
                remove(&mut source.planned.domain.disks, &removed);
                source.planned.source_map = moved_map(&source.planned.source_map, moved);
                source.planned.mistakes.clear();
                source.disks_changed();
            }
        }
        Ok(())
    }
}

impl Document {
    /// Numbers the boot order from 1 if it begins with 0, as QEMU allows and libvirt does not; true if it did.
    pub fn number_boot_order(&mut self) -> bool {
        let disks = &mut self.source.domain_mut().disks;
        let has_zero = disks.iter().any(|disk| disk.frontend.boot_order == Some(0));
        if has_zero {
            let orders = disks
                .iter_mut()
                .filter_map(|disk| disk.frontend.boot_order.as_mut());
            orders.for_each(|order| *order = order.saturating_add(1));
        }
        has_zero
    }

    /// Sets the format of the image of a disk, by the target or the id of its device, or that of every image of a disk that
    /// sets none.
    ///
    /// # Errors
    /// If no disk has the name, or its image has another format.
    pub fn set_format(&mut self, name: Option<&str>, format: Format) -> Result<(), ReadFailure> {
        let mut is_found = name.is_none();
        let mut other = None;
        for document in std::iter::once(&mut self.source)
            .chain(self.further.iter_mut().map(|it| &mut it.source))
        {
            for disk in &mut document.domain_mut().disks {
                let is_called = |it: &Option<String>| it.as_deref() == name && name.is_some();
                let is_own = is_called(&disk.frontend.target) || is_called(&disk.frontend.alias);
                let BackendSource::Image(image) = &mut disk.backend.source else {
                    is_found |= is_own;
                    continue;
                };
                is_found |= is_own;
                match image.format {
                    None if is_own || name.is_none() => image.format = Some(format),
                    Some(set) if is_own && set != format => other = Some(set),
                    _ => {}
                }
            }
        }
        let name = name.unwrap_or_default();
        let message = match other {
            _ if !is_found => format!("no disk is called `{name}`"),
            Some(set) => format!("the image of `{name}` has the format {set}"),
            None => return Ok(()),
        };
        let help = "use the target of a disk, such as vda, or the id of its device";
        Err(ReadFailure {
            kind: ReadFailureKind::Spec,
            span: Span::empty(0),
            message,
            help: Some(help.to_owned()),
            related: Vec::new(),
        })
    }
}

impl Document {
    /// Sets the formats that a command line leaves to QEMU's probing, as the headers in the facts show them. Returns a line
    /// for each: the disk and its format.
    pub fn set_probed_formats(&mut self, host: &HostIndex<'_>) -> Vec<String> {
        let mut set = Vec::new();
        self.for_each_disk_of_command_lines(|disk| {
            let name = disk.name().to_owned();
            let BackendSource::Image(image) = &mut disk.backend.source else {
                return;
            };
            let probed = image.host_path().and_then(|path| {
                let header = host.file(path)?.image.value()?;
                Format::of_qemu_driver(header.probed.value()?)
            });
            let is_probed = image.format.is_none() && image.is_headed_by_its_format();
            if let Some(format) = probed.filter(|_| is_probed) {
                image.format = Some(format);
                set.push(format!(
                    "disk {name}: {format}, the format that QEMU probes"
                ));
            }
        });
        set
    }

    /// Sets the formats that a command line leaves to QEMU's probing, as the same text makes the images with `qemu-img`.
    /// Returns a line for each: the disk and its format.
    pub fn set_made_formats(&mut self) -> Vec<String> {
        let mut set = Vec::new();
        self.for_each_disk_of_command_lines(|disk| {
            let name = disk.name().to_owned();
            if let BackendSource::Image(image) = &mut disk.backend.source
                && let (None, Some(MadeAs::Format(format))) = (image.format, image.made_as)
            {
                image.format = Some(format);
                set.push(format!(
                    "disk {name}: {format}, as the text makes the image"
                ));
            }
        });
        set
    }

    /// Changes the disks of all starts.
    pub(crate) fn for_each_disk_of_command_lines(&mut self, mut change: impl FnMut(&mut Disk)) {
        let further = self.further.iter_mut().map(|it| &mut it.source);
        for source in std::iter::once(&mut self.source).chain(further) {
            if let Source::QemuCommandLine(source) = source {
                source.domain.disks.iter_mut().for_each(&mut change);
            }
        }
    }
}

fn remove<T>(list: &mut Vec<T>, removed: &BTreeSet<usize>) {
    let mut nth = 0;
    list.retain(|_| {
        nth += 1;
        !removed.contains(&(nth - 1))
    });
}

fn moved_map(
    map: &SourceMap<FieldPath>,
    moved: impl Fn(FieldPath) -> Option<FieldPath>,
) -> SourceMap<FieldPath> {
    let mut result = SourceMap::default();
    for (at, place) in map.iter() {
        if let Some(at) = moved(at) {
            result.record(at, place);
        }
    }
    result
}

/// The field after the disks are removed; `None` for a field of one of them.
fn moved(at: FieldPath, removed: &BTreeSet<usize>) -> Option<FieldPath> {
    let number = |nth: usize| {
        let before = removed.range(..nth).count();
        (!removed.contains(&nth)).then(|| nth - before)
    };
    Some(match at {
        FieldPath::Disk(nth, field) => FieldPath::Disk(number(nth)?, field),
        FieldPath::Image(nth, depth, field) => FieldPath::Image(number(nth)?, depth, field),
        FieldPath::Iotune(nth, field) => FieldPath::Iotune(number(nth)?, field),
        _ => at,
    })
}

#[cfg(test)]
mod tests {
    use crate::{losses, read, write};

    #[test]
    fn a_removed_disk_takes_its_losses_along_and_the_others_keep_theirs() {
        let line = "qemu-system-x86_64 -M q35 -hda /srv/a.img \
            -drive file=/srv/b.img,format=raw,if=virtio,locking=off";
        let mut document = read(line).expect("it is a command line");
        assert_eq!(document.remove_disks(&["nobody".to_owned()]), Err("nobody"));
        let names = [document.domain().disks[0].name().to_owned()];
        document.remove_disks(&names).expect("it is the first disk");
        let left = losses(&document);
        let [loss] = left.as_slice() else {
            panic!("the format of the first disk is lost no longer: {left:?}");
        };
        assert_eq!(loss.place.span.slice(line), Some("off"));
        let xml = write::document_xml(&document).expect("it can be written");
        assert!(xml.contains("/srv/b.img") && !xml.contains("/srv/a.img"));
    }
}
