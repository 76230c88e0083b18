//! Reads iothreads, throttle groups and the guest's memory.

use vmdisk_model::{
    Bytes, DefaultIoThread, DiskField, DomainField, FieldPath, HugePages, IoThread, IoThreadField,
    Iotune, LimitField, MemoryAccess, MemorySource, Polling,
};
use vmdisk_source::ProblemKind;

use crate::device::read::is_on;
use crate::reader::{Reader, number_of};
use crate::syntax::properties::{Properties, Property};

impl<'a> Reader<'a> {
    /// Reads the iothreads, in order.
    pub(crate) fn read_iothreads(&mut self) {
        for (option, properties) in self.of_name("object") {
            let is_iothread = properties
                .peek("qom-type")
                .is_some_and(|kind| kind.value.as_str() == "iothread");
            let Some(id) = properties.get("id").filter(|_| is_iothread) else {
                continue;
            };
            let nth = self.domain.iothreads.len();
            let at = |field| FieldPath::IoThread(nth, field);
            self.record_option(at(IoThreadField::IoThread), option);
            self.record(at(IoThreadField::Id), id);
            let number = self.iothread(id.value.as_str());
            let mut pool = |key: &str| {
                let property = properties.get(key)?;
                self.number32(at(IoThreadField::IoThread), property)
            };
            let thread_pool_min = pool("thread-pool-min");
            let thread_pool_max = pool("thread-pool-max");
            let mut poll = |key: &str| {
                let property = properties.get(key)?;
                self.number(at(IoThreadField::Polling), property)
            };
            let polling = Polling {
                max: poll("poll-max-ns"),
                grow: poll("poll-grow"),
                shrink: poll("poll-shrink"),
            };
            self.domain.iothreads.push(IoThread {
                thread_pool_min,
                thread_pool_max,
                polling,
                ..IoThread::new(number)
            });
        }
        self.read_main_loop();
    }

    /// Reads the size of the main loop's thread pool.
    fn read_main_loop(&mut self) {
        for (option, properties) in self.of_name("object") {
            let kind = properties.peek("qom-type").map(|kind| kind.value.as_str());
            if kind != Some("main-loop") {
                continue;
            }
            let at = FieldPath::Domain(DomainField::DefaultIoThread);
            self.record_option(at, option);
            let mut pool = |key: &str| {
                let property = properties.get(key)?;
                self.number32(at, property)
            };
            self.domain.default_iothread = Some(DefaultIoThread {
                thread_pool_min: pool("thread-pool-min"),
                thread_pool_max: pool("thread-pool-max"),
            });
        }
    }

    /// The name of the guest's group that a filter names by its object.
    pub(crate) fn filter_group(&mut self, nth: usize, id: &'a Property) -> String {
        let word = id.value.as_str();
        if !self.objects.contains_key(word) {
            let at = FieldPath::Disk(nth, DiskField::ThrottleFilters);
            let message = format!("no throttle group is called `{word}`");
            self.problem(ProblemKind::MissingValue, at, id.span, message)
                .help = Some("write its -object throttle-group".to_owned());
        }
        self.group_name(word)
    }

    /// The name of a group: its id, without what libvirt and our writer put in front.
    fn group_name(&mut self, id: &'a str) -> String {
        if let Some(name) = self.filter_groups.get(id) {
            return name.clone();
        }
        let short = ["limits-", "throttle-"]
            .iter()
            .find_map(|start| id.strip_prefix(start))
            .filter(|short| !short.is_empty())
            .unwrap_or(id);
        let is_taken = self.filter_names.contains(short);
        let name = if is_taken { id } else { short }.to_owned();
        self.filter_names.insert(name.clone());
        self.filter_groups.insert(id, name.clone());
        name
    }

    /// Reads the guest's own throttle groups: those that disks name as filters, and those that no disk
    /// names.
    pub(crate) fn read_throttle_limits(&mut self) {
        for (option, properties) in self.of_name("object") {
            let kind = properties.peek("qom-type").map(|kind| kind.value.as_str());
            let Some(id) = properties
                .peek("id")
                .filter(|_| kind == Some("throttle-group"))
            else {
                continue;
            };
            if self.owners.contains_key(&option) {
                // The limits of one disk, or of several that have them as their own.
                continue;
            }
            let name = self.group_name(id.value.as_str());
            let nth = self.domain.throttle_groups.len();
            let at = FieldPath::ThrottleGroup(nth, LimitField::Limits);
            self.owners.insert(option, at);
            self.record_option(at, option);
            self.record(FieldPath::ThrottleGroup(nth, LimitField::Group), id);
            let limits = limits_of(properties);
            self.domain.throttle_groups.push(Iotune {
                group: Some(name),
                ..limits.unwrap_or_default()
            });
        }
    }

    /// Reads the group that a throttle node names.
    pub(crate) fn read_throttle_group(&mut self, nth: usize, name: &'a Property) -> Option<Iotune> {
        let id = name.value.as_str();
        let Some(option) = self.objects.get(id).copied() else {
            let at = FieldPath::Disk(nth, DiskField::Iotune);
            let message = format!("no throttle group is called `{id}`");
            self.problem(ProblemKind::MissingValue, at, name.span, message)
                .help = Some("write its -object throttle-group".to_owned());
            return None;
        };
        let properties = self.properties(option)?;
        self.owners
            .entry(option)
            .or_insert(FieldPath::Disk(nth, DiskField::Iotune));
        let iotune = limits_of(properties);
        // The name that the writer makes of a disk's own limits is no group of several.
        let group = (!id.starts_with("throttle-")).then(|| {
            let name = id.strip_prefix("group-").unwrap_or(id);
            name.to_owned()
        });
        Some(Iotune {
            group,
            ..iotune.unwrap_or_default()
        })
    }

    /// Reads how the guest's memory is backed.
    pub(crate) fn read_memory_backing(&mut self) {
        let options = self.of_name("machine").into_iter().chain(self.of_name("M"));
        // The last one counts.
        let named: Option<&'a Property> = options
            .rev()
            .find_map(|(_, machine)| machine.peek("memory-backend"));
        let cells: Vec<&'a Property> = self
            .of_name("numa")
            .into_iter()
            .filter_map(|(_, numa)| numa.peek("memdev"))
            .collect();
        if let Some(name) = named {
            if let Some(access) = self.read_memory_object(name) {
                self.domain.memory_backing.access = access;
            }
            return;
        }
        for name in cells {
            if let Some(access) = self.read_memory_object(name) {
                self.domain.memory_backing.cell_access.push(access);
            }
        }
    }

    /// Reads one memory object, and hands back who may map it.
    fn read_memory_object(&mut self, name: &'a Property) -> Option<Option<MemoryAccess>> {
        let option = self.objects.get(name.value.as_str()).copied()?;
        let properties: &'a Properties = self.properties(option)?;
        let at = FieldPath::Domain;
        self.record_option(at(DomainField::MemoryBacking), option);
        let kind = properties.peek("qom-type")?;
        let backing = &mut self.domain.memory_backing;
        let path = properties.peek("mem-path").map(|path| path.value.as_str());
        let has_huge_pages = is_on(properties.peek("hugetlb"))
            || path.is_some_and(|path| path.contains("hugepages") || path.contains("hugetlbfs"));
        if has_huge_pages {
            let size = properties.peek("hugetlbsize");
            let size = size.and_then(|size| size_of(size.value.as_str(), 1));
            let sizes = backing.huge_pages.get_or_insert_with(HugePages::default);
            if let Some(size) = size.filter(|size| !sizes.page_sizes.contains(size)) {
                sizes.page_sizes.push(size);
            }
        }
        match kind.value.as_str() {
            "memory-backend-memfd" => backing.source = Some(MemorySource::Memfd),
            "memory-backend-file" if !has_huge_pages => backing.source = Some(MemorySource::File),
            _ => {}
        }
        self.record(at(DomainField::MemorySource), kind);
        let share = properties.peek("share");
        if let Some(share) = share {
            self.record(at(DomainField::MemoryAccess), share);
        }
        Some(share.map(|share| {
            if is_on(Some(share)) {
                MemoryAccess::Shared
            } else {
                MemoryAccess::Private
            }
        }))
    }
}

/// The limits that a throttle group's object has.
fn limits_of(properties: &Properties) -> Option<Iotune> {
    properties.get("qom-type");
    properties.get("id");
    iotune_of(|limit| {
        properties
            .get(&format!("limits.{limit}"))
            .or_else(|| properties.get(&format!("x-{limit}")))
    })
}

/// The limits of a throttle group, by QEMU's names; `None` if there are none.
pub(crate) fn iotune_of<'p>(get: impl Fn(&str) -> Option<&'p Property>) -> Option<Iotune> {
    let mut iotune = Iotune::default();
    for (field, limit) in iotune.limits_mut() {
        let property = vmdisk_fields::limit(field).and_then(|row| get(row.qemu));
        *limit = property.and_then(|property| number_of(property.value.as_str()));
    }
    (iotune != Iotune::default()).then_some(iotune)
}

/// A size with QEMU's units; `default` is the unit of a bare number.
pub(crate) fn size_of(text: &str, default: u64) -> Option<Bytes> {
    let is_bare = text.bytes().all(|digit| digit.is_ascii_digit());
    let size = Bytes::parse(text).ok()?;
    let scale = if is_bare { default } else { 1 };
    size.0.checked_mul(scale).map(Bytes)
}
