//! Redaction of names in facts and configurations, so that they can be published and still be checked.
//!
//! A name becomes a token that only the owner of the salt can compute: equal names stay equal, others stay different.
//! Formats, sizes, standard directories and the kernel's device names, which the rules need, do not change. With the
//! same salt a configuration fits the facts, and the rules report the same for both.
//!
//! ```
//! use vmdisk::redact::{Level, Redactor};
//!
//! let redactor = Redactor::new(b"a salt of some length", Level::Shareable);
//! let path = redactor.path("/var/lib/libvirt/images/acme-payroll.qcow2");
//! assert!(path.starts_with("/var/lib/libvirt/images/x") && path.ends_with(".qcow2"));
//! assert!(!path.contains("acme"));
//! ```

mod domain;
mod facts;
mod token;
mod words;

pub use token::{Level, Redactor};
