//! The manual page of a rule, and the examples in it.

use crate::{Applicability, Rule, Severity};

/// An executed example of a rule's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The words after the language in the fence: `reported`, `not-reported` or `fixed`, then `facts-NAME` for
    /// `fixtures/facts/NAME.json` (repeated for several hosts), `qemu-7.2` or `libvirt-9.0` for a target, and
    /// `single-tenant` or `lab` for a policy. `beside-NAME` names `fixtures/beside/NAME.xml`, another guest of the host.
    /// `consent` marks a `fixed` example whose fix needs it. The pages leave out a `hidden` example, which only holds a condition.
    pub words: Vec<String>,
    /// The text between the fences.
    pub text: String,
}

impl Example {
    /// True if `word` is in the fence.
    pub fn says(&self, word: &str) -> bool {
        self.words.iter().any(|said| said == word)
    }

    /// The rest of the first word that starts with `prefix`.
    pub fn value_of(&self, prefix: &str) -> Option<&str> {
        self.words.iter().find_map(|word| word.strip_prefix(prefix))
    }

    /// The rests of all words that start with `prefix`.
    pub fn values_of(&self, prefix: &str) -> Vec<&str> {
        let words = self.words.iter();
        words.filter_map(|word| word.strip_prefix(prefix)).collect()
    }
}

impl Rule {
    /// The first sentence of the page.
    pub fn summary(&self) -> &'static str {
        self.page.lines().next().unwrap_or_default().trim()
    }

    /// The whole page in Markdown, with heading, metadata and evidence.
    pub fn explain(&self) -> String {
        let mut out = format!(
            "# {}\n\n{} · {}\n\n",
            self.name,
            self.severity,
            self.group.as_str()
        );
        push_shown(&mut out, self.page);
        out.push_str(&allow_it(self));
        out.push_str("\n## Evidence\n");
        for evidence in self.evidence {
            out.push_str(&format!("- {evidence}\n"));
        }
        out.push_str(&format!("\n## Versions\nSince vmdisk {}.\n", self.since));
        out
    }

    /// The kinds of fixes that the rule offers, as its examples show them.
    pub fn fixes(&self) -> Vec<Applicability> {
        let examples = self.examples();
        let fixed = |consent| {
            let is_one = |it: &Example| it.says("fixed") && it.says("consent") == consent;
            examples.iter().any(is_one)
        };
        let kinds = [(false, Applicability::Safe), (true, Applicability::Unsafe)];
        let kinds = kinds.into_iter().filter(|(consent, _)| fixed(*consent));
        kinds.map(|(_, kind)| kind).collect()
    }

    /// The executed examples of the page.
    pub fn examples(&self) -> Vec<Example> {
        let mut found = Vec::new();
        let mut open: Option<Example> = None;
        for line in lines(self.page) {
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
}

/// Lines of a doc comment, without the space after `///`.
fn lines(page: &str) -> impl Iterator<Item = &str> {
    page.lines()
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
}

/// Adds the text of a page without its hidden examples.
fn push_shown(out: &mut String, page: &str) {
    let mut is_hidden = false;
    for line in lines(page) {
        let fence = line.strip_prefix("```");
        if fence.is_some_and(|info| info.split(',').any(|word| word == "hidden")) {
            is_hidden = true;
        } else if is_hidden {
            is_hidden = fence.is_none();
        } else {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

/// The section on allowing findings of a rule.
fn allow_it(rule: &Rule) -> String {
    let name = rule.name;
    let mut out = format!(
        "\n## Allow it\n\
         For one place, write the reason in a comment before it: `<!-- vmdisk: allow({name}) REASON -->` in XML,\n\
         `# vmdisk: allow({name}) REASON` in a spec. For command lines and whole runs, use `--ignore {name}`.\n"
    );
    match rule.severity {
        Severity::Pedantic => out.push_str(&format!(
            "Pedantic findings are reported only on request: `--min-severity pedantic`, `--select {name}`, or\n\
             `{name} = \"on\"` in the configuration file.\n"
        )),
        Severity::Advice => {
            out.push_str("Advice does not fail a run without `--fail-on advice`.\n");
        }
        Severity::Warning | Severity::Error => {}
    }
    if !rule.supersedes.is_empty() {
        out.push_str(&format!(
            "Where this rule reports a disk, these rules do not report it: {}.\n",
            rule.supersedes.join(", ")
        ));
    }
    out
}
