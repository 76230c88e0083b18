//! Disks behind the socket of a daemon that a test started: requests stay within their size, and the daemon keeps running.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk_bench_runner::engines::Workspace;
use vmdisk_bench_runner::{Limits, Plan, PlanOptions, read_plan};

use crate::engines::has;

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
         workloads: [{workloads}]\nfixed: {{engine: guest}}\nmatrix: {{backend: [socket]}}\n",
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
fn a_disk_that_is_read_only_is_refused() {
    if !has(&["qemu-storage-daemon"]) {
        return;
    }
    let mut server = Server::start("off");
    let why = refused(&plan(&server.socket(), "16M", "4k-random-read-qd1"));
    assert!(why.ends_with("it is read-only"), "{why}");
    server.goes_on();
    // A device whose description is read can be used afterwards.
    let mut server = Server::start("on");
    let plan = plan(&server.socket(), "16M", "4k-random-read-qd1");
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let changes = directory.path().join("changes");
        let workspace = Workspace::with_changes_in(directory.path(), &changes);
        workspace.check(&plan.configurations).unwrap();
    }
    server.goes_on();
}
