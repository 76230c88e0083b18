//! Limits of a disk and of a throttle group, which have the same elements.

use vmdisk_model::LimitField;

use super::Field::{Iotune, ThrottleGroup};
use super::Value::{Text, Unsigned64};
use super::{ElementSpec, child};

macro_rules! limits {
    ($($name:ident = $wire:literal, $content:expr, since $since:expr, $field:ident;)+) => {
        $(static $name: ElementSpec = ElementSpec::new($wire).content($content);)+

        /// libvirt `<iotune>`.
        pub(super) static IOTUNE: ElementSpec = ElementSpec::new("iotune").children(&[
            $(child($since, &$name).is(Iotune(LimitField::$field)),)+
        ]);

        /// libvirt `throttlegroups/throttlegroup`.
        pub(crate) static THROTTLE_GROUP: ElementSpec = ElementSpec::new("throttlegroup").children(&[
            $(child((11, 2, 0), &$name).is(ThrottleGroup(LimitField::$field)),)+
        ]);
    };
}

limits! {
    TOTAL_BYTES_SEC = "total_bytes_sec", Unsigned64, since (0, 9, 8), TotalBytes;
    READ_BYTES_SEC = "read_bytes_sec", Unsigned64, since (0, 9, 8), ReadBytes;
    WRITE_BYTES_SEC = "write_bytes_sec", Unsigned64, since (0, 9, 8), WriteBytes;
    TOTAL_IOPS_SEC = "total_iops_sec", Unsigned64, since (0, 9, 8), TotalIops;
    READ_IOPS_SEC = "read_iops_sec", Unsigned64, since (0, 9, 8), ReadIops;
    WRITE_IOPS_SEC = "write_iops_sec", Unsigned64, since (0, 9, 8), WriteIops;
    TOTAL_BYTES_SEC_MAX = "total_bytes_sec_max", Unsigned64, since (1, 2, 11), TotalBytesMax;
    READ_BYTES_SEC_MAX = "read_bytes_sec_max", Unsigned64, since (1, 2, 11), ReadBytesMax;
    WRITE_BYTES_SEC_MAX = "write_bytes_sec_max", Unsigned64, since (1, 2, 11), WriteBytesMax;
    TOTAL_IOPS_SEC_MAX = "total_iops_sec_max", Unsigned64, since (1, 2, 11), TotalIopsMax;
    READ_IOPS_SEC_MAX = "read_iops_sec_max", Unsigned64, since (1, 2, 11), ReadIopsMax;
    WRITE_IOPS_SEC_MAX = "write_iops_sec_max", Unsigned64, since (1, 2, 11), WriteIopsMax;
    SIZE_IOPS_SEC = "size_iops_sec", Unsigned64, since (1, 2, 11), SizeIops;
    GROUP_NAME = "group_name", Text, since (3, 0, 0), Group;
    TOTAL_BYTES_SEC_MAX_LENGTH = "total_bytes_sec_max_length", Unsigned64, since (2, 4, 0), TotalBytesMaxLength;
    READ_BYTES_SEC_MAX_LENGTH = "read_bytes_sec_max_length", Unsigned64, since (2, 4, 0), ReadBytesMaxLength;
    WRITE_BYTES_SEC_MAX_LENGTH = "write_bytes_sec_max_length", Unsigned64, since (2, 4, 0), WriteBytesMaxLength;
    TOTAL_IOPS_SEC_MAX_LENGTH = "total_iops_sec_max_length", Unsigned64, since (2, 4, 0), TotalIopsMaxLength;
    READ_IOPS_SEC_MAX_LENGTH = "read_iops_sec_max_length", Unsigned64, since (2, 4, 0), ReadIopsMaxLength;
    WRITE_IOPS_SEC_MAX_LENGTH = "write_iops_sec_max_length", Unsigned64, since (2, 4, 0), WriteIopsMaxLength;
}
