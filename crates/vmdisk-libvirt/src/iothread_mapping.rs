//! `driver/iothreads`: the iothread of each virtqueue of a disk or SCSI controller.

use vmdisk_model::{IoThreadId, IoThreadQueues};

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::unsigned32;
use crate::writer::Writer;

const AT: UnmodeledPath = UnmodeledPath::path("driver/iothreads");
const THREAD: &str = "driver/iothreads/iothread";
const QUEUE: &str = "driver/iothreads/iothread/queue";

/// Reads the mapping in a `<driver>`.
///
/// A row or queue without a readable number is kept unchanged.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    driver: &mut Element<'_>,
    kept: &mut UnmodeledContent,
) -> Vec<IoThreadQueues> {
    let Some(mut element) = reader.child(driver, "iothreads") else {
        return Vec::new();
    };
    let mut mapping = Vec::new();
    let mut queue_count = 0;
    for node in element.children("iothread") {
        let has_id = node.attribute("id").and_then(unsigned32).is_some();
        if !has_id {
            element.give_back(node);
            continue;
        }
        let mut row = reader.open_child(&element, node, element.owner);
        let Some(id) = row.take("id", unsigned32) else {
            continue;
        };
        let mut queues = Vec::new();
        for node in row.children("queue") {
            let Some(id) = node.attribute("id").and_then(unsigned32) else {
                row.give_back(node);
                continue;
            };
            let mut queue = reader.open_child(&row, node, row.owner);
            queue.take_known("id");
            kept.note(UnmodeledPath::nth(QUEUE, queue_count), reader.close(queue));
            queue_count += 1;
            queues.push(id);
        }
        kept.note(UnmodeledPath::nth(THREAD, mapping.len()), reader.close(row));
        mapping.push(IoThreadQueues {
            iothread: IoThreadId(id),
            queues,
        });
    }
    kept.note(AT, reader.close(element));
    mapping
}

/// Writes a mapping that has rows.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    mapping: &[IoThreadQueues],
    kept: &'k UnmodeledContent,
) {
    if mapping.is_empty() && kept.at(AT).is_empty() {
        return;
    }
    writer.start("iothreads", kept.at(AT));
    let mut queue_count = 0;
    for (nth, row) in mapping.iter().enumerate() {
        let IoThreadQueues { iothread, queues } = row;
        writer.start("iothread", kept.at(UnmodeledPath::nth(THREAD, nth)));
        writer.attribute("id", iothread);
        for queue in queues {
            writer.start("queue", kept.at(UnmodeledPath::nth(QUEUE, queue_count)));
            writer.attribute("id", queue);
            writer.end();
            queue_count += 1;
        }
        writer.end();
    }
    writer.end();
}
