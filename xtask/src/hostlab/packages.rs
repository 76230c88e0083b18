//! Debian packages without installation: downloaded with apt from the system's mirror, and unpacked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail, ensure};

/// A release of Debian, independent of the system's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    /// Its name.
    pub(crate) name: &'static str,
    /// Suffixes of its suites: `-backports`; empty for the release itself.
    pub(crate) suites: &'static [&'static str],
}

/// apt's data about a release, in a private directory that only one program uses at a time.
#[derive(Debug)]
pub(crate) struct Packages {
    folder: PathBuf,
    _lock: fs::File,
    release: Release,
    architecture: Option<&'static str>,
}

impl Packages {
    /// Prepares apt, with package lists that are at most a day old. Waits for other programs that use the directory.
    pub(crate) fn ready(folder: &Path, release: Release) -> anyhow::Result<Self> {
        Self::of(folder, release, None)
    }

    /// As [`Packages::ready`], for another architecture than the system's.
    pub(crate) fn of(
        folder: &Path,
        release: Release,
        architecture: Option<&'static str>,
    ) -> anyhow::Result<Self> {
        let folder = folder.join("apt");
        fs::create_dir_all(&folder)?;
        let lock = fs::File::create(folder.join("lock"))?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)?;
        let packages = Self {
            folder,
            _lock: lock,
            release,
            architecture,
        };
        for name in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(packages.folder.join(name))?;
        }
        // No package counts as installed, so that apt lists every dependency.
        fs::write(packages.folder.join("installed"), "")?;
        fs::write(packages.folder.join("lab.sources"), sources(release)?)?;
        let stamp = packages.folder.join("updated");
        let is_fresh = fs::metadata(&stamp)
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok())
            .is_some_and(|age| age < Duration::from_secs(24 * 60 * 60));
        if !is_fresh {
            run(packages.apt().arg("update"))?;
            fs::write(stamp, "")?;
        }
        Ok(packages)
    }

    fn apt(&self) -> Command {
        let mut command = Command::new("apt-get");
        let at = |name: &str| self.folder.join(name).display().to_string();
        for option in [
            format!("Dir::Etc::sourcelist={}", at("lab.sources")),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State::status={}", at("installed")),
            format!("Dir::State::lists={}", at("lists")),
            format!("Dir::Cache={}", at("cache")),
            "Acquire::Languages=none".to_owned(),
            // The sandbox user may have no access to the directory.
            "APT::Sandbox::User=".to_owned(),
            "Debug::NoLocking=true".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        if let Some(architecture) = self.architecture {
            for option in ["APT::Architecture", "APT::Architectures"] {
                command.args(["-o", &format!("{option}={architecture}")]);
            }
        }
        command.env("LC_ALL", "C").arg("-qq");
        command
    }

    /// Returns a directory with packages of a suite and their dependencies unpacked; `keep` selects them by name.
    pub(crate) fn unpacked(
        &self,
        name: &str,
        suite: &str,
        wanted: &[&str],
        keep: impl Fn(&str) -> bool,
    ) -> anyhow::Result<PathBuf> {
        let suite = format!("{}{suite}", self.release.name);
        let install = |first: &str| {
            let mut command = self.apt();
            command.args([first, "--yes", "--no-install-recommends", "-t", &suite]);
            command.arg("install").args(wanted);
            command
        };
        let planned = run(&mut install("--simulate"))?;
        let mut chosen: Vec<String> = Vec::new();
        for line in planned.lines() {
            let mut words = line.split_whitespace();
            if let (Some("Inst"), Some(package), Some(version)) =
                (words.next(), words.next(), words.next())
                && keep(package)
            {
                chosen.push(format!("{package}={}", version.trim_start_matches('(')));
            }
        }
        ensure!(!chosen.is_empty(), "apt chose no package of {wanted:?}");
        let stamp_text = chosen.join("\n");
        let root = self.folder.join(name);
        let stamp = self.folder.join(format!("{name}.packages"));
        if fs::read_to_string(&stamp).is_ok_and(|text| text == stamp_text) && root.is_dir() {
            return Ok(root);
        }
        println!("fetching {} packages for {name}", chosen.len());
        let archives = self.folder.join(format!("{name}.debs"));
        for folder in [&root, &archives] {
            if folder.exists() {
                fs::remove_dir_all(folder)?;
            }
            fs::create_dir_all(folder)?;
        }
        run(self
            .apt()
            .arg("download")
            .args(&chosen)
            .current_dir(&archives))?;
        for deb in fs::read_dir(&archives)? {
            run(Command::new("dpkg-deb")
                .arg("-x")
                .args([&deb?.path(), &root]))?;
        }
        fs::remove_dir_all(&archives)?;
        fs::write(&stamp, stamp_text)?;
        Ok(root)
    }
}

/// Returns apt's sources for a release: the system's sources with the release replaced.
fn sources(wanted: Release) -> anyhow::Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let field = |name: &str| {
        release
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .map(|value| value.trim_matches('"').to_owned())
    };
    let (Some("debian"), Some(codename)) = (field("ID").as_deref(), field("VERSION_CODENAME"))
    else {
        bail!("this needs the sources of a Debian system");
    };
    let mut texts = Vec::new();
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(parts) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(parts.filter_map(|part| Some(part.ok()?.path())));
    }
    for file in files {
        let known = matches!(
            file.extension().and_then(|extension| extension.to_str()),
            Some("list" | "sources")
        );
        if known && let Ok(text) = fs::read_to_string(&file) {
            texts.push(text);
        }
    }
    let written = rewritten(&texts, &codename, wanted);
    ensure!(!written.is_empty(), "/etc/apt has no source for {codename}");
    Ok(written)
}

/// Converts the sources of a release, in either format, to sources of another.
fn rewritten(texts: &[String], codename: &str, release: Release) -> String {
    let security = format!("{codename}-security");
    let ours = |suites: &str| {
        let has = |wanted: &str| suites.split_whitespace().any(|suite| suite == wanted);
        let is_security = has(&security) && !has(codename);
        let wanted = release
            .suites
            .iter()
            .filter(|suite| (**suite == "-security") == is_security)
            .map(|suite| format!("{}{suite}", release.name));
        let wanted: Vec<String> = wanted.collect();
        ((has(codename) || is_security) && !wanted.is_empty()).then(|| wanted.join(" "))
    };
    let mut out = String::new();
    for stanza in texts.iter().flat_map(|text| text.split("\n\n")) {
        let fields: Vec<(&str, &str)> = stanza
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim(), value.trim()))
            .collect();
        let field = |wanted: &str| {
            fields
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
                .map(|(_, value)| *value)
        };
        if let (Some(address), Some(suites)) = (field("URIs"), field("Suites").and_then(ours)) {
            out += &format!("Types: deb\nURIs: {address}\nSuites: {suites}\nComponents: main\n");
            if let Some(key) = field("Signed-By").filter(|key| key.starts_with('/')) {
                out += &format!("Signed-By: {key}\n");
            }
            out.push('\n');
        }
    }
    for line in texts.iter().flat_map(|text| text.lines()) {
        let Some(rest) = line.strip_prefix("deb ") else {
            continue;
        };
        let rest = rest.trim_start();
        let (options, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((options, rest)) => (options, rest),
            None => ("", rest),
        };
        let mut words = rest.split_whitespace();
        if let (Some(address), Some(suites)) = (words.next(), words.next().and_then(ours)) {
            out += &format!("Types: deb\nURIs: {address}\nSuites: {suites}\nComponents: main\n");
            let key = options
                .split_whitespace()
                .find_map(|option| option.strip_prefix("signed-by="));
            if let Some(key) = key {
                out += &format!("Signed-By: {key}\n");
            }
            out.push('\n');
        }
    }
    out
}

/// Runs a program and returns its output.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("could not start {name}"))?;
    ensure!(
        output.status.success(),
        "{name} failed ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_of_sources_are_converted() {
        let texts = [
            "# a comment\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: trixie trixie-updates\n\
             Components: main\nSigned-By: /usr/share/keyrings/k.gpg\n\nTypes: deb\nURIs: http://other.example\nSuites: nodistro\n"
                .to_owned(),
            "deb [signed-by=/k.gpg] http://mirror.example/security trixie-security main\n\
             deb-src http://mirror.example/debian trixie main\n"
                .to_owned(),
        ];
        let all = Release {
            name: "bookworm",
            suites: &["", "-updates", "-backports", "-security"],
        };
        assert_eq!(
            rewritten(&texts, "trixie", all),
            "Types: deb\nURIs: http://mirror.example/debian\n\
             Suites: bookworm bookworm-updates bookworm-backports\nComponents: main\nSigned-By: /usr/share/keyrings/k.gpg\n\n\
             Types: deb\nURIs: http://mirror.example/security\nSuites: bookworm-security\nComponents: main\nSigned-By: /k.gpg\n\n"
        );
        assert_eq!(rewritten(&texts, "bookworm", all), "");
        let old = Release {
            name: "bullseye",
            suites: &[""],
        };
        assert_eq!(
            rewritten(&texts, "trixie", old),
            "Types: deb\nURIs: http://mirror.example/debian\nSuites: bullseye\nComponents: main\n\
             Signed-By: /usr/share/keyrings/k.gpg\n\n"
        );
    }
}
