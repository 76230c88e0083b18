//! Reads, checks, generates and explains the disk configuration of QEMU/libvirt guests.
//!
//! This crate is the whole public API; nothing in it reads a file, starts a program or looks at the
//! machine it runs on. Everything is plain data with public fields.
//!
//! # Lint a text
//!
//! ```
//! use vmdisk::{LintOptions, Severity, lint, read};
//!
//! let text = "\
//! <disk type='file' device='disk'>
//!   <driver name='qemu' type='qcow2' cache='unsafe'/>
//!   <source file='/srv/web1.qcow2'/>
//!   <target dev='vda' bus='virtio'/>
//! </disk>
//! ";
//! let document = read(text)?;
//! let report = lint(&document, &LintOptions::default());
//!
//! let is_error = |diagnostic: &&vmdisk::Diagnostic| diagnostic.severity == Severity::Error;
//! let diagnostic = report.diagnostics.iter().find(is_error).unwrap();
//! assert_eq!(diagnostic.rule.name, "cache-unsafe");
//! assert_eq!((diagnostic.place.start.line, diagnostic.place.start.column), (2, 43));
//! // Rules that need to know the host say so instead of staying silent.
//! assert!(!report.not_checked.is_empty());
//! # Ok::<(), vmdisk::ReadFailure>(())
//! ```
//!
//! # Build a disk in code and write it both ways
//!
//! ```
//! use vmdisk::model::{AioMode, CacheMode, Disk, Domain, Format, Frontend, Image, MachineType, TargetBus};
//! use vmdisk::write;
//!
//! let mut disk = Disk::new(
//!     Frontend::new("vda", TargetBus::Virtio),
//!     Image::file("/srv/web1.qcow2", Format::Qcow2),
//! );
//! disk.backend.cache = Some(CacheMode::None);
//! disk.backend.aio = Some(AioMode::Native);
//! let domain = Domain {
//!     name: Some("web1".to_owned()),
//!     machine: Some(MachineType::new("q35")),
//!     disks: vec![disk],
//!     ..Domain::default()
//! };
//!
//! let xml = write::libvirt_xml(&domain)?;
//! assert!(xml.contains("<driver name='qemu' type='qcow2' cache='none' io='native'/>"));
//!
//! let command = write::qemu_command_line(&domain, &write::QemuOptions::default())?;
//! assert!(command.argv().iter().any(|argument| argument.contains("\"filename\":\"/srv/web1.qcow2\"")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A custom check
//!
//! Policies of a site are functions over the same model, and their findings get their places from the
//! same source map:
//!
//! ```
//! use vmdisk::model::{Discard, DiskField, FieldPath};
//! use vmdisk::read;
//!
//! let text = "<disk type='file'>\n  <driver name='qemu' type='raw'/>\n  <source file='/a'/>\n  <target dev='vda'/>\n</disk>";
//! let document = read(text)?;
//! let complaints: Vec<String> = document
//!     .domain()
//!     .disks
//!     .iter()
//!     .enumerate()
//!     .filter(|(_, disk)| disk.backend.discard != Some(Discard::Unmap))
//!     .map(|(index, disk)| {
//!         let place = document.place(FieldPath::Disk(index, DiskField::Discard));
//!         format!("{}:{}: our disks all trim, {} does not", place.start.line, place.start.column, disk.name())
//!     })
//!     .collect();
//! // The attribute is not written, so the place is the element it belongs on.
//! assert_eq!(complaints, ["2:3: our disks all trim, vda does not"]);
//! # Ok::<(), vmdisk::ReadFailure>(())
//! ```
//!
//! # Features
//!
//! `serde`, the default, brings reports and calls, which write JSON; `schema` their JSON Schemas; `plan` plans, decisions and the
//! addresses of servers in one line; `settings` what a `vmdisk.toml` says; `trace` I/O paths, and with `plan` advice for new storage; `redact` names replaced by tokens.
//!
//! The modules [`model`], [`facts`], [`rules`], [`plan`] and [`image`] re-export what programs use of internal crates.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

#[cfg(all(feature = "plan", feature = "trace"))]
pub mod advise;
mod allow;
mod allowed;
mod built;
#[cfg(feature = "serde")]
pub mod calls;
mod complete;
#[cfg(feature = "plan")]
mod decide;
mod diagnostic;
mod document;
pub mod facts;
mod facts_needed;
mod failure;
mod fix;
mod fleet;
mod host;
#[cfg(feature = "settings")]
mod house;
pub mod image;
mod lint;
mod lint_report;
mod losses;
mod measured;
pub mod model;
mod options;
mod paths;
mod placeholders;
#[cfg(feature = "plan")]
pub mod plan;
#[cfg(feature = "plan")]
mod planned;
#[cfg(feature = "redact")]
pub mod redact;
#[cfg(feature = "serde")]
pub mod report;
mod resolve;
pub mod rules;
mod selection;
#[cfg(feature = "settings")]
pub mod settings;
pub mod source;
mod starts;
mod storage;
mod template;
mod text_report;
#[cfg(feature = "trace")]
pub mod trace;
pub mod trial;
mod unlocated;
mod unsettled;
#[cfg(feature = "plan")]
mod windows;
mod without;
pub mod write;

pub use allow::{WithAllowances, allow, allowance_of};
pub use complete::{Completion, complete, resolve_paths, unfit_disks};
#[cfg(feature = "plan")]
pub use decide::{Decisions, DiskDecision, decide};
pub use diagnostic::{AllowedBy, Diagnostic, DiskIdentity, RelatedPlace, ResolvedFix, TextPlace};
pub use document::{
    ConfigFilePart, Document, PlannedDocument, Source, Values, breadcrumb, check_name, read,
    read_bytes, read_bytes_with_values, read_to_lint, read_with_config_files,
};
pub use facts_needed::facts_needed;
pub use failure::{ReadFailure, ReadFailureKind};
pub use fix::{FailedFix, FixFailure, FixScope, Fixed, ReadAgain, fix, fix_document};
pub use fleet::{Fleet, FoundOn};
pub use host::Host;
pub use lint::{LintInput, guest_needs, lint, lint_all};
pub use lint_report::LintReport;
pub use losses::{
    Loss, disks_passed_through, filled_in, losses, not_about_disks, not_about_disks_in_arguments,
    not_about_disks_in_xml, passed_arguments,
};
pub use options::{Detail, LintOptions};
pub use resolve::{Conflict, ConflictKind, Decision, Resolved, resolve};
pub use rules::{Applicability, Confidence, NotChecked, Policy, Rule, Severity};
pub use selection::{RuleLevel, Selection};
pub use storage::{Storage, StorageItem, Unlocated};
pub use vmdisk_facts::{Facts, HostIndex, Target};
pub use vmdisk_fields::Label;
pub use vmdisk_libvirt::{RootKind, sniff};
pub use vmdisk_rules::{GuestNeeds, HostGuests};

/// True if a text may be a command line of QEMU.
pub use vmdisk_qemu::sniff as is_command_line;

/// True if a text is meant to be a spec.
pub use vmdisk_plan::is_spec;

pub use vmdisk_qemu::Folder;
/// True if a text begins as a file of QEMU's `-readconfig` does.
pub use vmdisk_qemu::begins_with_group;

/// The manual page of a rule, in Markdown.
///
/// ```
/// let page = vmdisk::explain("cache-unsafe").unwrap();
/// assert!(page.starts_with("# cache-unsafe\n"));
/// assert!(vmdisk::explain("no-such-rule").is_none());
/// ```
pub fn explain(rule: &str) -> Option<String> {
    rules::find(rule).map(Rule::explain)
}

/// Threads can share documents and results, and keep copies of them.
const _: () = {
    const fn is_shared<T: Clone + Send + Sync + std::fmt::Debug + 'static>() {}
    const fn is_error<T: std::error::Error>() {}
    is_shared::<Host>();
    is_shared::<LintOptions>();
    is_shared::<Fleet>();
    #[cfg(feature = "serde")]
    is_shared::<report::Run>();
    #[cfg(feature = "serde")]
    is_shared::<calls::CallOptions>();
    #[cfg(feature = "serde")]
    is_shared::<calls::CallError>();
    #[cfg(feature = "serde")]
    is_error::<calls::CallError>();
    is_error::<ReadFailure>();
    is_error::<FailedFix>();
    is_error::<FixFailure>();
    is_error::<facts::FactsError>();
    is_error::<write::Unwritable>();
    is_error::<write::WriteProblems>();
    #[cfg(feature = "plan")]
    is_error::<plan::PlanErrors>();
    #[cfg(feature = "plan")]
    is_error::<plan::SpecErrors>();
    is_error::<source::UnknownWord>();
    is_shared::<Document>();
    is_shared::<LintReport>();
    #[cfg(feature = "serde")]
    is_shared::<report::DocumentReport>();
    is_shared::<Fixed>();
    is_shared::<WithAllowances>();
    is_shared::<Resolved>();
    is_shared::<Completion>();
    #[cfg(feature = "plan")]
    is_shared::<Decisions>();
    #[cfg(all(feature = "plan", feature = "trace"))]
    is_shared::<advise::StorageAdvice>();
    is_shared::<Loss>();
    is_shared::<ReadFailure>();
    is_shared::<FailedFix>();
    is_shared::<Storage>();
    is_shared::<Selection>();
    #[cfg(feature = "settings")]
    is_shared::<settings::ConfigText>();
    #[cfg(feature = "settings")]
    is_error::<settings::SettingsMistake>();
    is_error::<rules::UnknownRule>();
    is_shared::<trial::Trial>();
    #[cfg(feature = "trace")]
    is_shared::<trace::GuestTrace>();
    #[cfg(feature = "redact")]
    is_shared::<redact::Redactor>();
};
