//! Invariant 6: what the planner makes, the rules find nothing in that another choice of an option
//! left open would have avoided.

#[path = "plan_then_lint/allowed.rs"]
mod allowed;
#[path = "plan_then_lint/host.rs"]
mod host;
#[path = "plan_then_lint/otherwise.rs"]
mod otherwise;
#[path = "plan_then_lint/specs.rs"]
mod specs;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use vmdisk::plan::{Plan, Spec, facts_after, plan};
use vmdisk::{Detail, Diagnostic, LintOptions, Severity, Target, lint, read, write};

use host::Host;

/// Specs for each host, of which about half can be planned.
const CASES: u32 = 120;

/// So many more for each image of the host, so that each has its turn.
const CASES_PER_IMAGE: u32 = 20;

/// Findings of each rule on each host for which a way round is searched: the table is believed for the
/// rest, because the search takes a hundred times as long as a check.
const SEARCHED: u32 = 1;

/// The result of linting a plan.
pub(crate) struct Linted {
    /// Findings of severity warning and above.
    pub(crate) found: Vec<Diagnostic>,
    /// The rules that lacked an input, once for each place.
    pub(crate) not_checked: Vec<&'static str>,
}

/// Lints a plan on the host as its script leaves it.
pub(crate) fn linted(plan: &Plan, host: &Host, target: &Target) -> Linted {
    let text = write::libvirt_xml(&plan.domain).expect("the paths are plain");
    let document = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let facts = facts_after(&host.facts, plan);
    let is_known = host.facts != vmdisk::Facts::default();
    let options = LintOptions::default()
        .host(is_known.then(|| vmdisk::Host::new(facts)))
        .target(target.clone())
        .detail(Detail::Titles);
    let report = lint(&document, &options);
    let mut found = report.diagnostics;
    found.retain(|diagnostic| diagnostic.severity >= Severity::Warning);
    let not_checked = report.not_checked.iter().map(|one| one.rule.name);
    Linted {
        found,
        not_checked: not_checked.collect(),
    }
}

/// How often each rule fired on one host.
type Fired = BTreeMap<&'static str, u32>;

/// Checks one spec; false if it cannot be planned.
fn check(spec: &Spec, host: &Host, target: &Target, fired: &mut Fired) -> Result<bool, String> {
    let Ok(plan) = plan(spec, &host.facts, target) else {
        return Ok(false);
    };
    let result = linted(&plan, host, target);
    for diagnostic in &result.found {
        let told = || {
            let xml = write::libvirt_xml(&plan.domain).unwrap_or_default();
            format!(
                "{}: {}\nhost: {}\ntarget: {target}\n{}\n{xml}",
                diagnostic.rule.name,
                diagnostic.title,
                host.name,
                spec.to_yaml(),
            )
        };
        let Some(reason) = allowed::reason(&allowed::Case::new(spec, diagnostic)) else {
            return Err(format!("not among the allowed findings: {}", told()));
        };
        let times = fired.entry(diagnostic.rule.name).or_default();
        *times += 1;
        if *times > SEARCHED {
            continue;
        }
        if let Some(other) = otherwise::without(spec, host, target, diagnostic, (&plan, &result)) {
            let told = told();
            return Err(format!(
                "allowed because {reason}, and avoided by\n{other}\n{told}"
            ));
        }
    }
    Ok(true)
}

/// Checks the specs for one host: the number of plans, and the findings allowed in them.
fn check_host(host: &Host) -> (u32, Fired) {
    let planned = Cell::new(0);
    let fired: RefCell<Fired> = RefCell::default();
    for spec in specs::seldom(host) {
        for target in host.targets() {
            if let Err(error) = check(&spec, host, &target, &mut fired.borrow_mut()) {
                panic!("{error}");
            }
        }
    }
    let strategy = (specs::spec(host), proptest::sample::select(host.targets()));
    let config = Config {
        cases: CASES + CASES_PER_IMAGE * u32::try_from(host.images.len()).unwrap(),
        failure_persistence: None,
        ..Config::default()
    };
    // The same specs in each run.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let result = TestRunner::new_with_rng(config, rng).run(&strategy, |(spec, target)| {
        let is_planned = check(&spec, host, &target, &mut fired.borrow_mut());
        let is_planned = is_planned.map_err(TestCaseError::fail)?;
        planned.set(planned.get() + u32::from(is_planned));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    (planned.get(), fired.into_inner())
}

#[test]
fn the_linter_finds_nothing_in_a_plan_that_another_choice_would_have_avoided() {
    let mut planned = 0;
    let mut ever_fired = Fired::new();
    let checked: Vec<(u32, Fired)> = host::all().par_iter().map(check_host).collect();
    for (plans, fired) in checked {
        planned += plans;
        for (rule, times) in fired {
            *ever_fired.entry(rule).or_default() += times;
        }
    }
    assert!(planned > 1000, "only {planned} specs were planned");
    // A row that nothing needs would hide something one day.
    for allowed in allowed::TABLE {
        assert!(
            ever_fired.contains_key(allowed.rule),
            "{} never fires",
            allowed.rule
        );
    }
}

#[test]
fn every_rule_that_a_choice_can_name_exists() {
    for rule in vmdisk::plan::RULES {
        assert!(
            vmdisk::rules::find(rule).is_some(),
            "there is no rule {rule}"
        );
    }
}
