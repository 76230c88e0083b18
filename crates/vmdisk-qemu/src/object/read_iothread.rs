//! Reads iothreads, and the mapping of queues to them.

use std::collections::{BTreeMap, HashMap, HashSet};

use vmdisk_model::{
    DefaultIoThread, DomainField, FieldPath, IoThread, IoThreadField, IoThreadId, IoThreadQueues,
    Polling,
};

use crate::index::Index;
use crate::members::{Members, View};
use crate::notes::Notes;

/// The numbers of iothreads, by id.
#[derive(Default)]
pub(crate) struct IoThreadIds<'a> {
    numbers: HashMap<&'a str, IoThreadId>,
    /// Numbers in use.
    taken: HashSet<u32>,
    /// The start of the search for the next free number.
    next: u32,
}

impl<'a> IoThreadIds<'a> {
    /// The number of an iothread: the one in its id, or the next free one.
    pub(crate) fn number(&mut self, id: &'a str) -> IoThreadId {
        if let Some(number) = self.numbers.get(id) {
            return *number;
        }
        let taken = &self.taken;
        let own = id
            .strip_prefix("iothread")
            .and_then(|number| number.parse().ok())
            .filter(|number| *number > 0 && !taken.contains(number));
        let number = own.unwrap_or_else(|| {
            // The search only moves upwards, so each number is visited once.
            let counted = u32::try_from(taken.len()).unwrap_or(u32::MAX - 1) + 1;
            let free = (counted.max(self.next)..=u32::MAX)
                .find(|number| !taken.contains(number))
                .unwrap_or(u32::MAX);
            self.next = free;
            free
        });
        self.taken.insert(number);
        self.numbers.insert(id, IoThreadId(number));
        IoThreadId(number)
    }
}

impl IoThreadIds<'_> {
    /// The ids, by number.
    pub(crate) fn names(&self) -> BTreeMap<IoThreadId, String> {
        let names = self.numbers.iter();
        names
            .map(|(id, number)| (*number, (*id).to_owned()))
            .collect()
    }
}

/// Reads the iothreads, in order.
pub(crate) fn read_iothreads<'a>(
    index: &Index<'a>,
    ids: &mut IoThreadIds<'a>,
    notes: &mut Notes<'_>,
) -> Vec<IoThread> {
    let mut threads = Vec::new();
    for (option, properties) in index.objects("iothread") {
        let Some(id) = properties.take("id") else {
            continue;
        };
        let nth = threads.len();
        let at = |field| FieldPath::IoThread(nth, field);
        notes.record_option(at(IoThreadField::IoThread), option);
        notes.record(at(IoThreadField::Id), id);
        let number = ids.number(id.value.as_str());
        let mut pool = |key: &str| {
            let property = properties.take(key)?;
            notes.number32(at(IoThreadField::IoThread), property)
        };
        let thread_pool_min = pool("thread-pool-min");
        let thread_pool_max = pool("thread-pool-max");
        let mut poll = |key: &str| {
            let property = properties.take(key)?;
            notes.number(at(IoThreadField::Polling), property)
        };
        let polling = Polling {
            max: poll("poll-max-ns"),
            grow: poll("poll-grow"),
            shrink: poll("poll-shrink"),
        };
        threads.push(IoThread {
            thread_pool_min,
            thread_pool_max,
            polling,
            ..IoThread::new(number)
        });
    }
    threads
}

/// Reads the size of the main loop's thread pool; the last one counts.
pub(crate) fn read_main_loop(index: &Index<'_>, notes: &mut Notes<'_>) -> Option<DefaultIoThread> {
    let at = FieldPath::Domain(DomainField::DefaultIoThread);
    let mut main_loop = None;
    for (option, properties) in index.objects("main-loop") {
        notes.record_option(at, option);
        let mut pool = |key: &str| {
            let property = properties.take(key)?;
            notes.number32(at, property)
        };
        main_loop = Some(DefaultIoThread {
            thread_pool_min: pool("thread-pool-min"),
            thread_pool_max: pool("thread-pool-max"),
        });
    }
    main_loop
}

/// `iothread-vq-mapping`: the iothread of each queue.
pub(crate) fn read_vq_mapping<'a>(
    properties: Members<'a>,
    at: FieldPath,
    ids: &mut IoThreadIds<'a>,
    notes: &mut Notes<'_>,
) -> Vec<IoThreadQueues> {
    let mut rows = Vec::new();
    // A row without queues has no effect on the others.
    properties.accept(&["iothread-vq-mapping"]);
    let view = View::whole(properties).inside("iothread-vq-mapping");
    for row in 0_usize.. {
        let row = view.inside(&row.to_string());
        let Some(property) = row.take("iothread") else {
            break;
        };
        notes.record(at, property);
        let iothread = ids.number(property.value.as_str());
        let mut queues = Vec::new();
        for queue in 0_usize.. {
            let Some(property) = row.take(&format!("vqs.{queue}")) else {
                break;
            };
            queues.extend(notes.number32(at, property));
        }
        rows.push(IoThreadQueues { iothread, queues });
    }
    rows
}
