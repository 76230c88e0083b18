//! Preconditions the disk behind a vhost-user-blk socket.

use super::generator::{self, Range, RequestTarget};
use super::storage::PreparedStorage;
use crate::{Access, Amount, BlockLoad, Cancel, Error, Load, Metric, Workload};

/// Writes the storage behind a socket once over its whole length with incompressible data.
pub(super) fn fill(storage: &PreparedStorage, seed: u32, cancel: &Cancel) -> Result<(), Error> {
    // SPDK describes 128 KiB as the largest segment of a request.
    let block_bytes = if storage.length.is_multiple_of(128 << 10) {
        128 << 10
    } else {
        4 << 10
    };
    let load = BlockLoad {
        access: Access::SequentialWrite,
        block_bytes,
        depth: 8,
        jobs: 1,
        sync_every: None,
        ends_with_sync: true,
        is_blocking: false,
        rate: None,
    };
    let workload = Workload {
        name: "fill".to_owned(),
        load: Load::Blocks(load.clone()),
        amount: Amount::Bytes(storage.length),
        ramp_seconds: 0.0,
        metric: Metric::Throughput,
    };
    let range = Range {
        offset: storage.offset,
        length: storage.length,
    };
    let target = RequestTarget::VhostUser(&storage.path);
    generator::generate(target, &load, &workload, range, u64::from(seed), cancel).map(|_| ())
}
