//! `lines.txt`: the number of lines that a crate may have.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

const HEAD: &str = "\
# The largest number of lines of code that each crate, the tests and the scripts may have: `cargo xtask lines --check`.
# `cargo xtask lines --bless` lowers them. Raise one by hand, in a commit that changes nothing else and says what for.
";

/// The ceiling of each crate.
pub(super) struct Ceilings(BTreeMap<String, usize>);

impl Ceilings {
    pub(super) fn read(text: &str) -> anyhow::Result<Self> {
        let mut ceilings = BTreeMap::new();
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let Some((lines, name)) = line.trim().split_once(' ') else {
                bail!("lines.txt: `{line}` is not a number and a name");
            };
            let lines = lines
                .parse()
                .with_context(|| format!("lines.txt: `{line}`"))?;
            ceilings.insert(name.to_owned(), lines);
        }
        Ok(Self(ceilings))
    }

    pub(super) fn of(&self, name: &str) -> Option<usize> {
        self.0.get(name).copied()
    }

    /// What has more lines than it may have, no ceiling, or a ceiling and no lines.
    pub(super) fn passed_by(&self, counted: &BTreeMap<String, usize>) -> Vec<String> {
        let passed = counted.iter().filter_map(|(name, lines)| match self.of(name) {
            None => Some(format!("lines.txt has no line for {name}, which has {lines} lines")),
            Some(ceiling) if *lines > ceiling => {
                let more = lines - ceiling;
                Some(format!("{name} has {lines} lines, {more} more than its ceiling in lines.txt: delete as many, or see CONTRIBUTING.md"))
            }
            Some(_) => None,
        });
        let gone = self.0.keys().filter(|name| !counted.contains_key(*name));
        let gone = gone.map(|name| format!("lines.txt has a line for {name}, which is gone"));
        passed.chain(gone).collect()
    }

    /// Lowers the ceilings to what is there.
    pub(super) fn lower_to(&mut self, counted: &BTreeMap<String, usize>) {
        self.0.retain(|name, _| counted.contains_key(name));
        for (name, ceiling) in &mut self.0 {
            *ceiling = counted[name].min(*ceiling);
        }
    }

    fn raises(&self, before: &Self) -> bool {
        self.0
            .iter()
            .any(|(name, ceiling)| before.of(name).is_none_or(|before| *ceiling > before))
    }
}

impl fmt::Display for Ceilings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        self.0
            .iter()
            .try_for_each(|(name, lines)| writeln!(f, "{lines:>6} {name}"))
    }
}

/// The commits after `since` that raise a ceiling and change something else.
pub(super) fn raised_with_other_changes(
    checkout: &Path,
    since: &str,
) -> anyhow::Result<Vec<String>> {
    let git = |arguments: &[&str]| -> anyhow::Result<Option<String>> {
        let output = Command::new("git")
            .current_dir(checkout)
            .args(arguments)
            .output();
        let output = output.context("git")?;
        Ok(output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
    };
    let range = format!("{since}..HEAD");
    let commits = git(&["rev-list", "--no-merges", &range, "--", "lines.txt"])?;
    ensure!(commits.is_some(), "git does not know the commits {range}");
    let mut mistakes = Vec::new();
    for commit in commits.unwrap_or_default().lines() {
        let at = |commit: &str| git(&["show", &format!("{commit}:lines.txt")]);
        // The commit that makes the file sets no ceiling higher.
        let (Some(before), Some(after)) = (at(&format!("{commit}~1"))?, at(commit)?) else {
            continue;
        };
        let files =
            git(&["diff-tree", "--no-commit-id", "--name-only", "-r", commit])?.unwrap_or_default();
        if files.trim() != "lines.txt" && Ceilings::read(&after)?.raises(&Ceilings::read(&before)?)
        {
            mistakes.push(format!("{commit} raises a ceiling of lines.txt and changes something else: make it two commits"));
        }
    }
    Ok(mistakes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Ceilings;

    fn counted(of: &[(&str, usize)]) -> BTreeMap<String, usize> {
        let owned = of.iter().map(|(name, lines)| ((*name).to_owned(), *lines));
        owned.collect()
    }

    #[test]
    fn a_crate_above_its_ceiling_is_a_mistake_and_one_without_or_gone_as_well() {
        let ceilings = Ceilings::read("# a head\n   10 at\n   10 above\n   10 gone\n").unwrap();
        let mistakes = ceilings.passed_by(&counted(&[("at", 10), ("above", 11), ("new", 1)]));
        let begin = |start: &str| mistakes.iter().filter(|it| it.starts_with(start)).count();
        assert_eq!(mistakes.len(), 3, "{mistakes:?}");
        assert_eq!(begin("above has 11 lines, 1 more"), 1);
        assert_eq!(begin("lines.txt has no line for new"), 1);
        assert_eq!(begin("lines.txt has a line for gone"), 1);
    }

    #[test]
    fn a_ceiling_is_lowered_and_never_raised() {
        let mut ceilings = Ceilings::read("10 fewer\n10 more\n10 gone\n").unwrap();
        ceilings.lower_to(&counted(&[("fewer", 7), ("more", 12), ("new", 1)]));
        let text = ceilings.to_string();
        assert!(text.ends_with("\n     7 fewer\n    10 more\n"), "{text}");
        let before = Ceilings::read("10 fewer\n10 more\n").unwrap();
        assert!(!ceilings.raises(&before) && before.raises(&ceilings));
    }
}
