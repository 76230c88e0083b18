//! How LVM is set up on a host: what its tools will do by default.

use crate::fact::Fact;
use crate::record::facts;

facts! {
    /// LVM's settings, as `lvmconfig --type full` gives them: the file's where it has them, else LVM's own.
    pub struct LvmConfig {
        /// `devices/scan_lvs`: whether LVM looks for volume groups of guests inside its own volumes.
        pub scan_lvs: Fact<bool>,
        /// `devices/use_devicesfile`: whether LVM uses only the devices that a file lists.
        pub use_devicesfile: Fact<bool>,
        /// `activation/thin_pool_autoextend_threshold`: at which fullness in percent a pool is extended; 100 is never.
        pub thin_pool_autoextend_threshold: Fact<u32>,
    }
}
