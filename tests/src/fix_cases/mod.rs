//! Texts to fix: the examples of all rules, the fixtures and the fuzz corpus, each in every syntax.

mod forms;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use vmdisk::rules::{Example, RULES};
use vmdisk::{
    Facts, FixScope, Fleet, Host, LintOptions, LintReport, Policy, Selection, Severity, Target,
    fix, lint, read,
};

pub use forms::Syntax;

use crate::fixtures;

/// A text, and what it is checked against.
#[derive(Clone, Debug)]
pub struct FixCase {
    /// Where it comes from: the rule and the number of its example, or a file.
    pub origin: String,
    /// How it is written.
    pub syntax: Syntax,
    /// The text.
    pub text: String,
    /// Facts of the hosts that it may run on.
    pub facts: Vec<Rc<Facts>>,
    /// What it is meant to run on.
    pub target: Target,
    /// Who shares the host.
    pub policy: Policy,
}

impl FixCase {
    /// Calls `f` with what the text is checked against.
    pub fn with_options<R>(&self, f: impl FnOnce(&LintOptions) -> R) -> R {
        let options = LintOptions::default()
            .target(self.target.clone())
            .policy(self.policy)
            .selection(Selection::default().least(Some(Severity::Pedantic)));
        match self.facts.as_slice() {
            [] => f(&options),
            [facts] => {
                let host = Host::new((**facts).clone());
                f(&options
                    .host(host)
                    .target(self.target.clone().or(Target::from_facts(facts))))
            }
            several => {
                let named = several
                    .iter()
                    .map(|facts| ("a host", Host::new((**facts).clone())));
                let fleet = Fleet::new(named, &self.target);
                f(&options.fleet(fleet))
            }
        }
    }
}

/// A text after its fixes.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The text.
    pub after: String,
    /// The rules that reported more before.
    pub rules: BTreeSet<&'static str>,
}

impl FixCase {
    /// Fixes the text for a target; `None` if nothing is changed.
    ///
    /// # Panics
    /// If the text cannot be read.
    pub fn changed(&self, scope: FixScope, target: &Target) -> Option<Changed> {
        let case = FixCase {
            target: target.clone(),
            ..self.clone()
        };
        case.with_options(|options| {
            let before = lint(&read(&self.text).expect("cases are read"), options);
            if before.diagnostics.iter().all(|found| found.fix.is_none()) {
                return None;
            }
            let fixed = fix(&self.text, options, scope).expect("cases are read");
            let count = |report: &LintReport, rule: &str| {
                let found = report.diagnostics.iter();
                found.filter(|found| found.rule.name == rule).count()
            };
            let rules = before.diagnostics.iter().map(|found| found.rule.name);
            let rules = rules.filter(|rule| count(&before, rule) > count(&fixed.report, rule));
            (*fixed.document.text != self.text).then(|| Changed {
                rules: rules.collect(),
                after: fixed.document.text.to_string(),
            })
        })
    }
}

/// All texts that are fixed, in every syntax that can express them.
///
/// # Panics
/// If a fixture cannot be read.
pub fn fix_cases() -> Vec<FixCase> {
    let mut cases = Vec::new();
    for source in sources() {
        let Ok(document) = read(&source.text) else {
            continue;
        };
        let own = Syntax::of(&document);
        for (syntax, text) in forms::all(&document, &source.target) {
            if syntax != own {
                cases.push(FixCase {
                    syntax,
                    text,
                    ..source.clone()
                });
            }
        }
        cases.push(FixCase {
            syntax: own,
            ..source
        });
    }
    cases
}

fn sources() -> Vec<FixCase> {
    let mut sources = of_rules();
    sources.extend(of_fixtures());
    sources
}

fn of_rules() -> Vec<FixCase> {
    let mut known: HashMap<String, Rc<Facts>> = HashMap::new();
    let mut cases = Vec::new();
    for rule in RULES {
        for (nth, example) in rule.examples().into_iter().enumerate() {
            if !["xml", "args"]
                .iter()
                .any(|language| example.says(language))
            {
                continue;
            }
            let facts = example.values_of("facts-").into_iter().map(|name| {
                let path = fixtures().join(format!("facts/{name}.json"));
                let facts = known.entry(name.to_owned());
                Rc::clone(facts.or_insert_with(|| facts_at(&path)))
            });
            cases.push(FixCase {
                origin: format!("{} #{}", rule.name, nth + 1),
                syntax: Syntax::Xml,
                facts: facts.collect(),
                target: target_of(&example),
                policy: policy_of(&example),
                text: example.text,
            });
        }
    }
    cases
}

fn of_fixtures() -> Vec<FixCase> {
    let mut cases = Vec::new();
    let folders = [
        "articles",
        "clean",
        "command-lines",
        "guests",
        "mistakes",
        "targets",
        "fixes",
        "specs",
        "fuzz/command-line",
        "fuzz/domain-xml",
    ];
    for folder in folders {
        let mut files = Vec::new();
        collect(&fixtures().join(folder), &mut files);
        files.sort();
        for path in files {
            let Ok(mut text) = String::from_utf8(std::fs::read(&path).expect("it can be read"))
            else {
                continue;
            };
            if folder == "fuzz/command-line" {
                // As the fuzz target reads them.
                text.insert_str(0, "qemu-system-x86_64 ");
            }
            let name = path.strip_prefix(fixtures()).expect("it is a fixture");
            let plain = FixCase {
                origin: name.display().to_string(),
                syntax: Syntax::Xml,
                text,
                facts: Vec::new(),
                target: Target::default(),
                policy: Policy::default(),
            };
            let beside = [
                path.with_extension("facts.json"),
                path.with_file_name("facts.json"),
            ];
            if let Some(facts) = beside.iter().find(|path| path.is_file()) {
                cases.push(FixCase {
                    origin: format!("{} with facts", plain.origin),
                    facts: vec![facts_at(facts)],
                    ..plain.clone()
                });
            }
            cases.push(plain);
        }
    }
    cases
}

/// Files of a folder that may be configurations.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("a folder can be read to its end").path();
        if path.is_dir() {
            collect(&path, files);
            continue;
        }
        let end = path.extension().and_then(|end| end.to_str());
        if !matches!(end, Some("json" | "txt")) {
            files.push(path);
        }
    }
}

fn facts_at(path: &Path) -> Rc<Facts> {
    let text = std::fs::read_to_string(path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let read = Facts::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Rc::new(read.facts)
}

fn target_of(example: &Example) -> Target {
    let words: Vec<String> = ["qemu", "libvirt", "kernel", "machine"]
        .iter()
        .filter_map(|key| Some(format!("{key}={}", example.value_of(&format!("{key}-"))?)))
        .collect();
    if words.is_empty() {
        return Target::default();
    }
    words
        .join(",")
        .parse()
        .expect("a fence names a valid target")
}

fn policy_of(example: &Example) -> Policy {
    let mut policies = Policy::ALL.iter().copied();
    let policy = policies.find(|policy| example.says(policy.as_str()));
    policy.unwrap_or_default()
}

/// Numbers of cases by syntax, in a line.
pub fn by_syntax<'a>(syntaxes: impl IntoIterator<Item = &'a Syntax>) -> String {
    let mut counts: BTreeMap<Syntax, usize> = BTreeMap::new();
    for syntax in syntaxes {
        *counts.entry(*syntax).or_default() += 1;
    }
    let counts = counts.iter();
    let parts: Vec<String> = counts
        .map(|(syntax, count)| format!("{} {count}", syntax.name()))
        .collect();
    parts.join(", ")
}
