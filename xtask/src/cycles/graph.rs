//! Dependencies between files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::modules::Modules;

/// For each file, the files that it needs, and the names it takes from them.
pub(super) struct Graph<'m>(BTreeMap<&'m Path, BTreeMap<&'m Path, BTreeSet<&'m str>>>);

impl<'m> Graph<'m> {
    pub(super) fn of(modules: &'m Modules) -> Self {
        let mut graph = Graph(BTreeMap::new());
        for (names, module) in modules.iter() {
            let needs = graph.0.entry(&module.file).or_default();
            for path in &module.paths {
                if let Some(file) = modules.file_of(names, path)
                    && let Some(last) = path.last()
                    && file != module.file
                {
                    needs.entry(file).or_default().insert(last);
                }
            }
        }
        graph
    }

    /// Returns the files of each cycle, sorted.
    pub(super) fn cycles(&self) -> BTreeSet<Vec<&'m Path>> {
        let reached: BTreeMap<&Path, BTreeSet<&'m Path>> = self
            .0
            .keys()
            .map(|file| (*file, self.reach(file)))
            .collect();
        let in_circles = self.0.keys().filter(|file| reached[*file].contains(*file));
        in_circles
            .map(|file| {
                let others = reached[file].iter().copied();
                others
                    .filter(|other| reached[other].contains(file))
                    .collect()
            })
            .collect()
    }

    /// Returns the dependencies between some files: from, to, and the names.
    pub(super) fn ties<'g>(
        &'g self,
        files: &'g [&'m Path],
    ) -> impl Iterator<Item = (&'m Path, &'m Path, String)> + 'g {
        files.iter().flat_map(move |from| {
            let needs = self.0[from].iter().filter(|(to, _)| files.contains(to));
            needs.map(|(to, names)| {
                let names: Vec<&str> = names.iter().copied().collect();
                (*from, *to, names.join(", "))
            })
        })
    }

    /// Returns all direct and indirect dependencies of a file.
    fn reach(&self, file: &Path) -> BTreeSet<&'m Path> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&'m Path> = self.0[file].keys().copied().collect();
        while let Some(next) = open.pop() {
            if reached.insert(next) {
                open.extend(self.0[next].keys());
            }
        }
        reached
    }
}
