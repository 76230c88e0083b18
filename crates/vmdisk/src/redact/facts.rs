//! Facts without names.

use serde_json::{Map, Value};
use vmdisk_facts::{Facts, FactsError, Reason};

use super::{Level, Redactor};

/// Groups that no rule needs, taken out for [`Level::Minimal`].
const NEEDED_BY_NO_RULE: &[&str] = &[
    "extents",
    "extents_capped",
    "gid",
    "model",
    "nr_requests",
    "wbt_lat_usec",
];

/// The treatment of the text of a key.
enum Treatment {
    /// It is made of known words and numbers; others become tokens.
    Words,
    /// It is the id by which parts of the file refer to each other.
    Id,
    /// It is the reason why an answer is missing.
    Reason,
    /// It is the path of a program.
    Program,
    /// It is a path, or has the form of one.
    Path,
    /// It is a name, whole.
    Name,
    /// It is the name of a file as an image has it.
    ImageName,
    /// It is the name of a rule.
    Rule,
    /// It is a sentence that may name anything.
    Drop,
}

impl Redactor {
    /// The facts with names and paths as tokens, and a mark that says so.
    ///
    /// # Errors
    /// If the facts cannot be read back, which would be a mistake of ours.
    pub fn facts(&self, facts: &Facts) -> Result<Facts, FactsError> {
        let text = facts.to_json();
        let mut tree: Value = serde_json::from_str(&text).map_err(|error| FactsError::Syntax {
            syntax: "JSON",
            message: error.to_string(),
        })?;
        self.tree(&mut tree);
        if let Value::Object(top) = &mut tree {
            let mark = [
                ("level", self.level().as_str().to_owned()),
                ("tokens", "hmac-sha256/12".to_owned()),
                ("salt_id", self.salt_id()),
            ];
            let mark = mark.map(|(key, value)| (key.to_owned(), Value::String(value)));
            top.insert("redaction".to_owned(), Value::Object(Map::from_iter(mark)));
            if self.level() != Level::Full {
                // Each value reveals a path or a program of this host.
                top.remove("errors");
            }
        }
        Ok(Facts::from_json(&tree.to_string())?.facts)
    }

    /// Redacts every text of a facts file, which depends on its key and on the key of the group around it.
    ///
    /// The walk keeps its own stack, because recursion is miscompiled here: where a function passes its `key` on as
    /// its `group` and the first call has one constant for both, optimized builds by LLVM 21 to 22 read that constant
    /// at every depth (llvm/llvm-project#219503).
    fn tree(&self, tree: &mut Value) {
        let mut pending = vec![(tree, "", "")];
        while let Some((value, group, key)) = pending.pop() {
            if self.level() == Level::Minimal && NEEDED_BY_NO_RULE.contains(&key) {
                *value = serde_json::json!({ "unknown": "redacted" });
                continue;
            }
            match value {
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
                Value::String(text) => *text = self.text(text, group, key),
                // The members of a list have the list's key.
                Value::Array(all) => pending.extend(all.iter_mut().map(|one| (one, group, key))),
                Value::Object(map) => {
                    // Boot parameters and mount options, which a file written by hand may name freely.
                    if self.level() != Level::Full && ["cmdline", "options"].contains(&key) {
                        *map = std::mem::take(map)
                            .into_iter()
                            .map(|(inner, one)| (self.words(&inner), one))
                            .collect();
                    }
                    pending.extend(
                        map.iter_mut()
                            .map(|(inner, one)| (one, key, inner.as_str())),
                    );
                }
            }
        }
    }

    fn text(&self, text: &str, group: &str, key: &str) -> String {
        match (self.level(), treatment(group, key)) {
            (_, Treatment::ImageName) => self.image_name(text),
            (Level::Full, _) => text.to_owned(),
            (_, Treatment::Words) => self.words(text),
            (_, Treatment::Id) if is_collected_id(text) => text.to_owned(),
            (_, Treatment::Reason) => {
                let reason = Reason::from(text);
                let is_known = !matches!(reason, Reason::Other(_));
                let kept = if is_known { &reason } else { &Reason::Redacted };
                kept.as_str().to_owned()
            }
            (_, Treatment::Program) => match text.rsplit_once('/') {
                Some((folder, name)) if name.starts_with("qemu") => {
                    format!("{}/{}", self.path(folder), self.words(name))
                }
                _ => self.path(text),
            },
            (_, Treatment::Path) => self.path(text),
            (_, Treatment::Rule) if crate::rules::find(text).is_some() => text.to_owned(),
            (_, Treatment::Name | Treatment::Id | Treatment::Rule) => self.name(text),
            (_, Treatment::Drop) => String::new(),
        }
    }
}

/// True for the ids that the collector writes (`b12`, `m3`); an id written by hand may be a name.
fn is_collected_id(text: &str) -> bool {
    let digits = text.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
    text.len() - digits.len() <= 4
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.is_empty()
}

/// The treatment of text; unlisted text is treated as a name.
fn treatment(group: &str, key: &str) -> Treatment {
    match (group, key) {
        (_, "unknown") => Treatment::Reason,
        ("qemu", "path") => Treatment::Program,
        // Distributions choose the names of programs and packages; what somebody added to them is a name.
        ("qemu" | "collector" | "kernel" | "libvirt" | "redaction", _) => Treatment::Words,
        (
            "cpu" | "kvm" | "limits" | "memory" | "cmdline" | "dio" | "security" | "lvm_config",
            _,
        ) => Treatment::Words,
        ("firmware", "code" | "variables") => Treatment::Path,
        ("firmware", _) => Treatment::Words,
        ("host", "id" | "class" | "boot") => Treatment::Name,
        ("effects", "rule") => Treatment::Rule,
        ("measured", "path" | "devices") => Treatment::Path,
        ("measured" | "figures" | "effects", _) => Treatment::Words,
        ("backing", "path") | (_, "data_file") => Treatment::ImageName,
        (_, "detail") => Treatment::Drop,
        (_, "path" | "real_path" | "point" | "backing_file" | "upper" | "lower") => Treatment::Path,
        (_, "paths" | "mounted_at" | "by_id" | "source") => Treatment::Path,
        (_, "dataset" | "stopped_at") => Treatment::Path,
        (
            "options",
            "compress" | "compress-force" | "data" | "discard" | "errors" | "commit" | "vers"
            | "cache" | "local_lock" | "proto" | "sec" | "index" | "metacopy" | "redirect_dir"
            | "xino" | "size" | "huge" | "mode" | "logbufs" | "logbsize" | "space_cache"
            | "subvolid" | "timeo" | "retrans" | "rsize" | "wsize" | "nconnect" | "actimeo"
            | "max_read" | "blksize" | "dax" | "fsync",
        ) => Treatment::Words,
        (_, "id" | "mount" | "fs" | "devices" | "slaves" | "holders" | "partitions" | "parent") => {
            Treatment::Id
        }
        (
            _,
            "schema" | "schema_version" | "collected_at" | "reason" | "fstype" | "kind" | "magic"
            | "format" | "probed" | "compression" | "encryption" | "mode" | "inode" | "dev"
            | "device" | "segtype" | "discards" | "when_full" | "health" | "level" | "state"
            | "sync" | "scheduler" | "write_cache" | "zoned" | "checksum" | "data_profile"
            | "data_mode" | "direct" | "version" | "cpus" | "label" | "cipher" | "options"
            | "transport" | "host" | "cache_type" | "provisioning_mode" | "security_driver"
            | "namespaces",
        ) => Treatment::Words,
        (_, _) => Treatment::Name,
    }
}
