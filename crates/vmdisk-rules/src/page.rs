//! The manual page of a rule, and the examples in it.

use crate::{Rule, Severity};

/// One executed example of a rule's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Words behind the language in the fence: `reported`, `not-reported` or `fixed`, then
    /// `facts-NAME` for `fixtures/facts/NAME.json` (several are several hosts), `qemu-7.2` or `libvirt-9.0` for a target, and
    /// `single-tenant` or `lab` for a policy.
    pub words: Vec<String>,
    /// The text between the fences.
    pub text: String,
}

impl Example {
    /// True if the fence says `word`.
    pub fn says(&self, word: &str) -> bool {
        self.words.iter().any(|said| said == word)
    }

    /// What follows `prefix` in the first word that starts with it.
    pub fn value_of(&self, prefix: &str) -> Option<&str> {
        self.words.iter().find_map(|word| word.strip_prefix(prefix))
    }

    /// What follows `prefix` in each word that starts with it.
    pub fn values_of(&self, prefix: &str) -> Vec<&str> {
        let words = self.words.iter();
        words.filter_map(|word| word.strip_prefix(prefix)).collect()
    }
}

/// Lines of a doc comment, without the space behind `///`.
fn lines(page: &str) -> impl Iterator<Item = &str> {
    page.lines()
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
}

pub(crate) fn summary(page: &'static str) -> &'static str {
    page.lines().next().unwrap_or_default().trim()
}

pub(crate) fn explain(rule: &Rule) -> String {
    let mut out = format!("# {}\n\n", rule.name);
    out.push_str(&format!(
        "{} · {} · since {}\n\n",
        rule.severity,
        rule.group.as_str(),
        rule.since
    ));
    for line in lines(rule.page) {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.push_str("\n## Evidence\n");
    for evidence in rule.evidence {
        out.push_str(&format!("- {evidence}\n"));
    }
    if !rule.supersedes.is_empty() {
        out.push_str(&format!(
            "\nWhere this rule reports a disk, these stay silent about it: {}.\n",
            rule.supersedes.join(", ")
        ));
    }
    if rule.severity == Severity::Advice {
        out.push_str("\nAdvice does not fail a run unless `--fail-on advice` asks for it.\n");
    }
    out
}

pub(crate) fn examples(page: &str) -> Vec<Example> {
    let mut found = Vec::new();
    let mut open: Option<Example> = None;
    for line in lines(page) {
        match (line.strip_prefix("```"), open.take()) {
            (Some(info), None) => {
                open = Some(Example {
                    words: info.split(',').map(|word| word.trim().to_owned()).collect(),
                    text: String::new(),
                });
            }
            (Some(_), Some(done)) => found.push(done),
            (None, Some(mut example)) => {
                example.text.push_str(line);
                example.text.push('\n');
                open = Some(example);
            }
            (None, None) => {}
        }
    }
    found
}
