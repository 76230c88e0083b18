//! Rules about mistakes that the readers of all syntaxes find.

mod duplicate_value;
mod invalid_value;
mod missing_value;

use crate::Rule;

pub use duplicate_value::RULE as DUPLICATE_VALUE;
pub use invalid_value::RULE as INVALID_VALUE;
pub use missing_value::RULE as MISSING_VALUE;

/// The rules, sorted by name.
pub static RULES: &[&Rule] = &[&DUPLICATE_VALUE, &INVALID_VALUE, &MISSING_VALUE];

/// Help texts for problems whose reader provides none.
pub(crate) fn default_help(rule: &Rule) -> Option<&'static str> {
    let helps = [
        (&DUPLICATE_VALUE, "remove the duplicate"),
        (&MISSING_VALUE, "add it"),
    ];
    let row = helps.into_iter().find(|(of, _)| *of == rule);
    row.map(|(_, help)| help)
}
