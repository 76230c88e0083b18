//! The starts of QEMU in a script, as command lines.

use std::collections::BTreeMap;

use vmdisk_source::Span;

use super::hole::Hole;
use super::made_image::MadeImage;
use super::script::{Found, Shell};
use super::start::{CommandLineForm, Start, Words};
use super::text::Text;
use crate::failure::ReadFailure;

/// Maximum of bytes that the starts of a file have each for itself, such as the options of its storage daemons.
const MAX_BYTES: usize = 64 << 20;

/// The command lines of what was read.
pub(super) fn starts(
    file: &str,
    form: CommandLineForm,
    mut shell: Shell<'_>,
) -> Result<Vec<Words>, ReadFailure> {
    let mut found = std::mem::take(&mut shell.starts);
    found.sort_by_key(|start| (start.at, start.is_part));
    let daemons = shell.daemons.iter().flatten().map(Text::bytes);
    let spans = shell.shared.len() * size_of::<Span>();
    let images = shell.made.len() * size_of::<MadeImage>();
    let most = MAX_BYTES / (daemons.sum::<usize>() + spans + images + 1);
    if let Some(excess) = found.get(most) {
        let message = format!(
            "the file starts QEMU more than {most} times, each time with all of its images and storage daemons"
        );
        return Err(ReadFailure::new(Span::empty(excess.at), message)
            .help("put some of the starts into another file"));
    }
    let is_one = found.iter().filter(|it| !it.is_part).count() == 1;
    let words = found
        .into_iter()
        .map(|start| words(file, form, &shell, start, is_one));
    Ok(words.collect())
}

fn words(
    file: &str,
    form: CommandLineForm,
    shell: &Shell<'_>,
    found: Found,
    is_one: bool,
) -> Words {
    let mut arguments = found.words;
    let has_program = arguments
        .first()
        .is_some_and(|it| !it.as_str().starts_with('-'));
    let program = has_program.then(|| arguments.remove(0));
    if let Some(word) = program.as_ref().filter(|_| found.is_command) {
        arguments.insert(0, word.clone());
    }
    let scattered = scattered(&arguments, file);
    let mut words = Words::new(form, program, arguments);
    words.daemons.clone_from(&shell.daemons);
    words.made.clone_from(&shell.made);
    words.shared = shell.shared.iter().copied().chain(scattered).collect();
    words.is_evaluated = true;
    words.start = Start {
        owner: found.owner,
        offset: found.at,
        is_default: is_one || found.conditions.is_empty(),
        conditions: found.conditions,
        folder: found.folder,
        is_part: found.is_part,
    };
    // Each start has its own holes.
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    let mut holes: Vec<Hole> = Vec::new();
    let mut number = |former: u32| {
        *numbers.entry(former).or_insert_with(|| {
            holes.extend(shell.holes.get(former as usize).cloned());
            u32::try_from(holes.len().saturating_sub(1)).unwrap_or(u32::MAX)
        })
    };
    let daemons = words.daemons.iter_mut().flatten();
    let texts = words
        .program
        .iter_mut()
        .chain(&mut words.arguments)
        .chain(daemons);
    texts.for_each(|text| text.number_holes(&mut number));
    words.holes = holes;
    words
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
