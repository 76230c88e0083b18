//! The recipes of a justfile. What it assigns is looked up where a recipe writes it in braces.

use std::collections::HashSet;

use vmdisk_source::Span;

use super::language::declared;
use super::script::{Shell, Site};
use super::text::Text;
use crate::failure::ReadFailure;

/// True for a text with the assignments of a justfile, whose recipes make could not read.
pub(super) fn is_justfile(text: &str) -> bool {
    let is_assignment = |line: &str| {
        let name = line.split_once(":=").map_or("", |(name, _)| name.trim());
        let name = name.strip_prefix("export ").map_or(name, str::trim_start);
        let is_of_name = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        !line.starts_with([' ', '\t']) && !name.is_empty() && name.chars().all(is_of_name)
    };
    let has_tabs = text.lines().any(|line| line.starts_with('\t'));
    let mut lines = text.lines().zip(text.lines().skip(1));
    let has_recipe = lines.any(|(line, next)| recipe(line).is_some() && next.starts_with("  "));
    !text.starts_with("#!")
        && text.lines().any(is_assignment)
        && (text.contains("{{") || has_recipe && !has_tabs)
        && !has_references(text)
}

/// True for a text that writes one of its variables as only make does: `$(NAME)`.
pub(super) fn has_references(text: &str) -> bool {
    let assigned = text.lines().filter_map(|it| it.split_once('='));
    let is_end = [':', '?', '+', ' ', '\t'];
    let names: HashSet<&str> = assigned.map(|it| it.0.trim_end_matches(is_end)).collect();
    let mut references = text.split("$(").skip(1);
    references.any(|it| it.split_once(')').is_some_and(|it| names.contains(it.0)))
}

/// The name of the recipe that a line begins.
fn recipe(line: &str) -> Option<&str> {
    let line = line.strip_prefix('@').unwrap_or(line);
    let is_own = line.starts_with(|it: char| it.is_ascii_alphanumeric() || it == '_');
    let is_recipe = is_own && line.contains(':') && !line.contains(":=");
    is_recipe.then(|| line.split([' ', '\t', ':']).next())?
}

/// Reads the recipes: each of their lines runs in a shell of its own, unless the first names an interpreter.
pub(super) fn read(file: &str, shell: &mut Shell<'_>) -> Result<(), ReadFailure> {
    shell.reason = Some("just or its environment sets it");
    let (mut at, mut owner) = (0, None);
    let mut body = Vec::new();
    for line in file.split_inclusive('\n') {
        let span = Span::new(at, at + line.len());
        at += line.len();
        if line.trim().is_empty() || line.starts_with([' ', '\t']) {
            if owner.is_some() {
                body.push(span);
            }
            continue;
        }
        read_recipe(file, shell, owner, &std::mem::take(&mut body))?;
        owner = recipe(line);
    }
    read_recipe(file, shell, owner, &body)
}

fn read_recipe(
    file: &str,
    shell: &mut Shell<'_>,
    owner: Option<&str>,
    body: &[Span],
) -> Result<(), ReadFailure> {
    let of = |span: &Span| span.slice(file).unwrap_or_default();
    let first = body.first().map_or("", |it| of(it).trim_start());
    let has_interpreter = first.starts_with("#!");
    if has_interpreter && declared(first).is_some() {
        return Ok(());
    }
    let site = Site {
        owner: owner.map(str::to_owned),
        ..Site::default()
    };
    let mut script: Option<Text> = None;
    for span in body {
        let line = of(span);
        let marks = match has_interpreter || script.is_some() {
            true => line.len(),
            false => line.trim_start_matches([' ', '\t', '@', '-']).len(),
        };
        let start = span.end - marks;
        script
            .get_or_insert_with(|| Text::empty(start))
            .push_verbatim(file, Span::new(start, span.end));
        let goes_on = has_interpreter || line.trim_end().ends_with('\\');
        if let Some(script) = script.take_if(|_| !goes_on) {
            shell.run(&script, &site)?;
        }
    }
    match script {
        Some(script) => shell.run(&script, &site),
        None => Ok(()),
    }
}
