//! `<domain>`, as far as disks depend on it.

use vmdisk_model::{
    Architecture, BootDevice, DomainField, Firmware, IoThreadField, LimitField, MemoryAccess,
    MemorySource,
};

use super::Field::{Domain, IoThread, ThrottleGroup};
use super::ValueSpec::{Positive32, Text, Unsigned32, Unsigned64, Words, WordsAnd};
use super::disk::DISK;
use super::limits::THROTTLE_GROUP;
use super::{ChildSpec, ElementSpec, Need, ON_OFF, Pick, attribute, child};

/// An element outside the tables; only its position in libvirt's order is known.
const fn other(element: &'static ElementSpec) -> ChildSpec {
    child((0, 0, 3), element)
}

macro_rules! others {
    ($($name:ident = $wire:literal,)+) => {
        $(static $name: ElementSpec = ElementSpec::new($wire).unjudged();)+
    };
}

/// libvirt `<domain>`.
pub static DOMAIN: ElementSpec = ElementSpec::new("domain")
    .unjudged()
    .attributes(&[
        attribute("type", (0, 0, 3), Text).is(Domain(DomainField::DomainType)),
        attribute("id", (0, 0, 3), Text),
    ])
    .children(&[
        child((0, 0, 3), &NAME).is(Domain(DomainField::Name)),
        child((0, 0, 3), &UUID).is(Domain(DomainField::Uuid)),
        other(&HWUUID),
        other(&GENID),
        other(&TITLE),
        other(&DESCRIPTION),
        other(&METADATA),
        other(&MAX_MEMORY),
        child((0, 0, 3), &MEMORY).is(Domain(DomainField::Memory)),
        other(&CURRENT_MEMORY),
        child((0, 8, 8), &BLKIOTUNE).is(Domain(DomainField::Blkiotune)),
        other(&MEMTUNE),
        child((0, 8, 2), &MEMORY_BACKING).is(Domain(DomainField::MemoryBacking)),
        child((0, 0, 3), &VCPU).is(Domain(DomainField::Vcpus)),
        other(&VCPUS),
        child((1, 2, 8), &IOTHREADS).is(Domain(DomainField::IoThreads)),
        child((1, 2, 15), &IOTHREAD_IDS).is(Domain(DomainField::IoThreadIds)),
        child((8, 5, 0), &DEFAULT_IOTHREAD).is(Domain(DomainField::DefaultIoThread)),
        other(&CPUTUNE).is(Domain(DomainField::CpuTune)),
        child((11, 2, 0), &THROTTLE_GROUPS).is(Domain(DomainField::ThrottleGroups)),
        other(&NUMATUNE),
        other(&RESOURCE),
        other(&SYSINFO).many(),
        other(&BOOTLOADER),
        other(&BOOTLOADER_ARGS),
        child((0, 0, 3), &OS).is(Domain(DomainField::Os)),
        other(&IDMAP),
        other(&FEATURES),
        child((0, 7, 5), &CPU).is(Domain(DomainField::Cpu)),
        other(&CLOCK),
        other(&ON_POWEROFF),
        other(&ON_REBOOT),
        other(&ON_CRASH),
        other(&ON_LOCKFAILURE),
        other(&PM),
        other(&PERF),
        child((0, 0, 3), &DEVICES).is(Domain(DomainField::Devices)),
        other(&SECLABEL).many(),
        other(&KEYWRAP),
        other(&LAUNCH_SECURITY),
    ]);

others! {
    HWUUID = "hwuuid",
    GENID = "genid",
    TITLE = "title",
    DESCRIPTION = "description",
    METADATA = "metadata",
    MAX_MEMORY = "maxMemory",
    CURRENT_MEMORY = "currentMemory",
    MEMTUNE = "memtune",
    VCPUS = "vcpus",
    CPUTUNE = "cputune",
    NUMATUNE = "numatune",
    RESOURCE = "resource",
    SYSINFO = "sysinfo",
    BOOTLOADER = "bootloader",
    BOOTLOADER_ARGS = "bootloader_args",
    IDMAP = "idmap",
    FEATURES = "features",
    CLOCK = "clock",
    ON_POWEROFF = "on_poweroff",
    ON_REBOOT = "on_reboot",
    ON_CRASH = "on_crash",
    ON_LOCKFAILURE = "on_lockfailure",
    PM = "pm",
    PERF = "perf",
    SECLABEL = "seclabel",
    KEYWRAP = "keywrap",
    LAUNCH_SECURITY = "launchSecurity",
}

static NAME: ElementSpec = ElementSpec::new("name").content(Text);

static UUID: ElementSpec = ElementSpec::new("uuid").content(Text);

static MEMORY: ElementSpec = ElementSpec::new("memory")
    .attributes(&[
        attribute("unit", (0, 9, 11), Text),
        attribute("dumpCore", (0, 10, 2), ON_OFF),
    ])
    .content(Unsigned64);

static VCPU: ElementSpec = ElementSpec::new("vcpu")
    .attributes(&[
        attribute("placement", (0, 9, 11), Words(&["static", "auto"])),
        attribute("cpuset", (0, 4, 4), Text),
        attribute("current", (0, 8, 5), Unsigned32),
    ])
    .content(Unsigned32);

static MEMORY_BACKING: ElementSpec = ElementSpec::new("memoryBacking").children(&[
    child((0, 8, 2), &HUGEPAGES).is(Domain(DomainField::HugePages)),
    child((1, 0, 6), &NOSHAREPAGES),
    child((1, 0, 6), &LOCKED),
    child((3, 1, 0), &MEMORY_SOURCE),
    child((3, 1, 0), &MEMORY_ACCESS),
    child((3, 1, 0), &ALLOCATION),
    child((4, 4, 0), &MEMORY_DISCARD),
]);

static HUGEPAGES: ElementSpec =
    ElementSpec::new("hugepages").children(&[child((1, 2, 5), &PAGE).many()]);
static PAGE: ElementSpec = ElementSpec::new("page").attributes(&[
    attribute("size", (1, 2, 5), Unsigned64),
    attribute("unit", (1, 2, 5), Text),
    attribute("nodeset", (1, 2, 5), Text),
]);
static NOSHAREPAGES: ElementSpec = ElementSpec::new("nosharepages");
static LOCKED: ElementSpec = ElementSpec::new("locked");
static MEMORY_SOURCE: ElementSpec = ElementSpec::new("source").attributes(&[attribute(
    "type",
    (3, 1, 0),
    Words(MemorySource::WORDS),
)
.is(Domain(DomainField::MemorySource))]);
static MEMORY_ACCESS: ElementSpec = ElementSpec::new("access").attributes(&[attribute(
    "mode",
    (3, 1, 0),
    Words(MemoryAccess::WORDS),
)
.is(Domain(DomainField::MemoryAccess))]);
static ALLOCATION: ElementSpec = ElementSpec::new("allocation").attributes(&[
    attribute("mode", (3, 1, 0), Words(&["immediate", "ondemand"])),
    attribute("threads", (8, 2, 0), Unsigned32),
]);
static MEMORY_DISCARD: ElementSpec = ElementSpec::new("discard");

static IOTHREADS: ElementSpec = ElementSpec::new("iothreads")
    .content(Unsigned32)
    .may_be_empty();

static IOTHREAD_IDS: ElementSpec = ElementSpec::new("iothreadids")
    .needs(&[Need::Distinct("iothread", "id")])
    .children(&[child((1, 2, 15), &IOTHREAD)
        .many()
        .is(IoThread(IoThreadField::IoThread))]);

/// libvirt `iothreadids/iothread`.
pub(crate) static IOTHREAD: ElementSpec = ElementSpec::new("iothread")
    .attributes(&[
        attribute("id", (1, 2, 15), Positive32).is(IoThread(IoThreadField::Id)),
        attribute("thread_pool_min", (8, 5, 0), Unsigned32)
            .is(IoThread(IoThreadField::ThreadPoolMin)),
        attribute("thread_pool_max", (8, 5, 0), Unsigned32)
            .is(IoThread(IoThreadField::ThreadPoolMax)),
    ])
    .children(&[child((9, 4, 0), &POLL).is(IoThread(IoThreadField::Polling))]);

static POLL: ElementSpec = ElementSpec::new("poll").attributes(&[
    attribute("max", (9, 4, 0), Unsigned64),
    attribute("grow", (9, 4, 0), Unsigned64),
    attribute("shrink", (9, 4, 0), Unsigned64),
]);

static DEFAULT_IOTHREAD: ElementSpec = ElementSpec::new("defaultiothread").attributes(&[
    attribute("thread_pool_min", (8, 5, 0), Unsigned32),
    attribute("thread_pool_max", (8, 5, 0), Unsigned32),
]);

static THROTTLE_GROUPS: ElementSpec =
    ElementSpec::new("throttlegroups").children(&[child((11, 2, 0), &THROTTLE_GROUP)
        .many()
        .is(ThrottleGroup(LimitField::Limits))]);

static BLKIOTUNE: ElementSpec = ElementSpec::new("blkiotune").children(&[
    child((0, 8, 8), &BLKIO_WEIGHT),
    child((0, 9, 8), &BLKIO_DEVICE).many(),
]);
static BLKIO_WEIGHT: ElementSpec = ElementSpec::new("weight")
    .content(Unsigned32)
    .may_be_empty()
    .may_end_in_space();
static WEIGHT: ElementSpec = ElementSpec::new("weight").content(Unsigned32);
static BLKIO_DEVICE: ElementSpec = ElementSpec::new("device").children(&[
    child((0, 9, 8), &BLKIO_PATH),
    child((0, 9, 8), &WEIGHT),
    child((1, 2, 2), &READ_IOPS_SEC),
    child((1, 2, 2), &WRITE_IOPS_SEC),
    child((1, 2, 2), &READ_BYTES_SEC),
    child((1, 2, 2), &WRITE_BYTES_SEC),
]);
static BLKIO_PATH: ElementSpec = ElementSpec::new("path").content(Text);
static READ_IOPS_SEC: ElementSpec = ElementSpec::new("read_iops_sec").content(Unsigned32);
static WRITE_IOPS_SEC: ElementSpec = ElementSpec::new("write_iops_sec").content(Unsigned32);
static READ_BYTES_SEC: ElementSpec = ElementSpec::new("read_bytes_sec").content(Unsigned64);
static WRITE_BYTES_SEC: ElementSpec = ElementSpec::new("write_bytes_sec").content(Unsigned64);

static OS: ElementSpec = ElementSpec::new("os")
    .unjudged()
    .attributes(&[
        attribute("firmware", (5, 2, 0), WordsAnd(Firmware::WORDS, &["none"]))
            .is(Domain(DomainField::Firmware)),
    ])
    .children(&[
        child((0, 0, 3), &OS_TYPE),
        child((0, 1, 3), &OS_BOOT)
            .many()
            .is(Domain(DomainField::BootDevices)),
    ]);

static OS_BOOT: ElementSpec =
    ElementSpec::new("boot").attributes(&[attribute("dev", (0, 1, 3), Words(BootDevice::WORDS))]);

static OS_TYPE: ElementSpec = ElementSpec::new("type")
    .unjudged()
    .attributes(&[
        attribute(
            "arch",
            (0, 2, 1),
            WordsAnd(Architecture::WORDS, OTHER_ARCHITECTURES),
        )
        // Distributions dropped their patches for it with 10.2; the notes of 10.1 do not name it.
        .later(&[("loongarch64", (10, 2, 0), None)])
        .is(Domain(DomainField::Architecture)),
        attribute("machine", (0, 2, 1), Text).is(Domain(DomainField::Machine)),
    ])
    .content(Text);

/// Architectures of libvirt that the model does not have.
const OTHER_ARCHITECTURES: &[&str] = &[
    "armv7b",
    "cris",
    "lm32",
    "microblaze",
    "microblazeel",
    "mips64el",
    "openrisc",
    "parisc",
    "parisc64",
    "ppcemb",
    "s390",
    "sh4",
    "sh4eb",
    "unicore32",
    "xtensa",
    "xtensaeb",
];

static CPU: ElementSpec = ElementSpec::new("cpu")
    .unjudged()
    .children(&[child((0, 9, 8), &NUMA).is(Domain(DomainField::NumaCells))]);
static NUMA: ElementSpec = ElementSpec::new("numa")
    .unjudged()
    .children(&[child((0, 9, 8), &CELL).many()]);
static CELL: ElementSpec = ElementSpec::new("cell").unjudged().attributes(&[attribute(
    "memAccess",
    (1, 2, 9),
    Words(MemoryAccess::WORDS),
)]);

/// libvirt `<devices>`.
pub static DEVICES: ElementSpec = ElementSpec::new("devices").unjudged().children(&[
    other(&EMULATOR).is(Domain(DomainField::Emulator)),
    child((0, 0, 3), &DISK)
        .many()
        .is(super::Field::Disk(vmdisk_model::DiskField::Disk))
        .is(super::Field::Image(vmdisk_model::ImageField::Image)),
    ChildSpec {
        name: "controller",
        since: (0, 7, 6),
        qemu: None,
        pick: Pick::ControllerOfType,
        repeats: true,
        fields: [
            Some(super::Field::Controller(
                vmdisk_model::ControllerField::Controller,
            )),
            None,
        ],
    },
]);

others! {
    EMULATOR = "emulator",
}

/// Names of unmodeled children that the table of `element` does not list.
pub(crate) fn other_devices(element: &'static ElementSpec) -> &'static [&'static str] {
    if std::ptr::eq(element, &DEVICES) {
        OTHER_DEVICES
    } else {
        &[]
    }
}

/// Names of other devices, so that none is treated as a misspelt `disk`.
const OTHER_DEVICES: &[&str] = &[
    "audio",
    "channel",
    "console",
    "crypto",
    "emulator",
    "filesystem",
    "graphics",
    "hostdev",
    "hub",
    "input",
    "interface",
    "iommu",
    "lease",
    "memballoon",
    "memory",
    "nvram",
    "panic",
    "parallel",
    "pstore",
    "redirdev",
    "redirfilter",
    "rng",
    "serial",
    "shmem",
    "smartcard",
    "sound",
    "tpm",
    "video",
    "vsock",
    "watchdog",
];
