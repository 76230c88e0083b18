//! Throttling in a spec.

use vmdisk_model::{Bytes, Iotune, IotuneLimits};

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
        /// Size in bytes that counts as one request.
        size_iops_sec: Option<Bytes> = "size-iops-sec",
        /// Name of a group that shares these limits.
        group_name: Option<String> = "group-name",
    }
}

impl IotuneSpec {
    /// The same limits in the model.
    pub fn to_model(&self) -> Iotune {
        let IotuneSpec {
            total_bytes_sec,
            read_bytes_sec,
            write_bytes_sec,
            total_bytes_sec_max,
            read_bytes_sec_max,
            write_bytes_sec_max,
            total_bytes_sec_max_length,
            read_bytes_sec_max_length,
            write_bytes_sec_max_length,
            total_iops_sec,
            read_iops_sec,
            write_iops_sec,
            total_iops_sec_max,
            read_iops_sec_max,
            write_iops_sec_max,
            total_iops_sec_max_length,
            read_iops_sec_max_length,
            write_iops_sec_max_length,
            size_iops_sec,
            group_name,
        } = self;
        let plain = |size: &Option<Bytes>| size.map(|size| size.0);
        Iotune {
            bytes: IotuneLimits {
                total: plain(total_bytes_sec),
                read: plain(read_bytes_sec),
                write: plain(write_bytes_sec),
                total_max: plain(total_bytes_sec_max),
                read_max: plain(read_bytes_sec_max),
                write_max: plain(write_bytes_sec_max),
                total_max_length: *total_bytes_sec_max_length,
                read_max_length: *read_bytes_sec_max_length,
                write_max_length: *write_bytes_sec_max_length,
            },
            iops: IotuneLimits {
                total: *total_iops_sec,
                read: *read_iops_sec,
                write: *write_iops_sec,
                total_max: *total_iops_sec_max,
                read_max: *read_iops_sec_max,
                write_max: *write_iops_sec_max,
                total_max_length: *total_iops_sec_max_length,
                read_max_length: *read_iops_sec_max_length,
                write_max_length: *write_iops_sec_max_length,
            },
            size_iops: plain(size_iops_sec),
            group: group_name.clone(),
        }
    }

    /// The limits of the model in the words of a spec.
    pub fn of_model(iotune: &Iotune) -> Self {
        let Iotune {
            bytes,
            iops,
            size_iops,
            group,
        } = iotune;
        let sized = |size: Option<u64>| size.map(Bytes);
        IotuneSpec {
            total_bytes_sec: sized(bytes.total),
            read_bytes_sec: sized(bytes.read),
            write_bytes_sec: sized(bytes.write),
            total_bytes_sec_max: sized(bytes.total_max),
            read_bytes_sec_max: sized(bytes.read_max),
            write_bytes_sec_max: sized(bytes.write_max),
            total_bytes_sec_max_length: bytes.total_max_length,
            read_bytes_sec_max_length: bytes.read_max_length,
            write_bytes_sec_max_length: bytes.write_max_length,
            total_iops_sec: iops.total,
            read_iops_sec: iops.read,
            write_iops_sec: iops.write,
            total_iops_sec_max: iops.total_max,
            read_iops_sec_max: iops.read_max,
            write_iops_sec_max: iops.write_max,
            total_iops_sec_max_length: iops.total_max_length,
            read_iops_sec_max_length: iops.read_max_length,
            write_iops_sec_max_length: iops.write_max_length,
            size_iops_sec: sized(*size_iops),
            group_name: group.clone(),
        }
    }
}
