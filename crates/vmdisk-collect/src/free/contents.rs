//! The contents of a device: signatures, and blank ends.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::refusal::{DeviceCheck, DeviceRefusal};
use crate::process::output;
use crate::timeout::within;

/// Size of the range at either end that is looked at: signatures are there.
pub const END_BYTES: u64 = 1 << 20;

/// A device may stop answering.
const LIMIT: Duration = Duration::from_secs(60);

/// Refuses a device with any signature known to libblkid.
pub(super) fn signature(device: &File) -> Result<(), DeviceRefusal> {
    let what = "blkid (util-linux)";
    let unread =
        |error: std::io::Error| DeviceRefusal::unread(DeviceCheck::Signature, what, &error);
    let mut command = Command::new("blkid");
    command
        .args(["--probe", "--output", "export", "/proc/self/fd/0"])
        .env("LC_ALL", "C")
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(device.try_clone().map_err(unread)?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = within(LIMIT, move || command.output());
    let output = output.map_err(|_| {
        let why = format!("{what} took longer than {} s", LIMIT.as_secs());
        DeviceRefusal::not_checked(DeviceCheck::Signature, why)
    })?;
    let output = output.map_err(unread)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or_default();
    found(
        output.status.code(),
        &String::from_utf8_lossy(&output.stdout),
        said,
    )
    .map_or(Ok(()), Err)
}

/// What `blkid -p` found, by its exit status (blkid(8)).
fn found(status: Option<i32>, printed: &str, said: &str) -> Option<DeviceRefusal> {
    match status {
        Some(0) => {
            // The entry of a partition is in the table of its disk, and not in the partition.
            let is_content =
                |line: &&str| !line.starts_with("PART_ENTRY_") && !line.starts_with("DEVNAME=");
            let is_named = |line: &&&str| {
                let mut keys = ["TYPE=", "PTTYPE=", "LABEL="].iter();
                keys.any(|key| line.starts_with(key))
            };
            let lines: Vec<&str> = printed.lines().filter(is_content).collect();
            let first = lines.first()?;
            let mut named: Vec<&str> = lines.iter().filter(is_named).copied().collect();
            if named.is_empty() {
                named.push(first);
            }
            let found = format!("blkid finds {}", named.join(" "));
            Some(DeviceRefusal::new(DeviceCheck::Signature, found))
        }
        Some(2) => None,
        Some(8) => {
            let found = "blkid finds signatures that contradict each other";
            Some(DeviceRefusal::new(DeviceCheck::Signature, found))
        }
        status => {
            let status = status.map_or("a signal".to_owned(), |it| format!("status {it}"));
            let why = format!("blkid ended with {status}: {said}");
            Some(DeviceRefusal::not_checked(DeviceCheck::Signature, why))
        }
    }
}

/// Refuses a device whose first or last MiB is not all zeroes.
pub(super) fn ends(device: &File, size: u64, refusals: &mut Vec<DeviceRefusal>) {
    if size < 4 * END_BYTES {
        let found = format!("{size} bytes is less than the minimum of 4 MiB");
        refusals.push(DeviceRefusal::new(DeviceCheck::Blank, found));
        return;
    }
    for (which, offset) in [("first", 0), ("last", size - END_BYTES)] {
        let mut bytes = vec![0_u8; 1 << 20];
        match device.read_exact_at(&mut bytes, offset) {
            Ok(()) => {
                if let Some(place) = bytes.iter().position(|byte| *byte != 0) {
                    let place = offset + place as u64;
                    let found = format!(
                        "its {which} MiB is not zero (byte {place}): it may hold data without a signature"
                    );
                    refusals.push(DeviceRefusal::new(DeviceCheck::Blank, found));
                }
            }
            Err(error) => {
                let what = format_args!("its {which} MiB");
                refusals.push(DeviceRefusal::unread(DeviceCheck::Blank, what, &error));
            }
        }
    }
}

/// Refuses a thin volume with mapped sectors: data in the middle of it has no signature.
pub(super) fn thin(sysfs: &Path, refusals: &mut Vec<DeviceRefusal>) {
    let Ok(name) = fs::read_to_string(sysfs.join("dm/name")) else {
        // Not a device-mapper device.
        return;
    };
    match output("dmsetup", &["status", "--", name.trim()], LIMIT) {
        Ok(status) => {
            if let Some(sectors) = written_sectors(&status) {
                let bytes = sectors.saturating_mul(512);
                let found = format!(
                    "{bytes} bytes of the thin volume are in use; only a new one is accepted"
                );
                refusals.push(DeviceRefusal::new(DeviceCheck::Blank, found));
            }
        }
        Err(unknown) => refusals.push(DeviceRefusal::not_checked(
            DeviceCheck::Blank,
            unknown.to_string(),
        )),
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

    #[test]
    fn only_what_is_in_a_device_is_a_signature() {
        let of =
            |status, printed: &str| found(Some(status), printed, "said").map(|it| it.to_string());
        let blank = "DEVNAME=/proc/self/fd/0\nPART_ENTRY_SCHEME=dos\nPART_ENTRY_TYPE=0x83\n";
        assert_eq!(of(0, blank), None, "a blank partition of a table");
        assert_eq!(of(2, ""), None);
        let ext4 = of(0, &format!("{blank}UUID=1\nTYPE=ext4\n"));
        assert_eq!(ext4.unwrap(), "signature: blkid finds TYPE=ext4");
        let other = of(0, "DEVNAME=/dev/a\nUSAGE=raid\n");
        assert_eq!(other.unwrap(), "signature: blkid finds USAGE=raid");
        assert!(found(Some(8), "", "").unwrap().is_known);
        let failed = found(Some(4), "", "said").unwrap();
        assert!(!failed.is_known);
        assert_eq!(
            failed.to_string(),
            "signature: not checked: blkid ended with status 4: said"
        );
        assert!(found(None, "", "").is_some());
    }
}
