//! Inputs: files, directories, standard input, guests of libvirt and processes, with the files that they name.

pub(crate) mod absolute;
pub(crate) mod bounded;
pub(crate) mod companions;
pub(crate) mod complaints;
pub(crate) mod config_files;
pub(crate) mod documents;
mod hints;
pub(crate) mod hypervisor;
mod ignored;
pub(crate) mod inputs;
pub(crate) mod one;
pub(crate) mod owner;
pub(crate) mod read;
pub(crate) mod storage;
pub(crate) mod used;
mod walk;
pub(crate) mod watch;
