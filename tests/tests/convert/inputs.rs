//! Realistic inputs of each class: converted, and judged by real libvirt and QEMU; or refused with the right reason.

use std::fs::File;
use std::path::Path;

use vmdisk::facts::Version;
use vmdisk_qmp::Launch;
use vmdisk_tests::{QemuBuild, Step, libvirts, qemus};

use super::conversion::{Conversion, Target, convert};

/// A guest as a management tool starts it; `DISKS` is where its disks are.
const MANAGED: &str = "/usr/bin/kvm -id 100 -name web1,debug-threads=on -no-shutdown \
    -chardev socket,id=qmp,path=/run/q.sock,server=on,wait=off -mon chardev=qmp,mode=control \
    -pidfile /run/q.pid -daemonize -smp 4,sockets=1,cores=4,maxcpus=4 -nodefaults \
    -boot menu=on,strict=on,reboot-timeout=1000 -vnc unix:/run/q.vnc,password=on -cpu host,+kvm_pv_eoi -m 2048 \
    -global PIIX4_PM.disable_s3=1 -device pci-bridge,id=pci.1,chassis_nr=1,bus=pci.0,addr=0x1e \
    -device pci-bridge,id=pci.2,chassis_nr=2,bus=pci.0,addr=0x1f \
    -device piix3-usb-uhci,id=uhci,bus=pci.0,addr=0x1.0x2 -device usb-tablet,id=tablet,bus=uhci.0,port=1 \
    -device VGA,id=vga,bus=pci.0,addr=0x2 DISKS \
    -netdev type=tap,id=net0,ifname=tap100i0,vhost=on -device virtio-net-pci,netdev=net0,bus=pci.0,addr=0x12,id=net0 \
    -machine type=pc+vendor0";

/// The disks of managed guests.
const DISKS_OF_A_MANAGER: &[&str] = &[
    "-drive if=none,id=drive-ide2,media=cdrom,aio=io_uring -device ide-cd,bus=ide.1,unit=0,drive=drive-ide2,id=ide2,bootindex=101",
    "-drive if=none,id=drive-ide2,media=cdrom,aio=threads -device ide-cd,bus=ide.1,unit=0,drive=drive-ide2,id=ide2",
    "-drive file=/srv/a.iso,if=none,id=drive-ide2,media=cdrom,format=raw,aio=io_uring -device ide-cd,bus=ide.1,unit=0,drive=drive-ide2,id=ide2,bootindex=100",
    "-device virtio-scsi-pci,id=scsihw0,bus=pci.0,addr=0x5 -drive file=/dev/vg0/a,if=none,id=drive-scsi0,format=raw,cache=none,aio=native,detect-zeroes=on -device scsi-hd,bus=scsihw0.0,channel=0,scsi-id=0,lun=0,drive=drive-scsi0,id=scsi0,bootindex=100",
    "-device virtio-scsi-pci,id=scsihw0,bus=pci.0,addr=0x5 -drive file=/srv/a.qcow2,if=none,id=drive-scsi0,format=qcow2,cache=none,aio=io_uring,discard=on,detect-zeroes=unmap -device scsi-hd,bus=scsihw0.0,channel=0,scsi-id=0,lun=0,drive=drive-scsi0,id=scsi0,rotation_rate=1",
    "-object iothread,id=iothread-virtioscsi0 -device virtio-scsi-pci,id=virtioscsi0,bus=pci.0,addr=0x5,iothread=iothread-virtioscsi0 -drive file=/srv/a.qcow2,if=none,id=drive-scsi0,format=qcow2,cache=none,aio=native -device scsi-hd,bus=virtioscsi0.0,channel=0,scsi-id=0,lun=0,drive=drive-scsi0,id=scsi0",
    "-drive file=/srv/a.qcow2,if=none,id=drive-virtio0,format=qcow2,cache=writeback,aio=threads -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa,bootindex=100",
    "-object iothread,id=iothread-virtio0 -drive file=/srv/a.raw,if=none,id=drive-virtio0,format=raw,cache=none,aio=io_uring -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa,iothread=iothread-virtio0",
    "-device ahci,id=ahci0,multifunction=on,bus=pci.0,addr=0x7 -drive file=/srv/a.raw,if=none,id=drive-sata0,format=raw,cache=none,aio=native -device ide-hd,bus=ahci0.0,drive=drive-sata0,id=sata0",
    "-device ahci,id=ahci0,multifunction=on,bus=pci.0,addr=0x7 -drive file=/srv/a.raw,if=none,id=drive-sata5,format=raw -device ide-hd,bus=ahci0.5,drive=drive-sata5,id=sata5",
    "-drive file=/srv/a.raw,if=none,id=drive-ide0,format=raw,cache=none,aio=native,detect-zeroes=on -device ide-hd,bus=ide.0,unit=0,drive=drive-ide0,id=ide0,bootindex=100",
    "-drive file=/srv/a.qcow2,if=none,id=drive-ide0,format=qcow2,snapshot=on -device ide-hd,bus=ide.0,unit=0,drive=drive-ide0,id=ide0",
    "-drive file=/srv/a.raw,if=none,id=drive-virtio0,format=raw,throttling.iops-total=500,throttling.bps-read=1048576 -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa",
    "-drive file=/srv/a.raw,if=none,id=drive-virtio0,format=raw,werror=stop,rerror=stop -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa",
    "-drive file=/srv/a.raw,if=none,id=drive-virtio0,format=raw,readonly=on -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa",
    "-drive file=/srv/a.raw,if=none,id=drive-virtio0,format=raw,cache=none,aio=native -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa,serial=S100",
    "-drive file=/srv/a.raw,if=none,id=drive-virtio0,format=raw -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa,scsi=off",
    "-drive file=/srv/a.raw,if=none,id=drive-virtio0,format=raw -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa,num-queues=4,queue-size=512",
    "-drive file=/srv/a.raw,if=none,id=drive-virtio0,format=raw -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa -set drive.drive-virtio0.cache=none",
    "-drive file=/srv/a.raw,if=none,id=drive-virtio0,format=raw -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa -global virtio-blk-pci.num-queues=2",
    "-drive file=/srv/a.raw,if=none,id=drive-virtio0,format=raw,file.locking=off -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa",
    "-drive file=/srv/a.qcow2,if=none,id=drive-virtio0,format=qcow2,l2-cache-size=8M,lazy-refcounts=on -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa",
    "-drive file=rbd:pool/a:mon_host=10.0.0.1:auth_supported=none,if=none,id=drive-virtio0,format=raw,cache=none -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa",
    "-drive file=nbd:10.0.0.1:10809:exportname=a,if=none,id=drive-virtio0,format=raw -device virtio-blk-pci,drive=drive-virtio0,id=virtio0,bus=pci.0,addr=0xa",
    "-drive file=/srv/a.raw,if=virtio,format=raw -drive file=/srv/b.iso,media=cdrom,format=raw",
    "-drive file=/srv/a.raw,if=ide,index=0,format=raw -drive file=/srv/b.raw,if=ide,index=3,format=raw",
    "-drive file=/srv/a.vmdk,if=virtio,format=vmdk",
    "-device lsi,id=scsihw0,bus=pci.0,addr=0x5 -drive file=/srv/a.raw,if=none,id=drive-scsi0,format=raw -device scsi-hd,bus=scsihw0.0,scsi-id=0,drive=drive-scsi0,id=scsi0",
    "-device megasas,id=scsihw0,bus=pci.0,addr=0x5 -drive file=/srv/a.raw,if=none,id=drive-scsi0,format=raw -device scsi-hd,bus=scsihw0.0,channel=0,scsi-id=0,lun=0,drive=drive-scsi0,id=scsi0",
    "-drive file=/srv/a.raw,if=none,id=drive-usb0,format=raw -device usb-storage,bus=uhci.0,port=2,drive=drive-usb0,id=usb0",
    "-drive if=pflash,unit=0,format=raw,readonly=on,file=/srv/CODE.fd -drive if=pflash,unit=1,format=raw,id=drive-efidisk0,file=/srv/VARS.fd -drive file=/srv/a.raw,if=virtio,format=raw",
    "-drive file=/srv/a.raw,if=virtio,format=raw \"$@\"",
];

/// What the real program says to an input that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judge {
    /// QEMU starts it: the disk exists, and the other format has no word for it.
    QemuStarts,
    /// The same since a release. Older ones lack the device or driver, or are not known to have it, and do not judge.
    QemuStartsSince(Version),
    /// QEMU refuses it too.
    QemuRefuses,
    /// libvirt defines it: the disk exists, and the other format has no word for it.
    LibvirtDefines,
    /// libvirt refuses it too.
    LibvirtRefuses,
    /// It needs a device, a machine or a file that is not here.
    Nobody,
}

use Judge::{LibvirtDefines, LibvirtRefuses, Nobody, QemuRefuses, QemuStarts, QemuStartsSince};

/// Command lines that lose a disk, or its data, and are refused as XML; with the word that the reason has. `ROOT` is a
/// folder with images.
const REFUSED: &[(&str, &str, Judge)] = &[
    ("-hda ROOT/a.raw", "format", QemuStarts),
    ("-drive file=ROOT/a.raw,if=virtio", "format", QemuStarts),
    (
        "-device sdhci-pci -device sd-card,drive=e -drive if=none,id=e,file=ROOT/a.raw,format=raw",
        "-device sd-card",
        QemuStarts,
    ),
    (
        "-device vhost-scsi-pci,wwpn=naa.5001405",
        "-device vhost-scsi-pci",
        Nobody,
    ),
    (
        "-chardev socket,id=c,path=/run/s -device vhost-user-scsi-pci,chardev=c",
        "-device vhost-user-scsi-pci",
        QemuRefuses,
    ),
    (
        "-object memory-backend-file,id=m,mem-path=/srv/n,size=1G -device nvdimm,memdev=m",
        "-device nvdimm",
        QemuRefuses,
    ),
    ("-mtdblock ROOT/a.raw", "-mtdblock", QemuRefuses),
    (
        "-drive if=mtd,file=ROOT/a.raw,format=raw",
        "-drive if=mtd",
        QemuRefuses,
    ),
    ("-readconfig /etc/vm.cfg", "readconfig", Nobody),
    (
        "-blockdev driver=file,node-name=f,filename=ROOT/a.raw -blockdev driver=raw,node-name=d,file=f,offset=512 -device virtio-blk-pci,drive=d",
        "offset",
        QemuStarts,
    ),
    (
        "-drive file=ROOT/a.raw,format=raw,if=none,id=d -device virtio-blk-pci,drive=nobody",
        "the source",
        QemuRefuses,
    ),
    (
        "-drive file=ROOT/a.raw,format=raw,if=none,id=d -device nvme,serial=x,id=n -device nvme-ns,bus=n,drive=d,zoned=on",
        "zoned",
        QemuRefuses,
    ),
    (
        "-blockdev driver=quorum,node-name=q,vote-threshold=1,children.0.driver=null-co,children.1.driver=null-co -device virtio-blk-pci,drive=q",
        "driver `quorum`",
        QemuStarts,
    ),
    (
        "-blockdev driver=null-co,node-name=n,size=1048576 -device virtio-blk-pci,drive=n",
        "driver `null-co`",
        QemuStarts,
    ),
    (
        "-blockdev driver=blkdebug,node-name=n,image.driver=file,image.filename=ROOT/a.raw -device virtio-blk-pci,drive=n",
        "the source",
        QemuStarts,
    ),
    (
        "-blockdev driver=blkverify,node-name=n,test.driver=file,test.filename=ROOT/a.raw,raw.driver=file,raw.filename=ROOT/b.raw -device virtio-blk-pci,drive=n",
        "the source",
        QemuStarts,
    ),
    (
        "-blockdev driver=blklogwrites,node-name=n,file.driver=file,file.filename=ROOT/a.raw,log.driver=file,log.filename=ROOT/b.raw -device virtio-blk-pci,drive=n",
        "the source",
        QemuStarts,
    ),
    (
        "-blockdev driver=preallocate,node-name=n,file.driver=file,file.filename=ROOT/a.raw -device virtio-blk-pci,drive=n",
        "preallocate",
        QemuStartsSince(Version(6, 0, 0)),
    ),
    (
        "-blockdev driver=compress,node-name=n,file.driver=qcow2,file.file.driver=file,file.file.filename=ROOT/a.qcow2 -device virtio-blk-pci,drive=n",
        "compress",
        QemuStarts,
    ),
    (
        "-blockdev driver=copy-before-write,node-name=n,file.driver=file,file.filename=ROOT/a.raw,target.driver=file,target.filename=ROOT/b.raw -device virtio-blk-pci,drive=n",
        "the source",
        QemuStartsSince(Version(6, 2, 0)),
    ),
    (
        "-blockdev driver=qcow2,node-name=n,file.driver=file,file.filename=ROOT/a.qcow2,backing.driver=null-co -device virtio-blk-pci,drive=n",
        "the source",
        QemuStarts,
    ),
    (
        "-drive file=fat:rw:ROOT,format=raw,if=virtio",
        "the source",
        Nobody,
    ),
    (
        "-drive file=sheepdog:a,format=raw,if=virtio",
        "the source",
        QemuRefuses,
    ),
    (
        "-drive file=nbd:nowhere,format=raw,if=virtio",
        "the source",
        QemuRefuses,
    ),
    (
        "-drive file=ROOT/a.raw,format=raw,if=none,id=d -device ide-cf,drive=d,bus=ide.0",
        "-device ide-cf",
        QemuStartsSince(Version(10, 0, 0)),
    ),
    (
        "-device sdhci-pci -drive if=none,id=d,file=ROOT/a.raw,format=raw -device emmc,drive=d",
        "-device emmc",
        QemuStartsSince(Version(11, 1, 0)),
    ),
    (
        "-drive if=none,id=d,file=/dev/sg0,format=raw -device virtio-scsi-pci -device scsi-generic,drive=d",
        "scsi-generic",
        Nobody,
    ),
    (
        "-object memory-backend-file,id=m,mem-path=ROOT/a.raw,size=1M,share=on -device virtio-pmem-pci,memdev=m",
        "-device virtio-pmem-pci",
        Nobody,
    ),
    (
        "-add-fd fd=3,set=1 -drive file=/dev/fdset/1,format=raw,if=virtio",
        "a descriptor",
        QemuRefuses,
    ),
    (
        "-device vhost-user-blk-pci,chardev=nobody",
        "the socket",
        QemuRefuses,
    ),
    (
        "-blockdev driver=virtio-blk-vfio-pci,node-name=n,path=/sys/bus/pci/devices/0000:01:00.0 -device virtio-blk-pci,drive=n",
        "the source",
        Nobody,
    ),
    (
        "-drive file=ROOT/a.raw,format=raw,if=xen",
        "-drive if=xen",
        Nobody,
    ),
    ("-sd ROOT/a.raw", "format", Nobody),
];

/// Disks in XML that cannot be converted, with the target and the word that the reason has.
const REFUSED_IN_XML: &[(&str, Target, &str, Judge)] = &[
    (
        "<disk type='volume'><source pool='p' volume='v'/><target dev='vda' bus='virtio'/></disk>",
        Target::Qemu,
        "is not known",
        LibvirtDefines,
    ),
    (
        "<disk type='file'><driver name='qemu' type='vmdk'/><source file='/a'/><target dev='vda' bus='virtio'/></disk>",
        Target::Spec,
        "a file of format 'vmdk'",
        LibvirtDefines,
    ),
    (
        "<disk type='file'><driver name='qemu' type='raw'/><source file='/a'><slices><slice type='storage' offset='512' size='1024'/></slices></source><target dev='vda' bus='virtio'/></disk>",
        Target::Spec,
        "a part of a file",
        LibvirtDefines,
    ),
    (
        "<disk type='file'><driver name='qemu' type='raw'/><source file='/a' fdgroup='g'/><target dev='vda' bus='virtio'/></disk>",
        Target::Spec,
        "passed file descriptors",
        LibvirtDefines,
    ),
    (
        "<disk type='network'><driver name='qemu' type='raw'/><source protocol='rbd' name='p/i'><host name='h'/><encryption format='luks2' engine='librbd'><secret type='passphrase' usage='u'/></encryption></source><target dev='vda' bus='virtio'/></disk>",
        Target::Spec,
        "not encrypted with LUKS",
        LibvirtDefines,
    ),
    (
        "<disk type='file'><driver name='qemu' type='raw'/><source file='/a'/><target dev='xvda' bus='xen'/></disk>",
        Target::Spec,
        "on bus 'xen'",
        LibvirtDefines,
    ),
    (
        "<disk type='file'><driver name='qemu' type='raw'/><source file='/a'/><target dev='xvda' bus='xen'/></disk>",
        Target::Qemu,
        "xen",
        LibvirtDefines,
    ),
    (
        "<hostdev mode='subsystem' type='scsi'><source><adapter name='scsi_host0'/><address bus='0' target='0' unit='0'/></source></hostdev>",
        Target::Qemu,
        "hostdev",
        LibvirtDefines,
    ),
    (
        "<disk type='network'><driver name='qemu' type='raw'/><source protocol='sheepdog' name='a'/><target dev='vda' bus='virtio'/></disk>",
        Target::Spec,
        "sheepdog",
        Nobody,
    ),
    (
        "<disk type='network'><driver name='qemu' type='raw'/><source protocol='tftp' name='a'><host name='h'/></source><target dev='vda' bus='virtio'/></disk>",
        Target::Spec,
        "tftp",
        LibvirtRefuses,
    ),
    (
        "<disk type='file' device='disk'><target dev='vda' bus='virtio'/></disk>",
        Target::Spec,
        "a disk without a source",
        LibvirtRefuses,
    ),
    (
        "<disk type='file'><driver name='qemu' type='luks'/><source file='/a'/><target dev='vda' bus='virtio'/></disk>",
        Target::Spec,
        "a file of format 'luks'",
        LibvirtRefuses,
    ),
    (
        "<disk type='network'><driver name='qemu' type='raw'/><source protocol='gluster' name='v/i'><host name='h' transport='rdma'/></source><target dev='vda' bus='virtio'/></disk>",
        Target::Spec,
        "RDMA",
        Nobody,
    ),
];

fn command_line(nth: usize, disks: &str) -> String {
    MANAGED
        .replace("web1", &format!("web{nth}"))
        .replace("DISKS", disks)
}

#[test]
fn guests_of_a_management_tool_become_xml_that_libvirt_takes_and_specs() {
    let mut accepted = Vec::new();
    for (nth, disks) in DISKS_OF_A_MANAGER.iter().enumerate() {
        let line = command_line(nth, disks);
        match convert(&line, Target::LibvirtXml) {
            Conversion::Done { output, .. } => accepted.push(output),
            Conversion::Refused(reason) => panic!("{disks}: {reason}"),
        }
        if let Conversion::Refused(reason) = convert(&line, Target::Spec) {
            assert!(disks.contains("vmdk"), "{disks}: {reason}");
        }
    }
    for build in libvirts("convert") {
        let session = build.session();
        let verdicts = session.verdicts(Step::Define, accepted.iter().map(String::as_str));
        for (disks, verdict) in DISKS_OF_A_MANAGER.iter().zip(&verdicts) {
            assert_eq!(
                verdict.refusal(),
                None,
                "libvirt {:?}: {disks}",
                build.version
            );
        }
    }
    println!(
        "a management tool's command lines: {} inputs",
        accepted.len()
    );
}

#[test]
fn what_loses_a_disk_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let builds = qemus("convert");
    if let Some(build) = builds.last() {
        make_images(folder.path(), build);
    }
    let root = folder.path().display().to_string();
    let (mut judged, mut wrong) = (0, Vec::new());
    for (disks, word, judge) in REFUSED {
        let disks = disks.replace("ROOT", &root);
        let line = format!("qemu-system-x86_64 -machine q35 -m 1G {disks}");
        match convert(&line, Target::LibvirtXml) {
            Conversion::Refused(reason) => assert!(reason.contains(word), "{disks}: {reason}"),
            Conversion::Done { output, said } => panic!("{disks} was converted: {output} {said:?}"),
        }
        for build in &builds {
            let starts = match judge {
                QemuStarts => true,
                QemuStartsSince(first) if build.version >= *first => true,
                QemuRefuses => false,
                QemuStartsSince(_) | LibvirtDefines | LibvirtRefuses | Nobody => continue,
            };
            let words = disks.split_whitespace().map(str::to_owned);
            let machine = [
                "-machine",
                "q35",
                "-accel",
                "tcg",
                "-m",
                "64M",
                "-nodefaults",
            ];
            let machine = machine.map(str::to_owned);
            let qemu = Launch::paused(build.emulator())
                .args(machine.into_iter().chain(words))
                .start();
            if qemu.is_ok() != starts {
                wrong.push(format!("QEMU {}: {disks}: {:?}", build.name, qemu.err()));
            }
            judged += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!(
        "refused command lines: {}, {judged} judged by {} QEMUs",
        REFUSED.len(),
        builds.len()
    );
}

#[test]
fn disks_in_xml_that_the_target_cannot_have_are_refused_with_their_reason() {
    let guests: Vec<String> = REFUSED_IN_XML
        .iter()
        .enumerate()
        .map(|(nth, (disks, ..))| {
            guest_xml(disks, Path::new("/srv"))
                .replace("<name>a</name>", &format!("<name>a{nth}</name>"))
        })
        .collect();
    for ((disks, target, word, _), xml) in REFUSED_IN_XML.iter().zip(&guests) {
        match convert(xml, *target) {
            Conversion::Refused(reason) => assert!(reason.contains(word), "{disks}: {reason}"),
            Conversion::Done { output, said } => panic!("{disks} was converted: {output} {said:?}"),
        }
    }
    for build in libvirts("convert") {
        let session = build.session();
        let verdicts = session.verdicts(Step::Define, guests.iter().map(String::as_str));
        for ((disks, _, _, judge), verdict) in REFUSED_IN_XML.iter().zip(&verdicts) {
            // Releases differ.
            if *judge == Nobody {
                continue;
            }
            let is_defined = verdict.refusal().is_none();
            assert_eq!(is_defined, *judge == LibvirtDefines, "{disks}: {verdict:?}");
        }
    }
    println!("disks in XML that are refused: {}", REFUSED_IN_XML.len());
}

/// Two raw images and a qcow2 image of 1 MiB.
fn make_images(folder: &Path, build: &QemuBuild) {
    for name in ["a.raw", "b.raw"] {
        let file = File::create(folder.join(name)).unwrap();
        file.set_len(1 << 20).unwrap();
    }
    let made = std::process::Command::new(build.program("qemu-img"))
        .args(["create", "-q", "-f", "qcow2"])
        .arg(folder.join("a.qcow2"))
        .arg("1M")
        .status();
    assert!(made.unwrap().success());
}

/// Disks in libvirt's XML, as tools write them; `ROOT` is the folder of their images.
const DISKS_IN_XML: &[&str] = &[
    "<disk type='file'><driver name='qemu' type='raw' iommu='on'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/></disk>",
    "<controller type='scsi' index='0' model='virtio-scsi'><driver iommu='on'/></controller><disk type='file'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='sda' bus='scsi'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='default'/><source file='ROOT/a.qcow2'/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none' discard='unmap'/><source file='ROOT/a.qcow2'/><target dev='vda' bus='virtio'/><boot order='1'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='writeback' io='threads'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/><address type='pci'/></disk>",
    "<disk type='file' device='cdrom'><driver name='qemu' type='raw'/><source file=''/><target dev='sda' bus='sata'/><readonly/></disk>",
    "<disk type='file' device='cdrom'><driver name='qemu' type='raw'/><backingStore/><target dev='sda' bus='sata'/><readonly/></disk>",
    "<disk type='file' device='cdrom'><target dev='sda' bus='sata'/><readonly/></disk>",
    "<disk type='block' device='cdrom'><driver name='qemu' cache='default'/><target dev='sda' bus='sata'/></disk>",
    "<disk type='file' device='cdrom'><driver name='qemu' type='raw' error_policy='report'/><source file='ROOT/a.raw' startupPolicy='optional'/><target dev='sdc' bus='sata'/><readonly/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='ROOT/a.qcow2'/><mirror type='file' job='copy'><format type='raw'/><source file='ROOT/b.raw'/></mirror><target dev='vda' bus='virtio'/></disk>",
    "<disk type='file' device='disk' snapshot='no'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/></disk>",
    "<controller type='scsi' index='0' model='virtio-scsi'/><disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/><source file='ROOT/a.raw'/><target dev='sda' bus='scsi'/></disk>",
    "<controller type='scsi' index='0' model='virtio-scsi'><address type='pci'/></controller><disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='sda' bus='scsi'/><address type='drive' controller='0' bus='0' target='0' unit='3'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='sda' bus='sata'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='sdf' bus='sata'/><serial>abc</serial></disk>",
    "<controller type='usb' index='0' model='qemu-xhci'/><disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='sda' bus='usb'/></disk>",
    "<controller type='usb' model='ich9-ehci1'/><controller type='usb' model='ich9-uhci1'><master startport='0'/></controller><controller type='usb' model='ich9-uhci2'><master startport='2'/></controller><disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='sda' bus='usb'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw' queues='2'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw' detect_zeroes='on'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw' copy_on_read='off'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw' ioeventfd='on' event_idx='on'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='file' device='disk' model='virtio-non-transitional'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/><iotune><total_iops_sec>500</total_iops_sec></iotune></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/><readonly/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/><shareable/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/><blockio logical_block_size='512' physical_block_size='4096'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/><alias name='ua-disk0'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw' index='1'><seclabel model='dac' relabel='no'/></source><target dev='vda' bus='virtio'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><backingStore/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/><wwn>5000c50015ea71aa</wwn></disk><disk type='file' device='cdrom'><target dev='sda' bus='sata'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/></disk><controller type='pci' index='0' model='pcie-root'/><controller type='pci' index='1' model='pcie-root-port'/>",
];

/// Those that QEMU has no property for, which is refused.
const NOT_OF_QEMU: &[&str] = &["<wwn>"];

fn guest_xml(disks: &str, root: &Path) -> String {
    let disks = disks.replace("ROOT", &root.display().to_string());
    format!(
        "<domain type='qemu'><name>a</name><memory unit='MiB'>64</memory><vcpu>1</vcpu><os><type arch='x86_64' \
         machine='q35'>hvm</type></os><devices>{disks}</devices></domain>"
    )
}

#[test]
fn guests_in_xml_become_command_lines_that_qemu_starts_and_specs() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.raw", "b.raw"] {
        File::create(folder.path().join(name))
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
    }
    let builds = qemus("convert");
    if let Some(build) = builds.first() {
        let image = folder.path().join("a.qcow2");
        let made = std::process::Command::new(build.program("qemu-img"))
            .args(["create", "-q", "-f", "qcow2"])
            .arg(&image)
            .arg("1M")
            .status();
        assert!(made.unwrap().success());
    }
    let mut started = 0;
    for disks in DISKS_IN_XML {
        let xml = guest_xml(disks, folder.path());
        let is_refused = NOT_OF_QEMU.iter().any(|part| disks.contains(part));
        if let Conversion::Refused(reason) = convert(&xml, Target::Spec) {
            panic!("{disks} to a spec: {reason}");
        }
        let output = match convert(&xml, Target::Qemu) {
            Conversion::Refused(_) if is_refused => continue,
            Conversion::Refused(reason) => panic!("{disks}: {reason}"),
            Conversion::Done { output, .. } => output,
        };
        // The newest knows every option that is written for no version in particular.
        if let Some(build) = builds.iter().max_by_key(|build| build.version) {
            let arguments = output.lines().skip(1);
            let qemu = Launch::paused(build.emulator()).args(arguments).start();
            if let Err(error) = qemu {
                panic!("QEMU {}: {disks}: {error}", build.name);
            }
            started += 1;
        }
    }
    println!(
        "guests in XML: {} inputs, {started} started",
        DISKS_IN_XML.len()
    );
}

/// Disks of a cloud manager, which names devices anew at each start of a guest; `ROOT` is the folder of images.
const DISKS_OF_A_CLOUD: &[&str] = &[
    "<disk type='block' device='disk'><driver name='qemu' type='raw' cache='none' io='native'/><source dev='/dev/dm-3'/><target dev='vda' bus='virtio'/><serial>0b9ef3a6-4a3c-4b4f-8a8b-6a3d1c2e9f10</serial></disk>",
    "<disk type='block' device='disk'><driver name='qemu' type='raw' cache='none' io='native' discard='unmap'/><source dev='/dev/dm-12'/><target dev='vdb' bus='virtio'/><serial>0b9ef3a6-4a3c-4b4f-8a8b-6a3d1c2e9f10</serial></disk>",
    "<disk type='block' device='disk'><driver name='qemu' type='raw' cache='none' io='native'/><source dev='/dev/sdf'/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='block' device='disk'><driver name='qemu' type='raw' cache='writeback'/><source dev='/dev/mapper/36001405aa'/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='block' device='disk'><driver name='qemu' type='raw' cache='none'/><source dev='/dev/vg0/instance-1_disk'/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='block' device='disk'><driver name='qemu' type='raw' cache='none'/><source dev='/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-iqn.2010-10.org.openstack:volume-1-lun-1'/><target dev='vdb' bus='virtio'/></disk>",
    "<disk type='block' device='disk'><driver name='qemu' type='raw' cache='none'/><source dev='/dev/nvme1n1'/><target dev='vdb' bus='virtio'/><serial>volume</serial></disk>",
    "<disk type='block' device='disk'><driver name='qemu' type='raw' cache='none'/><source dev='/dev/rbd0'/><target dev='vdb' bus='virtio'/></disk>",
    "<disk type='block' device='disk'><driver name='qemu' type='raw' cache='none' error_policy='stop'/><source dev='/dev/dm-4'/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='block' device='disk'><driver name='qemu' type='raw' cache='none' error_policy='stop' rerror_policy='report'/><source dev='/dev/dm-4'/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='block' device='disk'><driver name='qemu' type='raw' cache='none'/><source dev='/dev/dm-4'/><target dev='vda' bus='virtio'/><shareable/></disk>",
    "<disk type='block' device='disk'><driver name='qemu' type='raw' cache='none'/><source dev='/dev/dm-4'/><target dev='vda' bus='virtio'/><iotune><total_bytes_sec>10485760</total_bytes_sec><total_iops_sec>500</total_iops_sec></iotune></disk>",
    "<disk type='network' device='disk'><driver name='qemu' type='raw' cache='writeback' discard='unmap'/><source protocol='rbd' name='vms/1_disk'><host name='10.0.0.1' port='6789'/><host name='10.0.0.2' port='6789'/></source><target dev='vda' bus='virtio'/></disk>",
    "<disk type='network' device='disk'><driver name='qemu' type='raw' cache='none'/><source protocol='nbd' name='a'><host name='10.0.0.1' port='10809'/></source><target dev='vda' bus='virtio'/></disk>",
    "<disk type='network' device='disk'><driver name='qemu' type='raw' cache='none'/><source protocol='iscsi' name='iqn.2010-10.org.openstack:volume-1/1'><host name='10.0.0.1' port='3260'/></source><target dev='vda' bus='virtio'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none'/><source file='ROOT/a.qcow2'/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none' discard='unmap'/><source file='ROOT/a.qcow2'/><target dev='vda' bus='virtio'/><address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x0'/></disk><controller type='pci' index='0' model='pcie-root'/><controller type='pci' index='1' model='pcie-root-port'><target chassis='1' port='0x10'/></controller>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none' io='native'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/></disk>",
    "<disk type='file' device='cdrom'><driver name='qemu' type='raw' cache='none'/><source file='ROOT/a.raw'/><target dev='sda' bus='sata'/><readonly/></disk>",
    "<disk type='file' device='cdrom'><driver name='qemu' type='raw' error_policy='report'/><source startupPolicy='optional'/><target dev='sdc' bus='sata'/><readonly/></disk>",
    "<disk type='file' device='cdrom'><driver name='qemu' error_policy='report'/><target dev='sdc' bus='sata'/><readonly/><alias name='ua-1'/></disk>",
    "<controller type='scsi' index='0' model='virtio-scsi'/><disk type='block' device='disk'><driver name='qemu' type='raw' cache='none' discard='unmap'/><source dev='/dev/dm-5'/><target dev='sda' bus='scsi'/><serial>v</serial></disk>",
    "<controller type='scsi' index='0' model='virtio-scsi'/><disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none' discard='unmap'/><source file='ROOT/a.qcow2'/><target dev='sda' bus='scsi'/><address type='drive' controller='0' bus='0' target='0' unit='0'/></disk>",
    "<controller type='scsi' index='0' model='virtio-scsi'><driver queues='4'/></controller><disk type='file' device='disk' snapshot='no'><driver name='qemu' type='qcow2' cache='none' error_policy='stop' io='threads'/><source file='ROOT/a.qcow2'/><target dev='sda' bus='scsi'/><serial>0b9ef3a6-4a3c</serial><boot order='1'/></disk>",
    "<controller type='scsi' index='0' model='virtio-scsi'/><disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/><source file='ROOT/a.raw'><seclabel model='dac' relabel='no'/></source><target dev='sda' bus='scsi'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none'/><source file='ROOT/a.qcow2'/><target dev='sda' bus='sata'/><serial>0b9ef3a6-4a3c-4b4f-8</serial></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='writethrough'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/><boot order='1'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/><address type='pci'/></disk><disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='ROOT/b.raw'/><target dev='vdb' bus='virtio'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/><source file='ROOT/a.raw'/><backingStore/><target dev='vda' bus='virtio'/><alias name='virtio-disk0'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='directsync' io='native'/><source file='ROOT/a.raw'/><target dev='vda' bus='virtio'/></disk>",
];

#[test]
fn guests_of_a_cloud_manager_become_command_lines_and_specs() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.raw", "b.raw"] {
        let file = File::create(folder.path().join(name)).unwrap();
        file.set_len(1 << 20).unwrap();
    }
    let builds = qemus("convert");
    let newest = builds.iter().max_by_key(|build| build.version);
    if let Some(build) = newest {
        let made = std::process::Command::new(build.program("qemu-img"))
            .args(["create", "-q", "-f", "qcow2"])
            .arg(folder.path().join("a.qcow2"))
            .arg("1M")
            .status();
        assert!(made.unwrap().success());
    }
    let guests: Vec<String> = DISKS_OF_A_CLOUD
        .iter()
        .enumerate()
        .map(|(nth, disks)| {
            guest_xml(disks, folder.path())
                .replace("<name>a</name>", &format!("<name>a{nth}</name>"))
        })
        .collect();
    for build in libvirts("convert") {
        let session = build.session();
        let verdicts = session.verdicts(Step::Define, guests.iter().map(String::as_str));
        for (disks, verdict) in DISKS_OF_A_CLOUD.iter().zip(&verdicts) {
            assert_eq!(verdict.refusal(), None, "{disks}");
        }
    }
    let mut started = 0;
    for (disks, xml) in DISKS_OF_A_CLOUD.iter().zip(&guests) {
        if let Conversion::Refused(reason) = convert(xml, Target::Spec) {
            panic!("{disks} to a spec: {reason}");
        }
        let output = match convert(xml, Target::Qemu) {
            Conversion::Refused(reason) => panic!("{disks}: {reason}"),
            Conversion::Done { output, .. } => output,
        };
        // Devices and servers are not here.
        let is_here = !disks.contains("type='block'") && !disks.contains("type='network'");
        if let Some(build) = newest.filter(|_| is_here) {
            let qemu = Launch::paused(build.emulator())
                .args(output.lines().skip(1))
                .start();
            if let Err(error) = qemu {
                panic!("QEMU {}: {disks}: {error}", build.name);
            }
            started += 1;
        }
    }
    println!(
        "guests of a cloud manager: {} inputs, {started} started",
        DISKS_OF_A_CLOUD.len()
    );
}

#[test]
fn command_lines_come_back_from_the_model_as_command_lines_with_the_same_disks() {
    let mut compared = 0;
    for (nth, disks) in DISKS_OF_A_MANAGER.iter().enumerate() {
        let line = command_line(nth, disks);
        if disks.contains("snapshot=on") {
            let reason = match convert(&line, Target::Qemu) {
                Conversion::Refused(reason) => reason,
                Conversion::Done { output, .. } => panic!("{disks} was converted: {output}"),
            };
            assert!(reason.contains("at each start"), "{disks}: {reason}");
            continue;
        }
        let output = match convert(&line, Target::Qemu) {
            Conversion::Done { output, .. } => output,
            Conversion::Refused(reason) => panic!("{disks}: {reason}"),
        };
        let words: Vec<String> = output.lines().map(str::to_owned).collect();
        let again = serde_json::to_string(&words).unwrap();
        let (before, after) = (vmdisk::read(&line).unwrap(), vmdisk::read(&again).unwrap());
        let sources = |document: &vmdisk::Document| -> Vec<String> {
            let disks = document.domain().disks.iter();
            disks
                .map(|disk| format!("{:?}", disk.backend.source))
                .collect()
        };
        assert_eq!(sources(&after), sources(&before), "{disks}");
        compared += 1;
    }
    println!("command lines there and back: {compared} inputs");
}
