//! The shape of `vmdisk.toml`, for editors.

use std::collections::BTreeMap;

use schemars::JsonSchema;

/// The keys of `vmdisk.toml`. Paths and patterns start at its directory.
#[derive(JsonSchema)]
#[schemars(
    title = "vmdisk.toml",
    rename = "Config",
    rename_all = "kebab-case",
    deny_unknown_fields
)]
#[allow(
    dead_code,
    reason = "only its schema is used: the reader keeps places, which no deserializer has"
)]
struct Shape {
    /// Facts files of the hosts: files, directories or patterns.
    facts: Option<OneOrMore>,
    /// Names of hosts among the facts files; all of them by default.
    hosts: Option<OneOrMore>,
    /// Versions, such as `qemu=10.0,libvirt=11.3,machine=pc-q35-10.0,kernel=6.12`.
    target: Option<String>,
    /// Who shares the host.
    policy: Option<PolicyWord>,
    /// The lowest severity that fails a run.
    fail_on: Option<SeverityWord>,
    /// The lowest severity that is reported.
    min_severity: Option<SeverityWord>,
    /// Known findings, which do not count: the file that `vmdisk lint --write-baseline` writes.
    baseline: Option<String>,
    /// Files that are not checked, as in .gitignore.
    exclude: Option<OneOrMore>,
    /// Levels by the names of rules and groups.
    rules: Option<BTreeMap<String, LevelWord>>,
    /// House rules: rules of this repository.
    rule: Option<Vec<HouseRule>>,
    /// Settings for some files; later ones take precedence.
    files: Option<Vec<Files>>,
}

/// Settings for some files.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is used")]
struct Files {
    /// Patterns as in .gitignore.
    paths: OneOrMore,
    /// Facts files of the hosts of these files.
    facts: Option<OneOrMore>,
    /// Names of hosts among the facts files.
    hosts: Option<OneOrMore>,
    /// Versions.
    target: Option<String>,
    /// Who shares the host.
    policy: Option<PolicyWord>,
    /// Levels by the names of rules and groups.
    rules: Option<BTreeMap<String, LevelWord>>,
}

/// A rule of this repository.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is used")]
struct HouseRule {
    /// Its name, which begins with `house-`.
    name: String,
    /// The condition under which it reports a disk, or the guest.
    when: String,
    /// The mistake.
    message: String,
    /// What to write instead.
    help: Option<String>,
    /// The severity of its findings, by default `warning`.
    severity: Option<SeverityWord>,
    /// The subject, by default `clarity`.
    group: Option<GroupWord>,
}

/// The subject of a rule.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code, reason = "only its schema is used")]
enum GroupWord {
    Startup,
    DataSafety,
    Security,
    Performance,
    Space,
    Clarity,
}

/// A string or a list of strings.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// Who shares the host.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code, reason = "only its schema is used")]
enum PolicyWord {
    MultiTenant,
    SingleTenant,
    Lab,
}

/// How much a finding matters.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code, reason = "only its schema is used")]
enum SeverityWord {
    Pedantic,
    Advice,
    Warning,
    Error,
}

/// The treatment of the findings of a rule.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code, reason = "only its schema is used")]
enum LevelWord {
    Off,
    On,
    Pedantic,
    Advice,
    Warning,
    Error,
}

/// The JSON Schema of the file.
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Shape)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use vmdisk::rules::Group;
    use vmdisk::settings::{FILE_KEYS, KEYS, RULE_KEYS};
    use vmdisk::{Policy, Severity};

    use super::*;

    #[test]
    fn the_schema_has_the_keys_and_words_that_are_read() {
        let schema = serde_json::to_value(schema()).unwrap();
        let keys = |at: &serde_json::Value| -> BTreeSet<String> {
            at["properties"]
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect()
        };
        assert_eq!(keys(&schema), KEYS.map(str::to_owned).into());
        assert_eq!(
            keys(&schema["$defs"]["Files"]),
            FILE_KEYS.map(str::to_owned).into()
        );
        assert_eq!(
            keys(&schema["$defs"]["HouseRule"]),
            RULE_KEYS.map(str::to_owned).into()
        );
        let words = |name: &str| -> BTreeSet<String> {
            let text = schema["$defs"][name].to_string();
            let quoted = text.split('"').skip(1).step_by(2);
            quoted.map(str::to_owned).collect()
        };
        let severities = words("SeverityWord");
        for severity in Severity::ALL {
            assert!(severities.contains(severity.as_str()), "{severities:?}");
        }
        for group in Group::ALL {
            assert!(words("GroupWord").contains(group.as_str()));
        }
        for policy in Policy::ALL {
            assert!(words("PolicyWord").contains(policy.as_str()));
        }
    }
}
