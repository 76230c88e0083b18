//! Throttling in a spec.

use vmdisk_model::{Bytes, FieldKind, FieldType, FieldValue, Fields, Iotune, LimitField};

use super::section::section;

section! {
    /// Throttling; a limit for both kinds of requests excludes limits for one kind.
    #[derive(Default)]
    pub struct IotuneSpec {
        /// Bytes per second, reads and writes together.
        total_bytes_sec: Option<Bytes> = "total-bytes-sec",
        /// Bytes per second, reads.
        read_bytes_sec: Option<Bytes> = "read-bytes-sec",
        /// Bytes per second, writes.
        write_bytes_sec: Option<Bytes> = "write-bytes-sec",
        /// Burst in bytes per second, reads and writes together.
        total_bytes_sec_max: Option<Bytes> = "total-bytes-sec-max",
        /// Burst in bytes per second, reads.
        read_bytes_sec_max: Option<Bytes> = "read-bytes-sec-max",
        /// Burst in bytes per second, writes.
        write_bytes_sec_max: Option<Bytes> = "write-bytes-sec-max",
        /// Seconds that the burst of both may last.
        total_bytes_sec_max_length: Option<u64> = "total-bytes-sec-max-length",
        /// Seconds that the burst of reads may last.
        read_bytes_sec_max_length: Option<u64> = "read-bytes-sec-max-length",
        /// Seconds that the burst of writes may last.
        write_bytes_sec_max_length: Option<u64> = "write-bytes-sec-max-length",
        /// Requests per second, reads and writes together.
        total_iops_sec: Option<u64> = "total-iops-sec",
        /// Requests per second, reads.
        read_iops_sec: Option<u64> = "read-iops-sec",
        /// Requests per second, writes.
        write_iops_sec: Option<u64> = "write-iops-sec",
        /// Burst in requests per second, reads and writes together.
        total_iops_sec_max: Option<u64> = "total-iops-sec-max",
        /// Burst in requests per second, reads.
        read_iops_sec_max: Option<u64> = "read-iops-sec-max",
        /// Burst in requests per second, writes.
        write_iops_sec_max: Option<u64> = "write-iops-sec-max",
        /// Seconds that the burst of both may last.
        total_iops_sec_max_length: Option<u64> = "total-iops-sec-max-length",
        /// Seconds that the burst of reads may last.
        read_iops_sec_max_length: Option<u64> = "read-iops-sec-max-length",
        /// Seconds that the burst of writes may last.
        write_iops_sec_max_length: Option<u64> = "write-iops-sec-max-length",
        /// Size of a request in bytes, above which it counts as several.
        size_iops_sec: Option<Bytes> = "size-iops-sec",
        /// Name of a group that shares these limits.
        group_name: Option<String> = "group-name",
    }
}

vmdisk_model::fields! {
    impl LimitField for IotuneSpec {
        total_bytes_sec: TotalBytes,
        read_bytes_sec: ReadBytes,
        write_bytes_sec: WriteBytes,
        total_iops_sec: TotalIops,
        read_iops_sec: ReadIops,
        write_iops_sec: WriteIops,
        total_bytes_sec_max: TotalBytesMax,
        read_bytes_sec_max: ReadBytesMax,
        write_bytes_sec_max: WriteBytesMax,
        total_iops_sec_max: TotalIopsMax,
        read_iops_sec_max: ReadIopsMax,
        write_iops_sec_max: WriteIopsMax,
        size_iops_sec: SizeIops,
        group_name: Group,
        total_bytes_sec_max_length: TotalBytesMaxLength,
        read_bytes_sec_max_length: ReadBytesMaxLength,
        write_bytes_sec_max_length: WriteBytesMaxLength,
        total_iops_sec_max_length: TotalIopsMaxLength,
        read_iops_sec_max_length: ReadIopsMaxLength,
        write_iops_sec_max_length: WriteIopsMaxLength
    }
}

impl IotuneSpec {
    /// The same limits in the model.
    pub fn to_model(&self) -> Iotune {
        let mut iotune = Iotune {
            group: self.group_name.clone(),
            ..Iotune::default()
        };
        for (field, limit) in iotune.limits_mut() {
            let value = self
                .get(field)
                .and_then(|value| value.to_kind(FieldKind::Count));
            if let Some(value) = value {
                limit.set(value);
            }
        }
        iotune
    }

    /// The limits of the model in the words of a spec.
    pub fn of_model(iotune: &Iotune) -> Self {
        let mut spec = IotuneSpec {
            group_name: iotune.group.clone(),
            ..IotuneSpec::default()
        };
        for (field, limit) in iotune.limits() {
            if let (Some(slot), Some(limit)) = (spec.field_mut(field), limit)
                && let Some(value) = FieldValue::Count(limit).to_kind(slot.kind())
            {
                slot.set(value);
            }
        }
        spec
    }
}
