//! Places of the fields of a guest.

use vmdisk_document::{Entry, Node, Value};
use vmdisk_fields::{DISK_FIELDS, IMAGE_FIELDS, LIMIT_FIELDS, disk, image as image_row};
use vmdisk_model::{DiskField, DomainField, FieldPath, ImageField, IoThreadField, LimitField};
use vmdisk_source::{Place, SourceMap, Span};

use super::speller::{GUEST, key_of};
use crate::spec::BackendSpec;

/// The places of a guest whose disks have these numbers in the list of the spec.
pub(super) fn source_map(text: &str, root: &Node, numbers: &[usize]) -> SourceMap<FieldPath> {
    let mut places = Places {
        text,
        map: SourceMap::default(),
    };
    let guest = root.member("guest");
    let whole = guest.map_or(Span::empty(root.span.start), member_span);
    places.record(FieldPath::Domain(DomainField::Domain), whole);
    for (key, field) in GUEST {
        places.value(
            guest.and_then(|guest| guest.node.member(key)),
            FieldPath::Domain(*field),
        );
    }
    let iothreads = guest.and_then(|guest| guest.node.member("iothreads"));
    for (nth, thread) in iothreads
        .into_iter()
        .flat_map(|it| it.node.items())
        .enumerate()
    {
        places.record(
            FieldPath::IoThread(nth, IoThreadField::IoThread),
            thread.span,
        );
        for (key, field) in [
            ("thread-pool-min", IoThreadField::ThreadPoolMin),
            ("thread-pool-max", IoThreadField::ThreadPoolMax),
            ("poll-max-ns", IoThreadField::Polling),
        ] {
            places.value(thread.member(key), FieldPath::IoThread(nth, field));
        }
    }
    let disks = root.member("disks");
    places.value(disks, FieldPath::Domain(DomainField::Devices));
    for (nth, number) in numbers.iter().enumerate() {
        if let Some(disk) = disks.and_then(|disks| disks.node.item(*number)) {
            places.disk(nth, disk);
        }
    }
    places.map
}

fn member_span(member: &Entry) -> Span {
    Span::new(
        member.key_span.start,
        member.node.span.end.max(member.key_span.end),
    )
}

struct Places<'t> {
    text: &'t str,
    map: SourceMap<FieldPath>,
}

impl Places<'_> {
    /// Notes a place; of more than one line, the first line is shown.
    fn record(&mut self, at: FieldPath, whole: Span) {
        let first_line = whole.slice(self.text).unwrap_or_default().lines().next();
        let length = first_line.unwrap_or_default().trim_end().len();
        let span = Span::new(whole.start, whole.start + length);
        let place = Place {
            span,
            whole,
            attributes_end: None,
        };
        self.map.record(at, place);
    }

    /// Notes the value of a key, if it is written; of a list or group, the key with it.
    fn value(&mut self, member: Option<&Entry>, at: FieldPath) {
        let Some(member) = member else { return };
        let is_group = !member.node.items().is_empty() || !member.node.members().is_empty();
        let span = if is_group || member.node.span.is_empty() {
            member_span(member)
        } else {
            member.node.span
        };
        self.record(at, span);
    }

    fn disk(&mut self, nth: usize, node: &Node) {
        self.record(FieldPath::Disk(nth, DiskField::Disk), node.span);
        for field in DISK_FIELDS {
            let member = disk(*field).spec.and_then(|key| node.member(key));
            self.value(member, FieldPath::Disk(nth, *field));
        }
        self.value(
            node.member("iothread"),
            FieldPath::Disk(nth, DiskField::IoThreadMapping),
        );
        let iotune = node.member("iotune");
        self.value(iotune, FieldPath::Iotune(nth, LimitField::Limits));
        for field in LIMIT_FIELDS {
            let at = FieldPath::Iotune(nth, *field);
            let key = key_of(at).unwrap_or_default();
            self.value(iotune.and_then(|iotune| iotune.node.member(&key)), at);
        }
        let kinds = BackendSpec::KINDS.iter();
        if let Some(backend) = kinds.copied().find_map(|kind| node.member(kind)) {
            self.backend(nth, backend);
        }
    }

    fn backend(&mut self, nth: usize, backend: &Entry) {
        let at = |field| FieldPath::Disk(nth, field);
        self.record(at(DiskField::Source), member_span(backend));
        self.record(at(DiskField::SourceType), backend.key_span);
        self.value(backend.node.member("as"), at(DiskField::Device));
        self.value(backend.node.member("socket"), at(DiskField::SocketPath));
        self.value(backend.node.member("reconnect"), at(DiskField::Reconnect));
        self.value(
            backend.node.member("reconnect-timeout"),
            at(DiskField::Reconnect),
        );
        if let "raw" | "qcow2" = backend.key.as_str() {
            self.record(
                FieldPath::Image(nth, 0, ImageField::Format),
                backend.key_span,
            );
        }
        self.image(nth, 0, backend.node.member("serves").unwrap_or(backend));
    }

    fn image(&mut self, disk: usize, depth: usize, image: &Entry) {
        let at = |field| FieldPath::Image(disk, depth, field);
        self.record(at(ImageField::Image), member_span(image));
        self.record(at(ImageField::Source), member_span(image));
        for field in IMAGE_FIELDS {
            let member = image_row(*field)
                .spec
                .and_then(|key| image.node.member(key));
            self.value(member, at(*field));
        }
        self.value(image.node.member("volume"), at(ImageField::Path));
        let chain = image.node.member("backing-chain");
        if let Some(Value::List(items)) = chain.map(|chain| &chain.node.value) {
            for (nth, item) in items.iter().enumerate() {
                let at = |field| FieldPath::Image(disk, nth + 1, field);
                self.record(at(ImageField::Image), item.span);
                self.record(at(ImageField::Source), item.span);
                self.value(item.member("path"), at(ImageField::Path));
                self.value(item.member("format"), at(ImageField::Format));
            }
        }
        if let Some(backing) = image.node.member("backing") {
            self.image(disk, depth + 1, backing);
        }
    }
}
