//! `vmdisk.toml`: the settings of a repository.

pub(crate) mod configuration_args;
mod file;
mod find;
pub(crate) mod host_of_files;
pub(crate) mod init;
pub(crate) mod selection;
pub(crate) mod settings;
#[cfg(feature = "schema")]
mod shape;

pub(crate) use file::{Config, NAME, is_in};
pub(crate) use find::Finder;
#[cfg(feature = "schema")]
pub(crate) use shape::schema;
