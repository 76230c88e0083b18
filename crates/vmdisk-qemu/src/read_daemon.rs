//! Reads the command line of a storage daemon that serves disks of the guest.

use std::collections::HashMap;

use vmdisk_model::{Backend, BackendSource, CacheMode, DiskField, Domain, FieldPath, Switch};
use vmdisk_source::{ProblemKind, Span};

use crate::device::read::is_on;
use crate::reader::{Reader, number_of};
use crate::syntax::option::WrittenOption;
use crate::syntax::properties::Properties;

/// Queues of an export that says none.
const BY_DEFAULT: u64 = 1;

/// How QEMU writes "as many queues as vCPUs".
const ONE_PER_VCPU: u32 = 65_535;

impl Reader<'_> {
    /// Reads what daemons serve at the sockets of the guest's disks.
    pub(crate) fn read_daemons(&mut self, daemons: &[Vec<WrittenOption>]) {
        if daemons.is_empty() {
            return;
        }
        let mut sockets: HashMap<String, usize> = HashMap::new();
        for (nth, disk) in self.domain.disks.iter().enumerate() {
            if let BackendSource::VhostUser(socket) = &disk.backend.source {
                sockets.entry(socket.path.clone()).or_insert(nth);
            }
        }
        for daemon in daemons {
            self.read_daemon(daemon, &sockets);
        }
    }

    /// Reads one daemon; `sockets` has the disk of each socket.
    fn read_daemon(&mut self, options: &[WrittenOption], sockets: &HashMap<String, usize>) {
        let mut daemon = Reader::new(options);
        daemon.read_names();
        for (option, export) in daemon.of_name("export") {
            let is_vhost = export
                .peek("type")
                .is_some_and(|kind| kind.value.as_str() == "vhost-user-blk");
            let Some(path) = export.peek("addr.path").filter(|_| is_vhost) else {
                continue;
            };
            let served = sockets.get(path.value.as_str()).copied();
            let node = export
                .peek("node-name")
                .and_then(|name| daemon.nodes.get(name.value.as_str()).cloned());
            let (Some(nth), Some(node)) = (served, node) else {
                continue;
            };
            let span = daemon.options[option].span;
            daemon.check_queues(nth, &self.domain, export, span);
            let mut nodes = daemon.read_nodes(nth, node);
            nodes.backend.is_read_only = !is_on(export.peek("writable"));
            let write_cache = if is_on(export.peek("writethrough")) {
                Switch::Off
            } else {
                Switch::On
            };
            daemon.settle_cache(nth, &mut nodes, Some(write_cache));
            if nodes.backend.cache == Some(CacheMode::Writeback)
                && export.peek("writethrough").is_none()
            {
                // Its default, which nobody wrote.
                nodes.backend.cache = None;
            }
            if let Some(property) = export.peek("writethrough") {
                daemon.record(FieldPath::Disk(nth, DiskField::Cache), property);
            }
            let BackendSource::Image(image) = nodes.backend.source else {
                continue;
            };
            let disk = &mut self.domain.disks[nth];
            let source = std::mem::replace(&mut disk.backend.source, BackendSource::Empty);
            let BackendSource::VhostUser(mut socket) = source else {
                disk.backend.source = source;
                continue;
            };
            socket.served = Some(image);
            disk.backend = Backend {
                source: BackendSource::VhostUser(socket),
                ..nodes.backend
            };
        }
        for (at, place) in daemon.map.iter() {
            self.map.record(at, *place);
        }
        self.problems.append(&mut daemon.problems);
        self.kept.append(&mut daemon.kept);
    }

    /// Holds the queues of a disk to those that the daemon has for it.
    fn check_queues(&mut self, nth: usize, guest: &Domain, export: &Properties, span: Span) {
        let written = export.peek("num-queues");
        let offered = match written {
            Some(property) => number_of(property.value.as_str()),
            None => Some(BY_DEFAULT),
        };
        let Some(offered) = offered else {
            return;
        };
        let queues = guest.disks[nth].frontend.queues;
        let queues = queues.filter(|queues| *queues != ONE_PER_VCPU);
        let asked = u64::from(queues.unwrap_or_else(|| guest.queues_by_default()));
        if asked <= offered {
            return;
        }
        let at = FieldPath::Disk(nth, DiskField::Queues);
        let message = format!(
            "the daemon has {offered} {} for a disk that asks for {asked}, which QEMU 7.2 and later refuse",
            if offered == 1 { "queue" } else { "queues" }
        );
        let span = written.map_or(span, |property| property.span);
        let help = format!(
            "write num-queues={asked} on the export, or num-queues={offered} on the device"
        );
        self.problem(ProblemKind::QueueCountRefused, at, span, message)
            .help = Some(help);
    }
}
