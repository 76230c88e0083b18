//! The steps that make one image or volume.

use std::collections::BTreeSet;

use vmdisk_model::{
    Bytes, Creation, Format, Image, LogicalVolumeName, Preallocation, Protocol, Qcow2Creation,
    Qcow2Preallocation, ThinCreation,
};

use super::{Condition, Equality, NOCOW, Step, StepKind};
use crate::spec::size_text;

/// Facts about the storage of one disk beyond the model.
#[derive(Clone, Debug)]
pub(crate) struct Storage<'a> {
    /// The disk, from 0.
    pub(crate) disk: usize,
    /// Its image, with how it is made.
    pub(crate) image: &'a Image,
    /// True if its file is made without copy-on-write.
    pub(crate) is_nocow_set: bool,
    /// Pools that steps of this plan make.
    pub(crate) new_pools: &'a BTreeSet<LogicalVolumeName>,
}

impl Storage<'_> {
    /// The step that must come before those of any disk: making a pool.
    pub(crate) fn groundwork(&self) -> Option<Step> {
        match &self.image.creation {
            Some(Creation::ThinVolume(thin)) => self.thin_pool(thin),
            _ => None,
        }
    }

    /// Steps that make the image or volume itself.
    pub(crate) fn steps(&self) -> Option<Step> {
        match self.image.creation.as_ref()? {
            Creation::RawFile {
                size: Some(size),
                preallocation,
            } => {
                let mode = preallocation.map(|mode| format!("preallocation={mode}"));
                let options = mode.into_iter().chain(self.nocow()).collect();
                let argv = qemu_img(Format::Raw, options, None, self.path(), Some(*size));
                let allocated = preallocation
                    .is_some_and(|mode| mode != Preallocation::Off)
                    .then_some(*size);
                let what = format!("a raw file of {size}");
                let mut step = self.image_file(StepKind::RawFile, argv, what, None, allocated);
                step.equality
                    .insert(0, self.says("raw", format!("({} bytes)", size.0)));
                Some(step)
            }
            Creation::Qcow2(qcow2) => Some(self.qcow2(qcow2)),
            Creation::LogicalVolume {
                name,
                size: Some(size),
            } => Some(self.thick_volume(name, *size)),
            Creation::ThinVolume(thin) => self.thin_volume(thin),
            Creation::RawFile { size: None, .. } | Creation::LogicalVolume { size: None, .. } => {
                None
            }
        }
    }

    fn path(&self) -> &str {
        self.image.host_path().unwrap_or_default()
    }

    fn step(&self, kind: StepKind, argv: Vec<String>, why: String) -> Step {
        Step {
            disk: self.disk,
            kind,
            equality: Vec::new(),
            argv,
            why,
            notes: Vec::new(),
            conditions: Vec::new(),
        }
    }

    /// The option of `qemu-img` that sets the flag on the new file; it changes no directory.
    fn nocow(&self) -> Option<String> {
        self.is_nocow_set.then(|| NOCOW.to_owned())
    }

    /// `qemu-img info` of the image has this text.
    fn says(&self, format: &str, text: String) -> Equality {
        let argv = words(&["qemu-img", "info", "-U", "-f", format, "--", self.path()]);
        Equality::Says { argv, text }
    }

    /// `allocated` is the space that the file takes at once.
    fn image_file(
        &self,
        kind: StepKind,
        argv: Vec<String>,
        what: String,
        below: Option<&str>,
        allocated: Option<Bytes>,
    ) -> Step {
        let path = self.path();
        let mut step = self.step(kind, argv, what);
        step.equality
            .extend(allocated.map(|size| Equality::Allocated {
                path: path.to_owned(),
                size,
            }));
        step.conditions.push(Condition::NothingAt(path.to_owned()));
        let directory = directory_of(path).to_owned();
        let room = allocated.map(|size| Condition::Room {
            directory: directory.clone(),
            size,
        });
        step.conditions.push(Condition::DirectoryAt(directory));
        step.conditions.extend(room);
        if self.is_nocow_set {
            step.notes = vec![
                "nocow=on: btrfs writes the file in place, and neither checksums nor compresses it"
                    .to_owned(),
            ];
        }
        if let Some(below) = below {
            step.conditions
                .push(Condition::SomethingAt(below.to_owned()));
        }
        step
    }

    fn qcow2(&self, creation: &Qcow2Creation) -> Step {
        let Qcow2Creation {
            size,
            preallocation,
            cluster_size,
            extended_l2,
            lazy_refcounts,
            backing,
        } = creation;
        let switch = |on: bool| if on { "on" } else { "off" };
        let options: Vec<String> = [
            preallocation.map(|mode| format!("preallocation={mode}")),
            cluster_size.map(|size| format!("cluster_size={}", size.0)),
            extended_l2.map(|on| format!("extended_l2={}", switch(on))),
            lazy_refcounts.map(|on| format!("lazy_refcounts={}", switch(on))),
            self.nocow(),
        ]
        .into_iter()
        .flatten()
        .collect();
        let below = backing
            .as_ref()
            .map(|(path, format)| (path.as_str(), *format));
        let argv = qemu_img(Format::Qcow2, options, below, self.path(), *size);
        let what = match (size, below) {
            (Some(size), None) => format!("a qcow2 image of {size}"),
            (Some(size), Some((path, _))) => format!("a qcow2 image of {size} on top of {path}"),
            (None, Some((path, _))) => format!("a qcow2 image on top of {path}, and as large"),
            (None, None) => "a qcow2 image".to_owned(),
        };
        let is_allocated = matches!(
            preallocation,
            Some(Qcow2Preallocation::Falloc | Qcow2Preallocation::Full)
        );
        let allocated = size.filter(|_| is_allocated);
        let below_path = below.map(|(path, _)| path);
        let mut step = self.image_file(StepKind::Qcow2Image, argv, what, below_path, allocated);
        let lines = [
            size.map(|size| format!("({} bytes)", size.0)),
            cluster_size.map(|size| format!("\ncluster_size: {}\n", size.0)),
            extended_l2.map(|on| format!("extended l2: {on}\n")),
            lazy_refcounts.map(|on| format!("lazy refcounts: {on}\n")),
            Some(match below {
                Some((path, _)) => format!("\nbacking file: {path}\n"),
                // Nothing between them: no backing image.
                None => {
                    let cluster = cluster_size.unwrap_or(Bytes(64 * Bytes::KIB));
                    format!(
                        "\ncluster_size: {}\nFormat specific information:\n",
                        cluster.0
                    )
                }
            }),
            below.map(|(_, format)| {
                let driver = format.qemu_driver().unwrap_or(format.as_wire());
                format!("\nbacking file format: {driver}\n")
            }),
        ];
        let says = lines
            .into_iter()
            .flatten()
            .map(|text| self.says("qcow2", text));
        step.equality.extend(says);
        step
    }

    fn thick_volume(&self, name: &LogicalVolumeName, size: Bytes) -> Step {
        let mut step = self.step(
            StepKind::Volume,
            words(&[
                "lvcreate",
                "--yes",
                "--wipesignatures",
                "y",
                "--zero",
                "y",
                "--size",
                &lvm_size(size),
                "--name",
                &name.volume,
                "--",
                &name.group,
            ]),
            format!(
                "a volume of {size}; LVM wipes the first blocks, which can contain data of an earlier volume"
            ),
        );
        step.notes = vec![format!(
            "the rest is not wiped: for another tenant, run `blkdiscard --zeroout {}` before its first use",
            name.device_path()
        )];
        step.equality = volume(name, size, "linear");
        step.conditions = vec![
            Condition::VolumeGroup(name.group.clone()),
            Condition::NoVolume(name.clone()),
            Condition::RoomInGroup {
                group: name.group.clone(),
                size,
            },
        ];
        step
    }

    fn thin_pool(&self, thin: &ThinCreation) -> Option<Step> {
        let ThinCreation {
            name,
            size: _,
            pool,
            pool_size,
            chunk_size,
            zero,
        } = thin;
        let size = (*pool_size)?;
        let pool = LogicalVolumeName {
            group: name.group.clone(),
            volume: pool.clone(),
        };
        let is_zeroing = zero.unwrap_or(true);
        let mut argv = words(&["lvcreate", "--yes", "--type", "thin-pool"]);
        argv.extend(words(&["--size", &lvm_size(size)]));
        if let Some(chunk) = chunk_size {
            argv.extend(words(&["--chunksize", &lvm_size(*chunk)]));
        }
        argv.extend(words(&["--zero", if is_zeroing { "y" } else { "n" }]));
        argv.extend(words(&["--name", &pool.volume, "--", &pool.group]));
        let mut step = self.step(StepKind::ThinPool, argv, format!("a thin pool of {size}"));
        step.equality = volume(&pool, size, "thin-pool");
        if !is_zeroing {
            step.notes.push(
                "zeroing is off: a new volume can read the data of deleted ones (93 % of it in a trial)"
                    .to_owned(),
            );
        }
        step.conditions = vec![
            Condition::VolumeGroup(pool.group.clone()),
            Condition::RoomInGroup {
                group: pool.group.clone(),
                size,
            },
            Condition::NoVolume(pool),
        ];
        Some(step)
    }

    fn thin_volume(&self, thin: &ThinCreation) -> Option<Step> {
        let ThinCreation {
            name,
            size,
            pool,
            pool_size: _,
            chunk_size: _,
            zero: _,
        } = thin;
        let size = (*size)?;
        let mut argv = words(&["lvcreate", "--yes", "--type", "thin"]);
        argv.extend(words(&["--virtualsize", &lvm_size(size)]));
        argv.extend(words(&["--thinpool", pool, "--name", &name.volume]));
        argv.extend(words(&["--", &name.group]));
        let mut step = self.step(
            StepKind::ThinVolume,
            argv,
            format!("a thin volume of {size}"),
        );
        step.equality = volume(name, size, "thin");
        step.equality.push(field_of(name, "pool_lv", pool));
        step.conditions = vec![
            Condition::VolumeGroup(name.group.clone()),
            Condition::NoVolume(name.clone()),
        ];
        let pool = LogicalVolumeName {
            group: name.group.clone(),
            volume: pool.clone(),
        };
        if !self.new_pools.contains(&pool) {
            step.conditions.push(Condition::Volume(pool));
        }
        Some(step)
    }
}

/// What holds of a volume.
fn volume(name: &LogicalVolumeName, size: Bytes, kind: &str) -> Vec<Equality> {
    let name = name.clone();
    let is_of_kind = field_of(&name, "segtype", kind);
    vec![is_of_kind, Equality::VolumeSize { name, size }]
}

/// A field of a volume has this value.
fn field_of(name: &LogicalVolumeName, field: &str, value: &str) -> Equality {
    let name = name.to_string();
    Equality::Says {
        argv: words(&["lvs", "--noheadings", "-o", field, "--", &name]),
        text: format!(" {value}\n"),
    }
}

/// The directory that a path lies in.
fn directory_of(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((directory, _)) => directory,
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// `qemu-img create`. The backing image is not an option value, so commas in its path need no escape.
fn qemu_img(
    format: Format,
    options: Vec<String>,
    backing: Option<(&str, Format)>,
    path: &str,
    size: Option<Bytes>,
) -> Vec<String> {
    let mut argv = words(&["qemu-img", "create", "-f", format.as_wire()]);
    if !options.is_empty() {
        argv.extend(words(&["-o", &options.join(",")]));
    }
    if let Some((path, format)) = backing {
        // A spec names no other format below an image.
        let driver = format.qemu_driver().unwrap_or(format.as_wire());
        argv.extend(words(&["-b", path, "-F", driver]));
    }
    argv.extend(words(&["--", path]));
    argv.extend(size.map(size_text));
    argv
}

/// A size as LVM reads it: a bare number would be MiB, so sectors say so.
fn lvm_size(size: Bytes) -> String {
    if size.0.is_multiple_of(1024) {
        size_text(size)
    } else {
        format!("{}s", size.0 / 512)
    }
}

/// An image below another one, as the model has it.
pub(crate) fn backing_image(path: &str, format: Format) -> Image {
    let protocol = if path.starts_with("/dev/") && !path.starts_with("/dev/shm/") {
        Protocol::HostDevice {
            path: vmdisk_model::DevicePath::new(path),
        }
    } else {
        Protocol::File {
            path: path.to_owned(),
        }
    };
    Image::new(Some(format), protocol)
}
