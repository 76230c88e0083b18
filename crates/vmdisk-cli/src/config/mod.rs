//! `vmdisk.toml`: the settings of a repository.

pub(crate) mod configuration_args;
mod file;
mod find;
pub(crate) mod host_of_files;
mod init;
mod reader;
pub(crate) mod selection;
pub(crate) mod settings;
#[cfg(feature = "schema")]
mod shape;

pub(crate) use file::{Config, Level, NAME, Section, absolute, is_in};
pub(crate) use find::Finder;
pub(crate) use init::{ConfigArgs, run};
#[cfg(feature = "schema")]
pub(crate) use shape::schema;
