//! A rule: metadata, a manual page and a pure function.

use crate::{Comparison, Context, Evidence, Example, Report, page};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Works as it is; a matter of taste. Reported only on request.
    Pedantic,
    /// Could be better.
    Advice,
    /// Probably not what was wanted.
    Warning,
    /// Will not start, or loses or leaks data.
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

    /// The word in reports and on the command line.
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
    /// The guest does not start, or libvirt does not take the configuration.
    Startup,
    /// Data is lost or corrupted.
    DataSafety,
    /// Data is seen by those who should not.
    Security,
    /// Slower than it could be.
    Performance,
    /// Space that is never given back.
    Space,
    /// Does nothing, or not what it says.
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

    /// The word in lists.
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
    /// Its name: kebab-case, the bad pattern, never changed once released.
    pub name: &'static str,
    /// The subject.
    pub group: Group,
    /// How much its findings usually matter; a finding may differ, and says why.
    pub severity: Severity,
    /// Version of vmdisk that first had it.
    pub since: &'static str,
    /// The evidence.
    pub evidence: &'static [Evidence],
    /// True if it judges how the text is written; others judge what QEMU makes of it, and have nothing to say
    /// about guests that QEMU does not run.
    pub is_about_text: bool,
    /// True if it judges what libvirt takes; it has nothing to say about command lines of QEMU.
    pub is_about_libvirt: bool,
    /// Rules that stay silent about a disk where this one speaks: one cause gives one finding.
    pub supersedes: &'static [&'static str],
    /// The manual page, in Markdown, without the heading.
    pub page: &'static str,
    /// The file that declares it.
    pub file: &'static str,
    /// The input that the rule checks, with the function.
    pub check: Check,
}

/// The input that a rule checks.
#[derive(Clone, Copy)]
pub enum Check {
    /// The model of one guest, with facts and target.
    Model(fn(&Context<'_>, &mut Report)),
    /// The hosts that one guest may run on.
    Hosts(fn(&Comparison<'_>, &mut Report)),
    /// The text of one syntax, which its crate knows: the reader reports it, or the list of that crate has the function.
    Text,
    /// A QEMU that was started with the disks; whoever starts it reports what it says.
    Trial,
    /// The allowances of a file; whoever settles them reports them.
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

    /// True if it compares the hosts that one guest may run on.
    pub const fn compares_hosts(&self) -> bool {
        matches!(self.check, Check::Hosts(_))
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

/// Declares a rule. Its doc comment is the manual page, the `explain` text and the tests.
#[macro_export]
macro_rules! declare_rule {
    (
        $(#[doc = $doc:literal])+
        $vis:vis static RULE = {
            name: $name:literal,
            group: $group:expr,
            severity: $severity:expr,
            since: $since:literal,
            $(is_about_text: $is_about_text:literal,)?
            $(is_about_libvirt: $is_about_libvirt:literal,)?
            evidence: $evidence:expr,
            supersedes: $supersedes:expr,
            check: $check:ident $(($look:path))?,
        }
    ) => {
        $(#[doc = $doc])+
        $vis static RULE: $crate::Rule = $crate::Rule {
            name: $name,
            group: $group,
            severity: $severity,
            since: $since,
            is_about_text: false $(|| $is_about_text)?,
            is_about_libvirt: false $(|| $is_about_libvirt)?,
            evidence: $evidence,
            supersedes: $supersedes,
            page: concat!($($doc, "\n",)+),
            file: file!(),
            check: $crate::Check::$check $(($look))?,
        };
    };
}
