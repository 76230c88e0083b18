//! The modules of a crate, starting at its root file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::imports::{Import, Imports};

/// The path of a module or item from the crate's root.
pub(super) type Names = Vec<String>;

/// The modules of a crate, by path.
#[derive(Default)]
pub(super) struct Modules(BTreeMap<Names, Module>);

/// A module: a file or a part of one.
pub(super) struct Module {
    pub(super) file: PathBuf,
    /// Names of its items.
    items: BTreeSet<String>,
    /// Its imports and re-exports.
    imports: Vec<Import>,
    /// Paths in its code.
    pub(super) paths: BTreeSet<Names>,
}

/// Maximum length of a chain of imports.
const MAX_STEPS: usize = 16;

impl Modules {
    /// Reads the files of a crate.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut modules = Modules::default();
        let folder = root.parent().unwrap_or(root);
        let mut files = vec![(Names::new(), root.to_owned(), folder.to_owned())];
        while let Some((names, file, folder)) = files.pop() {
            let text =
                std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let syntax = syn::parse_file(&text).with_context(|| file.display().to_string())?;
            for found in Imports::of(&syntax.items, &names) {
                let folder = folder_of(&folder, &names, &found.module);
                files.extend(found.files.iter().map(|child| {
                    let child_names =
                        [found.module.as_slice(), std::slice::from_ref(child)].concat();
                    (child_names, file_in(&folder, child), folder.join(child))
                }));
                let module = Module {
                    file: file.clone(),
                    items: found.items,
                    imports: found.imports,
                    paths: found.paths,
                };
                modules.0.insert(found.module, module);
            }
        }
        Ok(modules)
    }

    /// Returns all modules.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Names, &Module)> {
        self.0.iter()
    }

    /// Returns the file that defines a path in a module; `None` outside the crate.
    pub(super) fn file_of(&self, module: &Names, path: &[String]) -> Option<&Path> {
        if let [name] = path {
            // Otherwise it is an item of the module itself, or a variable.
            self.import(module, name)?;
        }
        let names = self.absolute(module, path)?;
        self.find(&names, MAX_STEPS)
            .map(|module| self.0[&module].file.as_path())
    }

    /// Returns the path from the crate's root; `None` if it starts outside the crate.
    fn absolute(&self, module: &Names, path: &[String]) -> Option<Names> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module, rest].concat()),
            "super" => {
                let mut names = module.clone();
                names.pop()?;
                let above = rest.iter().take_while(|name| *name == "super").count();
                names.truncate(names.len().checked_sub(above)?);
                names.extend(rest[above..].iter().cloned());
                Some(names)
            }
            _ => {
                let names = [module, path].concat();
                let is_child = self.0.contains_key(&names[..=module.len()]);
                let is_known = is_child || self.import(module, first).is_some();
                is_known.then_some(names)
            }
        }
    }

    /// Returns the module that defines a path from the root.
    fn find(&self, names: &[String], steps: usize) -> Option<Names> {
        let mut depth = 0;
        while depth < names.len() && self.0.contains_key(&names[..=depth]) {
            depth += 1;
        }
        let module = names[..depth].to_vec();
        let here = self.0.get(&module)?;
        let Some((next, rest)) = names[depth..].split_first() else {
            return Some(module);
        };
        if here.items.contains(next) || steps == 0 {
            return Some(module);
        }
        if let Some(import) = self.import(&module, next) {
            let target = self.absolute(&module, &import.path)?;
            return self.find(&[target.as_slice(), rest].concat(), steps - 1);
        }
        let globs = here.imports.iter().filter(|import| import.name.is_none());
        let mut found = globs.filter_map(|import| {
            let target = self.absolute(&module, &import.path)?;
            let defines = |module: &Names| self.0[module].items.contains(next);
            self.find(&[target.as_slice(), &names[depth..]].concat(), steps - 1)
                .filter(defines)
        });
        Some(found.next().unwrap_or(module))
    }

    fn import(&self, module: &Names, name: &str) -> Option<&Import> {
        let imports = &self.0.get(module)?.imports;
        let is_named = |import: &&Import| {
            // A path that begins with its own name, such as `use serde;`, leads to no other module.
            import.name.as_deref() == Some(name) && import.path.first().is_some_and(|it| it != name)
        };
        imports.iter().find(is_named)
    }
}

/// Returns the file of a module in a folder.
fn file_in(folder: &Path, module: &str) -> PathBuf {
    let flat = folder.join(format!("{module}.rs"));
    if flat.is_file() {
        flat
    } else {
        folder.join(module).join("mod.rs")
    }
}

/// Returns the folder of a module's files: the folder of its file, with a subfolder for each inline module.
fn folder_of(folder: &Path, file: &Names, module: &Names) -> PathBuf {
    module[file.len()..]
        .iter()
        .fold(folder.to_owned(), |at, name| at.join(name))
}
