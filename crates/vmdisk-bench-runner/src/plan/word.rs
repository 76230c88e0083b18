//! Workloads by their names: `4k-random-write-qd32`, `4k-random-write-qd1-sync`, `install-replay`.

use vmdisk_model::Bytes;

use super::{Access, Amount, BlockLoad, InstallReplay, Load, Metric, Workload};

const ACCESSES: [(&str, Access); 5] = [
    ("sequential-read", Access::SequentialRead),
    ("sequential-write", Access::SequentialWrite),
    ("random-read", Access::RandomRead),
    ("random-write", Access::RandomWrite),
    ("random-mixed", Access::RandomMixed),
];

/// The grammar of workload names, for error messages.
const GRAMMAR: &str = "expected SIZE-ACCESS-qdN such as `4k-random-write-qd32`, with `-jobsN`, `-sync`, `-syncN`, \
    `-end-sync`, `-blocking` or `-rateN` appended, or `install-replay`; ACCESS is sequential-read, \
    sequential-write, random-read, random-write or random-mixed";

impl Workload {
    /// Parses the name of a workload.
    ///
    /// The name is SIZE-ACCESS-qdN: bytes of a request, order and direction, and number of requests in flight.
    /// These options may follow: `-jobsN` (N jobs), `-sync` or `-syncN` (a flush after each write or after N
    /// writes), `-end-sync` (the timed seconds include a flush at the end), `-blocking` (blocking calls, as in `dd`),
    /// `-rateN` (N requests per second; compares latencies).
    /// `install-replay` writes 300 files of 16 to 64 KiB and syncs each.
    ///
    /// ```
    /// use vmdisk_bench_runner::{Access, Load, Workload};
    ///
    /// let workload = Workload::by_name("4k-random-write-qd1-sync", 2.0, 0.5).unwrap();
    /// let Load::Blocks(load) = &workload.load else { panic!() };
    /// assert_eq!((load.access, load.block_bytes, load.depth), (Access::RandomWrite, 4096, 1));
    /// assert_eq!(load.sync_every, Some(1));
    /// ```
    ///
    /// # Errors
    /// The mistake in the name, and the grammar of names.
    pub fn by_name(name: &str, seconds: f64, ramp_seconds: f64) -> Result<Self, String> {
        let wrong = |what: String| format!("`{name}` is not a workload: {what}; {GRAMMAR}");
        if name == "install-replay" {
            let replay = InstallReplay {
                files: 300,
                smallest_bytes: 16 * 1024,
                largest_bytes: 64 * 1024,
                block_bytes: 8 * 1024,
            };
            return Ok(Workload {
                name: name.to_owned(),
                // File sizes are uniformly distributed.
                amount: Amount::Bytes(
                    u64::from(replay.files) * (replay.smallest_bytes + replay.largest_bytes) / 2,
                ),
                load: Load::InstallReplay(replay),
                ramp_seconds: 0.0,
                metric: Metric::Throughput,
            });
        }
        let (size, rest) = name
            .split_once('-')
            .ok_or_else(|| wrong("the access is missing".to_owned()))?;
        let block_bytes = Bytes::parse(size)
            .ok()
            .filter(|bytes| bytes.0 >= 512 && bytes.0 % 512 == 0 && bytes.0 <= 64 << 20)
            .ok_or_else(|| wrong(format!("`{size}` is not a size from 512 bytes to 64M")))?
            .0;
        let (access, rest) = ACCESSES
            .iter()
            .find_map(|(word, access)| Some((*access, rest.strip_prefix(word)?)))
            .ok_or_else(|| wrong("unknown access".to_owned()))?;
        let mut load = BlockLoad {
            access,
            block_bytes,
            depth: 0,
            jobs: 1,
            sync_every: None,
            ends_with_sync: false,
            is_blocking: false,
            rate: None,
        };
        read_options(&mut load, rest).map_err(wrong)?;
        if load.depth == 0 {
            return Err(wrong("the queue depth is missing".to_owned()));
        }
        if load.is_blocking && load.depth > 1 {
            return Err(wrong(
                "blocking calls have one request in flight, so use `qd1`".to_owned(),
            ));
        }
        if (load.sync_every.is_some() || load.ends_with_sync) && !access.writes() {
            return Err(wrong("a read workload cannot sync".to_owned()));
        }
        if load.rate.is_some() && access == Access::RandomMixed {
            return Err(wrong(
                "a rate needs an access of reads only or writes only".to_owned(),
            ));
        }
        let metric = if load.rate.is_some() {
            Metric::Latency
        } else if block_bytes >= 64 * 1024 {
            Metric::Throughput
        } else {
            Metric::Iops
        };
        Ok(Workload {
            name: name.to_owned(),
            load: Load::Blocks(load),
            amount: Amount::Seconds(seconds),
            ramp_seconds,
            metric,
        })
    }
}

/// Parses the options after the access into a load.
fn read_options(load: &mut BlockLoad, rest: &str) -> Result<(), String> {
    // `end-sync` is one word.
    let rest = rest.replace("-end-sync", "-endsync");
    for word in rest.split('-').skip(1) {
        let number = |prefix: &str, most: u32| {
            word.strip_prefix(prefix)
                .and_then(|text| text.parse::<u32>().ok())
                .filter(|number| (1..=most).contains(number))
        };
        if let Some(depth) = number("qd", 1024) {
            load.depth = depth;
        } else if let Some(rate) = number("rate", 10_000_000) {
            load.rate = Some(rate);
        } else if let Some(jobs) = number("jobs", 256) {
            load.jobs = jobs;
        } else if word == "sync" {
            load.sync_every = Some(1);
        } else if let Some(every) = number("sync", 1_000_000) {
            load.sync_every = Some(every);
        } else if word == "endsync" {
            load.ends_with_sync = true;
        } else if word == "blocking" {
            load.is_blocking = true;
        } else {
            return Err(format!("unknown option `{word}`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_describe_the_load() {
        let blocks = |name: &str| match Workload::by_name(name, 2.0, 0.5).unwrap().load {
            Load::Blocks(load) => load,
            Load::InstallReplay(_) => panic!("{name}"),
        };
        let load = blocks("1m-sequential-read-qd8-jobs2");
        assert_eq!((load.block_bytes, load.depth, load.jobs), (1 << 20, 8, 2));
        let load = blocks("64k-sequential-write-qd1-blocking-end-sync");
        assert!(load.is_blocking && load.ends_with_sync);
        assert_eq!(blocks("4k-random-write-qd4-sync32").sync_every, Some(32));
        let rated = Workload::by_name("4k-random-read-qd32-rate2000", 2.0, 0.5).unwrap();
        assert_eq!(rated.metric, Metric::Latency);
        assert_eq!(blocks(&rated.name).rate, Some(2000));
        let replay = Workload::by_name("install-replay", 2.0, 0.5).unwrap();
        assert_eq!(replay.metric, Metric::Throughput);
    }

    #[test]
    fn an_invalid_name_is_refused_with_the_reason() {
        for (name, why) in [
            ("fast", "the access is missing"),
            ("4k-random-dance-qd1", "unknown access"),
            ("17-random-read-qd1", "`17` is not a size"),
            ("4k-random-read", "the queue depth is missing"),
            ("4k-random-read-qd0", "unknown option `qd0`"),
            ("4k-random-read-qd1-sync", "a read workload cannot sync"),
            ("4k-random-read-qd4-blocking", "one request in flight"),
            ("4k-random-mixed-qd4-rate9", "a rate needs an access"),
            ("4k-random-readqd4", "the queue depth is missing"),
        ] {
            let error = Workload::by_name(name, 1.0, 0.0).unwrap_err();
            assert!(error.contains(why), "{name}: {error}");
        }
    }
}
