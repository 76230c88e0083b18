//! Facts files, and every question about them.

use vmdisk::model::{CacheMode, Disk, Domain, Format, Frontend, Image, TargetBus};
use vmdisk::redact::{Level, Redactor};
use vmdisk::rules::Context;
use vmdisk::{Facts, HostIndex, Target};

/// Paths of one input that are asked about at most.
const MOST_PATHS: usize = 16;

/// A text that can be read is written and read back as the same facts, and the rules, the questions and the redaction
/// end on whatever graph it describes.
pub(super) fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    // What reads as JSON is given to the YAML reader as well.
    let _ = Facts::from_yaml(&text);
    let Ok(read) = Facts::parse(&text) else {
        return;
    };
    let facts = read.facts;
    let json = facts.to_json();
    let again = Facts::from_json(&json).expect("what we write can be read");
    assert_eq!(again.facts, facts);
    let yaml = facts.to_yaml();
    let again = Facts::from_yaml(&yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
    assert_eq!(again.facts, facts);

    let index = HostIndex::new(&facts);
    let files = facts.files.iter().map(|file| file.path.as_str());
    let directories = facts.dirs.iter().map(|directory| directory.path.as_str());
    let devices = facts.blockdevs.iter().flat_map(|device| &device.paths);
    let paths: Vec<&str> = files
        .chain(directories)
        .chain(devices.map(String::as_str))
        .take(MOST_PATHS)
        .collect();
    for path in &paths {
        let _ = (
            index.direct_io(path),
            index.leaves_of(path),
            index.identity(path),
        );
    }
    let disks = paths.iter().map(|path| {
        let frontend = Frontend::new("vda", TargetBus::Virtio);
        let mut disk = Disk::new(frontend, Image::file(*path, Format::Qcow2));
        disk.backend.cache = Some(CacheMode::None);
        disk
    });
    let domain = Domain {
        disks: disks.collect(),
        ..Domain::default()
    };
    let target = Target::from_facts(&facts);
    let _ = vmdisk::rules::check_model(&Context::new(&domain, &target).on_host(&index));
    for level in Level::ALL {
        let _ = Redactor::new(b"the salt of the fuzz targets", *level).facts(&facts);
    }
}
