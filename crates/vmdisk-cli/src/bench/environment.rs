//! Descriptions of the machine for results.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use vmdisk::Facts;
use vmdisk::facts::{BlockDevice, FactsNeeded, Filesystem, FsKind, HostIndex};
use vmdisk_bench_runner::report::bytes;

use crate::host;
use crate::input::bounded;

/// Collects facts about the directories for images, and about what a guest needs.
pub(super) fn ask(directories: &[PathBuf], mut wanted: FactsNeeded) -> Facts {
    let paths = directories
        .iter()
        .map(|directory| directory.display().to_string());
    wanted.paths.extend(paths);
    host::collect_here(&wanted)
}

/// Describes the machine: the properties that two comparable runs must share.
pub(super) fn words(facts: &Facts, places: &[PathBuf]) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    let mut say = |what: &str, value: Option<String>| {
        if let Some(value) = value {
            words.insert(what.to_owned(), value);
        }
    };
    say("kernel", facts.kernel.release.clone().known());
    say("architecture", facts.cpu.arch.clone().known());
    say(
        "processors",
        facts
            .cpu
            .count
            .as_ref()
            .known()
            .map(|count| count.to_string()),
    );
    say("processor", processor());
    say(
        "memory",
        facts
            .memory
            .total_bytes
            .as_ref()
            .known()
            .copied()
            .map(bytes),
    );
    for (what, value) in processor_settings(Path::new("/sys/devices/system/cpu")) {
        say(what, value);
    }
    let index = HostIndex::new(facts);
    for (number, place) in places.iter().enumerate() {
        let numbered = |what: &str| match number {
            0 => what.to_owned(),
            number => format!("{what} {}", number + 1),
        };
        let path = place.display().to_string();
        if !index.block_device(&path).is_known() {
            say(&numbered("file system"), file_system(&index, place));
        }
        say(&numbered("drives"), drives(&index, &path));
    }
    words
}

/// Returns directories whose file system discards on deletion. Deleting a randomly written image there takes minutes
/// and cannot be interrupted (measured on ext4, Linux 6.18: 80 s for four images of 1 GiB).
pub(super) fn slow_to_delete<'a>(
    facts: &Facts,
    directories: &'a BTreeSet<PathBuf>,
) -> Vec<&'a Path> {
    let index = HostIndex::new(facts);
    let discards = |directory: &&PathBuf| {
        let path = directory.display().to_string();
        let mount = index.mount_of(&path).known();
        let is_ext4 = |file_system: &Filesystem| file_system.kind == FsKind::Ext4;
        mount.is_some_and(|mount| mount.has_option("discard").is(&true))
            && index.filesystem_of(&path).known().is_some_and(is_ext4)
    };
    directories
        .iter()
        .filter(discards)
        .map(PathBuf::as_path)
        .collect()
}

/// Returns type, options and device of a directory's file system.
fn file_system(index: &HostIndex<'_>, directory: &Path) -> Option<String> {
    let path = directory.display().to_string();
    let mount = index.mount_of(&path).known()?;
    let kind = index.filesystem_of(&path).known().map_or_else(
        || "unknown".to_owned(),
        |file_system| word(&file_system.kind),
    );
    let options: Vec<String> = mount
        .options
        .iter()
        .filter_map(|(option, value)| {
            let value = value.as_ref().known()?;
            Some(
                value
                    .text()
                    .map_or_else(|| option.clone(), |text| format!("{option}={text}")),
            )
        })
        .collect();
    Some(format!("{kind} ({})", options.join(",")))
}

/// Returns the drives below a path, with the settings that affect their speed.
fn drives(index: &HostIndex<'_>, path: &str) -> Option<String> {
    let in_words = |drive: &BlockDevice| {
        let queue = &drive.queue;
        let known = [
            ("", &drive.model),
            ("scheduler ", &queue.scheduler),
            ("write cache ", &queue.write_cache),
        ];
        let known = known
            .iter()
            .filter_map(|(name, fact)| Some(format!(", {name}{}", fact.value()?)));
        format!("{}{}", drive.name(), known.collect::<String>())
    };
    let drives: Vec<String> = index
        .leaves_of(path)
        .known()?
        .into_iter()
        .map(in_words)
        .collect();
    (!drives.is_empty()).then(|| drives.join("; "))
}

/// Returns the name of a value in facts files.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => "unknown".to_owned(),
    }
}

/// Returns the model name of the processor.
fn processor() -> Option<String> {
    let text = bounded::text(Path::new("/proc/cpuinfo")).ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Returns processor settings that affect its speed.
fn processor_settings(root: &Path) -> [(&'static str, Option<String>); 3] {
    let word = |file: &str| {
        let text = bounded::text(&root.join(file)).ok()?;
        Some(text.trim().to_owned())
    };
    let switch = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    let boost = word("cpufreq/boost").map(|boost| switch(boost == "1"));
    let turbo = word("intel_pstate/no_turbo").map(|no_turbo| switch(no_turbo == "0"));
    [
        ("frequency governor", word("cpu0/cpufreq/scaling_governor")),
        ("turbo", turbo.or(boost)),
        (
            "SMT",
            word("smt/active").map(|active| switch(active == "1")),
        ),
    ]
}

/// Returns the free huge pages, in bytes.
pub(super) fn free_huge_pages(facts: &Facts) -> u64 {
    let sizes = facts.memory.hugepages.iter();
    let free = sizes.map(|(kib, pages)| {
        pages
            .free
            .as_ref()
            .known()
            .copied()
            .unwrap_or(0)
            .saturating_mul(kib * 1024)
    });
    free.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_processor_settings_are_read() {
        let root = tempfile::tempdir().unwrap();
        assert!(
            processor_settings(root.path())
                .iter()
                .all(|(_, value)| value.is_none())
        );
        for (file, text) in [
            ("cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("intel_pstate/no_turbo", "1\n"),
            ("smt/active", "1\n"),
        ] {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = processor_settings(root.path()).map(|(_, value)| value.unwrap());
        assert_eq!(found, ["powersave", "off", "on"]);
    }
}
