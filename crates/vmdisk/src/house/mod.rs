//! House rules: rules of a site, as conditions in its `vmdisk.toml`.

mod condition;
mod names;

use std::collections::BTreeMap;
use std::sync::Mutex;

pub use condition::ConditionMistake;
pub use names::{facts, fields};

use crate::rules::{Check, Context, Group, Report, Rule, Severity, is_of_house};
use condition::Condition;

/// A rule of a site, in its own words.
///
/// ```
/// use vmdisk::{LintOptions, lint, read, settings::HouseRule};
///
/// let rule = HouseRule {
///     name: "house-serial",
///     when: "disk.media == 'disk' and not disk.serial",
///     message: "the disk has no serial number",
///     help: Some("write a serial number, by which the inventory finds the disk"),
///     ..HouseRule::default()
/// };
/// let disk = read("<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/srv/a.img'/>\
///     <target dev='vda' bus='virtio'/></disk>")?;
/// let options = LintOptions::default().rules([rule.compile()?]);
/// let report = lint(&disk, &options);
/// let found = report.diagnostics.iter().find(|found| found.rule.name == "house-serial").unwrap();
/// assert_eq!(found.title, "`vda`: the disk has no serial number");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HouseRule<'a> {
    /// The name, which starts with `house-`.
    pub name: &'a str,
    /// The condition under which it reports a disk, or a guest if it names no disk: an expression of minijinja.
    pub when: &'a str,
    /// The mistake: `the disk has no serial number`.
    pub message: &'a str,
    /// What to write instead.
    pub help: Option<&'a str>,
    /// The severity of its findings.
    pub severity: Severity,
    /// The subject.
    pub group: Group,
}

impl Default for HouseRule<'_> {
    fn default() -> Self {
        HouseRule {
            name: "",
            when: "",
            message: "",
            help: None,
            severity: Severity::Warning,
            group: Group::Clarity,
        }
    }
}

/// The compiled rules of the process, by all that they are written with.
static COMPILED: Mutex<BTreeMap<String, &'static Rule>> = Mutex::new(BTreeMap::new());

impl HouseRule<'_> {
    /// The rule. It is kept until the process ends, once for each text.
    ///
    /// # Errors
    /// If the name is not one of a house rule, the condition is not an expression, or the condition names an unknown field.
    pub fn compile(&self) -> Result<&'static Rule, ConditionMistake> {
        if !is_of_house(self.name) {
            let title = format!("`{}` is not a name of a house rule", self.name);
            let help = "write `house-` and lower-case words with hyphens, such as `house-serial`";
            return Err(ConditionMistake::new(title, help));
        }
        let key = format!("{self:?}");
        let mut compiled = COMPILED
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(rule) = compiled.get(&key) {
            return Ok(rule);
        }
        let condition = Condition::compile(self.when)?;
        let rule: &'static Rule = Box::leak(Box::new(self.with(condition)));
        compiled.insert(key, rule);
        Ok(rule)
    }

    fn with(&self, condition: Condition) -> Rule {
        let page = format!(
            "{}.\n\nA rule of this site, from its `vmdisk.toml`. It reports under this condition:\n\n    {}\n\n{}\n",
            sentence(self.message),
            self.when.trim().replace('\n', "\n    "),
            self.help
                .map(|help| format!("{}.", sentence(help)))
                .unwrap_or_default(),
        );
        let message = self.message.to_owned();
        let help = self.help.map(str::to_owned);
        let check = move |context: &Context<'_>, report: &mut Report<'_>| {
            condition.check(context, report, &message, help.as_deref());
        };
        Rule {
            name: self.name.to_owned().leak(),
            group: self.group,
            severity: self.severity,
            since: env!("CARGO_PKG_VERSION"),
            evidence: &[],
            applies_to_foreign_guests: false,
            libvirt_only: false,
            is_about_host: false,
            supersedes: &[],
            page: page.leak(),
            file: "vmdisk.toml",
            check: Check::Further(Box::leak(Box::new(check))),
        }
    }
}

/// A text with a capital letter first, and without a full stop.
fn sentence(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}
