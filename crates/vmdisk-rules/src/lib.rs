//! Rules over disks, host facts and a target.
//!
//! A [`Rule`] is metadata, a manual page and a pure function of a [`Context`]: the model, what is
//! known of the host, and what the configuration is meant to run on. [`check`] runs all of them and
//! returns [`Outcome`]: the findings, and what could not be checked and why. Nothing here reads a
//! file, knows a text format or asks the host.
//!
//! ```
//! use vmdisk_facts::Target;
//! use vmdisk_model::{CacheMode, Disk, Domain, Format, Frontend, Image, TargetBus};
//! use vmdisk_rules::{Context, Policy, check};
//!
//! let mut disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), Image::file("/a.img", Format::Raw));
//! disk.backend.cache = Some(CacheMode::Unsafe);
//! let domain = Domain { disks: vec![disk], ..Domain::default() };
//!
//! let target = Target::default();
//! let outcome = check(&Context::new(&domain, &target));
//! let finding = outcome.findings.iter().find(|finding| finding.rule.name == "cache-unsafe").unwrap();
//! assert!(finding.title.contains("vda"));
//! // Without facts, rules about the host say that they were not checked.
//! assert!(!outcome.not_checked.is_empty());
//! ```

mod boot;
mod chain;
mod comparison;
mod context;
mod engine;
mod evidence;
mod features;
mod finding;
mod follow_up;
mod format_words;
mod host;
mod io_uring;
mod iothreads;
mod media;
mod page;
mod policy;
mod remedy;
mod reported;
mod rule;
mod rules;
mod serial;
mod target_names;
mod thin;

pub use comparison::{ComparedHost, Comparison};
pub use context::{Context, Missing, TakenBy};
pub use engine::{Outcome, check, compare};
pub use evidence::Evidence;
pub use finding::{Applicability, Confidence, Finding, Fix, NotChecked, Related, Report};
pub use follow_up::{FOLLOW_UPS, FollowUp, may_follow};
pub use page::Example;
pub use policy::Policy;
pub use rule::{Group, Rule, Severity};
pub use rules::{RULES, find};
