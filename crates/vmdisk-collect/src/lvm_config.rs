//! LVM's configuration, from `lvmconfig`: settings in the file, and defaults for the others.

use std::collections::HashMap;
use std::time::Duration;

use vmdisk_facts::lvm_config::LvmConfig;
use vmdisk_facts::{Fact, Reason, Unknown};

use crate::obstacle::shortened;
use crate::process::ProgramQuery;
use crate::root::Root;

const QUERY: ProgramQuery = ProgramQuery {
    program: "lvmconfig",
    arguments: &[
        "--type",
        "full",
        "devices/issue_discards",
        "devices/scan_lvs",
        "devices/use_devicesfile",
        "activation/thin_pool_autoextend_threshold",
        "activation/thin_pool_autoextend_percent",
        "allocation/thin_pool_zero",
        "allocation/thin_pool_discards",
    ],
    recorded: "/vmdisk/lvmconfig",
};

/// Queries LVM for its settings.
pub(crate) fn ask(root: &Root, limit: Duration) -> LvmConfig {
    match QUERY.ask(root, limit) {
        Ok(text) => read(&text),
        Err(unknown) => unknown_config(&unknown),
    }
}

fn unknown_config(unknown: &Unknown) -> LvmConfig {
    LvmConfig {
        issue_discards: Fact::Unknown(unknown.clone()),
        scan_lvs: Fact::Unknown(unknown.clone()),
        use_devicesfile: Fact::Unknown(unknown.clone()),
        thin_pool_autoextend_threshold: Fact::Unknown(unknown.clone()),
        thin_pool_autoextend_percent: Fact::Unknown(unknown.clone()),
        thin_pool_zero: Fact::Unknown(unknown.clone()),
        thin_pool_discards: Fact::Unknown(unknown.clone()),
    }
}

/// Parses lines `name=value`, with or without sections.
fn read(text: &str) -> LvmConfig {
    let values: HashMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim(), value.trim().trim_matches('"')))
        .collect();
    let get = |name: &str| values.get(name).copied();
    let wrong = |name: &str, value: &str| {
        Fact::unknown(
            Reason::Parse,
            format!("lvmconfig: {name}='{}'", shortened(value)),
        )
    };
    // Older versions of LVM do not have all settings.
    let number = |name: &str| match get(name) {
        None => Fact::Absent,
        Some(value) => match value.parse() {
            Ok(number) => Fact::Known(number),
            Err(_) => wrong(name, value),
        },
    };
    // `n` is printed as written, and means 0.
    let flag = |name: &str| match get(name) {
        None => Fact::Absent,
        Some("1" | "y" | "yes" | "on" | "true") => Fact::Known(true),
        Some("0" | "n" | "no" | "off" | "false") => Fact::Known(false),
        Some(value) => wrong(name, value).and_then(|_: u32| Fact::NotCollected),
    };
    LvmConfig {
        issue_discards: flag("issue_discards"),
        scan_lvs: flag("scan_lvs"),
        use_devicesfile: flag("use_devicesfile"),
        thin_pool_autoextend_threshold: number("thin_pool_autoextend_threshold"),
        thin_pool_autoextend_percent: number("thin_pool_autoextend_percent"),
        thin_pool_zero: flag("thin_pool_zero"),
        thin_pool_discards: get("thin_pool_discards")
            .map_or(Fact::Absent, |word| Fact::Known(word.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed_with_and_without_sections() {
        // The output of LVM 2.03.16, and the output for a file with sections.
        let flat = "issue_discards=0\nscan_lvs=1\nthin_pool_zero=\"n\"\nthin_pool_autoextend_threshold=100\n\
                    thin_pool_discards=\"passdown\"\nuse_devicesfile=0\n";
        let nested = "devices {\n\tissue_discards=0\n\tscan_lvs=1\n\tuse_devicesfile=0\n}\n\
                      allocation {\n\tthin_pool_zero=\"n\"\n\tthin_pool_discards=\"passdown\"\n}\n\
                      activation {\n\tthin_pool_autoextend_threshold=100\n}\n";
        for text in [flat, nested] {
            let config = read(text);
            assert_eq!(config.issue_discards, Fact::Known(false));
            assert_eq!(config.scan_lvs, Fact::Known(true));
            assert_eq!(config.thin_pool_zero, Fact::Known(false));
            assert_eq!(config.thin_pool_autoextend_threshold, Fact::Known(100));
            assert_eq!(config.thin_pool_autoextend_percent, Fact::Absent);
            assert_eq!(
                config.thin_pool_discards,
                Fact::Known("passdown".to_owned())
            );
        }
        assert!(read("issue_discards=perhaps").issue_discards.is_unknown());
    }
}
