//! `--show-settings`: what decides about each input, as `vmdisk.toml` would say it.

use std::fmt::Write as _;

use vmdisk::Severity;
use vmdisk::rules::RULES;

use crate::config::settings::{Plan, Settings};
use crate::input::inputs::Inputs;
use crate::sanitize::line;

/// The settings of all inputs, those of one configuration and path together.
pub(crate) fn text(plan: &Plan, inputs: &Inputs) -> String {
    let mut out = String::new();
    for (number, settings) in plan.settings.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let files = inputs.files.iter().zip(&plan.of_input);
        for (input, _) in files.filter(|(_, of)| **of == number) {
            let _ = writeln!(out, "# {}", line(&input.path()));
        }
        let from = match &settings.config {
            Some(path) => path.display().to_string(),
            None => "no configuration file".to_owned(),
        };
        let _ = writeln!(out, "# settings from the command line and {}", line(&from));
        write(&mut out, plan, settings);
    }
    out
}

fn write(out: &mut String, plan: &Plan, settings: &Settings) {
    let Settings {
        config: _, // The heading names it.
        source,
        policy,
        selection,
        rules,
        ignored,
        fail_on,
        baseline,
    } = settings;
    let source = &plan.sources[*source];
    let facts: Vec<String> = source
        .facts
        .iter()
        .map(|path| quoted(&path.display().to_string()))
        .collect();
    let _ = writeln!(out, "facts = [{}]", facts.join(", "));
    if let Some(target) = &source.target {
        let _ = writeln!(out, "target = {}", quoted(&target.to_string()));
    }
    if let Some(baseline) = baseline {
        let _ = writeln!(
            out,
            "baseline = {}",
            quoted(&baseline.display().to_string())
        );
    }
    let least = selection.least.unwrap_or(Severity::Advice);
    let _ = writeln!(
        out,
        "policy = {}\nfail-on = {}\nmin-severity = {}",
        quoted(policy.as_str()),
        quoted(fail_on.as_str()),
        quoted(least.as_str())
    );
    for rule in rules {
        let _ = writeln!(out, "# house rule {}: {}", rule.name, rule.severity);
    }
    let levels: Vec<(&str, &str)> = RULES
        .iter()
        .chain(rules)
        .filter_map(|rule| {
            let is_off = !selection.has_rule(rule.name) || ignored.contains(rule.name);
            let severity = selection.severities.get(rule.name);
            let is_pedantic = rule.severity == Severity::Pedantic
                && selection.least.is_none()
                && selection.pedantic.contains(rule.name);
            match (is_off, severity) {
                (true, _) => Some((rule.name, "off")),
                (false, Some(severity)) => Some((rule.name, severity.as_str())),
                (false, None) => is_pedantic.then_some((rule.name, "on")),
            }
        })
        .collect();
    if !levels.is_empty() {
        out.push_str("[rules]\n");
        for (rule, level) in levels {
            let _ = writeln!(out, "{rule} = {}", quoted(level));
        }
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", line(&text))
}
