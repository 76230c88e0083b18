//! Versions of the measuring programs, for the record.

use vmdisk_facts::Target;

use crate::{Error, programs};

/// Returns the version that a QEMU program reports, and the target for command lines.
pub(crate) fn of_qemu(program: &str) -> Result<(String, Target), Error> {
    let text = programs::run(program, &["--version"])?;
    let version = text
        .split_once("version ")
        .and_then(|(_, rest)| rest.split_whitespace().next())
        .unwrap_or_default()
        .to_owned();
    let target = format!("qemu={version}").parse().unwrap_or_default();
    Ok((text.lines().next().unwrap_or_default().to_owned(), target))
}
