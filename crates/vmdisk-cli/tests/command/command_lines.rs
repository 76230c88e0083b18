//! Command lines from scripts and guides.

use crate::Place;

/// Lints a command line, and returns the rules of its findings with their lines.
fn found(text: &str) -> Vec<String> {
    let place = Place::with(&[("a.args", text)]);
    let run = place.run(&["lint", "a.args", "--format", "concise"]);
    let lines = run.stdout.lines().map(str::to_owned);
    lines.collect()
}

#[test]
fn the_help_for_a_short_option_names_no_bus() {
    let place = Place::with(&[("a.args", "qemu-system-arm -M versatilepb -hda a.img\n")]);
    let run = place.run(&["lint", "a.args"]);
    let help = "use `-drive file=a.img,index=0,format=raw` instead of `-hda`";
    assert!(run.stdout.contains(help), "{run:?}");
}

#[test]
fn queues_are_compared_with_the_vcpus_of_a_topology() {
    let line = |topology: &str| {
        format!(
            "qemu-system-x86_64 -M q35 -smp {topology} -drive id=a,if=none,file=/a,format=raw \
             -device virtio-blk-pci,drive=a,num-queues=4\n"
        )
    };
    assert_eq!(found(&line("cores=2,threads=2")), [""; 0]);
    let few = found(&line("cores=2"));
    assert!(few[0].contains("4 queues for 2 vCPUs"), "{few:?}");
}

#[test]
fn a_setting_with_a_variable_is_not_checked_and_not_replaced() {
    let drives = "qemu-system-x86_64 -M q35 -drive file=a,if=none,id=a,format=$F,discard=$D,detect-zeroes=unmap \
                  -device virtio-blk-pci,drive=a,iothread=${T},serial=$A_SERIAL_NUMBER_OF_UNKNOWN_LENGTH \
                  -drive file=b,if=virtio,format=raw,cache=$C,aio=native \
                  -blockdev file,filename=c,node-name=c,cache.direct=$C,aio=native -device virtio-blk-pci,drive=c\n";
    let place = Place::with(&[("a.args", drives)]);
    let run = place.run(&["lint", "a.args", "--format", "concise", "-v"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
    let rules = [
        "format-missing",
        "iothread-undefined",
        "native-without-direct",
    ];
    for rule in rules {
        assert!(run.stderr.contains(rule), "{rule}: {run:?}");
    }
    let diff = place.run(&["lint", "a.args", "--diff", "--unsafe-fixes"]);
    assert_eq!(diff.stdout, "", "{diff:?}");
    // Another setting of the same line is still checked.
    let known = drives.replace("format=$F", "format=$F,cache=unsafe");
    assert!(found(&known)[0].contains("cache-unsafe"), "{known}");
}

#[test]
fn namespaces_of_one_nvme_controller_have_its_serial_number() {
    let line = |bus: &str| {
        format!(
            "qemu-system-x86_64 -M q35 -drive file=a,if=none,id=a,format=raw -drive file=b,if=none,id=b,format=raw \
             -device nvme,id=n0,serial=x -device nvme,id=n1,serial=x \
             -device nvme-ns,drive=a,bus=n0,nsid=1 -device nvme-ns,drive=b,bus={bus},nsid=2\n"
        )
    };
    assert_eq!(found(&line("n0")), [""; 0]);
    assert!(found(&line("n1"))[0].contains("serial-twice"));
}

#[test]
fn a_directory_as_a_fat_file_system_has_no_format_to_forge() {
    let found = found("qemu-system-x86_64 -M q35 -drive file=fat:esp,if=virtio,read-only=on\n");
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_disk_of_ceph_keeps_its_user_and_the_keyring_is_named() {
    let line = "qemu-system-x86_64 -name a -M q35 -drive \
                file=rbd:pool/image:conf=/etc/ceph.conf:id=admin:keyring=/etc/key,if=virtio,format=raw\n";
    let place = Place::with(&[("a.args", line)]);
    let run = place.run(&["convert", "--to", "libvirt-xml", "a.args"]);
    assert_eq!(run.code, 0, "{run:?}");
    for part in [
        "<source protocol='rbd' name='pool/image'>",
        "<config file='/etc/ceph.conf'/>",
        "<auth username='admin'/>",
    ] {
        assert!(run.stdout.contains(part), "{run:?}");
    }
    for part in [
        "`keyring` is not carried over",
        "libvirt refuses the user `admin` without a key",
    ] {
        assert!(run.stderr.contains(part), "{run:?}");
    }
    let strict = place.run(&["convert", "--strict", "--to", "qemu", "a.args"]);
    assert_eq!(strict.code, 1, "{strict:?}");
}

#[test]
fn a_value_that_cannot_be_read_is_not_also_called_unset() {
    let disk = |format: &str| {
        format!(
            "<disk type='file'><driver name='qemu' type='{format}'/><source file='/a.qcow2'/>\
             <target dev='vda' bus='virtio'/></disk>"
        )
    };
    let place = Place::with(&[("a.xml", &disk("qcow3"))]);
    let run = place.run(&["lint", "a.xml", "--format", "concise", "--select", "all"]);
    assert!(run.stdout.contains("[invalid-value]"), "{run:?}");
    assert!(!run.stdout.contains("[format-missing]"), "{run:?}");
    let fixed = place.run(&["lint", "a.xml", "--fix", "--unsafe-fixes"]);
    assert!(!place.read("a.xml").contains("type='raw'"), "{fixed:?}");
}

#[test]
fn a_fix_is_kept_although_a_pedantic_finding_follows() {
    let text = "<domain type='kvm'><name>a</name><memory>1000000</memory><os><type>hvm</type></os><devices>\
                <Disk type='file'><driver name='qemu' type='raw'/><source file='/a'/>\
                <target dev='vda' bus='virtio'/></Disk></devices></domain>";
    let place = Place::with(&[("a.xml", text)]);
    let run = place.run(&["lint", "--fix", "a.xml"]);
    assert!(place.read("a.xml").contains("<disk type="), "{run:?}");
}

#[test]
fn variables_of_the_firmware_on_a_block_device_stay_there_and_their_size_is_named() {
    let line = "qemu-system-x86_64 -name a -M q35 \
                -drive if=pflash,unit=0,format=raw,readonly=on,file=/usr/share/OVMF_CODE.fd \
                -drive if=pflash,unit=1,id=efi,format=raw,file=/dev/vg0/efi,size=540672\n";
    let place = Place::with(&[("a.args", line)]);
    let run = place.run(&["convert", "--to", "libvirt-xml", "a.args"]);
    assert_eq!(run.code, 0, "{run:?}");
    for part in ["<nvram type='block'>", "<source dev='/dev/vg0/efi'/>"] {
        assert!(run.stdout.contains(part), "{run:?}");
    }
    let named = "not carried over: `-drive if=pflash,size`";
    assert!(run.stderr.contains(named), "{run:?}");
}

#[test]
fn misspelt_names_are_reported_with_the_intended_one() {
    for (options, message, help) in [
        (
            "-devcie virtio-blk-pci,drive=a",
            "QEMU has no option `-devcie`",
            "`-device`",
        ),
        (
            "-drve file=/a,format=raw",
            "QEMU has no option `-drve`",
            "`-drive`",
        ),
        (
            "-device virtoi-blk-pci,drive=a -drive id=a,if=none,file=/a,format=raw",
            "QEMU has no device `virtoi-blk-pci`",
            "`virtio-blk-pci`",
        ),
        (
            "-blockdev driver=qcow3,node-name=a,file=b -device virtio-blk-pci,drive=a",
            "QEMU has no block driver `qcow3`",
            "`qcow2`",
        ),
        (
            "-drive file=/a,format=raw,if=virtio,cahce=none",
            "unknown property `cahce`",
            "`cache`",
        ),
        (
            "-drive file=/a,format=raw,if=virtoi",
            "if=virtoi",
            "`if=virtio`",
        ),
        (
            "-drive file=/a,format=raw,media=cdrm",
            "media=cdrm: expected cdrom or disk",
            "media=cdrom",
        ),
    ] {
        let place = Place::with(&[("a.args", &format!("qemu-system-x86_64 -M q35 {options}\n"))]);
        let run = place.run(&["lint", "a.args"]);
        assert_eq!(run.code, 1, "{options}: {run:?}");
        assert!(run.stdout.contains(message), "{options}: {run:?}");
        assert!(run.stdout.contains(help), "{options}: {run:?}");
    }
}

#[test]
fn names_of_other_devices_and_options_are_not_called_misspelt() {
    let line = "qemu-system-x86_64 -M q35 -id 104 -chardev null,id=c -fsdev local,id=f,path=/,security_model=none \
                -netdev user,id=n -device virtio-gpu-pci -device virtio-rng-pci -device virtio-net-pci,netdev=n \
                -device virtio-9p-pci,fsdev=f,mount_tag=t -device vhost-vsock-pci,guest-cid=3 -device nvdimm \
                -device isa-serial,chardev=c -device usb-host -device ich9-usb-ehci1 -objects x\n";
    let found: Vec<String> = found(line)
        .into_iter()
        .filter(|line| line.contains("QEMU has no"))
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`-objects`"), "{found:?}");
}

#[test]
fn drives_with_one_place_and_beyond_the_ports_are_reported() {
    for (options, message) in [
        ("-hda a -hda b", "another drive has index 0 of if=ide"),
        (
            "-drive file=/a,format=raw,if=virtio -drive file=/b,format=raw,if=virtio,index=0",
            "another drive has index 0 of if=virtio",
        ),
        (
            "-cdrom a -drive file=/b,format=raw,bus=2,unit=0",
            "another drive has index 2 of if=ide",
        ),
        (
            "-drive file=/a,format=raw,if=none,index=0,id=a -drive file=/b,format=raw,if=none,index=0,id=b",
            "another drive has index 0 of if=none",
        ),
        (
            "-drive file=/a,format=raw,index=7",
            "q35 has no IDE or SATA port 7",
        ),
    ] {
        let found = found(&format!("qemu-system-x86_64 -M q35 {options}\n"));
        assert!(
            found.iter().any(|line| line.contains(message)),
            "{options}: {found:?}"
        );
    }
    for options in [
        "-hda a -hdb b -cdrom c -drive file=/d,format=raw",
        "-drive file=/a,format=raw,if=none,index=0,id=a -drive file=/b,format=raw,if=none,id=b",
        "-drive file=/a,format=raw,if=virtio,index=0 -drive file=/b,format=raw,if=ide,index=0",
        "-drive file=/a,format=raw,index=$N -drive file=/b,format=raw,index=0",
    ] {
        let found = found(&format!("qemu-system-x86_64 -M q35 {options}\n"));
        assert!(
            !found.iter().any(|line| line.contains("another drive")),
            "{options}: {found:?}"
        );
    }
}

#[test]
fn the_path_of_a_transient_disk_ends_in_a_temporary_file() {
    let line = "qemu-system-x86_64 -m 1G -drive file=/vm/a.qcow2,format=qcow2,if=virtio";
    for text in [
        format!("{line},snapshot=on\n"),
        format!("{line} -snapshot\n"),
    ] {
        let path = traced(&text);
        for said in [
            "write                cached: to a temporary file, which is deleted when the guest stops",
            "write, flush, discard absent: a backing image is not written",
        ] {
            assert!(path.contains(said), "{path}");
        }
        assert!(
            path.contains(
                "flush                dropped: QEMU ignores flushes of its temporary file"
            ),
            "{path}"
        );
        assert!(path.contains("format: qcow2, backing image 1"), "{path}");
        // The rules have the same verdict.
        let transient = text.replace(line, &format!("{line},cache=writethrough"));
        assert!(
            !found(&transient)
                .iter()
                .any(|it| it.contains("waits for the medium"))
        );
    }
    let cached = found(&format!("{line},cache=writethrough\n"));
    assert!(
        cached.iter().any(|it| it.contains("waits for the medium")),
        "{cached:?}"
    );
    assert!(!traced(&format!("{line}\n")).contains("temporary"));
    assert!(!traced(&format!("{line},snapshot=on,readonly=on\n")).contains("temporary"));
}

#[test]
fn the_path_of_an_image_without_a_format_says_that_qemu_probes_it() {
    let path = traced("qemu-system-x86_64 -m 1G -hda a.qcow2\n");
    assert!(path.contains("format: probed"), "{path}");
    assert!(
        path.contains("[unknown: the header of a.qcow2: no facts were given; collect"),
        "{path}"
    );
    let given = Place::with(&[("a.args", "qemu-system-x86_64 -m 1G -hda a.qcow2\n")]);
    let given = given.run(&["trace", "a.args", "--disk-format", "qcow2"]);
    assert!(given.stdout.contains("format: qcow2"), "{given:?}");
    let xml = "<disk type='file'><source file='/a.qcow2'/><target dev='vda' bus='virtio'/></disk>";
    let place = Place::with(&[("a.xml", xml)]);
    let raw = place.run(&["trace", "a.xml"]);
    assert!(raw.stdout.contains("format: raw"), "{raw:?}");
}

/// The path of the disk of a command line.
fn traced(text: &str) -> String {
    let place = Place::with(&[("a.args", text)]);
    place.run(&["trace", "a.args"]).stdout
}

#[test]
fn words_of_a_text_without_quotes_are_no_images() {
    let start = "/usr/bin/qemu-system-x86_64 -name guest=a b,debug-threads=on -machine pc,accel=kvm -m 1024";
    let smbios = "-smbios type=1,manufacturer=OpenStack Foundation,product=OpenStack Nova,version=17.0.13,family=Virtual Machine";
    let disk = "-drive file=/srv/a.raw,format=raw,if=none,id=d -device virtio-blk-pci,drive=d";
    assert_eq!(found(&format!("{start} {smbios} {disk}\n")), [""; 0]);
    // An image stays one, and so does a word of a line whose writer can quote.
    for text in [
        format!("{start} -smbios type=1,manufacturer=x /srv/b.img {disk}\n"),
        format!("{start} {smbios} {disk} -append \"a b\"\n"),
        format!("{start} {disk} -vga std disk\n"),
    ] {
        let found = found(&text);
        assert!(
            found.iter().any(|it| it.contains("[format-missing]")),
            "{text}{found:?}"
        );
    }
}

#[test]
fn two_functions_of_a_card_in_one_port_are_no_error_and_a_disk_is() {
    let line = "qemu-system-x86_64 -nodefaults -M q35 -m 1G -device pcie-root-port,id=rp1,chassis=1 \
                -device vfio-pci,host=01:00.0,bus=rp1 -blockdev file,filename=/a,node-name=a";
    let audio =
        format!("{line} -device vfio-pci,host=01:00.1,bus=rp1 -device virtio-blk-pci,drive=a\n");
    assert_eq!(found(&audio), [""; 0]);
    let disk = found(&format!("{line} -device virtio-blk-pci,drive=a,bus=rp1\n"));
    assert!(disk[0].contains("error[slot-taken]"), "{disk:?}");
}

#[test]
fn options_of_a_base_node_are_carried_or_refused() {
    let line = |base: &str, top: &str| {
        format!(
            "qemu-system-x86_64 -name n -M q35 -m 1G -blockdev driver=file,node-name=base,filename=/b.img{base} \
             -blockdev driver=file,node-name=f,filename=/o.qcow2{top} -blockdev driver=qcow2,node-name=d,file=f,backing=base \
             -device virtio-blk-pci,drive=d\n"
        )
    };
    let both = ",cache.direct=on,aio=native";
    for (base, top, named) in [
        ("", "", [].as_slice()),
        (both, both, &[]),
        (both, "", &["`cache.direct`", "`aio`"]),
        ("", both, &["`cache.direct`", "`aio`"]),
        (",cache.no-flush=on", "", &["`cache.no-flush`"]),
    ] {
        let place = Place::with(&[("a.sh", &line(base, top))]);
        for to in ["qemu", "libvirt-xml"] {
            let run = place.run(&["convert", "--to", to, "a.sh"]);
            let code = if named.is_empty() { 0 } else { 2 };
            assert_eq!(run.code, code, "{base} {top}: {run:?}");
            let count = run.stderr.matches("backing image 1").count();
            assert_eq!(count, named.len(), "{run:?}");
            assert!(named.iter().all(|it| run.stderr.contains(it)), "{run:?}");
        }
    }
}

#[test]
fn a_format_that_does_not_exist_is_reported_with_and_without_a_device() {
    let device = " -device virtio-blk-pci,drive=d";
    for (format, device, count) in [
        ("bogus", "", 1),
        ("bogus", device, 1),
        ("raw", "", 0),
        ("help", "", 0),
        ("$F", "", 0),
    ] {
        let rules = found(&format!(
            "qemu-system-x86_64 -m 1G -drive file=/a.img,format={format},if=none,id=d{device}\n"
        ));
        let reported = rules
            .iter()
            .filter(|it| it.contains("[invalid-value]"))
            .count();
        assert_eq!(reported, count, "{format}{device}: {rules:?}");
    }
}

#[test]
fn linux_aio_without_flushes_stays_direct() {
    for drive in [
        "-drive file=/a.raw,format=raw,if=virtio,cache.direct=on,cache.no-flush=on,aio=native",
        "-drive file=/a.raw,format=raw,if=virtio,cache=unsafe,cache.direct=on,aio=native",
        "-blockdev driver=file,node-name=f,filename=/a.raw,cache.direct=on,cache.no-flush=on,aio=native \
         -device virtio-blk-pci,drive=f",
    ] {
        let text = format!("qemu-system-x86_64 -m 1G {drive}\n");
        let rules = found(&text);
        assert!(
            rules.iter().any(|it| it.contains("[cache-unsafe]")),
            "{rules:?}"
        );
        assert!(
            !rules.iter().any(|it| it.contains("native-without-direct")),
            "{rules:?}"
        );
        let place = Place::with(&[("a.sh", &text)]);
        let convert = place.run(&["convert", "--to", "disk-xml", "a.sh"]);
        assert_eq!(convert.code, 2, "{convert:?}");
        assert!(convert.stderr.contains("`aio`"), "{convert:?}");
        let fixed = place.run(&["lint", "--no-config", "--fix", "a.sh"]);
        assert_eq!(fixed.code, 0, "{fixed:?}");
        let after = place.read("a.sh");
        assert!(
            after.contains("cache.direct=on") && after.contains("aio=native"),
            "{after}"
        );
        assert!(!after.contains("no-flush=on"), "{after}");
    }
}

#[test]
fn a_drive_on_flash_of_a_board_is_named_as_not_checked() {
    let line = "qemu-system-arm -M ast2500-evb -drive file=/a.img,format=raw,if=mtd";
    let place = Place::with(&[("a.args", line)]);
    let run = place.run(&["lint", "a.args"]);
    let said = "1 word of the command line is unknown: `-drive if=mtd`";
    assert!(run.stderr.contains(said), "{run:?}");
    let json = place.run(&["lint", "--format", "json", "a.args"]);
    assert!(json.stdout.contains("-drive if=mtd"), "{json:?}");
}
