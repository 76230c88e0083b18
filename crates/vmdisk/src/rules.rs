//! All rules: those about the model, those about a syntax, and those of every reader.

use std::collections::BTreeSet;

use vmdisk_facts::{Facts, HostIndex};
use vmdisk_libvirt::Document as Xml;
use vmdisk_qemu::Document as CommandLine;

pub use vmdisk_rule::{
    Applicability, Check, ComparedHost, Comparison, Confidence, Consumer, Context, Details,
    Evidence, Example, Finding, FindingText, Fix, Group, Missing, NotChecked, OtherGuests, Outcome,
    Policy, Problem, Related, Report, Resource, Rule, Severity, SharedImage, Sharing, Shortage,
};
pub use vmdisk_rules::{FOLLOW_UPS, FollowUp, may_follow};

use crate::{measured, unlocated, unsettled};

const LISTS: [&[&Rule]; 4] = [
    vmdisk_rule::reading::RULES,
    vmdisk_rules::RULES,
    vmdisk_libvirt::RULES,
    vmdisk_qemu::RULES,
];

const COUNT: usize = LISTS[0].len() + LISTS[1].len() + LISTS[2].len() + LISTS[3].len();

/// Every rule, sorted by name.
pub static RULES: &[&Rule] = &vmdisk_rule::joined::<COUNT>(&LISTS);

/// The rule with this name.
pub fn find(name: &str) -> Option<&'static Rule> {
    let at = RULES.binary_search_by(|rule| rule.name.cmp(name)).ok()?;
    Some(RULES[at])
}

/// True if a name is one of a house rule: `house-` and lower-case words with hyphens. No other rule has such a name.
pub fn is_of_house(name: &str) -> bool {
    let is_word = |word: &str| {
        let mut letters = word.bytes();
        !word.is_empty() && letters.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
    };
    name.strip_prefix("house-")
        .is_some_and(|rest| rest.split('-').all(is_word))
}

/// True if a rule of vmdisk has this name, or a house rule may have it.
pub fn is_name(name: &str) -> bool {
    find(name).is_some() || is_of_house(name)
}

/// The address of the page of a rule.
pub fn page_address(name: &str) -> String {
    let page = match is_of_house(name) {
        true => "house-rules".to_owned(),
        false => format!("rules/{name}"),
    };
    format!("{}/blob/main/docs/{page}.md", env!("CARGO_PKG_REPOSITORY"))
}

/// The word that selects every rule.
pub const ALL: &str = "all";

/// A name that no rule and no group of rules has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no such rule or group; {}", self.help())]
#[non_exhaustive]
pub struct UnknownRule {
    /// The name.
    pub name: String,
    /// The name that may be meant.
    pub near: Option<&'static str>,
}

impl UnknownRule {
    /// An unknown name.
    pub(crate) fn new(name: &str) -> Self {
        let groups = Group::ALL.iter().map(|group| group.as_str());
        let known = groups.chain([ALL]).chain(RULES.iter().map(|it| it.name));
        UnknownRule {
            name: name.to_owned(),
            near: vmdisk_source::nearest(name, known.filter(|known| *known != name)),
        }
    }

    fn help(&self) -> String {
        match self.near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`vmdisk explain --list` lists them".to_owned(),
        }
    }
}

/// The rules with this name: a rule, those of a group, or [`ALL`]. A name of a house rule is its own.
///
/// # Errors
/// If there are none.
pub fn named(name: &str) -> Result<Vec<&str>, UnknownRule> {
    if is_of_house(name) {
        return Ok(vec![name]);
    }
    let is_meant = |rule: &&&Rule| name == ALL || rule.name == name || rule.group.as_str() == name;
    let rules: Vec<&str> = RULES.iter().filter(is_meant).map(|it| it.name).collect();
    match rules.is_empty() {
        true => Err(UnknownRule::new(name)),
        false => Ok(rules),
    }
}

/// The rules with one of these names.
///
/// # Errors
/// As [`named`].
pub fn all_named(names: &[String]) -> Result<BTreeSet<String>, UnknownRule> {
    let mut all = BTreeSet::new();
    for name in names {
        all.extend(named(name)?.into_iter().map(str::to_owned));
    }
    Ok(all)
}

/// The text that a configuration was read from, with all that its reader knows.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    /// libvirt's XML, with its text.
    Xml(&'a Xml, &'a str),
    /// A command line of QEMU.
    CommandLine(&'a CommandLine),
    /// A spec, whose reader reports its own mistakes.
    Spec,
}

impl Text<'_> {
    fn problems(&self) -> &[Problem] {
        match self {
            Text::Xml(document, _) => &document.problems,
            Text::CommandLine(document) => &document.problems,
            Text::Spec => &[],
        }
    }
}

/// Number of checks of a guest that lack an input without facts.
const USUALLY_NOT_CHECKED: usize = 80;

/// Rules that a caller adds.
type Further<'a> = &'a [&'static Rule];

/// How all rules are run over one text: [`check_with`] or [`check_briefly`].
pub(crate) type CheckText = fn(Text<'_>, &Context<'_>, Further<'_>) -> Outcome;

/// Runs all rules over one configuration and its text.
pub fn check(text: Text<'_>, context: &Context<'_>) -> Outcome {
    check_with(text, context, &[])
}

/// As [`check`], with further rules.
pub(crate) fn check_with(text: Text<'_>, context: &Context<'_>, further: Further<'_>) -> Outcome {
    let outcome = Outcome {
        not_checked: Vec::with_capacity(USUALLY_NOT_CHECKED),
        ..Outcome::default()
    };
    check_into(outcome, text, context, further)
}

/// As [`check_with`], with a [brief](Outcome::is_brief) outcome.
pub(crate) fn check_briefly(
    text: Text<'_>,
    context: &Context<'_>,
    further: Further<'_>,
) -> Outcome {
    let outcome = Outcome {
        is_brief: true,
        ..Outcome::default()
    };
    check_into(outcome, text, context, further)
}

fn check_into(
    mut outcome: Outcome,
    text: Text<'_>,
    context: &Context<'_>,
    further: Further<'_>,
) -> Outcome {
    outcome.add_problems(context, text.problems());
    match text {
        Text::Xml(document, text) => {
            vmdisk_libvirt::check(document, text, context, &mut outcome);
        }
        // The reader of specs reports mistakes of the text itself.
        Text::Spec => {}
        Text::CommandLine(document) => vmdisk_qemu::check(document, context, &mut outcome),
    }
    judge_model(context, further, &mut outcome);
    if unlocated::has_volumes(context.domain) {
        let facts = unlocated::without_paths(context.host.map(HostIndex::facts));
        let host = HostIndex::new(&facts);
        unlocated::add(context.domain, &mut outcome, |domain| {
            let mut assumed = Outcome::default();
            let host = Some(&host);
            judge_model(
                &Context {
                    domain,
                    host,
                    ..*context
                },
                further,
                &mut assumed,
            );
            assumed
        });
    }
    if let Some(open) = context.open_fields {
        let words = match text {
            Text::CommandLine(document) => &document.open_words,
            Text::Xml(..) | Text::Spec => &BTreeSet::new(),
        };
        outcome.leave_open(open, words);
    }
    outcome.settle();
    measured::cite(context.domain, context.host, &mut outcome.findings);
    unsettled::take_back_fixes(&mut outcome.findings);
    outcome
}

/// Runs the rules about the model over one configuration that has no text.
pub fn check_model(context: &Context<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    judge_model(context, &[], &mut outcome);
    outcome.settle();
    outcome
}

fn judge_model(context: &Context<'_>, further: Further<'_>, outcome: &mut Outcome) {
    if context.domain.foreign_type().is_some() {
        return judge_foreign(context, further, outcome);
    }
    let is_for_libvirt = context.is_for_libvirt();
    let alone = OtherGuests::default();
    for rule in RULES.iter().chain(further) {
        if rule.libvirt_only && !is_for_libvirt {
            continue;
        }
        match rule.check {
            Check::Model(check) => outcome.run(rule, |report| check(context, report)),
            Check::Guests(check) => outcome.run(rule, |report| check(context, &alone, report)),
            Check::Further(check) => outcome.run(rule, |report| check(context, report)),
            Check::Hosts(_) | Check::Text | Check::Trial | Check::Allowances => {}
        }
    }
}

/// Runs the rules that apply to the guests of other hypervisors; the others report that they do not apply.
fn judge_foreign(context: &Context<'_>, further: Further<'_>, outcome: &mut Outcome) {
    for rule in RULES.iter().chain(further) {
        match rule.check {
            Check::Further(check) => outcome.judge(context, rule, |report| check(context, report)),
            Check::Model(check) => outcome.judge(context, rule, |report| check(context, report)),
            Check::Hosts(_) | Check::Guests(_) | Check::Text | Check::Trial | Check::Allowances => {
                outcome.judge(context, rule, |_| {});
            }
        }
    }
}

/// Runs the rules that compare the guests of a host over one of them.
pub fn check_guests(context: &Context<'_>, others: &OtherGuests) -> Outcome {
    let mut outcome = Outcome::default();
    for rule in RULES {
        if let Check::Guests(check) = rule.check {
            outcome.judge(context, rule, |report| check(context, others, report));
        }
    }
    outcome.settle();
    outcome
}

/// Compares the hosts that one configuration may run on; with fewer than two there is nothing to compare.
pub fn compare(comparison: &Comparison<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let is_foreign = comparison.domain.foreign_type().is_some();
    // Each host already reports that rules about QEMU do not apply to this guest.
    if comparison.hosts.len() < 2 || is_foreign {
        return outcome;
    }
    judge_hosts(comparison, &mut outcome);
    if unlocated::has_volumes(comparison.domain) {
        let facts: Vec<Facts> = comparison
            .hosts
            .iter()
            .map(|host| unlocated::without_paths(Some(host.host.facts())))
            .collect();
        let indices: Vec<HostIndex<'_>> = facts.iter().map(HostIndex::new).collect();
        let hosts: Vec<ComparedHost<'_>> = comparison
            .hosts
            .iter()
            .zip(&indices)
            .map(|(compared, host)| ComparedHost { host, ..*compared })
            .collect();
        unlocated::add(comparison.domain, &mut outcome, |domain| {
            let mut assumed = Outcome::default();
            let hosts = &hosts;
            judge_hosts(&Comparison { domain, hosts }, &mut assumed);
            assumed
        });
    }
    outcome
}

fn judge_hosts(comparison: &Comparison<'_>, outcome: &mut Outcome) {
    for rule in RULES {
        if let Check::Hosts(compare) = rule.check {
            outcome.run(rule, |report| compare(comparison, report));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmdisk_facts::Target;

    fn said_of_a_guest_of(word: &str) -> (Vec<&'static str>, Vec<NotChecked>) {
        let xml = format!(
            "<domain type='{word}'><name>a</name><devices><disk type='file' device='disk'>\
             <driver name='qemu' type='raw' cache='unsafe'/><source file='/a.img'/><sorce/>\
             <target dev='vda' bus='virtio'/></disk></devices></domain>"
        );
        let document = vmdisk_libvirt::read(&xml).unwrap();
        let target = Target::default();
        let context = Context::new(&document.domain, &target);
        let outcome = check(Text::Xml(&document, &xml), &context);
        let names = outcome.findings.iter().map(|finding| finding.rule.name);
        (names.collect(), outcome.not_checked)
    }

    #[test]
    fn rules_about_qemu_say_nothing_about_other_hypervisors_and_tell_so() {
        let (found, not_checked) = said_of_a_guest_of("xen");
        assert_eq!(found, ["unknown-element"]);
        assert!(
            not_checked
                .iter()
                .all(|missed| missed.missing.why == Missing::NOT_QEMU)
        );
        let about_qemu = RULES
            .iter()
            .filter(|rule| !rule.applies_to_foreign_guests)
            .count();
        assert_eq!(not_checked.len(), about_qemu);
    }

    #[test]
    fn accelerators_of_qemu_are_qemu() {
        for word in ["kvm", "qemu", "hvf"] {
            let (found, not_checked) = said_of_a_guest_of(word);
            assert!(found.contains(&"cache-unsafe"), "{word}: {found:?}");
            assert!(found.contains(&"unknown-element"), "{word}: {found:?}");
            assert!(
                not_checked
                    .iter()
                    .all(|missed| missed.missing.why != Missing::NOT_QEMU)
            );
        }
    }
}
