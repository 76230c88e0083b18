//! The modules of a kernel, in the order they have to be loaded.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// A kernel as its package brings it.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// The bootable image.
    pub(crate) image: PathBuf,
    modules: BTreeMap<String, PathBuf>,
    built_in: HashSet<String>,
}

impl Kernel {
    /// Finds image and modules in an unpacked package.
    pub(crate) fn find(root: &Path) -> anyhow::Result<Self> {
        let first = |folder: PathBuf, prefix: &str| -> anyhow::Result<PathBuf> {
            let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
            let mut names: Vec<PathBuf> = entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| {
                    path.file_name()
                        .is_some_and(|name| name.to_string_lossy().starts_with(prefix))
                })
                .collect();
            names.sort();
            names
                .pop()
                .with_context(|| format!("{}: no {prefix}*", folder.display()))
        };
        let image = first(root.join("boot"), "vmlinuz")?;
        let folder = first(root.join("lib/modules"), "")?;
        let mut modules = BTreeMap::new();
        let mut todo = vec![folder.join("kernel")];
        while let Some(folder) = todo.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    todo.push(path);
                } else if let Some((name, _)) = path
                    .file_name()
                    .and_then(|name| name.to_str())
                    .and_then(|name| name.split_once(".ko"))
                {
                    modules.insert(plain(name), path.clone());
                }
            }
        }
        let built_in = fs::read_to_string(folder.join("modules.builtin"))
            .context("modules.builtin")?
            .lines()
            .filter_map(|line| Some(plain(line.rsplit('/').next()?.strip_suffix(".ko")?)))
            .collect();
        Ok(Self {
            image,
            modules,
            built_in,
        })
    }

    /// The modules wanted, each behind what it depends on, unpacked.
    pub(crate) fn closure(&self, wanted: &[&str]) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        let mut loaded = Vec::new();
        let mut seen = HashSet::new();
        for name in wanted {
            self.add(&plain(name), true, &mut seen, &mut loaded)?;
        }
        Ok(loaded)
    }

    fn add(
        &self,
        name: &str,
        required: bool,
        seen: &mut HashSet<String>,
        loaded: &mut Vec<(String, Vec<u8>)>,
    ) -> anyhow::Result<()> {
        if self.built_in.contains(name) || !seen.insert(name.to_owned()) {
            return Ok(());
        }
        let Some(path) = self.modules.get(name) else {
            ensure!(!required, "the kernel has no module {name}");
            return Ok(());
        };
        let bytes = unpacked(path)?;
        for needed in information(&bytes, "depends=", ',') {
            self.add(&plain(&needed), true, seen, loaded)?;
        }
        // What only makes it faster may be missing, or be an alias.
        for needed in information(&bytes, "softdep=pre: ", ' ') {
            self.add(&plain(&needed), false, seen, loaded)?;
        }
        loaded.push((name.to_owned(), bytes));
        Ok(())
    }
}

/// Names are written with hyphens or underscores, as it happens.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// The words behind a key of a module's `.modinfo` section, which holds texts ended by zeros.
fn information(module: &[u8], key: &str, separator: char) -> Vec<String> {
    let mut words = Vec::new();
    let whole = [b"\0", key.as_bytes()].concat();
    let mut rest = module;
    while let Some(at) = rest
        .windows(whole.len())
        .position(|window| window == whole.as_slice())
    {
        rest = &rest[at + whole.len()..];
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&rest[..end]);
        words.extend(
            text.split(separator)
                .filter(|word| !word.is_empty())
                .map(str::to_owned),
        );
    }
    words
}

fn unpacked(path: &Path) -> anyhow::Result<Vec<u8>> {
    let program = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => return fs::read(path).with_context(|| path.display().to_string()),
    };
    let output = Command::new(program)
        .args(["-d", "-c"])
        .arg(path)
        .output()
        .with_context(|| format!("{program} cannot be started"))?;
    ensure!(
        output.status.success(),
        "{program} cannot unpack {}",
        path.display()
    );
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_between_zeros() {
        let module =
            b"\x7fELF\0license=GPL\0depends=dm-bufio,dm-mod\0softdep=pre: xor raid6\0softdep=pre: x\0depends=\0";
        assert_eq!(information(module, "depends=", ','), ["dm-bufio", "dm-mod"]);
        assert_eq!(
            information(module, "softdep=pre: ", ' '),
            ["xor", "raid6", "x"]
        );
        assert_eq!(plain("dm-mod"), "dm_mod");
    }
}
