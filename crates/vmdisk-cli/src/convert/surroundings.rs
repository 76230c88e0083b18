//! The elements that disks need in their domain, where only the disks are written.

use vmdisk::model::Domain;

use crate::generate::attach;
use crate::render::message::Message;
use crate::stop::Stop;

/// A warning for each element that the disks need and that is outside the written elements.
pub(super) fn warnings(
    domain: &Domain,
    is_outside: impl Fn(&str) -> bool,
) -> Result<Vec<Message>, Stop> {
    let mut elements = attach::elements(domain)?;
    elements.retain(|element| is_outside(element));
    let message = |element| Message::warning(format!("the domain must have {element}"));
    Ok(elements.into_iter().map(message).collect())
}
