//! The findings that a caller asks for.

use std::collections::{BTreeMap, BTreeSet};

use crate::Diagnostic;
use crate::built::built;
use crate::rules::{self, Severity, UnknownRule};

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
        /// Names of rules that are left out, even of those in `rules`.
        pub off: BTreeSet<String>,
        /// Severities by rule name, which override the severities that the rules report.
        pub severities: BTreeMap<String, Severity>,
        /// The least severity; `None` means advice, and pedantic findings of the rules in `pedantic`.
        pub least: Option<Severity>,
        /// Names of rules whose pedantic findings are reported if `least` is `None`.
        pub pedantic: BTreeSet<String>,
    }
}

/// The treatment of the findings of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleLevel {
    /// They are not reported.
    Off,
    /// They are reported.
    On,
    /// They are reported with this severity.
    Severity(Severity),
}

impl RuleLevel {
    /// The words of the levels.
    pub fn words() -> Vec<&'static str> {
        [&["off", "on"], Severity::WORDS].concat()
    }

    /// The level with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "off" => Some(RuleLevel::Off),
            "on" => Some(RuleLevel::On),
            other => Severity::from_word(other).map(RuleLevel::Severity),
        }
    }

    /// Puts the levels of groups first, so that a rule takes precedence over its group.
    #[cfg(any(feature = "serde", feature = "settings"))]
    pub(crate) fn sort(levels: &mut [(String, RuleLevel)]) {
        let rules = |name: &str| rules::named(name).map_or(0, |rules| rules.len());
        levels.sort_by_key(|(name, _)| std::cmp::Reverse(rules(name)));
    }
}

impl Selection {
    /// The selection of levels of rules and groups, of which later ones take precedence; of these rules and groups only, if
    /// there are some; and of further ones.
    ///
    /// ```
    /// use vmdisk::{RuleLevel, Selection};
    ///
    /// let levels = [("performance".to_owned(), RuleLevel::Off)];
    /// let selection = Selection::of(&levels, &[], &[])?;
    /// assert!(selection.has_rule("cache-unsafe") && !selection.has_rule("io-native-sparse-image"));
    ///
    /// let error = Selection::of(&[], &["cache-unsave".to_owned()], &[]).unwrap_err();
    /// assert_eq!(error.to_string(), "there is no such rule or group; did you mean `cache-unsafe`?");
    /// # Ok::<(), vmdisk::rules::UnknownRule>(())
    /// ```
    ///
    /// # Errors
    /// If a name is neither one of a rule nor one of a group.
    pub fn of<'a>(
        levels: impl IntoIterator<Item = &'a (String, RuleLevel)>,
        only: &[String],
        further: &[String],
    ) -> Result<Self, UnknownRule> {
        let mut off: BTreeSet<&str> = BTreeSet::new();
        let mut severities: BTreeMap<String, Severity> = BTreeMap::new();
        let mut pedantic: BTreeSet<String> = BTreeSet::new();
        for (selector, level) in levels {
            for rule in rules::named(selector)? {
                severities.remove(rule);
                match level {
                    RuleLevel::Off => {
                        off.insert(rule);
                        pedantic.remove(rule);
                    }
                    RuleLevel::On => {
                        off.remove(rule);
                        pedantic.insert(rule.to_owned());
                    }
                    RuleLevel::Severity(severity) => {
                        off.remove(rule);
                        severities.insert(rule.to_owned(), *severity);
                    }
                }
            }
        }
        let mut rules = None;
        if !only.is_empty() {
            pedantic = rules::all_named(only)?;
            let are_some = !only.iter().any(|name| name == rules::ALL);
            rules = are_some.then(|| pedantic.clone());
            off.clear();
        }
        let further = rules::all_named(further)?;
        pedantic.extend(further.iter().cloned());
        if let Some(rules) = &mut rules {
            rules.extend(further.iter().cloned());
        }
        let off = off.into_iter().filter(|name| !further.contains(*name));
        Ok(Selection::default()
            .rules(rules)
            .off(off.map(str::to_owned).collect::<BTreeSet<_>>())
            .severities(severities)
            .pedantic(pedantic))
    }

    /// True if the findings of a rule are selected.
    pub fn has_rule(&self, name: &str) -> bool {
        let is_among = |rules: &BTreeSet<String>| rules.contains(name);
        !self.off.contains(name) && self.rules.as_ref().is_none_or(is_among)
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
