//! The rules and severities that the command line asks for.

use std::collections::BTreeSet;

use clap::Args;
use vmdisk::Severity;
use vmdisk::rules::all_named;

use crate::parsers::{selector, severity_parser};

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
    pub(crate) select: Vec<String>,
    /// Report these rules and groups as well; may be repeated.
    #[arg(
        long,
        value_name = "RULE",
        value_delimiter = ',',
        value_parser = selector(),
        hide_possible_values = true,
        hide_short_help = true,
        help_heading = "Rules"
    )]
    pub(crate) extend_select: Vec<String>,
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
    /// Lowest severity to report, by default advice; findings below it are neither reported nor fixed.
    #[arg(
        long,
        value_name = "SEVERITY",
        value_parser = severity_parser(),
        help_heading = "Rules"
    )]
    pub(crate) min_severity: Option<Severity>,
}

impl SelectionArgs {
    /// Names of the rules to ignore.
    pub(crate) fn ignored(&self) -> BTreeSet<String> {
        // The parser refuses unknown ones.
        all_named(&self.ignore).unwrap_or_default()
    }
}
