//! Advice about a host, which a run says at one guest.

use std::collections::BTreeMap;

use super::DocumentReport;
use crate::{Diagnostic, Rule, Severity};

/// Advice about hosts that was said at the first guest that it holds for, with the further guests.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SaidOnce {
    /// By the number of the host and the title.
    said: BTreeMap<(usize, String), Said>,
}

#[derive(Debug)]
struct Said {
    rule: &'static Rule,
    /// The names of the documents with those of their guests, the first before the further ones.
    at: Vec<[String; 2]>,
}

/// Number of guests that are named in a line.
const NAMED: usize = 5;

impl SaidOnce {
    /// Drops advice about a host, by its number, that is said already; true if there was some.
    pub fn drop_from(&mut self, report: &mut DocumentReport, name: &str, host: usize) -> bool {
        let before = report.findings.len();
        let guest = report.domain.as_deref().unwrap_or(name);
        let here = [name.to_owned(), guest.to_owned()];
        report.findings.retain(|finding| {
            if !is_of_host(finding) {
                return true;
            }
            let rule = finding.rule;
            let new = || Said {
                rule,
                at: Vec::new(),
            };
            let key = (host, finding.title.clone());
            let said = self.said.entry(key).or_insert_with(new);
            if said.at.last() != Some(&here) {
                said.at.push(here.clone());
                return said.at.len() == 1;
            }
            false
        });
        report.findings.len() < before
    }

    /// Notes the further guests at the findings of documents, by their names.
    pub fn name_guests<'r>(
        &self,
        reports: impl Iterator<Item = (&'r str, &'r mut DocumentReport)>,
    ) {
        let mut notes: BTreeMap<(&str, &str), String> = BTreeMap::new();
        for ((_, title), said) in &self.said {
            if let [[first, _], further @ ..] = &*said.at
                && !further.is_empty()
            {
                notes.insert((first, title), format!("it {}", holds_for(further)));
            }
        }
        for (name, report) in reports {
            for finding in report.findings.iter_mut().filter(|it| is_of_host(it)) {
                let note = notes.get(&(name, &*finding.title)).cloned();
                finding.notes.extend(note);
            }
        }
    }

    /// One line for each advice that holds for further guests.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.said.values().filter_map(|said| {
            let (_, further) = said.at.split_first()?;
            let (named, more) = further.split_at(further.len().min(NAMED));
            let more = match more.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            (!named.is_empty()).then(|| format!("{} {}{more}", said.rule.name, holds_for(named)))
        })
    }
}

fn holds_for(further: &[[String; 2]]) -> String {
    let guests: Vec<&str> = further.iter().map(|[_, guest]| guest.as_str()).collect();
    format!("also holds for {}", guests.join(", "))
}

fn is_of_host(finding: &Diagnostic) -> bool {
    finding.is_about_host && finding.severity <= Severity::Advice
}
