//! `-object iothread`: event-loop threads.

use std::collections::BTreeSet;

use vmdisk_facts::Capability;
use vmdisk_model::{
    ControllerField, DefaultIoThread, DiskField, DomainField, FieldPath, IoThread, IoThreadField,
    IoThreadId, IoThreadQueues, Polling, Scope,
};

use crate::json::{Json, JsonObject};
use crate::writer::Writer;

/// The id of an iothread's object, which is libvirt's too.
pub(crate) fn iothread_id(id: IoThreadId) -> String {
    format!("iothread{id}")
}

/// The value of `iothread-vq-mapping`; QEMU distributes queues round-robin over rows without queues.
pub(crate) fn vq_mapping(rows: &[IoThreadQueues]) -> Json {
    let row = |row: &IoThreadQueues| {
        let IoThreadQueues { iothread, queues } = row;
        let mut object = JsonObject::new().with("iothread", iothread_id(*iothread));
        if !queues.is_empty() {
            let queues: Vec<Json> = queues.iter().map(|queue| (*queue).into()).collect();
            object.push("vqs", queues);
        }
        Json::Object(object)
    };
    Json::Array(rows.iter().map(row).collect())
}

impl Writer<'_> {
    /// Writes the guest's iothreads; without a machine also the iothreads that disks refer to.
    pub(crate) fn write_iothreads(&mut self) {
        let domain = self.domain();
        self.write_main_loop();
        let mut written = BTreeSet::new();
        for (nth, thread) in domain.iothreads.iter().enumerate() {
            let IoThread {
                id,
                is_listed: _,
                thread_pool_min,
                thread_pool_max,
                polling,
            } = *thread;
            let at = FieldPath::IoThread(nth, IoThreadField::IoThread);
            if !written.insert(id) {
                self.problem(at, format!("iothread {id} is defined twice"));
                continue;
            }
            let mut object = iothread(id);
            if thread_pool_min.or(thread_pool_max).is_some() {
                self.require(
                    Capability::IothreadThreadPool,
                    at,
                    "the size of a thread pool",
                );
            }
            object.push_some("thread-pool-min", thread_pool_min);
            object.push_some("thread-pool-max", thread_pool_max);
            let Polling { max, grow, shrink } = polling;
            object.push_some("poll-max-ns", max);
            object.push_some("poll-grow", grow);
            object.push_some("poll-shrink", shrink);
            self.object(object, at);
        }
        for (id, at) in self.spoken_of() {
            if written.contains(&id) {
                continue;
            }
            match domain.scope {
                Scope::WholeGuest => {
                    self.problem(at, format!("iothread {id} is not defined"));
                }
                Scope::DisksOnly => {
                    written.insert(id);
                    self.object(iothread(id), at);
                }
            }
        }
    }

    /// Writes the size of the main loop's thread pool.
    fn write_main_loop(&mut self) {
        let Some(DefaultIoThread {
            thread_pool_min,
            thread_pool_max,
        }) = self.domain().default_iothread
        else {
            return;
        };
        if thread_pool_min.or(thread_pool_max).is_none() {
            return;
        }
        let at = FieldPath::Domain(DomainField::DefaultIoThread);
        self.require(
            Capability::IothreadThreadPool,
            at,
            "the size of a thread pool",
        );
        let mut object = JsonObject::new()
            .with("qom-type", "main-loop")
            .with("id", "main-loop");
        object.push_some("thread-pool-min", thread_pool_min);
        object.push_some("thread-pool-max", thread_pool_max);
        self.object(object, at);
    }

    /// The iothreads that disks and controllers use, with their fields.
    fn spoken_of(&self) -> Vec<(IoThreadId, FieldPath)> {
        let domain = self.domain();
        let mut found = Vec::new();
        for (nth, controller) in domain.controllers.iter().enumerate() {
            let at = |field| FieldPath::Controller(nth, field);
            let own = controller.iothread.iter();
            found.extend(own.map(|id| (*id, at(ControllerField::IoThread))));
            let rows = controller.iothread_mapping.iter();
            found.extend(rows.map(|row| (row.iothread, at(ControllerField::IoThreadMapping))));
        }
        for (nth, disk) in domain.disks.iter().enumerate() {
            let at = |field| FieldPath::Disk(nth, field);
            let own = disk.frontend.iothread.iter();
            found.extend(own.map(|id| (*id, at(DiskField::IoThread))));
            let rows = disk.frontend.iothread_mapping.iter();
            found.extend(rows.map(|row| (row.iothread, at(DiskField::IoThreadMapping))));
        }
        found
    }

    /// Reports a problem if the target is known to lack a requirement of `what`.
    pub(crate) fn require(&mut self, capability: Capability, at: FieldPath, what: &str) {
        if !self.can(capability) {
            let row = capability.row();
            self.problem(at, format!("{what} needs QEMU {} or newer", row.since));
        }
    }
}

fn iothread(id: IoThreadId) -> JsonObject {
    JsonObject::new()
        .with("qom-type", "iothread")
        .with("id", iothread_id(id))
}
