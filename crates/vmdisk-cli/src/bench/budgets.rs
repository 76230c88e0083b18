//! The budgets of a run for space and time.

use vmdisk_bench_runner::Estimate;
use vmdisk_bench_runner::report::{bytes, duration};

use super::args::HowArgs;
use crate::stop::Stop;

/// Refuses a run that exceeds its budgets.
pub(super) fn within_budgets(estimate: &Estimate, how: &HowArgs) -> Result<(), Stop> {
    if estimate.bytes > how.space_budget.0 {
        return Err(Stop::new(format!(
            "the images need {} at once, but `--space-budget` allows {}",
            bytes(estimate.bytes),
            bytes(how.space_budget.0)
        ))
        .help("use `--size` for smaller disks, or raise `--space-budget`"));
    }
    let least = estimate.least.as_secs_f64();
    if least > how.time_budget && !how.quick {
        return Err(Stop::new(format!(
            "{} rounds take about {}, but `--time-budget` allows {}",
            how.rounds,
            duration(least),
            duration(how.time_budget)
        ))
        .help("use `--quick`, `--only` or `--seconds` for less, or raise `--time-budget`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use clap::Parser;
    use vmdisk_bench_runner::engines::{Workspace, engine};
    use vmdisk_bench_runner::{
        Engine, EngineKind, Limits, PRESETS, Plan, PlanOptions, Preset, estimate, read_plan,
    };

    use super::*;
    use crate::bench::args::RunArgs;
    use crate::bench::run::settings;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        run: RunArgs,
    }

    fn command_line(arguments: &[&str]) -> HowArgs {
        CommandLine::parse_from([&["run"][..], arguments].concat())
            .run
            .how
    }

    /// Returns the plan of a preset on a host that has everything, of which nothing is left out.
    fn plan(preset: &Preset) -> Plan {
        let directories = match preset.text.contains("directories: 2") {
            true => ["/mnt/a", "/mnt/b"].map(PathBuf::from).to_vec(),
            false => Vec::new(),
        };
        let options = PlanOptions {
            directories,
            limits: Limits {
                processors: 8,
                device: Some((PathBuf::from("/dev/disk/by-id/x"), "SERIAL".to_owned())),
                group: Some("vg0".to_owned()),
                socket: Some(PathBuf::from("/run/vhost.0")),
                huge_page_bytes: 1 << 40,
                allowed_processors: (0..8).collect(),
                numa_nodes: BTreeSet::from([0, 1]),
            },
            ..PlanOptions::default()
        };
        let plan = read_plan(preset.text, preset.name, &options).unwrap();
        assert!(plan.left_out.is_empty(), "{:?}", plan.left_out);
        plan
    }

    fn accepted(plan: &Plan, how: &HowArgs) -> Result<(), String> {
        let workspace = Workspace::new(Path::new("/"));
        let engines: Vec<Box<dyn Engine>> = EngineKind::ALL
            .iter()
            .copied()
            .filter_map(|kind| engine(kind, &workspace))
            .collect();
        let estimate = estimate(plan, &settings(how), &engines);
        within_budgets(&estimate, how).map_err(|stop| stop.0[0].title.clone())
    }

    #[test]
    fn no_preset_exceeds_the_default_budgets_on_a_host_that_has_everything() {
        for preset in PRESETS {
            let accepted = accepted(&plan(preset), &command_line(&[preset.name]));
            assert_eq!(accepted, Ok(()), "{}", preset.name);
        }
    }

    #[test]
    fn a_smaller_budget_is_exceeded() {
        let cache_modes = PRESETS.iter().find(|preset| preset.name == "cache-modes");
        let plan = plan(cache_modes.unwrap());
        // Ten images of a boot exist at once, not the twenty of a round.
        for (space, why) in [
            ("2.7G", None),
            (
                "2G",
                Some("the images need 2.5 GiB at once, but `--space-budget` allows 2.0 GiB"),
            ),
        ] {
            let accepted = accepted(
                &plan,
                &command_line(&["cache-modes", "--space-budget", space]),
            );
            assert_eq!(accepted.err().as_deref(), why);
        }
        let late = accepted(
            &plan,
            &command_line(&["cache-modes", "--time-budget", "60s"]),
        );
        assert!(late.unwrap_err().starts_with("6 rounds take about "));
    }
}
