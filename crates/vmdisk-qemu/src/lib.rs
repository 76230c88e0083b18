//! Internal to vmdisk: QEMU command lines for a guest's disks, as data. This crate does not start programs.
//!
//! [`write()`] turns a [`vmdisk_model::Domain`] into a [`CommandLine`], whose [`Argument`]s know the field that they
//! were written for. Values are written as JSON if the target supports it, so that no path or serial number becomes
//! option syntax.
//!
//! Nodes are named after their disk and their role, such as `vda-format`.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

#[cfg(test)]
#[path = "against_bash/tests.rs"]
mod against_bash;
mod argument;
mod blockdev;
mod board;
mod boot;
mod command_line;
mod config_file;
mod daemon;
mod device;
mod document;
mod edits;
mod empty_drives;
mod failure;
mod file_name;
mod firmware;
mod guest;
mod index;
mod interface;
mod json;
mod key_value;
mod leftover;
mod limits;
mod lower;
mod machine_options;
mod machine_read;
mod members;
mod monitor;
mod names;
mod notes;
mod object;
mod open_value;
mod options;
mod overrides;
mod parse;
mod pci;
mod pci_slots;
mod placement;
mod places;
mod problem;
mod read;
mod read_daemon;
mod rules;
mod runners;
mod shell;
mod slots;
mod speller;
mod syntax;
mod tuning;
mod vocabulary;
mod write;
mod write_daemon;
mod write_guest;
mod writer;

pub use argument::{Argument, ArgumentValue, QemuOption};
pub use blockdev::name_obstacle::NameObstacle;
pub use command_line::CommandLine;
pub use config_file::begins_with_group;
pub use daemon::StorageDaemon;
pub use document::{Document, OtherOption, UnmodeledProperty};
pub use edits::{CannotEdit, edits_of_all};
pub use failure::ReadFailure;
pub use firmware::{Flash, FlashFirmware};
pub use json::{Json, JsonObject};
pub use key_value::KeyValue;
pub use monitor::{MonitorScript, write_monitor_script};
pub use options::Options;
pub use problem::{WriteProblem, WriteProblems};
pub use read::{read, read_all, read_with};
pub use rules::{RULES, check};
pub use runners::{Command, RUNNERS, Runner};
pub use shell::shell_quote;
pub use speller::CommandLineSpeller;
pub use syntax::folder::Folder;
pub use syntax::form::{check_name, sniff, variable_at};
pub use syntax::hole::Hole;
pub use syntax::program::{asks, is_qemu};
pub use syntax::start::{CommandLineForm, Start};
pub use vocabulary::words as option_keys;
pub use write::write;
