//! The state of the storage when measuring begins.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

vmdisk_source::words! {
    /// The state of the storage when measuring begins; the two states answer different questions.
    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(JsonSchema))]
    #[serde(rename_all = "kebab-case")]
    pub enum Phase as name {
        /// Created for each sample: timed requests include allocation.
        FirstTouch = "first-touch",
        /// Written once over its whole length with incompressible data: everything is allocated.
        Steady = "steady",
    }
}
