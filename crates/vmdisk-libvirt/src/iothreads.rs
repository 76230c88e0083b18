//! `<iothreads>` and `<iothreadids>`: the number of event-loop threads, and their ids.

use std::collections::BTreeSet;

use vmdisk_model::{DefaultIoThread, DomainField, FieldPath, IoThread, IoThreadId, Polling};
use vmdisk_rule::reading::INVALID_VALUE;

use crate::element::Element;
use crate::polling;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::unsigned32;
use crate::vocabulary::FieldOwner;
use crate::writer::Writer;

const COUNT: UnmodeledPath = UnmodeledPath::path("iothreads");
const IDS: UnmodeledPath = UnmodeledPath::path("iothreadids");
const ID: &str = "iothreadids/iothread";
const DEFAULT: UnmodeledPath = UnmodeledPath::path("defaultiothread");

/// A larger number is a typing error, and a model of so many iothreads would exhaust the memory.
const MAX_IOTHREADS: u32 = 65536;

/// Reads the iothreads: first the listed ones, then the remaining ones of the count, which get the smallest free ids
/// from libvirt.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    domain: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> Vec<IoThread> {
    let mut threads = read_listed(reader, domain, kept);
    let Some(element) = reader.child(domain, "iothreads") else {
        return threads;
    };
    let text = element.content();
    let (at, tag) = (element.at, element.tag);
    let mut parts = reader.close(element);
    let mut count = unsigned32(text.trim());
    if let Some(number) = count.filter(|count| *count > MAX_IOTHREADS) {
        let message = format!("{number} iothreads are more than the limit ({MAX_IOTHREADS})");
        reader.problem(&INVALID_VALUE, at, tag, message);
        count = None;
    }
    match count {
        Some(count) => {
            let taken: BTreeSet<u32> = threads.iter().map(|thread| thread.id.0).collect();
            let missing = (count as usize).saturating_sub(threads.len());
            let free = (1..).filter(|id| !taken.contains(id)).take(missing);
            threads.extend(free.map(|id| IoThread::new(IoThreadId(id))));
        }
        None => parts.text = Some(text),
    }
    kept.note(COUNT, parts);
    threads
}

fn read_listed(
    reader: &mut Reader<'_>,
    domain: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> Vec<IoThread> {
    let mut threads = Vec::new();
    let Some(mut list) = reader.child(domain, "iothreadids") else {
        return threads;
    };
    for node in list.children("iothread") {
        let Some(id) = node.attribute("id").and_then(unsigned32) else {
            list.give_back(node);
            continue;
        };
        let owner = FieldOwner::nth(threads.len());
        let mut element = reader.open_child(&list, node, owner);
        element.take_known("id");
        let mut thread = IoThread::new(IoThreadId(id));
        thread.is_listed = true;
        thread.thread_pool_min = element.take("thread_pool_min", unsigned32);
        thread.thread_pool_max = element.take("thread_pool_max", unsigned32);
        thread.polling = polling::read(reader, &mut element, threads.len(), kept);
        kept.note(UnmodeledPath::nth(ID, threads.len()), reader.close(element));
        threads.push(thread);
    }
    kept.note(IDS, reader.close(list));
    threads
}

/// Writes the iothreads: the count, and an element for each iothread that needs one.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, threads: &[IoThread], kept: &'k UnmodeledContent) {
    let count = Some(threads.len()).filter(|count| *count > 0);
    writer.text_element("iothreads", count, kept.at(COUNT));
    let needs_element = listed(threads);
    if needs_element.is_empty() && !kept.has_within("iothreadids", 0) {
        return;
    }
    writer.start("iothreadids", kept.at(IDS));
    for (nth, thread) in needs_element.into_iter().enumerate() {
        let IoThread {
            id,
            is_listed: _, // it is now
            thread_pool_min,
            thread_pool_max,
            polling,
        } = thread;
        writer.start("iothread", kept.at(UnmodeledPath::nth(ID, nth)));
        writer.attribute("id", id);
        writer.optional("thread_pool_min", *thread_pool_min);
        writer.optional("thread_pool_max", *thread_pool_max);
        polling::write(writer, polling, nth, kept);
        writer.end();
    }
    writer.end();
}

/// Reads the iothreads that `<cputune>` names; the element is kept. The field's span is the first row with an id that
/// is not among `threads`.
pub(crate) fn read_tuned(
    reader: &mut Reader<'_>,
    domain: &Element<'_>,
    threads: &[IoThread],
) -> Vec<IoThreadId> {
    let mut children = domain.children.iter();
    let Some(cputune) = children.find(|child| child.is_named("cputune")) else {
        return Vec::new();
    };
    let mut place = cputune.node;
    let mut named = BTreeSet::new();
    let mut is_wrong = false;
    for row in cputune.node.children() {
        let ids = match row.name() {
            "iothreadpin" => row
                .attribute("iothread")
                .and_then(unsigned32)
                .map(|id| BTreeSet::from([id])),
            "iothreadsched" => row.attribute("iothreads").and_then(number_set),
            _ => None,
        };
        let ids = ids.unwrap_or_default();
        let is_known = |id: &u32| threads.iter().any(|thread| thread.id.0 == *id);
        if !is_wrong && !ids.iter().all(is_known) {
            is_wrong = true;
            place = row;
        }
        named.extend(ids);
    }
    if !named.is_empty() {
        reader.record_element(FieldPath::Domain(DomainField::CpuTune), place);
    }
    named.into_iter().map(IoThreadId).collect()
}

/// A set of numbers as libvirt writes it: `1-3,^2,7`.
fn number_set(text: &str) -> Option<BTreeSet<u32>> {
    let mut numbers = BTreeSet::new();
    for part in text.split(',').map(str::trim) {
        if let Some(number) = part.strip_prefix('^') {
            numbers.remove(&unsigned32(number)?);
            continue;
        }
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (unsigned32(first)?, unsigned32(last)?);
        if last > MAX_IOTHREADS {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// Reads the options of QEMU's main loop.
pub(crate) fn read_default(
    reader: &mut Reader<'_>,
    domain: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> Option<DefaultIoThread> {
    let mut element = reader.child(domain, "defaultiothread")?;
    let thread = DefaultIoThread {
        thread_pool_min: element.take("thread_pool_min", unsigned32),
        thread_pool_max: element.take("thread_pool_max", unsigned32),
    };
    kept.note(DEFAULT, reader.close(element));
    Some(thread)
}

/// Writes the options of QEMU's main loop.
pub(crate) fn write_default<'k>(
    writer: &mut Writer<'k>,
    thread: Option<&DefaultIoThread>,
    kept: &'k UnmodeledContent,
) {
    let Some(thread) = thread else {
        return;
    };
    let DefaultIoThread {
        thread_pool_min,
        thread_pool_max,
    } = thread;
    writer.start("defaultiothread", kept.at(DEFAULT));
    writer.optional("thread_pool_min", *thread_pool_min);
    writer.optional("thread_pool_max", *thread_pool_max);
    writer.end();
}

/// The iothreads that need an element: listed ones, ones with options, and ones whose id libvirt would not assign by
/// counting.
fn listed(threads: &[IoThread]) -> Vec<&IoThread> {
    let must = |thread: &&IoThread| {
        thread.is_listed
            || thread.thread_pool_min.is_some()
            || thread.thread_pool_max.is_some()
            || thread.polling != Polling::default()
    };
    let taken: BTreeSet<u32> = threads
        .iter()
        .filter(must)
        .map(|thread| thread.id.0)
        .collect();
    let counted: BTreeSet<u32> = threads
        .iter()
        .filter(|thread| !must(thread))
        .map(|thread| thread.id.0)
        .collect();
    let given: BTreeSet<u32> = (1..)
        .filter(|id| !taken.contains(id))
        .take(counted.len())
        .collect();
    threads
        .iter()
        .filter(|thread| must(thread) || given != counted)
        .collect()
}
