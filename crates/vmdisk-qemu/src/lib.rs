//! QEMU command lines for a guest's disks, as data: nothing here starts a program.
//!
//! [`write()`] turns a [`vmdisk_model::Domain`] into a [`CommandLine`], whose [`Argument`]s know the
//! field that each was written for. Values go out as JSON wherever the target takes it, so that no
//! path or serial number becomes option syntax.
//!
//! Two styles name the same guest: [`Style::Readable`] calls nodes after their disk, and
//! [`Style::Libvirt`] writes what libvirt would, for reading beside a running guest.

mod argument;
mod blockdev;
mod board;
mod command_line;
mod device;
mod json;
mod key_value;
mod libvirt_order;
mod machine_options;
mod names;
mod object;
mod options;
mod pci;
mod placement;
mod problem;
mod shell;
mod write;
mod writer;

pub use argument::{Argument, ArgumentValue, QemuOption};
pub use command_line::CommandLine;
pub use json::{Json, JsonObject};
pub use key_value::KeyValue;
pub use options::{Options, Style};
pub use problem::{WriteProblem, WriteProblems};
pub use shell::shell_quote;
pub use write::write;
