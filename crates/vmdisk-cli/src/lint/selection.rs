//! The rules and severities that the command line asks for.

use std::collections::BTreeSet;

use clap::Args;
use vmdisk::rules::RULES;
use vmdisk::{Selection, Severity};

use crate::args::severity_parser;
use crate::parsers::{rules_of, selector};

/// The rules and severities that the command line asks for.
#[derive(Args, Debug, Default)]
pub(crate) struct SelectionArgs {
    /// Report only these rules and groups of rules; may be repeated. `all` selects every rule.
    #[arg(
        long,
        value_name = "RULE",
        value_delimiter = ',',
        value_parser = selector(),
        hide_possible_values = true,
        help_heading = "Rules"
    )]
    select: Vec<String>,
    /// Report these rules and groups as well; may be repeated.
    #[arg(
        long,
        value_name = "RULE",
        value_delimiter = ',',
        value_parser = selector(),
        hide_possible_values = true,
        help_heading = "Rules"
    )]
    extend_select: Vec<String>,
    /// Do not report these rules and groups; may be repeated. It takes precedence over a selection.
    #[arg(
        long,
        value_name = "RULE",
        value_delimiter = ',',
        value_parser = selector(),
        hide_possible_values = true,
        help_heading = "Rules"
    )]
    ignore: Vec<String>,
    /// The least severity to report; findings below it are neither reported nor fixed.
    #[arg(
        long,
        value_name = "SEVERITY",
        value_parser = severity_parser(),
        help_heading = "Rules"
    )]
    min_severity: Option<Severity>,
}

impl SelectionArgs {
    /// Names of the rules to ignore.
    pub(crate) fn ignored(&self) -> BTreeSet<String> {
        expand(&self.ignore)
    }

    /// The findings to report.
    pub(crate) fn selection(&self) -> Selection {
        let mut rules = expand(&self.select);
        if rules.is_empty() {
            rules = RULES.iter().map(|rule| rule.name.to_owned()).collect();
        }
        rules.extend(expand(&self.extend_select));
        Selection {
            rules: (rules.len() < RULES.len()).then_some(rules),
            least: self.min_severity,
            ..Selection::default()
        }
    }
}

/// Names of the rules that selectors stand for.
fn expand(selectors: &[String]) -> BTreeSet<String> {
    let rules = selectors.iter().flat_map(|selector| rules_of(selector));
    rules.map(str::to_owned).collect()
}
