//! Rules about mistakes that the readers of all syntaxes come across.

mod duplicate_value;
mod invalid_value;
mod missing_value;

use crate::Rule;

pub use duplicate_value::RULE as DUPLICATE_VALUE;
pub use invalid_value::RULE as INVALID_VALUE;
pub use missing_value::RULE as MISSING_VALUE;

/// The rules, sorted by name.
pub static RULES: &[&Rule] = &[&DUPLICATE_VALUE, &INVALID_VALUE, &MISSING_VALUE];

/// Help texts for problems whose reader has no better one.
pub(crate) fn default_help(rule: &Rule) -> Option<&'static str> {
    let helps = [
        (
            &DUPLICATE_VALUE,
            "keep the one that is meant and take the other away",
        ),
        (&INVALID_VALUE, "write a value that may stand there"),
        (&MISSING_VALUE, "write it"),
    ];
    let row = helps.into_iter().find(|(of, _)| *of == rule);
    row.map(|(_, help)| help)
}
