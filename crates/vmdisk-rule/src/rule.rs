//! A rule: metadata, a manual page and a pure function.

use crate::{Comparison, Context, Evidence, Example, OtherGuests, Report, page};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Works as it is; a matter of taste. Reported only on request.
    Pedantic,
    /// Could be better.
    Advice,
    /// Probably not what was intended.
    Warning,
    /// The guest does not start, or data is lost or leaked.
    Error,
}

impl Severity {
    /// Every severity, the least first.
    pub const ALL: &'static [Severity] = &[
        Severity::Pedantic,
        Severity::Advice,
        Severity::Warning,
        Severity::Error,
    ];

    /// The name in reports and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Pedantic => "pedantic",
            Severity::Advice => "advice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The subject of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// The guest does not start, or libvirt refuses the configuration.
    Startup,
    /// Data is lost or corrupted.
    DataSafety,
    /// Data is visible to users who must not see it.
    Security,
    /// The disk is slower than it could be.
    Performance,
    /// Space is never freed.
    Space,
    /// A setting has no effect, or a misleading one.
    Clarity,
}

impl Group {
    /// Every group.
    pub const ALL: &'static [Group] = &[
        Group::Startup,
        Group::DataSafety,
        Group::Security,
        Group::Performance,
        Group::Space,
        Group::Clarity,
    ];

    /// The name in lists.
    pub const fn as_str(self) -> &'static str {
        match self {
            Group::Startup => "startup",
            Group::DataSafety => "data-safety",
            Group::Security => "security",
            Group::Performance => "performance",
            Group::Space => "space",
            Group::Clarity => "clarity",
        }
    }
}

/// One rule.
pub struct Rule {
    /// Its name: kebab-case, names the bad pattern, never changed after a release.
    pub name: &'static str,
    /// The subject.
    pub group: Group,
    /// The usual severity; a finding may differ and gives the reason.
    pub severity: Severity,
    /// The first version of vmdisk that has the rule.
    pub since: &'static str,
    /// The evidence.
    pub evidence: &'static [Evidence],
    /// True if it checks the text itself; other rules check QEMU's behaviour, and skip guests that QEMU does not run.
    pub applies_to_foreign_guests: bool,
    /// True if it checks requirements of libvirt; such a rule skips QEMU command lines.
    pub libvirt_only: bool,
    /// Rules that do not report a disk that this rule reports: one cause gives one finding.
    pub supersedes: &'static [&'static str],
    /// The manual page, in Markdown, without the heading.
    pub page: &'static str,
    /// The file that declares it.
    pub file: &'static str,
    /// The input of the check, with the function.
    pub check: Check,
}

/// The input of a rule's check.
#[derive(Clone, Copy)]
pub enum Check {
    /// The model of one guest, with facts and target.
    Model(fn(&Context<'_>, &mut Report)),
    /// The hosts that one guest may run on.
    Hosts(fn(&Comparison<'_>, &mut Report)),
    /// The model of one guest, and the other guests of the run on the same host.
    Guests(fn(&Context<'_>, &OtherGuests, &mut Report)),
    /// The text of one syntax: a [`TextRule`](crate::TextRule) has the function, or the reader reports the rule.
    Text,
    /// The result of starting QEMU with the disks; the caller that starts it reports its messages.
    Trial,
    /// The allowances of a file; the code that applies them reports the findings.
    Allowances,
}

impl Rule {
    /// The first sentence of the page.
    pub fn summary(&self) -> &'static str {
        page::summary(self.page)
    }

    /// The whole page in Markdown, with heading, metadata and evidence.
    pub fn explain(&self) -> String {
        page::explain(self)
    }

    /// The consequence of what the rule reports, if its evidence shows one: the note of a finding without notes.
    pub fn consequence(&self) -> Option<&'static str> {
        let is_refused = |evidence: &Evidence| evidence.is_refused_by_libvirt();
        let is_shown = self.libvirt_only && self.evidence.iter().any(is_refused);
        is_shown.then_some("libvirt refuses the guest")
    }

    /// True if the rule compares the hosts that one guest may run on.
    pub const fn compares_hosts(&self) -> bool {
        matches!(self.check, Check::Hosts(_))
    }

    /// True if the rule compares the guests of one host.
    pub const fn compares_guests(&self) -> bool {
        matches!(self.check, Check::Guests(_))
    }

    /// The executed examples of the page.
    pub fn examples(&self) -> Vec<Example> {
        page::examples(self.page)
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rule").field(&self.name).finish()
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Rule {}

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

/// Declares a rule. The doc comment is the manual page, the text of `explain` and the source of tests.
///
/// `check` names the input and the function: `Model(check)`, or `Text(check)` in the crate of a syntax, where the type
/// of the static is that crate's [`TextRule`](crate::TextRule). A rule may have both. `Text` alone is a rule that
/// the reader reports.
#[macro_export]
macro_rules! declare_rule {
    (
        $(#[doc = $doc:literal])+
        $vis:vis static RULE $(: $text_rule:ty)? = {
            name: $name:literal,
            group: $group:expr,
            severity: $severity:expr,
            since: $since:literal,
            $(applies_to_foreign_guests: $applies_to_foreign_guests:literal,)?
            $(libvirt_only: $libvirt_only:literal,)?
            evidence: $evidence:expr,
            supersedes: $supersedes:expr,
            check: $check:ident $(($look:path))? $(, Text($line:path))?,
        }
    ) => {
        $crate::declare_rule! {
            @static [$(#[doc = $doc])+ $vis] [$($text_rule)?]
            $crate::Rule {
                name: $name,
                group: $group,
                severity: $severity,
                since: $since,
                applies_to_foreign_guests: false $(|| $applies_to_foreign_guests)?,
                libvirt_only: false $(|| $libvirt_only)?,
                evidence: $evidence,
                supersedes: $supersedes,
                page: concat!($($doc, "\n",)+),
                file: file!(),
                check: $crate::declare_rule!(@check $check $(($look))?),
            },
            $crate::declare_rule!(@text $check $(($look))? $(, Text($line))?)
        }
    };
    (@static [$(#[doc = $doc:literal])+ $vis:vis] [] $rule:expr, $text:expr) => {
        $(#[doc = $doc])+
        $vis static RULE: $crate::Rule = $rule;
    };
    (@static [$(#[doc = $doc:literal])+ $vis:vis] [$text_rule:ty] $rule:expr, $text:expr) => {
        $(#[doc = $doc])+
        $vis static RULE: $text_rule = $crate::TextRule { rule: $rule, check: $text };
    };
    (@check Text $(($look:path))?) => { $crate::Check::Text };
    (@check $check:ident $(($look:path))?) => { $crate::Check::$check $(($look))? };
    (@text Text($look:path)) => { Some($look) };
    (@text $check:ident $(($look:path))?) => { None };
    (@text $check:ident($look:path), Text($line:path)) => { Some($line) };
}
