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

/// How to write a workload, for error texts.
const GRAMMAR: &str = "expected SIZE-ACCESS-qdN such as `4k-random-write-qd32`, with `-jobsN`, `-sync`, `-syncN`, \
    `-end-sync`, `-blocking` or `-rateN` behind it, or `install-replay`; ACCESS is sequential-read, \
    sequential-write, random-read, random-write or random-mixed";

impl Workload {
    /// A workload by its name.
    ///
    /// The name is SIZE-ACCESS-qdN: bytes of a request, which blocks, and how many requests are under way.
    /// Behind it may stand `-jobsN` (that many jobs), `-sync` or `-syncN` (a flush after each or after N
    /// writes), `-end-sync` (a flush at the end counts), `-blocking` (blocking calls, as `dd` makes them),
    /// `-rateN` (that many requests per second, and the latency counts).
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
                // Sizes are spread evenly.
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
            .ok_or_else(|| wrong("it has no access".to_owned()))?;
        let block_bytes = Bytes::parse(size)
            .ok()
            .filter(|bytes| bytes.0 >= 512 && bytes.0 % 512 == 0 && bytes.0 <= 64 << 20)
            .ok_or_else(|| wrong(format!("`{size}` is not a size from 512 bytes to 64M")))?
            .0;
        let (access, rest) = ACCESSES
            .iter()
            .find_map(|(word, access)| Some((*access, rest.strip_prefix(word)?)))
            .ok_or_else(|| wrong("its access is unknown".to_owned()))?;
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
            return Err(wrong("it has no depth".to_owned()));
        }
        if load.is_blocking && load.depth > 1 {
            return Err(wrong(
                "blocking calls have one request under way, whatever the depth says".to_owned(),
            ));
        }
        if (load.sync_every.is_some() || load.ends_with_sync) && !access.writes() {
            return Err(wrong("nothing is written that could be synced".to_owned()));
        }
        if load.rate.is_some() && access == Access::RandomMixed {
            return Err(wrong("a rate is of reads or of writes".to_owned()));
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

/// Reads the words after the access into a load.
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
            return Err(format!("`{word}` means nothing"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_done() {
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
    fn a_name_that_makes_no_sense_is_refused_with_the_reason() {
        for (name, why) in [
            ("fast", "it has no access"),
            ("4k-random-dance-qd1", "its access is unknown"),
            ("17-random-read-qd1", "`17` is not a size"),
            ("4k-random-read", "it has no depth"),
            ("4k-random-read-qd0", "`qd0` means nothing"),
            ("4k-random-read-qd1-sync", "nothing is written"),
            ("4k-random-read-qd4-blocking", "one request under way"),
            (
                "4k-random-mixed-qd4-rate9",
                "a rate is of reads or of writes",
            ),
            ("4k-random-readqd4", "it has no depth"),
        ] {
            let error = Workload::by_name(name, 1.0, 0.0).unwrap_err();
            assert!(error.contains(why), "{name}: {error}");
        }
    }
}
