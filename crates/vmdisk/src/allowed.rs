//! What the author of a text allows, and the complaints about it.

use std::collections::BTreeSet;

use vmdisk_model::{DomainField, FieldPath};
use vmdisk_source::{Allowance, Edit, Span};

use crate::rules::Rule;
use crate::{AllowedBy, Applicability, Diagnostic, Document, LintOptions, ResolvedFix, Source};

/// What allows a finding; each allowance notes in `used` the rules that it is used for.
pub(crate) fn allowed_by(
    document: &Document,
    options: &LintOptions,
    diagnostic: &Diagnostic,
    used: &mut [BTreeSet<&'static str>],
) -> Option<AllowedBy> {
    let mut found = None;
    for (allowance, used) in document.allowances().iter().zip(used) {
        let names_rule = allowance
            .rules
            .iter()
            .any(|(name, _)| name == diagnostic.rule.name);
        if names_rule && allowance.covers(diagnostic.place.span) {
            used.insert(diagnostic.rule.name);
            found.get_or_insert_with(|| AllowedBy::InFile {
                reason: allowance.reason.clone(),
                span: allowance.span,
            });
        }
    }
    found.or_else(|| {
        options
            .ignored
            .contains(diagnostic.rule.name)
            .then_some(AllowedBy::Ignored)
    })
}

/// True for a rule that compares guests, which runs when all guests are known.
fn is_used_later(rule: &str) -> bool {
    crate::rules::find(rule).is_some_and(Rule::compares_guests)
}

/// The text of a rule's name in an allowance of several, with one comma.
fn with_comma(rules: &[(String, Span)], number: usize) -> Span {
    let (own, after) = (rules[number].1, rules.get(number + 1));
    match (number.checked_sub(1).map(|before| rules[before].1), after) {
        (Some(before), _) => Span::new(before.end, own.end),
        (None, Some((_, after))) => Span::new(own.start, after.start),
        (None, None) => own,
    }
}

/// The rules of an allowance that allow nothing, each with its place, the remedy and the edit; one entry if none does.
fn unused(allowance: &Allowance, used: &BTreeSet<&str>) -> Vec<(Span, String, &'static str, Edit)> {
    let rules = &allowance.rules;
    let is_unused = |name: &str| !used.contains(name) && !is_used_later(name);
    let title = |name: &str| format!("unused allowance: `{name}` is not reported here");
    if rules.iter().all(|(name, _)| is_unused(name)) {
        let title = match rules.as_slice() {
            [(name, _)] => title(name),
            _ => "unused allowance: none of its rules is reported here".to_owned(),
        };
        return vec![(
            allowance.span,
            title,
            "remove it",
            Edit::delete(allowance.span),
        )];
    }
    let unused = rules
        .iter()
        .enumerate()
        .filter(|(_, (name, _))| is_unused(name));
    let complaint = |(number, (name, span)): (usize, &(String, Span))| {
        let edit = Edit::delete(with_comma(rules, number));
        (*span, title(name), "remove the name of the rule", edit)
    };
    unused.map(complaint).collect()
}

/// An allowance must name rules that exist, give a reason, and still be needed.
pub(crate) fn complaints_about_allowances(
    document: &Document,
    used: &[BTreeSet<&str>],
) -> Vec<Diagnostic> {
    let mut complaints = Vec::new();
    let mut complain = |rule: &str, span: Span, title: String, help: &str, edits: Vec<Edit>| {
        let rule = crate::rules::find(rule).expect("rules about allowances are in the table");
        let at = FieldPath::Domain(DomainField::Domain);
        let place = document.place_of_span(at, span, true);
        complaints.push(Diagnostic {
            help: Some(help.to_owned()),
            fix: (!edits.is_empty() && document.may_edit(&edits)).then_some(ResolvedFix {
                edits,
                applicability: Applicability::Safe,
            }),
            ..Diagnostic::new(rule, at, title, place)
        });
    };
    for (allowance, used) in document.allowances().iter().zip(used) {
        if allowance.rules.is_empty() {
            complain(
                "allowance-unknown-rule",
                allowance.span,
                "the comment for vmdisk is not understood".to_owned(),
                "write `vmdisk: allow(rule, …) reason`",
                Vec::new(),
            );
            continue;
        }
        let mut all_known = true;
        for (name, span) in &allowance.rules {
            if !crate::rules::is_name(name) {
                all_known = false;
                let known = crate::rules::RULES.iter().map(|rule: &&Rule| rule.name);
                let help = match vmdisk_source::nearest(name, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`vmdisk explain --list` lists the rules".to_owned(),
                };
                complain(
                    "allowance-unknown-rule",
                    *span,
                    format!("unknown rule `{name}`"),
                    &help,
                    Vec::new(),
                );
            }
        }
        if allowance.reason.is_none() {
            complain(
                "allowance-without-reason",
                allowance.span,
                "the allowance has no reason".to_owned(),
                match &document.source {
                    Source::Spec(_) | Source::QemuCommandLine(_) => {
                        "write the reason after the closing parenthesis: # vmdisk: allow(rule) because …"
                    }
                    Source::LibvirtXml(_) => {
                        "write the reason after the closing parenthesis: <!-- vmdisk: allow(rule) because … -->"
                    }
                },
                Vec::new(),
            );
        }
        if all_known {
            for (span, title, help, edit) in unused(allowance, used) {
                complain("allowance-unused", span, title, help, vec![edit]);
            }
        }
    }
    complaints
}
