//! Files that a command reads.

pub(crate) mod bounded;
pub(crate) mod owner;
pub(crate) mod used;
pub(crate) mod watch;
