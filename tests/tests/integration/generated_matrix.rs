//! Backends × buses × targets × facts: whatever `vmdisk generate` writes, its target takes.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_qmp::Launch;
use vmdisk_tests::{
    LibvirtBuild, QemuBuild, Verdict, fixtures, has_program, libvirts, qemus, real, run,
};

/// Backends, each as a disk in one line; `DIR` stands for a directory.
const BACKENDS: [&str; 20] = [
    "raw:DIR/new.img,size=64M",
    "raw:DIR/full.img,size=64M,preallocation=falloc",
    "raw:DIR/old.img",
    "qcow2:DIR/new.qcow2,size=64M",
    "qcow2:DIR/old.qcow2",
    "qcow2:DIR/top.qcow2,backing.path=DIR/old.qcow2,backing.format=qcow2",
    "lvm:vg0/data",
    "lvm-thin:vg0/thin,size=1G,pool=pool0",
    "device:/dev/disk/by-id/wwn-0x5000c50015ea71aa",
    "nbd://store.example/web1",
    "rbd:pool/web1,hosts=mon1:6789",
    "https://store.example/debian.iso",
    "nfs://store.example/export/a.img,identity.user=+107,identity.group=+107",
    "zvol:tank/web1",
    "nvme:0000:01:00.0/1",
    "vhost-vdpa:/dev/vhost-vdpa-0",
    "directory:DIR/files",
    "volume:images/web1.qcow2,format=qcow2",
    "qcow2:DIR/old.qcow2,backing-chain.0.path=DIR/old.img,backing-chain.0.format=raw",
    "vhost-user-blk:/run/vmdisk/disk.sock",
];

/// Further backends of the large matrix.
const MORE_BACKENDS: [&str; 9] = [
    "iscsi://store.example/iqn.2020-01.example:t/1",
    "ssh://store.example/srv/a.img",
    "gluster://store.example/vol/a.img",
    "raw:DIR/written.img,size=64M,preallocation=full",
    "qcow2:DIR/sub.qcow2,size=64M,extended-l2=yes",
    "qcow2:DIR/secret.qcow2,encryption.secret.usage=web1",
    "nbd+unix:///web1?socket=/run/nbd.sock",
    "qcow2:DIR/full.qcow2,size=64M,preallocation=full,cluster-size=2M",
    "raw:DIR/cloud.img,source.path=DIR/old.qcow2,source.format=qcow2,size=1G",
];

/// Backends that facts of a host say nothing about.
const FAR: [&str; 5] = ["nfs:", "nvme:", "vhost-vdpa:", "directory:", "volume:"];

/// Buses, and options that ask for a special kind of place on them.
const BUSES: [&str; 12] = [
    "",
    ",bus=virtio",
    ",bus=virtio,iothread=auto",
    ",bus=virtio-scsi",
    ",bus=virtio-scsi,iothread=auto",
    ",bus=sata",
    ",bus=ide",
    ",bus=usb",
    ",bus=nvme,serial=s1",
    ",bus=fdc,media=floppy",
    ",media=cdrom",
    ",bus=virtio,cache=none,io=io_uring",
];

/// Facts files; the first is none.
const FACTS: [&str; 6] = [
    "",
    "btrfs-checksums-6.1",
    "btrfs-raid1-nocow-6.18",
    "xfs-nvme",
    "lvm-thin-64k",
    "tmpfs",
];

/// One case that is written, and what is written.
struct Case {
    arguments: String,
    text: String,
}

/// What is written for each case, each text once; and the numbers of cases that are written and refused.
fn cases(target: &str, form: &[&str], directory: &str, facts: &[&str]) -> (Vec<Case>, [usize; 2]) {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut counts = [0, 0];
    for facts in facts {
        let file = format!("{}/facts/{facts}.json", fixtures().display());
        for backend in BACKENDS {
            if !facts.is_empty() && FAR.iter().any(|far| backend.starts_with(far)) {
                continue;
            }
            for bus in BUSES {
                let disk = backend.replace("DIR", directory) + bus;
                let mut arguments = vec!["generate", "--disk", &disk, "--target", target];
                if !facts.is_empty() {
                    arguments.extend(["--facts", &file]);
                }
                arguments.extend(form);
                let said = generate(&arguments);
                let told = arguments.join(" ");
                match said {
                    Ok(text) => {
                        counts[0] += 1;
                        texts.entry(text).or_insert(told);
                    }
                    Err(message) => {
                        counts[1] += 1;
                        assert!(message.contains("error: "), "{told}: {message}");
                    }
                }
            }
        }
    }
    let cases = texts.into_iter();
    let cases = cases.map(|(text, arguments)| Case { arguments, text });
    (cases.collect(), counts)
}

fn generate(arguments: &[&str]) -> Result<String, String> {
    match command(arguments, "") {
        (0, stdout, _) => Ok(stdout),
        (_, _, stderr) => Err(stderr),
    }
}

/// The exit status and the two outputs of the command, run in this process because there are thousands of cases.
fn command(arguments: &[&str], stdin: &str) -> (u8, String, String) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut io = vmdisk_cli::Io {
        stdin: &mut stdin.as_bytes(),
        stdout: &mut stdout,
        stderr: &mut stderr,
        stdout_has_color: false,
        stdout_has_links: false,
        stdout_width: None,
        stderr_has_color: false,
    };
    let words = ["vmdisk"]
        .iter()
        .chain(arguments)
        .map(|word| (*word).into());
    let exit = vmdisk_cli::run(words, &mut io).code();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (exit, text(stdout), text(stderr))
}

/// Versions of the large matrix.
const TARGETS: [&str; 5] = [
    "qemu=4.2,libvirt=6.0",
    "qemu=7.2,libvirt=9.0",
    "qemu=8.2,libvirt=10.0",
    "qemu=10.0,libvirt=11.3",
    "qemu=11.1,libvirt=12.0",
];

/// Outputs of the large matrix, and whether `lint` reads them.
const FORMS: [(&[&str], bool); 7] = [
    (&["--to", "libvirt-xml"], true),
    (&["--to", "disk-xml"], true),
    (&["--to", "qemu"], true),
    (&["--to", "qemu", "--qemu-format", "json"], true),
    (&["--to", "qmp"], true),
    (&["--to", "blockdev-json"], false),
    (&["--to", "script"], false),
];

/// Without facts and versions nothing that is written is read again, so the planned guest must say all that its text says.
#[test]
fn nothing_that_is_written_without_a_target_has_a_finding() {
    let (mut linted, mut complaints) = (0, Vec::new());
    for backend in BACKENDS.iter().chain(&MORE_BACKENDS) {
        for bus in BUSES {
            let disk = backend.replace("DIR", "/srv/img") + bus;
            for form in ["libvirt-xml", "disk-xml", "qemu", "qmp"] {
                let arguments = ["generate", "--disk", &disk, "--to", form];
                let (exit, stdout, stderr) = command(&arguments, "");
                if exit != 0 || stderr.contains("warning: ") {
                    continue;
                }
                linted += 1;
                let (exit, found, stderr) =
                    command(&["lint", "-", "--fail-on", "warning"], &stdout);
                if exit != 0 {
                    complaints.push(format!("{arguments:?}: {exit} {found}{stderr}"));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(linted > 500, "{linted}");
}

/// 29 backends × 10 buses × 3 kinds of media × 7 outputs × 5 targets.
#[test]
#[ignore = "30,450 runs take minutes; `.ci/run machines` runs them"]
#[allow(clippy::print_stdout, reason = "the number of cases is worth knowing")]
fn nothing_that_is_written_has_a_finding_for_its_target() {
    let media = ["", ",media=cdrom", ",media=floppy"];
    // The others name a medium already.
    let buses = BUSES.iter().filter(|bus| !bus.contains("media="));
    let mut disks = Vec::new();
    for bus in buses {
        for backend in BACKENDS.iter().chain(&MORE_BACKENDS) {
            disks.extend(media.map(|media| {
                let disk = backend.replace("DIR", "/srv/img") + bus + media;
                (*backend, disk)
            }));
        }
    }
    let mut never_written: BTreeSet<&str> = disks.iter().map(|(backend, _)| *backend).collect();
    let (mut written, mut linted, mut refused) = (0, 0, 0);
    let mut complaints = Vec::new();
    for target in TARGETS {
        for (form, is_linted) in FORMS {
            for (backend, disk) in &disks {
                let mut arguments = vec!["generate", "--disk", disk, "--target", target];
                arguments.extend(form);
                let (exit, stdout, stderr) = command(&arguments, "");
                if exit != 0 {
                    refused += 1;
                    if exit != 2 || !stderr.contains("error: ") {
                        complaints.push(format!("{arguments:?}: {exit} {stderr}"));
                    }
                    continue;
                }
                written += 1;
                never_written.remove(backend);
                if is_linted {
                    linted += 1;
                    let lint = ["lint", "-", "--target", target, "--fail-on", "warning"];
                    let (exit, findings, stderr) = command(&lint, &stdout);
                    if exit != 0 {
                        complaints.push(format!("{arguments:?}: {exit} {findings}{stderr}"));
                    }
                }
            }
        }
    }
    let runs = written + refused;
    println!("{runs} runs: {written} written, of which {linted} linted; {refused} refused");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(never_written.is_empty(), "{never_written:?}");
    assert!(runs == 30_450 && linted > 5_000, "{runs} {linted}");
}

#[test]
#[allow(clippy::print_stdout, reason = "the number of cases is worth knowing")]
fn each_libvirt_defines_all_that_is_written_for_it() {
    for libvirt in libvirts("generated XML of all kinds") {
        let target = libvirt.target().to_string();
        let (cases, [written, refused]) = cases(&target, &[], "/srv/img", &FACTS);
        let verdicts = define(&libvirt, &cases);
        let mut complaints = Vec::new();
        for (case, verdict) in cases.iter().zip(verdicts) {
            if verdict != Verdict::Accepted {
                complaints.push(format!("{}: {verdict:?}", case.arguments));
            }
        }
        assert!(
            complaints.is_empty(),
            "{target}:\n{}",
            complaints.join("\n")
        );
        let different = cases.len();
        println!(
            "{target}: {written} cases written, {refused} refused; libvirt defines all {different} texts"
        );
        assert!(written > 300 && different > 100, "{written} {different}");
    }
}

fn define(libvirt: &LibvirtBuild, cases: &[Case]) -> Vec<Verdict> {
    // Each stays defined, so that each needs a name of its own.
    let named = |(number, case): (usize, &Case)| {
        let name = format!("<name>guest{number}</name>");
        case.text.replace("<name>guest</name>", &name)
    };
    let guests: Vec<String> = cases.iter().enumerate().map(named).collect();
    let session = libvirt.session();
    session.verdicts(
        vmdisk_tests::Step::Define,
        guests.iter().map(String::as_str),
    )
}

#[test]
#[allow(clippy::print_stdout, reason = "the number of cases is worth knowing")]
fn each_qemu_starts_all_that_is_written_for_it_on_files() {
    let test = "generated command lines of all kinds";
    if !real(has_program("qemu-img"), test, "qemu-img") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().to_str().unwrap();
    // A floppy has room for little.
    std::fs::create_dir(folder.path().join("files")).unwrap();
    for (name, format) in [
        ("new.img", "raw"),
        ("full.img", "raw"),
        ("old.img", "raw"),
        ("new.qcow2", "qcow2"),
        ("old.qcow2", "qcow2"),
    ] {
        let path = format!("{directory}/{name}");
        let made = run("qemu-img", &["create", "-f", format, &path, "64M"], "");
        assert_eq!(made.code, 0, "{made:?}");
    }
    let (below, top) = (
        format!("{directory}/old.qcow2"),
        format!("{directory}/top.qcow2"),
    );
    let made = run(
        "qemu-img",
        &["create", "-f", "qcow2", "-b", &below, "-F", "qcow2", &top],
        "",
    );
    assert_eq!(made.code, 0, "{made:?}");
    for build in qemus(test) {
        let target = build.target().to_string();
        let form = ["--to", "qemu", "--qemu-format", "json"];
        let (cases, _) = cases(&target, &form, directory, &FACTS[..1]);
        let on_files = cases
            .iter()
            .filter(|case| case.arguments.contains(directory));
        let mut started = 0;
        for case in on_files {
            start(&build, case);
            started += 1;
        }
        println!("{target}: QEMU starts all {started} command lines");
        assert!(started >= 30, "only {started}");
    }
}

/// Starts a command line with emulation, which needs no `/dev/kvm`.
fn start(build: &QemuBuild, case: &Case) {
    let emulated = case.text.replace("\"kvm\"", "\"tcg\"");
    let argv: Vec<String> = serde_json::from_str(&emulated).unwrap();
    let launch = Launch::paused(build.emulator()).args(&argv[1..]);
    let started = launch.start().and_then(|mut qemu| qemu.nodes());
    assert!(
        started.is_ok(),
        "{}: {started:?}\n{}",
        case.arguments,
        case.text
    );
}

/// Guests that disks are added to, each called `guest`.
const GUESTS: [&str; 5] = [
    "<domain type='qemu'><name>guest</name><memory unit='MiB'>64</memory><vcpu>2</vcpu>\
     <os><type arch='x86_64' machine='q35'>hvm</type></os></domain>",
    "<domain type='qemu'>\n  <name>guest</name>\n  <memory unit='MiB'>64</memory>\n  <vcpu>2</vcpu>\n  \
     <os>\n    <type arch='x86_64' machine='pc'>hvm</type>\n  </os>\n  <devices>\n    \
     <disk type='file' device='cdrom'>\n      <target dev='hda' bus='ide'/>\n      <readonly/>\n    </disk>\n  \
     </devices>\n</domain>\n",
    "<domain type='qemu'>\n  <name>guest</name>\n  <memory unit='MiB'>64</memory>\n  <vcpu>4</vcpu>\n  \
     <iothreads>2</iothreads>\n  <os>\n    <type arch='x86_64' machine='q35'>hvm</type>\n  </os>\n  <devices>\n    \
     <controller type='scsi' index='0' model='virtio-scsi'>\n      <driver iothread='1'/>\n    </controller>\n    \
     <disk type='file' device='disk'>\n      <driver name='qemu' type='raw' iothread='2'/>\n      \
     <source file='/srv/img/root.img'/>\n      <target dev='vda' bus='virtio'/>\n    </disk>\n    \
     <disk type='file' device='disk'>\n      <driver name='qemu' type='raw'/>\n      \
     <source file='/srv/img/data.img'/>\n      <target dev='sda' bus='scsi'/>\n    </disk>\n  </devices>\n</domain>\n",
    "<domain type='qemu'>\n  <name>guest</name>\n  <memory unit='MiB'>64</memory>\n  <vcpu>2</vcpu>\n  \
     <os>\n    <type arch='x86_64' machine='q35'>hvm</type>\n  </os>\n  <devices>\n    \
     <controller type='pci' index='0' model='pcie-root'/>\n    \
     <controller type='pci' index='1' model='pcie-root-port'/>\n    \
     <controller type='sata' index='0'/>\n    \
     <disk type='file' device='disk'>\n      <driver name='qemu' type='raw'/>\n      \
     <source file='/srv/img/root.img'/>\n      <target dev='vda' bus='virtio'/>\n      \
     <address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x0'/>\n    </disk>\n    \
     <disk type='file' device='cdrom'>\n      <target dev='sdb' bus='sata'/>\n      <readonly/>\n      \
     <address type='drive' controller='0' bus='0' target='0' unit='1'/>\n    </disk>\n  </devices>\n</domain>\n",
    "<domain type='qemu'>\n  <name>guest</name>\n  <memory unit='MiB'>64</memory>\n  <vcpu>1</vcpu>\n  \
     <os>\n    <type arch='x86_64' machine='q35'>hvm</type>\n  </os>\n  <devices>\n    \
     <controller type='usb' index='0' model='qemu-xhci'/>\n    \
     <disk type='file' device='disk'>\n      <driver name='qemu' type='raw'/>\n      \
     <source file='/srv/img/root.img'/>\n      <target dev='sda' bus='usb'/>\n    </disk>\n    \
     <interface type='user'/>\n    <memballoon model='virtio'/>\n  </devices>\n</domain>\n",
];

#[test]
#[allow(clippy::print_stdout, reason = "the number of cases is worth knowing")]
fn each_libvirt_defines_domains_that_disks_were_added_to() {
    let folder = tempfile::tempdir().unwrap();
    for libvirt in libvirts("disks added to domains") {
        let target = libvirt.target().to_string();
        let mut all = Vec::new();
        let mut refused = 0;
        for (nth, guest) in GUESTS.iter().enumerate() {
            let file = folder.path().join(format!("guest{nth}.xml"));
            std::fs::write(&file, guest).unwrap();
            let form = ["--into", file.to_str().unwrap()];
            let (cases, counts) = cases(&target, &form, "/srv/img", &["", "xfs-nvme"]);
            // Without its disks it is accepted, so that a refusal is about what was added.
            all.push(Case {
                arguments: format!("the guest {nth} alone"),
                text: (*guest).to_owned(),
            });
            all.extend(cases);
            refused += counts[1];
        }
        let verdicts = define(&libvirt, &all);
        let complaints: Vec<String> = all
            .iter()
            .zip(verdicts)
            .filter(|(_, verdict)| *verdict != Verdict::Accepted)
            .map(|(case, verdict)| format!("{}: {verdict:?}\n{}", case.arguments, case.text))
            .collect();
        assert!(
            complaints.is_empty(),
            "{target}:\n{}",
            complaints.join("\n")
        );
        println!(
            "{target}: libvirt defines {} domains with disks added to {}; {refused} cases were refused",
            all.len(),
            GUESTS.len()
        );
        assert!(all.len() > 300, "{}", all.len());
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "the number of cases is worth knowing")]
fn a_mapping_of_queues_starts_on_each_qemu_that_has_it_and_libvirt_defines_it() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().to_str().unwrap();
    let image = format!("{directory}/web2.img");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    // The fast storage of the recorded host, at a place that is here.
    let facts = std::fs::read_to_string(fixtures().join("facts/xfs-nvme.json")).unwrap();
    let file = format!("{directory}/facts.json");
    std::fs::write(&file, facts.replace("/srv/img", directory)).unwrap();
    let disk = format!("raw:{image},cache=writeback,io=threads");
    let arguments = |target: &str, form: &[&str]| {
        let mut all = vec!["generate", "--vcpus", "8", "--memory", "256M"];
        all.extend(["--disk", &disk, "--facts", &file, "--target", target]);
        all.extend(form);
        generate(&all).unwrap_or_else(|message| panic!("{target}: {message}"))
    };
    let mut mapped = 0;
    for build in qemus("mappings of queues") {
        let text = arguments(
            &build.target().to_string(),
            &["--to", "qemu", "--qemu-format", "json"],
        );
        let has_mapping = text.contains("iothread-vq-mapping");
        assert_eq!(
            has_mapping,
            build.version >= vmdisk::facts::Version(9, 0, 0),
            "{text}"
        );
        mapped += u32::from(has_mapping);
        let case = Case {
            arguments: disk.clone(),
            text,
        };
        start(&build, &case);
    }
    for libvirt in libvirts("mappings of queues") {
        let text = arguments(&libvirt.target().to_string(), &[]);
        let case = Case {
            arguments: disk.clone(),
            text: text.replace("type='kvm'", "type='qemu'"),
        };
        assert_eq!(define(&libvirt, &[case]), [Verdict::Accepted], "{text}");
    }
    println!("{mapped} versions of QEMU start a mapping of queues");
}
