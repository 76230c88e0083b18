//! Version 1 of what `vmdisk generate --explain=json` prints.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use vmdisk_plan::{Choice, Plan};

/// The choices of a plan; `vmdisk generate --explain=json` prints it.
///
/// Within version 1 keys are added, never removed, renamed or given another meaning.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "vmdisk generate --explain, version 1", rename = "Explanation")
)]
struct Explanation {
    /// Version of this shape: another first number is another shape.
    schema_version: &'static str,
    /// Every requested or chosen option, the guest's first.
    choices: Vec<ExplainedOption>,
}

/// One option.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Explained"))]
#[non_exhaustive]
pub struct ExplainedOption {
    /// Target of the disk; null for the guest.
    disk: Option<String>,
    /// The option, as a spec calls it.
    option: &'static str,
    /// Its value, as a spec writes it; `unset` if it is left to QEMU.
    value: String,
    /// The reason.
    reason: String,
    /// The rule that would report another value, if one would.
    rule: Option<&'static str>,
    /// The basis of the choice: `asked`, `fact` or `default`.
    source: &'static str,
}

impl ExplainedOption {
    /// A choice about the guest, or about the disk with this name.
    pub fn new(disk: Option<String>, choice: &Choice) -> Self {
        let Choice {
            at: _, // The name of the disk says it.
            option,
            value,
            reason,
            rule,
            source,
        } = choice;
        ExplainedOption {
            disk,
            option,
            value: value.clone(),
            reason: reason.clone(),
            rule: *rule,
            source: source.word(),
        }
    }
}

/// Version of the shape.
const SCHEMA_VERSION: &str = "1.0";

/// The JSON Schema of the explanation.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Explanation)
}

/// The choices by disk, the guest first; within each in the order of the decisions.
pub fn sorted(plan: &Plan) -> impl Iterator<Item = (Option<&str>, &Choice)> {
    let mut choices: Vec<&Choice> = plan.choices.iter().collect();
    choices.sort_by_key(|choice| choice.at.disk());
    choices.into_iter().map(|choice| {
        let disk = choice
            .at
            .disk()
            .and_then(|index| plan.domain.disks.get(index));
        (disk.map(|disk| disk.name()), choice)
    })
}

/// The choices for programs.
pub fn to_json(plan: &Plan) -> String {
    let explanation = Explanation {
        schema_version: SCHEMA_VERSION,
        choices: sorted(plan)
            .map(|(disk, choice)| ExplainedOption::new(disk.map(str::to_owned), choice))
            .collect(),
    };
    let mut text =
        serde_json::to_string_pretty(&explanation).expect("it holds only text and lists");
    text.push('\n');
    text
}
