//! The findings that a caller asks for.

use std::collections::{BTreeMap, BTreeSet};

use crate::Diagnostic;
use crate::built::built;
use crate::rules::Severity;

built! {
    /// The findings that a caller asks for, and their severities. All others are left out of a report, and not fixed.
    ///
    /// ```
    /// use vmdisk::{LintOptions, Selection, lint, read};
    ///
    /// let document = read("<disk type='file'>\n<driver name='qemu' type='qcow2' cache='unsafe' io='native'/>\n\
    ///     <source file='/a'/>\n<target dev='vda' bus='virtio'/>\n</disk>")?;
    /// let selection = Selection::default().rules(std::collections::BTreeSet::from(["cache-unsafe".to_owned()]));
    /// let report = lint(&document, &LintOptions::default().selection(selection));
    /// let names: Vec<&str> = report.diagnostics.iter().map(|diagnostic| diagnostic.rule.name).collect();
    /// assert_eq!(names, ["cache-unsafe"]);
    /// # Ok::<(), vmdisk::ReadFailure>(())
    /// ```
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Selection {
        /// Names of the rules; `None` means all.
        pub rules: Option<BTreeSet<String>>,
        /// Severities by rule name, which override the severities that the rules report.
        pub severities: BTreeMap<String, Severity>,
        /// The least severity; `None` means advice, and pedantic findings of the rules in `pedantic`.
        pub least: Option<Severity>,
        /// Names of rules whose pedantic findings are reported if `least` is `None`.
        pub pedantic: BTreeSet<String>,
    }
}

impl Selection {
    /// True if the findings of a rule are selected.
    pub fn has_rule(&self, name: &str) -> bool {
        self.rules.as_ref().is_none_or(|rules| rules.contains(name))
    }

    /// True if a finding is selected.
    pub fn has(&self, diagnostic: &Diagnostic) -> bool {
        self.has_severity(diagnostic.rule.name, diagnostic.severity)
    }

    /// True if a finding of a rule, which reports it with this severity, is selected.
    pub(crate) fn has_reported(&self, name: &str, severity: Severity) -> bool {
        let own = self.severities.get(name);
        self.has_severity(name, own.copied().unwrap_or(severity))
    }

    fn has_severity(&self, name: &str, severity: Severity) -> bool {
        let least = match self.least {
            Some(least) => least,
            None if self.pedantic.contains(name) => Severity::Pedantic,
            None => Severity::Advice,
        };
        self.has_rule(name) && severity >= least
    }

    /// Gives findings the severities that the caller wants.
    pub(crate) fn set_severities(&self, diagnostics: &mut [Diagnostic]) {
        if self.severities.is_empty() {
            return;
        }
        for diagnostic in diagnostics {
            if let Some(severity) = self.severities.get(diagnostic.rule.name) {
                diagnostic.severity = *severity;
            }
        }
    }
}
