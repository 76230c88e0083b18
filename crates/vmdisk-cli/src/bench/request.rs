//! A user's request, as stored with a run, and its plan.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vmdisk::facts::FactsNeeded;
use vmdisk::model::Bytes;
use vmdisk::{Facts, Host, Target};
use vmdisk_bench_runner::engines::{KernelSource, Workspace};
use vmdisk_bench_runner::{
    EngineKind, Limits, Plan, PlanOptions, Storage, allowed_processors, numa_nodes, plan_proposals,
    read_plan,
};

use super::args::{HowArgs, WhereArgs};
use super::stop::stop;
use super::{check, environment, presets, proposals};
use crate::stop::{Stop, plain};

/// A user's request, from which the plan can be rebuilt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) subject: Subject,
    /// Directory for images, unless a configuration sets its own.
    pub(super) directory: PathBuf,
    directories: Vec<PathBuf>,
    size_bytes: Option<u64>,
    seconds: Option<f64>,
    /// Seconds of the samples of a quick run, in place of longer ones.
    #[serde(default)]
    pub(super) quick_seconds: Option<f64>,
    #[serde(default)]
    workloads: Vec<String>,
    #[serde(default)]
    only: Vec<String>,
    engine: Option<EngineKind>,
    device: Option<(PathBuf, String)>,
    group: Option<String>,
    /// The vhost-user-blk socket whose disk is overwritten; unset in old runs.
    #[serde(default)]
    socket: Option<PathBuf>,
    kernel: Option<PathBuf>,
    modules: Option<PathBuf>,
    /// The facts file that the figures are added to.
    #[serde(default)]
    pub(super) to_facts: Option<PathBuf>,
}

/// The size of a quick run's disks.
const QUICK_BYTES: u64 = 64 << 20;

/// The lengths of a quick run's samples, the longest that fits is taken.
pub(super) const QUICK_SECONDS: [f64; 4] = [1.0, 0.5, 0.3, 0.2];

/// The subject of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Subject {
    /// A preset by its name.
    Preset(String),
    /// A plan: its file and text.
    Plan(String, String),
    /// The linter's proposals for a guest: its file and text.
    Guest(String, String),
    /// The example on the page of a rule.
    Rule(String),
}

impl Request {
    /// Builds the request from the arguments.
    pub(super) fn new(subject: Subject, place: &WhereArgs, how: &HowArgs) -> Result<Self, Stop> {
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(|error| Stop::file("find", path, plain(&error)))
        };
        let directories: Vec<PathBuf> = place
            .directories
            .iter()
            .map(|directory| absolute(directory))
            .collect::<Result<_, _>>()?;
        let directory = match directories.first() {
            Some(first) => first.clone(),
            None => absolute(Path::new("."))?,
        };
        for directory in directories.iter().chain([&directory]) {
            if !directory.is_dir() {
                return Err(Stop::file("create images in", directory, "not a directory"));
            }
        }
        Ok(Request {
            subject,
            directory,
            directories,
            size_bytes: how
                .size
                .map(|size| size.0)
                .or(how.quick.then_some(QUICK_BYTES)),
            seconds: how.seconds,
            quick_seconds: how.quick.then_some(QUICK_SECONDS[0]),
            workloads: how.workloads.clone(),
            only: how.only.clone(),
            engine: place.engine,
            device: place
                .destroy_data_on
                .clone()
                .zip(place.confirm_serial.clone()),
            group: place.group.clone(),
            socket: socket(place)?,
            kernel: place.kernel.as_deref().map(absolute).transpose()?,
            modules: place.modules.as_deref().map(absolute).transpose()?,
            to_facts: how.to_facts.as_deref().map(absolute).transpose()?,
        })
    }

    /// Returns the workspace for storage and guests.
    pub(super) fn workspace(&self) -> Result<Workspace, Stop> {
        let kernel = match (&self.kernel, &self.modules) {
            (None, _) => KernelSource::Host,
            (Some(image), Some(modules)) => KernelSource::Files {
                image: image.clone(),
                modules: modules.clone(),
            },
            (Some(folder), None) if folder.is_dir() => KernelSource::Package(folder.clone()),
            (Some(image), None) => {
                return Err(Stop::new(format!(
                    "`--kernel {}` is an image without modules",
                    image.display()
                ))
                .help("use `--modules` with the directory of its modules"));
            }
        };
        Ok(Workspace::new(&self.directory).with_kernel(kernel))
    }

    /// Returns every directory for images.
    pub(super) fn all_directories(&self) -> Vec<PathBuf> {
        if self.directories.is_empty() {
            vec![self.directory.clone()]
        } else {
            self.directories.clone()
        }
    }

    /// Returns the directories in which a plan creates images: the request's, and those of its configurations.
    pub(super) fn directories_of(&self, plan: &Plan) -> Vec<PathBuf> {
        let own = plan
            .configurations
            .iter()
            .filter_map(|it| match &it.storage {
                Storage::File { directory, .. } => directory.as_ref(),
                _ => None,
            });
        with(self.all_directories(), own)
    }

    /// Returns the places of a plan: its directories, and the devices and files that its configurations name.
    pub(super) fn places_of(&self, plan: &Plan) -> Vec<PathBuf> {
        let own = plan
            .configurations
            .iter()
            .filter_map(|it| match &it.storage {
                Storage::Device { path, .. } | Storage::Existing { path } => Some(path),
                _ => None,
            });
        with(self.directories_of(plan), own)
    }

    /// Returns the facts that the linter needs about the guest whose proposals are measured: its images may be elsewhere.
    pub(super) fn facts_needed(&self) -> FactsNeeded {
        match &self.subject {
            Subject::Guest(_, text) => {
                let document = vmdisk::read(text).ok();
                document.map(|it| it.facts_needed()).unwrap_or_default()
            }
            Subject::Preset(_) | Subject::Plan(..) | Subject::Rule(_) => FactsNeeded::default(),
        }
    }

    /// Builds the plan on this host, with the linter's findings on each configuration.
    pub(super) fn plan(&self, facts: &Facts) -> Result<Plan, Stop> {
        let host = Host::new(facts.clone());
        let target = Target::default().or(Target::from_facts(facts));
        let options = PlanOptions {
            // A single directory is not a factor.
            directories: self.directories.clone(),
            size: self.size_bytes.map(Bytes),
            seconds: self.seconds,
            workloads: self.workloads.clone(),
            engine: self.engine,
            limits: Limits {
                processors: facts.cpu.count.as_ref().known().copied().unwrap_or(1),
                device: self.device.clone(),
                group: self.group.clone(),
                socket: self.socket.clone(),
                huge_page_bytes: environment::free_huge_pages(facts),
                allowed_processors: allowed_processors(),
                numa_nodes: numa_nodes(),
            },
        };
        let mut plan = match &self.subject {
            Subject::Preset(name) => {
                read_plan(presets::text_of(name), name, &options).map_err(stop)?
            }
            Subject::Plan(called, text) => read_plan(text, called, &options).map_err(stop)?,
            Subject::Guest(called, text) => {
                let document = vmdisk::read(text)
                    .map_err(|error| Stop::new(format!("could not read {called}: {error}")))?;
                let found = proposals::of_guest(&document, Some(host.clone()), &target);
                let mut plan = plan_proposals(&found.pairs, &options);
                plan.left_out.extend(found.left_out);
                plan
            }
            Subject::Rule(name) => {
                let rule = vmdisk::rules::find(name)
                    .ok_or_else(|| Stop::new(format!("the rule `{name}` was removed")))?;
                let found = proposals::of_rule(rule)?;
                let mut plan = plan_proposals(&found.pairs, &options);
                plan.name = format!("verify {name}");
                plan.question = rule.summary().to_owned();
                plan
            }
        };
        check::check(&mut plan, &host, &target, &self.directory);
        let names: Vec<&str> = plan
            .configurations
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        if let Some(unknown) = self
            .only
            .iter()
            .find(|name| !names.contains(&name.as_str()))
        {
            return Err(
                Stop::new(format!("no configuration is called `{unknown}`")).help(format!(
                    "those that can be measured here are {}",
                    names.join(", ")
                )),
            );
        }
        if !self.only.is_empty() {
            plan.keep_only(&self.only);
        }
        if let Some(seconds) = self.quick_seconds {
            plan.shorten(seconds);
        }
        Ok(plan)
    }
}

/// Adds the paths that are not there yet.
fn with<'a>(mut paths: Vec<PathBuf>, more: impl Iterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    for path in more {
        if !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    paths
}

/// Returns the socket whose disk is overwritten, if the user named one.
fn socket(place: &WhereArgs) -> Result<Option<PathBuf>, Stop> {
    let Some(path) = &place.destroy_data_behind else {
        return Ok(None);
    };
    let failed = |why: &str| Stop::file("connect to", path, why);
    let metadata = std::fs::metadata(path).map_err(|error| failed(&plain(&error)))?;
    if !metadata.file_type().is_socket() {
        return Err(failed("not a socket"));
    }
    let path = std::path::absolute(path).map_err(|error| failed(&plain(&error)))?;
    Ok(Some(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_a_socket_is_parsed() {
        let text = r#"{
            "subject": {"preset": "cache-modes"}, "directory": "/", "directories": [], "size_bytes": null,
            "seconds": 0.5, "engine": null, "device": null, "group": null, "kernel": null, "modules": null
        }"#;
        let request: Request = serde_json::from_str(text).unwrap();
        assert_eq!(request.socket, None);
        let chosen = Request {
            socket: Some(PathBuf::from("/run/spdk/vhost.0")),
            ..request
        };
        let again = serde_json::to_string(&chosen).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&again).unwrap(), chosen);
    }
}
