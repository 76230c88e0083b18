//! Collecting facts for one guest changes nothing on the host: every system call of it is looked at.

use std::path::Path;

use vmdisk_tests::{has_program, real, run_in};

use crate::VMDISK;

/// System calls that change something, whatever they are given.
const CHANGES: &str = "creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,mknod,mknodat,rmdir,link,linkat,\
                       symlink,symlinkat,truncate,ftruncate,fallocate,chmod,fchmod,fchmodat,chown,fchown,fchownat,lchown,\
                       setxattr,fsetxattr,lsetxattr,removexattr,utimensat,mount,umount2,copy_file_range,sendfile,splice";
/// System calls that may change something, by what they are given.
const MAY_CHANGE: &str = "open,openat,openat2,write,pwrite64,writev,pwritev,pwritev2,execve,execveat,fork,vfork,clone,clone3";

/// Why a line of strace's output is a change; `None` if it is none.
fn change(line: &str) -> Option<&'static str> {
    // With -f each line begins with the number of the thread.
    let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    // The rest of a call that another thread interrupted, a signal, an end: the beginning was looked at.
    if call.starts_with("<...") || call.starts_with("---") || call.starts_with("+++") {
        return None;
    }
    let name = call.split('(').next().unwrap_or_default();
    let arguments = &call[name.len()..];
    match name {
        "open" | "openat" | "openat2" => [
            "O_WRONLY",
            "O_RDWR",
            "O_CREAT",
            "O_TRUNC",
            "O_APPEND",
            "O_TMPFILE",
        ]
        .iter()
        .any(|flag| arguments.contains(flag))
        .then_some("opens something for writing"),
        // Standard output and standard error.
        "write" | "writev" => {
            let is_output = arguments.starts_with("(1,") || arguments.starts_with("(2,");
            (!is_output).then_some("writes")
        }
        "clone" | "clone3" => (!arguments.contains("CLONE_THREAD")).then_some("starts a process"),
        "fork" | "vfork" | "execve" | "execveat" => Some("starts a process"),
        _ if format!("{CHANGES},{MAY_CHANGE}")
            .split(',')
            .any(|it| it.trim() == name) =>
        {
            Some("changes something")
        }
        _ => None,
    }
}

/// Whether strace may look into a program here: containers often forbid it.
fn may_trace(folder: &Path) -> bool {
    let traced = run_in(folder, "strace", &["-f", "-o", "try.strace", "true"], "");
    traced.code == 0
}

#[test]
fn collecting_for_a_guest_writes_nothing_and_starts_nothing() {
    const TEST: &str = "collecting_for_a_guest_writes_nothing_and_starts_nothing";
    if !real(has_program("strace"), TEST, "strace") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder can be made");
    let folder = place.path();
    if !may_trace(folder) {
        // No program that is missing: a property of where the test runs.
        eprintln!("skipped: {TEST}: strace may not look into programs here");
        return;
    }
    let image = folder.join("web1.img");
    std::fs::write(&image, vec![0; 65536]).expect("files can be written");
    let guest = format!(
        "<domain type='kvm'><name>web1</name><devices><disk type='file' device='disk'>\
         <driver name='qemu' type='raw' cache='none'/><source file='{}'/><target dev='vda' bus='virtio'/></disk></devices></domain>",
        image.display()
    );
    std::fs::write(folder.join("web1.xml"), guest).expect("files can be written");
    let filter = format!("trace={CHANGES},{MAY_CHANGE}").replace(' ', "");
    let run = run_in(
        folder,
        "strace",
        &[
            "-f",
            "-qq",
            "-e",
            &filter,
            "-o",
            "out.strace",
            VMDISK,
            "facts",
            "--for",
            "web1.xml",
        ],
        "",
    );
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("web1.img"), "{run:?}");
    // What is told of the image and of the host was asked for under strace too.
    for fact in ["extents", "qemu_access", "cgroups", "io_uring_setup"] {
        assert!(
            run.stdout.contains(&format!("\"{fact}\"")),
            "{fact}: {run:?}"
        );
    }
    let trace = std::fs::read_to_string(folder.join("out.strace")).expect("strace wrote it");
    let mut lines = trace.lines();
    let first = lines.next().expect("the program itself was started");
    assert!(first.contains("execve("), "{first}");
    let seen: Vec<&str> = lines.collect();
    // Without these the test would look at nothing.
    assert!(seen.iter().any(|line| line.contains("web1.img")), "{trace}");
    let changes: Vec<String> = seen
        .iter()
        .filter_map(|line| Some(format!("{}: {line}", change(line)?)))
        .collect();
    assert!(changes.is_empty(), "{}", changes.join("\n"));
}

#[test]
fn advice_from_facts_starts_nothing_and_reads_only_the_facts() {
    const TEST: &str = "advice_from_facts_starts_nothing";
    let place = tempfile::tempdir().expect("a folder can be made");
    let folder = place.path();
    if !real(has_program("strace"), TEST, "strace") || !may_trace(folder) {
        return;
    }
    let facts = vmdisk_tests::fixtures().join("facts/lvm-thin-64k.json");
    std::fs::copy(facts, folder.join("facts.json")).expect("files can be written");
    let filter = format!("trace={CHANGES},{MAY_CHANGE},%file").replace(' ', "");
    let traced = ["-f", "-qq", "-e", &filter, "-o", "out.strace", VMDISK];
    for words in [
        "advise --facts facts.json --size 40G",
        "advise --facts facts.json --size 40G --wants snapshots --to script",
    ] {
        let arguments: Vec<&str> = traced.into_iter().chain(words.split(' ')).collect();
        let run = run_in(folder, "strace", &arguments, "");
        assert_eq!(run.code, 0, "{run:?}");
        let trace = std::fs::read_to_string(folder.join("out.strace")).expect("strace wrote it");
        let mut lines = trace.lines();
        assert!(lines.next().expect("it was started").contains("execve("));
        let rest: Vec<&str> = lines.collect();
        assert!(rest.iter().any(|line| line.contains("facts.json")));
        let changes: Vec<&&str> = rest.iter().filter(|line| change(line).is_some()).collect();
        assert!(changes.is_empty(), "{words}: {changes:?}");
        // What the facts name is another host's.
        for named in ["/dev/", "/srv", "/var", "/mnt", "/sys/"] {
            let looks = rest
                .iter()
                .find(|line| line.contains(&format!("\"{named}")));
            assert_eq!(looks, None, "{words}");
        }
    }
}

#[test]
fn what_the_header_of_a_raw_image_names_is_not_looked_at() {
    const TEST: &str = "what_the_header_of_a_raw_image_names_is_not_looked_at";
    let place = tempfile::tempdir().expect("a folder can be made");
    let folder = place.path();
    if !real(has_program("strace"), TEST, "strace") || !may_trace(folder) {
        return;
    }
    // The header of a qcow2 image whose backing file is `named`.
    let named = folder.join("named");
    std::fs::write(&named, "secret").expect("files can be written");
    let name = named.to_str().expect("it is UTF-8");
    let mut header = b"QFI\xfb\0\0\0\x02\0\0\0\0\0\0\0\x48".to_vec();
    header.extend(
        u32::try_from(name.len())
            .expect("it is short")
            .to_be_bytes(),
    );
    header.extend([0, 0, 0, 16]);
    header.extend((1_u64 << 20).to_be_bytes());
    header.resize(0x48, 0);
    header.extend(name.as_bytes());
    header.resize(1 << 20, 0);
    std::fs::write(folder.join("a.img"), header).expect("files can be written");
    for (format, is_followed) in [("type='raw'", false), ("", false), ("type='qcow2'", true)] {
        let guest = format!(
            "<domain type='kvm'><name>web1</name><devices><disk type='file' device='disk'><driver name='qemu' {format}/>\
             <source file='{}/a.img'/><target dev='vda' bus='virtio'/></disk></devices></domain>",
            folder.display()
        );
        std::fs::write(folder.join("a.xml"), guest).expect("files can be written");
        for words in [
            "facts --for a.xml",
            "lint --live a.xml",
            "trace --live a.xml",
            "lint --live -o report a.xml",
        ] {
            let options = ["-f", "-qq", "-e", "trace=%file", "-o", "out.strace", VMDISK];
            let arguments: Vec<&str> = options.into_iter().chain(words.split(' ')).collect();
            let run = run_in(folder, "strace", &arguments, "");
            assert!(run.code < 2, "{words}: {run:?}");
            let trace =
                std::fs::read_to_string(folder.join("out.strace")).expect("strace wrote it");
            assert!(trace.contains("a.img\""), "{words}: {trace}");
            let is_seen = trace.contains(&format!("{name}\""));
            assert_eq!(is_seen, is_followed, "{format}, {words}: {trace}");
        }
    }
}

#[test]
fn a_change_is_told_from_a_look() {
    for look in [
        "12 openat(AT_FDCWD, \"/a\", O_RDONLY|O_CLOEXEC) = 3",
        "12 write(1, \"{\", 1) = 1",
        "12 clone3({flags=CLONE_VM|CLONE_THREAD}, 88) = 13",
        "13 <... openat resumed>) = 4",
        "13 +++ exited with 0 +++",
        "12 statx(AT_FDCWD, \"/a\", 0, STATX_ALL, {}) = 0",
    ] {
        assert_eq!(change(look), None, "{look}");
    }
    for changed in [
        "12 openat(AT_FDCWD, \"/a\", O_RDWR) = 3",
        "12 openat(AT_FDCWD, \"/a\", O_WRONLY|O_CREAT, 0644) = 3",
        "12 write(4, \"{\", 1) = 1",
        "12 pwrite64(1, \"{\", 1, 0) = 1",
        "12 execve(\"/bin/true\", [], []) = 0",
        "12 clone(child_stack=NULL, flags=SIGCHLD) = 13",
        "12 unlink(\"/a\") = 0",
    ] {
        assert!(change(changed).is_some(), "{changed}");
    }
}
