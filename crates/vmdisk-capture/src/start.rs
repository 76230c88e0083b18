//! A start of QEMU, as it is printed.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One start of QEMU: a line of the output of `vmdisk capture`, and an input of `vmdisk lint`, `convert`, `trace` and
/// `decide`. Several of them, one after another, are several guests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CapturedStart {
    /// The version of this format: 1.
    pub version: u32,
    /// The program as the command named it, or its path if it ran it under another name.
    pub program: Word,
    /// The arguments after the program.
    pub argv: Vec<Word>,
    /// The folder in which it was started.
    pub folder: Word,
}

/// Bytes, written as text where they are UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
pub enum Word {
    /// UTF-8 text.
    Text(String),
    /// Bytes that are not UTF-8.
    Bytes {
        /// The bytes in hexadecimal, two digits for each.
        hex: String,
    },
}

impl CapturedStart {
    pub(crate) fn new(program: Vec<u8>, argv: Vec<Vec<u8>>, folder: OsString) -> Self {
        CapturedStart {
            version: 1,
            program: Word::from(program),
            argv: argv.into_iter().map(Word::from).collect(),
            folder: Word::from(folder.into_vec()),
        }
    }

    /// The JSON Schema of this format.
    #[cfg(feature = "schema")]
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(CapturedStart)
    }
}

impl From<Vec<u8>> for Word {
    fn from(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(
            |error| Word::Bytes {
                hex: error
                    .as_bytes()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect(),
            },
            Word::Text,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_written_as_digits_and_all_others_as_they_are() {
        let words = [b"/srv/\xff.raw".to_vec(), "ä\n\"".into(), Vec::new()];
        let start = CapturedStart::new(b"kvm".to_vec(), words.to_vec(), "/".into());
        let text = serde_json::to_string(&start).unwrap();
        assert_eq!(
            text,
            r#"{"version":1,"program":"kvm","argv":[{"hex":"2f7372762fff2e726177"},"ä\n\"",""],"folder":"/"}"#
        );
        assert_eq!(serde_json::from_str::<CapturedStart>(&text).unwrap(), start);
    }
}
