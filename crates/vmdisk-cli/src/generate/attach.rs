//! Requirements of a domain before disks are attached to it.

use std::fmt::Write as _;

use vmdisk::model::{Disk, Domain};
use vmdisk::write;

use super::write::unwritable;
use crate::render::message::Message;
use crate::sanitize::line;
use crate::stop::Stop;

/// The elements outside `<disk>` that the disks need, each on one line.
pub(crate) fn elements(domain: &Domain) -> Result<Vec<String>, Stop> {
    let elements = write::surroundings_xml(domain).map_err(unwritable)?;
    let on_one_line = |element: &String| {
        let words: Vec<&str> = element.lines().map(str::trim).collect();
        line(&words.concat()).into_owned()
    };
    Ok(elements.iter().map(on_one_line).collect())
}

/// A warning for each element that the disks need and that is not there.
pub(crate) fn warnings(
    domain: &Domain,
    is_missing: impl Fn(&String) -> bool,
) -> Result<Vec<Message>, Stop> {
    let mut elements = elements(domain)?;
    elements.retain(is_missing);
    let message = |element| Message::warning(must_have(element));
    Ok(elements.iter().map(message).collect())
}

fn must_have(element: &String) -> String {
    format!("the domain must have {element}")
}

/// A line for each thing outside the `<disk>` elements that the disks need.
pub(super) fn requirements(domain: &Domain) -> Result<String, Stop> {
    let mut out = String::new();
    for element in elements(domain)? {
        let _ = writeln!(out, "{}", must_have(&element));
    }
    let targets: Vec<&str> = domain.disks.iter().map(Disk::name).collect();
    let _ = writeln!(
        out,
        "the domain must not have a disk called {} yet; --into DOMAIN.xml plans around its disks",
        line(&targets.join(" or "))
    );
    Ok(out)
}
