//! A fleet of realistic domains from a seed, for benches and for the race against other tools.
//!
//! ```
//! let text = vmdisk_benches::domain(7, 1);
//! assert_eq!(text, vmdisk_benches::domain(7, 1), "the same seed gives the same domain");
//! assert!((1_000..40_000).contains(&text.len()));
//! ```

mod domains;
mod random;

pub use domains::{domain, target};
