//! The limits of a disk or of a throttle group.

use vmdisk_model::LimitField;

use crate::{Since, Zero};

/// Names of one limit in the formats; a spec uses libvirt's name with dashes.
#[derive(Clone, Copy, Debug)]
pub struct LimitRow {
    /// libvirt's element.
    pub libvirt: &'static str,
    /// The libvirt that first knew it in a disk.
    pub since: Since,
    /// The member of QEMU's `ThrottleLimits`; of the group, the option that names it.
    pub qemu: &'static str,
    /// What 0 says.
    pub zero: Zero,
}

/// Declares the rows; a field without one does not compile.
macro_rules! limits {
    ($($field:ident: $libvirt:literal, $since:expr, $qemu:literal, $zero:ident;)+) => {
        /// Every limit and the name of the group, in libvirt's order.
        pub const LIMIT_FIELDS: &[LimitField] = &[$(LimitField::$field,)+];

        /// The row of a limit; `None` for all of them together.
        pub const fn limit(field: LimitField) -> Option<&'static LimitRow> {
            match field {
                LimitField::Limits => None,
                $(LimitField::$field => {
                    Some(&LimitRow { libvirt: $libvirt, since: $since, qemu: $qemu, zero: Zero::$zero })
                })+
            }
        }
    };
}

limits! {
    TotalBytes: "total_bytes_sec", (0, 9, 8), "bps-total", Unset;
    ReadBytes: "read_bytes_sec", (0, 9, 8), "bps-read", Unset;
    WriteBytes: "write_bytes_sec", (0, 9, 8), "bps-write", Unset;
    TotalIops: "total_iops_sec", (0, 9, 8), "iops-total", Unset;
    ReadIops: "read_iops_sec", (0, 9, 8), "iops-read", Unset;
    WriteIops: "write_iops_sec", (0, 9, 8), "iops-write", Unset;
    TotalBytesMax: "total_bytes_sec_max", (1, 2, 11), "bps-total-max", Unset;
    ReadBytesMax: "read_bytes_sec_max", (1, 2, 11), "bps-read-max", Unset;
    WriteBytesMax: "write_bytes_sec_max", (1, 2, 11), "bps-write-max", Unset;
    TotalIopsMax: "total_iops_sec_max", (1, 2, 11), "iops-total-max", Unset;
    ReadIopsMax: "read_iops_sec_max", (1, 2, 11), "iops-read-max", Unset;
    WriteIopsMax: "write_iops_sec_max", (1, 2, 11), "iops-write-max", Unset;
    SizeIops: "size_iops_sec", (1, 2, 11), "iops-size", Unset;
    Group: "group_name", (3, 0, 0), "group", Number;
    TotalBytesMaxLength: "total_bytes_sec_max_length", (2, 4, 0), "bps-total-max-length", UnsetForLibvirt;
    ReadBytesMaxLength: "read_bytes_sec_max_length", (2, 4, 0), "bps-read-max-length", UnsetForLibvirt;
    WriteBytesMaxLength: "write_bytes_sec_max_length", (2, 4, 0), "bps-write-max-length", UnsetForLibvirt;
    TotalIopsMaxLength: "total_iops_sec_max_length", (2, 4, 0), "iops-total-max-length", UnsetForLibvirt;
    ReadIopsMaxLength: "read_iops_sec_max_length", (2, 4, 0), "iops-read-max-length", UnsetForLibvirt;
    WriteIopsMaxLength: "write_iops_sec_max_length", (2, 4, 0), "iops-write-max-length", UnsetForLibvirt;
}
