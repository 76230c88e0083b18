//! Facts without names.

use serde_json::{Map, Value};
use vmdisk_facts::{Facts, ReadError};

use super::{Level, Redactor};

/// Groups that no rule needs, taken out for [`Level::Minimal`].
const NEEDED_BY_NO_RULE: &[&str] = &[
    "extents",
    "extents_capped",
    "gid",
    "lsm",
    "mode",
    "model",
    "nr_requests",
    "uid",
    "wbt_lat_usec",
];

/// What is done with the text behind a key.
enum Treatment {
    /// It is one of few words, a number, or a local id.
    Keep,
    /// It is a path, or has the form of one.
    Path,
    /// It is a name, whole.
    Name,
    /// It is the name of a file as an image has it.
    ImageName,
    /// It is a sentence that may name anything.
    Drop,
}

impl Redactor {
    /// The facts with names and paths as tokens, and a mark that says so.
    ///
    /// # Errors
    /// If the facts cannot be read back, which would be a mistake of ours.
    pub fn facts(&self, facts: &Facts) -> Result<Facts, ReadError> {
        let text = facts.to_json();
        let mut tree: Value = serde_json::from_str(&text).map_err(|error| ReadError::Syntax {
            syntax: "JSON",
            message: error.to_string(),
        })?;
        self.value(&mut tree, "", "");
        if let Value::Object(top) = &mut tree {
            let mark = [
                ("level", self.level().as_str().to_owned()),
                ("tokens", "hmac-sha256/12".to_owned()),
                ("salt_id", self.salt_id()),
            ];
            let mark = mark.map(|(key, value)| (key.to_owned(), Value::String(value)));
            top.insert("redaction".to_owned(), Value::Object(Map::from_iter(mark)));
            if self.level() != Level::Full {
                // Each tells of a path or a program of this host.
                top.remove("errors");
            }
        }
        Ok(Facts::from_json(&tree.to_string())?.facts)
    }

    /// Redacts what stands behind `key`, which stands in a group behind `group`.
    fn value(&self, value: &mut Value, group: &str, key: &str) {
        if self.level() == Level::Minimal && NEEDED_BY_NO_RULE.contains(&key) {
            *value = serde_json::json!({ "unknown": "redacted" });
            return;
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => *text = self.text(text, group, key),
            // The members of a list are what the list's key says.
            Value::Array(all) => all.iter_mut().for_each(|one| self.value(one, group, key)),
            Value::Object(map) => {
                for (inner, value) in map {
                    self.value(value, key, inner);
                }
            }
        }
    }

    fn text(&self, text: &str, group: &str, key: &str) -> String {
        match (self.level(), treatment(group, key)) {
            (_, Treatment::ImageName) => self.image_name(text),
            (Level::Full, _) | (_, Treatment::Keep) => text.to_owned(),
            (_, Treatment::Path) => self.path(text),
            (_, Treatment::Name) => self.name(text),
            (_, Treatment::Drop) => String::new(),
        }
    }
}

/// What to do with text; whatever is not listed is taken for a name.
fn treatment(group: &str, key: &str) -> Treatment {
    match (group, key) {
        // Programs lie where distributions put them, and packages are called as they call them.
        ("qemu" | "collector" | "kernel" | "libvirt" | "redaction", _) => Treatment::Keep,
        (
            "cpu" | "kvm" | "limits" | "memory" | "cmdline" | "services" | "dio" | "security"
            | "lvm_config",
            _,
        ) => Treatment::Keep,
        ("host", "id" | "class" | "boot") => Treatment::Name,
        ("backing", "path") | (_, "data_file") => Treatment::ImageName,
        (_, "detail") => Treatment::Drop,
        (_, "path" | "real_path" | "point" | "subvol" | "backing_file" | "upper" | "lower") => {
            Treatment::Path
        }
        (_, "paths" | "mounted_at" | "by_id" | "source") => Treatment::Path,
        (_, "dataset" | "stopped_at" | "cgroup_device_acl" | "hugetlbfs_mount" | "pr_helper") => {
            Treatment::Path
        }
        (
            "options",
            "compress" | "compress-force" | "data" | "discard" | "errors" | "commit" | "vers"
            | "cache" | "local_lock" | "proto" | "sec" | "index" | "metacopy" | "redirect_dir"
            | "xino" | "size" | "huge" | "mode" | "logbufs" | "logbsize" | "space_cache"
            | "subvolid" | "timeo" | "retrans" | "rsize" | "wsize" | "nconnect" | "actimeo"
            | "max_read" | "blksize" | "dax",
        ) => Treatment::Keep,
        (
            _,
            "schema" | "schema_version" | "collected_at" | "unknown" | "reason" | "id" | "mount"
            | "fs" | "devices" | "slaves" | "holders" | "partitions" | "parent" | "fstype" | "kind"
            | "magic" | "format" | "probed" | "compression" | "encryption" | "mode" | "inode"
            | "dev" | "device" | "source_dev" | "segtype" | "discards" | "when_full" | "health"
            | "level" | "state" | "sync" | "scheduler" | "write_cache" | "zoned" | "uuid_prefix"
            | "lsm" | "checksum" | "data_profile" | "meta_profile" | "data_mode" | "direct"
            | "primarycache" | "version" | "cpus" | "label" | "cipher" | "options" | "transport"
            | "host" | "cache_type" | "provisioning_mode" | "consistency" | "read_policy"
            | "security_driver" | "namespaces" | "lock_manager",
        ) => Treatment::Keep,
        (_, _) => Treatment::Name,
    }
}
