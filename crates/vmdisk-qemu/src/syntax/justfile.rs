//! The assignments and recipes of a justfile as commands of a script.

use std::collections::HashSet;
use std::ops::Range;

use vmdisk_source::Span;

use super::hole::Hole;
use super::language::declared;
use super::script::{Shell, Site};
use super::steps::Step;
use super::text::Text;
use crate::failure::ReadFailure;

/// True for a text with the assignments of a justfile, whose recipes make could not read.
pub(super) fn is_justfile(text: &str) -> bool {
    let is_assignment = |line: &str| {
        let name = line.split_once(":=").map_or("", |(name, _)| name.trim());
        let name = name.strip_prefix("export ").map_or(name, str::trim_start);
        !line.starts_with([' ', '\t']) && !name.is_empty() && name.chars().all(is_of_name)
    };
    let has_tabs = text.lines().any(|line| line.starts_with('\t'));
    let mut lines = text.lines().zip(text.lines().skip(1));
    let has_recipe = lines.any(|(line, next)| recipe(line).is_some() && next.starts_with("  "));
    !text.starts_with("#!")
        && text.lines().any(is_assignment)
        && (text.contains("{{") || has_recipe && !has_tabs)
        && !has_references(text)
        && !text.contains("{%")
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
    let (mut list, mut recipes) = (Vec::new(), Vec::new());
    let (mut at, mut owner, mut body) = (0, None, Vec::new());
    for line in file.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if line.trim().is_empty() || line.starts_with([' ', '\t']) {
            body.push(Span::new(start, at));
            continue;
        }
        let body = std::mem::take(&mut body);
        recipes.extend(lines_of(file, owner, &body, &mut shell.holes));
        owner = recipe(line);
        if let (Some(_), Some((head, _))) = (owner, line.split_once(':')) {
            // The parameters hide variables.
            for name in head.split(|it| !is_of_name(it)).skip(1) {
                list.push(Step::changing(name, start));
            }
        } else if let Some((name, value)) = line.split_once(":=") {
            let name = name.trim().trim_start_matches("export ").trim();
            let value = value_of(file, start + line.len() - value.len()..at, &mut shell.holes);
            // A given value replaces it, as on the command line of just.
            if shell.given(name).is_none() {
                list.push(Step::assigning(name, value, start));
            }
        }
    }
    recipes.extend(lines_of(file, owner, &body, &mut shell.holes));
    list.append(&mut recipes);
    shell.follow(list.into(), &Site::default(), false)
}

/// The text between quotes; any other value is computed.
fn value_of(file: &str, range: Range<usize>, holes: &mut Vec<Hole>) -> Text {
    let text = file[range.clone()].trim();
    let start = range.end - file[range].trim_start().len();
    let place = Span::new(start, start + text.len());
    let quote = text.chars().next().filter(|it| matches!(it, '"' | '\''));
    let inner = quote.and_then(|quote| text[1..].split_once(quote));
    // A backslash is one of an escape.
    let is_literal = |(inner, rest): &(&str, &str)| {
        let rest = rest.trim_start();
        (rest.is_empty() || rest.starts_with('#')) && !(quote == Some('"') && inner.contains('\\'))
    };
    let mut value = Text::empty(start);
    match inner.filter(is_literal) {
        Some((inner, _)) => {
            value.push_verbatim(file, Span::new(start + 1, start + 1 + inner.len()))
        }
        None => {
            let hole = Hole::new("{{...}}", place, "just computes it");
            value.push_new(hole, holes);
        }
    }
    value
}

/// The steps of a recipe.
fn lines_of(file: &str, owner: Option<&str>, body: &[Span], holes: &mut Vec<Hole>) -> Vec<Step> {
    let of = |span: &Span| span.slice(file).unwrap_or_default();
    let first = body.first().map_or("", |it| of(it).trim_start());
    let has_interpreter = first.starts_with("#!");
    let Some(owner) = owner.filter(|_| !has_interpreter || declared(first).is_none()) else {
        return Vec::new();
    };
    let mut steps = Vec::new();
    let mut script: Option<Text> = None;
    for (nth, span) in body.iter().enumerate() {
        let line = of(span);
        let marks = match has_interpreter || script.is_some() {
            true => line.len(),
            false => line.trim_start_matches([' ', '\t', '@', '-']).len(),
        };
        let start = span.end - marks;
        let script_so_far = script.get_or_insert_with(|| Text::empty(start));
        push_line(script_so_far, file, start..span.end, holes);
        let goes_on = has_interpreter || line.trim_end().ends_with('\\');
        let is_end = !goes_on || nth + 1 == body.len();
        steps.extend(
            script
                .take_if(|_| is_end)
                .map(|it| Step::running(it, owner)),
        );
    }
    steps
}

/// Appends a line in which what is between braces is a hole.
fn push_line(out: &mut Text, file: &str, range: Range<usize>, holes: &mut Vec<Hole>) {
    let mut at = range.start;
    while let Some(found) = file[at..range.end].find("{{") {
        let start = at + found;
        out.push_verbatim(file, Span::new(at, start));
        let rest = &file[start..range.end];
        if rest.starts_with("{{{{") {
            out.push_escape("{{", Span::new(start, start + 4));
            at = start + 4;
            continue;
        }
        at = rest.find("}}").map_or(range.end, |it| start + it + 2);
        let place = Span::new(start, at);
        let inner = file[start..at].trim_matches(['{', '}', ' ', '\t', '\n']);
        let is_name = inner.chars().all(is_of_name);
        // Options are split at these.
        let name = inner.replace([',', '=', ' ', '"', '\''], "_");
        let name = format!("{{{{{name}}}}}");
        let hole = Hole {
            variable: if is_name { inner } else { "" }.to_owned(),
            ..Hole::new(&name, place, "just computes it")
        };
        out.push_new(hole, holes);
    }
    out.push_verbatim(file, Span::new(at, range.end));
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'
}
