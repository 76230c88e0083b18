//! Specs: read, planned and written.

use vmdisk::plan::{Spec, plan};
use vmdisk::{Facts, Target};

/// A text that can be read is written and read back as the same spec, and planning it ends.
pub(super) fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(spec) = Spec::from_yaml(&text) else {
        return;
    };
    let yaml = spec.to_yaml();
    let again = Spec::from_yaml(&yaml).unwrap_or_else(|errors| panic!("{errors:?}\n{yaml}"));
    assert_eq!(again, spec);
    let _ = plan(&spec, &Facts::default(), &Target::default());
}
