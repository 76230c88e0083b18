//! Plans with a disk behind a socket, and with programs that are pinned to processors.

use std::collections::BTreeSet;
use std::path::PathBuf;

use vmdisk_model::{BackendSource, FrontendKind, MemoryAccess};

use super::*;

const SOCKET: &str = "/run/spdk/vhost.0";

fn options(socket: Option<&str>) -> PlanOptions {
    PlanOptions {
        limits: Limits {
            processors: 2,
            socket: socket.map(PathBuf::from),
            allowed_processors: BTreeSet::from([0, 1]),
            numa_nodes: BTreeSet::from([0]),
            ..Limits::default()
        },
        ..PlanOptions::default()
    }
}

/// Returns the plan of a configuration, and of a file to compare it with.
fn beside_a_file(fixed: &str, factors: &str, socket: Option<&str>) -> Plan {
    let text = format!(
        "version: 1\nname: t\nquestion: q\nsize: 64M\nphases: [first-touch, steady]\n\
         workloads: [4k-random-write-qd1]\nfixed: {{{fixed}}}\n\
         configurations: [{{name: file}}, {{name: other, {factors}}}]\n"
    );
    read_plan(&text, "t", &options(socket)).unwrap()
}

/// Returns why `other` is left out of a plan.
fn why(plan: &Plan) -> &str {
    assert!(!plan.configurations.iter().any(|it| it.name == "other"));
    let mut left_out = plan.left_out.iter();
    &left_out
        .find(|left_out| left_out.what == "other")
        .expect("it is left out")
        .why
}

#[test]
fn a_disk_behind_a_socket_is_measured_as_its_program_opened_it() {
    for engine in ["guest", "mock"] {
        let fixed = format!("engine: {engine}, cache: none, aio: native, iothread: true");
        let plan = beside_a_file(&fixed, "backend: socket", Some(SOCKET));
        let other = &plan.configurations[1];
        let path = PathBuf::from(SOCKET);
        assert_eq!(other.storage, Storage::Socket { path });
        let kind = other.guest.frontend_kind(other.disk());
        assert_eq!(kind, FrontendKind::VhostUserBlk);
        assert!(other.is_served_by_daemon);
        assert_eq!(
            other.guest.memory_backing.access,
            Some(MemoryAccess::Shared)
        );
        assert!(matches!(
            &other.disk().backend.source,
            BackendSource::VhostUser(socket) if socket.path == SOCKET
        ));
        // Fixed factors of files say nothing about it.
        let factors: Vec<&str> = other.factors.keys().map(String::as_str).collect();
        assert_eq!(factors, ["backend", "engine", "name"]);
        assert!(plan.record().configurations[1].disk_xml.contains(SOCKET));
        let phases: Vec<Phase> = plan
            .views()
            .filter(|cell| cell.configuration.name == "other")
            .map(|cell| cell.phase)
            .collect();
        assert_eq!(phases, [Phase::Steady]);
        assert!(
            plan.left_out.iter().any(|left_out| left_out.what.ends_with(" for other")
                && left_out.why
                    == "the disk behind a socket is not created for each sample, so it has no first touch"),
            "{:?}",
            plan.left_out
        );
    }
}

#[test]
fn a_disk_behind_a_socket_is_left_out_without_consent_and_if_a_factor_cannot_apply() {
    let engine = "engine: guest";
    let plan = beside_a_file(engine, "backend: socket", None);
    assert_eq!(
        why(&plan),
        "no vhost-user-blk socket was given; use `--destroy-data-behind`"
    );
    for (factor, expected) in [
        ("preallocation: full", "preallocation=full"),
        ("preallocation: 'off'", "preallocation=off"),
        ("format: qcow2", "format=qcow2"),
        ("cache: none", "cache=none"),
        ("iothread: true", "iothread=true"),
        ("directory: /srv", "directory=/srv"),
    ] {
        let plan = beside_a_file(engine, &format!("backend: socket, {factor}"), Some(SOCKET));
        assert_eq!(
            why(&plan),
            format!(
                "guest does not use {expected} for a disk behind a socket, which another program opened"
            )
        );
    }
    let plan = beside_a_file(engine, "backend: socket, frontend: nvme", Some(SOCKET));
    assert_eq!(
        why(&plan),
        "the disk behind a socket is a vhost-user-blk device, not nvme"
    );
    for engine in ["host-fio", "storage-daemon"] {
        let plan = beside_a_file(
            &format!("engine: {engine}"),
            "backend: socket",
            Some(SOCKET),
        );
        assert_eq!(
            why(&plan),
            format!("{engine} cannot use a vhost-user-blk socket; guest can")
        );
    }
}

#[test]
fn programs_are_pinned_to_processors_and_nodes_that_exist() {
    let text = "version: 1\nname: t\nquestion: q\nsize: 64M\nphases: [steady]\n\
                workloads: [4k-random-write-qd1]\nfixed: {engine: guest, vcpus: 1}\n\
                matrix: {processors: [0, 0-1, 1-2]}\nbaseline: {processors: 0}\n";
    let plan = read_plan(text, "t", &options(None)).unwrap();
    let launchers: Vec<(&str, String)> = plan
        .configurations
        .iter()
        .map(|it| (it.name.as_str(), it.launcher.join(" ")))
        .collect();
    assert_eq!(
        launchers,
        [
            ("processors-0", "taskset -c 0".to_owned()),
            ("processors-0-1", "taskset -c 0-1".to_owned())
        ]
    );
    assert_eq!(plan.configurations[1].factors["processors"], "0-1");
    assert_eq!(plan.left_out[0].what, "processors-1-2");
    assert!(
        plan.left_out[0]
            .why
            .starts_with("processor 2 does not exist")
    );
    let plan = beside_a_file("engine: guest", "processors: 1, vcpus: 2", None);
    assert_eq!(
        why(&plan),
        "more vCPUs than the processors of QEMU (1) would measure the host's scheduler"
    );
    let plan = beside_a_file("engine: host-fio", "numa-node: 1", None);
    assert_eq!(
        why(&plan),
        "this host has no NUMA node 1 with processors and memory"
    );
    let plan = beside_a_file("engine: host-fio", "numa-node: 0", None);
    assert_eq!(plan.configurations[1].launcher[0], "numactl");
}
