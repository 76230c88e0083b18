//! Names taken out of facts and configurations, so that they can be shown to others and still be checked.
//!
//! A name becomes a token that only whoever has the salt can make: equal names stay equal, others stay different, and
//! what the rules go by (formats, sizes, standard directories, the kernel's names of devices) stays as it is. With the
//! same salt a configuration fits the facts, and the rules say the same about both.
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

pub use token::{Level, Redactor};
