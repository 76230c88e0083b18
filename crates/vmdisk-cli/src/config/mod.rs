//! `vmdisk.toml`: the settings of a repository.

mod file;
mod find;
mod init;
mod reader;
mod shape;

pub(crate) use file::{Config, Level, NAME, Section, absolute};
pub(crate) use find::Finder;
pub(crate) use init::{ConfigArgs, run};
pub(crate) use shape::schema;
