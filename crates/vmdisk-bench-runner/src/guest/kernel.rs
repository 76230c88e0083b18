//! A guest's kernel and its modules, in load order.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::programs;
use crate::{Cancel, Error};

/// A bootable kernel with its modules.
#[derive(Debug)]
pub struct Kernel {
    /// The bootable image.
    pub image: PathBuf,
    modules: BTreeMap<String, PathBuf>,
    built_in: HashSet<String>,
}

impl Kernel {
    /// Finds image and modules in an unpacked package.
    ///
    /// # Errors
    /// If one of them is missing.
    pub fn find(root: &Path) -> Result<Self, Error> {
        let first = |folder: PathBuf, prefix: &str| -> Result<PathBuf, Error> {
            let entries =
                fs::read_dir(&folder).map_err(|error| Error::io("read", &folder, error))?;
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
                .ok_or_else(|| missing(format!("{}/{prefix}*", folder.display())))
        };
        let image = first(root.join("boot"), "vmlinu")?;
        // Distributions with /lib as a link have their modules below /usr.
        let modules = first(root.join("lib/modules"), "")
            .or_else(|_| first(root.join("usr/lib/modules"), ""))?;
        Self::of(&image, &modules)
    }

    /// Returns the running kernel of the host, if its image is readable.
    ///
    /// # Errors
    /// If image or modules are missing, or readable only by root, as on Ubuntu.
    pub fn of_host() -> Result<Self, Error> {
        let uname = rustix::system::uname();
        let release = uname.release().to_string_lossy().into_owned();
        let modules = PathBuf::from("/lib/modules").join(&release);
        let images = [
            PathBuf::from(format!("/boot/vmlinuz-{release}")),
            modules.join("vmlinuz"),
        ];
        let image = images
            .iter()
            .find(|image| fs::File::open(image).is_ok())
            .ok_or_else(|| missing(format!("a readable {}", images[0].display())))?;
        Self::of(image, &modules)
    }

    /// Uses an image with the folder of its modules, such as `/lib/modules/6.1.0-50-cloud-amd64`.
    ///
    /// # Errors
    /// If the folder has no list of built-in modules.
    pub fn of(image: &Path, folder: &Path) -> Result<Self, Error> {
        let mut modules = BTreeMap::new();
        let mut todo = vec![folder.join("kernel")];
        while let Some(folder) = todo.pop() {
            let entries =
                fs::read_dir(&folder).map_err(|error| Error::io("read", &folder, error))?;
            for entry in entries {
                let entry = entry.map_err(|error| Error::io("read", &folder, error))?;
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
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
        let list = folder.join("modules.builtin");
        let built_in = fs::read_to_string(&list)
            .map_err(|error| Error::io("read", &list, error))?
            .lines()
            .filter_map(|line| Some(plain(line.rsplit('/').next()?.strip_suffix(".ko")?)))
            .collect();
        Ok(Self {
            image: image.to_owned(),
            modules,
            built_in,
        })
    }

    /// Returns true if the kernel has this driver, built in or as a module.
    pub fn has(&self, name: &str) -> bool {
        let name = plain(name);
        self.built_in.contains(&name) || self.modules.contains_key(&name)
    }

    /// Returns the wanted modules after their dependencies, unpacked.
    ///
    /// # Errors
    /// If one is missing, or cannot be unpacked.
    pub fn closure(&self, wanted: &[&str]) -> Result<Vec<(String, Vec<u8>)>, Error> {
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
    ) -> Result<(), Error> {
        if self.built_in.contains(name) || !seen.insert(name.to_owned()) {
            return Ok(());
        }
        let Some(path) = self.modules.get(name) else {
            if required {
                return Err(missing(format!("the kernel's module {name}")));
            }
            return Ok(());
        };
        let bytes = unpacked(path)?;
        for needed in information(&bytes, "depends=", ',') {
            self.add(&plain(&needed), true, seen, loaded)?;
        }
        // Optional accelerators may be missing, or be an alias.
        for needed in information(&bytes, "softdep=pre: ", ' ') {
            self.add(&plain(&needed), false, seen, loaded)?;
        }
        loaded.push((name.to_owned(), bytes));
        Ok(())
    }
}

fn missing(what: String) -> Error {
    Error::missing(
        what,
        "a guest",
        "unpack a kernel package, for example with `apt-get download linux-image-cloud-amd64` (or the package it \
               depends on) and `dpkg-deb -x`, and pass the folder with `--kernel`",
    )
}

/// Module names use hyphens and underscores interchangeably.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// Returns the words after a key in a module's `.modinfo` section, which holds NUL-terminated strings.
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

fn unpacked(path: &Path) -> Result<Vec<u8>, Error> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let program = match extension {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return fs::read(path).map_err(|error| Error::io("read", path, error)),
    };
    let argv = [
        program.as_ref(),
        "-d".as_ref(),
        "-c".as_ref(),
        path.as_os_str(),
    ];
    let output = programs::bytes(&argv, Duration::from_secs(60), &Cancel::new())?;
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_nul_terminated_strings() {
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
