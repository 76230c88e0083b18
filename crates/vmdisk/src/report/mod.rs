//! Reports: what a run found, as data and as the JSON of `vmdisk lint --format json`.

#[cfg(feature = "plan")]
pub mod changes;
mod classes;
mod counts;
#[cfg(feature = "plan")]
pub mod decide;
mod document;
mod entry;
pub mod escaped_json;
#[cfg(feature = "plan")]
pub mod explain;
mod fingerprint;
pub mod json;
pub mod lines;
mod run;
mod said;
#[cfg(feature = "trace")]
pub mod trace;
mod uri;

pub use classes::{ClassNames, Classes, ReportedHost};
pub use counts::Counts;
pub use document::{DocumentReport, Unchecked, UncheckedPlaces, UncheckedRules};
pub use entry::{EntryFailure, ReportEntry};
pub use fingerprint::{Fingerprints, digest, hash};
pub use json::SCHEMA_VERSION;
pub use run::Run;
pub use said::SaidOnce;
pub use uri::of_path as uri_of_path;
