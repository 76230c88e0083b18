//! The load that fills a disk behind a socket, which only a guest can write.

use crate::{Access, Amount, BlockLoad, Load, Metric, Workload};

/// Returns a load that writes every byte once.
pub(crate) fn workload(length: u64) -> Workload {
    let block_bytes = match length.is_multiple_of(128 << 10) {
        true => 128 << 10,
        false => 4 << 10,
    };
    Workload {
        name: "fill".to_owned(),
        load: Load::Blocks(BlockLoad {
            access: Access::SequentialWrite,
            block_bytes,
            depth: 8,
            jobs: 1,
            sync_every: None,
            ends_with_sync: true,
            is_blocking: false,
            rate: None,
        }),
        amount: Amount::Bytes(length),
        ramp_seconds: 0.0,
        metric: Metric::Throughput,
    }
}
