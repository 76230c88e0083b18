//! The scripts within documentation, workflows and image definitions. Prose is never read.

use std::ops::Range;

use vmdisk_source::Span;

use super::makefile::logical_length;
use super::text::Text;

/// A part of a text that holds command lines.
#[derive(Debug)]
pub(super) enum Block {
    /// A script.
    Script(Text),
    /// The texts that begin with JSON arrays of arguments, without continued lines.
    Arrays(Vec<Text>),
}

/// What a text is, besides a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text with blocks of commands.
    Documentation,
    Workflow,
    Dockerfile,
    Packer,
}

/// The kind that a text shows to be.
pub(super) fn kind(text: &str) -> Option<Kind> {
    if text.starts_with("#!") {
        return None;
    }
    let has = |is: &dyn Fn(&str) -> bool| text.lines().any(is);
    let code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let first = text.lines().find(code).unwrap_or_default();
    let is_fence =
        |line: &str| line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
    if first.starts_with("FROM ") || first.starts_with("ARG ") {
        return Some(Kind::Dockerfile);
    }
    if has(&|line| {
        line.trim_start()
            .trim_start_matches('"')
            .starts_with("qemuargs")
    }) {
        return Some(Kind::Packer);
    }
    let is_steps = |line: &str| matches!(line.trim(), "steps:" | "runs:" | "script:" | "tasks:");
    if has(&|line| run_of(line).is_some() && line.starts_with([' ', '-'])) && has(&is_steps) {
        return Some(Kind::Workflow);
    }
    let is_title = |line: &str| {
        let title = line.trim_end();
        title.len() > 2
            && (title.bytes().all(|it| it == b'=') || title.bytes().all(|it| it == b'-'))
    };
    let is_prompt = |line: &str| line.trim_start().starts_with("$ ");
    let is_documentation = has(&is_fence) || has(&is_title) || has(&is_prompt);
    is_documentation.then_some(Kind::Documentation)
}

/// The blocks of a text.
pub(super) fn blocks(text: &str, kind: Kind) -> Vec<Block> {
    match kind {
        Kind::Documentation => documentation(text),
        Kind::Workflow => workflow(text),
        Kind::Dockerfile => dockerfile(text),
        Kind::Packer => packer(text),
    }
}

/// The lines with their places.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start, line)
    })
}

/// Lines that become a script.
#[derive(Default)]
struct Script {
    lines: Vec<(usize, usize)>,
}

impl Script {
    fn push(&mut self, start: usize, end: usize) {
        self.lines.push((start, end));
    }

    /// The script, without what is before `$ ` if it has prompts.
    fn end(&mut self, text: &str, blocks: &mut Vec<Block>) {
        let lines = std::mem::take(&mut self.lines);
        let Some((start, _)) = lines.first() else {
            return;
        };
        let of = |(start, end): &(usize, usize)| &text[*start..*end];
        let prompt = |line: &str| {
            let trimmed = line.trim_start();
            let rest = ["$ ", "# ", "% "]
                .iter()
                .find_map(|it| trimmed.strip_prefix(it));
            rest.map(|rest| line.len() - rest.len())
        };
        let has_prompt = lines.iter().any(|it| of(it).trim_start().starts_with("$ "));
        let mut script = Text::empty(*start);
        let mut goes_on = false;
        for line in &lines {
            let (mut start, end) = *line;
            if has_prompt && !goes_on {
                match prompt(of(line)) {
                    Some(length) => start += length,
                    // What a command prints.
                    None => continue,
                }
            }
            goes_on = of(line).trim_end().ends_with('\\');
            script.push_verbatim(text, Span::new(start, end));
        }
        blocks.push(Block::Script(script));
    }
}

fn documentation(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut script = Script::default();
    // The fence around, with whether its text is a script.
    let mut fence: Option<(&str, bool)> = None;
    let mut is_after_blank = true;
    let mut goes_on = false;
    for (start, line) in lines(text) {
        let trimmed = line.trim_start();
        let end = start + line.len();
        if let Some((mark, is_script)) = fence {
            if trimmed.trim_end().starts_with(mark) {
                script.end(text, &mut blocks);
                fence = None;
                is_after_blank = true;
            } else if is_script {
                script.push(start, end);
            }
            continue;
        }
        let mark = ["```", "~~~", "----"]
            .into_iter()
            .find(|it| trimmed.starts_with(it));
        let is_listing = trimmed.trim_end() == "----";
        if let Some(mark) = mark.filter(|it| *it != "----" || is_listing && is_after_blank) {
            script.end(text, &mut blocks);
            let language = trimmed.trim_start_matches(['`', '~', '-']).trim();
            let language = language.split([' ', ',', '{']).next().unwrap_or_default();
            fence = Some((mark, is_shell(language)));
            continue;
        }
        let is_indented = line.starts_with("    ") || line.starts_with('\t');
        let is_prompt = trimmed.starts_with("$ ");
        let is_blank = trimmed.is_empty();
        let in_block = !script.lines.is_empty();
        let is_of_block = !is_blank && (is_indented || is_prompt);
        if in_block && !goes_on && !is_of_block {
            script.end(text, &mut blocks);
        }
        if is_prompt || goes_on || is_indented && (is_after_blank || in_block) || is_command(line) {
            script.push(start, end);
            goes_on = line.trim_end().ends_with('\\');
        }
        is_after_blank = is_blank || trimmed.trim_end().ends_with("::");
    }
    script.end(text, &mut blocks);
    blocks
}

/// True for the language of a fence that is a shell's.
fn is_shell(language: &str) -> bool {
    let language = language.trim_start_matches('.').to_ascii_lowercase();
    matches!(
        language.as_str(),
        "" | "bash"
            | "cmd"
            | "console"
            | "none"
            | "plain"
            | "plaintext"
            | "sh"
            | "shell"
            | "shell-session"
            | "shellsession"
            | "terminal"
            | "text"
            | "txt"
            | "zsh"
    )
}

/// True for a line that begins with a QEMU and has an option.
fn is_command(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    let first = if first == "sudo" {
        words.next().unwrap_or_default()
    } else {
        first
    };
    super::program::is_program(first)
        && words
            .next()
            .is_some_and(|it| it == "\\" || it.starts_with('-') && it.len() > 1)
}

/// The text after `run:` and its indentation.
fn run_of(line: &str) -> Option<(usize, &str)> {
    let trimmed = line.trim_start();
    let key = trimmed.strip_prefix("- ").map_or(trimmed, str::trim_start);
    let value = key.strip_prefix("run:")?;
    Some((line.len() - key.len(), value))
}

fn workflow(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut script = Script::default();
    // The indentation of the key whose scalar goes on, and that of its text.
    let mut scalar: Option<(usize, Option<usize>)> = None;
    for (start, line) in lines(text) {
        let indentation = line.len() - line.trim_start().len();
        if let Some((key, own)) = scalar {
            if line.trim().is_empty() || indentation > key {
                let own = own.unwrap_or(indentation);
                scalar = Some((key, Some(own)));
                script.push(start + own.min(indentation), start + line.len());
                continue;
            }
            script.end(text, &mut blocks);
            scalar = None;
        }
        if let Some((indentation, value)) = run_of(line) {
            let value_trimmed = value.trim();
            if value_trimmed.starts_with(['|', '>']) || value_trimmed.is_empty() {
                scalar = Some((indentation, None));
            } else {
                let is_quoted = value_trimmed.starts_with(['"', '\'']);
                let from = start + line.len() - value.trim_start().len();
                let to = from + value_trimmed.len();
                let cut = usize::from(is_quoted);
                script.push(from + cut, to - cut.min(to - from - cut));
                script.end(text, &mut blocks);
            }
        }
    }
    script.end(text, &mut blocks);
    blocks
}

fn dockerfile(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    // The program and its arguments.
    let mut arrays = [None, None];
    let mut at = 0;
    while at < text.len() {
        let end = at + logical_length(&text[at..]);
        let line = text[at..end].trim_start();
        at = end;
        let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let rest = rest.trim_start();
        let range = end - rest.len()..end;
        let word = word.to_ascii_uppercase();
        match word.as_str() {
            "CMD" | "ENTRYPOINT" if rest.starts_with('[') => {
                arrays[usize::from(word == "CMD")] = Some(array(text, range));
            }
            "FROM" => end_stage(&mut arrays, &mut blocks),
            "CMD" | "ENTRYPOINT" | "RUN" => {
                let mut script = Text::empty(range.start);
                script.push_verbatim(text, Span::new(range.start, range.end));
                blocks.push(Block::Script(script));
            }
            _ => {}
        }
    }
    end_stage(&mut arrays, &mut blocks);
    blocks
}

fn end_stage(arrays: &mut [Option<Text>; 2], blocks: &mut Vec<Block>) {
    let arrays: Vec<Text> = arrays.iter_mut().filter_map(Option::take).collect();
    if !arrays.is_empty() {
        blocks.push(Block::Arrays(arrays));
    }
}

fn packer(text: &str) -> Vec<Block> {
    const MAX_ARRAYS: usize = 64;
    let starts = text.match_indices("qemuargs").take(MAX_ARRAYS);
    let arrays = starts.filter_map(|(at, _)| {
        let from = at + text[at..].find('[')?;
        Some(Block::Arrays(vec![without_comments(text, from)]))
    });
    arrays.collect()
}

/// An array of HCL as JSON: without comments, and without the comma that may follow the last member.
fn without_comments(text: &str, from: usize) -> Text {
    let mut array = Text::empty(from);
    let (mut at, mut start, mut depth) = (from, from, 0_usize);
    let mut comma = None;
    while let Some(byte) = text.as_bytes().get(at) {
        let rest = &text[at..];
        let left_out = match byte {
            b'#' => Some(rest.find('\n')),
            b'/' if rest.starts_with("//") => Some(rest.find('\n')),
            b'/' if rest.starts_with("/*") => Some(rest.find("*/").map(|it| it + 2)),
            b',' => Some(Some(1)),
            _ => None,
        };
        if let Some(length) = left_out {
            array.push_verbatim(text, Span::new(start, at));
            if *byte == b',' {
                comma = Some(at);
            }
            at += length.unwrap_or(rest.len());
            start = at;
            continue;
        }
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if let Some(comma) = comma.take().filter(|_| *byte != b']') {
            array.push_verbatim(text, Span::new(comma, comma + 1));
        }
        depth = match byte {
            b'[' => depth + 1,
            b']' => depth.saturating_sub(1),
            _ => depth,
        };
        at += match byte {
            b'"' => string(rest),
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        if depth == 0 {
            break;
        }
    }
    array.push_verbatim(text, Span::new(start, at));
    array
}

/// The length of the string that a text begins with.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, it)| {
        let is_end = *it == '"' && !is_escaped;
        is_escaped = *it == '\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// A text that begins with an array, without the backslashes that continue its lines.
fn array(text: &str, range: Range<usize>) -> Text {
    let mut array = Text::empty(range.start);
    let mut start = range.start;
    for (at, _) in text[range.clone()].match_indices("\\\n") {
        array.push_verbatim(text, Span::new(start, range.start + at));
        start = range.start + at + 2;
    }
    array.push_verbatim(text, Span::new(start, range.end));
    array
}
