//! Limits of a disk and of a throttle group, which have the same elements.

use vmdisk_fields::{LimitRow, Since, limit};
use vmdisk_model::LimitField;

use super::Field::{Iotune, ThrottleGroup};
use super::ValueSpec::{Text, Unsigned64};
use super::{ElementSpec, child};

const fn row(field: LimitField) -> &'static LimitRow {
    limit(field).expect("a limit has a row")
}

const fn since(field: LimitField) -> Since {
    row(field).since
}

macro_rules! limits {
    ($($name:ident = $content:expr, $field:ident;)+) => {
        $(static $name: ElementSpec =
            ElementSpec::new(row(LimitField::$field).libvirt)
                .content($content)
                .may_be_empty();)+

        /// libvirt `<iotune>`.
        pub(super) static IOTUNE: ElementSpec = ElementSpec::new("iotune").children(&[
            $(child(since(LimitField::$field), &$name).is(Iotune(LimitField::$field)),)+
        ]);

        /// libvirt `throttlegroups/throttlegroup`.
        pub(crate) static THROTTLE_GROUP: ElementSpec = ElementSpec::new("throttlegroup").children(&[
            $(child((11, 2, 0), &$name).is(ThrottleGroup(LimitField::$field)),)+
        ]);
    };
}

limits! {
    TOTAL_BYTES_SEC = Unsigned64, TotalBytes;
    READ_BYTES_SEC = Unsigned64, ReadBytes;
    WRITE_BYTES_SEC = Unsigned64, WriteBytes;
    TOTAL_IOPS_SEC = Unsigned64, TotalIops;
    READ_IOPS_SEC = Unsigned64, ReadIops;
    WRITE_IOPS_SEC = Unsigned64, WriteIops;
    TOTAL_BYTES_SEC_MAX = Unsigned64, TotalBytesMax;
    READ_BYTES_SEC_MAX = Unsigned64, ReadBytesMax;
    WRITE_BYTES_SEC_MAX = Unsigned64, WriteBytesMax;
    TOTAL_IOPS_SEC_MAX = Unsigned64, TotalIopsMax;
    READ_IOPS_SEC_MAX = Unsigned64, ReadIopsMax;
    WRITE_IOPS_SEC_MAX = Unsigned64, WriteIopsMax;
    SIZE_IOPS_SEC = Unsigned64, SizeIops;
    GROUP_NAME = Text, Group;
    TOTAL_BYTES_SEC_MAX_LENGTH = Unsigned64, TotalBytesMaxLength;
    READ_BYTES_SEC_MAX_LENGTH = Unsigned64, ReadBytesMaxLength;
    WRITE_BYTES_SEC_MAX_LENGTH = Unsigned64, WriteBytesMaxLength;
    TOTAL_IOPS_SEC_MAX_LENGTH = Unsigned64, TotalIopsMaxLength;
    READ_IOPS_SEC_MAX_LENGTH = Unsigned64, ReadIopsMaxLength;
    WRITE_IOPS_SEC_MAX_LENGTH = Unsigned64, WriteIopsMaxLength;
}
