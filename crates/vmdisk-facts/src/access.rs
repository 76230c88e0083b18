//! Whether QEMU gets at a file: by permission bits and access lists, and whether somebody listens on a socket.

use crate::fact::Fact;
use crate::record::facts;

facts! {
    /// What permission bits and access lists let QEMU's user do, as they were when the facts were collected.
    ///
    /// libvirt gives an image itself to that user before it starts the guest (`dynamic_ownership`), but never a directory.
    /// Security modules decide besides.
    pub struct QemuAccess {
        /// Whether it may go through every directory above.
        pub search: Fact<bool>,
        /// The uppermost directory it may not go through; absent when there is none.
        pub stopped_at: Fact<String>,
        /// Whether the file's own permissions let it read.
        pub read: Fact<bool>,
        /// Whether the file's own permissions let it write; connecting to a socket needs this.
        pub write: Fact<bool>,
    }
}

facts! {
    /// A socket that a daemon serves, as of vhost-user. Nobody connected to it: many daemons serve one client only.
    pub struct Socket {
        /// Whether somebody listens on it in the collector's network namespace.
        pub listening: Fact<bool>,
    }
}
