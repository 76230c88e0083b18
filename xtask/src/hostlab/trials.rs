//! Trials of our programs in the guest, compared with the facts of the same host.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use vmdisk::facts::{DirectIoBasis, DirectIoEffect, Fact, Facts, HostIndex};

use super::boot::Outcome;
use super::stacks::{Purpose, Stack};

/// Evaluates and prints the trials of one boot, and returns contradictions to the facts.
pub(crate) fn judge(
    kernel: &str,
    stacks: &[&Stack],
    outcome: &Outcome,
    rounds: u32,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for stack in stacks {
        let name = stack.name;
        let found = match stack.purpose {
            Purpose::Facts => continue,
            Purpose::DirectIo => direct_io(name, outcome),
            Purpose::ThinStale => thin_stale(name, outcome),
            Purpose::BenchDevices => bench_devices(name, outcome),
            Purpose::BenchPresets => bench_presets(name, outcome, rounds),
        };
        let found = found.unwrap_or_else(|error| vec![format!("{}: {error:#}", stack.name)]);
        wrong.extend(
            found
                .into_iter()
                .map(|line| format!("Linux {kernel}: {line}")),
        );
    }
    wrong
}

/// Figures of trials, by name.
type Figures = BTreeMap<String, BTreeMap<String, u64>>;

fn figures(stack: &str, outcome: &Outcome) -> anyhow::Result<Figures> {
    let text = handed(outcome, &format!("{stack}.trials"))?;
    let mut all = Figures::new();
    for line in text.lines() {
        let (names, numbers): (Vec<&str>, Vec<&str>) =
            line.split(' ').partition(|word| !word.contains('='));
        let numbers = numbers
            .into_iter()
            .filter_map(|word| word.split_once('='))
            .map(|(name, number)| Ok((name.to_owned(), number.parse()?)))
            .collect::<anyhow::Result<_>>()?;
        all.insert(names.join(" "), numbers);
    }
    Ok(all)
}

fn figure(figures: &Figures, trial: &str, name: &str) -> anyhow::Result<u64> {
    figures
        .get(trial)
        .and_then(|numbers| numbers.get(name))
        .copied()
        .with_context(|| format!("the trial `{trial}` has no figure `{name}`"))
}

fn handed<'a>(outcome: &'a Outcome, name: &str) -> anyhow::Result<&'a str> {
    let handed = outcome
        .handed
        .iter()
        .find(|handed| handed.name == name)
        .with_context(|| format!("the guest did not send {name}"))?;
    Ok(std::str::from_utf8(&handed.bytes)?)
}

/// The observed behaviour of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Refused,
    Buffered,
    Direct,
}

/// Compares verdicts with the kernel's behaviour: its page cache count, and reading back data that changed during writes.
fn direct_io(stack: &str, outcome: &Outcome) -> anyhow::Result<Vec<String>> {
    /// EINVAL.
    const REFUSED: u64 = 22;
    let figures = figures(stack, outcome)?;
    let mut wrong = Vec::new();
    println!(
        "  place                seen      pages in cache  verdict (facts, then with the trial write)"
    );
    for trial in figures.keys() {
        let Some(place) = trial.strip_prefix("direct ") else {
            continue;
        };
        let (seen, count) = match figure(&figures, trial, "open")? {
            0 => {
                let (pages, cached) = (
                    figure(&figures, trial, "pages")?,
                    figure(&figures, trial, "cached")?,
                );
                let seen = if cached >= pages / 2 {
                    Seen::Buffered
                } else if cached <= pages / 10 {
                    Seen::Direct
                } else {
                    bail!("{place}: {cached} of {pages} cached pages are inconclusive");
                };
                (seen, format!("{cached}/{pages}"))
            }
            REFUSED => (Seen::Refused, "-".to_owned()),
            error => bail!("{place}: open failed with errno {error}"),
        };
        let mut verdicts = Vec::new();
        for (kind, image) in [("facts", "disk.img"), ("probed", "new.img")] {
            let read = Facts::parse(handed(outcome, &format!("{stack}.{place}.{kind}"))?)?;
            let concluded = HostIndex::new(&read.facts).direct_io(&format!("/srv/{place}/{image}"));
            match concluded {
                Fact::Known(concluded) => {
                    let fits = match concluded.verdict {
                        DirectIoEffect::Unsupported => seen == Seen::Refused,
                        DirectIoEffect::AcceptedButBuffered(_) => seen == Seen::Buffered,
                        DirectIoEffect::Direct
                        | DirectIoEffect::DirectUnstableChecksums
                        | DirectIoEffect::DirectUnstableMirrors => seen == Seen::Direct,
                    };
                    if !fits {
                        wrong.push(format!(
                            "{place}: the verdict of the {kind} is {:?} ({}), but the kernel's is {seen:?}",
                            concluded.verdict, concluded.because
                        ));
                    }
                    if kind == "facts" {
                        wrong.extend(raced(&figures, place, concluded.verdict)?);
                    }
                    verdicts.push(format!(
                        "{:?} ({})",
                        concluded.verdict,
                        short(concluded.confidence)
                    ));
                }
                Fact::Unknown(unknown) => verdicts.push(format!("unknown: {}", unknown.detail())),
                Fact::Absent | Fact::NotCollected => {
                    wrong.push(format!("{place}: the {kind} give no verdict"));
                }
            }
        }
        println!(
            "  {place:20} {seen:9} {count:15} {}",
            verdicts.join("; "),
            seen = format!("{seen:?}")
        );
    }
    for (trial, numbers) in &figures {
        if let Some(place) = trial.strip_prefix("race ") {
            println!(
                "  {place}: memory changed during {} direct writes, {} reads failed",
                numbers.get("writes").copied().unwrap_or(0),
                numbers.get("read_errors").copied().unwrap_or(0)
            );
        }
    }
    Ok(wrong)
}

fn short(confidence: DirectIoBasis) -> &'static str {
    match confidence {
        DirectIoBasis::Probed => "tried",
        DirectIoBasis::Observed => "observed",
        DirectIoBasis::FromVersionTable => "table",
        DirectIoBasis::Declared => "declared",
    }
}

/// After a release, reads must fail if the verdict is that checksums are unstable, and only then.
fn raced(
    figures: &Figures,
    place: &str,
    verdict: DirectIoEffect,
) -> anyhow::Result<Option<String>> {
    let trial = format!("race {place}");
    if !figures.contains_key(&trial) {
        return Ok(None);
    }
    let failed = figure(figures, &trial, "read_errors")?;
    let expected = verdict == DirectIoEffect::DirectUnstableChecksums;
    Ok(((failed > 0) != expected).then(|| {
        format!("{place}: the verdict is {verdict:?}, but {failed} reads failed after the race")
    }))
}

/// States of devices that hold data or are in use, with the checks that must refuse them as scratch devices.
const REFUSED: &[(&str, &[&str])] = &[
    ("pv-without-group", &["signature", "blank"]),
    ("pv-without-volumes", &["signature", "blank"]),
    (
        "pv-with-active-volume",
        &["holders", "signature", "blank", "exclusive"],
    ),
    ("volume-with-file-system", &["signature", "blank"]),
    (
        "volume-mounted",
        &["mounts", "signature", "blank", "exclusive"],
    ),
    ("thin-pool-with-volume", &["holders", "exclusive"]),
    ("thin-volume-with-data", &["blank"]),
    ("blank-volume-with-another-serial", &["serial"]),
    (
        "array-member",
        &["holders", "signature", "blank", "exclusive"],
    ),
    (
        "array-mounted",
        &["mounts", "signature", "blank", "exclusive"],
    ),
    ("member-of-a-stopped-array", &["signature", "blank"]),
    ("under-a-mapping", &["holders", "exclusive"]),
];

/// Every state must be refused by each listed check, without changing a byte; a blank volume must be accepted.
fn bench_devices(stack: &str, outcome: &Outcome) -> anyhow::Result<Vec<String>> {
    let figures = figures(stack, outcome)?;
    let mut wrong = Vec::new();
    for (row, checks) in REFUSED {
        for wanted in ["refused", "same"].iter().chain(*checks) {
            if figure(&figures, row, wanted).ok() != Some(1) {
                wrong.push(format!("{row}: not {wanted}: {:?}", figures.get(*row)));
            }
        }
    }
    if figure(&figures, "blank-volume-confirmed", "code")? != 0 {
        wrong.push("a blank volume whose serial number was confirmed was refused".to_owned());
    }
    println!(
        "  {} states of devices refused as scratch devices",
        REFUSED.len()
    );
    Ok(wrong)
}

/// Presets must succeed, measure every cell, and leave the host unchanged.
fn bench_presets(stack: &str, outcome: &Outcome, rounds: u32) -> anyhow::Result<Vec<String>> {
    let figures = figures(stack, outcome)?;
    let mut wrong = Vec::new();
    for prepared in ["prepare-device", "prepare-volume"] {
        if figure(&figures, prepared, "code")? != 0 {
            wrong.push(format!("{prepared} failed"));
        }
    }
    let runs = [
        ("schedulers", 16),
        ("thin-chunk", 24),
        ("raid1-read", 8),
        ("raid1-write", 12),
        // A volume that is given has no first touch, and neither has reading.
        ("volumes", 13),
    ];
    for (preset, cells) in runs {
        let samples = cells * u64::from(rounds);
        let of = |name| figure(&figures, preset, name);
        let (code, left, found) = (of("code")?, of("left")?, of("samples")?);
        let report = handed(outcome, &format!("{stack}.{preset}.md"))?;
        println!("  {preset}: {found} samples");
        if code != 0 || left != 0 || found != samples {
            wrong.push(format!(
                "{preset}: exit status {code}, {found} of {samples} samples, cleanup status {left}\n{report}"
            ));
        }
    }
    Ok(wrong)
}

/// Stores the results of presets where other documents can cite them.
pub(crate) fn keep_measurements(
    folder: &Path,
    kernel: &str,
    outcome: &Outcome,
) -> anyhow::Result<()> {
    for handed in &outcome.handed {
        if let Some(name) = handed.name.strip_prefix("measured.") {
            std::fs::create_dir_all(folder)?;
            let path = folder.join(format!("{kernel}-{name}"));
            std::fs::write(&path, &handed.bytes).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

/// A pool without zeroing must expose deleted data; a pool with zeroing must not.
fn thin_stale(stack: &str, outcome: &Outcome) -> anyhow::Result<Vec<String>> {
    let figures = figures(stack, outcome)?;
    let mut wrong = Vec::new();
    for (pool, leaks) in [("without-zeroing", true), ("with-zeroing", false)] {
        let (bytes, stale) = (
            figure(&figures, pool, "bytes")?,
            figure(&figures, pool, "stale")?,
        );
        println!(
            "  new thin volume {pool}: {stale} of {bytes} bytes of a deleted one are readable"
        );
        if (stale > 0) != leaks {
            wrong.push(format!(
                "a new volume {pool} exposes {stale} bytes of a deleted one"
            ));
        }
    }
    Ok(wrong)
}
