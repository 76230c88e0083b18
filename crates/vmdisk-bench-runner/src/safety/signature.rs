//! The contents of a device: signatures, and blank ends.

use std::fs;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use super::node::Node;
use super::refusal::{Check, Refusal, Refusals};
use crate::programs;

/// Size of the range at either end that is never written: signatures and the marker are there.
pub(crate) const END_BYTES: u64 = 1 << 20;

/// Refuses a device with any signature known to libblkid.
pub(crate) fn no_signature(node: &Node, refusals: &mut Vec<Refusal>) {
    /// Exit status of `blkid -p` if it finds no signature.
    const NOTHING: i32 = 2;
    let output = Command::new("blkid")
        .args(["--probe", "--output", "export"])
        .arg(&node.real)
        .env("LC_ALL", "C")
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.code() == Some(NOTHING) => {}
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            let what: Vec<&str> = text
                .lines()
                .filter(|line| {
                    ["TYPE=", "PTTYPE=", "LABEL="]
                        .iter()
                        .any(|key| line.starts_with(key))
                })
                .collect();
            refusals.refuse(Check::Signature, format!("blkid finds {}", what.join(" ")));
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let (said, status) = (said.lines().next().unwrap_or_default(), output.status);
            let found = format!("not checked: blkid exited with {status}: {said}");
            refusals.refuse(Check::Signature, found);
        }
        Err(error) => {
            let what = "blkid (util-linux) cannot be started";
            refusals.not_checked(Check::Signature, what, &error);
        }
    }
}

/// Refuses a device whose first or last MiB is not all zeroes.
pub(crate) fn blank_ends(node: &Node, refusals: &mut Vec<Refusal>) {
    if node.size_bytes < 4 * END_BYTES {
        let size = node.size_bytes;
        let found = format!("{size} bytes is less than the minimum of 4 MiB");
        refusals.refuse(Check::Blank, found);
        return;
    }
    for (which, offset) in [("first", 0), ("last", node.size_bytes - END_BYTES)] {
        let mut bytes = vec![0_u8; 1 << 20];
        match node.file().read_exact_at(&mut bytes, offset) {
            Ok(()) => {
                if let Some(place) = bytes.iter().position(|byte| *byte != 0) {
                    refusals.refuse(
                        Check::Blank,
                        format!(
                            "its {which} MiB is not zero (byte {}): it may hold data without a signature",
                            offset + place as u64
                        ),
                    );
                }
            }
            Err(error) => {
                refusals.not_checked(Check::Blank, format_args!("its {which} MiB"), &error);
            }
        }
    }
}

/// Refuses a thin volume with mapped sectors: data in the middle of it has no signature.
pub(crate) fn new_if_thin(node: &Node, refusals: &mut Vec<Refusal>) {
    let Ok(name) = fs::read_to_string(node.sysfs.join("dm/name")) else {
        // Not a device-mapper device.
        return;
    };
    match programs::run("dmsetup", &["status", "--", name.trim()]) {
        Ok(status) => {
            if let Some(sectors) = written_sectors(&status) {
                refusals.refuse(
                    Check::Blank,
                    format!(
                        "{} bytes of the thin volume are in use; only a new one is accepted",
                        sectors.saturating_mul(512)
                    ),
                );
            }
        }
        Err(error) => refusals.refuse(Check::Blank, format!("not checked: {error}")),
    }
}

/// Returns the mapped sectors of a status such as `0 32768 thin 128 32767`, if there are any.
fn written_sectors(status: &str) -> Option<u64> {
    status.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(2);
        if words.next() != Some("thin") {
            return None;
        }
        words.next()?.parse().ok().filter(|sectors| *sectors > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_thin_volume_with_mapped_sectors_was_written() {
        assert_eq!(written_sectors("0 32768 thin 128 16511\n"), Some(128));
        assert_eq!(written_sectors("0 32768 thin 0 -\n"), None);
        assert_eq!(written_sectors("0 32768 linear \n"), None);
        assert_eq!(written_sectors("0 32768 thin Fail\n"), None);
        assert_eq!(written_sectors(""), None);
    }
}
