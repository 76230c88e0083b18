//! Internal to vmdisk: the language server of vmdisk: findings, fixes, hover and completion for libvirt XML, command lines of QEMU and
//! specs, over the Language Server Protocol 3.17.
//!
//! [`serve`] speaks the protocol. The caller implements [`FileSettings`], which knows files and settings: this crate
//! opens no file.
//!
//! ```
//! use std::path::Path;
//! use vmdisk::{Document, FixScope, LintOptions, LintReport, Target};
//! use vmdisk_lsp::{SettingsError, FileSettings};
//!
//! /// The default settings for every file.
//! struct Defaults;
//!
//! impl FileSettings for Defaults {
//!     fn lint(&mut self, _: &Path, document: Document) -> Result<Option<(Document, LintReport)>, SettingsError> {
//!         let report = vmdisk::lint(&document, &LintOptions::default());
//!         Ok(Some((document, report)))
//!     }
//!
//!     fn fix(&mut self, _: &Path, text: &str) -> Option<String> {
//!         let fixed = vmdisk::fix(text, &LintOptions::default(), FixScope::Safe).ok()?;
//!         Some(fixed.document.text.to_string())
//!     }
//!
//!     fn target(&mut self, _: &Path) -> Target {
//!         Target::default()
//!     }
//! }
//!
//! let (input, mut output) = (&b""[..], Vec::new());
//! let end = vmdisk_lsp::serve(input, &mut output, &mut Defaults)?;
//! // The editor closed the stream without `shutdown` and `exit`.
//! assert!(!end.is_orderly);
//! # Ok::<(), std::io::Error>(())
//! ```

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod actions;
mod check;
mod completion;
mod connection;
mod documents;
mod file_settings;
mod hover;
mod language;
mod meaning;
mod server;
mod text;
mod uri;

pub use file_settings::{FileSettings, SettingsError};
pub use server::{SessionEnd, serve};
