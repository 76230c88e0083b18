//! The settings of each input, from the command line and from the configuration for its path.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use vmdisk::settings::Section;
use vmdisk::{Policy, Rule, Selection, Severity, Target};

use crate::args::LintArgs;
use crate::config::configuration_args::ConfigurationArgs;
use crate::config::host_of_files::host_of;
use crate::config::is_in;
use crate::config::selection::SelectionArgs;
use crate::config::{self, Config, Finder};
use crate::hosts;
use crate::input::absolute::absolute;
use crate::input::bounded;
use crate::input::inputs::{Inputs, Origin, Search};
use crate::render::message::Message;
use crate::stop::{Stop, plain};

/// Settings of some inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The configuration that they come from, if there is one.
    pub(crate) config: Option<PathBuf>,
    /// The number of their source.
    pub(crate) source: usize,
    pub(crate) policy: Policy,
    pub(crate) selection: Selection,
    /// House rules.
    pub(crate) rules: Vec<&'static Rule>,
    pub(crate) ignored: BTreeSet<String>,
    pub(crate) fail_on: Severity,
    /// Known findings.
    pub(crate) baseline: Option<PathBuf>,
}

/// The hosts of some inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source {
    /// Facts files.
    pub(crate) facts: Vec<PathBuf>,
    pub(crate) target: Option<Target>,
    /// The name of the host that runs all of them, if the command line gives it.
    pub(crate) host: Option<String>,
}

/// A configuration, and entries of its `files` that inputs match.
type Known = (Option<*const Config>, Vec<usize>);

/// The settings of all inputs.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) settings: Vec<Settings>,
    pub(crate) sources: Vec<Source>,
    /// The number of the settings of each input.
    pub(crate) of_input: Vec<usize>,
    /// An input below the current directory to which the configuration there does not apply.
    pub(crate) unconfigured: Option<PathBuf>,
    /// Baselines that cannot be opened, each with the place in the configuration that names it.
    pub(crate) missing_baselines: Vec<(PathBuf, Message)>,
    /// Numbers of settings by configurations, which live as long as the search for them, and entries of `files`.
    known: HashMap<(Known, Option<String>), usize>,
    /// Facts files by the same configurations.
    facts: HashMap<Known, Rc<FactsFiles>>,
}

/// Facts files, in order and by the names of their hosts.
#[derive(Debug)]
struct FactsFiles {
    all: Vec<PathBuf>,
    of_host: HashMap<OsString, PathBuf>,
}

/// Finds the settings of every input, and removes inputs that a configuration excludes.
pub(crate) fn plan(args: &LintArgs, inputs: &mut Inputs) -> Result<Plan, Stop> {
    let ConfigurationArgs {
        config, no_config, ..
    } = &args.configuration;
    let mut finder = match (config, no_config) {
        (Some(path), _) => Finder::given(Config::read(path)?),
        (None, true) => Finder::Nowhere,
        (None, false) => Finder::nearest(),
    };
    let here = absolute(Path::new("."));
    let excluded = excluded(args, &here)?;
    let mut plan = Plan::default();
    let mut kept = Vec::with_capacity(inputs.files.len());
    // Inputs of one directory follow each other.
    let mut last: Option<InputDirectory> = None;
    for input in std::mem::take(&mut inputs.files) {
        let parent = match input.origin {
            Origin::Stdin | Origin::Given(_) | Origin::Host => Path::new(""),
            Origin::Named | Origin::Found(_) => input.file.parent().unwrap_or(Path::new("")),
        };
        let place = match last.take() {
            Some(place) if place.parent == parent => place,
            Some(_) | None => InputDirectory::new(parent, &mut finder)?,
        };
        let path = place
            .directory
            .join(input.file.file_name().unwrap_or_default());
        if let Origin::Found(search) = input.origin
            && is_in(&excluded, &path)
        {
            inputs.searches[search].exclude("`--exclude`");
            last = Some(place);
            continue;
        }
        let number = match &place.config {
            None => plan.add(args, None, Vec::new(), host_of(&args.hosts, &input.file))?,
            Some(config) => {
                if let Origin::Found(search) = input.origin
                    && config.excludes(&path)
                {
                    if let Some(search) = inputs.searches.get_mut(search) {
                        search.exclude(&by_config(config));
                    }
                    last = Some(place);
                    continue;
                }
                let host = host_of(&args.hosts, &input.file);
                plan.add(args, Some(config), config.matching(&path), host)?
            }
        };
        if place.config.is_none()
            && plan.unconfigured.is_none()
            && place.directory.starts_with(&here)
        {
            plan.unconfigured = Some(input.file.clone());
        }
        last = Some(place);
        plan.of_input.push(number);
        kept.push(input);
    }
    inputs.files = kept;
    if !matches!(finder, Finder::Nearest(_)) || !Path::new(config::NAME).is_file() {
        plan.unconfigured = None;
    }
    for search in &mut inputs.searches {
        forget_excluded_trouble(search, &mut finder, &excluded)?;
    }
    if plan.settings.is_empty() {
        // Facts that were asked for are read even if there is nothing to check.
        plan.add(args, None, Vec::new(), None)?;
    }
    Ok(plan)
}

/// The patterns of `--exclude`, from the current directory.
fn excluded(args: &LintArgs, here: &Path) -> Result<Gitignore, Stop> {
    let mut builder = GitignoreBuilder::new(here);
    let refuse = |error: ignore::Error| Stop::new(format!("--exclude: {error}"));
    for pattern in &args.exclude {
        builder.add_line(None, pattern).map_err(refuse)?;
    }
    builder.build().map_err(refuse)
}

/// What a configuration excludes by, in words.
fn by_config(config: &Config) -> String {
    format!("`exclude` in {}", config.path.display())
}

/// Drops directories that could not be searched and that a configuration or `--exclude` excludes.
fn forget_excluded_trouble(
    search: &mut Search,
    finder: &mut Finder,
    excluded: &Gitignore,
) -> Result<(), Stop> {
    for (path, why) in std::mem::take(&mut search.trouble) {
        // A search names itself if it found nothing.
        let is_below = path != search.path;
        let absolute = absolute(&path);
        if is_below && is_in(excluded, &absolute.join("\u{1}")) {
            search.exclude("`--exclude`");
            continue;
        }
        let config = match absolute.parent() {
            Some(parent) if is_below => finder.of(parent)?,
            Some(_) | None => None,
        };
        match config.filter(|config| config.excludes_directory(&absolute)) {
            Some(config) => search.exclude(&by_config(&config)),
            None => search.trouble.push((path, why)),
        }
    }
    Ok(())
}

/// A directory with inputs, and its configuration.
struct InputDirectory {
    /// The directory as the inputs name it.
    parent: PathBuf,
    /// The same as an absolute path.
    directory: PathBuf,
    config: Option<Rc<Config>>,
}

impl InputDirectory {
    fn new(parent: &Path, finder: &mut Finder) -> Result<Self, Stop> {
        let directory = match parent.as_os_str().is_empty() {
            true => absolute(Path::new(".")),
            false => absolute(parent),
        };
        Ok(InputDirectory {
            parent: parent.to_owned(),
            config: finder.of(&directory)?,
            directory,
        })
    }
}

impl Plan {
    /// The configurations in use, each once.
    pub(crate) fn configurations(&self) -> BTreeSet<&Path> {
        let used = self.of_input.iter().map(|number| &self.settings[*number]);
        used.filter_map(|settings| settings.config.as_deref())
            .collect()
    }

    /// The baselines, each once.
    pub(crate) fn baselines(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = Vec::new();
        for path in self.settings.iter().filter_map(|one| one.baseline.as_ref()) {
            if !found.contains(path) {
                found.push(path.clone());
            }
        }
        found
    }

    /// The baseline that a configuration names. Only a run that reads it needs it to exist.
    fn baseline(&mut self, config: &Config) -> Result<Option<PathBuf>, Stop> {
        let Some((path, span)) = &config.settings.baseline else {
            return Ok(None);
        };
        let path = config.named(path);
        config.check_named(&path, *span)?;
        let is_known = self
            .missing_baselines
            .iter()
            .any(|(known, _)| *known == path);
        if !is_known && let Err(error) = bounded::open_regular(&path) {
            let title = format!(
                "could not read the baseline {}: {}",
                path.display(),
                plain(&error)
            );
            let help = (error.kind() == ErrorKind::NotFound)
                .then(|| "`vmdisk lint --write-baseline` writes one".to_owned());
            let message = config.mistake(*span, title, help);
            self.missing_baselines.push((path.clone(), message));
        }
        Ok(Some(path))
    }

    /// The number of the settings of inputs with this configuration that match these entries of its `files`.
    fn add(
        &mut self,
        args: &LintArgs,
        config: Option<&Rc<Config>>,
        matching: Vec<usize>,
        host: Option<&str>,
    ) -> Result<usize, Stop> {
        let key = ((config.map(Rc::as_ptr), matching), host.map(str::to_owned));
        if let Some(number) = self.known.get(&key) {
            return Ok(*number);
        }
        let number = self.resolve(args, config.map(AsRef::as_ref), &key.0, host)?;
        self.known.insert(key, number);
        Ok(number)
    }

    /// The facts files of inputs with this configuration.
    fn facts(
        &mut self,
        args: &LintArgs,
        config: Option<&Config>,
        known: &Known,
        sections: &[&Section],
    ) -> Result<Rc<FactsFiles>, Stop> {
        if let Some(facts) = self.facts.get(known) {
            return Ok(facts.clone());
        }
        let all = match config {
            _ if args.host.live || !args.host.facts.is_empty() => hosts::files(&args.host.facts)?,
            Some(config) => facts_of(config, sections)?,
            None => Vec::new(),
        };
        let named = all.iter().rev();
        let of_host = named.filter_map(|file| Some((file.file_stem()?.to_owned(), file.clone())));
        let of_host = of_host.collect();
        let facts = Rc::new(FactsFiles { all, of_host });
        self.facts.insert(known.clone(), facts.clone());
        Ok(facts)
    }

    fn resolve(
        &mut self,
        args: &LintArgs,
        config: Option<&Config>,
        known: &Known,
        host: Option<&str>,
    ) -> Result<usize, Stop> {
        let sections = config.map_or_else(Vec::new, |config| config.settings.sections_of(&known.1));
        let last = |has: fn(&Section) -> bool| {
            let found = sections.iter().rev().find(|section| has(section));
            found.copied()
        };
        let facts = self.facts(args, config, known, &sections)?;
        let facts = match host {
            Some(host) => facts.of(host)?,
            None => facts.all.clone(),
        };
        let target = args.host.target.clone();
        let source = Source {
            facts,
            target: target.or_else(|| last(|section| section.target.is_some())?.target.clone()),
            host: host.map(str::to_owned),
        };
        let policy = args.host.policy;
        let policy = policy.or_else(|| last(|section| section.policy.is_some())?.policy);
        let fail_on = args.fail_on.or_else(|| config?.settings.fail_on);
        let levels = sections.iter().flat_map(|section| &section.rules);
        let SelectionArgs {
            select,
            extend_select,
            ..
        } = &args.selection;
        let selection = Selection::of(levels, select, extend_select)
            .map_err(|error| Stop::new(error.to_string()))?;
        let least = args.selection.min_severity;
        let settings = Settings {
            config: config.map(|config| config.path.clone()),
            source: number_of(&mut self.sources, source),
            policy: policy.unwrap_or_default(),
            selection: selection.least(least.or_else(|| config?.settings.min_severity)),
            rules: config.map_or_else(Vec::new, |config| config.settings.rules.clone()),
            ignored: args.selection.ignored(),
            fail_on: fail_on.unwrap_or(Severity::Warning),
            baseline: match (&args.baseline, config) {
                (Some(path), _) => Some(path.clone()),
                (None, Some(config)) => self.baseline(config)?,
                (None, None) => None,
            },
        };
        Ok(number_of(&mut self.settings, settings))
    }
}

impl FactsFiles {
    /// The facts file of a host; no file if none is named at all.
    fn of(&self, host: &str) -> Result<Vec<PathBuf>, Stop> {
        match self.of_host.get(OsStr::new(host)) {
            Some(file) => Ok(vec![file.clone()]),
            None if self.all.is_empty() => Ok(Vec::new()),
            None => Err(
                Stop::new(format!("--host {host}: no facts file has this name"))
                    .help("a host has the name of its facts file, without the extension"),
            ),
        }
    }
}

/// The number of a value in a list of few, which it joins if it is new.
fn number_of<T: PartialEq>(list: &mut Vec<T>, value: T) -> usize {
    let known = list.iter().position(|known| *known == value);
    known.unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    })
}

/// The facts files that a configuration names for an input.
fn facts_of(config: &Config, sections: &[&Section]) -> Result<Vec<PathBuf>, Stop> {
    let named = sections
        .iter()
        .rev()
        .find_map(|section| section.facts.as_ref());
    let mut files: Vec<PathBuf> = Vec::new();
    for (path, span) in named.into_iter().flatten() {
        let path = config.named(path);
        config.check_named(&path, *span)?;
        let found = hosts::files(std::slice::from_ref(&path)).map_err(|stop| {
            let title = stop
                .0
                .into_iter()
                .map(|message| message.title)
                .collect::<String>();
            let title = title.replacen("--facts ", "facts: ", 1);
            Stop::from(config.mistake(*span, title, None))
        })?;
        for file in &found {
            config.check_named(file, *span)?;
        }
        if found == [path.clone()] && !path.exists() {
            let title = format!("no such file: {}", path.display());
            let help =
                "paths start at the directory of vmdisk.toml; `vmdisk facts -o FILE` writes facts";
            return Err(config.mistake(*span, title, Some(help.to_owned())).into());
        }
        files.extend(
            found
                .into_iter()
                .filter(|file| !files.contains(file))
                .collect::<Vec<_>>(),
        );
    }
    let hosts = sections
        .iter()
        .rev()
        .find_map(|section| section.hosts.as_ref());
    let Some(hosts) = hosts else {
        return Ok(files);
    };
    let name = |file: &PathBuf| {
        file.file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
    };
    let names: Vec<String> = files.iter().filter_map(name).collect();
    for (host, span) in hosts {
        if !names.contains(host) {
            let near = vmdisk_source::nearest(host, names.iter().map(String::as_str));
            let help = near.map(|near| format!("did you mean `{near}`?"));
            let title = format!("no facts file is named after the host `{host}`");
            return Err(config.mistake(*span, title, help).into());
        }
    }
    let is_wanted =
        |file: &PathBuf| name(file).is_some_and(|name| hosts.iter().any(|(host, _)| *host == name));
    files.retain(is_wanted);
    Ok(files)
}
