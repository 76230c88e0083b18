//! Configurations that libvirt takes and does not do, or not as they are written.

use Definition::{Adds, Keeps, LeavesOut};

use super::{IOTHREADS, PLAIN, behind, disk, driver};

/// What libvirt takes without a word: what stands around the devices, the devices, the rule that speaks of it, and a
/// word that is no longer there in the definition, or only there in it.
pub(super) struct Silent {
    pub(super) around: &'static str,
    pub(super) devices: &'static str,
    pub(super) rule: &'static str,
    pub(super) definition: Definition,
}

/// What a definition shows of it.
pub(super) enum Definition {
    /// All that was written.
    Keeps(&'static str),
    /// No longer this.
    LeavesOut(&'static str),
    /// This, which was not written.
    Adds(&'static str),
}

const fn around(
    around: &'static str,
    devices: &'static str,
    rule: &'static str,
    definition: Definition,
) -> Silent {
    Silent {
        around,
        devices,
        rule,
        definition,
    }
}

const fn silent(devices: &'static str, rule: &'static str, definition: Definition) -> Silent {
    around("", devices, rule, definition)
}

pub(super) const SILENT: &[Silent] = &[
    silent(
        driver!("discrad='unmap'", ""),
        "unknown-attribute",
        LeavesOut("discrad"),
    ),
    silent(
        behind!("<reedonly/>"),
        "unknown-element",
        LeavesOut("reedonly"),
    ),
    silent(
        behind!("<alias name='data'/>"),
        "alias-dropped",
        LeavesOut("name='data'"),
    ),
    silent(
        behind!("<serial>a</serial><serial>b</serial>"),
        "duplicate-value",
        LeavesOut("<serial>b"),
    ),
    around(
        "<kvm:commandline><kvm:arg value='-snapshot'/></kvm:commandline>",
        PLAIN,
        "undeclared-prefix",
        LeavesOut("commandline"),
    ),
    silent(
        disk!("", "<target dev='sda' bus='scsi'/>"),
        "scsi-controller-implicit",
        Adds("model='lsilogic'"),
    ),
    silent(
        concat!(
            "<controller type='scsi' index='0'/>",
            disk!("", "<target dev='sda' bus='scsi'/>")
        ),
        "scsi-controller-implicit",
        Adds("model='lsilogic'"),
    ),
    silent(
        disk!("", "<target dev='vda' bus='sata'/>"),
        "target-bus-mismatch",
        Keeps("bus='sata'"),
    ),
    silent(
        disk!("", "<target dev='sda' bus='sata' rotation_rate='500'/>"),
        "rotation-rate-unknown",
        Keeps("rotation_rate='500'"),
    ),
    silent(
        disk!("", "<target dev='sda' bus='sata' rotation_rate='70000'/>"),
        "rotation-rate-unknown",
        Keeps("rotation_rate='70000'"),
    ),
    silent(
        "<disk type='network' device='disk'><driver name='qemu' type='raw' cache='none' io='native'/><source protocol='nbd' name='a'><host name='h'/></source><target dev='vda' bus='virtio'/></disk>",
        "aio-ignored",
        Keeps("io='native'"),
    ),
    silent(
        "<disk type='file' device='disk'><source file='a.img'/><target dev='vda' bus='virtio'/></disk>",
        "relative-path",
        Keeps("file='a.img'"),
    ),
    silent(
        driver!("detect_zeroes='unmap'", ""),
        "detect-zeroes-unmap-no-discard",
        Keeps("detect_zeroes='unmap'"),
    ),
    silent(
        driver!("cache='unsafe'", ""),
        "cache-unsafe",
        Keeps("cache='unsafe'"),
    ),
    silent(
        driver!("queues='2000'", ""),
        "queue-count-refused",
        Keeps("queues='2000'"),
    ),
    silent(
        driver!("queues='3'", ""),
        "queues-gt-vcpus",
        Keeps("queues='3'"),
    ),
    silent(
        driver!("queue_size='100'", ""),
        "queue-size-refused",
        Keeps("queue_size='100'"),
    ),
    silent(
        behind!("<blockio logical_block_size='1000'/>"),
        "block-size-refused",
        Keeps("logical_block_size='1000'"),
    ),
    silent(
        behind!("<blockio logical_block_size='4096' physical_block_size='512'/>"),
        "block-size-refused",
        Keeps("logical_block_size='4096'"),
    ),
    silent(
        behind!(
            "<iotune><total_iops_sec>100</total_iops_sec><total_iops_sec_max>10</total_iops_sec_max></iotune>"
        ),
        "throttle-limits-refused",
        Keeps("<total_iops_sec_max>10<"),
    ),
    silent(
        behind!("<iotune><total_iops_sec_max>10</total_iops_sec_max></iotune>"),
        "throttle-limits-refused",
        Keeps("<total_iops_sec_max>10<"),
    ),
    silent(
        behind!("<serial>a-serial-number-of-more-than-twenty-bytes</serial>"),
        "serial-too-long",
        Keeps("a-serial-number-of-more-than-twenty-bytes"),
    ),
    silent(
        concat!(
            behind!("<serial>a</serial>"),
            "<disk type='file' device='disk'><source file='/b.img'/><target dev='vdb' bus='virtio'/><serial>a</serial></disk>"
        ),
        "serial-twice",
        Keeps("<serial>a<"),
    ),
    silent(
        concat!(
            "<disk type='file' device='disk'><source file='/a.img'/><target dev='vdb' bus='virtio'/></disk>",
            behind!("")
        ),
        "duplicate-disk-source",
        Keeps("dev='vdb'"),
    ),
    silent(
        "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='writeback'/><source file='/a.img'/><target dev='vda' bus='virtio'/><shareable/></disk>",
        "shareable-cached",
        Keeps("<shareable/>"),
    ),
    silent(
        "<disk type='file' device='disk'><source file='/a.img'><slices><slice type='storage' offset='100' size='1000'/></slices></source><target dev='vda' bus='virtio'/></disk>",
        "slice-unaligned",
        Keeps("size='1000'"),
    ),
    silent(
        "<disk type='network' device='disk'><source protocol='gluster' name='v/a'><host name='h'/><snapshot name='s'/></source><target dev='vda' bus='virtio'/></disk>",
        "source-option-ignored",
        Keeps("<snapshot name='s'/>"),
    ),
    silent(
        behind!("<auth username='a'><secret type='iscsi' usage='b'/></auth>"),
        "source-option-ignored",
        Keeps("<auth username='a'>"),
    ),
    around(IOTHREADS, PLAIN, "iothread-unused", Keeps("<iothreads>2<")),
];

/// What becomes of a guest that libvirt takes, when it makes QEMU's command line of it.
pub(super) struct Converted {
    pub(super) devices: &'static str,
    /// What the command line has, or what libvirt says instead.
    pub(super) has: &'static str,
    /// What it has not.
    pub(super) lacks: &'static str,
    /// The rule that speaks of it, if it is wrong.
    pub(super) rule: Option<&'static str>,
}

const fn converted(
    devices: &'static str,
    has: &'static str,
    lacks: &'static str,
    rule: Option<&'static str>,
) -> Converted {
    Converted {
        devices,
        has,
        lacks,
        rule,
    }
}

/// A disk on the network with that engine.
macro_rules! engine {
    ($source:literal) => {
        concat!(
            "<disk type='network' device='disk'><driver name='qemu' type='raw' cache='none' io='native'/>",
            $source,
            "<target dev='vda' bus='virtio'/></disk>"
        )
    };
}

/// A disk on the network.
macro_rules! network {
    ($source:literal) => {
        concat!(
            "<disk type='network' device='disk'><driver name='qemu' type='raw'/>",
            $source,
            "<target dev='vda' bus='virtio'/></disk>"
        )
    };
}

const HOSTS: Option<&str> = Some("network-server-refused");

// iSCSI is not among them: libvirt 9.0 takes the first of several hosts, and crashes here where there is none.
pub(super) const CONVERTED: &[Converted] = &[
    converted(
        "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none' io='native'/><source file='/a.img'/><target dev='vda' bus='virtio'/></disk>",
        "\"aio\":\"native\"",
        "nbd",
        None,
    ),
    converted(
        engine!("<source protocol='nbd' name='a'><host name='h'/></source>"),
        "\"driver\":\"nbd\"",
        "aio",
        Some("aio-ignored"),
    ),
    converted(
        network!("<source protocol='nbd' name='a'><host name='h'/><host name='i'/></source>"),
        "nbd protocol accepts only one host",
        "-blockdev",
        HOSTS,
    ),
    converted(
        network!("<source protocol='https' name='a'><host name='h'/><host name='i'/></source>"),
        "protocol 'https' accepts only one host",
        "-blockdev",
        HOSTS,
    ),
    converted(
        network!("<source protocol='ftp' name='a'><host name='h'/><host name='i'/></source>"),
        "protocol 'ftp' accepts only one host",
        "-blockdev",
        HOSTS,
    ),
    converted(
        network!("<source protocol='ssh' name='/a'><host name='h'/><host name='i'/></source>"),
        "ssh protocol accepts only one host",
        "-blockdev",
        HOSTS,
    ),
    converted(
        network!("<source protocol='rbd' name='a/b'/>"),
        "\"driver\":\"rbd\"",
        "error",
        None,
    ),
];
