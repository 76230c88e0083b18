//! `qemu-storage-daemon`: the other half of a vhost-user-blk disk.

use vmdisk_model::{
    Backend, BackendSource, CacheMode, Disk, DiskField, Domain, FieldPath, Frontend, Image, Scope,
    TargetBus, VhostUserSocket,
};

use crate::argument::{Argument, ArgumentValue, QemuOption};
use crate::json::JsonObject;
use crate::options::{Options, Style};
use crate::problem::{WriteProblem, WriteProblems};
use crate::shell::shell_quote;

/// The command line of a daemon that serves one disk, and that is there before QEMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageDaemon {
    /// Number of the disk that it serves.
    pub disk: usize,
    /// The socket that it makes.
    pub socket: String,
    /// Its options, in order.
    pub arguments: Vec<Argument>,
}

impl StorageDaemon {
    /// The program.
    pub const PROGRAM: &'static str = "qemu-storage-daemon";

    /// The words to start a process with, the program first. Its options have two dashes.
    pub fn argv(&self) -> Vec<String> {
        let words = self.arguments.iter().flat_map(|argument| {
            [Some(format!("-{}", argument.option)), argument.value.word()]
                .into_iter()
                .flatten()
        });
        std::iter::once(Self::PROGRAM.to_owned())
            .chain(words)
            .collect()
    }

    /// Text for a POSIX shell that starts it and waits until its socket is there.
    pub fn to_shell(&self) -> String {
        let mut text = Self::PROGRAM.to_owned();
        for argument in &self.arguments {
            text.push_str(&format!(" \\\n  -{}", argument.option));
            if let Some(word) = argument.value.word() {
                text.push_str(&format!(" {}", shell_quote(&word)));
            }
        }
        text.push_str(&format!(
            " &\nuntil test -S {}; do sleep 0.1; done\n",
            shell_quote(&self.socket)
        ));
        text
    }
}

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
    // Its nodes are those that the disk would have in QEMU, and so is everything they name.
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
    let options = Options {
        style: Style::Readable,
        ..options.clone()
    };
    let line = crate::write(&domain, &options).map_err(|problems| of_disk(problems, nth))?;
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
            message: "the daemon has no image to serve".to_owned(),
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
    if let Some(queues) = disk.frontend.queues {
        export.push("num-queues", queues);
    }
    // Where the guest is not to flush, the daemon does after each write.
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

/// A path of the disk written alone, as that of the disk it is.
fn moved(at: FieldPath, nth: usize) -> FieldPath {
    match at {
        FieldPath::Disk(_, field) => FieldPath::Disk(nth, field),
        FieldPath::Image(_, depth, field) => FieldPath::Image(nth, depth, field),
        FieldPath::Iotune(_, field) => FieldPath::Iotune(nth, field),
        FieldPath::Domain(_)
        | FieldPath::Controller(..)
        | FieldPath::IoThread(..)
        | FieldPath::ThrottleGroup(..) => at,
    }
}

fn of_disk(WriteProblems(problems): WriteProblems, nth: usize) -> WriteProblems {
    let moved = problems.into_iter().map(|problem| WriteProblem {
        at: moved(problem.at, nth),
        ..problem
    });
    WriteProblems(moved.collect())
}
