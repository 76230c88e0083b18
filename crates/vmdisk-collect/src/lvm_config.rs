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
        "devices/scan_lvs",
        "devices/use_devicesfile",
        "activation/thin_pool_autoextend_threshold",
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
        scan_lvs: Fact::Unknown(unknown.clone()),
        use_devicesfile: Fact::Unknown(unknown.clone()),
        thin_pool_autoextend_threshold: Fact::Unknown(unknown.clone()),
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
    const THRESHOLD: &str = "thin_pool_autoextend_threshold";
    let threshold = match get(THRESHOLD) {
        None => Fact::Absent,
        Some(value) => value
            .parse()
            .map_or_else(|_| wrong(THRESHOLD, value), Fact::Known),
    };
    // `n` is printed as written, and means 0.
    let flag = |name: &str| match get(name) {
        None => Fact::Absent,
        Some("1" | "y" | "yes" | "on" | "true") => Fact::Known(true),
        Some("0" | "n" | "no" | "off" | "false") => Fact::Known(false),
        Some(value) => wrong(name, value).and_then(|_: u32| Fact::NotCollected),
    };
    LvmConfig {
        scan_lvs: flag("scan_lvs"),
        use_devicesfile: flag("use_devicesfile"),
        thin_pool_autoextend_threshold: threshold,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed_with_and_without_sections() {
        // The output of LVM 2.03.16, and the output for a file with sections.
        let flat = "scan_lvs=\"n\"\nthin_pool_autoextend_threshold=100\nuse_devicesfile=0\n";
        let nested = "devices {\n\tscan_lvs=\"n\"\n\tuse_devicesfile=0\n}\n\
                      activation {\n\tthin_pool_autoextend_threshold=100\n}\n";
        for text in [flat, nested] {
            let config = read(text);
            assert_eq!(config.scan_lvs, Fact::Known(false));
            assert_eq!(config.thin_pool_autoextend_threshold, Fact::Known(100));
        }
        assert!(read("scan_lvs=perhaps").scan_lvs.is_unknown());
    }
}
