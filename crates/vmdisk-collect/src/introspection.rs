//! What a QEMU says of itself when it is asked in its own language (QMP), machine and guest left out.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::Value;
use vmdisk_facts::capability::{Component, Probe, TABLE};
use vmdisk_facts::{Reason, Unknown};

/// How a QEMU is started that only answers.
pub(crate) const ARGUMENTS: [&str; 9] = [
    "-machine",
    "none",
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-S",
    "-qmp",
    "stdio",
];

/// Everything it is asked, one command a line; the last one ends it.
pub(crate) fn questions() -> String {
    let mut asked = String::from(
        "{\"execute\":\"qmp_capabilities\"}\n\
         {\"execute\":\"query-qmp-schema\",\"id\":\"schema\"}\n\
         {\"execute\":\"qom-list-types\",\"id\":\"types\"}\n",
    );
    let mut devices: Vec<&str> = TABLE
        .iter()
        .filter_map(|row| match row.probe {
            Probe::DeviceProperty { device, .. } => Some(device),
            Probe::QmpSchema(_) | Probe::QomType(_) | Probe::Trial => None,
        })
        .collect();
    devices.sort_unstable();
    devices.dedup();
    for device in devices {
        asked += &format!(
            "{{\"execute\":\"device-list-properties\",\"arguments\":{{\"typename\":\"{device}\"}},\"id\":\"{device}\"}}\n"
        );
    }
    asked += "{\"execute\":\"quit\"}\n";
    asked
}

/// One line of what it says: an answer to a question, or something else.
#[derive(Deserialize)]
struct Said {
    id: Option<String>,
    #[serde(rename = "return")]
    answer: Option<Value>,
}

/// What a QEMU can do, by the names of the capabilities that it can be asked for.
pub(crate) fn capabilities(said: &str) -> Result<BTreeMap<String, bool>, Unknown> {
    let mut answers: HashMap<String, Value> = HashMap::new();
    for line in said.lines() {
        let said: Said = serde_json::from_str(line)
            .map_err(|error| Unknown::new(Reason::Parse, format!("an answer of QEMU: {error}")))?;
        // A question that it refuses, as for a device it does not have, has no answer.
        if let (Some(id), Some(answer)) = (said.id, said.answer) {
            answers.insert(id, answer);
        }
    }
    let missing = |what: &str| Unknown::new(Reason::Parse, format!("QEMU did not answer {what}"));
    let schema = answers
        .get("schema")
        .and_then(Schema::new)
        .ok_or_else(|| missing("query-qmp-schema"))?;
    let types = answers
        .get("types")
        .ok_or_else(|| missing("qom-list-types"))?;
    // What hangs on the machine type is another question than what this QEMU knows the word for.
    let of_qemu = TABLE.iter().filter(|row| row.component == Component::Qemu);
    let asked = of_qemu.filter_map(|row| {
        let has = match row.probe {
            Probe::QmpSchema(path) => schema.has(path),
            Probe::QomType(name) => is_named_in(types, name),
            Probe::DeviceProperty { device, property } => answers
                .get(device)
                .is_some_and(|properties| is_named_in(properties, property)),
            Probe::Trial => return None,
        };
        Some((row.name.to_owned(), has))
    });
    Ok(asked.collect())
}

/// Whether a list has something of that name.
fn is_named_in(list: &Value, name: &str) -> bool {
    let list = list.as_array().map_or(&[][..], Vec::as_slice);
    list.iter().any(|one| one["name"] == name)
}

/// The answer of `query-qmp-schema`, by name.
struct Schema<'a>(HashMap<&'a str, &'a Value>);

impl<'a> Schema<'a> {
    fn new(answer: &'a Value) -> Option<Self> {
        let named = answer
            .as_array()?
            .iter()
            .filter_map(|entity| Some((entity["name"].as_str()?, entity)));
        Some(Self(named.collect()))
    }

    /// Whether a path leads somewhere: a command, `arg-type` or `ret-type`, then a member by its name, a variant behind
    /// a plus sign, or a word behind a caret. libvirt asks in the same way.
    fn has(&self, path: &str) -> bool {
        let mut parts = path.split('/');
        let Some(mut here) = parts.next().and_then(|name| self.0.get(name)).copied() else {
            return false;
        };
        for part in parts {
            // What is in a list is what is asked about.
            while let Some(element) = here["element-type"].as_str() {
                match self.0.get(element) {
                    Some(entity) => here = entity,
                    None => return false,
                }
            }
            if let Some(word) = part.strip_prefix('^') {
                // The last part there is.
                return has_word(here, word);
            }
            let next = match part.strip_prefix('+') {
                Some(variant) => of(&here["variants"], "case", variant),
                None if here["meta-type"] == "command" => here[part].as_str(),
                None => of(&here["members"], "name", part),
            };
            match next.and_then(|name| self.0.get(name)) {
                Some(entity) => here = entity,
                None => return false,
            }
        }
        true
    }
}

/// The type of the entry of a list whose key is this.
fn of<'a>(list: &'a Value, key: &str, wanted: &str) -> Option<&'a str> {
    let found = list.as_array()?.iter().find(|one| one[key] == wanted)?;
    found["type"].as_str()
}

/// Whether an enumeration has a word; since QEMU 6.2 each has a description of its own besides.
fn has_word(entity: &Value, word: &str) -> bool {
    let values = entity["values"].as_array();
    values.is_some_and(|values| values.iter().any(|value| value == word))
        || (entity["meta-type"] == "enum" && is_named_in(&entity["members"], word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!([
            {"name": "blockdev-add", "meta-type": "command", "arg-type": "1", "ret-type": "0"},
            {"name": "1", "meta-type": "object", "members": [{"name": "driver", "type": "2"}, {"name": "all", "type": "[4]"}],
             "tag": "driver", "variants": [{"case": "file", "type": "3"}]},
            {"name": "2", "meta-type": "enum", "values": ["file", "qcow2"]},
            {"name": "3", "meta-type": "object", "members": [{"name": "aio", "type": "5"}]},
            {"name": "[4]", "meta-type": "array", "element-type": "4"},
            {"name": "4", "meta-type": "object", "members": [{"name": "inner", "type": "int"}]},
            {"name": "5", "meta-type": "enum", "members": [{"name": "threads"}, {"name": "io_uring"}]},
            {"name": "int", "meta-type": "builtin"},
        ])
    }

    #[test]
    fn a_path_is_followed_through_members_variants_lists_and_words() {
        let answer = schema();
        let schema = Schema::new(&answer).unwrap();
        for path in [
            "blockdev-add",
            "blockdev-add/arg-type",
            "blockdev-add/arg-type/driver/^qcow2",
            "blockdev-add/arg-type/+file",
            "blockdev-add/arg-type/+file/aio/^io_uring",
            "blockdev-add/arg-type/all/inner",
        ] {
            assert!(schema.has(path), "{path}");
        }
        for path in [
            "",
            "blockdev-del",
            "blockdev-add/arg-type/+nbd",
            "blockdev-add/arg-type/file",
            "blockdev-add/arg-type/driver/^raw",
            "blockdev-add/arg-type/+file/^aio",
            "blockdev-add/arg-type/+file/aio/^native",
            "blockdev-add/ret-type/x",
        ] {
            assert!(!schema.has(path), "{path}");
        }
    }

    #[test]
    fn a_device_that_is_refused_has_no_properties_and_half_a_conversation_is_a_reason() {
        let answers = |types: bool| {
            let mut said = vec![
                json!({"QMP": {}}),
                json!({"return": {}}),
                json!({"return": schema(), "id": "schema"}),
                json!({"error": {"class": "DeviceNotFound"}, "id": "scsi-hd"}),
            ];
            if types {
                said.push(json!({"return": [{"name": "nvme-ns"}], "id": "types"}));
            }
            let lines: Vec<String> = said.iter().map(Value::to_string).collect();
            lines.join("\r\n")
        };
        let can = capabilities(&answers(true)).unwrap();
        assert!(can["blockdev"] && can["aio-io-uring"] && can["nvme-ns"]);
        assert!(!can["scsi-dpofua"] && !can["vhost-user-blk"]);
        assert!(!can.keys().any(|name| name.starts_with("machine-")));
        assert!(capabilities(&answers(false)).is_err());
        assert!(capabilities("").is_err());
        assert!(capabilities("{").is_err());
    }
}
