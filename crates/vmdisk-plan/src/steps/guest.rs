//! The part of a script that gives a guest of libvirt its definition.

use std::fmt::Write;

use super::comment::comment;
use super::{Step, shell_word as quote};
use crate::{ChangeKind, KeptImage, LiveChange, Plan, PlannedChange};

/// Work that a script does for a plan.
#[derive(Clone, Debug, Default)]
pub struct ScriptWork<'a> {
    /// The steps that make what is missing, in their order.
    pub steps: Vec<&'a Step>,
    /// The changes of what is there.
    pub changes: Vec<&'a PlannedChange>,
    /// The definition that the guest of libvirt gets; none if that stays as it is.
    pub definition: Option<ScriptDefinition<'a>>,
    /// True if the guest runs; none if there is no guest.
    pub is_running: Option<bool>,
}

/// The definition of a guest of libvirt.
#[derive(Clone, Copy, Debug)]
pub struct ScriptDefinition<'a> {
    /// The text that `virsh dumpxml --inactive --security-info` prints; none for a new guest.
    pub before: Option<&'a str>,
    /// The new text.
    pub after: &'a str,
}

/// The guest in a script.
#[derive(Default)]
pub(super) struct GuestPart<'a> {
    name: &'a str,
    definition: Option<ScriptDefinition<'a>>,
    /// The old storage of copies.
    copied: Vec<&'a str>,
    /// The names of images that copies take: the image, its other name, and the copy.
    exchanged: Vec<(&'a str, &'a KeptImage, String)>,
    /// What it gets at once if it runs.
    live: Vec<(&'a LiveChange, &'a PlannedChange)>,
    /// True if it must run, and false if it must be off.
    runs: Option<bool>,
}

impl<'a> GuestPart<'a> {
    pub(super) fn of(plan: &'a Plan, work: &ScriptWork<'a>) -> Self {
        let copies = work.changes.iter().filter_map(|it| it.copy.as_ref());
        let needs_state = |it: &&PlannedChange| {
            it.command.is_some()
                || it.copy.is_some()
                || it.live_copy().is_some()
                || it.kind == ChangeKind::Reclaim
        };
        let live = work.changes.iter();
        let exchanged = copies.clone().filter_map(|copy| {
            let made = plan.steps[copy.step].makes();
            Some((copy.from.as_str(), copy.kept.as_ref()?, made))
        });
        GuestPart {
            exchanged: exchanged.collect(),
            live: live
                .filter_map(|it| Some((it.live.as_ref()?, *it)))
                .collect(),
            name: plan.domain.name.as_deref().unwrap_or_default(),
            definition: work.definition,
            copied: copies.map(|copy| copy.from.as_str()).collect(),
            runs: work
                .is_running
                .filter(|_| work.changes.iter().any(needs_state)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.definition.is_none() && self.runs.is_none()
    }

    /// Checks that the guest is as it was.
    pub(super) fn write_checks(&self, out: &mut String) -> std::fmt::Result {
        if self.is_empty() {
            return Ok(());
        }
        let guest = quote(self.name);
        let refuse = |why: &str| quote(&format!("the guest {} {}", comment(self.name), why));
        if let Some(ScriptDefinition { before, after }) = self.definition {
            let command = format!("virsh dumpxml --inactive --security-info -- {guest}");
            writeln!(out, "definition() {{ {command}; }}")?;
            write_text("before", before.unwrap_or_default(), out)?;
            write_text("after", after, out)?;
        }
        writeln!(
            out,
            "as_before() {{ # refuses if the guest is not as it was when this script was written"
        )?;
        match self.definition {
            Some(ScriptDefinition {
                before: Some(_), ..
            }) => writeln!(
                out,
                "    [ \"$(definition)\" = \"$(before)\" ] || refuse {}",
                refuse("was changed since this script was written")
            )?,
            Some(_) => writeln!(
                out,
                "    ! definition >/dev/null 2>&1 || refuse {}",
                refuse("exists")
            )?,
            None => {}
        }
        let state = format!("$(virsh domstate -- {guest})");
        match self.runs {
            Some(true) => writeln!(
                out,
                "    case \"{state}\" in '' | 'shut off') refuse {} ;; esac",
                refuse("does not run any more")
            )?,
            Some(false) => writeln!(
                out,
                "    [ \"{state}\" = 'shut off' ] || refuse {}",
                refuse("is not off")
            )?,
            None => {}
        }
        if !self.copied.is_empty() {
            let saved = refuse("has a saved state, which needs its disks unchanged");
            let snapshots = refuse("has snapshots, which need the old image");
            writeln!(
                out,
                "    lacks 'Managed save:   yes' virsh dominfo -- {guest} || refuse {saved}"
            )?;
            let list = format!("$(virsh snapshot-list --name -- {guest})");
            writeln!(out, "    [ -z \"{list}\" ] || refuse {snapshots}")?;
        }
        writeln!(out, "}}\nas_before")?;
        for (_, kept, _) in &self.exchanged {
            let refusal = quote(&comment(&kept.refusal()));
            writeln!(out, "[ ! -e {} ] || refuse {refusal}", quote(&kept.path))?;
        }
        Ok(())
    }

    /// Defines the guest, and changes it if it runs. What libvirt has after a failure decides whether the new storage goes.
    pub(super) fn write_changes(&self, out: &mut String) -> std::fmt::Result {
        if let Some(ScriptDefinition { before, .. }) = self.definition {
            self.write_definition(before, out)?;
        }
        for (from, KeptImage { path, check }, made) in &self.exchanged {
            let (image, old, made) = (quote(from), quote(path), quote(made));
            let late = format!("the guest {} was started meanwhile", comment(self.name));
            writeln!(out, "\n# The copy takes the name of its image.\nas_before")?;
            for program in ["chown", "chmod"] {
                writeln!(out, "{program} --reference={image} -- {made}")?;
            }
            writeln!(out, "ln -T -- {image} {old}\nmv -fT -- {made} {image}")?;
            writeln!(out, "{} >/dev/null || {{", quoted(check))?;
            writeln!(
                out,
                "    mv -fT -- {old} {image}\n    refuse {}\n}}",
                quote(&late)
            )?;
        }
        if !self.live.is_empty() {
            writeln!(
                out,
                "\n# What a guest that runs gets at once. New storage stays.\ntrap - EXIT INT TERM HUP"
            )?;
        }
        for (LiveChange { argv, input, copy }, change) in &self.live {
            let command = match input {
                Some(input) => format!("{} | {}", quoted(input), quoted(argv)),
                None => quoted(argv),
            };
            if let Some(copy) = copy {
                let stays = format!("{} may have a part of the data, and stays", copy.path);
                let (stop, stays) = (quoted(&copy.stop), quote(&comment(&stays)));
                writeln!(out, "{command} || {{\n    {stop} || :")?;
                writeln!(out, "    printf '%s\\n' {stays} >&2\n    exit 2\n}}")?;
                continue;
            }
            if change.kind == ChangeKind::Reclaim {
                writeln!(out, "{command} || exit 2")?;
                continue;
            }
            let waits = format!(
                "after its next start, the guest {} has it: {}",
                self.name, change.what
            );
            let (guest, waits) = (quote(self.name), quote(&comment(&waits)));
            writeln!(
                out,
                "[ \"$(virsh domstate -- {guest})\" = 'shut off' ] || {{"
            )?;
            writeln!(out, "    {command}\n}} || printf '%s\\n' {waits} >&2")?;
        }
        Ok(())
    }

    fn write_definition(&self, before: Option<&str>, out: &mut String) -> std::fmt::Result {
        let is_as_before = match before {
            Some(_) => "[ \"$(definition)\" = \"$(before)\" ]",
            None => "! definition >/dev/null 2>&1",
        };
        writeln!(
            out,
            "\n# The definition of the guest. A signal waits until libvirt has it."
        )?;
        writeln!(out, "as_before\ntrap '' INT TERM HUP")?;
        writeln!(out, "after | virsh define /dev/stdin >/dev/null || {{")?;
        writeln!(
            out,
            "    {is_as_before} || trap - EXIT # storage that it may name stays\n    exit 2\n}}"
        )?;
        for from in &self.copied {
            let late = quote(&format!(
                "the guest {} was started meanwhile",
                comment(self.name)
            ));
            writeln!(
                out,
                "case \"$(virsh domblklist -- {})\n\" in",
                quote(self.name)
            )?;
            writeln!(out, "*' '{}'\n'*)", quote(from))?;
            writeln!(
                out,
                "    before | virsh define /dev/stdin >/dev/null || trap - EXIT"
            )?;
            writeln!(out, "    refuse {late}\n    ;;\nesac")?;
        }
        writeln!(out, "trap - EXIT INT TERM HUP")
    }
}

/// A function that prints a text, whose end is a line that it does not have.
fn write_text(name: &str, text: &str, out: &mut String) -> std::fmt::Result {
    let mut end = "END".to_owned();
    while text.lines().any(|line| line == end) {
        end.push('_');
    }
    let text = text.trim_end_matches('\n');
    writeln!(out, "{name}() {{ cat <<'{end}'\n{text}\n{end}\n}}")
}

/// A command of the shell.
pub(super) fn quoted(argv: &[String]) -> String {
    let words: Vec<String> = argv.iter().map(|word| quote(word)).collect();
    words.join(" ")
}
