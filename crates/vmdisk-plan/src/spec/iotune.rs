//! Throttling in a spec.

use vmdisk_model::{Bytes, FieldKind, FieldType, FieldValue, Fields, Iotune, LimitField};

use super::section::section;

section! {
    /// Throttling; a limit for both kinds of requests excludes limits for one kind.
    #[derive(Default)]
    pub struct IotuneSpec of LimitField {
        /// Bytes per second, reads and writes together.
        total_bytes_sec: Option<Bytes> = "total-bytes-sec" as TotalBytes,
        /// Bytes per second, reads.
        read_bytes_sec: Option<Bytes> = "read-bytes-sec" as ReadBytes,
        /// Bytes per second, writes.
        write_bytes_sec: Option<Bytes> = "write-bytes-sec" as WriteBytes,
        /// Burst in bytes per second, reads and writes together.
        total_bytes_sec_max: Option<Bytes> = "total-bytes-sec-max" as TotalBytesMax,
        /// Burst in bytes per second, reads.
        read_bytes_sec_max: Option<Bytes> = "read-bytes-sec-max" as ReadBytesMax,
        /// Burst in bytes per second, writes.
        write_bytes_sec_max: Option<Bytes> = "write-bytes-sec-max" as WriteBytesMax,
        /// Seconds that the burst of both may last.
        total_bytes_sec_max_length: Option<u64> = "total-bytes-sec-max-length" as TotalBytesMaxLength,
        /// Seconds that the burst of reads may last.
        read_bytes_sec_max_length: Option<u64> = "read-bytes-sec-max-length" as ReadBytesMaxLength,
        /// Seconds that the burst of writes may last.
        write_bytes_sec_max_length: Option<u64> = "write-bytes-sec-max-length" as WriteBytesMaxLength,
        /// Requests per second, reads and writes together.
        total_iops_sec: Option<u64> = "total-iops-sec" as TotalIops,
        /// Requests per second, reads.
        read_iops_sec: Option<u64> = "read-iops-sec" as ReadIops,
        /// Requests per second, writes.
        write_iops_sec: Option<u64> = "write-iops-sec" as WriteIops,
        /// Burst in requests per second, reads and writes together.
        total_iops_sec_max: Option<u64> = "total-iops-sec-max" as TotalIopsMax,
        /// Burst in requests per second, reads.
        read_iops_sec_max: Option<u64> = "read-iops-sec-max" as ReadIopsMax,
        /// Burst in requests per second, writes.
        write_iops_sec_max: Option<u64> = "write-iops-sec-max" as WriteIopsMax,
        /// Seconds that the burst of both may last.
        total_iops_sec_max_length: Option<u64> = "total-iops-sec-max-length" as TotalIopsMaxLength,
        /// Seconds that the burst of reads may last.
        read_iops_sec_max_length: Option<u64> = "read-iops-sec-max-length" as ReadIopsMaxLength,
        /// Seconds that the burst of writes may last.
        write_iops_sec_max_length: Option<u64> = "write-iops-sec-max-length" as WriteIopsMaxLength,
        /// Size of a request in bytes, above which it counts as several.
        size_iops_sec: Option<Bytes> = "size-iops-sec" as SizeIops,
        /// Name of a group that shares these limits.
        group_name: Option<String> = "group-name" as Group,
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
