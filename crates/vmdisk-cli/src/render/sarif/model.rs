//! The parts of SARIF 2.1.0 that are written here, named as the standard names them.

use std::collections::BTreeMap;

use serde::Serialize;
use vmdisk::report::ClassNames;

use vmdisk::report::escaped_json::Each;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Log<'a> {
    #[serde(rename = "$schema")]
    pub(super) schema: &'static str,
    pub(super) version: &'static str,
    pub(super) runs: [Run<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run<'a> {
    pub(super) tool: Tool,
    pub(super) automation_details: AutomationDetails,
    pub(super) column_kind: &'static str,
    pub(super) original_uri_base_ids: BTreeMap<&'static str, BaseLocation>,
    pub(super) invocations: [Invocation<'a>; 1],
    pub(super) artifacts: Vec<Artifact<'a>>,
    pub(super) results: Each<'a, ResultItem<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) properties: Option<RunProperties<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Tool {
    pub(super) driver: Driver,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Driver {
    pub(super) name: &'static str,
    pub(super) semantic_version: &'static str,
    pub(super) information_uri: &'static str,
    pub(super) rules: Vec<ReportingDescriptor>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReportingDescriptor {
    pub(super) id: &'static str,
    pub(super) name: String,
    pub(super) short_description: Text<'static>,
    pub(super) full_description: Text<'static>,
    pub(super) help_uri: String,
    pub(super) help: Markdown,
    pub(super) default_configuration: Configuration,
    pub(super) properties: RuleProperties,
}

#[derive(Debug, Serialize)]
pub(super) struct Configuration {
    pub(super) level: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct RuleProperties {
    pub(super) precision: &'static str,
    #[serde(rename = "problem.severity")]
    pub(super) problem_severity: &'static str,
    #[serde(rename = "security-severity", skip_serializing_if = "Option::is_none")]
    pub(super) security_severity: Option<&'static str>,
    pub(super) tags: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
pub(super) struct Text<'a> {
    pub(super) text: std::borrow::Cow<'a, str>,
}

#[derive(Debug, Serialize)]
pub(super) struct Markdown {
    pub(super) text: String,
    pub(super) markdown: String,
}

#[derive(Debug, Serialize)]
pub(super) struct AutomationDetails {
    pub(super) id: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct BaseLocation {
    pub(super) description: Text<'static>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Invocation<'a> {
    pub(super) execution_successful: bool,
    pub(super) exit_code: u8,
    pub(super) tool_execution_notifications: Each<'a, Notification<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Notification<'a> {
    pub(super) level: &'static str,
    pub(super) message: Text<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) locations: Vec<Location<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) associated_rule: Option<RuleReference>,
}

#[derive(Debug, Serialize)]
pub(super) struct RuleReference {
    pub(super) id: &'static str,
    pub(super) index: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Artifact<'a> {
    pub(super) location: ArtifactLocation<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactLocation<'a> {
    pub(super) uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) uri_base_id: Option<&'static str>,
    pub(super) index: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultItem<'a> {
    pub(super) rule_id: &'static str,
    pub(super) rule_index: usize,
    pub(super) level: &'static str,
    pub(super) message: Text<'a>,
    pub(super) locations: [Location<'a>; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) related_locations: Vec<Location<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) baseline_state: Option<&'static str>,
    pub(super) partial_fingerprints: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) fixes: Vec<Fix<'a>>,
    /// Present on every result as soon as one has any, as the standard asks: empty means none.
    pub(super) suppressions: Vec<Suppression<'a>>,
    pub(super) properties: ResultProperties<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct ResultProperties<'a> {
    pub(super) confidence: &'static str,
    pub(super) severity: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) domain: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) disk: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hosts: Option<ClassNames<'a>>,
}

/// Messages of a run other than its results.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunProperties<'a> {
    /// Classes of hosts, with the names of the hosts in each.
    pub(super) host_classes: BTreeMap<&'a str, Vec<&'a str>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Location<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<usize>,
    pub(super) physical_location: PhysicalLocation<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) logical_locations: Vec<LogicalLocation<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<Text<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PhysicalLocation<'a> {
    pub(super) artifact_location: ArtifactLocation<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) region: Option<Region>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogicalLocation<'a> {
    pub(super) fully_qualified_name: &'a str,
    pub(super) kind: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Region {
    pub(super) start_line: usize,
    pub(super) start_column: usize,
    pub(super) end_line: usize,
    pub(super) end_column: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Fix<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<Text<'a>>,
    pub(super) artifact_changes: [ArtifactChange<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactChange<'a> {
    pub(super) artifact_location: ArtifactLocation<'a>,
    pub(super) replacements: Vec<Replacement<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Replacement<'a> {
    pub(super) deleted_region: Region,
    pub(super) inserted_content: Text<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct Suppression<'a> {
    pub(super) kind: &'static str,
    pub(super) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) justification: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) location: Option<Location<'a>>,
}
