//! The measured ends of writes, flushes and discards on each stack, for the statements of `vmdisk trace`.
//!
//! The guest writes directly, flushes ten times and discards, as QEMU does, and counts the requests of each drive.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, bail};

use super::boot::Outcome;
use super::expected::is_blessing;
use super::stacks::{Purpose, Stack};

/// Compares what the guest measured with the expected lines, or writes these under `VMDISK_BLESS=yes`; returns
/// differences.
pub(crate) fn compare(
    kernel: &str,
    stacks: &[&Stack],
    outcome: &Outcome,
) -> anyhow::Result<Vec<String>> {
    let path = crate::repository().join(format!("fixtures/facts-lab/io-path.{kernel}.txt"));
    let mut expected = BTreeMap::new();
    for line in fs::read_to_string(&path).unwrap_or_default().lines() {
        let (key, measured) = line.split_once(": ").context("a line without a path")?;
        expected.insert(key.to_owned(), measured.to_owned());
    }
    let mut wrong = Vec::new();
    let mut all = expected.clone();
    let is_measured = |stack: &&&Stack| stack.purpose == Purpose::Facts;
    for stack in stacks.iter().filter(is_measured) {
        let name = format!("{}.io", stack.name);
        let Some(handed) = outcome.handed.iter().find(|handed| handed.name == name) else {
            wrong.push(format!("Linux {kernel}: the guest did not send {name}"));
            continue;
        };
        for line in std::str::from_utf8(&handed.bytes)?.lines() {
            let (key, measured) = measured(stack.name, line)?;
            println!("  {key}: {measured}");
            if !is_blessing() && expected.get(&key) != Some(&measured) {
                let before = expected.get(&key).map_or("nothing", String::as_str);
                wrong.push(format!(
                    "Linux {kernel}: {key}: expected {before}, measured {measured}"
                ));
            }
            all.insert(key, measured);
        }
    }
    if is_blessing() {
        let mut text = String::new();
        for (key, measured) in all {
            writeln!(text, "{key}: {measured}")?;
        }
        fs::write(path, text)?;
    }
    Ok(wrong)
}

/// A line of the guest without figures that vary: the stack and the path, and the outcomes.
fn measured(stack: &str, line: &str) -> anyhow::Result<(String, String)> {
    let mut words = line.split(' ');
    let path = words.next().context("an empty line")?;
    let values: BTreeMap<&str, &str> = words.filter_map(|word| word.split_once('=')).collect();
    let number = |name: &str| -> anyhow::Result<u64> {
        let value = values
            .get(name)
            .with_context(|| format!("{line}: no {name}"))?;
        Ok(value.parse()?)
    };
    let written = if number("open")? > 0 {
        "refused"
    } else {
        let (pages, cached) = (number("pages")?, number("cached")?);
        match cached {
            _ if cached >= pages / 2 && cached > 0 => "page-cache",
            _ if cached <= pages / 10 => "direct",
            _ => bail!("{line}: {cached} of {pages} cached pages are inconclusive"),
        }
    };
    let told = |name: &str| match values.get(name) {
        None | Some(&"") => "none".to_owned(),
        Some(drives) => (*drives).to_owned(),
    };
    let discard = if number("code")? == 0 {
        told("discard")
    } else {
        "refused".to_owned()
    };
    let flush = told("flush");
    let outcomes = format!("write={written} flush={flush} discard={discard}");
    Ok((format!("{stack} {path}"), outcomes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_become_outcomes() {
        for (line, outcomes) in [
            (
                "/dev/md0 open=0 pages=1 cached=0 flush=vdc,vdd discard= code=0",
                "write=direct flush=vdc,vdd discard=none",
            ),
            (
                "/a/b.img open=0 pages=2048 cached=2100 flush= discard=vdc code=1",
                "write=page-cache flush=none discard=refused",
            ),
            (
                "/a/b.img open=22 flush= discard= code=0",
                "write=refused flush=none discard=none",
            ),
        ] {
            let (key, found) = measured("stack", line).unwrap();
            assert!(key.starts_with("stack /"), "{key}");
            assert_eq!(found, outcomes);
        }
        assert!(measured("stack", "/a open=0 pages=100 cached=30 code=0").is_err());
    }
}
