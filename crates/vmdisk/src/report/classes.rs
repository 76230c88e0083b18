//! Hosts about which the rules say the same in everything, as classes with a name.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use vmdisk_source::sanitize::line;

use crate::FoundOn;

/// A host, as reports name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReportedHost {
    /// What people call it.
    pub name: String,
    /// Its facts file.
    pub path: String,
    /// The class of hosts that its facts say it is of.
    pub declared_class: Option<String>,
}

/// The hosts of a run, and the classes that its findings make of them.
#[derive(Debug)]
pub struct Classes<'a> {
    hosts: Vec<&'a ReportedHost>,
    /// The class of each host.
    of_host: Vec<usize>,
    classes: Vec<Class>,
}

/// Hosts about which the rules say the same in everything.
#[derive(Debug)]
struct Class {
    /// The class that their facts declare, if it is theirs alone; else the first of them, and how many more.
    name: String,
    /// Their numbers, ascending; never empty.
    hosts: Vec<usize>,
}

/// On which classes something was found, by their names.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClassNames<'a> {
    /// The classes on which it was found.
    pub affected: Vec<&'a str>,
    /// The classes on which it was checked and not found.
    pub not_affected: Vec<&'a str>,
    /// The classes on which it could not be checked.
    pub not_checked: Vec<&'a str>,
}

impl<'a> Classes<'a> {
    /// Classes that are in or out of every list of hosts as a whole: of those of reports
    /// ([`DocumentReport::host_lists`](super::DocumentReport::host_lists)), and of hosts that the same inputs may run on.
    pub fn new<'g>(
        hosts: impl Iterator<Item = &'a ReportedHost>,
        lists: impl Iterator<Item = &'g [usize]>,
    ) -> Self {
        let hosts: Vec<&ReportedHost> = hosts.collect();
        let mut of_host = vec![0; hosts.len()];
        let mut seen: HashSet<&[usize]> = HashSet::new();
        for listed in lists.filter(|listed| seen.insert(listed)) {
            split(&mut of_host, listed);
        }
        let mut members: Vec<Vec<usize>> = Vec::new();
        for (host, class) in of_host.iter().enumerate() {
            // Classes are numbered in the order of their first hosts.
            if *class == members.len() {
                members.push(Vec::new());
            }
            members[*class].push(host);
        }
        let classes = members
            .into_iter()
            .map(|members| Class {
                name: name(&hosts, &members),
                hosts: members,
            })
            .collect();
        Classes {
            hosts,
            of_host,
            classes,
        }
    }

    /// The hosts, by their numbers.
    pub fn hosts(&self) -> &[&'a ReportedHost] {
        &self.hosts
    }

    /// Name of the class of a host.
    pub fn class_of(&self, host: usize) -> &str {
        &self.classes[self.of_host[host]].name
    }

    /// The class that a host declares, or that of [`Classes::class_of`]: what the findings of a fleet are counted by.
    pub fn kind_of(&self, host: usize) -> &str {
        let declared = self.hosts[host].declared_class.as_deref();
        declared.unwrap_or_else(|| self.class_of(host))
    }

    /// The classes with the names of their hosts.
    pub fn named(&self) -> impl Iterator<Item = (&str, Vec<&'a str>)> {
        self.classes.iter().map(|class| {
            let hosts = class.hosts.iter();
            let names = hosts.map(|host| self.hosts[*host].name.as_str()).collect();
            (class.name.as_str(), names)
        })
    }

    /// The names of the classes of some hosts, each once. A class is in it whole or not at all.
    pub fn names(&self, hosts: &[usize]) -> Vec<&str> {
        let first = |host: &&usize| self.classes[self.of_host[**host]].hosts[0] == **host;
        let firsts = hosts.iter().filter(first);
        firsts.map(|host| self.class_of(*host)).collect()
    }

    /// The names of the classes that a finding is about, and of the others.
    pub fn names_of(&self, found: &FoundOn) -> ClassNames<'_> {
        let FoundOn {
            affected,
            not_affected,
            not_checked,
        } = found;
        ClassNames {
            affected: self.names(affected),
            not_affected: self.names(not_affected),
            not_checked: self.names(not_checked),
        }
    }

    /// On which hosts something was found, in words; nothing where it is on all of them.
    pub fn note(&self, found: &FoundOn) -> Option<String> {
        let ClassNames {
            affected,
            not_affected,
            not_checked,
        } = self.names_of(found);
        if not_affected.is_empty() && not_checked.is_empty() {
            return None;
        }
        let mut note = format!("on {}", list(&affected));
        for (words, classes) in [("not on", not_affected), ("not checked on", not_checked)] {
            if !classes.is_empty() {
                let _ = write!(note, "; {words} {}", list(&classes));
            }
        }
        Some(note)
    }

    /// The classes in one line.
    pub fn summary(&self) -> String {
        let count = |number: usize, one: &str, many: &str| {
            format!("{number} {}", if number == 1 { one } else { many })
        };
        let classes: Vec<String> = self
            .named()
            .map(|(name, hosts)| match hosts.as_slice() {
                [host] if *host == name => name.to_owned(),
                hosts => format!("{name} ({})", list(hosts)),
            })
            .collect();
        let classes: Vec<&str> = classes.iter().map(String::as_str).collect();
        format!(
            "{} in {}: {}\n",
            count(self.hosts.len(), "host", "hosts"),
            count(self.classes.len(), "class", "classes"),
            line(&list(&classes)),
        )
    }
}

/// A list in words, of which a person reads the beginning.
fn list(names: &[&str]) -> String {
    /// Number of names printed in full; the rest is counted.
    const TOLD: usize = 5;
    match names.len().saturating_sub(TOLD) {
        0 | 1 => names.join(", "),
        more => format!("{} and {more} more", names[..names.len() - more].join(", ")),
    }
}

fn name(hosts: &[&ReportedHost], members: &[usize]) -> String {
    let first = &hosts[members[0]];
    if let Some(declared) = &first.declared_class {
        let is_of_it = |host: &ReportedHost| host.declared_class.as_ref() == Some(declared);
        let all_of_it = hosts.iter().filter(|host| is_of_it(host)).count();
        let is_theirs_alone = all_of_it == members.len()
            && members.iter().all(|member| is_of_it(hosts[*member]))
            && !hosts.iter().any(|host| host.name == *declared);
        if is_theirs_alone {
            return declared.clone();
        }
    }
    match members.len() {
        1 => first.name.clone(),
        many => format!("{} and {} more", first.name, many - 1),
    }
}

/// Splits the classes by whether their hosts are in a list.
fn split(of_host: &mut [usize], listed: &[usize]) {
    if listed.is_empty() || listed.len() == of_host.len() {
        return;
    }
    let mut is_listed = vec![false; of_host.len()];
    for host in listed {
        is_listed[*host] = true;
    }
    let mut numbers: HashMap<(usize, bool), usize> = HashMap::new();
    for (class, is_listed) in of_host.iter_mut().zip(is_listed) {
        let next = numbers.len();
        *class = *numbers.entry((*class, is_listed)).or_insert(next);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn host(name: &str, class: Option<&str>) -> ReportedHost {
        ReportedHost {
            name: name.to_owned(),
            path: format!("facts/{name}.json"),
            declared_class: class.map(str::to_owned),
        }
    }

    fn classes<'a>(hosts: &'a [ReportedHost], lists: &[&'static [usize]]) -> Classes<'a> {
        let mut of_host = vec![0; hosts.len()];
        for listed in lists {
            split(&mut of_host, listed);
        }
        let classes = Classes::new(hosts.iter(), lists.iter().copied());
        assert_eq!(classes.of_host, of_host);
        classes
    }

    #[test]
    fn hosts_that_are_always_listed_together_are_a_class() {
        let hosts = ["a", "b", "c", "d"].map(|name| host(name, None));
        let classes = classes(&hosts, &[&[1, 3], &[0, 1, 2, 3], &[3, 1]]);
        let named: BTreeMap<&str, Vec<&str>> = classes.named().collect();
        assert_eq!(
            named,
            BTreeMap::from([
                ("a and 1 more", vec!["a", "c"]),
                ("b and 1 more", vec!["b", "d"])
            ])
        );
        let found = FoundOn {
            affected: vec![1, 3],
            not_affected: vec![0, 2],
            not_checked: Vec::new(),
        };
        assert_eq!(
            classes.note(&found),
            Some("on b and 1 more; not on a and 1 more".to_owned())
        );
        assert_eq!(
            classes.summary(),
            "4 hosts in 2 classes: a and 1 more (a, c), b and 1 more (b, d)\n"
        );
        let everywhere = FoundOn {
            affected: vec![0, 1, 2, 3],
            ..FoundOn::default()
        };
        assert_eq!(classes.note(&everywhere), None);
    }

    #[test]
    fn a_declared_class_gives_its_name_where_it_is_whole() {
        let hosts = [("a", "gen3"), ("b", "gen1"), ("c", "gen1"), ("d", "gen3")];
        let hosts = hosts.map(|(name, class)| host(name, Some(class)));
        let whole: Vec<String> = classes(&hosts, &[&[0, 3]])
            .classes
            .into_iter()
            .map(|class| class.name)
            .collect();
        assert_eq!(whole, ["gen3", "gen1"]);
        let split: Vec<String> = classes(&hosts, &[&[0], &[3]])
            .classes
            .into_iter()
            .map(|class| class.name)
            .collect();
        assert_eq!(split, ["a", "gen1", "d"]);
    }
}
