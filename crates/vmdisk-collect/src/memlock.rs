//! The memory lock limit of a process.

use vmdisk_facts::{Fact, Reason};

use crate::obstacle::obstacle;
use crate::root::Root;

/// Returns the soft limit of locked memory of a process; absent means unlimited.
pub(crate) fn soft_limit(root: &Root, limits: &str) -> Fact<u64> {
    let text = match root.text(limits) {
        Ok(text) => text,
        Err(error) => return Fact::Unknown(obstacle(limits, &error)),
    };
    let soft = text
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))
        .and_then(|rest| rest.split_whitespace().next());
    match soft {
        Some("unlimited") => Fact::Absent,
        Some(bytes) => match bytes.parse() {
            Ok(bytes) => Fact::Known(bytes),
            Err(_) => Fact::unknown(Reason::Parse, format!("{limits}: '{bytes}'")),
        },
        None => Fact::unknown(
            Reason::Parse,
            format!("{limits}: no line `Max locked memory`"),
        ),
    }
}
