//! The facts files that `--facts` names: one host, or several that a guest may run on.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use vmdisk::report::ReportedHost;

use crate::color::Colors;
use crate::facts_file;
use crate::input::watch::Progress;
use crate::io::Io;
use crate::pattern;
use crate::report::input::InputReport;
use crate::stop::Stop;

/// Several hosts.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// Those whose facts could be read, in the order of the arguments, those of one argument sorted by path.
    pub(crate) known: Vec<KnownHost>,
    /// The facts files that could not be read.
    pub(crate) failed: Vec<InputReport>,
}

/// One host.
#[derive(Debug)]
pub(crate) struct KnownHost {
    /// Its name is that of its facts file, or the whole path where two have the same.
    pub(crate) host: ReportedHost,
    /// Its facts.
    pub(crate) known: vmdisk::Host,
}

/// The files that the arguments name, each once.
pub(crate) fn files(arguments: &[PathBuf]) -> Result<Vec<PathBuf>, Stop> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut seen = HashSet::new();
    for argument in arguments {
        let found = if argument.is_dir() {
            in_directory(argument)?
        } else if pattern::is_pattern(argument) {
            let refuse = |why| Stop::new(format!("--facts {}: {why}", argument.display()));
            let found = pattern::matching(argument, &Progress::default()).map_err(refuse)?;
            // Rules must not pass because the facts of a host are hidden.
            if let Some((directory, why)) = found.trouble.first() {
                return Err(refuse(format!(
                    "{} could not be searched: {why}",
                    directory.display()
                )));
            }
            found.files
        } else {
            vec![argument.clone()]
        };
        files.extend(found.into_iter().filter(|file| seen.insert(file.clone())));
    }
    Ok(files)
}

/// Reads the facts of several hosts; what in them nobody understood is warned about.
pub(crate) fn read(files: &[PathBuf], io: &mut Io<'_>, colors: Colors) -> Result<Hosts, Stop> {
    let read: Vec<_> = files
        .par_iter()
        .map(|path| (path, facts_file::from_file(path)))
        .collect();
    let mut hosts = Hosts::default();
    for (path, facts) in read {
        match facts {
            Ok((facts, warnings)) => {
                facts_file::warn(path, warnings, io, colors);
                let mut host = ReportedHost::default();
                host.path = path.display().to_string();
                host.declared_class = facts.host.class.clone().known();
                let known = vmdisk::Host::new(facts);
                hosts.known.push(KnownHost { host, known });
            }
            Err(stop) => {
                let message = stop.0.into_iter().next();
                let failed = message.map(|message| InputReport::failed(path, message));
                hosts.failed.extend(failed);
            }
        }
    }
    if hosts.known.is_empty() {
        let messages = hosts.failed.into_iter().filter_map(|one| one.outcome.err());
        return Err(Stop(messages.map(|message| *message).collect()));
    }
    name(&mut hosts.known);
    Ok(hosts)
}

/// Names the hosts after their files.
fn name(hosts: &mut [KnownHost]) {
    let stem = |host: &KnownHost| {
        let stem = Path::new(&host.host.path).file_stem();
        stem.map_or_else(
            || host.host.path.clone(),
            |stem| stem.to_string_lossy().into_owned(),
        )
    };
    let mut times: HashMap<String, usize> = HashMap::new();
    for host in hosts.iter() {
        *times.entry(stem(host)).or_default() += 1;
    }
    for host in hosts {
        let stem = stem(host);
        host.host.name = if times[&stem] == 1 {
            stem
        } else {
            host.host.path.clone()
        };
    }
}

/// Ends of the names of facts files.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

fn in_directory(directory: &Path) -> Result<Vec<PathBuf>, Stop> {
    let is_wanted = |path: &Path| {
        path.extension().is_some_and(|extension| {
            EXTENSIONS
                .iter()
                .any(|known| extension.eq_ignore_ascii_case(known))
        }) && path.metadata().map_or(true, |metadata| metadata.is_file())
    };
    let fail = |why: String| Stop::new(format!("--facts {why}"));
    let mut files = pattern::entries(directory).map_err(fail)?;
    files.retain(|path| is_wanted(path));
    if files.is_empty() {
        let title = format!("no facts file is in {}", directory.display());
        return Err(Stop::new(title).help("their names end in .json, .yaml or .yml"));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn directories_and_patterns_name_files_in_order_and_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for directory in ["a", "b"] {
            fs::create_dir(at(directory)).unwrap();
        }
        for file in [
            "a/kvm2.json",
            "a/kvm1.json",
            "a/notes.txt",
            "a/.old.json",
            "b/kvm1.yaml",
        ] {
            fs::write(at(file), "").unwrap();
        }
        let named = |arguments: &[&str]| {
            let arguments: Vec<PathBuf> = arguments.iter().map(|name| at(name)).collect();
            let files = files(&arguments).map_err(|stop| stop.0[0].title.clone());
            files.map(|files| {
                let relative = |path: &PathBuf| {
                    path.strip_prefix(folder.path())
                        .unwrap()
                        .to_string_lossy()
                        .into_owned()
                };
                files.iter().map(relative).collect::<Vec<_>>()
            })
        };
        let both = ["a/kvm1.json", "a/kvm2.json"].map(str::to_owned).to_vec();
        assert_eq!(named(&["a"]), Ok(both.clone()));
        assert_eq!(named(&["a/*.json", "a/kvm1.json"]), Ok(both));
        assert_eq!(
            named(&["*/kvm1.*"]).unwrap(),
            ["a/kvm1.json", "b/kvm1.yaml"]
        );
        assert!(
            named(&["c/*.json"])
                .unwrap_err()
                .ends_with("no file matches")
        );
        assert!(named(&["a/[.json"]).is_err());
        assert_eq!(named(&["a/missing.json"]).unwrap(), ["a/missing.json"]);
        fs::write(at("a/[x].json"), "").unwrap();
        assert_eq!(
            named(&["a/[x].json"]).unwrap(),
            ["a/[x].json"],
            "an existing file is not a pattern"
        );
    }
}
