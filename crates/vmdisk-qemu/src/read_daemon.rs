//! Reads the command line of a storage daemon that serves disks of the guest.

use std::collections::HashMap;

use vmdisk_model::{Backend, BackendSource, CacheMode, DiskField, Domain, FieldPath, Switch};
use vmdisk_source::Span;

use crate::blockdev::nodes::Nodes;
use crate::blockdev::read::NodeReader;
use crate::index::Index;
use crate::members::{Accepted, Members};
use crate::notes::Notes;
use crate::object::read_throttle::FilterGroups;
use crate::rules::queue_count_refused;
use crate::syntax::option::WrittenOption;
use crate::syntax::value::{is_on, number_of};

/// The default number of queues of an export.
const BY_DEFAULT: u64 = 1;

/// QEMU's value for one queue per vCPU.
const ONE_PER_VCPU: u32 = 65_535;

/// Reads the disks that daemons serve at the sockets of the guest's disks; other options of daemons are ignored.
pub(crate) fn read_daemons(
    daemons: &[Vec<WrittenOption>],
    guest: &mut Domain,
    notes: &mut Notes<'_>,
) {
    let mut sockets: HashMap<String, usize> = HashMap::new();
    for (nth, disk) in guest.disks.iter().enumerate() {
        if let BackendSource::VhostUser(socket) = &disk.backend.source {
            sockets.entry(socket.path.clone()).or_insert(nth);
        }
    }
    for options in daemons {
        read_daemon(options, &sockets, guest, notes);
    }
}

fn read_daemon(
    options: &[WrittenOption],
    sockets: &HashMap<String, usize>,
    guest: &mut Domain,
    notes: &mut Notes<'_>,
) {
    let accepted = Accepted::none_of(options);
    let index = Index::to_read(options, &accepted);
    let mut own = Notes::new(&index);
    let mut groups = FilterGroups::default();
    for (option, export) in index.of_name("export") {
        let served = export.value("addr.path").and_then(|path| sockets.get(path));
        let node = export
            .value("node-name")
            .and_then(|name| index.node(name).cloned());
        let (Some("vhost-user-blk"), Some(&nth), Some(node)) = (export.value("type"), served, node)
        else {
            continue;
        };
        check_queues(nth, guest, export, index.span(option), &mut own);
        let nodes = NodeReader::new(&index, &mut groups, &mut own).read_nodes(nth, node);
        let nodes = exported(nth, nodes, export, &mut own);
        let disk = &mut guest.disks[nth];
        if let (BackendSource::Image(image), BackendSource::VhostUser(socket)) =
            (nodes.backend.source, &mut disk.backend.source)
        {
            socket.served = Some(image);
            let source = BackendSource::VhostUser(socket.clone());
            disk.backend = Backend {
                source,
                ..nodes.backend
            };
        }
    }
    notes.add(own);
}

/// The nodes of a disk with the settings of their export.
fn exported(nth: usize, mut nodes: Nodes, export: Members<'_>, notes: &mut Notes<'_>) -> Nodes {
    nodes.backend.is_read_only = !is_on(export.get("writable"));
    let writethrough = export.get("writethrough");
    let write_cache = if is_on(writethrough) {
        Switch::Off
    } else {
        Switch::On
    };
    nodes.resolve_cache(nth, Some(write_cache), notes);
    match writethrough {
        Some(property) => notes.record(FieldPath::Disk(nth, DiskField::Cache), property),
        // The default, which is not set explicitly.
        None if nodes.backend.cache == Some(CacheMode::Writeback) => nodes.backend.cache = None,
        None => {}
    }
    nodes
}

/// Compares the queues of a disk with the queues that the daemon offers.
fn check_queues(
    nth: usize,
    guest: &Domain,
    export: Members<'_>,
    span: Span,
    notes: &mut Notes<'_>,
) {
    let written = export.get("num-queues");
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
        "the daemon offers {offered} {}, but the disk requests {asked}, which QEMU 7.2 and later refuse",
        if offered == 1 { "queue" } else { "queues" }
    );
    let span = written.map_or(span, |property| property.span);
    let help =
        format!("write num-queues={asked} on the export, or num-queues={offered} on the device");
    notes
        .problem(&queue_count_refused::RULE, at, span, message)
        .help = Some(help);
}
