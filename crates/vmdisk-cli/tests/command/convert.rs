//! Convert: from one form to another, and nothing lost without a word.

use crate::{CLEAN, Place};

#[test]
fn a_disk_goes_to_qemu_and_comes_back() {
    let place = Place::with(&[("a.xml", CLEAN)]);
    let line = place.run(&["convert", "a.xml", "--to", "qemu"]);
    assert_eq!((line.code, line.stderr.as_str()), (0, ""));
    let back = place.run_with_input(&["convert", "--to", "disk-xml"], line.stdout.as_bytes());
    assert_eq!((back.code, back.stdout.as_str()), (0, CLEAN), "{back:?}");
}

#[test]
fn what_nobody_understands_refuses_the_conversion_with_its_place() {
    let text = CLEAN.replace("web1.qcow2'/>", "web1.qcow2'><compression/></source>");
    let place = Place::with(&[("a.xml", &text)]);
    let run = place.run(&["convert", "a.xml", "--to", "qemu"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr
            .contains("`<compression>` cannot be carried over")
    );
    assert!(run.stderr.contains("a.xml:3:"), "{run:?}");
    // The same form keeps it.
    let same = place.run(&["convert", "a.xml", "--to", "disk-xml"]);
    assert!(same.code == 0 && same.stdout.contains("<compression/>"));
}

#[test]
fn secrets_go_by_reference_there_and_back() {
    let uuid = "0a81f5b2-8403-7b23-c8d6-21ccc2f80d6f";
    let source = format!(
        "web1.qcow2'>\n    <encryption format='luks'>\n      <secret type='passphrase' uuid='{uuid}'/>\n    \
         </encryption>\n  </source>"
    );
    let text = CLEAN.replace("web1.qcow2'/>", &source);
    let place = Place::with(&[("a.xml", &text)]);
    let line = place.run(&["convert", "a.xml", "--to", "qemu"]);
    assert_eq!(line.code, 0, "{line:?}");
    let file = format!(r#""file":"/etc/libvirt/secrets/{uuid}.base64","format":"base64""#);
    assert!(line.stdout.contains(&file), "{line:?}");
    let back = place.run_with_input(&["convert", "--to", "disk-xml"], line.stdout.as_bytes());
    assert_eq!((back.code, back.stdout), (0, text));
}

#[test]
fn disks_alone_need_no_name_of_their_guest() {
    let place = Place::with(&[]);
    let line = b"qemu-system-x86_64 -drive file=/a,format=raw,if=virtio";
    let run = place.run_with_input(&["convert", "--to", "disk-xml", "--strict"], line);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
}

#[test]
fn what_is_not_about_disks_is_named() {
    let place = Place::with(&[]);
    let line = b"qemu-system-x86_64 -drive file=/a,format=raw,if=virtio -netdev user,id=n -vga std";
    let run = place.run_with_input(&["convert", "--to", "libvirt-xml"], line);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("`-netdev`, `-vga`"), "{run:?}");
}

#[test]
fn a_command_line_is_checked_and_mended_in_place() {
    let line = "qemu-system-x86_64 \\\n  -drive file=/a,format=raw,if=virtio,cache=unsafe # mine\n";
    let place = Place::with(&[("vm.args", line), ("other.args", "--verbose")]);
    let run = place.run(&["lint", ".", "--format", "concise"]);
    assert_eq!(run.code, 1);
    assert!(
        run.stdout.starts_with("vm.args:2:45: error[cache-unsafe]"),
        "{run:?}"
    );
    place.run(&["lint", "vm.args", "--fix"]);
    assert_eq!(place.read("vm.args"), line.replace("unsafe", "writeback"));
}

const LEFT_OPEN: &str = include_str!("../../../../fixtures/guests/left-open.xml");

#[test]
fn what_libvirt_would_fill_in_is_written_with_its_reasons() {
    let place = Place::with(&[("a.xml", LEFT_OPEN)]);
    let run = place.run(&["convert", "a.xml", "--to", "libvirt-xml", "--resolved"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("would add 9 defaults"), "{run:?}");
    // What is filled in stays as it is.
    let again = place.run_with_input(
        &["convert", "--to", "libvirt-xml", "--resolved"],
        run.stdout.as_bytes(),
    );
    assert_eq!(again.stdout, run.stdout);
    assert_eq!(again.stderr, "nothing was left open\n");
    let line = place.run(&[
        "convert",
        "a.xml",
        "--to",
        "qemu",
        "--resolved",
        "--explain",
    ]);
    assert_eq!(line.code, 0, "{line:?}");
    assert!(line.stdout.contains("lsi53c895a"), "{line:?}");
    assert!(
        line.stderr.contains("disk sdi › target/@bus: scsi: "),
        "{line:?}"
    );
    let alone = place.run(&["convert", "a.xml", "--to", "libvirt-xml", "--explain"]);
    assert_eq!(alone.code, 2, "{alone:?}");
}

#[test]
fn two_disks_of_one_name_are_refused_when_resolved() {
    let disk = |path: &str| {
        format!(
            "<disk type='file'><driver type='raw'/><source file='{path}'/>\
             <target dev='vda' bus='virtio'/></disk>"
        )
    };
    let guest = format!(
        "<domain type='kvm'><name>a</name><devices>{}{}</devices></domain>",
        disk("/a"),
        disk("/b")
    );
    let place = Place::with(&[("a.xml", &guest)]);
    let run = place.run(&["convert", "a.xml", "--to", "libvirt-xml", "--resolved"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    assert!(
        run.stderr.contains("two disks have the name vda"),
        "{run:?}"
    );
}

#[test]
fn two_disks_in_one_place_are_refused_with_their_place() {
    let disk = "<disk type='file'><source file='/b'/><target dev='hdi' bus='scsi'/></disk>";
    let text = LEFT_OPEN.replacen(
        "    <controller",
        &format!("    {disk}\n    <controller"),
        1,
    );
    let place = Place::with(&[("a.xml", &text)]);
    let run = place.run(&["convert", "a.xml", "--to", "libvirt-xml", "--resolved"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr.contains("disk hdi has the address of disk sdi")
            && run.stderr.contains("a.xml:15:"),
        "{run:?}"
    );
}

const SPEC: &str = "version: 1
disks:
- qcow2:
    path: /srv/web1.qcow2
  bus: virtio
  target: vda
  cache: none
  io: native
  discard: unmap
";

/// The disks of a spec that was converted to a form and back. A command line says which disk is booted.
fn disks_of(back: &str, form: &str) -> String {
    let disks = back.split_once("disks:").expect("it has disks").1;
    let boots = usize::from(form == "qemu");
    assert_eq!(disks.matches("  boot: 1\n").count(), boots, "{form}");
    disks.replace("  boot: 1\n", "")
}

#[test]
fn a_spec_goes_to_each_form_and_comes_back() {
    let place = Place::with(&[("a.yaml", SPEC)]);
    for form in ["disk-xml", "libvirt-xml", "qemu", "spec"] {
        let there = place.run(&["convert", "a.yaml", "--to", form]);
        assert_eq!(there.code, 0, "{form}: {there:?}");
        let back = place.run_with_input(&["convert", "--to", "spec"], there.stdout.as_bytes());
        assert_eq!(back.code, 0, "{form}: {back:?}");
        let disks = disks_of(&back.stdout, form);
        assert_eq!(disks, SPEC.split_once("disks:").unwrap().1, "{form}");
    }
}

const BEHIND_SERVERS: &str = "version: 1
disks:
- network:
    protocol: nbd
    name: web1
    hosts:
    - name: store.example
      port: 10809
    format: qcow2
  bus: virtio
  target: vda
  cache: none
  discard: unmap
- network:
    protocol: rbd
    name: pool/space/web1
    hosts:
    - name: mon1
      port: 6789
    - name: 2001:db8::7
      port: 6789
    snapshot: old
    config-file: /etc/ceph/ceph.conf
  bus: virtio
  target: vdb
  cache: writeback
  discard: ignore
  readonly: true
- network:
    protocol: gluster
    name: vol/a.img
    hosts:
    - name: g1.example
      port: 24007
    - socket: /run/gluster.sock
  bus: virtio
  target: vdc
  cache: none
  discard: unmap
- network:
    protocol: https
    name: images/a b.img
    hosts:
    - name: store.example
      port: 443
    query: a=b
    ssl-verify: false
    readahead: 64K
    timeout: 10
  bus: virtio
  target: vdd
  cache: none
  discard: ignore
  readonly: true
";

#[test]
fn disks_behind_servers_go_to_each_form_and_come_back() {
    let place = Place::with(&[("a.yaml", BEHIND_SERVERS)]);
    for form in ["libvirt-xml", "qemu", "spec"] {
        let there = place.run(&["convert", "a.yaml", "--to", form]);
        assert_eq!(
            (there.code, there.stderr.as_str()),
            (0, ""),
            "{form}: {there:?}"
        );
        let back = place.run_with_input(&["convert", "--to", "spec"], there.stdout.as_bytes());
        assert_eq!(
            (back.code, back.stderr.as_str()),
            (0, ""),
            "{form}: {back:?}"
        );
        assert_eq!(
            disks_of(&back.stdout, form),
            BEHIND_SERVERS.split_once("disks:").unwrap().1,
            "{form}"
        );
    }
}

#[test]
fn a_spec_of_a_kvm_guest_is_no_command_line() {
    let text = SPEC.replacen('\n', "\n# made by qemu-kvm\nguest:\n  type: kvm\n", 1);
    for text in [
        text.clone(),
        text.replacen("version: 1\n", "", 1) + "version: 1\n",
    ] {
        let place = Place::with(&[("a.yaml", &text)]);
        let run = place.run(&["convert", "a.yaml", "--to", "libvirt-xml"]);
        assert_eq!(run.code, 0, "{text}{run:?}");
        assert!(run.stdout.starts_with("<domain type='kvm'>"), "{run:?}");
    }
}

#[test]
fn a_login_to_a_server_goes_through_a_spec_and_cookies_do_not() {
    let disk = "<disk type='network' device='disk'>
  <driver name='qemu' type='raw' cache='none' discard='ignore'/>
  <source protocol='https' name='a.img'>
    <host name='store.example' port='443'/>
    <auth username='fred'>
      <secret type='iscsi' usage='storage'/>
    </auth>
  </source>
  <target dev='vda' bus='virtio'/>
  <readonly/>
</disk>
";
    let cookie = "  <cookies><cookie name='session'>opensesame</cookie></cookies>\n  </source>";
    let place = Place::with(&[
        ("a.xml", disk),
        ("b.xml", &disk.replace("  </source>", cookie)),
    ]);
    for file in ["a.xml", "b.xml"] {
        let spec = place.run(&["convert", file, "--to", "spec"]);
        assert_eq!(spec.code, 0, "{spec:?}");
        assert!(!spec.stdout.contains("opensesame"), "{spec:?}");
        let told = spec.stderr.contains(
            "the list of cookies for the server, which can contain secrets, is not carried over",
        );
        assert_eq!(told, file == "b.xml", "{spec:?}");
        let back = place.run_with_input(&["convert", "--to", "disk-xml"], spec.stdout.as_bytes());
        assert_eq!((back.code, back.stdout.as_str()), (0, disk), "{back:?}");
    }
}

#[test]
fn what_no_spec_says_is_told_or_refused() {
    let text = CLEAN.replace("<driver name='qemu'", "<driver name='qemu' ioeventfd='on'");
    let place = Place::with(&[("a.xml", &text)]);
    let told = place.run(&["convert", "a.xml", "--to", "spec"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(
        told.stderr
            .contains("`driver/@ioeventfd` is not carried over"),
        "{told:?}"
    );
    let volume = "<disk type='volume'><source pool='p' volume='v'/><target dev='vda'/></disk>";
    let place = Place::with(&[("a.xml", volume)]);
    let spec = place.run(&["convert", "a.xml", "--to", "spec"]);
    assert!(
        spec.stdout
            .contains("- volume:\n    pool: p\n    volume: v\n"),
        "{spec:?}"
    );
    let far =
        "<disk><driver name='qemu' type='vmdk'/><source file='/a'/><target dev='vda'/></disk>";
    let place = Place::with(&[("a.xml", far)]);
    let refused = place.run(&["convert", "a.xml", "--to", "spec"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert!(
        refused
            .stderr
            .contains("a file of format 'vmdk' cannot be carried over"),
        "{refused:?}"
    );
}

#[test]
fn a_source_that_no_other_format_has_is_named_once_by_its_driver() {
    let line = "qemu-system-x86_64 -M q35 -blockdev driver=quorum,node-name=q,vote-threshold=2,children.0.driver=file,\
        children.0.filename=/a,children.1.driver=file,children.1.filename=/b -device virtio-blk-pci,drive=q\n";
    let place = Place::with(&[("a.sh", line)]);
    let refused = place.run(&["convert", "a.sh", "--to", "libvirt-xml"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_eq!(refused.stderr.matches("error: ").count(), 1, "{refused:?}");
    let named = "the source, a node of driver `quorum`, cannot be carried over";
    assert!(refused.stderr.contains(named), "{refused:?}");
}

#[test]
fn the_part_of_a_source_that_cannot_be_carried_over_is_named() {
    for (option, said) in [
        (
            "-drive file=ftp://u:p@h/a.img,if=virtio,format=raw",
            "the source, whose address contains a password, cannot be carried over",
        ),
        (
            "-drive file=nfs://h/a.img?uid=3,if=virtio,format=raw",
            "the source, whose address has the option `uid`, cannot be carried over",
        ),
        (
            "-drive 'file=rbd:p/i:rbd_cache=true,if=virtio,format=raw'",
            "help: remove `rbd_cache` from the address",
        ),
        (
            "-drive 'file=/x,format=raw,if=virtio",
            "which is an argument whose quote is never closed (close the quote)",
        ),
    ] {
        let line = format!("qemu-system-x86_64 -M q35 {option}\n");
        let place = Place::with(&[("a.sh", &line)]);
        let run = place.run(&["convert", "a.sh", "--to", "libvirt-xml"]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(said), "{option}: {run:?}");
    }
}

#[test]
fn a_chain_that_is_named_to_its_end_becomes_a_spec_and_comes_back() {
    let with = |chain: &str| {
        format!(
            "<disk type='file' device='disk'>\n  <driver name='qemu' type='qcow2' cache='none' io='native' \
             discard='unmap'/>\n  <source file='/srv/top.qcow2'/>\n{chain}  <target dev='vda' bus='virtio'/>\n</disk>\n"
        )
    };
    let raw = "  <backingStore type='file'>\n    <format type='raw'/>\n    <source file='/srv/base.img'/>\n  \
               </backingStore>\n";
    let open = raw.replace("'raw'", "'qcow2'");
    for (chain, is_carried) in [("  <backingStore/>\n", true), (raw, true), (&open, false)] {
        let disk = with(chain);
        let place = Place::with(&[("a.xml", &disk)]);
        let spec = place.run(&["convert", "a.xml", "--to", "spec"]);
        assert_eq!(spec.code, 0, "{spec:?}");
        assert_eq!(
            spec.stdout.contains("backing-chain"),
            is_carried,
            "{spec:?}"
        );
        assert_eq!(
            spec.stderr.contains("backing images"),
            !is_carried,
            "{spec:?}"
        );
        if is_carried {
            let back =
                place.run_with_input(&["convert", "--to", "disk-xml"], spec.stdout.as_bytes());
            assert_eq!(
                (back.code, back.stdout.as_str()),
                (0, disk.as_str()),
                "{back:?}"
            );
        }
    }
}

#[test]
fn json_that_the_shell_unquotes_is_named_as_such() {
    let line = "kvm -M q35 -m 1G -blockdev {\"driver\":\"file\",\"filename\":\"/a\",\"node-name\":\"f\"} \
                -device virtio-blk-pci,drive=f\n";
    let place = Place::with(&[("a.sh", line)]);
    let why = "put the whole value between single quotes";
    for arguments in [
        ["convert", "a.sh", "--to", "spec"],
        ["lint", "a.sh", "--color", "never"],
    ] {
        let run = place.run(&arguments);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert_ne!(run.code, 0, "{said}");
        assert!(said.contains(why), "{said}");
    }
    // In a file of arguments no shell takes quotes.
    let place = Place::with(&[("a.args", "-blockdev\n{\"driver\":file}\n")]);
    let run = place.run(&["convert", "a.args", "--to", "spec"]);
    assert!(run.code == 2 && !run.stderr.contains(why), "{run:?}");
    assert!(run.stderr.contains("not JSON"), "{run:?}");
}

#[test]
fn firmware_on_flash_becomes_loader_and_nvram() {
    let drives = "-drive if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/CODE.fd \
        -drive if=pflash,format=raw,unit=1,file=/srv/a&b.fd";
    let nodes = "-blockdev driver=file,node-name=c,filename=/usr/share/CODE.fd,read-only=on \
        -blockdev driver=file,node-name=f,filename=/srv/a&b.fd -blockdev driver=raw,node-name=v,file=f \
        -machine pflash0=c,pflash1=v";
    let nested = "-blockdev driver=raw,node-name=c,read-only=on,file.driver=file,file.filename=/usr/share/CODE.fd \
        -blockdev driver=raw,node-name=v,file.driver=file,file.filename=/srv/a&b.fd -machine pflash0=c,pflash1=v";
    let place = Place::with(&[]);
    for flash in [drives, nodes, nested] {
        let flash = flash.replace('&', "\\&");
        let line = format!(
            "qemu-system-x86_64 -nodefaults -name a -M q35 -accel kvm -m 1G {flash} -drive file=/srv/a.img,format=raw,if=virtio\n"
        );
        let xml = place.run_with_input(&["convert", "-", "--to", "libvirt-xml"], line.as_bytes());
        assert_eq!((xml.code, xml.stderr.as_str()), (0, ""), "{flash}: {xml:?}");
        for element in [
            "<loader readonly='yes' type='pflash'>/usr/share/CODE.fd</loader>",
            "<nvram>/srv/a&amp;b.fd</nvram>",
            "<acpi/>",
        ] {
            assert!(xml.stdout.contains(element), "{flash}: {xml:?}");
        }
        // Other forms have no place for it, and it is named.
        for form in ["qemu", "spec", "disk-xml"] {
            let run = place.run_with_input(&["convert", "-", "--to", form], line.as_bytes());
            let is_named = run.stderr.contains("pflash");
            assert!(is_named, "{form}: {run:?}");
        }
    }
    // Flash that libvirt cannot have, and code that is not there.
    for flash in [
        "-drive if=pflash,format=raw,unit=1,file=/srv/b.fd",
        "-drive if=pflash,format=raw,unit=0,file=nbd://h/x",
        "-drive if=pflash,format=raw,unit=7,file=/srv/b.fd",
        "-machine pflash0=nobody",
    ] {
        let line = format!("qemu-system-x86_64 -name a -M q35 -accel kvm -m 1G {flash}\n");
        let run = place.run_with_input(&["convert", "-", "--to", "libvirt-xml"], line.as_bytes());
        assert!(run.stderr.contains("pflash"), "{flash}: {run:?}");
        assert!(!run.stdout.contains("<loader"), "{flash}: {run:?}");
    }
}

#[test]
fn a_port_of_0_is_the_default_of_the_protocol() {
    let xml = "<disk type='network' device='disk'><driver name='qemu' type='raw'/>\
        <source protocol='rbd' name='p/i'><host name='mon1'/></source><target dev='vda' bus='virtio'/></disk>";
    let place = Place::with(&[]);
    let line = place.run_with_input(&["convert", "-", "--to", "qemu"], xml.as_bytes());
    assert!(line.stdout.contains("\"port\":\"0\""), "{line:?}");
    let back = place.run_with_input(
        &["convert", "-", "--to", "disk-xml"],
        line.stdout.as_bytes(),
    );
    assert!(back.stdout.contains("<host name='mon1'/>"), "{back:?}");
}

#[test]
fn a_spec_keeps_what_an_iothread_has_beside_its_number() {
    let xml = "<domain type='kvm'><name>a</name><iothreads>1</iothreads><iothreadids>\
        <iothread id='1' thread_pool_max='4'><poll max='32768'/></iothread></iothreadids>\
        <devices><disk type='file' device='disk'><driver name='qemu' type='raw' iothread='1'/>\
        <source file='/a.img'/><target dev='vda' bus='virtio'/></disk></devices></domain>";
    let place = Place::with(&[]);
    let run = place.run_with_input(&["convert", "-", "--to", "spec"], xml.as_bytes());
    assert_eq!(run.code, 0, "{run:?}");
    assert!(!run.stderr.contains("iothread"), "{run:?}");
    for kept in ["poll-max-ns: 32768", "thread-pool-max: 4"] {
        assert!(run.stdout.contains(kept), "{kept}: {run:?}");
    }
}

#[test]
fn an_image_without_a_format_is_told_where_to_set_it() {
    for (option, help) in [
        (
            "-hda /srv/a.qcow2",
            "use `-drive file=/srv/a.qcow2,index=0,format=qcow2` instead of `-hda`",
        ),
        (
            "--hdb /srv/a.qcow2",
            "use `-drive file=/srv/a.qcow2,index=1,format=qcow2` instead of `-hdb`",
        ),
        (
            "/srv/a.qcow2",
            "use `-drive file=/srv/a.qcow2,index=0,format=qcow2` instead of the file name alone",
        ),
        ("-drive file=/srv/a.qcow2", "use `format=qcow2`"),
        ("-drive file=/srv/a.vmdk", "use `format=vmdk`"),
        ("-drive file=/srv/a.img", "use `format=qcow2`"),
    ] {
        let line = format!("qemu-system-x86_64 -machine q35 {option}");
        let place = Place::with(&[("a.args", &line)]);
        let run = place.run(&["convert", "--to", "libvirt-xml", "a.args"]);
        assert_eq!(run.code, 2, "{run:?}");
        let help = format!("help: {help}, or `raw` if the image is raw");
        assert!(run.stderr.contains(&help), "{option}: {run:?}");
    }
}

/// A guest with what newer versions of libvirt have, and with what its disks need beside them.
const RICH: &str = "<domain type='kvm'>
  <name>a</name>
  <memory unit='KiB'>524288</memory>
  <vcpu>2</vcpu>
  <iothreads>2</iothreads>
  <iothreadids>
    <iothread id='1'/>
    <iothread id='2'>
      <poll max='100'/>
    </iothread>
  </iothreadids>
  <blkiotune>
    <weight>500</weight>
  </blkiotune>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
  </os>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' discard='unmap' discard_no_unref='on' iothread='1'/>
      <source file='/srv/a.qcow2'/>
      <target dev='vda' bus='virtio'/>
      <blockio discard_granularity='65536'/>
    </disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/>
      <source file='/srv/b.img'/>
      <target dev='sda' bus='scsi'/>
    </disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/>
      <source file='/srv/c.img'/>
      <target dev='nvme0n1' bus='nvme'/>
      <serial>c</serial>
    </disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/>
      <source file='/srv/d.img'/>
      <target dev='sdb' bus='sata'/>
      <product>drive</product>
    </disk>
    <controller type='scsi' index='0' model='virtio-scsi'>
      <driver queues='2' iothread='2'/>
    </controller>
  </devices>
</domain>
";

#[test]
fn disks_alone_come_with_what_their_domain_must_have() {
    let place = Place::with(&[("a.xml", RICH)]);
    let run = place.run(&["convert", "a.xml", "--to", "disk-xml"]);
    assert_eq!(run.code, 0, "{run:?}");
    for needed in [
        "<controller type='scsi' index='0' model='virtio-scsi'><driver queues='2' iothread='2'/></controller>",
        "<iothreads>2</iothreads><iothreadids>",
        "<poll max='100'/>",
        "<blkiotune><weight>500</weight></blkiotune>",
    ] {
        assert!(run.stderr.contains(needed), "{needed}: {run:?}");
    }
    let strict = place.run(&["convert", "a.xml", "--to", "disk-xml", "--strict"]);
    assert_eq!(strict.code, 1, "{strict:?}");
    // Disks alone again: nothing is left out.
    let again = place.run_with_input(
        &["convert", "--to", "disk-xml", "--strict"],
        run.stdout.as_bytes(),
    );
    assert_eq!((again.code, again.stderr.as_str()), (0, ""), "{again:?}");
    // The commands of QMP create the iothreads; `<devices>` has no place for them.
    let script = place.run(&["convert", "a.xml", "--to", "qmp", "--without", "sdb"]);
    assert_eq!(script.code, 0, "{script:?}");
    let fragment = place.run_with_input(
        &["convert", "--to", "libvirt-xml"],
        script.stdout.as_bytes(),
    );
    assert_eq!(fragment.code, 0, "{fragment:?}");
    assert!(
        fragment.stdout.contains("<controller type='scsi'"),
        "{fragment:?}"
    );
    let said = &fragment.stderr;
    assert!(
        said.contains("the domain must have <iothreads>2</iothreads>"),
        "{said}"
    );
    assert!(!said.contains("must have <controller"), "{said}");
}

#[test]
fn a_conversion_says_all_that_lint_says_of_what_its_target_does_not_support() {
    let place = Place::with(&[("a.xml", RICH)]);
    let mut reported = 0;
    for target in [
        "libvirt=7.0",
        "libvirt=9.0",
        "libvirt=10.0,qemu=7.2",
        "libvirt=11.6,qemu=10.0",
    ] {
        for form in ["libvirt-xml", "disk-xml", "spec", "qemu"] {
            let arguments = ["convert", "a.xml", "--to", form, "--target", target];
            let run = place.run(&arguments);
            if form == "qemu" && run.code == 2 {
                continue;
            }
            assert_eq!(run.code, 0, "{target} {form}: {run:?}");
            let lint = [
                "lint",
                "-",
                "--target",
                target,
                "--select",
                "unsupported-by-target",
                "--format",
                "json",
            ];
            let lint = place.run_with_input(&lint, run.stdout.as_bytes());
            let report: serde_json::Value = serde_json::from_str(&lint.stdout).unwrap();
            let findings = report["findings"].as_array().expect("a list");
            for finding in findings {
                let title = finding["title"].as_str().unwrap();
                assert!(
                    run.stderr.contains(title),
                    "{target} {form}: {title}\n{run:?}"
                );
                reported += 1;
            }
        }
    }
    assert!(reported > 10, "{reported}");
    // What the target supports is not named.
    let run = place.run(&[
        "convert",
        "a.xml",
        "--to",
        "libvirt-xml",
        "--target",
        "libvirt=11.6",
    ]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
}

#[test]
fn a_device_in_a_hotplug_port_is_named_as_a_device() {
    let disk = |bus: &str| format!("raw:/srv/a.img,bus={bus}");
    let place = Place::with(&[]);
    for (bus, device) in [("virtio", "vda"), ("usb", "usb")] {
        let run = place.run(&[
            "generate",
            "--disk",
            &disk(bus),
            "--to",
            "qmp",
            "--target",
            "machine=q35",
        ]);
        let said = format!("the device `{device}` uses the port `hotplug1`");
        assert!(run.stderr.contains(&said), "{run:?}");
    }
}

#[test]
fn a_guest_without_a_name_loses_nothing_and_numa_that_is_written_is_not_lost() {
    let memory = "-object memory-backend-memfd,id=m,size=1G,share=on -numa node,memdev=m";
    for (options, code) in [("", 0), (memory, 0), ("-vga std", 1)] {
        let line = format!(
            "qemu-system-x86_64 -m 1G -M q35 -nodefaults {options} -drive file=/a.qcow2,if=virtio,format=qcow2"
        );
        let place = Place::with(&[("a.args", &line)]);
        let run = place.run(&["convert", "a.args", "--to", "libvirt-xml", "--strict"]);
        assert_eq!(run.code, code, "{run:?}");
        let said = "the guest has no name, so `guest` is used";
        assert!(run.stderr.contains(said), "{run:?}");
    }
}

#[test]
fn a_running_qemu_gets_a_secret_by_a_command() {
    let text = "<domain type='kvm'><name>a</name><memory>524288</memory>
<os><type arch='x86_64' machine='pc'>hvm</type></os><devices>
<disk type='file'><driver name='qemu' type='raw'/><source file='/srv/a.luks'>
<encryption format='luks'><secret type='passphrase' usage='a'/></encryption></source>
<target dev='vda' bus='virtio'/></disk></devices></domain>";
    let place = Place::with(&[("a.xml", text)]);
    for (form, option) in [
        ("qemu", "pass it with -object secret,id="),
        (
            "qmp",
            "pass it with {\"execute\":\"object-add\",\"arguments\":{\"qom-type\":\"secret\",\"id\":",
        ),
    ] {
        let run = place.run(&["convert", "a.xml", "--to", form]);
        assert!(run.stderr.contains(option), "{run:?}");
    }
}

#[test]
fn a_changed_controller_model_is_named_on_the_way_to_a_spec() {
    let text = "<domain type='kvm'><name>a</name><memory>524288</memory>
<os><type arch='x86_64' machine='pc'>hvm</type></os><devices>
<disk type='file'><driver name='qemu' type='raw'/><source file='/srv/a.img'/><target dev='sda' bus='scsi'/></disk>
</devices></domain>";
    let place = Place::with(&[("a.xml", text)]);
    let run = place.run(&["convert", "a.xml", "--to", "spec", "--strict"]);
    assert_eq!(run.code, 1, "{run:?}");
    let said = "the SCSI controller model `lsilogic` (libvirt's default), which the spec replaces with `virtio-scsi`, is";
    assert!(run.stderr.contains(said), "{run:?}");
    assert!(!run.stderr.contains("list of controllers"), "{run:?}");
}

#[test]
fn what_libvirt_refuses_of_a_result_and_qemu_takes_of_its_source_is_told() {
    let line = |device: &str| {
        format!(
            "qemu-system-x86_64 -name a -m 1G -M q35 -nodefaults \
             -drive file=/a.qcow2,format=qcow2,if=none,id=d -device virtio-blk-pci,drive=d{device}\n"
        )
    };
    let place = Place::with(&[]);
    for (device, rule) in [
        (",share-rw=on", Some("[format-refused]")),
        (",serial=a#b", Some("[identity-refused]")),
        (",serial=ab", None),
    ] {
        let run = place.run_with_input(
            &["convert", "-", "--to", "libvirt-xml", "--strict"],
            line(device).as_bytes(),
        );
        assert_eq!(run.code, i32::from(rule.is_some()), "{run:?}");
        let is_told = rule.is_none_or(|rule| run.stderr.contains(rule));
        assert!(is_told && run.stdout.contains("</domain>"), "{run:?}");
    }
}

#[test]
fn arguments_that_libvirt_does_not_read_go_to_qemu_word_by_word_and_their_disks_nowhere_else() {
    let guest = |arguments: &[&str]| {
        let arguments: String = arguments
            .iter()
            .map(|word| format!("<q:arg value='{word}'/>"))
            .collect();
        format!(
            "<domain type='kvm' xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'>\n<name>a</name>\n\
             <memory unit='GiB'>1</memory>\n<os><type arch='x86_64' machine='q35'>hvm</type></os>\n\
             <features><acpi/></features>\n<devices/>\n<q:commandline>{arguments}<q:env name='A' value='b'/>\
             </q:commandline>\n<q:override><q:device alias='x'/></q:override>\n</domain>"
        )
    };
    let drive = ["-drive", "file=/srv/a &amp; b.img,if=none,id=dx,format=raw"];
    let device = ["-device", "virtio-blk-pci,drive=dx"];
    let place = Place::with(&[
        ("disk.xml", &guest(&[drive, device].concat())),
        ("net.xml", &guest(&["-netdev", "user,id=n"])),
    ]);
    let line = place.run(&["convert", "disk.xml", "--to", "qemu"]);
    let words = " \\\n  -drive 'file=/srv/a & b.img,if=none,id=dx,format=raw' \\\n  -device virtio-blk-pci,drive=dx\n";
    assert!(line.code == 0 && line.stdout.ends_with(words), "{line:?}");
    // What is beside the arguments is said.
    assert!(line.stderr.contains("`q:env`, `q:override`"), "{line:?}");
    assert!(!line.stderr.contains("commandline"), "{line:?}");
    let json = [
        "convert",
        "disk.xml",
        "--to",
        "qemu",
        "--qemu-format",
        "json",
    ];
    let json = place.run(&json).stdout;
    let json: Vec<String> = serde_json::from_str(&json).unwrap();
    assert!(json.ends_with(&device.map(str::to_owned)));
    for form in ["spec", "disk-xml", "qmp"] {
        let run = place.run(&["convert", "disk.xml", "--to", form]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{form}: {run:?}");
        assert!(
            run.stderr.contains("the disk of `-drive`"),
            "{form}: {run:?}"
        );
        // Arguments without a disk are named.
        let run = place.run(&["convert", "net.xml", "--to", form]);
        let is_said = run.stderr.contains("`q:commandline`") || form == "disk-xml";
        assert!(run.code == 2 || is_said, "{form}: {run:?}");
    }
    let same = place.run(&["convert", "disk.xml", "--to", "libvirt-xml"]);
    assert!(same.code == 0 && same.stdout.contains("<q:arg value='-drive'/>"));
}

#[test]
fn an_x86_pc_keeps_acpi_on_or_off_between_libvirt_and_qemu() {
    let place = Place::with(&[]);
    let disk = "-m 1G -drive file=/srv/a.img,format=raw,if=virtio";
    for (program, machine, has_acpi) in [
        ("x86_64", "", true),
        ("x86_64", "-M q35", true),
        ("x86_64", "-M pc", true),
        ("i386", "-M pc-i440fx-7.2", true),
        ("x86_64", "-machine pc-q35-7.2,acpi=on", true),
        ("x86_64", "-M q35,acpi=off", false),
        ("x86_64", "-M pc -no-acpi", false),
        ("x86_64", "-M microvm", false),
        ("x86_64", "-M isapc", false),
        ("aarch64", "-M virt", false),
    ] {
        let line = format!("qemu-system-{program} {machine} {disk}");
        let xml = place.run_with_input(&["convert", "--to", "libvirt-xml"], line.as_bytes());
        assert_eq!(xml.code, 0, "{line}: {xml:?}");
        assert_eq!(xml.stdout.contains("<acpi/>"), has_acpi, "{line}: {xml:?}");
        assert!(!xml.stderr.contains("acpi"), "{line}: {xml:?}");
        // QEMU has ACPI by default, and libvirt does not.
        let back = place.run_with_input(&["convert", "--to", "qemu"], xml.stdout.as_bytes());
        let is_off = back.stdout.contains("acpi=off");
        let is_pc = ["virt", "microvm", "isapc"]
            .iter()
            .all(|other| !machine.contains(other));
        assert_eq!(is_off, !has_acpi && is_pc, "{back:?}");
    }
    let lost = format!("qemu-system-x86_64 -M q35,acpi=off {disk}");
    let spec = place.run_with_input(&["convert", "--to", "spec"], lost.as_bytes());
    assert!(
        spec.stderr
            .contains("ACPI, which is switched off, is not carried over")
    );
    for (arch, machine, bus, has_acpi) in [
        ("x86_64", "q35", "virtio", true),
        ("x86_64", "pc", "virtio", true),
        ("x86_64", "microvm", "virtio", false),
        ("x86_64", "isapc", "ide", false),
        ("aarch64", "virt", "virtio", true),
    ] {
        let spec = format!(
            "version: 1\nguest: {{arch: {arch}, machine: {machine}}}\n\
             disks:\n- raw: {{path: /srv/a.img}}\n  bus: {bus}\n"
        );
        let xml = place.run_with_input(&["generate", "-"], spec.as_bytes());
        let features = "  <features>\n    <acpi/>\n  </features>\n";
        assert_eq!(xml.stdout.contains(features), has_acpi, "{spec}: {xml:?}");
    }
}

#[test]
fn elements_of_one_kind_are_refused_once_for_each_disk() {
    let disk = |name: &str, extra: &str| {
        format!(
            "<disk type='file'><driver name='qemu' type='raw'/><source file='/srv/{name}'/>\
             <target dev='{name}' bus='virtio'/>{extra}</disk>"
        )
    };
    let text = format!(
        "<domain type='kvm'><name>a</name><devices>{}{}</devices></domain>",
        disk("vda", &"<foo/>".repeat(3)),
        disk("vdb", "<foo/><bar/>")
    );
    let place = Place::with(&[("a.xml", &text)]);
    let run = place.run(&["convert", "--to", "qemu", "a.xml"]);
    assert_eq!(run.code, 2);
    let refused = run.stderr.lines().filter(|line| line.starts_with("error"));
    assert_eq!(
        refused.collect::<Vec<_>>(),
        [
            "error: disk vda: `<foo>` cannot be carried over",
            "error: disk vdb: `<foo>` cannot be carried over",
            "error: disk vdb: `<bar>` cannot be carried over"
        ]
    );
}

#[test]
fn a_format_that_the_caller_states_is_that_of_images_without_one() {
    let line = "qemu-system-x86_64 -name n -m 1G -hda /a.img -drive file=/b,if=virtio,format=raw";
    let place = Place::with(&[("a.args", line)]);
    let convert = |formats: &[&str]| {
        let formats = formats.iter().flat_map(|it| ["--disk-format", it]);
        let arguments: Vec<&str> = ["convert", "--to", "disk-xml", "a.args"]
            .into_iter()
            .chain(formats)
            .collect();
        place.run(&arguments)
    };
    assert_eq!(convert(&[]).code, 2);
    for stated in ["qcow2", "hda=qcow2"] {
        let run = convert(&[stated]);
        assert_eq!(run.code, 0, "{run:?}");
        let formats: Vec<usize> = ["type='qcow2'", "type='raw'"]
            .iter()
            .map(|it| run.stdout.matches(it).count())
            .collect();
        assert_eq!(formats, [1, 1], "{run:?}");
    }
    for (stated, says) in [
        ("vdz=raw", "no disk is called `vdz`"),
        ("vda=qcow2", "has the format raw"),
        ("img", "is not a format"),
    ] {
        let run = convert(&[stated]);
        assert!(run.code == 2 && run.stderr.contains(says), "{run:?}");
    }
    let lint = place.run(&["lint", "--disk-format", "raw", "a.args"]);
    assert!(!lint.stdout.contains("format-missing"), "{lint:?}");
    let trace = place.run(&["trace", "--disk-format", "qcow2", "a.args", "hda"]);
    assert!(trace.stdout.contains("format: qcow2"), "{trace:?}");
}

/// QEMU probes qcow2 here; `format=raw` would show the guest the container.
#[test]
fn an_image_that_the_script_makes_has_the_format_that_it_makes() {
    let script = "#!/bin/sh\n[ -e disk.img ] || qemu-img create -f qcow2 disk.img 40g\n\
                  qemu-system-x86_64 -name n -m 1G -drive if=virtio,media=disk,file=disk.img\n";
    let place = Place::with(&[("run.sh", script)]);
    for form in ["libvirt-xml", "disk-xml", "qemu", "qmp", "spec"] {
        let run = place.run(&["convert", "--to", form, "run.sh"]);
        assert_eq!(run.code, 0, "{form}: {run:?}");
        assert!(run.stdout.contains("qcow2"), "{form}: {run:?}");
        let told = "disk vda: qcow2, as the text makes the image";
        assert!(run.stderr.contains(told), "{form}: {run:?}");
    }
    let run = place.run(&["lint", "run.sh", "--fix", "--fail-on", "error"]);
    assert_eq!(run.code, 0, "{run:?}");
    let fixed = script.replace("file=disk.img", "file=disk.img,format=qcow2");
    assert_eq!(place.read("run.sh"), fixed);
    // Nothing writes a format where the text tells two.
    let unclear = script.replace("qemu-system", "qemu-img create disk.img 1G\nqemu-system");
    place.write("run.sh", unclear.as_bytes());
    let run = place.run(&["lint", "run.sh", "--fix", "--unsafe-fixes"]);
    assert!(run.stdout.contains("does not tell one format"), "{run:?}");
    assert_eq!(place.read("run.sh"), unclear);
    let refused = place.run(&["convert", "--to", "spec", "run.sh"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    // The opposite of what is set.
    let wrong = fixed.replace("format=qcow2", "format=raw");
    place.write("run.sh", wrong.as_bytes());
    let run = place.run(&["lint", "run.sh", "--fix", "--unsafe-fixes"]);
    let told = "is configured as raw, but the image is qcow2";
    assert!(run.code == 1 && run.stdout.contains(told), "{run:?}");
    assert_eq!(place.read("run.sh"), wrong);
}

#[test]
fn a_format_that_is_not_set_is_the_one_that_qemu_probes_in_the_header() {
    let place = Place::with(&[(
        "vm/a.args",
        "qemu-system-x86_64 -name n -m 1G -drive file=a.img,if=virtio",
    )]);
    place.write("vm/a.img", &crate::image::qcow2(None));
    let facts = ["facts", "vm/a.img", "-o", "facts.json"];
    let collected = place.run(&facts);
    assert_eq!(collected.code, 0, "{collected:?}");
    for form in ["libvirt-xml", "disk-xml", "qemu", "qmp", "spec"] {
        for source in [
            ["--live", "--strict"].as_slice(),
            &["--facts", "facts.json"],
        ] {
            let convert = ["convert", "--to", form, "vm/a.args"];
            let run = place.run(&[convert.as_slice(), source].concat());
            assert!(run.stdout.contains("qcow2"), "{form} {source:?}: {run:?}");
            let told = "disk vda: qcow2, the format that QEMU probes";
            assert!(run.stderr.contains(told), "{run:?}");
        }
        let alone = place.run(&["convert", "--to", form, "vm/a.args"]);
        assert_eq!(alone.code, 2, "{alone:?}");
        assert!(alone.stderr.contains("`--live`"), "{alone:?}");
    }
    let lint = ["lint", "--facts", "facts.json", "--base", "vm", "vm/a.args"];
    let run = place.run(&lint);
    assert!(run.stdout.contains("shows the format qcow2"), "{run:?}");
    let trace = ["trace", "--live", "--base", "vm", "vm/a.args"];
    let run = place.run(&trace);
    assert!(run.stdout.contains("format: qcow2"), "{run:?}");
    let stated = ["--disk-format", "vda=raw", "--live"];
    let run = place.run(&[["convert", "--to", "qemu", "vm/a.args"].as_slice(), &stated].concat());
    assert!(run.stdout.contains(r#""driver":"raw""#), "{run:?}");
    let spec = place.run_with_input(
        &["convert", "--to", "qemu", "--live"],
        b"version: 1\ndisks: []\n",
    );
    assert!(spec.stderr.contains("a spec sets its formats"), "{spec:?}");
}

#[test]
fn a_boot_order_from_zero_is_numbered_from_one() {
    let line = "qemu-system-x86_64 -name n -m 1G -drive file=/a,format=raw,if=none,id=a -drive file=/b,format=raw,if=none,id=b \
        -device virtio-blk-pci,drive=a,bootindex=0 -device virtio-blk-pci,drive=b,bootindex=1";
    let place = Place::with(&[("a.args", line)]);
    for form in ["disk-xml", "libvirt-xml", "spec"] {
        let run = place.run(&["convert", "--strict", "--to", form, "a.args"]);
        let orders = ["order='1'", "order='2'"].iter();
        let orders = orders.filter(|it| run.stdout.contains(**it)).count();
        assert!(orders == 2 || form == "spec", "{run:?}");
        assert!(
            !run.stdout.contains("order='0'") && run.stderr.contains("one higher"),
            "{run:?}"
        );
    }
}

#[test]
fn relative_paths_are_in_the_directory_of_the_file_or_in_the_one_that_is_named() {
    let line = "qemu-system-x86_64 -name n -m 1G -blockdev file,filename=base.raw,node-name=b \
                -blockdev file,filename=top.qcow2,node-name=f -blockdev qcow2,file=f,backing=b,node-name=a \
                -device virtio-blk-pci,drive=a\n";
    let place = Place::with(&[("vm/run.args", line)]);
    let here = place.path("vm").display().to_string();
    let spec = place.run(&["convert", "--to", "spec", "vm/run.args"]);
    assert!(
        spec.stdout.contains(&format!("{here}/top.qcow2")),
        "{spec:?}"
    );
    assert!(
        spec.stdout.contains(&format!("{here}/base.raw")),
        "{spec:?}"
    );
    assert!(
        spec.stderr.contains("`top.qcow2` is taken to be in "),
        "{spec:?}"
    );
    for form in ["spec", "disk-xml", "qemu", "qmp"] {
        let given = place.run(&[
            "convert",
            "--to",
            form,
            "vm/run.args",
            "--base",
            "/srv/images",
        ]);
        assert!(given.stdout.contains("/srv/images/base.raw"), "{given:?}");
        assert!(!given.stderr.contains("top.qcow2"), "{given:?}");
    }
    let piped = place.run_with_input(&["convert", "--to", "spec"], line.as_bytes());
    assert!(
        piped.stderr.contains("is not an absolute path"),
        "{piped:?}"
    );
}

#[test]
fn the_files_of_uefi_that_a_guest_names_are_told_as_options() {
    let guest = "<domain type='kvm'><name>a</name><memory unit='GiB'>1</memory><os><type arch='x86_64' machine='q35'>hvm</type>\
                 LOADER</os><features><acpi/></features><devices><disk type='file'><driver name='qemu' type='raw'/><source \
                 file='/srv/a.img'/><target dev='vda' bus='virtio'/></disk></devices></domain>";
    for (loader, told) in [
        (
            "<loader type='pflash' readonly='yes'>/usr/share/CODE.fd</loader><nvram template='/usr/share/VARS.fd'>/srv/a,b_VARS.fd</nvram>",
            "add `-drive if=pflash,unit=0,readonly=on,format=raw,file=/usr/share/CODE.fd` and `-drive if=pflash,unit=1,format=raw,file=/srv/a,,b_VARS.fd`",
        ),
        (
            "<loader type='pflash' readonly='yes'>/usr/share/CODE.fd</loader>",
            "unit=1,format=raw,file=VARS`",
        ),
        ("<loader type='rom'>/usr/share/bios.bin</loader>", ""),
    ] {
        let place = Place::with(&[("a.xml", &guest.replace("LOADER", loader))]);
        let run = place.run(&["convert", "a.xml", "--to", "qemu"]);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.stderr.contains(told), "{run:?}");
        assert_eq!(run.stderr.contains("pflash"), !told.is_empty(), "{run:?}");
    }
}

#[test]
fn braces_of_other_programs_in_metadata_are_text() {
    let metadata = "<metadata><ovirt-vm:vm xmlns:ovirt-vm='http://ovirt.org/vm/1.0' id='${vm}'>\n      \
                    <ovirt-vm:jobs>{}</ovirt-vm:jobs><note>{{ a }} <![CDATA[<b>%s</b>]]></note>\n    </ovirt-vm:vm></metadata>";
    let guest = |metadata: &str, name: &str| {
        let disk = CLEAN.replace("\n", "\n    ");
        format!(
            "<domain type='kvm'>\n  <name>{name}</name>\n  {metadata}\n  <memory unit='GiB'>1</memory>\n  <vcpu>1</vcpu>\n  \
             <os><type arch='x86_64' machine='q35'>hvm</type></os>\n  <features><acpi/></features>\n  <devices>\n    \
             {disk}</devices>\n</domain>\n"
        )
    };
    let place = Place::with(&[
        ("a.xml", &guest(metadata, "web1")),
        ("template.xml", &guest(metadata, "{{ name }}")),
        (
            "statement.xml",
            &guest("<metadata>{% if a %}<b/>{% endif %}</metadata>", "web1"),
        ),
    ]);
    for to in ["qemu", "spec"] {
        let run = place.run(&["convert", "a.xml", "--to", to]);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.stdout.contains("web1.qcow2"), "{run:?}");
        for template in ["template.xml", "statement.xml"] {
            let run = place.run(&["convert", template, "--to", to]);
            assert_eq!(run.code, 2, "{run:?}");
        }
    }
    let lint = place.run(&["lint", "a.xml", "--verbose"]);
    assert!(
        !lint.stdout.contains("template") && !lint.stderr.contains("template"),
        "{lint:?}"
    );
}
