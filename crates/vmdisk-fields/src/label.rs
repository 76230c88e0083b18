//! Names of fields in a breadcrumb: libvirt's elements and attributes.

use vmdisk_model::{
    ControllerField, DiskField, DomainField, FieldPath, ImageField, IoThreadField, LimitField,
};

use crate::{controller, disk, image, limit};

/// A name that people know.
pub trait Label {
    /// The name in a breadcrumb: libvirt's element or attribute.
    fn label(self) -> &'static str;
}

impl Label for DiskField {
    fn label(self) -> &'static str {
        disk(self).libvirt.place
    }
}

impl Label for ImageField {
    /// The element, where its only attribute is the field.
    fn label(self) -> &'static str {
        let place = image(self).libvirt;
        match place.element() {
            "source" | "source/identity" => place.place,
            element if place.is_attribute() => element,
            _ => place.place,
        }
    }
}

impl Label for ControllerField {
    fn label(self) -> &'static str {
        controller(self).libvirt.place
    }
}

impl Label for LimitField {
    fn label(self) -> &'static str {
        limit(self).map_or("limits", |row| row.libvirt)
    }
}

impl Label for FieldPath {
    fn label(self) -> &'static str {
        match self {
            FieldPath::Domain(field) => field.label(),
            FieldPath::Disk(_, field) => field.label(),
            FieldPath::Image(_, _, field) => field.label(),
            FieldPath::Controller(_, field) => field.label(),
            FieldPath::IoThread(_, field) => field.label(),
            FieldPath::Iotune(_, field) | FieldPath::ThrottleGroup(_, field) => field.label(),
        }
    }
}

/// Names of the fields without rows: the tables of vmdisk-libvirt hold their places.
macro_rules! labels {
    ($($names:ident { $($field:ident = $label:literal,)+ })+) => {$(
        impl Label for $names {
            fn label(self) -> &'static str {
                match self { $($names::$field => $label,)+ }
            }
        }
    )+};
}

labels! {
    DomainField {
        Domain = "domain",
        Name = "name",
        Uuid = "uuid",
        DomainType = "@type",
        Os = "os",
        Firmware = "os/@firmware",
        Architecture = "type/@arch",
        Machine = "type/@machine",
        Vcpus = "vcpu",
        BootDevices = "os/boot",
        Memory = "memory",
        MemoryBacking = "memoryBacking",
        HugePages = "hugepages",
        MemorySource = "source/@type",
        MemoryAccess = "access/@mode",
        NumaCells = "cpu/numa",
        Blkiotune = "blkiotune",
        Cpu = "cpu",
        CpuTune = "cputune",
        ThrottleGroups = "throttlegroups",
        IoThreads = "iothreads",
        IoThreadIds = "iothreadids",
        DefaultIoThread = "defaultiothread",
        Devices = "devices",
        Emulator = "emulator",
    }
    IoThreadField {
        IoThread = "iothread",
        Id = "@id",
        ThreadPoolMin = "@thread_pool_min",
        ThreadPoolMax = "@thread_pool_max",
        Polling = "poll",
    }
}
