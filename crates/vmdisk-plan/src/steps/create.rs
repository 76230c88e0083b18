//! The steps that make one image or volume.

use std::collections::BTreeSet;

use vmdisk_model::{
    Bytes, Creation, Format, Image, LogicalVolumeName, Preallocation, Protocol, Qcow2Creation,
    Qcow2Preallocation, ThinCreation,
};

use super::{Condition, DIRTY, Equality, NOCOW, Named, Resize, Step, StepKind, words};
use crate::spec::{BackendSpec, BackingSpec, NewFile, SeedSpec, size_text};

/// Facts about the storage of one disk beyond the model.
#[derive(Clone, Debug)]
pub(crate) struct Storage<'a> {
    /// The disk, from 0.
    pub(crate) disk: usize,
    /// Its image, with how it is made.
    pub(crate) image: &'a Image,
    /// The same in the spec.
    pub(crate) spec: &'a BackendSpec,
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

    /// Steps that make the image or volume itself, and complete it.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let Some(mut first) = self.first_step() else {
            return Vec::new();
        };
        let path = self.path();
        let NewFile {
            source,
            key_file,
            access,
        } = self.spec.new_file();
        let mut rest = Vec::new();
        let mut complete = |kind, argv: Vec<String>, why: String| {
            let mut step = self.step(kind, argv, why);
            step.conditions = vec![Condition::NothingAt(path.to_owned())];
            rest.push(step);
        };
        if let Some(source) = source {
            let why = format!("the contents of {}", source.path);
            complete(StepKind::Copy, self.copy(source), why);
            let argv = words(&["mv", "-nT", "--", &self.written_path(), path]);
            complete(StepKind::Rename, argv, "the complete image".to_owned());
        }
        for (key, value) in access {
            let Some(value) = value else { continue };
            let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
            let (kind, program, field) = match (key, is_number) {
                ("owner", true) => (StepKind::Owner, "chown", "%u"),
                ("owner", false) => (StepKind::Owner, "chown", "%U"),
                ("group", true) => (StepKind::Owner, "chgrp", "%g"),
                ("group", false) => (StepKind::Owner, "chgrp", "%G"),
                _ => (StepKind::Mode, "chmod", "%a"),
            };
            let root = if program == "chown" {
                ", which only root can set"
            } else {
                ""
            };
            let argv = words(&[program, "--", value, path]);
            complete(kind, argv, format!("the {key} {value}{root}"));
            let value = match kind {
                StepKind::Mode => value.trim_start_matches('0'),
                _ => value,
            };
            first.equality.push(Equality::Says {
                argv: words(&["stat", "-L", "-c", field, "--", path]),
                text: format!("\n{value}\n"),
            });
        }
        if let Some(source) = source {
            rest[0]
                .conditions
                .push(Condition::NothingAt(self.written_path()));
            rest[0]
                .conditions
                .push(Condition::SomethingAt(source.path.clone()));
        }
        if let Some(key_file) = key_file {
            first
                .conditions
                .push(Condition::PrivateFile(key_file.to_owned()));
            first.equality.push(self.unlocks(key_file));
        }
        rest.insert(0, first);
        rest
    }

    fn first_step(&self) -> Option<Step> {
        match self.image.creation.as_ref()? {
            Creation::RawFile {
                size: Some(size),
                preallocation,
            } => {
                let mode = preallocation.map(|mode| format!("preallocation={mode}"));
                let format = self.written_format(Format::Raw);
                let options = self
                    .key_options()
                    .into_iter()
                    .chain(mode)
                    .chain(self.nocow());
                let argv = self.qemu_img(format, options.collect(), None, Some(*size));
                let allocated = preallocation
                    .is_some_and(|mode| mode != Preallocation::Off)
                    .then_some(*size);
                let what = format!("a raw file of {size}");
                let mut step = self.image_file(StepKind::RawFile, argv, what, None, allocated);
                step.equality.insert(0, self.has_size(format, *size));
                let mode = preallocation.map(|mode| mode.to_string());
                step.resize = Some(self.resize(format, *size, mode));
                Some(step)
            }
            Creation::Qcow2(qcow2) => Some(self.qcow2(qcow2)),
            Creation::LogicalVolume {
                name,
                size: Some(size),
            } => Some(self.thick_volume(name, *size)),
            Creation::ThinVolume(thin) => self.thin_volume(thin),
            Creation::Other { size } => match (self.spec, size) {
                (BackendSpec::Seed(seed), _) => Some(self.seed(seed)),
                (_, Some(size)) => self.named(*size),
                (_, None) => None,
            },
            Creation::RawFile { size: None, .. } | Creation::LogicalVolume { size: None, .. } => {
                None
            }
        }
    }

    fn path(&self) -> &str {
        self.image.host_path().unwrap_or_default()
    }

    /// Where the image is while it is made: a copy gets its name when it is complete.
    fn written_path(&self) -> String {
        match self.spec.new_file().source {
            Some(_) => part_of(self.path()),
            None => self.path().to_owned(),
        }
    }

    /// The format for qemu-img: an encrypted raw image has a header.
    fn written_format(&self, format: Format) -> Format {
        match (format, self.image.encryption.is_some()) {
            (Format::Raw, true) => Format::Luks,
            _ => format,
        }
    }

    /// The object with the key of an encrypted image, by its file.
    fn secret(&self) -> Vec<String> {
        let object = |path: &str| format!("secret,id=key,file={}", path.replace(',', ",,"));
        let key_file = self.spec.new_file().key_file;
        key_file.map_or_else(Vec::new, |path| words(&["--object", &object(path)]))
    }

    /// Options of encryption. On a fast machine qemu-img often cannot count the iterations of SHA-256, its default:
    /// "Unable to get accurate CPU usage".
    fn key_options(&self) -> Option<String> {
        self.image.encryption.as_ref()?;
        let options = match self.image.format {
            Some(Format::Qcow2) => {
                "encrypt.format=luks,encrypt.key-secret=key,encrypt.hash-alg=sha512"
            }
            _ => "key-secret=key,hash-alg=sha512",
        };
        Some(options.to_owned())
    }

    /// The image with its key, for `--image-opts`.
    fn opened(&self, format: Format, path: &str) -> String {
        let key = match format {
            Format::Luks => "key-secret",
            _ => "encrypt.key-secret",
        };
        let path = path.replace(',', ",,");
        format!("driver={format},{key}=key,file.driver=file,file.filename={path}")
    }

    /// The key in a file opens the image. `qemu-img info` needs no key, and so tries none.
    fn unlocks(&self, key_file: &str) -> Equality {
        let format = self.written_format(self.image.format.unwrap_or(Format::Raw));
        let mut argv = words(&["qemu-img", "map", "-U", "--output=json", "--max-length=512"]);
        argv.extend(self.secret());
        argv.extend(words(&["--image-opts", &self.opened(format, self.path())]));
        Equality::Unlocks {
            argv,
            key_file: key_file.to_owned(),
        }
    }

    /// `qemu-img convert` into the image that is there.
    fn copy(&self, source: &BackingSpec) -> Vec<String> {
        let format = self.image.format.unwrap_or(Format::Raw);
        let written = self.written_format(format);
        let mut argv = words(&["qemu-img", "convert", "-n"]);
        // What is not allocated in a LUKS image is not zero.
        if written != Format::Luks {
            argv.push("--target-is-zero".to_owned());
        }
        argv.extend(self.secret());
        let driver = source
            .format
            .qemu_driver()
            .unwrap_or(source.format.as_str());
        argv.extend(words(&["-f", driver]));
        let path = self.written_path();
        let (options, target) = match self.image.encryption {
            None => (words(&["-O", written.as_str()]), path),
            Some(_) => (words(&["--target-image-opts"]), self.opened(written, &path)),
        };
        argv.extend(options);
        argv.extend(words(&["--", &source.path, &target]));
        argv
    }

    /// A seed image; its files are compared, so that another configuration is another image.
    fn seed(&self, seed: &SeedSpec) -> Step {
        let path = self.path();
        let files = [
            ("user-data", Some(&seed.user_data)),
            ("meta-data", Some(&seed.meta_data)),
            ("network-config", seed.network_config.as_ref()),
        ];
        let files = files
            .iter()
            .filter_map(|(name, path)| Some((name, (*path)?)));
        let mut argv = words(&["xorriso", "-as", "genisoimage", "-quiet", "-output", path]);
        argv.extend(words(&[
            "-volid",
            "cidata",
            "-joliet",
            "-rock",
            "-graft-points",
        ]));
        let escaped = |path: &str| path.replace('\\', "\\\\").replace('=', "\\=");
        argv.extend(
            files
                .clone()
                .map(|(name, path)| format!("{name}={}", escaped(path))),
        );
        let what = "a seed image for cloud-init".to_owned();
        let mut step = self.image_file(StepKind::Seed, argv, what, None, None);
        for (name, file) in files {
            step.conditions.push(Condition::SomethingAt(file.clone()));
            let mut argv = words(&[
                "env", "LC_ALL=C", "xorriso", "-osirrox", "on", "-indev", path,
            ]);
            argv.extend(words(&[
                "-concat",
                "pipe",
                "+",
                "/usr/bin/diff",
                "-s",
                "-",
                file,
                "+",
            ]));
            argv.extend(words(&[&format!("/{name}"), "--"]));
            let text = format!("Files - and {file} are identical");
            step.equality.push(Equality::Says { argv, text });
        }
        step
    }

    /// A ZFS volume or a volume of a storage pool.
    fn named(&self, size: Bytes) -> Option<Step> {
        let bytes = size.0.to_string();
        let says = |argv: &[&str], text: String| Equality::Says {
            argv: words(argv),
            text,
        };
        let has_size = |argv: &[&str], before: &str, after: &str| Equality::Size {
            argv: words(argv),
            before: before.to_owned(),
            size,
            after: after.to_owned(),
        };
        let (kind, argv, thing, inside, equality, resize) = match self.spec {
            BackendSpec::Zvol(zvol) => {
                let dataset = &zvol.dataset;
                let argv = words(&["zfs", "create", "-V", &bytes, "--", dataset]);
                let (above, _) = dataset.rsplit_once('/')?;
                let get = ["zfs", "get", "-Hp", "-o", "value", "--", "volsize", dataset];
                let equality = vec![has_size(&get, "\n", "\n")];
                let thing = Named::Dataset(dataset.clone());
                let volsize = format!("volsize={bytes}");
                (
                    StepKind::Zvol,
                    argv,
                    thing,
                    Named::Dataset(above.to_owned()),
                    equality,
                    // `zfs set` knows no `--`, and no dataset begins with a dash.
                    words(&["zfs", "set", &volsize, dataset]),
                )
            }
            BackendSpec::Volume(spec) => {
                let (pool, volume) = (spec.pool.clone(), spec.volume.clone());
                let format = self.image.format.unwrap_or(Format::Raw).as_str();
                let mut argv = words(&["virsh", "vol-create-as", "--pool", &pool]);
                argv.extend(words(&["--name", &volume, "--capacity", &bytes]));
                argv.extend(words(&["--format", format]));
                let dump = ["virsh", "vol-dumpxml", "--pool", &pool, "--", &volume];
                let capacity = has_size(&dump, "<capacity unit='bytes'>", "<");
                // Volumes of LVM and of disks have no format.
                let type_of = says(&dump, format!("<format type='{format}'/>"));
                let is_raw = format == Format::Raw.as_str();
                let equality = [Some(capacity), (!is_raw).then_some(type_of)];
                let inside = Named::Pool(pool.clone());
                let resize = [
                    "virsh",
                    "vol-resize",
                    "--pool",
                    &pool,
                    "--",
                    &volume,
                    &bytes,
                ];
                let resize = words(&resize);
                let thing = Named::PoolVolume { pool, volume };
                let equality = equality.into_iter().flatten().collect();
                (StepKind::PoolVolume, argv, thing, inside, equality, resize)
            }
            _ => return None,
        };
        let mut step = self.step(kind, argv, format!("a volume of {size}"));
        step.equality = equality;
        step.conditions = vec![Condition::Exists(inside), Condition::Missing(thing)];
        step.resize = Some(Resize {
            size,
            argv: resize,
            needs: Vec::new(),
        });
        Some(step)
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
            resize: None,
        }
    }

    /// The option of `qemu-img` that sets the flag on the new file; it changes no directory.
    fn nocow(&self) -> Option<String> {
        self.is_nocow_set.then(|| NOCOW.to_owned())
    }

    /// `qemu-img info` of the image has this size.
    fn has_size(&self, format: Format, size: Bytes) -> Equality {
        Equality::Size {
            argv: self.info(format),
            before: "\n    \"virtual-size\": ".to_owned(),
            size,
            after: "\n".to_owned(),
        }
    }

    /// `qemu-img resize` of the image that is there.
    fn resize(&self, format: Format, size: Bytes, preallocation: Option<String>) -> Resize {
        let mut argv = words(&["qemu-img", "resize"]);
        argv.extend(self.secret());
        let target = match self.image.encryption {
            None => {
                argv.extend(words(&["-f", format.as_str()]));
                self.path().to_owned()
            }
            Some(_) => {
                argv.push("--image-opts".to_owned());
                self.opened(format, self.path())
            }
        };
        let preallocation = preallocation.filter(|mode| mode != "off");
        argv.extend(preallocation.map(|mode| format!("--preallocation={mode}")));
        argv.extend(words(&["--", &target, &size.0.to_string()]));
        let snapshots = (
            self.lacks(format, "    \"snapshots\": "),
            "it has internal snapshots, which keep the old size: delete them first".to_owned(),
        );
        Resize {
            size,
            argv,
            needs: vec![snapshots],
        }
    }

    /// `qemu-img info` of the image has this line.
    fn says(&self, format: Format, line: String) -> Equality {
        Equality::Says {
            argv: self.info(format),
            text: format!("\n{line}\n"),
        }
    }

    /// `qemu-img info` of the image has no line that begins like this.
    fn lacks(&self, format: Format, beginning: &str) -> Equality {
        Equality::Lacks {
            argv: self.info(format),
            text: format!("\n{beginning}"),
        }
    }

    /// In JSON, no name in an image can look like another line.
    fn info(&self, format: Format) -> Vec<String> {
        let mut argv = words(&["qemu-img", "info", "-U", "--output=json"]);
        argv.extend(words(&["-f", format.as_str(), "--", self.path()]));
        argv
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
        step.conditions.push(Condition::NothingAt(part_of(path)));
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

    /// `qemu-img create`. The backing image is not an option value, so commas in its path need no escape.
    fn qemu_img(
        &self,
        format: Format,
        options: Vec<String>,
        backing: Option<(&str, Format)>,
        size: Option<Bytes>,
    ) -> Vec<String> {
        let mut argv = words(&["qemu-img", "create", "-f", format.as_str()]);
        argv.extend(self.secret());
        if !options.is_empty() {
            argv.extend(words(&["-o", &options.join(",")]));
        }
        if let Some((path, format)) = backing {
            // A spec names no other format below an image.
            let driver = format.qemu_driver().unwrap_or(format.as_str());
            argv.extend(words(&["-b", path, "-F", driver]));
        }
        argv.extend(words(&["--", &self.written_path()]));
        argv.extend(size.map(size_text));
        argv
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
            self.key_options(),
            self.nocow(),
        ]
        .into_iter()
        .flatten()
        .collect();
        let below = backing
            .as_ref()
            .map(|(path, format)| (path.as_str(), *format));
        let argv = self.qemu_img(Format::Qcow2, options, below, *size);
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
        let has_size = size.map(|size| self.has_size(Format::Qcow2, size));
        step.equality.extend(has_size);
        step.equality.extend(self.qcow2_equality(creation));
        // A cluster has no data before the guest writes it, and over a backing image it must not be allocated.
        let mode = preallocation.filter(|_| below.is_none());
        let mode = mode.map(|mode| mode.to_string());
        step.resize = size.map(|size| self.resize(Format::Qcow2, size, mode));
        step
    }

    /// All that `qemu-img info` says of a new image. What is not planned must not be there.
    fn qcow2_equality(&self, creation: &Qcow2Creation) -> Vec<Equality> {
        let Qcow2Creation {
            size: _,          // `Size`
            preallocation: _, // `Allocated`
            cluster_size,
            extended_l2,
            lazy_refcounts,
            backing,
        } = creation;
        let cluster = cluster_size.unwrap_or(Bytes(64 * Bytes::KIB));
        let is_encrypted = self.image.encryption.is_some();
        let driver = |format: Format| format.qemu_driver().unwrap_or(format.as_str());
        let says = [
            Some(format!("    \"cluster-size\": {}", cluster.0)),
            extended_l2.map(|on| format!("            \"extended-l2\": {on}")),
            lazy_refcounts.map(|on| format!("            \"lazy-refcounts\": {on}")),
            is_encrypted.then(|| "    \"encrypted\": true".to_owned()),
            is_encrypted.then(|| "                \"format\": \"luks\"".to_owned()),
            backing
                .as_ref()
                .map(|(path, _)| format!("    \"backing-filename\": {}", json_text(path))),
            backing.as_ref().map(|(_, format)| {
                format!("    \"backing-filename-format\": \"{}\"", driver(*format))
            }),
        ];
        let lacks = [
            (!is_encrypted).then_some("    \"encrypted\": true"),
            backing.is_none().then_some("    \"backing-filename\": "),
            Some("            \"data-file\": "),
            Some("            \"corrupt\": true"),
            Some(DIRTY),
        ];
        let says = says.into_iter().flatten();
        let lacks = lacks.into_iter().flatten();
        says.map(|line| self.says(Format::Qcow2, line))
            .chain(lacks.map(|beginning| self.lacks(Format::Qcow2, beginning)))
            .collect()
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
        step.resize = Some(extend(name, size));
        step.conditions = vec![
            Condition::Exists(Named::Group(name.group.clone())),
            Condition::Missing(Named::Volume(name.clone())),
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
            Condition::Exists(Named::Group(pool.group.clone())),
            Condition::RoomInGroup {
                group: pool.group.clone(),
                size,
            },
            Condition::Missing(Named::Volume(pool)),
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
        step.resize = Some(extend(name, size));
        step.conditions = vec![
            Condition::Exists(Named::Group(name.group.clone())),
            Condition::Missing(Named::Volume(name.clone())),
        ];
        let pool = LogicalVolumeName {
            group: name.group.clone(),
            volume: pool.clone(),
        };
        if !self.new_pools.contains(&pool) {
            step.conditions.push(Condition::Exists(Named::Volume(pool)));
        }
        Some(step)
    }
}

/// Where a file is until it is complete.
fn part_of(path: &str) -> String {
    format!("{path}.part")
}

/// A text in QEMU's JSON, which is ASCII (qobject/json-writer.c, `json_writer_str`).
fn json_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(c),
            c => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out += &format!("\\u{unit:04X}");
                }
            }
        }
    }
    out.push('"');
    out
}

/// What holds of a volume.
fn volume(name: &LogicalVolumeName, size: Bytes, kind: &str) -> Vec<Equality> {
    let name = name.clone();
    let is_of_kind = field_of(&name, "segtype", kind);
    vec![is_of_kind, Equality::VolumeSize { name, size }]
}

/// `lvextend` of a volume that is there.
fn extend(name: &LogicalVolumeName, size: Bytes) -> Resize {
    let (size_word, volume) = (lvm_size(size), name.to_string());
    Resize {
        size,
        argv: words(&["lvextend", "--size", &size_word, "--", &volume]),
        needs: Vec::new(),
    }
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
