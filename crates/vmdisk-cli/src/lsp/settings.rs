//! Settings of open files: the nearest vmdisk.toml of each, and the facts that it names.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Parser as _;
use vmdisk::{Document, FixScope, LintOptions, LintReport, Storage, Target};
use vmdisk_lsp::{FileSettings, SettingsError};

use crate::args::{LintArgs, LspArgs};
use crate::color::Colors;
use crate::config::settings::{self, Plan};
use crate::input::inputs::{Input, Inputs, Origin};
use crate::io::Io;
use crate::sources::Sources;
use crate::stop::Stop;

/// The options of `vmdisk lint` for the files of an editor.
pub(super) struct Files<'a, 'io> {
    args: LintArgs,
    io: &'a mut Io<'io>,
    colors: Colors,
    known: Option<Known>,
}

/// Facts that were read, and the files that they come from.
struct Known {
    plan: Plan,
    sources: Sources,
    stamps: Vec<(PathBuf, Option<SystemTime>)>,
}

/// The defaults of `vmdisk lint`.
#[derive(clap::Parser)]
struct Defaults {
    #[command(flatten)]
    lint: LintArgs,
}

impl<'a, 'io> Files<'a, 'io> {
    pub(super) fn new(args: &LspArgs, io: &'a mut Io<'io>, colors: Colors) -> Self {
        let mut lint = Defaults::parse_from(["vmdisk", "-"]).lint;
        lint.host.facts.clone_from(&args.facts);
        lint.host.target.clone_from(&args.target);
        lint.host.policy = args.policy;
        lint.configuration.config.clone_from(&args.config);
        lint.configuration.no_config = args.no_config;
        Files {
            args: lint,
            io,
            colors,
            known: None,
        }
    }

    /// Does something with the options for a file; `None` if its configuration excludes it.
    fn with_options<T>(
        &mut self,
        path: &Path,
        with: impl FnOnce(&LintOptions) -> T,
    ) -> Result<Option<T>, Stop> {
        let mut inputs = Inputs::default();
        // As in a directory: the configuration may exclude it.
        let origin = Origin::Found(0);
        inputs.files.push(Input::new(path.to_owned(), origin));
        // The configuration is read each time: it is small, and a new one takes effect at once.
        let plan = settings::plan(&self.args, &mut inputs)?;
        if inputs.files.is_empty() {
            return Ok(None);
        }
        let known = self.known.take().filter(|known| known.is_for(&plan));
        let mut known = match known {
            Some(known) => known,
            None => Known::read(&plan, &self.args, self.io, self.colors)?,
        };
        known.plan = plan;
        let known = self.known.insert(known);
        let settings = &known.plan.settings[known.plan.of_input[0]];
        let fleets = known.sources.fleets(&known.plan);
        Ok(Some(with(&known.sources.options(settings, &fleets))))
    }
}

impl Known {
    fn read(plan: &Plan, args: &LintArgs, io: &mut Io<'_>, colors: Colors) -> Result<Self, Stop> {
        let stamps = stamps(plan);
        let mut sources = Sources::load(plan, args, io, colors)?;
        // An unreadable one among several is an input that failed; here the facts are incomplete.
        let failed: Vec<_> = sources.failed();
        let messages = failed.into_iter().filter_map(|one| one.outcome.err());
        let messages: Vec<_> = messages.map(|message| *message).collect();
        match messages.is_empty() {
            true => Ok(Known {
                plan: Plan::default(),
                sources,
                stamps,
            }),
            false => Err(Stop(messages)),
        }
    }

    /// True if the facts of a plan are these, and their files did not change.
    fn is_for(&self, plan: &Plan) -> bool {
        self.plan.sources == plan.sources && self.stamps == stamps(plan)
    }
}

/// The facts files of a plan with the times of their last changes.
fn stamps(plan: &Plan) -> Vec<(PathBuf, Option<SystemTime>)> {
    let files = plan.sources.iter().flat_map(|source| &source.facts);
    files
        .map(|file| {
            let changed = std::fs::metadata(file).and_then(|metadata| metadata.modified());
            (file.clone(), changed.ok())
        })
        .collect()
}

impl FileSettings for Files<'_, '_> {
    fn lint(
        &mut self,
        path: &Path,
        mut document: Document,
    ) -> Result<Option<(Document, LintReport)>, SettingsError> {
        if document.has_volumes() {
            document.locate_volumes(&Storage::default());
        }
        let linted = self.with_options(path, |options| {
            if let Some(planned) = options.planned(&document) {
                document = planned;
            }
            let report = vmdisk::lint(&document, options);
            (document, report)
        });
        linted.map_err(|stop| error_of(&stop))
    }

    fn fix(&mut self, path: &Path, text: &str) -> Option<String> {
        let fixed = self.with_options(path, |options| vmdisk::fix(text, options, FixScope::Safe));
        Some(fixed.ok()??.ok()?.document.text.to_string())
    }

    fn target(&mut self, path: &Path) -> Target {
        let target = self.with_options(path, |options| options.target.clone());
        target.ok().flatten().unwrap_or_default()
    }
}

/// The messages of a failure, each with its place.
fn error_of(stop: &Stop) -> SettingsError {
    let line = |message: &crate::render::message::Message| {
        let place = message.place.as_ref();
        let at = place.map(|place| match &place.quoted {
            Some(quoted) => {
                let position = quoted.start();
                format!("{}:{}:{}: ", place.path, position.line, position.column)
            }
            None => format!("{}: ", place.path),
        });
        let help = message.help.as_ref().map(|help| format!("\nhelp: {help}"));
        format!(
            "{}{}{}",
            at.unwrap_or_default(),
            message.title,
            help.unwrap_or_default()
        )
    };
    let lines: Vec<String> = stop.0.iter().map(line).collect();
    SettingsError {
        message: lines.join("\n"),
    }
}
