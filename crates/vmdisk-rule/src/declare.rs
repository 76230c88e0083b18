//! The declaration of a rule.

use crate::Rule;

/// A rule of the crate of a syntax, with its check of the text; `F` is the function that checks it.
pub struct TextRule<F> {
    /// The rule.
    pub rule: Rule,
    /// The function that checks the text; `None` if the reader reports the rule.
    pub check: Option<F>,
}

impl<F> TextRule<F> {
    /// The rules of a list; `N` is its length.
    ///
    /// # Panics
    /// Panics if `N` is not the length of the list.
    pub const fn rules<const N: usize>(list: &[&'static Self]) -> [&'static Rule; N] {
        assert!(list.len() == N, "`N` is not the number of rules");
        let mut rules = [&list[0].rule; N];
        let mut nth = 0;
        while nth < N {
            rules[nth] = &list[nth].rule;
            nth += 1;
        }
        rules
    }
}

impl<F> std::ops::Deref for TextRule<F> {
    type Target = Rule;

    fn deref(&self) -> &Rule {
        &self.rule
    }
}

/// Declares a rule as the static `RULE`. The doc comment is the manual page, the text of `explain` and the source of tests.
///
/// `check` names the input and the function: `Model(check)`, or `Text(check)` in the crate of a syntax, whose own macro
/// adds the type of its [`TextRule`](crate::TextRule). A rule may have both. `Text` alone is a rule that the reader
/// reports. Without `since`, the rule is in the first release; without `supersedes`, it supersedes none.
#[macro_export]
macro_rules! declare_rule {
    (
        $(static RULE: $text_rule:ty;)?
        $(#[doc = $doc:literal])+
        name: $name:literal,
        group: $group:expr,
        severity: $severity:expr,
        $(since: $since:literal,)?
        $(applies_to_foreign_guests: $applies_to_foreign_guests:literal,)?
        $(libvirt_only: $libvirt_only:literal,)?
        $(is_about_host: $is_about_host:literal,)?
        evidence: $evidence:expr,
        $(supersedes: $supersedes:expr,)?
        check: $check:ident $(($look:path))? $(, Text($line:path))?,
    ) => {
        $crate::declare_rule! {
            @static [$(#[doc = $doc])+] [$($text_rule)?]
            $crate::Rule {
                name: $name,
                group: $group,
                severity: $severity,
                since: $crate::declare_rule!(@or [$($since)?] "0.1.0"),
                applies_to_foreign_guests: false $(|| $applies_to_foreign_guests)?,
                libvirt_only: false $(|| $libvirt_only)?,
                is_about_host: false $(|| $is_about_host)?,
                evidence: $evidence,
                supersedes: $crate::declare_rule!(@or [$($supersedes)?] &[]),
                page: concat!($($doc, "\n",)+),
                file: file!(),
                check: $crate::declare_rule!(@check $check $(($look))?),
            },
            $crate::declare_rule!(@text $check $(($look))? $(, Text($line))?)
        }
    };
    (@static [$(#[doc = $doc:literal])+] [] $rule:expr, $text:expr) => {
        $(#[doc = $doc])+
        pub static RULE: $crate::Rule = $rule;
    };
    (@static [$(#[doc = $doc:literal])+] [$text_rule:ty] $rule:expr, $text:expr) => {
        $(#[doc = $doc])+
        pub static RULE: $text_rule = $crate::TextRule { rule: $rule, check: $text };
    };
    (@or [] $default:expr) => { $default };
    (@or [$value:expr] $default:expr) => { $value };
    (@check Text $(($look:path))?) => { $crate::Check::Text };
    (@check $check:ident $(($look:path))?) => { $crate::Check::$check $(($look))? };
    (@text Text($look:path)) => { Some($look) };
    (@text $check:ident $(($look:path))?) => { None };
    (@text $check:ident($look:path), Text($line:path)) => { Some($line) };
}
