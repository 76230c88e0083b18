//! Queries on the answer to `query-qmp-schema`.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// Maximum nesting of alternates; QEMU nests none.
const MAX_DEPTH: usize = 16;

/// Maximum nesting of objects in the arguments of a command: `encrypt.key-secret`.
const MAX_PARTS: usize = 2;

/// The types and commands of a QEMU, by name.
#[derive(Debug)]
pub(crate) struct Schema {
    entries: HashMap<String, Value>,
}

impl Schema {
    /// Parses the answer; entries without a name are skipped.
    pub(crate) fn new(answer: Value) -> Self {
        let list = match answer {
            Value::Array(list) => list,
            _ => Vec::new(),
        };
        let named = |entry: Value| Some((entry["name"].as_str()?.to_owned(), entry));
        Schema {
            entries: list.into_iter().filter_map(named).collect(),
        }
    }

    /// Returns true if a path exists; [`vmdisk_facts::Probe::QmpSchema`] describes the notation.
    pub(crate) fn has(&self, path: &str) -> bool {
        let mut parts = path.split('/');
        let command = parts.next().and_then(|name| self.entries.get(name));
        let rest: Vec<&str> = parts.collect();
        command.is_some_and(|command| self.leads(command, &rest, MAX_DEPTH))
    }

    /// Returns the members of each variant of a command's arguments, with the names of their types: common members, the
    /// variant's members, and nested members as `part.member`.
    pub(crate) fn variants(&self, command: &str) -> BTreeMap<String, BTreeMap<String, String>> {
        let Some(arguments) =
            self.object(&self.entries.get(command).unwrap_or(&Value::Null)["arg-type"])
        else {
            return BTreeMap::new();
        };
        let variants = arguments["variants"].as_array().into_iter().flatten();
        variants
            .filter_map(|variant| {
                let mut members = BTreeMap::new();
                self.members(arguments, "", MAX_PARTS, &mut members);
                self.members(self.object(&variant["type"])?, "", MAX_PARTS, &mut members);
                Some((variant["case"].as_str()?.to_owned(), members))
            })
            .collect()
    }

    /// Adds the members of an object, and of nested objects except nodes.
    fn members(
        &self,
        object: &Value,
        prefix: &str,
        deeper: usize,
        members: &mut BTreeMap<String, String>,
    ) {
        for member in object["members"].as_array().into_iter().flatten() {
            let (Some(name), Some(kind)) = (member["name"].as_str(), member["type"].as_str())
            else {
                continue;
            };
            let name = format!("{prefix}{name}");
            if let Some(part) = self.object(&member["type"]).filter(|_| deeper > 0) {
                let inside = format!("{name}.");
                self.members(part, &inside, deeper - 1, members);
                let variants = part["variants"].as_array().into_iter().flatten();
                for variant in variants.filter_map(|variant| self.object(&variant["type"])) {
                    self.members(variant, &inside, deeper - 1, members);
                }
            }
            // Types have numbers as names, which differ between builds; only built-in types have real names.
            let kind = match self.entries.get(kind) {
                Some(entry) if entry["meta-type"] == "builtin" => kind,
                Some(entry) => entry["meta-type"].as_str().unwrap_or("any"),
                None => "any",
            };
            members.insert(name, kind.to_owned());
        }
    }

    /// Returns the object with a name.
    fn object(&self, name: &Value) -> Option<&Value> {
        let entry = self.entries.get(name.as_str()?)?;
        (entry["meta-type"] == "object").then_some(entry)
    }

    fn leads(&self, entry: &Value, path: &[&str], deeper: usize) -> bool {
        let Some((part, rest)) = path.split_first() else {
            return true;
        };
        let Some(deeper) = deeper.checked_sub(1) else {
            return false;
        };
        let list = |key: &str| entry[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let follow = |name: &Value, path: &[&str]| {
            name.as_str()
                .and_then(|name| self.entries.get(name))
                .is_some_and(|entry| self.leads(entry, path, deeper))
        };
        // Lists and alternates are not part of the path.
        match entry["meta-type"].as_str() {
            Some("array") => return follow(&entry["element-type"], path),
            Some("alternate") => {
                return list("members")
                    .iter()
                    .any(|member| follow(&member["type"], path));
            }
            Some(_) | None => {}
        }
        let is_named = |value: &&Value, name: &str| *value == name || value["name"] == name;
        if let Some(feature) = part.strip_prefix('$') {
            list("features")
                .iter()
                .any(|value| is_named(&value, feature))
        } else if let Some(word) = part.strip_prefix('^') {
            // Old versions have no `members`, and new ones deprecate `values`.
            entry["meta-type"] == "enum"
                && ["values", "members"]
                    .iter()
                    .any(|key| list(key).iter().any(|value| is_named(&value, word)))
        } else if let Some(case) = part.strip_prefix('+') {
            list("variants")
                .iter()
                .any(|variant| variant["case"] == case && follow(&variant["type"], rest))
        } else if matches!(*part, "arg-type" | "ret-type") && entry["meta-type"] == "command" {
            follow(&entry[*part], rest)
        } else {
            list("members")
                .iter()
                .any(|member| member["name"] == *part && follow(&member["type"], rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        Schema::new(json!([
            { "name": "add", "meta-type": "command", "arg-type": "1", "features": ["json-cli"] },
            { "name": "1", "meta-type": "object", "tag": "driver", "members": [
                { "name": "driver", "type": "str" }, { "name": "children", "type": "[2]" }
              ], "variants": [{ "case": "file", "type": "2" }] },
            { "name": "[2]", "meta-type": "array", "element-type": "3" },
            { "name": "3", "meta-type": "alternate", "members": [{ "type": "2" }, { "type": "3" }] },
            { "name": "2", "meta-type": "object", "members": [{ "name": "aio", "type": "4" }] },
            { "name": "4", "meta-type": "enum", "values": ["threads"], "members": [{ "name": "io_uring" }] },
            { "name": "str", "meta-type": "builtin" }, { "no": "name" }, 7
        ]))
    }

    #[test]
    fn a_path_leads_through_variants_lists_and_alternates() {
        let schema = schema();
        for path in [
            "add",
            "add/$json-cli",
            "add/arg-type",
            "add/arg-type/driver",
            "add/arg-type/+file/aio/^threads",
            "add/arg-type/children/aio/^io_uring",
        ] {
            assert!(schema.has(path), "{path}");
        }
        for path in [
            "",
            "remove",
            "add/ret-type",
            "add/$other",
            "add/arg-type/+nbd",
            "add/arg-type/aio",
            "add/arg-type/file",
            "add/arg-type/+file/^aio",
            "add/arg-type/+file/aio/^native",
            "add/arg-type/driver/more",
        ] {
            assert!(!schema.has(path), "{path}");
        }
        assert!(!Schema::new(json!({})).has("add"));
    }
}
