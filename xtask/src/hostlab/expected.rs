//! The expected facts of each stack, and the facts that vary between runs on the same host.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use serde_json::Value;

use super::boot::Outcome;
use super::stacks::{Purpose, Stack};

/// Values that depend on time and place of the run: the fact must exist, its value does not matter.
const VOLATILE: &[&str] = &[
    "/collected_at",
    "/collector/version",
    "/host/boot",
    "/kernel/release",
    "/kernel/version",
    "/memory/available_bytes",
    "/memory/total_bytes",
    "/files/inode",
    "/filesystems/free_bytes",
    // The number of metadata blocks varies with the time of the pool's commits.
    "/blockdevs/lvm/metadata_percent",
];

/// Prefixes of names with a random part.
const MADE_UP: &[&str] = &[
    "/dev/disk/by-diskseq/",
    "/dev/disk/by-id/dm-uuid-LVM-",
    "/dev/disk/by-id/lvm-pv-uuid-",
    "/dev/bcache/by-uuid/",
];

/// Names claimed by two devices, which udev gives to the last one it saw.
const CONTESTED: &[&str] = &[
    // Both paths to the disk of the multipath stack.
    "/dev/disk/by-id/scsi-35000c50015ea71cc",
    "/dev/disk/by-id/wwn-0x5000c50015ea71cc",
    // Both namespaces of the drive, because this name contains no namespace.
    "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_NVME0001",
    // Both disks of the btrfs stack.
    "/dev/disk/by-uuid/33333333-3333-4333-8333-333333333333",
];

/// Stacks whose recordings are stored for every kernel, for tests without the lab; for the newest kernel all are.
const RECORDED: &[&str] = &[
    "btrfs-raid1",
    "loop-partition",
    "multipath",
    "thin-on-crypt-on-md",
];

/// The newest kernel of the lab.
const NEWEST: &str = "6.12";

/// Writes the recordings of some stacks under `VMDISK_BLESS=yes`, each with its facts.
pub(crate) fn keep_recordings(
    kernel: &str,
    stacks: &[&Stack],
    outcome: &Outcome,
) -> anyhow::Result<()> {
    if !is_blessing() {
        return Ok(());
    }
    let folder = crate::repository().join("fixtures/sysroots/hostlab");
    fs::create_dir_all(&folder)?;
    let is_kept = |stack: &&&Stack| {
        stack.purpose == Purpose::Facts && (kernel == NEWEST || RECORDED.contains(&stack.name))
    };
    for stack in stacks.iter().filter(is_kept) {
        for kind in ["tree", "facts.json"] {
            let name = format!("{}.recorded.{kind}", stack.name);
            let handed = outcome
                .handed
                .iter()
                .find(|handed| handed.name == name)
                .with_context(|| format!("the guest did not send {name}"))?;
            fs::write(
                folder.join(format!("{}.{kernel}.{kind}", stack.name)),
                &handed.bytes,
            )?;
        }
    }
    Ok(())
}

pub(super) fn is_blessing() -> bool {
    std::env::var_os("VMDISK_BLESS").is_some_and(|value| value == "yes")
}

/// Compares the facts from the guest with the expected files, or writes these under `VMDISK_BLESS=yes`; returns differences.
pub(crate) fn compare(
    kernel: &str,
    stacks: &[&Stack],
    outcome: &Outcome,
) -> anyhow::Result<Vec<String>> {
    let bless = is_blessing();
    let folder = crate::repository().join("fixtures/facts-lab");
    let mut wrong = Vec::new();
    for stack in stacks
        .iter()
        .filter(|stack| stack.purpose == Purpose::Facts)
    {
        for user in ["root", "nobody"] {
            let name = format!("{}.{user}.json", stack.name);
            let Some(handed) = outcome.handed.iter().find(|handed| handed.name == name) else {
                wrong.push(format!("Linux {kernel}: the guest did not send {name}"));
                continue;
            };
            let mut found: Value = serde_json::from_slice(&handed.bytes)
                .with_context(|| format!("Linux {kernel}: {name} is not valid JSON"))?;
            leave_out_contested(&mut found);
            let file = format!("{}.{kernel}.{user}.json", stack.name);
            let path: PathBuf = folder.join(&file);
            let expected: Option<Value> = match fs::read_to_string(&path) {
                Ok(text) => Some(serde_json::from_str(&text).with_context(|| file.clone())?),
                Err(_) if bless => None,
                Err(error) => {
                    wrong.push(format!("{file}: {error} (VMDISK_BLESS=yes writes it)"));
                    continue;
                }
            };
            if let Some(expected) = &expected {
                normalize(&mut found, expected, "");
            }
            let text = format!("{found:#}\n");
            if bless {
                fs::create_dir_all(&folder)?;
                fs::write(&path, text)?;
            } else if let Some(expected) = expected {
                let expected = format!("{expected:#}\n");
                wrong.extend(
                    differences(&expected, &text)
                        .into_iter()
                        .map(|difference| format!("{file}: {difference}")),
                );
            }
        }
    }
    Ok(wrong)
}

fn leave_out_contested(facts: &mut Value) {
    let devices = facts.get_mut("blockdevs").and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten() {
        for list in ["paths", "by_id"] {
            let Some(names) = device.get_mut(list).and_then(Value::as_array_mut) else {
                continue;
            };
            names.retain(|name| !name.as_str().is_some_and(|name| CONTESTED.contains(&name)));
            if names.is_empty() {
                // The collector's representation of an empty list.
                device[list] = Value::Null;
            }
        }
    }
}

/// Replaces varying values by the expected ones, so that files are not rewritten for them.
fn normalize(found: &mut Value, expected: &Value, at: &str) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (name, value) in found {
                if let Some(expected) = expected.get(name) {
                    normalize(value, expected, &format!("{at}/{name}"));
                }
            }
        }
        (found, expected) if VOLATILE.contains(&at) => {
            // An unknown fact is not a value.
            let same = std::mem::discriminant(found) == std::mem::discriminant(expected);
            if same {
                found.clone_from(expected);
            }
        }
        (Value::Array(found), Value::Array(expected)) => {
            // Items have the path of their list.
            for (value, expected) in found.iter_mut().zip(expected) {
                normalize(value, expected, at);
            }
        }
        (Value::String(found), Value::String(expected)) => {
            let same = |prefix: &&str| found.starts_with(*prefix) && expected.starts_with(*prefix);
            if MADE_UP.iter().any(same) {
                found.clone_from(expected);
            }
        }
        _ => {}
    }
}

/// Returns the first few differing lines.
fn differences(expected: &str, found: &str) -> Vec<String> {
    const MAX_LINES: usize = 5;
    let (expected, found): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), found.lines().collect());
    let line = |lines: &[&str], place: usize| {
        lines
            .get(place)
            .map_or("nothing", |line| line.trim())
            .to_owned()
    };
    (0..expected.len().max(found.len()))
        .filter(|place| expected.get(*place) != found.get(*place))
        .take(MAX_LINES)
        .map(|place| {
            format!(
                "line {}: expected {}, found {}",
                place + 1,
                line(&expected, place),
                line(&found, place)
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_volatile_values_may_differ_and_they_must_exist() {
        let expected = json!({
            "collected_at": "a", "host": {"boot": "b", "id": "c"},
            "files": [{"inode": "0:5/1", "size": 1}],
            "blockdevs": [{"by_id": ["/dev/disk/by-id/dm-uuid-LVM-aa", "/dev/disk/by-id/virtio-a"]}],
        });
        let mut found = json!({
            "collected_at": "x", "host": {"boot": {"unknown": "permission"}, "id": "y"},
            "files": [{"inode": "0:5/2", "size": 2}],
            "blockdevs": [{"by_id": ["/dev/disk/by-id/dm-uuid-LVM-bb", "/dev/disk/by-id/virtio-b"]}],
        });
        normalize(&mut found, &expected, "");
        let settled = json!({
            "collected_at": "a", "host": {"boot": {"unknown": "permission"}, "id": "y"},
            "files": [{"inode": "0:5/1", "size": 2}],
            "blockdevs": [{"by_id": ["/dev/disk/by-id/dm-uuid-LVM-aa", "/dev/disk/by-id/virtio-b"]}],
        });
        assert_eq!(found, settled);
    }

    #[test]
    fn contested_names_are_left_out() {
        let mut facts = json!({"blockdevs": [
            {"by_id": ["/dev/disk/by-id/wwn-0x5000c50015ea71cc"], "paths": ["/dev/sdc", "/dev/disk/by-id/wwn-0x5000c50015ea71cc"]},
            {"by_id": null},
        ]});
        leave_out_contested(&mut facts);
        assert_eq!(
            facts,
            json!({"blockdevs": [{"by_id": null, "paths": ["/dev/sdc"]}, {"by_id": null}]})
        );
    }

    #[test]
    fn differing_lines_are_reported_with_both_sides() {
        assert!(differences("a\nb\n", "a\nb\n").is_empty());
        assert_eq!(
            differences("a\nb\n", "a\nc\nd\n"),
            [
                "line 2: expected b, found c",
                "line 3: expected nothing, found d"
            ]
        );
    }
}
