//! Reading and writing a facts file, in JSON or YAML.

use std::cell::{Cell, RefCell};

use serde::Deserialize;
use serde::de::DeserializeSeed;

use crate::facts::{Facts, SCHEMA_VERSION};
use crate::tree::{Path, Tree, TreeReader, TreeSeed};
use crate::yaml;

/// The largest facts file that is read, in bytes: far more than any host needs.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The most values a facts file may hold, YAML aliases counted out.
const MAX_VALUES: usize = 2_000_000;

/// Facts that were read, and what in the file nobody understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The facts.
    pub facts: Facts,
    /// What a person should know about the file although it could be read.
    pub warnings: Vec<Warning>,
}

/// Something in a facts file that was read past.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// Where in the file (`files[2].sise`).
    pub path: String,
    /// What is the matter.
    pub message: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Why a facts file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
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
        /// What the parser said, with line and column.
        message: String,
    },
    /// Its shape has another major version.
    #[error(
        "the facts file has schema version {found}, and this program reads {SCHEMA_VERSION}: {advice}"
    )]
    Version {
        /// The version in the file.
        found: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// A value in it is not what its place needs.
    #[error("{path}: {message}")]
    Value {
        /// Where in the file (`files[2].size`).
        path: String,
        /// What is wrong with the value.
        message: String,
    },
}

impl Facts {
    /// Reads facts from JSON.
    pub fn from_json(text: &str) -> Result<Read, ReadError> {
        check_size(text)?;
        let budget = Cell::new(MAX_VALUES);
        let syntax = |error: serde_json::Error| ReadError::Syntax {
            syntax: "JSON",
            message: error.to_string(),
        };
        let mut parser = serde_json::Deserializer::from_str(without_mark(text));
        let tree = TreeSeed { budget: &budget }
            .deserialize(&mut parser)
            .map_err(syntax)?;
        parser.end().map_err(syntax)?;
        from_tree(&tree)
    }

    /// Reads facts from YAML.
    pub fn from_yaml(text: &str) -> Result<Read, ReadError> {
        check_size(text)?;
        if let Some((line, column)) = yaml::overworked(text) {
            return Err(ReadError::Syntax {
                syntax: "YAML",
                message: format!(
                    "too many brackets at line {line} column {column}; so much is read as JSON only"
                ),
            });
        }
        let budget = Cell::new(MAX_VALUES);
        let tree = TreeSeed { budget: &budget }
            .deserialize(serde_yaml::Deserializer::from_str(without_mark(text)))
            .map_err(|error| ReadError::Syntax {
                syntax: "YAML",
                message: error.to_string(),
            })?;
        from_tree(&tree)
    }

    /// Reads facts from JSON when the text starts like JSON, otherwise from YAML.
    ///
    /// ```
    /// use vmdisk_facts::{Facts, Version};
    /// let read = Facts::parse("kernel:\n  version: [6, 12, 77]\n")?;
    /// assert!(read.facts.kernel.version.is(&Version(6, 12, 77)));
    /// # Ok::<(), vmdisk_facts::ReadError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Read, ReadError> {
        let start = without_mark(text).trim_start();
        if start.starts_with(['{', '[']) {
            Self::from_json(text)
        } else {
            Self::from_yaml(text)
        }
    }

    /// Writes facts as JSON with sorted keys: the same facts always give the same bytes.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(&self.tree())
            .expect("a tree of plain values has a JSON form");
        text.push('\n');
        text
    }

    /// Writes facts as YAML with sorted keys: the same facts always give the same bytes.
    pub fn to_yaml(&self) -> String {
        serde_yaml::to_string(&self.tree()).expect("a tree of plain values has a YAML form")
    }

    /// The JSON Schema of a facts file.
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(Facts)
    }

    fn tree(&self) -> Tree {
        // Going through a sorted tree makes the order of keys ours, whatever features serde_json is built with.
        Tree::from(serde_json::to_value(self).expect("facts hold only text, numbers and lists"))
    }
}

fn check_size(text: &str) -> Result<(), ReadError> {
    if text.len() > MAX_BYTES {
        Err(ReadError::TooLarge { bytes: text.len() })
    } else {
        Ok(())
    }
}

/// The text without a byte order mark, which some editors write.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn from_tree(tree: &Tree) -> Result<Read, ReadError> {
    let mut warnings = Vec::new();
    if !matches!(tree, Tree::Map(_)) {
        return Err(ReadError::Value {
            path: "the facts file".to_owned(),
            message: "expected keys such as `schema_version` and `kernel`".to_owned(),
        });
    }
    // Before anything else: of a shape with another major version no other complaint would make sense.
    check_version(tree, &mut warnings)?;
    let ignored = RefCell::new(Vec::new());
    let facts = Facts::deserialize(TreeReader {
        tree,
        path: Path::Root,
        ignored: &ignored,
    })
    .map_err(|error| {
        let path = error
            .path
            .filter(|path| !path.is_empty())
            .unwrap_or_else(|| "the facts file".to_owned());
        ReadError::Value {
            path,
            message: without_contents(error.message),
        }
    })?;
    let ignored = ignored.into_inner();
    if let Tree::Map(map) = tree
        && !map.is_empty()
        && map.keys().all(|key| ignored.contains(key))
    {
        return Err(ReadError::Value {
            path: "the facts file".to_owned(),
            message: "none of its keys is one of a facts file".to_owned(),
        });
    }
    warnings.extend(ignored.into_iter().map(|path| Warning {
        path,
        message: "this key is not known and was not read".to_owned(),
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

fn check_version(tree: &Tree, warnings: &mut Vec<Warning>) -> Result<(), ReadError> {
    let Tree::Map(map) = tree else { return Ok(()) };
    let found = match map.get("schema_version") {
        Some(Tree::Text(found)) => found.clone(),
        // YAML reads an unquoted 1.0 as a number.
        Some(Tree::Float(number)) => format!("{number:?}"),
        Some(Tree::Unsigned(number)) => number.to_string(),
        Some(Tree::Null | Tree::Bool(_) | Tree::Signed(_) | Tree::List(_) | Tree::Map(_)) => {
            return Err(ReadError::Value {
                path: "schema_version".to_owned(),
                message: format!("expected a version such as \"{SCHEMA_VERSION}\""),
            });
        }
        None => {
            warnings.push(Warning {
                path: "schema_version".to_owned(),
                message: format!("missing, read as {SCHEMA_VERSION}"),
            });
            return Ok(());
        }
    };
    let numbers = |text: &str| {
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let Some(found_numbers) = numbers(&found) else {
        return Err(ReadError::Value {
            path: "schema_version".to_owned(),
            message: format!("expected a version such as \"{SCHEMA_VERSION}\""),
        });
    };
    let ours = numbers(SCHEMA_VERSION).expect("our own version is two numbers");
    if found_numbers.0 != ours.0 {
        let advice = if found_numbers.0 > ours.0 {
            "use a newer vmdisk, or collect the facts with this one"
        } else {
            "collect the facts again with this vmdisk"
        };
        return Err(ReadError::Version { found, advice });
    }
    if found_numbers.1 > ours.1 {
        warnings.push(Warning {
            path: "schema_version".to_owned(),
            message: format!("{found} is newer than {SCHEMA_VERSION}: what it added is not read"),
        });
    }
    Ok(())
}
