//! An image for people.

use std::fmt::Write as _;

use vmdisk::image::chain::End;
use vmdisk::image::{
    Header, ImageFormat, PartitionTable, Qcow2Compression, Qcow2Encryption, Qcow2Header,
    RawContent, RawGuess,
};
use vmdisk::model::Bytes;

use super::finding::{ImageFinding, at, shown};
use super::look::{DataFile, Image, Link};
use super::shown::Shown;
use crate::sanitize::line;

/// The text of all images.
pub(crate) fn write(images: &[Shown]) -> String {
    let blocks: Vec<String> = images.iter().map(one).collect();
    blocks.join("\n")
}

fn one(shown: &Shown) -> String {
    let Shown {
        path,
        image,
        findings,
    } = shown;
    let mut out = String::new();
    if let Some(top) = image.links.first() {
        let _ = writeln!(out, "{}: {}", line(path), line(&kind(&top.header)));
        for (name, value) in rows(top) {
            let _ = writeln!(out, "  {name:<15} {}", line(&value));
        }
        for data in &top.data {
            let _ = writeln!(out, "  {:<15} {}", "data file", line(&data_file(data)));
        }
    }
    if image.is_followed {
        out.push_str(&chain(image));
    }
    for finding in findings {
        out.push_str(&of_finding(finding));
    }
    out
}

fn kind(header: &Header) -> String {
    let format = header.format();
    match header {
        Header::Qcow2(qcow2) => format!("{format}, version {}", qcow2.version),
        Header::Raw(_) => format!("{format}, judging by its bytes"),
        _ => format.to_string(),
    }
}

/// A size in a unit that divides it and in bytes.
fn size(bytes: u64) -> String {
    let (short, plain) = (Bytes(bytes).to_string(), format!("{bytes} bytes"));
    if short == plain {
        plain
    } else {
        format!("{short} ({plain})")
    }
}

fn rows(link: &Link) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let header = &link.header;
    if let Some(bytes) = header.virtual_size() {
        rows.push(("virtual size", size(bytes)));
    }
    match (link.length, link.allocated) {
        (Some(length), Some(allocated)) => rows.push((
            "file",
            format!("{}, {} of it allocated", size(length), Bytes(allocated)),
        )),
        (Some(length), None) => rows.push(("device", size(length))),
        (None, _) => {}
    }
    if let Some(bytes) = header.cluster_size() {
        rows.push(("cluster size", Bytes(bytes).to_string()));
    }
    let probed = header.probed_by_qemu();
    if probed != header.format() {
        rows.push((
            "probed",
            format!("probed as {probed} if no format is given"),
        ));
    }
    match header {
        Header::Qcow2(qcow2) => rows.extend(of_qcow2(qcow2)),
        Header::Raw(guess) => rows.extend(of_raw(guess)),
        Header::Luks1(luks) => {
            rows.push(("cipher", format!("{}-{}", luks.cipher, luks.mode)));
            let active = luks
                .key_slots
                .iter()
                .filter(|slot| slot.is_active())
                .count();
            rows.push(("key slots", format!("{active} of {}", luks.key_slots.len())));
        }
        Header::Unchecked(unchecked) => {
            if unchecked.is_encrypted {
                rows.push(("encryption", "aes".to_owned()));
            }
            // `qemu-img info` opens the image with its driver where `qemu-img check` is not supported.
            let command = match unchecked.format {
                ImageFormat::Vpc | ImageFormat::Qcow | ImageFormat::Bochs | ImageFormat::Cloop => {
                    "info"
                }
                _ => "check",
            };
            let row = format!("not checked: run `qemu-img {command}`");
            rows.push(("header", row));
        }
        Header::Luks2(_) => {}
    }
    if let Some(backing) = header.backing() {
        let format = match (backing.format, backing.implied) {
            (Some(format), _) => format!("recorded as {format}"),
            (None, Some(format)) => format!("opened as {format}"),
            (None, None) => "no format recorded".to_owned(),
        };
        rows.push((
            "backing file",
            format!("{} ({format})", shown(backing.reference)),
        ));
    }
    rows
}

fn of_qcow2(qcow2: &Qcow2Header) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let mut features = Vec::new();
    for (is_set, name) in [
        (qcow2.incompatible.dirty(), "dirty"),
        (qcow2.incompatible.corrupt(), "corrupt"),
        (
            qcow2.incompatible.external_data_file(),
            "external data file",
        ),
        (qcow2.incompatible.extended_l2(), "extended L2 entries"),
        (qcow2.compatible.lazy_refcounts(), "lazy refcounts"),
        (qcow2.autoclear.raw_external_data(), "raw external data"),
    ] {
        if is_set {
            features.push(name);
        }
    }
    if !features.is_empty() {
        rows.push(("features", features.join(", ")));
    }
    match qcow2.compression {
        // What nearly every image says needs no line.
        Qcow2Compression::Zlib => {}
        Qcow2Compression::Zstd => rows.push(("compression", "zstd".to_owned())),
        Qcow2Compression::Unknown(number) => rows.push(("compression", format!("type {number}"))),
    }
    match qcow2.encryption {
        Qcow2Encryption::None => {}
        Qcow2Encryption::Aes => rows.push(("encryption", "aes".to_owned())),
        Qcow2Encryption::Luks => rows.push(("encryption", "luks".to_owned())),
        Qcow2Encryption::Unknown(number) => rows.push(("encryption", format!("method {number}"))),
    }
    if qcow2.snapshots.entries > 0 {
        rows.push(("snapshots", format!("{} inside", qcow2.snapshots.entries)));
    }
    if qcow2.has_bitmaps() {
        let state = if qcow2.autoclear.bitmaps() {
            "consistent"
        } else {
            "not consistent"
        };
        rows.push(("bitmaps", state.to_owned()));
    }
    if let Some(bytes) = qcow2.l2_bytes_for_whole_disk() {
        rows.push(("L2 tables", format!("{} map the whole disk", Bytes(bytes))));
    }
    rows
}

fn of_raw(guess: &RawGuess) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    match guess.content {
        RawContent::Empty => rows.push(("content", "no bytes at all".to_owned())),
        RawContent::Zero => rows.push((
            "content",
            format!("the first {} are zero", Bytes(guess.looked_at)),
        )),
        RawContent::Data => {}
    }
    if let Some(table) = &guess.partition_table {
        rows.push((
            "partitions",
            match table {
                PartitionTable::Mbr { partitions } => format!("MBR with {}", partitions.len()),
                PartitionTable::Gpt { sector_size } => {
                    format!("GPT for sectors of {sector_size} bytes")
                }
                PartitionTable::ProtectiveMbrOnly => "protective MBR without its GPT".to_owned(),
            },
        ));
    }
    for signature in &guess.signatures {
        rows.push((
            "signature",
            format!("{} at byte {}", signature.kind, signature.offset),
        ));
    }
    rows
}

fn chain(image: &Image) -> String {
    let mut out = String::from("chain:\n");
    for (depth, link) in image.links.iter().enumerate() {
        let found = link.header.format();
        let format = match (&link.recorded, depth) {
            (_, 0) => found.to_string(),
            (Some(recorded), _) if link.format_differs => {
                format!("recorded as {recorded}, found {found}")
            }
            (Some(_), _) => found.to_string(),
            (None, _) => format!("{found}, no format recorded"),
        };
        let size = link
            .header
            .virtual_size()
            .map_or_else(String::new, |bytes| format!(", {}", Bytes(bytes)));
        let _ = writeln!(
            out,
            "  {depth}. {} ({format}{size})",
            line(&link.location.to_string())
        );
        if depth > 0 {
            for data in &link.data {
                let _ = writeln!(out, "     data file {}", line(&data_file(data)));
            }
        }
    }
    let end = match &image.end {
        End::Base => return out,
        End::Loop { to } => format!("back to {to}."),
        End::Missing { place, .. } => format!("{} is missing", at(place)),
        End::Unreadable { place, .. } => format!("{} could not be read", at(place)),
        End::NotFollowed { place, reason } => format!("{}, not followed: {reason}", at(place)),
        End::NotOpened => "QEMU does not open the last one".to_owned(),
        End::Unresolvable => "a relative name without a known directory".to_owned(),
        End::TooDeep => "and more, not read".to_owned(),
    };
    let _ = writeln!(out, "  → {}", line(&end));
    out
}

fn data_file(data: &DataFile) -> String {
    let name = shown(&data.reference);
    match &data.found {
        None => name,
        Some(Ok(file)) => format!("{name} ({})", file.header.format()),
        Some(Err(error)) => format!("{name} ({error})"),
    }
}

fn of_finding(finding: &ImageFinding) -> String {
    let ImageFinding {
        name,
        severity,
        image,
        offset,
        message,
        note,
        help,
    } = finding;
    let place = match offset {
        Some(offset) => format!("{image}, byte {offset}"),
        None => image.clone(),
    };
    let mut out = format!(
        "{severity}[{name}]: {}\n  --> {}\n",
        line(message),
        line(&place)
    );
    if let Some(note) = note {
        let _ = writeln!(out, "  note: {}", line(note));
    }
    if let Some(help) = help {
        let _ = writeln!(out, "  help: {}", line(help));
    }
    out
}
