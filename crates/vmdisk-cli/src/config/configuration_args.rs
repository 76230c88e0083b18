//! Options that choose the configuration file.

use std::path::PathBuf;

use clap::Args;

/// Where the configuration comes from.
#[derive(Args, Debug, Default)]
pub(crate) struct ConfigurationArgs {
    /// Use this configuration file for every input, instead of the nearest vmdisk.toml.
    #[arg(
        long,
        value_name = "FILE",
        hide_short_help = true,
        help_heading = "Configuration"
    )]
    pub(crate) config: Option<PathBuf>,
    /// Use no configuration file.
    #[arg(
        long,
        conflicts_with = "config",
        hide_short_help = true,
        help_heading = "Configuration"
    )]
    pub(crate) no_config: bool,
}
