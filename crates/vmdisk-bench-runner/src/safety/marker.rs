//! The marker of a device that is reserved for measurements.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};
use vmdisk_collect::{DeviceCheck, DeviceRefusal, HeldDevice};

/// Size of a marker at the beginning and at the end of a device.
pub(crate) const MARKER_BYTES: usize = 4096;

const MAGIC: &[u8] = b"vmdisk bench scratch device 1\n";

/// The marker that `vmdisk bench prepare-device` writes at both ends of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marker {
    /// Generated for each preparation.
    pub uuid: String,
    /// The kind of name of `identity`, such as `serial`.
    pub identity_kind: String,
    /// The serial number, or its substitute.
    pub identity: String,
    /// Size of the device in bytes.
    pub size_bytes: u64,
    /// Time of the preparation, as RFC 3339 in UTC.
    pub prepared_at: String,
}

impl Marker {
    /// Returns the bytes of one copy; `None` if the identity is too long.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        serde_json::to_writer(&mut bytes, self).ok()?;
        bytes.push(b'\n');
        if bytes.len() > MARKER_BYTES {
            return None;
        }
        bytes.resize(MARKER_BYTES, 0);
        Some(bytes)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = bytes.strip_prefix(MAGIC)?;
        let end = text.iter().position(|byte| *byte == b'\n')?;
        if text[end + 1..].iter().any(|byte| *byte != 0) {
            return None;
        }
        serde_json::from_slice(&text[..end]).ok()
    }

    /// Writes both copies, the last one first: an incomplete marker is invalid.
    pub(crate) fn write(&self, file: &File) -> io::Result<()> {
        let bytes = self
            .bytes()
            .ok_or_else(|| io::Error::other("the device's name does not fit into a marker"))?;
        file.write_all_at(&bytes, self.size_bytes - MARKER_BYTES as u64)?;
        file.sync_all()?;
        file.write_all_at(&bytes, 0)?;
        file.sync_all()
    }

    /// Reads the marker of a device and checks it against the device.
    pub(crate) fn of(device: &HeldDevice) -> Result<Self, Vec<DeviceRefusal>> {
        let refusal = |found: String| DeviceRefusal::new(DeviceCheck::Marker, found);
        let size = device.size_bytes();
        if size < 2 * MARKER_BYTES as u64 {
            return Err(vec![refusal(
                "the device has no room for a marker".to_owned(),
            )]);
        }
        let mut copies = [vec![0; MARKER_BYTES], vec![0; MARKER_BYTES]];
        for (copy, offset) in copies.iter_mut().zip([0, size - MARKER_BYTES as u64]) {
            if let Err(error) = device.file().read_exact_at(copy, offset) {
                return Err(vec![DeviceRefusal::unread(
                    DeviceCheck::Marker,
                    "its ends",
                    &error,
                )]);
            }
        }
        let Some(marker) = Marker::parse(&copies[0]) else {
            let found =
                "it is not prepared: use `vmdisk bench prepare-device`, which checks it first";
            return Err(vec![refusal(found.to_owned())]);
        };
        let mut refusals = Vec::new();
        if copies[0] != copies[1] {
            refusals.push(refusal(
                "the markers at its beginning and end differ".to_owned(),
            ));
        }
        if marker.size_bytes != size {
            refusals.push(refusal(format!(
                "the marker is for a device of {} bytes, but this device has {size}",
                marker.size_bytes
            )));
        }
        let identity = device.identity().map(|identity| identity.value);
        if identity.as_deref() != Some(marker.identity.as_str()) {
            refusals.push(refusal(format!(
                "the marker is for {} {}, but this device is {}",
                marker.identity_kind,
                marker.identity,
                identity.as_deref().unwrap_or("without a serial number")
            )));
        }
        match refusals.is_empty() {
            true => Ok(marker),
            false => Err(refusals),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker() -> Marker {
        Marker {
            uuid: "11111111-1111-4111-8111-111111111111".to_owned(),
            identity_kind: "serial".to_owned(),
            identity: "S1 \"quoted\"\n".to_owned(),
            size_bytes: 1 << 30,
            prepared_at: "2026-11-20T05:00:00Z".to_owned(),
        }
    }

    #[test]
    fn a_marker_round_trips() {
        let bytes = marker().bytes().unwrap();
        assert_eq!(bytes.len(), MARKER_BYTES);
        assert_eq!(Marker::parse(&bytes), Some(marker()));
    }

    #[test]
    fn an_altered_marker_is_rejected() {
        let whole = marker().bytes().unwrap();
        for place in [0, 5, MAGIC.len(), MAGIC.len() + 3, MARKER_BYTES - 1] {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x20;
            assert_eq!(Marker::parse(&bytes), None, "byte {place}");
        }
        assert_eq!(Marker::parse(&whole[..40]), None);
        assert_eq!(Marker::parse(&[]), None);
        let mut long = marker();
        long.identity = "x".repeat(MARKER_BYTES);
        assert_eq!(long.bytes(), None);
    }
}
