//! Disks behind the socket of a daemon that a test started: requests stay within their size, and the daemon keeps running.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk_bench_runner::engines::{Workspace, engine};
use vmdisk_bench_runner::{Cancel, CellView, EngineKind, Limits, Plan, PlanOptions, read_plan};

use crate::engines::{has, measured};

/// Size of the disk of a daemon.
const DISK: u64 = 32 << 20;

/// A running qemu-storage-daemon with a zeroed disk of 32 MiB and two queues.
struct Server {
    child: Child,
    directory: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(writable: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("disk");
        let socket = directory.path().join("socket");
        std::fs::File::create(&file)
            .and_then(|file| file.set_len(DISK))
            .unwrap();
        let child = Command::new("qemu-storage-daemon")
            .args(["--object", "iothread,id=loop", "--blockdev"])
            .arg(format!(
                "driver=file,node-name=d,filename={},read-only={}",
                file.display(),
                if writable == "on" { "off" } else { "on" }
            ))
            .arg("--export")
            .arg(format!(
                "type=vhost-user-blk,id=e,node-name=d,writable={writable},num-queues=2,iothread=loop,\
                 addr.type=unix,addr.path={}",
                socket.display()
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, directory };
        let until = Instant::now() + Duration::from_secs(20);
        let name = server.socket().display().to_string();
        let listens = || {
            let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
            // Flag 00010000 marks a listening socket.
            sockets
                .lines()
                .any(|line| line.ends_with(&name) && line.contains(" 00010000 "))
        };
        while !listens() {
            assert!(Instant::now() < until, "the daemon does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.directory.path().join("disk")).unwrap()
    }

    #[track_caller]
    fn goes_on(&mut self) {
        assert_eq!(self.child.try_wait().unwrap(), None, "the daemon ended");
        assert!(self.socket().exists());
    }
}

/// Returns a plan with one disk behind a socket.
fn plan(socket: &Path, size: &str, workloads: &str) -> Plan {
    let text = format!(
        "version: 1\nname: t\nquestion: q\nsize: {size}\nseconds: 0.3\nramp: 0.1\nphases: [steady]\n\
         workloads: [{workloads}]\nfixed: {{engine: storage-daemon}}\nmatrix: {{backend: [socket]}}\n",
    );
    let options = PlanOptions {
        limits: Limits {
            processors: 2,
            socket: Some(socket.to_owned()),
            ..Limits::default()
        },
        ..PlanOptions::default()
    };
    read_plan(&text, "t", &options).unwrap()
}

/// Returns why the disk of a plan is refused before anything starts.
fn refused(plan: &Plan) -> String {
    let directory = tempfile::tempdir().unwrap();
    let workspace = Workspace::with_changes_in(directory.path(), &directory.path().join("changes"));
    workspace
        .check(&plan.configurations)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_disk_behind_a_given_socket_is_measured_within_its_size_and_its_daemon_goes_on() {
    if !has(&["qemu-storage-daemon"]) {
        return;
    }
    let mut server = Server::start("on");
    let directory = tempfile::tempdir().unwrap();
    let workloads = "4k-random-read-qd32, 4k-random-write-qd1-sync, 64k-sequential-write-qd4-jobs2";
    let plan = plan(&server.socket(), "16M", workloads);
    let results = measured(&plan, directory.path());
    assert_eq!(results.len(), 3);
    for (id, result) in &results {
        let name = plan.view(*id).name();
        let measured = result
            .as_ref()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let direction = measured.read.as_ref().or(measured.write.as_ref()).unwrap();
        assert!(direction.operations > 0, "{name}: {measured:?}");
        assert_eq!(
            measured.semantics.flushes_asked.is_some(),
            name.contains("sync"),
            "{name}"
        );
        // The run does not state what it cannot know.
        assert!(measured.commands.is_empty(), "no program was started");
        assert_eq!(measured.host_cpu_seconds(), None);
        assert_eq!(measured.semantics.flushes_seen, None);
        assert!(
            measured
                .notes
                .iter()
                .any(|note| note.contains("is not part of this run")),
            "{:?}",
            measured.notes
        );
    }
    server.goes_on();
    let bytes = server.bytes();
    let (used, rest) = bytes.split_at(16 << 20);
    assert!(
        used.chunks(4096)
            .all(|block| block.iter().any(|byte| *byte != 0)),
        "it was filled before it was read"
    );
    assert!(rest.iter().all(|byte| *byte == 0), "the rest is untouched");
    assert!(
        std::fs::read_dir(directory.path())
            .unwrap()
            .next()
            .is_none()
    );
}

#[test]
fn a_disk_that_cannot_be_measured_is_refused_and_not_written() {
    if !has(&["qemu-storage-daemon"]) {
        return;
    }
    let mut server = Server::start("on");
    let random = "4k-random-write-qd1";
    let why = refused(&plan(&server.directory.path().join("disk"), "16M", random));
    assert!(why.ends_with("it is not a socket"), "{why}");
    let why = refused(&plan(
        &server.directory.path().join("missing"),
        "16M",
        random,
    ));
    assert!(why.contains("no such file"), "{why}");
    let why = refused(&plan(&server.socket(), "64M", random));
    assert!(
        why.ends_with("it has 32 MiB, but the plan uses 64 MiB; set `--size`"),
        "{why}"
    );
    let other = server.directory.path().join("other");
    let listener = UnixListener::bind(&other).unwrap();
    let closes = std::thread::spawn(move || drop(listener.accept()));
    let why = refused(&plan(&other, "16M", random));
    assert!(why.contains("it is not a vhost-user-blk device"), "{why}");
    closes.join().unwrap();
    // Another client is connected.
    let client = UnixStream::connect(server.socket()).unwrap();
    let why = refused(&plan(&server.socket(), "16M", random));
    assert!(why.contains("another client may be connected"), "{why}");
    drop(client);
    server.goes_on();
    assert!(server.bytes().iter().all(|byte| *byte == 0));
}

#[test]
fn too_many_jobs_and_a_read_only_disk_fail_with_the_reason() {
    if !has(&["qemu-storage-daemon"]) {
        return;
    }
    let mut server = Server::start("on");
    let directory = tempfile::tempdir().unwrap();
    let results = measured(
        &plan(&server.socket(), "16M", "4k-random-read-qd1-jobs4"),
        directory.path(),
    );
    let why = results[0].1.as_ref().unwrap_err().to_string();
    assert!(
        why.ends_with("4 jobs need 4 queues, but the disk has 2"),
        "{why}"
    );
    server.goes_on();

    let mut server = Server::start("off");
    let plan = plan(&server.socket(), "16M", "4k-random-read-qd1");
    let cells: Vec<CellView<'_>> = plan.views().collect();
    let workspace = Workspace::with_changes_in(directory.path(), &directory.path().join("changes"));
    let mut engine = engine(EngineKind::StorageDaemon, &workspace).unwrap();
    let why = engine.prepare(&cells, &Cancel::new()).unwrap_err();
    assert!(why.to_string().contains("read-only"), "{why}");
    server.goes_on();
}
