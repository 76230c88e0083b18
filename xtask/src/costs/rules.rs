//! The cost of each rule: its share of the instructions of a run.
//!
//! callgrind attributes instructions to functions, for which the binary needs symbols. The cost of a rule is the cost
//! of the calls of its check, with all that the check calls.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};
use vmdisk::rules::{Check, RULES};

use super::{LINEAR, profile, total, workloads};
use crate::repository;

/// The maximum share of a rule, in percent, in the run that [`TYPICAL`] names.
const MAX_PERCENT: f64 = 2.0;

/// The run without host facts over guests of usual size.
const TYPICAL: &str = "200 domains";

/// The maximum ratio of a rule's instructions between two runs of [`LINEAR`]. A quadratic rule has 100. A rule that
/// happens to grow the list of results has 34.
const MAX_RATIO: u64 = 50;

/// Rules with fewer instructions than this have no ratio: a part of them is the same for each guest.
const MIN_INSTRUCTIONS: u64 = 100_000;

/// The number of rules to print for each workload.
const PRINTED: usize = 8;

/// The instructions of each rule, by name.
type RuleCosts = BTreeMap<String, u64>;

/// Prints the shares of the rules in several runs. Fails if a rule has too large a share of a typical run, or grows
/// faster than the number of disks.
///
/// In the other runs a share says less: with host facts, the first rule that asks about a path pays for the answer that
/// later rules share, and large guests repeat the same disk.
pub(super) fn run() -> anyhow::Result<()> {
    let program = build_with_symbols()?;
    let folder = tempfile::tempdir()?;
    let all = workloads(folder.path())?;
    let mut faults = Vec::new();
    let mut found = BTreeMap::new();
    for workload in all.iter().filter(|it| it.arguments[0] == "lint") {
        let text = profile(&program, &workload.arguments, folder.path())?;
        let (costs, total) = (parse(&text)?, total(&text)?);
        let percent = |instructions| instructions as f64 * 100.0 / total as f64;
        print(workload.name, &costs, percent);
        if workload.name == TYPICAL {
            faults.extend(expensive(&costs, percent));
        }
        found.insert(workload.name, costs);
    }
    let of = |name: &str| {
        found
            .get(name)
            .with_context(|| format!("no workload has the name `{name}`"))
    };
    faults.extend(unmeasured(of(TYPICAL)?));
    for [few, many] in LINEAR {
        faults.extend(superlinear(of(few)?, of(many)?));
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(())
}

/// Prints the rules with the largest shares.
fn print(workload: &str, costs: &RuleCosts, percent: impl Fn(u64) -> f64) {
    let mut sorted: Vec<(&String, u64)> = costs.iter().map(|(rule, cost)| (rule, *cost)).collect();
    sorted.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
    println!(
        "{workload}: {} rules have {:.1} % of the instructions",
        sorted.len(),
        percent(costs.values().sum())
    );
    for (rule, cost) in sorted.iter().take(PRINTED) {
        println!("{:>8.2} %  {rule}", percent(*cost));
    }
}

/// Rules about the model that the profile does not have: the measurement would say nothing about them.
fn unmeasured(costs: &RuleCosts) -> Vec<String> {
    RULES
        .iter()
        .filter(|rule| matches!(rule.check, Check::Model(_)) && !costs.contains_key(rule.name))
        .map(|rule| format!("{} was not measured", rule.name))
        .collect()
}

fn expensive(costs: &RuleCosts, percent: impl Fn(u64) -> f64) -> Vec<String> {
    costs
        .iter()
        .map(|(rule, cost)| (rule, percent(*cost)))
        .filter(|(_, share)| *share > MAX_PERCENT)
        .map(|(rule, share)| {
            format!("{rule} has {share:.2} % of the instructions, above {MAX_PERCENT} %")
        })
        .collect()
}

/// Rules whose instructions grow faster than the number of disks.
fn superlinear(few: &RuleCosts, many: &RuleCosts) -> Vec<String> {
    many.iter()
        .filter_map(|(rule, cost)| {
            let before = few.get(rule).copied().unwrap_or(1);
            let is_faster = *cost > MIN_INSTRUCTIONS && *cost > before * MAX_RATIO;
            let ratio = *cost as f64 / before as f64;
            is_faster.then(|| {
                format!(
                    "{rule} has {ratio:.1} times as many instructions for ten times as many disks: {before} and {cost}"
                )
            })
        })
        .collect()
}

/// Builds the release binary with symbols, in a directory of its own.
fn build_with_symbols() -> anyhow::Result<PathBuf> {
    let directory = repository().join("target/symbols");
    let status = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "vmdisk-cli"])
        .arg("--target-dir")
        .arg(&directory)
        .env("CARGO_PROFILE_RELEASE_STRIP", "none")
        // The package has a profile of its own.
        .args([
            "--config",
            "profile.release.package.vmdisk-cli.strip=\"none\"",
        ])
        .current_dir(repository())
        .status()?;
    if !status.success() {
        bail!("the build failed");
    }
    Ok(directory.join("release/vmdisk"))
}

/// Reads the output of callgrind.
///
/// `fn=` begins the lines of a function, and `cfn=` names the function of the next `calls=`. The line after `calls=`
/// is a position and the instructions of these calls. A name is written once, as `(NUMBER) NAME`, and later as `(NUMBER)`.
fn parse(text: &str) -> anyhow::Result<RuleCosts> {
    let mut names = HashMap::new();
    let mut costs = RuleCosts::new();
    let (mut caller, mut callee) = (None, None);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("fn=") {
            caller = rule_of(name, &mut names);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            callee = rule_of(name, &mut names);
        } else if line.starts_with("calls=") {
            let cost = lines
                .next()
                .context("a line with a cost follows `calls=`")?;
            let rule = callee.take().filter(|rule| Some(rule) != caller.as_ref());
            if let Some(rule) = rule {
                let (_, cost) = cost.rsplit_once(' ').context(cost.to_owned())?;
                *costs.entry(rule).or_default() += cost.parse::<u64>()?;
            }
        }
    }
    Ok(costs)
}

/// The rule whose check a function is: `vmdisk_rules::rules::NAME::check`, or `check_line` for command lines.
fn rule_of<'a>(name: &'a str, names: &mut HashMap<&'a str, &'a str>) -> Option<String> {
    let name = match name.split_once(' ') {
        Some((number, name)) => {
            names.insert(number, name);
            name
        }
        None => names.get(name).copied()?,
    };
    let mut parts = name.split("::");
    let is_ours = parts.next()?.starts_with("vmdisk_") && parts.next()? == "rules";
    let module = parts.next()?;
    let is_check = matches!(parts.next()?, "check" | "check_line");
    // Older compilers add a hash.
    let is_whole = parts.all(|part| part.len() == 17 && part.starts_with('h'));
    (is_ours && is_check && is_whole).then(|| module.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_check_are_counted_and_other_calls_are_not() {
        let text = "fn=(1) vmdisk_rule::outcome::run\n\
                    10 5\n\
                    cfn=(2) vmdisk_rules::rules::alias_twice::check\n\
                    calls=3 1\n\
                    12 100\n\
                    cfn=(4) core::fmt::write\n\
                    calls=1 1\n\
                    13 7\n\
                    cfn=(7) vmdisk_qemu::rules::slot_taken::check_line::h0123456789abcdef\n\
                    calls=1 1\n\
                    14 9\n\
                    fn=(2)\n\
                    1 40\n\
                    cfn=(3) vmdisk_rules::rules::alias_twice::aliases\n\
                    calls=3 9\n\
                    2 60\n\
                    cfn=(2)\n\
                    calls=1 1\n\
                    3 50\n\
                    fn=(6) core::iter::fold\n\
                    cfn=(5) vmdisk_rules::rules::alias_twice::check::{{closure}}\n\
                    calls=3 9\n\
                    2 30\n\
                    fn=(1)\n\
                    cfn=(2)\n\
                    calls=1 1\n\
                    12 20\n";
        let costs = parse(text).unwrap();
        let expected = [
            ("alias-twice".to_owned(), 120),
            ("slot-taken".to_owned(), 9),
        ];
        assert_eq!(costs, RuleCosts::from(expected));
    }

    #[test]
    fn a_rule_may_have_two_percent_and_grow_with_the_disks() {
        let costs = |cost| RuleCosts::from([("alias-twice".to_owned(), cost)]);
        let percent = |cost: u64| cost as f64 / 100.0;
        assert!(expensive(&costs(200), percent).is_empty());
        assert_eq!(expensive(&costs(201), percent).len(), 1);
        assert!(superlinear(&costs(20_000), &costs(1_000_000)).is_empty());
        assert_eq!(superlinear(&costs(20_000), &costs(1_000_001)).len(), 1);
        assert_eq!(superlinear(&RuleCosts::new(), &costs(100_001)).len(), 1);
        // Only rules that are not in the profile are reported.
        let unmeasured = unmeasured(&costs(1));
        assert!(
            !unmeasured
                .iter()
                .any(|fault| fault.starts_with("alias-twice "))
        );
        assert!(
            unmeasured
                .iter()
                .any(|fault| fault.starts_with("alias-dropped "))
        );
    }

    #[test]
    fn a_file_that_ends_early_is_an_error() {
        assert!(parse("cfn=(1) a\ncalls=1 1\n").is_err());
    }
}
