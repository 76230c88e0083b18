//! Command lines as people and programs write them down.

#![allow(clippy::unwrap_used, reason = "a test may fail so")]

use std::collections::BTreeMap;
use vmdisk_model::*;

use vmdisk_qemu::{CommandLineForm, Document, edits_of_all, read, read_all};
use vmdisk_rule::Severity;
use vmdisk_source::apply_edits;

fn disk(text: &str) -> Disk {
    let document = read(text).unwrap();
    assert_eq!(document.domain.disks.len(), 1, "{text}");
    document.domain.disks.into_iter().next().unwrap()
}

fn problems(document: &Document, text: &str) -> Vec<(String, String)> {
    document
        .problems
        .iter()
        .map(|problem| {
            let place = problem.span.slice(text).unwrap().to_owned();
            (place, problem.message.clone())
        })
        .collect()
}

#[test]
fn one_guest_is_the_same_in_every_form() {
    let expected = {
        let mut disk = Disk::new(
            Frontend::new("vda", TargetBus::Virtio),
            Image::file("/srv/a, b.img", Format::Qcow2),
        );
        disk.frontend.device = Some(Device::Disk);
        disk.backend.cache = Some(CacheMode::None);
        disk
    };
    let drive = "file=/srv/a,, b.img,format=qcow2,if=virtio,cache=none";
    let json = r#"["/usr/bin/qemu-system-x86_64","-drive","file=/srv/a,, b.img,format=qcow2,if=virtio,cache=none"]"#;
    for (text, form) in [
        (
            format!("qemu-system-x86_64 -S -drive '{drive}'"),
            CommandLineForm::Shell,
        ),
        (
            format!("#!/bin/sh\nset -e\nexec sudo qemu-kvm \\\n -drive \"{drive}\" # x\n"),
            CommandLineForm::Shell,
        ),
        (
            format!("-nodefaults\n-drive '{drive}'\n-S"),
            CommandLineForm::Shell,
        ),
        (
            format!(
                "2026-01-01 00:00:00.000+0000: starting up libvirt version: 9\nA=b \\\n/usr/bin/qemu-system-x86_64 \\\n-drive file=old\n\
                 2026-01-02 00:00:00.000+0000: starting up libvirt version: 9\nA=b \\\n/usr/bin/qemu-system-x86_64 \\\n-drive '{drive}'\n"
            ),
            CommandLineForm::Shell,
        ),
        (
            format!("/usr/bin/qemu-system-x86_64\n-drive\n{drive}\n"),
            CommandLineForm::Lines,
        ),
        (
            format!("/usr/bin/qemu-system-x86_64\0-drive\0{drive}\0"),
            CommandLineForm::ZeroBytes,
        ),
        (
            format!(
                "[Service]\nExecStartPre=/bin/true\nExecStart=/usr/bin/qemu-system-x86_64 \\\n  # disks\n  -drive \"{drive}\"\nRestart=no\n"
            ),
            CommandLineForm::Unit,
        ),
        (json.to_owned(), CommandLineForm::Json),
    ] {
        let document = read(&text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        assert_eq!(document.form, form, "{text}");
        assert_eq!(
            document.domain.disks,
            std::slice::from_ref(&expected),
            "{text}"
        );
        let at = FieldPath::Image(0, 0, ImageField::Path);
        let place = document.source_map.place(at).unwrap();
        assert_eq!(place.span.slice(&text), Some("/srv/a,, b.img"), "{text}");
        assert!(vmdisk_qemu::sniff(&text), "{text}");
    }
}

#[test]
fn what_is_no_command_line_or_more_than_one_is_refused_with_a_reason() {
    for (text, message) in [
        ("hello world", "no QEMU command line found"),
        ("", "no QEMU command line found"),
        (
            "qemu-system-x86_64 -S\nqemu-system-x86_64 -S -snapshot",
            "the file starts QEMU in 2 ways",
        ),
        (
            "[Service]\nExecStart=/bin/true",
            "no QEMU command line found",
        ),
        ("[1]", "not a JSON array of strings: expected a string"),
        (
            "qemu-system-x86_64 -S \\\n# -hda a.img \\\n-hdb b.img \\\n-m 2G\n",
            "`-hdb` is not part of the command: the command of QEMU ends before this line",
        ),
    ] {
        assert_eq!(read(text).unwrap_err().message, message, "{text}");
    }
}

#[test]
fn a_script_may_hold_the_program_and_the_options_in_variables() {
    let options = "-M q35\n  # comment\n  -hda a.img\n  -hdb \"b c.img\"";
    for text in [
        format!("args=(\n  {options}\n)\nqemu-system-x86_64 \"${{args[@]}}\"\n"),
        format!("declare -a args=({options})\nexec qemu-system-x86_64 -S \"${{args[@]}}\" \"$@\""),
        format!("command=(\n  qemu-system-x86_64\n  {options}\n)\nexec \"${{command[@]}}\"\n"),
        format!("QEMU=/opt/bin/qemu-system-x86_64\nA=({options})\nLANG=C \"$QEMU\" \"${{A[@]}}\""),
        "exec ${QEMU:-/bin/qemu-system-x86_64} -M q35 -hda a.img -hdb 'b c.img'".to_owned(),
        "${QEMU:-qemu-system-x86_64} -M q35 -hda a.img -hdb 'b c.img'".to_owned(),
        "a=(-M q35)\na+=(-hda a.img)\nqemu-system-x86_64 ${a[@]} -hdb 'b c.img'".to_owned(),
        "a=(-hda z.img)\na=(-M q35 -hda a.img)\nqemu-system-x86_64 \"${a[@]}\" -hdb 'b c.img'".to_owned(),
        "O=-hda\\ a.img\nO+=\" $P\"\nO=\"$O -M q35\"\nqemu-system-x86_64 ${O} -hdb 'b c.img'".to_owned(),
        "A=\"-hda a.img\"\nB=\"$A -M q35\"\nexport QEMU=qemu-system-x86_64\n$QEMU $B -hdb 'b c.img'".to_owned(),
        "[ \"$1\" = x ] || exit\nqemu-system-x86_64 -M q35 -hda a.img -hdb 'b c.img'".to_owned(),
        // Makefiles
        "QEMU := qemu-system-x86_64\nF = -M q35 \\\n\t-hda a.img\nrun: x\n\t@$(QEMU) $(F) -hdb 'b c.img'".to_owned(),
        "\"C:\\Program Files\\qemu\\qemu-system-x86_64.exe\" -M q35 -hda a.img -hdb \"b c.img\"".to_owned(),
    ] {
        let document = read(&text).unwrap();
        let paths: Vec<_> = document
            .domain
            .disks
            .iter()
            .map(|disk| disk.backend.image().and_then(Image::host_path))
            .collect();
        assert_eq!(paths, [Some("a.img"), Some("b c.img")], "{text}");
        let architecture = document.domain.architecture;
        assert_eq!(architecture, Some(Architecture::X86_64), "{text}");
    }
}

#[test]
fn a_variable_named_after_qemu_is_the_program_if_there_is_no_other() {
    for program in [
        "\"$qemu\"",
        "${QEMU_BIN}",
        "taskset -c 1 $path_to_qemu",
        "timeout -k 2 15 $(QEMU)",
    ] {
        let document = read(&format!("echo $QEMU\n{program} -hda a.img\n")).unwrap();
        assert_eq!(document.domain.disks.len(), 1, "{program}");
        assert_eq!(document.domain.architecture, None, "{program}");
    }
    let both = read("$QEMU -version\nqemu-system-x86_64 -hda a.img -hdb b.img\n").unwrap();
    assert_eq!(both.domain.disks.len(), 2);
}

#[test]
fn the_first_prerequisite_in_a_makefile_is_not_a_redirection() {
    let text = "run: a.img\n\tqemu-system-x86_64 -blockdev file,node-name=f,filename=$< -device floppy,drive=f\n";
    let document = read(text).unwrap();
    let [disk] = document.domain.disks.as_slice() else {
        panic!("{:?}", document.domain.disks)
    };
    assert_eq!(disk.frontend.effective_device(), Device::Floppy);
}

#[test]
fn the_number_of_vcpus_follows_from_their_topology() {
    for (topology, expected) in [
        ("cores=4,threads=2,sockets=1", Some(8)),
        ("sockets=2", Some(2)),
        ("3,cores=3", Some(3)),
        ("cores=2,maxcpus=8", Some(8)),
        ("cores=0", None),
        ("cores=4294967295,threads=4294967295,sockets=9", None),
    ] {
        let text = format!("qemu-system-x86_64 -M q35 -smp {topology}");
        assert_eq!(read(&text).unwrap().domain.vcpus, expected, "{text}");
    }
}

#[test]
fn old_options_are_drives_on_the_boards_own_controllers() {
    let places = |machine: &str| -> Vec<(String, TargetBus, Device, u32)> {
        let text = format!(
            "qemu-system-x86_64 -machine {machine} -hda a -drive file=b,format=raw -cdrom c.iso -fda f -drive file=d,if=none,id=x /srv/e.img"
        );
        let document = read(&text).unwrap();
        document
            .domain
            .disks
            .iter()
            .map(|disk| {
                let Some(Address::Drive(place)) = disk.frontend.address else {
                    panic!("no place")
                };
                let frontend = &disk.frontend;
                (
                    disk.name().to_owned(),
                    frontend.effective_bus(),
                    frontend.effective_device(),
                    place.bus * 2 + place.unit,
                )
            })
            .collect()
    };
    use {Device::*, TargetBus::*};
    let of = |name: &str, bus, device, unit| (name.to_owned(), bus, device, unit);
    assert_eq!(
        places("pc"),
        [
            of("hda", Ide, Disk, 0),
            of("hdb", Ide, Disk, 1),
            of("hdc", Ide, Cdrom, 2),
            of("fda", Fdc, Floppy, 0),
            of("hdd", Ide, Disk, 0),
        ]
    );
    assert_eq!(places("q35")[2], of("sdc", Sata, Cdrom, 2));
}

#[test]
fn disks_on_ide_have_the_names_of_their_places_in_any_order() {
    let names = |rest: &str| -> Vec<String> {
        let document = read(&format!("qemu-system-x86_64 -machine pc {rest}")).unwrap();
        let disks = document.domain.disks.iter();
        disks.map(|disk| disk.name().to_owned()).collect()
    };
    for (rest, expected) in [
        ("-hda a -cdrom c -hdb b", &["hda", "hdc", "hdb"][..]),
        ("-cdrom c -drive file=a,format=raw", &["hdc", "hda"]),
        ("-drive file=b,index=3,format=raw -hda a", &["hdd", "hda"]),
        ("-fdb b -fda a", &["fdb", "fda"]),
        (
            "-drive file=b,format=raw,if=none,id=x -device ide-hd,drive=x,bus=ide.1,unit=1 -hda a",
            &["hdd", "hda"],
        ),
        ("-hda a -hda b", &["hda", "hdb"]),
    ] {
        assert_eq!(names(rest), expected, "{rest}");
    }
}

#[test]
fn a_drive_says_everything_in_one_place() {
    let disk = disk(
        "qemu-system-x86_64 -drive id=d,if=none,file.driver=host_device,file.filename=/dev/vg0/a,driver=raw,\
         cache.direct=on,aio=io_uring,discard=on,detect-zeroes=unmap,readonly=on,werror=stop,rerror=report,\
         throttling.iops-total=100,bps_rd=7,copy-on-read=on,snapshot=on \
         -device virtio-blk-pci,drive=d,serial=abc,share-rw=on,num-queues=2,write-cache=off,bootindex=1",
    );
    let backend = &disk.backend;
    assert_eq!(backend.image(), Some(&Image::host_device("/dev/vg0/a")));
    assert_eq!(backend.cache, Some(CacheMode::Directsync));
    assert_eq!(
        (backend.aio, backend.discard, backend.detect_zeroes),
        (
            Some(AioMode::IoUring),
            Some(Discard::Unmap),
            Some(DetectZeroes::Unmap)
        )
    );
    assert!(backend.is_read_only && backend.is_shareable && backend.is_transient);
    assert_eq!(backend.copy_on_read, Some(Switch::On));
    let iotune = backend.iotune.as_ref().unwrap();
    assert_eq!((iotune.iops.total, iotune.bytes.read), (Some(100), Some(7)));
    let frontend = &disk.frontend;
    assert_eq!(frontend.error_policy, Some(ErrorPolicy::Stop));
    assert_eq!(frontend.read_error_policy, Some(ReadErrorPolicy::Report));
    assert_eq!(
        (
            frontend.serial.as_deref(),
            frontend.queues,
            frontend.boot_order
        ),
        (Some("abc"), Some(2), Some(1))
    );
}

#[test]
fn names_of_other_protocols_are_told_from_paths() {
    let network = |protocol, name: &str, host| {
        let source = NetworkSource::new(protocol, Some(name.to_owned()), vec![host]);
        Protocol::Network(Box::new(source))
    };
    let tcp = |port| NetworkHost::tcp("h", port);
    for (name, protocol) in [
        (
            "nbd:h:1:exportname=a",
            network(NetworkProtocol::Nbd, "a", tcp(Some(1))),
        ),
        (
            "nbd+unix:///a?socket=/x",
            network(NetworkProtocol::Nbd, "a", NetworkHost::unix("/x")),
        ),
        (
            "rbd:pool/a:mon_host=h\\:6789",
            network(NetworkProtocol::Rbd, "pool/a", tcp(Some(6789))),
        ),
        (
            "https://h/a%20b.iso",
            network(NetworkProtocol::Https, "a b.iso", tcp(None)),
        ),
        (
            "iscsi://h/iqn.2026-01.com.example:a/1",
            network(
                NetworkProtocol::Iscsi,
                "iqn.2026-01.com.example:a/1",
                tcp(None),
            ),
        ),
        (
            "fat:/srv",
            Protocol::Directory {
                path: "/srv".to_owned(),
            },
        ),
        (
            "fat:floppy:16:/srv",
            Protocol::Directory {
                path: "/srv".to_owned(),
            },
        ),
        // libvirt has no other widths, and nothing that may be written to.
        ("fat:12:/srv", Protocol::Other("fat".to_owned())),
        ("fat:rw:/srv", Protocol::Other("fat".to_owned())),
        (
            "nvme://0000:01:00.0/1",
            Protocol::Nvme(NvmeSource {
                address: PciAddress {
                    bus: 1,
                    ..PciAddress::default()
                },
                namespace: 1,
                managed: None,
            }),
        ),
        (
            "json:{\"driver\":\"nbd\",,\"server\":{\"type\":\"unix\",,\"path\":\"/x\"},,\"export\":\"a\"}",
            network(NetworkProtocol::Nbd, "a", NetworkHost::unix("/x")),
        ),
        ("nbd:nowhere", Protocol::Other("nbd".to_owned())),
        (
            "https://user:password@h/a",
            Protocol::Other("https".to_owned()),
        ),
    ] {
        let text = format!("qemu-system-x86_64 -drive 'file={name},if=virtio,format=raw'");
        let disk = disk(&text);
        let image = disk.backend.image().expect("it has an image");
        assert_eq!(image.protocol, protocol, "{name}");
    }
    let disk = disk("qemu-system-x86_64 -drive file=file:/srv/a:b,format=raw");
    assert_eq!(
        disk.backend.image(),
        Some(&Image::file("/srv/a:b", Format::Raw))
    );
}

#[test]
fn mistakes_are_problems_with_their_places_and_reading_goes_on() {
    let text = r#"qemu-system-x86_64 \
 -blockdev '{"driver":"file","node-name":"f","filename":"/a","aoi":"threads","cache":{"direct":1}}' \
 -blockdev '{"driver":"qcow2","node-name":"q","file":"f","detect-zeroes":"of"}' \
 -blockdev '{"driver":"file"' \
 -device '{"driver":"virtio-blk-pci","drive":"q","num-queues":"4","write-cache":true,"id":"vda"}' \
 -device ide-hd,drive=nope,rotation_rate=fast"#;
    let document = read(text).unwrap();
    assert_eq!(document.domain.disks.len(), 2);
    let found = problems(&document, text);
    let places: Vec<&str> = found.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(
        places,
        ["\"aoi\"", "1", "of", "", "4", "true", "nope", "fast"]
            .map(|place| place.trim_matches('"'))
    );
    assert_eq!(
        document.problems[0].help.as_deref(),
        Some("did you mean `aio`?")
    );
}

#[test]
fn a_cache_size_has_a_unit_in_a_drive_and_none_in_a_node() {
    let drive = "qemu-system-x86_64 -drive file=/a,format=qcow2,if=virtio,cache-size=16M";
    let document = read(drive).unwrap();
    assert_eq!(problems(&document, drive), []);
    let size = document.domain.disks[0].backend.metadata_cache_size;
    assert_eq!(size, Some(Bytes(16 << 20)));

    let node = "qemu-system-x86_64 -device virtio-blk-pci,drive=q \\\n \
        -blockdev driver=qcow2,node-name=q,file.driver=file,file.filename=/a,cache-size=16M";
    let document = read(node).unwrap();
    assert_eq!(problems(&document, node).len(), 1);
    assert_eq!(
        document.problems[0].help.as_deref(),
        Some("write the bytes without a unit: 16777216")
    );
}

#[test]
fn a_common_word_for_a_format_is_not_taken_for_a_similar_name() {
    for (word, meant) in [("img", "raw"), ("qcow3", "qcow2")] {
        let text = format!("qemu-system-x86_64 -drive file=/a,format={word},if=virtio");
        let document = read(&text).unwrap();
        let help = format!("did you mean `{meant}`?");
        assert_eq!(document.problems[0].help.as_deref(), Some(help.as_str()));
    }
}

#[test]
fn what_a_shell_fills_in_later_is_no_mistake() {
    let text = "qemu-system-x86_64 -drive file=\"$DISK\",format=$FORMAT,aio=${AIO},if=virtio -smp $(nproc)";
    let document = read(text).unwrap();
    assert_eq!(document.problems, []);
    let image = document.domain.disks[0].backend.image().unwrap();
    assert_eq!(image.host_path(), Some("$DISK"));
}

#[test]
fn nodes_without_end_come_to_an_end() {
    for text in [
        "-blockdev driver=qcow2,node-name=a,file=a -device virtio-blk-pci,drive=a",
        "-blockdev driver=throttle,node-name=a,file=a -device virtio-blk-pci,drive=a",
        "-blockdev driver=file,node-name=f,filename=/x -blockdev driver=qcow2,node-name=a,file=f,backing=a -device virtio-blk-pci,drive=a",
        "-blockdev driver=raw,node-name=a,file=b -blockdev driver=raw,node-name=b,file=a -device virtio-blk-pci,drive=a",
    ] {
        read(text).unwrap();
    }
}

#[test]
fn a_fix_edits_the_values_and_nothing_else() {
    let set = |nth, field, value: &str| Change::set(FieldPath::Disk(nth, field), value);
    let format = FieldPath::Image(0, 0, ImageField::Format);
    for (before, change, after) in [
        (
            "-drive 'file=a b,if=virtio,cache=unsafe' # c",
            set(0, DiskField::Cache, "none"),
            "-drive 'file=a b,if=virtio,cache=none' # c",
        ),
        (
            r#"-blockdev "{\"driver\":\"file\",\"node-name\":\"f\",\"filename\":\"/a\"}" -device virtio-blk-pci,drive=f"#,
            set(0, DiskField::Aio, "native"),
            r#"-blockdev "{\"driver\":\"file\",\"node-name\":\"f\",\"filename\":\"/a\",\"aio\":\"native\"}" -device virtio-blk-pci,drive=f"#,
        ),
        (
            "-blockdev driver=qcow2,node-name=q,file.driver=file,file.filename=/a -device virtio-blk-pci,drive=q",
            set(0, DiskField::Aio, "native"),
            "-blockdev driver=qcow2,node-name=q,file.driver=file,file.filename=/a,file.aio=native -device virtio-blk-pci,drive=q",
        ),
        (
            "-blockdev driver=file,node-name=f,filename=/a -device virtio-blk-pci,num-queues=8,drive=f",
            Change::remove(FieldPath::Disk(0, DiskField::Queues)),
            "-blockdev driver=file,node-name=f,filename=/a -device virtio-blk-pci,drive=f",
        ),
        (
            r#"-blockdev '{"driver":"file","node-name":"f","filename":"/a","cache":{"direct":false,"no-flush":true}}' -device '{"driver":"virtio-blk-pci","drive":"f"}'"#,
            set(0, DiskField::Cache, "none"),
            r#"-blockdev '{"driver":"file","node-name":"f","filename":"/a","cache":{"direct":true,"no-flush":false}}' -device '{"driver":"virtio-blk-pci","drive":"f","write-cache":"on"}'"#,
        ),
        // The switch of a device overrides the mode of its drive, and the switches of a drive override its mode.
        (
            "-drive file=/a,if=none,id=a -device virtio-blk-pci,drive=a,write-cache=off",
            set(0, DiskField::Cache, "writeback"),
            "-drive file=/a,if=none,id=a,cache=writeback -device virtio-blk-pci,drive=a,write-cache=on",
        ),
        (
            "-drive file=/a,if=virtio,cache.writeback=off",
            set(0, DiskField::Cache, "writeback"),
            "-drive file=/a,if=virtio,cache.writeback=on,cache.direct=off,cache.no-flush=off",
        ),
        (
            "-drive file=/a,if=virtio,cache=writethrough,cache.direct=on",
            set(0, DiskField::Cache, "none"),
            "-drive file=/a,if=virtio,cache=none,cache.direct=on,cache.no-flush=off",
        ),
        (
            "-blockdev driver=raw,node-name=f,file.driver=file,file.filename=/a -device virtio-blk-pci,drive=f",
            Change::set(format, Format::Qcow2),
            "-blockdev driver=qcow2,node-name=f,file.driver=file,file.filename=/a -device virtio-blk-pci,drive=f",
        ),
    ] {
        let document = read(before).unwrap();
        let edits = edits_of_all(&document, &[change]).unwrap();
        assert_eq!(apply_edits(before, &edits).unwrap(), after);
    }
    let text = "-drive file=a,if=virtio";
    let document = read(text).unwrap();
    for change in [
        set(0, DiskField::TargetBus, "scsi"),
        set(0, DiskField::Aio, "native,x=y"),
        set(7, DiskField::Aio, "native"),
    ] {
        assert!(edits_of_all(&document, &[change]).is_err());
    }
}

#[test]
fn old_words_of_a_drive_are_read_as_qemu_reads_them() {
    let disk = disk(
        "qemu-system-x86_64 -drive file=/dev/vg0/a,format=host_device,if=virtio,cache=off,aio=native",
    );
    assert_eq!(disk.backend.cache, Some(CacheMode::None));
    let image = disk.backend.image().unwrap();
    assert_eq!(image.format, Some(Format::Raw));
    assert_eq!(image.host_path(), Some("/dev/vg0/a"));
}

#[test]
fn what_is_only_read_is_not_transient() {
    let line = "qemu-system-x86_64 -M q35 -snapshot -cdrom /a.iso -drive file=/b,format=raw,if=virtio \
                -drive file=/c,format=raw,if=virtio,readonly=on";
    let document = vmdisk_qemu::read(line).unwrap();
    let disks = document.domain.disks.iter();
    let transient: Vec<bool> = disks.map(|disk| disk.backend.is_transient).collect();
    assert_eq!(transient, [false, true, false]);
}

#[test]
fn microvm_has_no_device_for_a_drive_without_an_interface() {
    let head = "qemu-system-x86_64 -machine microvm";
    for options in [
        "-hda /a.img",
        "-cdrom /a.iso",
        "-drive file=/a.img,format=raw",
    ] {
        let document = read(&format!("{head} {options}")).unwrap();
        assert_eq!(document.domain.disks, [], "{options}");
        // A conversion names what it leaves out.
        assert_eq!(document.others.len(), 1, "{options}");
    }
    let text =
        format!("{head} -drive file=/a.img,format=raw,id=d -device virtio-blk-device,drive=d");
    assert_eq!(disk(&text).frontend.bus, Some(TargetBus::Virtio));
}

#[test]
fn a_device_finds_a_drive_by_the_name_that_qemu_gives_it() {
    let drives = "-drive file=/a.img,format=raw,if=none,id=d -drive file=/b.img,format=raw,if=none";
    let text = format!("qemu-system-x86_64 {drives} -device virtio-blk-pci,drive=none1");
    let image = disk(&text)
        .backend
        .image()
        .and_then(Image::host_path)
        .map(str::to_owned);
    assert_eq!(image.as_deref(), Some("/b.img"));
    let none = format!("qemu-system-x86_64 {drives} -device virtio-blk-pci,drive=none0");
    assert_eq!(
        read(&none).unwrap().problems.len(),
        1,
        "the first one has an id"
    );
}

#[test]
fn every_spelling_that_qemu_accepts_is_read() {
    let head = "qemu-system-x86_64 -drive file=/a.img,format=raw,if=none,id=d,stats-intervals.0=1";
    let sizes = "logical_block_size=4096,physical_block_size=4k,discard_granularity=1M";
    let rest = "werror=auto,rerror=auto,bootindex=-1,write-cache=auto";
    let text = format!("{head} -device virtio-blk-pci,drive=d,{sizes},{rest}");
    let document = read(&text).unwrap();
    assert_eq!(problems(&document, &text), []);
    let frontend = &disk(&text).frontend;
    assert_eq!(frontend.physical_block_size, Some(4096));
    assert_eq!(frontend.discard_granularity, Some(1 << 20));
    assert_eq!((frontend.boot_order, frontend.error_policy), (None, None));
}

#[test]
fn reads_that_stop_for_lack_of_space_are_no_error_on_a_device() {
    let drive = "qemu-system-x86_64 -drive file=/a.img,format=raw,if=none,id=d";
    let text = format!("{drive},rerror=stop -device virtio-blk-pci,drive=d,rerror=enospc");
    let document = read(&text).unwrap();
    assert_eq!(document.problems.len(), 1);
    assert_eq!(document.problems[0].severity, Severity::Warning);
    let policy = document.domain.disks[0].frontend.read_error_policy;
    assert_eq!(policy, Some(ReadErrorPolicy::Report));
    let text = format!("{drive},rerror=enospc -device virtio-blk-pci,drive=d");
    let refused = read(&text).unwrap();
    assert_eq!(refused.problems[0].severity, Severity::Error);
}

#[test]
fn words_of_protocols_are_no_part_of_a_path() {
    for (name, protocol) in [
        (
            "file:/srv/a.raw",
            Protocol::File {
                path: "/srv/a.raw".to_owned(),
            },
        ),
        (
            "host_device:/dev/sdb",
            Protocol::HostDevice {
                path: DevicePath::new("/dev/sdb"),
            },
        ),
        (
            "host_cdrom:/dev/sr0",
            Protocol::HostDevice {
                path: DevicePath::new("/dev/sr0"),
            },
        ),
    ] {
        let disk = disk(&format!(
            "qemu-system-x86_64 -drive file={name},format=raw,if=virtio"
        ));
        assert_eq!(disk.backend.image().unwrap().protocol, protocol, "{name}");
    }
}

#[test]
fn a_global_property_counts_as_read_only_if_every_device_of_its_driver_is_written() {
    let global = "-global virtio-blk-pci.queue-size=64";
    let device = "-drive file=/b,if=none,id=b -device virtio-blk-pci,drive=b";
    for (text, is_read) in [
        (device.to_owned(), true),
        (format!("{device} -drive file=/a,if=ide"), true),
        (format!("{device} -drive file=/a,if=virtio"), false),
        (format!("{device} -drive file=/a"), false),
        (format!("{device} -hda /a"), false),
        ("-drive file=/a,if=virtio".to_owned(), false),
    ] {
        let document = read(&format!("qemu-system-x86_64 -M pc {global} {text}")).unwrap();
        let others = document.others.iter();
        let is_left = others
            .filter(|other| other.name.contains("-global"))
            .count()
            > 0;
        assert_eq!(!is_left, is_read, "{text}");
        let mut disks = document.domain.disks.iter();
        let is_applied = disks.any(|disk| disk.frontend.queue_size == Some(64));
        assert_eq!(is_applied, text.starts_with(device), "{text}");
    }
}

#[test]
fn a_switch_of_a_node_is_a_boolean_in_json() {
    let text = r#"qemu-system-x86_64 -device virtio-blk-pci,drive=f -blockdev '{"driver":"file","node-name":"f","filename":"/a","cache":{"no-flush":0}}'"#;
    let document = read(text).unwrap();
    assert_eq!(
        document.problems[0].message,
        "invalid value `0` for `cache.no-flush`, expected one of true, false"
    );
}

#[test]
fn the_memory_of_a_guest_without_m_is_that_of_its_object() {
    for (kind, access) in [("shm", Some(MemoryAccess::Shared)), ("ram", None)] {
        let text = format!(
            "qemu-system-x86_64 -M q35,memory-backend=m -object memory-backend-{kind},id=m,size=512M -hda /a"
        );
        let domain = read(&text).unwrap().domain;
        assert_eq!(domain.memory, Some(Bytes(512 * Bytes::MIB)), "{text}");
        assert_eq!(domain.memory_backing.access, access, "{text}");
        let told = read(&format!("{text} -m 1G")).unwrap().domain;
        assert_eq!(told.memory, Some(Bytes::gib(1)), "{text}");
    }
}

#[test]
fn a_question_for_the_formats_is_no_mistake() {
    for (word, problems) in [("help", 0), ("?", 0), ("hlep", 1)] {
        let document = read(&format!("qemu-system-x86_64 -drive format={word}")).unwrap();
        assert_eq!(document.problems.len(), problems, "{word}");
    }
}

#[test]
fn a_memory_object_has_the_memory_of_the_guest_and_is_shared_as_qemu_shares_it() {
    // memfd is shared unless it says otherwise, shm always.
    for (kind, by_default) in [
        ("ram", false),
        ("memfd", true),
        ("file,mem-path=/dev/shm/a", false),
        ("shm", true),
    ] {
        for share in [None, Some(true), Some(false)] {
            for size in ["", "-m 512M "] {
                let option = share.map_or("", |on| if on { ",share=on" } else { ",share=off" });
                let text = format!(
                    "qemu-system-x86_64 {size}-M q35,memory-backend=m -object memory-backend-{kind},id=m,size=512M{option}"
                );
                let domain = read(&text).unwrap().domain;
                assert_eq!(domain.memory, Some(Bytes(512 << 20)), "{text}");
                let is_shared = share.unwrap_or(by_default) || kind == "shm";
                assert_eq!(domain.memory_backing.is_shared(), is_shared, "{text}");
            }
        }
    }
}

#[test]
fn the_commands_of_a_unit_are_those_that_systemd_runs() {
    let qemu = "qemu-system-x86_64 -S -drive file=/srv/a.img,format=raw,if=virtio";
    let old = qemu.replace("/srv/a", "/srv/old");
    for (service, path) in [
        (format!("ExecStart=\nExecStart={qemu}"), "/srv/a.img"),
        (
            format!("ExecStart={old}\nExecStart=\nExecStart=-{qemu}"),
            "/srv/a.img",
        ),
        (
            format!(
                "ExecStart=@/usr/bin/qemu-system-x86_64 vm-web -S {}",
                &qemu[21..]
            ),
            "/srv/a.img",
        ),
        (
            format!("ExecStart=/bin/true ; {qemu} ; /bin/true \\; -x"),
            "/srv/a.img",
        ),
        (format!("ExecStart=/bin/sh -c 'exec {qemu}'"), "/srv/a.img"),
        (format!("ExecStart=/bin/bash -c \"{qemu}\""), "/srv/a.img"),
        (
            format!(
                "Environment=DIR=/srv\nExecStart=:{}",
                qemu.replace("/srv/a", "/x/${DIR}")
            ),
            "/x/${DIR}.img",
        ),
    ] {
        let unit = format!("[Service]\n{service}\n");
        let document = read(&unit).unwrap_or_else(|failure| panic!("{unit}: {failure}"));
        let image = document.domain.disks[0].backend.image().unwrap();
        assert_eq!(image.host_path(), Some(path), "{unit}");
        assert_eq!(document.domain.disks.len(), 1, "{unit}");
    }
    let refused = read(&format!("[Service]\nExecStart={qemu}\nExecStart=\n")).unwrap_err();
    assert!(
        refused.to_string().contains("no QEMU command line"),
        "{refused}"
    );
}

/// The paths of the first disks of each start, with the target or function that it is in.
fn images(text: &str) -> Vec<(String, Vec<String>)> {
    let found = read_all(text, text.len(), &[], &BTreeMap::new())
        .unwrap_or_else(|failure| panic!("{text}: {failure}"));
    let start = |document: &Document| {
        let disks = document.domain.disks.iter();
        let images = disks.filter_map(|disk| disk.backend.image()?.host_path());
        let owner = document.start.owner.clone().unwrap_or_default();
        (owner, images.map(str::to_owned).collect())
    };
    found.iter().map(start).collect()
}

#[test]
fn a_disk_is_not_the_value_of_the_option_before_it() {
    let drive = "-drive file=/a.img,format=raw,if=virtio";
    for before in ["-enable-sync-profile", "-frobnicate", "-serial", "-m"] {
        let line = format!("qemu-system-x86_64 {before} {drive}");
        assert_eq!(
            images(&line),
            [(String::new(), vec!["/a.img".to_owned()])],
            "{line}"
        );
    }
    let text = format!("A=\"{drive}\"; qemu-system-x86_64 -m 512 \"$A\" -device virtio-rng-pci\n");
    let document = read(&text).unwrap();
    assert_eq!(document.domain.disks, []);
    let message = "`-drive` and its value are one word, which QEMU does not know as an option";
    assert_eq!(
        problems(&document, &text),
        [(drive.to_owned(), message.to_owned())]
    );
}

#[test]
fn a_drive_that_names_the_driver_of_its_protocol_has_a_format() {
    for drive in [
        "file=fat:rw:/d,format=vvfat",
        "file=/dev/sda,format=host_device",
    ] {
        let line = format!("qemu-system-x86_64 -drive {drive},if=virtio");
        let document = vmdisk_qemu::read(&line).unwrap();
        assert!(
            document.problems.is_empty(),
            "{line}: {:?}",
            document.problems
        );
    }
}
