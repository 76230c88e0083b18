//! Reading and writing a facts file, in JSON or YAML.

use std::collections::HashSet;

use vmdisk_document::{Entry, Node, SyntaxError, Value, from_node, read_json, read_yaml};
use vmdisk_source::{LineIndex, Position, Span};

use crate::facts::{Facts, SCHEMA_VERSION};
use crate::warning::Warning;

/// The largest facts file that is read, in bytes: far more than any host needs.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The most values a facts file may hold, YAML aliases counted out.
const MAX_VALUES: usize = 2_000_000;

/// Keys of facts that nothing read, and that are no longer collected: files of earlier versions have them.
const RETIRED: &[&str] = &[
    "bitmaps",
    "compressed_extents",
    "consistency",
    "data_file_raw",
    "extent_size",
    "hugetlbfs_mount",
    "issue_discards",
    "lock_manager",
    "memory_bytes",
    "meta_profile",
    "numa_node",
    "pr_helper",
    "primarycache",
    "read_off",
    "read_policy",
    "remember_owner",
    "services",
    "source_dev",
    "subvol",
    "thin_pool_autoextend_percent",
    "thin_pool_discards",
    "thin_pool_zero",
    "thp",
    "uuid_prefix",
];

/// Facts that were read, and the parts of the file that were not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The facts.
    pub facts: Facts,
    /// Mistakes that did not prevent reading.
    pub warnings: Vec<Warning>,
}

/// Why a facts file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// It is larger than [`MAX_BYTES`].
    #[error("the facts file has {bytes} bytes, more than the {MAX_BYTES} that are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// It is not JSON, or not YAML.
    #[error("the facts file is not valid {syntax}: {message}")]
    Syntax {
        /// The syntax it was read as.
        syntax: &'static str,
        /// The parser's message, with line and column.
        message: String,
    },
    /// Its shape has another major version.
    #[error(
        "the facts file has schema version {found}, and this program reads {SCHEMA_VERSION}: {advice}"
    )]
    Version {
        /// The version in the file.
        found: String,
        /// The remedy.
        advice: &'static str,
    },
    /// A value does not fit its place.
    #[error("line {}, column {}: {}{message}", position.line, position.column, prefix_of(path))]
    Value {
        /// Where in the file (`files[2].size`); empty for the file as a whole.
        path: String,
        /// The same as line and column.
        position: Position,
        /// The mistake in the value.
        message: String,
    },
}

/// The path of a value, as messages begin with it.
fn prefix_of(path: &str) -> String {
    match path {
        "" => String::new(),
        path => format!("{path}: "),
    }
}

impl Facts {
    /// Reads facts from JSON.
    pub fn from_json(text: &str) -> Result<Read, FactsError> {
        read(text, "JSON", read_json)
    }

    /// Reads facts from YAML.
    pub fn from_yaml(text: &str) -> Result<Read, FactsError> {
        read(text, "YAML", read_yaml)
    }

    /// Reads facts from JSON when the text starts like JSON, otherwise from YAML.
    ///
    /// ```
    /// use vmdisk_facts::{Facts, Version};
    /// let read = Facts::parse("kernel:\n  version: [6, 12, 77]\n")?;
    /// assert!(read.facts.kernel.version.is(&Version(6, 12, 77)));
    /// # Ok::<(), vmdisk_facts::FactsError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Read, FactsError> {
        let start = without_mark(text).trim_start();
        if start.starts_with(['{', '[']) {
            Self::from_json(text)
        } else {
            Self::from_yaml(text)
        }
    }

    /// Writes facts as JSON with sorted keys: the same facts always give the same bytes.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(&self.value())
            .expect("a tree of plain values has a JSON form");
        text.push('\n');
        text
    }

    /// Writes facts as YAML with sorted keys: the same facts always give the same bytes.
    pub fn to_yaml(&self) -> String {
        self.value().to_yaml()
    }

    /// The JSON Schema of a facts file.
    #[cfg(feature = "schema")]
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(Facts)
    }

    fn value(&self) -> Value {
        Value::sorted(self).expect("facts hold only text, numbers and lists")
    }
}

/// The text without a byte order mark, which some editors write.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn read(
    text: &str,
    syntax: &'static str,
    read: fn(&str, usize) -> Result<vmdisk_document::Document, SyntaxError>,
) -> Result<Read, FactsError> {
    if text.len() > MAX_BYTES {
        return Err(FactsError::TooLarge { bytes: text.len() });
    }
    let text = without_mark(text);
    let position = |span: Span| LineIndex::new(text).position(text, span.start);
    let not_of_the_syntax = |error: SyntaxError| {
        let Position { line, column } = position(error.span);
        FactsError::Syntax {
            syntax,
            message: format!("{} at line {line} column {column}", error.message),
        }
    };
    let root = read(text, MAX_VALUES).map_err(not_of_the_syntax)?.root;
    if let Some(member) = root.duplicate_key() {
        return Err(not_of_the_syntax(SyntaxError {
            span: member.key_span,
            message: "a key is written twice".to_owned(),
        }));
    }
    from_root(&root).map_err(|failure| match failure {
        Failure::Version { found, advice } => FactsError::Version { found, advice },
        Failure::Value {
            path,
            span,
            message,
        } => FactsError::Value {
            path: path.unwrap_or_default(),
            position: position(span),
            message,
        },
    })
}

/// The reason why values are not facts, before their places become lines and columns.
enum Failure {
    Version {
        found: String,
        advice: &'static str,
    },
    Value {
        path: Option<String>,
        span: Span,
        message: String,
    },
}

impl Failure {
    /// A failure of the file as a whole.
    fn of_file(root: &Node, message: &str) -> Self {
        Failure::Value {
            path: None,
            span: Span::empty(root.span.start),
            message: message.to_owned(),
        }
    }
}

fn from_root(root: &Node) -> Result<Read, Failure> {
    let mut warnings = Vec::new();
    let Value::Map(members) = &root.value else {
        let message = "expected keys such as `schema_version` and `kernel`";
        return Err(Failure::of_file(root, message));
    };
    // Before anything else: of a shape with another major version no other complaint would make sense.
    check_version(root, &mut warnings)?;
    let (facts, ignored) = from_node::<Facts>(root).map_err(|error| Failure::Value {
        path: error.path,
        span: error.span,
        message: without_contents(error.message),
    })?;
    // Of a file that is not ours nothing is repeated. Keys are compared by place: the path of `a:b` has quotes.
    let unknown: HashSet<usize> = ignored.iter().map(|key| key.span.start).collect();
    let is_unknown = |at: &Entry| at.key.starts_with('_') || unknown.contains(&at.key_span.start);
    if !members.is_empty() && members.iter().all(is_unknown) {
        let message = "none of the keys is a key of a facts file";
        return Err(Failure::of_file(root, message));
    }
    let is_retired = |path: &str| RETIRED.contains(&path.rsplit('.').next().unwrap_or(path));
    let ignored = ignored.into_iter();
    let ignored = ignored.filter(|ignored| !is_retired(&ignored.path));
    warnings.extend(ignored.map(|ignored| {
        Warning::new(
            ignored.path,
            match ignored.meant {
                Some(meant) => {
                    format!("{}; did you mean `{meant}`?", Warning::UNKNOWN_KEY)
                }
                None => Warning::UNKNOWN_KEY.to_owned(),
            },
        )
    }));
    crate::check::check(&facts, &mut warnings);
    Ok(Read { facts, warnings })
}

/// A message, unless it is so long that it repeats what is in the file.
fn without_contents(message: String) -> String {
    const MAX: usize = 256;
    if message.len() > MAX {
        return "the value is not what its place needs".to_owned();
    }
    message
}

fn check_version(root: &Node, warnings: &mut Vec<Warning>) -> Result<(), Failure> {
    const KEY: &str = "schema_version";
    let Some(node) = root.get(KEY) else {
        warnings.push(Warning::new(
            KEY.to_owned(),
            format!("missing, read as {SCHEMA_VERSION}"),
        ));
        return Ok(());
    };
    let not_a_version = || Failure::Value {
        path: Some(KEY.to_owned()),
        span: node.span,
        message: format!("expected a version such as \"{SCHEMA_VERSION}\""),
    };
    let found = match &node.value {
        Value::Text(found) => found.clone(),
        // YAML reads an unquoted 1.0 as a number.
        Value::Float(number) => format!("{number:?}"),
        Value::Unsigned(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Signed(_) | Value::List(_) | Value::Map(_) => {
            return Err(not_a_version());
        }
    };
    let numbers = |text: &str| {
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let found_numbers = numbers(&found).ok_or_else(not_a_version)?;
    let ours = numbers(SCHEMA_VERSION).expect("our own version is two numbers");
    if found_numbers.0 != ours.0 {
        let advice = if found_numbers.0 > ours.0 {
            "use a newer vmdisk, or collect the facts with this one"
        } else {
            "collect the facts again with this vmdisk"
        };
        return Err(Failure::Version { found, advice });
    }
    if found_numbers.1 > ours.1 {
        warnings.push(Warning::new(
            KEY.to_owned(),
            format!("{found} is newer than {SCHEMA_VERSION}: its additions are not read"),
        ));
    }
    Ok(())
}
