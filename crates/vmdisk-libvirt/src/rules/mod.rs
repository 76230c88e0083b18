//! Rules about XML text: one file each, with its page. The reader reports them.

pub(crate) mod undeclared_prefix;
pub(crate) mod unknown_attribute;
pub(crate) mod unknown_element;

use vmdisk_rule::Rule;

/// The rules of this crate, sorted by name.
pub static RULES: &[&Rule] = &[
    &undeclared_prefix::RULE,
    &unknown_attribute::RULE,
    &unknown_element::RULE,
];
