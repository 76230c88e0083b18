//! The starts of QEMU in a shell script: their words, as far as nothing but the text decides over them.
//!
//! No condition is evaluated and no command is run. A variable has a value if all assignments before are literal and certain;
//! everything else is a hole.

use std::collections::HashMap;

use vmdisk_source::Span;

use super::expand::push;
use super::folder::Folder;
use super::hole::Fields;
use super::made_image::{is_qemu_img, made_image};
use super::program::{
    is_placeholder, is_program, is_program_variable, is_start_of_variable, is_storage_daemon,
    is_telling, may_start, names_qemu, only_asks,
};
use super::script::{MAX_BYTES, Run, Shell, Site};
use super::steps::{Assignment, CAPTURE, DECLARES, Step, Steps, Written, arguments_set, steps};
use super::text::Text;
use super::variables::{Part, Variables};
use crate::failure::ReadFailure;
use crate::runners::{Command, Runner};

/// Scripts within each other, at most.
const MAX_DEPTH: usize = 8;

/// Programs that run each other, at most.
const MAX_RUNNERS: usize = 16;

impl Shell<'_> {
    /// Reads a script that stands at a site.
    pub(super) fn run(&mut self, source: &Text, site: &Site) -> Result<(), ReadFailure> {
        if self.depth >= MAX_DEPTH {
            return Ok(());
        }
        let steps = steps(source, self.is_documentation, &mut self.holes)?;
        self.follow(steps, site, source.as_str().contains("nullglob"))
    }

    /// Follows the commands of a script that stands at a site.
    pub(super) fn follow(
        &mut self,
        steps: Steps,
        site: &Site,
        drops_patterns: bool,
    ) -> Result<(), ReadFailure> {
        let variables = Variables::new(&steps, &self.holes);
        let mut run = Run {
            steps,
            variables,
            site: site.clone(),
            drops_patterns,
        };
        let list = std::mem::take(&mut run.steps.list);
        let before = self.starts.len();
        for (nth, step) in list.iter().enumerate() {
            self.step(&mut run, nth, step)?;
            if self.bytes > MAX_BYTES {
                let message = "the variables of the script expand to too much text";
                return Err(ReadFailure::new(Span::empty(step.at), message).help(CAPTURE));
            }
            let next = list.get(nth + 1);
            if self.starts.len() > before && self.starts.last().is_some_and(|it| it.at == step.at) {
                refuse_loose_option(next)?;
            }
        }
        self.add_parts(&mut run, before)
    }

    fn step(&mut self, run: &mut Run, nth: usize, step: &Step) -> Result<(), ReadFailure> {
        if let Some(script) = &step.script {
            let line = self.filled(run, nth, step, script);
            return match self.inner(&Self::site(run, step), &line) {
                Err(failure) if names_qemu(line.as_str()) => Err(failure),
                _ => Ok(()),
            };
        }
        let first = step.words.first();
        let name = first.map(|it| it.text.as_str());
        if name.is_none_or(|it| DECLARES.contains(&it)) {
            for assignment in &step.assignments {
                self.assign(run, nth, step, assignment);
            }
            self.declare(run, step);
            return Ok(());
        }
        let (Some(first), Some(name)) = (first, name) else {
            return Ok(());
        };
        let is_runner = Runner::named(name).is_some();
        if name == "eval" {
            return self.evaluate(run, nth, step);
        }
        let may_start = first.text.has_hole()
            || is_runner
            || is_program(name)
            || is_storage_daemon(name)
            || is_qemu_img(name)
            || is_placeholder(name) && is_program_variable(name);
        if let Some(arguments) = arguments_set(step) {
            let assignment = Assignment {
                name: "@".to_owned(),
                is_append: false,
                is_member: false,
                value: Written::List(arguments.to_vec()),
            };
            self.assign(run, nth, step, &assignment);
        } else if matches!(name, "cd" | "pushd" | "popd") {
            self.change_folder(run, nth, step);
        } else if name.starts_with('-') && !first.text.has_hole() {
            let words = step
                .words
                .iter()
                .flat_map(|it| self.expand(run, nth, step, it));
            let words = words.collect();
            self.options.push(words);
            return Ok(());
        } else if may_start && !run.steps.functions.contains_key(name) {
            let words: Vec<Text> = match step.words.iter().position(|it| it.text.has_hole()) {
                Some(_) => {
                    let all = step.words.iter();
                    all.flat_map(|it| self.expand(run, nth, step, it)).collect()
                }
                None => step.words.iter().map(|it| it.text.clone()).collect(),
            };
            let site = Self::site(run, step);
            if !self.starts_of_variable(run, &site, behind_runners(&words)) {
                self.command(&site, &run.steps.functions, words)?;
            }
        }
        self.has_other_commands = true;
        Ok(())
    }

    fn site(run: &Run, step: &Step) -> Site {
        Site {
            at: step.at,
            owner: step.owner.clone().or_else(|| run.site.owner.clone()),
            condition: step.condition,
            folder: run.site.folder.clone(),
        }
    }

    /// A line with the values of the variables of the program that gives it to a shell. What is left may be several words.
    fn filled(&mut self, run: &mut Run, nth: usize, step: &Step, script: &Text) -> Text {
        let mut text = self.scalar(run, nth, step, script);
        text.number_holes(|number| {
            let mut alternatives = self.alternatives(run, number);
            for (text, _) in &mut alternatives {
                text.number_holes(|number| self.detached(number, Vec::new()));
            }
            self.detached(number, alternatives)
        });
        text
    }

    /// A hole that the shell knows no variable of.
    fn detached(&mut self, number: u32, alternatives: Vec<(Text, String)>) -> u32 {
        let mut hole = self.holes.get(number as usize).cloned().unwrap_or_default();
        hole.alternatives = alternatives;
        hole.fields = Fields::Split;
        hole.variable.clear();
        push(&mut self.holes, hole)
    }

    /// True if the first word is a variable that may hold a command of QEMU, which is a start then.
    fn starts_of_variable(&mut self, run: &Run, site: &Site, words: &[Text]) -> bool {
        let first = words.first().filter(|it| it.is_one_hole());
        let number = first.and_then(|it| it.holes().next()).map(|it| it.1);
        let parts = number.map_or_else(Vec::new, |it| self.parts_of(run, it));
        let words_of = |part: &Part| {
            let texts = part.value.texts().iter();
            let words = texts.flat_map(|it| it.as_str().split_whitespace());
            words.map(str::to_owned).collect()
        };
        let parts: Vec<Vec<String>> = parts.iter().map(words_of).collect();
        let is_start = parts
            .iter()
            .any(|it| it.first().is_some_and(|it| is_program(it)));
        if is_start {
            self.start(site, words.to_vec());
            let has_options = parts.iter().any(|it| it.len() > 1);
            let last = self.starts.last_mut();
            last.into_iter().for_each(|it| it.is_command = has_options);
        }
        is_start
    }

    /// Finds the start in a command.
    pub(super) fn command(
        &mut self,
        site: &Site,
        functions: &HashMap<String, usize>,
        mut words: Vec<Text>,
    ) -> Result<(), ReadFailure> {
        let mut site = site.clone();
        for _ in 0..MAX_RUNNERS {
            let Some(first) = words.first() else {
                return Ok(());
            };
            let name = first.as_str();
            let is_open = first.has_hole();
            if !is_open && is_storage_daemon(name) {
                self.daemons.push(words.split_off(1));
                return Ok(());
            }
            if !is_open && is_qemu_img(name) {
                self.made.extend(made_image(&words, &site.folder));
                return Ok(());
            }
            if may_start(&words) && (is_program(name) || is_start_of_variable(&words)) {
                let arguments = words[1..]
                    .iter()
                    .map(|it| if it.has_hole() { "" } else { it.as_str() });
                if !only_asks(arguments) {
                    self.start(&site, words);
                }
                return Ok(());
            }
            // What `$SUDO` is decides whether the next word is a program.
            if is_open
                && words.len() > 2
                && is_program(words[1].as_str())
                && words[2..].iter().any(|it| is_telling(it.as_str()))
            {
                words.remove(0);
                continue;
            }
            let Some(runner) = Runner::named(name).filter(|_| !is_open) else {
                return Ok(());
            };
            let arguments: Vec<&str> = words[1..].iter().map(Text::as_str).collect();
            let Some(at) = runner.command_at(&arguments) else {
                return Ok(());
            };
            if let Some(folder) = folder_of(name, &words[1..=at], &site.folder) {
                site.folder = folder;
            }
            let is_text = match runner.command {
                Command::Words => false,
                Command::Text => true,
                Command::Either => at + 2 == words.len() && words[at + 1].as_str().contains(' '),
            };
            // Other programs do not know the functions of the script.
            let is_external = !matches!(name, "exec" | "time");
            let mut rest = words.split_off(at + 1);
            if is_text {
                return self.nested(&site, &rest.swap_remove(0));
            }
            words = rest;
            if functions.contains_key(words[0].as_str()) && !is_external {
                return Ok(());
            }
        }
        Ok(())
    }

    /// A script in the text of `eval`.
    fn evaluate(&mut self, run: &mut Run, nth: usize, step: &Step) -> Result<(), ReadFailure> {
        let words = step.words[1..].iter();
        let words: Vec<Text> = words
            .flat_map(|it| self.expand(run, nth, step, it))
            .collect();
        let site = Self::site(run, step);
        let [mut text] = <[Text; 1]>::try_from(words).unwrap_or_default();
        if text.is_one_hole() {
            text.number_holes(|number| self.detached(number, self.alternatives(run, number)));
            if self.starts_of_variable(run, &site, std::slice::from_ref(&text)) {
                return Ok(());
            }
        }
        self.nested(&site, &text)
    }

    /// A script in an argument.
    fn nested(&mut self, site: &Site, text: &Text) -> Result<(), ReadFailure> {
        let read = self.inner(site, text);
        // A text with holes may have any structure.
        if text.has_hole() { Ok(()) } else { read }
    }

    /// A script that another shell runs.
    fn inner(&mut self, site: &Site, text: &Text) -> Result<(), ReadFailure> {
        let reason = self
            .reason
            .replace("it comes from the environment of that shell");
        self.depth += 1;
        let read = self.run(text, site);
        self.depth -= 1;
        self.reason = reason;
        read
    }

    fn change_folder(&mut self, run: &mut Run, nth: usize, step: &Step) {
        let word = step.words.get(1).map(|it| self.expand(run, nth, step, it));
        let word = word.and_then(|mut it| it.pop());
        let of_script =
            word.as_ref()
                .and_then(|it| it.holes().next())
                .is_some_and(|(range, hole)| {
                    let whole = self
                        .holes
                        .get(hole as usize)
                        .map_or("", |it| it.whole.as_str());
                    range.len() == word.as_ref().map_or(0, |it| it.as_str().len())
                        && is_folder_of_script(whole)
                });
        let literal = word.filter(|it| !it.has_hole() && !it.as_str().starts_with('-'));
        if of_script && run.site.folder == Folder::Unchanged {
            return;
        }
        let is_cd = step
            .words
            .first()
            .is_some_and(|it| it.text.as_str() == "cd");
        run.site.folder = match (literal, &run.site.folder) {
            (Some(to), _) if step.is_certain && is_cd && to.as_str().starts_with('/') => {
                Folder::Known(to.as_str().to_owned())
            }
            (Some(to), Folder::Unchanged) if step.is_certain && is_cd => {
                Folder::Known(to.as_str().to_owned())
            }
            (Some(to), Folder::Known(from)) if step.is_certain && is_cd => {
                Folder::Known(format!("{from}/{}", to.as_str()))
            }
            _ => Folder::Unknown,
        };
    }
}

/// The words from the program on that others run.
fn behind_runners(mut words: &[Text]) -> &[Text] {
    for _ in 0..MAX_RUNNERS {
        let Some((first, rest)) = words.split_first() else {
            break;
        };
        let runner = Runner::named(first.as_str()).filter(|it| it.command == Command::Words);
        let Some(runner) = runner else {
            break;
        };
        let arguments: Vec<&str> = rest.iter().map(Text::as_str).collect();
        words = &rest[runner.command_at(&arguments).unwrap_or(rest.len())..];
    }
    words
}

/// Refuses options after the command of QEMU that are not part of it.
fn refuse_loose_option(next: Option<&Step>) -> Result<(), ReadFailure> {
    let Some(first) = next.and_then(|it| it.words.first()) else {
        return Ok(());
    };
    let mut bytes = first.text.as_str().bytes();
    if bytes.next() != Some(b'-') || !bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic()) {
        return Ok(());
    }
    let message = format!(
        "`{}` is not part of the command: the command of QEMU ends before this line",
        first.text.as_str()
    );
    Err(ReadFailure::new(first.text.whole(), message)
        .help("end each line before it with a backslash, and move comments out of the command"))
}

/// The folder that `env -C` and `sudo -D` change to.
fn folder_of(name: &str, options: &[Text], from: &Folder) -> Option<Folder> {
    let (short, long) = match name {
        "env" => ("-C", "--chdir"),
        "sudo" => ("-D", "--chdir"),
        _ => return None,
    };
    let at = options
        .iter()
        .position(|it| it.as_str().starts_with(short) || it.as_str().starts_with(long))?;
    let option = &options[at];
    let value = match option.as_str().split_once('=') {
        Some((_, value)) => Some(value),
        None => options.get(at + 1).map(Text::as_str),
    };
    let is_known = !options[at..].iter().any(Text::has_hole);
    let value = value.filter(|it| is_known && (it.starts_with('/') || *from == Folder::Unchanged));
    Some(value.map_or(Folder::Unknown, |it| Folder::Known(it.to_owned())))
}

/// True for the folder of the script.
fn is_folder_of_script(whole: &str) -> bool {
    let is_own = whole.contains("$0") || whole.contains("BASH_SOURCE") || whole.contains("${0");
    is_own && (whole.contains("dirname") || whole.contains("%/*")) && !whole.contains("..")
}
