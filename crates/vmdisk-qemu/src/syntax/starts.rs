//! The starts of QEMU in a script: each command, once for each way through the branches before it.

use std::collections::{BTreeMap, HashSet};

use vmdisk_source::Span;

use super::hole::{Choice, Command, Decisions, Evaluated, decides};
use super::option::is_value_of;
use super::program::{is_program, is_program_variable, is_start};
use super::start::{CommandLineForm, Start, Words, from_program};
use super::text::Text;
use crate::failure::ReadFailure;

/// Evaluations of a script, at most.
const MAX_EVALUATIONS: usize = 16;

/// Bytes of script that are evaluated for its branches, at most.
const MAX_TEXT: usize = 1 << 20;

/// Starts of a file, at most.
const MAX_STARTS: usize = 32;

/// Evaluates a script for each way through the branches that its starts depend on.
pub(crate) fn explore(
    text: &str,
    form: CommandLineForm,
    evaluate: impl Fn(&Decisions) -> Result<Evaluated, ReadFailure>,
) -> Result<Vec<Words>, ReadFailure> {
    let mut found: Vec<Words> = Vec::new();
    let mut known: BTreeMap<usize, Choice> = BTreeMap::new();
    let mut queue = vec![Decisions::new()];
    let most = (MAX_TEXT / (text.len() + 1)).clamp(1, MAX_EVALUATIONS);
    let mut evaluations = 0;
    let mut places = HashSet::new();
    while let Some(decisions) = queue.pop() {
        evaluations += 1;
        let script = evaluate(&decisions)?;
        for (key, choice) in &script.choices {
            known.entry(*key).or_insert_with(|| choice.clone());
        }
        let is_run = |(key, nth): (&usize, &usize)| known[key].is_loop && *nth == 0;
        let may_split = !decisions.iter().any(is_run);
        let mut next = None;
        for nth in starts_of(&script, &places) {
            places.insert(script.commands[nth].words[0].whole());
            let command = &script.commands[nth];
            let open = open_choice(command, &script, &decisions).filter(|_| may_split);
            let open = open.filter(|key| {
                let count = known[key].conditions.len();
                evaluations + queue.len() + count <= most
            });
            match open {
                Some(key) => next = next.or(Some(key)),
                None if !is_certain(&command.words) => {}
                None => add(
                    &mut found,
                    start((text, form), &script, nth, &decisions, &known)?,
                )?,
            }
        }
        if let Some(key) = next {
            let choice = &known[&key];
            // The last of the queue is next.
            let mut ways: Vec<usize> = (0..choice.conditions.len()).rev().collect();
            ways.sort_by_key(|way| choice.default == Some(*way));
            for way in ways {
                let mut decisions = decisions.clone();
                decisions.insert(key, way);
                queue.push(decisions);
            }
        }
    }
    found.sort_by_key(|words| words.program.as_ref().map(|it| it.whole().start));
    Ok(found)
}

/// True unless only a branch that nothing decides may make it a start.
fn is_certain(words: &[Text]) -> bool {
    let first = words[0].as_str();
    is_start(words) || is_program(first) || is_program_variable(first)
}

fn add(found: &mut Vec<Words>, words: Words) -> Result<(), ReadFailure> {
    let is_same = |other: &Words| {
        other.program == words.program
            && other.arguments == words.arguments
            && other.start.offset == words.start.offset
    };
    if found.iter().any(is_same) {
        return Ok(());
    }
    if found.len() == MAX_STARTS {
        let message = format!("the file starts QEMU in more than {MAX_STARTS} ways");
        let span = words.program.map_or(Span::empty(0), |it| it.whole());
        return Err(ReadFailure::new(span, message).help("put some of them into another file"));
    }
    found.push(words);
    Ok(())
}

/// The numbers of the commands that start QEMU: by its name, or by a variable that is named so.
///
/// One at a known place is a start in each of its ways, also without options.
fn starts_of(script: &Evaluated, known: &HashSet<Span>) -> Vec<usize> {
    let is_known = |words: &[Text]| is_certain(words) && known.contains(&words[0].whole());
    // `$EMULATOR`, which a branch sets to a QEMU.
    let may_be_qemu = |word: &Text| {
        let hole = word
            .hole_at(0)
            .and_then(|(_, hole)| script.holes.get(hole as usize));
        hole.is_some_and(|hole| hole.values.iter().any(|it| is_program(it)))
    };
    let commands = script.commands.iter().enumerate();
    let starts = commands.filter(|(_, it)| {
        is_start(&it.words) || is_known(&it.words) || it.words.iter().any(may_be_qemu)
    });
    starts.map(|(nth, _)| nth).collect()
}

/// True for words that may start QEMU, and not only what runs it: `sudo`.
fn names_qemu(words: &str) -> bool {
    words.contains("qemu") || words.contains("kvm")
}

/// A branch that is not decided, and that decides over the disks or the machine of a command.
fn open_choice(command: &Command, script: &Evaluated, decisions: &Decisions) -> Option<usize> {
    let mut before = "";
    let mut is_after_program = false;
    for word in &command.words {
        let text = word.as_str();
        for (range, hole) in word.holes() {
            let Some(hole) = script.holes.get(hole as usize) else {
                continue;
            };
            let Some(key) = hole.choice.filter(|key| !decisions.contains_key(key)) else {
                continue;
            };
            let is_decisive = match (is_after_program, is_value_of(before, text)) {
                (false, _) => hole.values.is_empty() || hole.values.iter().any(|it| names_qemu(it)),
                (true, true) => decides(before),
                (true, false) => range.start > 0 || hole.may_decide(),
            };
            if is_decisive && script.choices.contains_key(&key) {
                return Some(key);
            }
        }
        is_after_program |= is_program(text) || is_program_variable(text);
        before = text;
    }
    None
}

/// The words of a command that starts QEMU.
fn start(
    (text, form): (&str, CommandLineForm),
    script: &Evaluated,
    nth: usize,
    decisions: &Decisions,
    known: &BTreeMap<usize, Choice>,
) -> Result<Words, ReadFailure> {
    let command = &script.commands[nth];
    if let Some(next) = script.commands.get(nth + 1) {
        refuse_loose_option(&next.words)?;
    }
    let is_named = command.words.iter().any(|word| is_program(word.as_str()));
    let is_program = if is_named {
        is_program
    } else {
        is_program_variable
    };
    let words = from_program(form, command.words.clone(), is_program);
    let scattered = scattered(&words.arguments, text);
    let condition = |(key, way): (&usize, &usize)| known[key].conditions[*way].clone();
    let is_default = |(key, way): (&usize, &usize)| known[key].default == Some(*way);
    Ok(Words {
        daemons: daemons(&script.commands),
        holes: script.holes.clone(),
        shared: script.shared.iter().copied().chain(scattered).collect(),
        start: Start {
            owner: command.owner.clone(),
            offset: command.site,
            conditions: decisions.iter().map(condition).collect(),
            is_default: decisions.iter().all(is_default),
            folder: command.folder.clone(),
        },
        is_evaluated: true,
        ..words
    })
}

/// Refuses options after the command of QEMU that are not part of it.
fn refuse_loose_option(next: &[Text]) -> Result<(), ReadFailure> {
    let Some(first) = next.first() else {
        return Ok(());
    };
    let mut bytes = first.as_str().bytes();
    if bytes.next() != Some(b'-') || !bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic()) {
        return Ok(());
    }
    let message = format!(
        "`{}` is not part of the command: the command of QEMU ends before this line",
        first.as_str()
    );
    Err(ReadFailure::new(first.whole(), message)
        .help("end each line before it with a backslash, and move comments out of the command"))
}

/// The places of options whose value does not stand beside them: an edit of one would leave the other.
fn scattered(arguments: &[Text], file: &str) -> Vec<Span> {
    let pairs = arguments.windows(2);
    let pairs = pairs
        .filter(|pair| pair[0].as_str().starts_with('-') && !pair[1].as_str().starts_with('-'));
    let is_scattered = |[first, second]: &[Span; 2]| {
        let between = file.get(first.end..second.start);
        between.is_none_or(|between| !between.bytes().all(|it| b" \t\r\n\\^'\"".contains(&it)))
    };
    let pairs = pairs.map(|pair| [pair[0].whole(), pair[1].whole()]);
    pairs.filter(is_scattered).flatten().collect()
}

/// True for the program of a storage daemon.
pub(super) fn is_storage_daemon(word: &Text) -> bool {
    word.as_str().rsplit('/').next() == Some("qemu-storage-daemon")
}

/// The options of the storage daemons among the commands.
fn daemons(all: &[Command]) -> Vec<Vec<Text>> {
    let options = |command: &Command| {
        let words = &command.words;
        let at = words.iter().position(is_storage_daemon)?;
        Some(words[at + 1..].to_vec())
    };
    all.iter().filter_map(options).collect()
}
