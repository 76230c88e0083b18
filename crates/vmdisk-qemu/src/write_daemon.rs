//! Writes the command line of a storage daemon.

use vmdisk_model::{
    Backend, BackendSource, CacheMode, Disk, DiskField, Domain, FieldPath, Frontend, Image, Scope,
    TargetBus, VhostUserSocket,
};

use crate::argument::{Argument, ArgumentValue, QemuOption};
use crate::daemon::StorageDaemon;
use crate::json::JsonObject;
use crate::options::{Medium, Options};
use crate::problem::{WriteProblem, WriteProblems};
use crate::write_guest::write_guest;

/// The daemon of a disk whose image is known; `None` for any other disk.
pub(crate) fn storage_daemon(
    domain: &Domain,
    nth: usize,
    options: &Options,
) -> Option<Result<StorageDaemon, WriteProblems>> {
    let disk = domain.disks.get(nth)?;
    let BackendSource::VhostUser(socket) = &disk.backend.source else {
        return None;
    };
    let served = socket.served.as_deref()?;
    Some(write(disk, nth, socket, served, options))
}

fn write(
    disk: &Disk,
    nth: usize,
    socket: &VhostUserSocket,
    served: &Image,
    options: &Options,
) -> Result<StorageDaemon, WriteProblems> {
    // Its nodes, and all referenced objects, are the same as for the disk in QEMU.
    let mut alone = Disk::new(
        Frontend::new(disk.name(), TargetBus::Virtio),
        served.clone(),
    );
    alone.backend = Backend {
        source: alone.backend.source,
        ..disk.backend.clone()
    };
    let domain = Domain {
        scope: Scope::DisksOnly,
        disks: vec![alone],
        ..Domain::default()
    };
    let options = Options { ..options.clone() };
    let (_, line) = write_guest(&domain, &options, Medium::CommandLine);
    if !line.problems.is_empty() {
        return Err(of_disk(line.problems, nth));
    }
    let at = FieldPath::Disk(nth, DiskField::SocketPath);
    let node = line
        .arguments
        .iter()
        .find(|argument| argument.option == QemuOption::Device)
        .and_then(|device| device.property("drive"));
    let Some(node) = node else {
        return Err(WriteProblems(vec![WriteProblem {
            at,
            disk: Some(disk.name().to_owned()),
            message: "the daemon needs an image to serve".to_owned(),
            help: None,
        }]));
    };
    let mut arguments: Vec<Argument> = line
        .arguments
        .into_iter()
        .filter(|argument| matches!(argument.option, QemuOption::Object | QemuOption::Blockdev))
        .map(|argument| Argument {
            origin: moved(argument.origin, nth),
            ..argument
        })
        .collect();
    let addr = JsonObject::new()
        .with("type", "unix")
        .with("path", socket.path.as_str());
    let mut export = JsonObject::new()
        .with("type", "vhost-user-blk")
        .with("id", "export")
        .with("node-name", node)
        .with("addr", addr)
        .with("writable", disk.is_writable());
    if let Some(queues) = disk.frontend.queues.filter(|queues| *queues != 0) {
        export.push("num-queues", queues);
    }
    // If the guest does not flush, the daemon flushes after each write.
    if disk
        .backend
        .cache
        .is_some_and(|cache: CacheMode| !cache.switches().write_cache)
    {
        export.push("writethrough", true);
    }
    arguments.push(Argument {
        option: QemuOption::Export,
        value: ArgumentValue::Json(export),
        origin: at,
    });
    Ok(StorageDaemon {
        disk: nth,
        socket: socket.path.clone(),
        arguments,
    })
}

/// Maps a path of a disk that is written alone to the path of this disk.
fn moved(at: FieldPath, nth: usize) -> FieldPath {
    match at {
        FieldPath::Disk(_, field) => FieldPath::Disk(nth, field),
        FieldPath::Image(_, depth, field) => FieldPath::Image(nth, depth, field),
        FieldPath::Iotune(_, field) => FieldPath::Iotune(nth, field),
        _ => at,
    }
}

fn of_disk(problems: Vec<WriteProblem>, nth: usize) -> WriteProblems {
    let moved = problems.into_iter().map(|problem| WriteProblem {
        at: moved(problem.at, nth),
        ..problem
    });
    WriteProblems(moved.collect())
}
