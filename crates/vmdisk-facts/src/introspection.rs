//! The answers of a QEMU program about itself, in a form that can be stored.

use std::collections::BTreeMap;
use std::sync::Arc;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capability::Capability;
use crate::target::Target;
use crate::version::Version;

/// The version of the format.
pub const INTROSPECTION_VERSION: u32 = 2;

/// The answers of one QEMU program.
///
/// `fixtures/capabilities/` has recordings; `vmdisk facts qemu --qemu PATH --format recording` writes one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Introspection {
    /// Version of this format.
    pub schema_version: u32,
    /// QEMU's version.
    pub qemu: Version,
    /// The distribution's name of the build, such as `Debian 1:7.2+dfsg-7+deb12u18`; often empty.
    pub package: String,
    /// The architecture it emulates (`x86_64`).
    pub arch: String,
    /// Capabilities by their names, and whether it has them.
    pub capabilities: BTreeMap<String, bool>,
    /// Capabilities without an answer, and why; some builds crash on some queries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown: BTreeMap<String, String>,
    /// Its machine types, with the short names (`q35`) that some also have.
    pub machines: Vec<String>,
    /// Properties of devices, and members of nodes and objects, by their owner (`device virtio-blk-pci`,
    /// `node qcow2`, `object iothread`), each with the name of its type. Since version 2; an owner that the program
    /// lacks is missing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, BTreeMap<String, String>>,
}

/// Why the text of an introspection could not be read.
#[derive(Debug, thiserror::Error)]
pub enum IntrospectionError {
    /// It is not JSON, or not of this shape.
    #[error("not a recording of a QEMU: {0}")]
    Shape(#[from] serde_json::Error),
    /// It is of a later version of this format.
    #[error(
        "recorded in version {0} of the format; this vmdisk reads version {INTROSPECTION_VERSION}"
    )]
    Version(u32),
}

impl Introspection {
    /// Reads what [`Introspection::to_json`] wrote.
    ///
    /// # Errors
    /// If it is no such text, or of a later version.
    pub fn from_json(text: &str) -> Result<Self, IntrospectionError> {
        let read: Self = serde_json::from_str(text)?;
        if read.schema_version > INTROSPECTION_VERSION {
            return Err(IntrospectionError::Version(read.schema_version));
        }
        Ok(read)
    }

    /// Writes it, one answer to a line.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("names, numbers and truth values can be written");
        text.push('\n');
        text
    }

    /// The target that this program is. Names of capabilities that nobody knows are left out.
    pub fn target(&self) -> Target {
        let Introspection {
            schema_version: _, // it was looked at when this was read
            qemu,
            package: _, // nothing hangs on what a build is called
            arch,
            capabilities,
            unknown: _, // the version answers for these
            machines,
            members,
        } = self;
        let probed = capabilities
            .iter()
            .filter_map(|(name, has)| Some((Capability::from_name(name)?, *has)));
        Target {
            qemu: Some(*qemu),
            arch: (!arch.is_empty()).then(|| arch.clone()),
            probed: probed.collect(),
            machines: machines.iter().cloned().collect(),
            members: (!members.is_empty()).then(|| Arc::new(members.clone())),
            ..Target::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_version_of_the_format_is_refused() {
        let text = |version: u32| {
            format!(
                r#"{{"schema_version": {version}, "qemu": [10, 0, 0], "package": "", "arch": "x86_64",
                    "capabilities": {{}}, "unknown": {{}}, "machines": [], "members": {{}}}}"#
            )
        };
        Introspection::from_json(&text(INTROSPECTION_VERSION)).unwrap();
        let later = Introspection::from_json(&text(INTROSPECTION_VERSION + 1)).unwrap_err();
        assert!(matches!(later, IntrospectionError::Version(_)), "{later}");
    }
}
