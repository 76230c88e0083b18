//! Parts of a document that its model does not hold, and that a conversion would lose.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_fields::{phrase, setting};
use vmdisk_libvirt::UnmodeledContent;
use vmdisk_model::{
    BackendSource, ControllerField, Device, Disk, DiskField, Domain, DomainField, FieldPath,
    Format, Image, ImageField, Protocol, Scope, SecretReference, Switch,
};
use vmdisk_qemu::NameObstacle;
use vmdisk_rule::Problem;
use vmdisk_source::Span;

use crate::{Document, Source, TextPlace};

/// Something that a conversion would not carry over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The part, in the terms of the document.
    pub what: String,
    /// The field it belongs to.
    pub at: FieldPath,
    /// Where it stands.
    pub place: TextPlace,
    /// True if the guest would see other data, or another machine, without it.
    pub changes_guest: bool,
}

impl Loss {
    /// A loss at the place of a field.
    fn at(document: &Document, at: FieldPath, what: String, changes_guest: bool) -> Self {
        Self {
            what,
            at,
            place: document.place(at),
            changes_guest,
        }
    }

    /// A loss at a place inside a field.
    fn inside(
        document: &Document,
        at: FieldPath,
        span: Span,
        what: String,
        changes_guest: bool,
    ) -> Self {
        Self {
            what,
            at,
            place: document.place_of_span(at, span, true),
            changes_guest,
        }
    }

    /// The setting that avoids the loss, in the syntax of the document.
    pub fn help(&self, document: &Document) -> Option<String> {
        if document.template().is_some() {
            return Some("convert what the template renders to".to_owned());
        }
        let (nth, depth) = match self.at {
            FieldPath::Image(nth, depth, ImageField::Format) => (nth, depth),
            FieldPath::Disk(nth, DiskField::Source) => {
                return obstacle_of(document, nth).map(|obstacle| match obstacle {
                    NameObstacle::Password => {
                        "remove the password from the address, and define it as a secret in libvirt"
                            .to_owned()
                    }
                    NameObstacle::Option(key) => format!("remove `{key}` from the address"),
                });
            }
            _ => return None,
        };
        let disk = document.domain().disks.get(nth);
        let image = disk.and_then(|disk| disk.backend.image()?.chain().nth(depth));
        let format = image.and_then(Image::format_by_name);
        let format = setting(self.at, format.unwrap_or(Format::Qcow2));
        Some(document.render(&phrase!(
            "use {format}, or `raw` if the image is raw",
            format
        )))
    }
}

/// Properties of disks and controllers that tune and secure, and without which the guest still finds
/// the same disks with the same data.
const TUNING_KEYS: &[&str] = &[
    "acpi-index",
    "addr",
    "ats",
    "bus",
    "config-wce",
    "disable-legacy",
    "disable-modern",
    "event_idx",
    "failover_pair_id",
    "index",
    "indirect_desc",
    "ioeventfd",
    "iommu",
    "iommu_platform",
    "locking",
    "mirror",
    "packed",
    "page-per-vq",
    "page_per_vq",
    "port",
    "privateData",
    "request-merging",
    "romfile",
    "seclabel",
    "seg-max-adjust",
    "snapshot",
    "startupPolicy",
    "vectors",
];

/// Everything about disks and controllers that a document says beyond its model, and what else it says.
///
/// Written back in the format that it was read from, a libvirt document loses nothing; see
/// [`write::document_xml`](crate::write::document_xml).
pub fn losses(document: &Document) -> Vec<Loss> {
    match &document.source {
        Source::LibvirtXml(source) => {
            let mut losses = Vec::new();
            for (nth, kept) in source.kept.disks.iter().enumerate() {
                let at = FieldPath::Disk(nth, DiskField::Disk);
                let is_without_image = source
                    .domain
                    .disks
                    .get(nth)
                    .is_some_and(|disk| disk.backend.image().is_none());
                losses.extend(of_element(document, at, kept, is_without_image));
            }
            for (nth, kept) in source.kept.controllers.iter().enumerate() {
                let at = FieldPath::Controller(nth, ControllerField::Controller);
                // A controller has no data of its own.
                let of_controller = of_element(document, at, kept, false);
                losses.extend(of_controller.map(|loss| Loss {
                    changes_guest: false,
                    ..loss
                }));
            }
            losses.extend(disks_of_the_host(document, &source.kept.guest));
            losses
        }
        Source::QemuCommandLine(source) => of_command_line(document, source),
        Source::Spec(_) => Vec::new(),
    }
}

/// What a template fills in later: no other syntax has it, and no one knows what the guest is without it.
pub fn filled_in(document: &Document) -> Vec<Loss> {
    let Some(template) = document.template() else {
        return Vec::new();
    };
    let loss = |span: Span, what: String| {
        let mut fields = document.open_fields().into_iter().flatten();
        let is_around = |at: &&FieldPath| document.nearest_place(**at).span.overlaps(span);
        let field = fields.find(is_around).copied();
        let at = field.unwrap_or(FieldPath::Domain(DomainField::Devices));
        Loss::inside(document, at, span, what, true)
    };
    let placeholders = template.placeholders.iter();
    let placeholders = placeholders.map(|it| loss(it.span, format!("the value of `{}`", it.name)));
    let choices = template.choices.iter().map(|choice| {
        let condition = choice.condition.slice(&document.text).unwrap_or_default();
        loss(
            choice.condition,
            format!("the text after `{}`", condition.trim()),
        )
    });
    placeholders.chain(choices).collect()
}

/// The disks among the arguments that libvirt passes to QEMU unread. Only another libvirt domain, and a command line with
/// [these arguments](passed_arguments), have them.
pub fn disks_passed_through(document: &Document) -> Vec<Loss> {
    let Source::LibvirtXml(source) = &document.source else {
        return Vec::new();
    };
    let at = FieldPath::Domain(DomainField::Devices);
    let disks = source.passthrough.disks.iter();
    let losses = disks.map(|(option, _, span)| {
        let what = format!("the disk of `{option}`, which libvirt passes to QEMU unread,");
        Loss::inside(document, at, *span, what, true)
    });
    losses.collect()
}

/// The arguments that libvirt passes to QEMU unread; a command line of the guest ends with them.
pub fn passed_arguments(document: &Document) -> &[String] {
    match &document.source {
        Source::LibvirtXml(source) => &source.passthrough.arguments,
        Source::QemuCommandLine(_) | Source::Spec(_) => &[],
    }
}

fn of_command_line(document: &Document, source: &vmdisk_qemu::Document) -> Vec<Loss> {
    let sources = source.domain.disks.iter().enumerate();
    let probed = sources.clone().filter(|(_, disk)| is_probed(disk));
    let probed = probed.map(|(nth, disk)| {
        let at = FieldPath::Image(nth, 0, ImageField::Format);
        let what = "the image format, which is not set and which QEMU probes,".to_owned();
        // Images in CD drives are almost always raw.
        let changes_guest = disk.frontend.effective_device() != Device::Cdrom;
        Loss::at(document, at, what, changes_guest)
    });
    let unnamed = sources.filter(|(_, disk)| has_other_source(disk));
    let unnamed: BTreeMap<usize, String> = unnamed
        .map(|(nth, disk)| (nth, other_source(document, nth, disk)))
        .collect();
    // The options of such a source say nothing more.
    let is_of_unnamed = |at: FieldPath| {
        let nth = at.disk().filter(|nth| unnamed.contains_key(nth));
        nth.is_some() && !matches!(at, FieldPath::Iotune(..))
    };
    unnamed
        .iter()
        .map(|(nth, what)| {
            let at = FieldPath::Disk(*nth, DiskField::Source);
            Loss::at(document, at, what.clone(), true)
        })
        .chain(probed)
        .chain(write_cache_bits(document, &source.domain))
        .chain(secrets(document, &source.domain))
        .chain(keyrings(document, &source.domain))
        .chain(
            source
                .kept
                .iter()
                .filter(|kept| !is_of_unnamed(kept.at))
                .map(|kept| {
                    let reasons = match kept.is_open {
                        true => {
                            let reasons = reasons(source, kept.span);
                            format!(", whose value a variable sets{reasons},")
                        }
                        false => String::new(),
                    };
                    // An empty drive has nothing to lose.
                    let changes_guest = !kept.is_tuning
                        && (kept.key.starts_with("file")
                            || kept.is_open
                            || !is_of_empty_drive(&source.domain, kept.at));
                    let what = format!("`{}`{reasons}", kept.key);
                    Loss::inside(document, kept.at, kept.span, what, changes_guest)
                }),
        )
        .chain(unread_words(document, source))
        .collect()
}

/// Words that could not be read, which may be disks.
fn unread_words<'a>(
    document: &'a Document,
    source: &'a vmdisk_qemu::Document,
) -> impl Iterator<Item = Loss> + 'a {
    let with_data = source.others.iter().filter(|other| other.has_data);
    with_data.map(|other| {
        let at = FieldPath::Domain(DomainField::Devices);
        // Text that is not JSON has a problem that says so.
        let is_inside = |problem: &&Problem| {
            other.span.start <= problem.span.start && problem.span.end <= other.span.end
        };
        let problem = source.problems.iter().find(is_inside);
        let unknown = || match reasons(source, other.span) {
            reasons if reasons.is_empty() => reasons,
            reasons => format!(", a word that may be a disk{reasons},"),
        };
        let why = problem.map_or_else(unknown, |problem| {
            let help = problem.help.as_deref().unwrap_or_default();
            format!(", which is {} ({help}),", problem.message)
        });
        Loss::inside(
            document,
            at,
            other.span,
            format!("`{}`{why}", other.name),
            true,
        )
    })
}

/// Why the expansions in a span have no known value.
fn reasons(source: &vmdisk_qemu::Document, span: Span) -> String {
    let reason = |hole: &vmdisk_qemu::Hole| {
        let value = |value: &String| match value.as_str() {
            "" => "nothing".to_owned(),
            value => format!("`{value}`"),
        };
        let values: Vec<String> = hole.values.iter().map(value).collect();
        let values = match values.is_empty() {
            true => String::new(),
            false => format!(": {}", values.join(" or ")),
        };
        format!("`{}`: {}{values}", hole.name, hole.reason)
    };
    let reasons: BTreeSet<String> = source.holes_in(span).map(reason).collect();
    match reasons.is_empty() {
        true => String::new(),
        false => {
            let reasons: Vec<String> = reasons.into_iter().collect();
            format!(" ({})", reasons.join("; "))
        }
    }
}

/// Names of what else a document says and its model does not, each once.
pub fn not_about_disks(document: &Document) -> BTreeSet<String> {
    others(document, true)
}

/// As [`not_about_disks`], for a conversion to libvirt XML by [`write::document_xml`](crate::write::document_xml), which
/// carries firmware on flash over.
pub fn not_about_disks_in_xml(document: &Document) -> BTreeSet<String> {
    others(document, document.domain().scope == Scope::DisksOnly)
}

/// As [`not_about_disks`], for a conversion to a command line that ends with the [`passed_arguments`].
pub fn not_about_disks_in_arguments(document: &Document) -> BTreeSet<String> {
    let mut names = others(document, true);
    if let Source::LibvirtXml(source) = &document.source
        && let Some(line) = names
            .iter()
            .find(|name| name.ends_with(":commandline`"))
            .cloned()
    {
        names.remove(&line);
        if source.passthrough.has_environment {
            names.insert(line.replace(":commandline", ":env"));
        }
    }
    names
}

fn others(document: &Document, with_firmware: bool) -> BTreeSet<String> {
    match &document.source {
        Source::LibvirtXml(source) => source
            .kept
            .guest
            .names()
            .map(|name| format!("`{name}`"))
            .collect(),
        Source::QemuCommandLine(source) => source
            .others
            .iter()
            .filter(|option| !option.has_data && (with_firmware || !option.is_firmware))
            .map(|option| format!("`{}`", option.name))
            .collect(),
        Source::Spec(_) => BTreeSet::new(),
    }
}

/// Switched-off write cache bits of vhost-user-blk, for which libvirt has no word.
fn write_cache_bits<'d>(
    document: &'d Document,
    domain: &'d Domain,
) -> impl Iterator<Item = Loss> + 'd {
    let disks = domain.disks.iter().enumerate();
    let switched_off = disks.filter(|(_, disk)| match &disk.backend.source {
        BackendSource::VhostUser(socket) => socket.config_wce == Some(Switch::Off),
        BackendSource::Image(_) | BackendSource::Empty => false,
    });
    switched_off.map(|(nth, _)| {
        let at = FieldPath::Disk(nth, DiskField::ConfigWce);
        Loss::at(document, at, "`config-wce`".to_owned(), false)
    })
}

/// Devices of the host that a guest uses as its disks, and memory that keeps data.
fn disks_of_the_host<'d>(
    document: &'d Document,
    guest: &'d UnmodeledContent,
) -> impl Iterator<Item = Loss> + 'd {
    let at = FieldPath::Domain(DomainField::Devices);
    guest.elements_with_data().map(move |element| {
        let start = document.text.find(element.text).unwrap_or_default();
        let span = Span::new(start, start + element.text.len());
        let what = format!("`<{}>` of type '{}'", element.name, element.kind);
        Loss::inside(document, at, span, what, true)
    })
}

/// True for a field of a disk without a medium.
fn is_of_empty_drive(domain: &Domain, at: FieldPath) -> bool {
    let disk = at.disk().and_then(|nth| domain.disks.get(nth));
    disk.is_some_and(|disk| matches!(disk.backend.source, BackendSource::Empty))
}

/// The secrets of a command line, which libvirt needs defined.
fn secrets<'d>(document: &'d Document, domain: &'d Domain) -> impl Iterator<Item = Loss> + 'd {
    let images = domain.disks.iter().enumerate().flat_map(|(nth, disk)| {
        let chain = disk.backend.image().into_iter().flat_map(Image::chain);
        chain
            .enumerate()
            .map(move |(depth, image)| (nth, depth, image))
    });
    images.flat_map(move |(nth, depth, image)| {
        image.secrets().filter_map(move |(field, secret)| {
            let name = match &secret.reference {
                SecretReference::Uuid(_) | SecretReference::Usage(_) => return None,
                SecretReference::File { path, .. } => path,
                SecretReference::Object(id) => id,
            };
            let at = FieldPath::Image(nth, depth, field);
            let what =
                format!("the secret `{name}`, which must be defined in libvirt with this usage,");
            Some(Loss::at(document, at, what, false))
        })
    })
}

/// The files with keys of Ceph users in names such as `rbd:pool/image:id=admin:keyring=FILE`.
fn keyrings<'d>(document: &'d Document, domain: &'d Domain) -> impl Iterator<Item = Loss> + 'd {
    let losses = (0..domain.disks.len()).map(|nth| {
        let at = FieldPath::Disk(nth, DiskField::Source);
        Loss::at(document, at, "`keyring`".to_owned(), false)
    });
    losses.filter(|loss| {
        let written = loss.place.span.slice(&document.text).unwrap_or_default();
        written.contains("rbd:") && written.contains(":keyring=")
    })
}

fn is_tuning(name: &str) -> bool {
    let last = name.rsplit(['/', '@']).next().unwrap_or(name);
    last.starts_with("x-") || TUNING_KEYS.binary_search(&last).is_ok()
}

fn has_other_source(disk: &Disk) -> bool {
    match &disk.backend.source {
        BackendSource::Image(image) => image.chain().any(|image| {
            matches!(image.protocol, Protocol::Other(_)) || descriptor_of(image).is_some()
        }),
        // Its `-chardev` is not written, or is not a socket with a path.
        BackendSource::VhostUser(socket) => socket.path.is_empty(),
        // Its node is not written, or not understood.
        BackendSource::Empty => !matches!(
            disk.frontend.effective_device(),
            Device::Cdrom | Device::Floppy
        ),
    }
}

/// The set of descriptors that an image is opened from: only the process that starts QEMU has them.
fn descriptor_of(image: &Image) -> Option<&str> {
    image
        .host_path()
        .filter(|path| path.starts_with("/dev/fdset/"))
}

/// The part of the address of a disk on a command line that keeps it from being read.
fn obstacle_of(document: &Document, nth: usize) -> Option<NameObstacle> {
    let disk = document.domain().disks.get(nth)?;
    let images = disk.backend.image()?.chain().count();
    (0..images).find_map(|depth| {
        let place = document.place(FieldPath::Image(nth, depth, ImageField::Path));
        NameObstacle::in_name(place.span.slice(&document.text)?)
    })
}

/// A source that no other format has, by what is special about it.
fn other_source(document: &Document, nth: usize, disk: &Disk) -> String {
    if disk.backend.socket().is_some() {
        return "the socket, whose `-chardev` is missing or not understood,".to_owned();
    }
    let mut chain = disk.backend.image().into_iter().flat_map(Image::chain);
    if let Some(path) = chain.find_map(descriptor_of) {
        return format!("`{path}`, a descriptor that is passed to QEMU,");
    }
    let mut chain = disk.backend.image().into_iter().flat_map(Image::chain);
    let driver = chain.find_map(|image| match &image.protocol {
        Protocol::Other(driver) if !driver.is_empty() => Some(driver),
        _ => None,
    });
    match (driver, obstacle_of(document, nth)) {
        (_, Some(NameObstacle::Password)) => {
            "the source, whose address contains a password,".to_owned()
        }
        (_, Some(NameObstacle::Option(key))) => {
            format!("the source, whose address has the option `{key}`,")
        }
        (Some(driver), None) => format!("the source, a node of driver `{driver}`,"),
        (None, None) => "the source, which is missing or not understood,".to_owned(),
    }
}

/// True if the top image has no format, which a written one always has.
fn is_probed(disk: &Disk) -> bool {
    disk.backend
        .image()
        .is_some_and(|image| image.format.is_none())
}

fn of_element<'d>(
    document: &'d Document,
    at: FieldPath,
    kept: &'d UnmodeledContent,
    is_without_image: bool,
) -> impl Iterator<Item = Loss> {
    let outer = document.place(at);
    // The kind of a source and its format say nothing where there is none.
    let says_nothing = move |name: &String| {
        is_without_image && matches!(name.as_str(), "@type" | "driver/@type" | "backingStore")
    };
    let names = kept.names().filter(move |name| !says_nothing(name));
    names.map(move |name| {
        let what = match name.rsplit_once('@') {
            Some((path, attribute)) => format!("`{path}@{attribute}`"),
            None => format!("`<{}>`", name.rsplit('/').next().unwrap_or(&name)),
        };
        let span = place_of_name(&document.text, outer.span.start, &name);
        Loss {
            what,
            at,
            place: span.map_or_else(
                || outer.clone(),
                |span| document.place_of_span(at, span, true),
            ),
            changes_guest: !is_tuning(&name),
        }
    })
}

/// The first place behind `start` where an element or attribute of this name is written.
fn place_of_name(text: &str, start: usize, name: &str) -> Option<Span> {
    let last = name.rsplit(['/', '@']).next().unwrap_or(name);
    let mark = if name.contains('@') { " " } else { "<" };
    let found = text.get(start..)?.find(&format!("{mark}{last}"))? + start + 1;
    Some(Span::new(found, found + last.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;
    use vmdisk_facts::{MemberTable, Owner};

    fn changing_guest(text: &str) -> Vec<String> {
        let losses = losses(&read(text).expect("the text is a document"));
        losses
            .iter()
            .filter(|loss| loss.changes_guest)
            .map(|loss| {
                let written = loss.place.span.slice(text).unwrap_or_default();
                format!("{} at {written}", loss.what)
            })
            .collect()
    }

    /// What is said of `$V` in a command line: the name of each loss, and whether it refuses a conversion.
    fn said_of_a_variable(options: &str) -> Vec<(String, bool)> {
        let line = format!("qemu-system-x86_64 {options}");
        let losses = losses(&read(&line).expect("it is a command line"));
        let losses = losses.iter();
        losses
            .map(|loss| (loss.what.clone(), loss.changes_guest))
            .collect()
    }

    #[test]
    fn every_value_that_a_variable_sets_is_named() {
        let drive = "-drive file=/a,format=raw,if=none,id=d";
        let drives: Vec<&str> = vmdisk_qemu::option_keys("drive").collect();
        let table = MemberTable::recorded();
        let devices = table.members(Owner::Device("virtio-blk-pci"));
        let devices = devices.expect("the device is recorded").keys();
        let devices: Vec<&str> = devices.map(String::as_str).collect();
        assert!(drives.len() > 30 && devices.len() > 30);
        let is_name = |key: &&str| matches!(*key, "id" | "node-name" | "drive");
        let of_drive = drives.iter().filter(|key| !is_name(key)).map(|key| {
            let others = ["file=/a", "format=raw", "if=virtio"];
            let others = others
                .iter()
                .filter(|it| !it.starts_with(&format!("{key}=")));
            let others: String = others.map(|it| format!(",{it}")).collect();
            (*key, format!("-drive {key}=$V{others}"))
        });
        let of_device = devices.iter().filter(|key| !is_name(key)).map(|key| {
            let driver = if *key == "driver" {
                ""
            } else {
                "virtio-blk-pci,"
            };
            (*key, format!("{drive} -device {driver}drive=d,{key}=$V"))
        });
        for (key, options) in of_drive.chain(of_device) {
            let said = said_of_a_variable(&options);
            let is_named = said.iter().any(|(what, _)| what.contains(key));
            assert!(is_named, "{options}: {said:?}");
        }
    }

    #[test]
    fn a_variable_that_decides_over_disks_refuses_a_conversion_and_others_do_not() {
        for options in [
            "-drive file=$V,format=raw,if=virtio",
            "-drive file=/a/${V}.img,format=raw,if=virtio",
            "-drive file=/a,format=$V,if=virtio",
            "-drive file=/a,format=raw,if=$V",
            "-drive file=/a,format=raw,if=virtio,media=$V",
            "-drive file=/a,format=raw,if=virtio,index=$V",
            "-drive file=/a,format=raw,if=virtio,snapshot=$V",
            "-drive file=/a,format=raw,if=virtio,readonly=$V",
            "-drive file=/a,format=raw,if=virtio,cache=$V",
            "-drive file=/a,format=raw,if=virtio,cache.direct=$V",
            "-drive file=/a,format=raw,if=virtio,$V",
            "-drive file=/a,format=raw,${V}if=virtio",
            "-drive $V",
            "-hda $V",
            "-cdrom $V",
            "-m $V -drive file=/a,format=raw,if=virtio",
            "-M $V -drive file=/a,format=raw,if=virtio",
            "-blockdev driver=file,node-name=f,filename=$V -device virtio-blk-pci,drive=f",
        ] {
            let said = said_of_a_variable(options);
            assert!(
                said.iter().any(|(_, refuses)| *refuses),
                "{options}: {said:?}"
            );
        }
        let disk = "-drive file=/a,format=raw,if=virtio";
        for (options, key) in [
            ("-smp $V", "cpus"),
            ("-name $V", "guest"),
            ("-uuid $V", "uuid"),
            ("-accel $V", "accel"),
        ] {
            let expected = format!(
                "`{key}`, whose value a variable sets (`$V`: nothing in the file sets it),"
            );
            let said = said_of_a_variable(&format!("{options} {disk}"));
            assert_eq!(said, [(expected, false)], "{options}");
        }
        // The variable is the one that `--set` can give a value, and its reason that of its value.
        let script = "I=$1\nqemu-system-x86_64 -hda \"$I\"\n";
        let found = losses(&read(script).expect("it is a command line"));
        let why = "`file`, whose value a variable sets (`$I`: it is an argument of the script),";
        assert!(found.iter().any(|it| it.what == why), "{found:?}");
        // No shell reads the arguments of a process.
        let process = "qemu-system-x86_64\0-drive\0file=/a$V,format=raw,if=virtio\0";
        assert_eq!(losses(&read(process).expect("it is a command line")), []);
    }

    #[test]
    fn tuning_keys_are_sorted() {
        assert!(TUNING_KEYS.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn what_decides_over_the_data_is_a_change_of_the_guest_and_tuning_is_not() {
        let xml = "<disk type='file'><driver name='qemu' type='raw' ioeventfd='on'/>\
            <source file='/a'><compression/><seclabel relabel='no'/></source><target dev='vda'/></disk>";
        assert_eq!(changing_guest(xml), ["`<compression>` at compression"]);
        let line = "-blockdev driver=file,node-name=f,filename=/a \
            -blockdev driver=luks,node-name=l,file=f,key-secret=s -device virtio-blk-pci,drive=l,ioeventfd=on";
        let [secret] = &losses(&read(line).expect("it is a command line"))[..] else {
            panic!("libvirt knows nothing of the secret")
        };
        assert_eq!(
            (secret.place.span.slice(line), secret.changes_guest),
            (Some("s"), false)
        );
        let network = "-drive file=nbd:nowhere,if=virtio,format=raw";
        assert_eq!(changing_guest(network).len(), 1);
        let elsewhere = "qemu-system-x86_64 -readconfig vm.cfg";
        assert_eq!(
            changing_guest(elsewhere),
            ["`readconfig` at -readconfig vm.cfg"]
        );
        let empty = "<disk type='file' device='cdrom'><driver name='qemu' type='raw'/>\
            <target dev='sda' bus='sata'/></disk>";
        assert_eq!(
            changing_guest(empty).len(),
            0,
            "an empty drive has nothing to lose"
        );
        let probed = "-hda /srv/a.img -cdrom /srv/b.iso";
        assert_eq!(
            changing_guest(probed).len(),
            1,
            "a CD drive's format is a lesser loss"
        );
    }
}
