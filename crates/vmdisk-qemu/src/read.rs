//! From a command line to a [`Document`].

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_source::Span;

use crate::document::Document;
use crate::failure::ReadFailure;
use crate::firmware;
use crate::index::Index;
use crate::leftover::leftovers;
use crate::lower::Lowered;
use crate::members::Accepted;
use crate::open_value::open_values;
use crate::parse::Parsed;
use crate::syntax::made_image::note_made;
use crate::syntax::option::WrittenOption;
use crate::syntax::properties::Properties;

/// Reads a command line of QEMU in any common form: a file of arguments, a shell script, libvirt's log,
/// `/proc/PID/cmdline`, a systemd unit, or options alone.
///
/// Reading does not stop at the first mistake: wrong values, unknown properties and missing nodes are
/// [`problems`](Document::problems), with their places. Options that the model does not
/// cover are [listed](Document::others), and properties of disks that it does not cover are [kept](Document::kept).
///
/// ```
/// let text = r#"qemu-system-x86_64 -machine q35 \
///   -blockdev driver=file,node-name=f0,filename=/srv/a.img,aio=nativ \
///   -device virtio-blk-pci,drive=f0,id=vda"#;
/// let document = vmdisk_qemu::read(text)?;
/// let disk = &document.domain.disks[0];
/// assert_eq!(disk.name(), "vda");
/// assert_eq!(disk.backend.image().and_then(|image| image.host_path()), Some("/srv/a.img"));
/// let problem = &document.problems[0];
/// assert_eq!(problem.span.slice(text), Some("nativ"));
/// assert_eq!(problem.help.as_deref(), Some("did you mean `native`?"));
/// # Ok::<(), vmdisk_qemu::ReadFailure>(())
/// ```
///
/// # Errors
/// If the text does not contain exactly one command line of QEMU.
pub fn read(text: &str) -> Result<Document, ReadFailure> {
    read_with(text, text.len(), &[])
}

/// Reads a command line together with the files that it names with `-readconfig`. The first `command_line` bytes of
/// `text` are the command line; `files` are the spans of the files, in the order in which they are named. All spans are
/// relative to the start of `text`.
///
/// ```
/// use vmdisk_source::Span;
/// let line = "qemu-system-x86_64 -readconfig a.cfg\n";
/// let file = "[drive \"d\"]\n  if = \"virtio\"\n  format = \"raw\"\n  file = \"/srv/a.img\"\n";
/// let text = format!("{line}{file}");
/// let document = vmdisk_qemu::read_with(&text, line.len(), &[Span::new(line.len(), text.len())])?;
/// assert_eq!(document.domain.disks[0].backend.image().and_then(|image| image.host_path()), Some("/srv/a.img"));
/// assert_eq!(vmdisk_qemu::read(line)?.config_files, ["a.cfg"]);
/// # Ok::<(), vmdisk_qemu::ReadFailure>(())
/// ```
///
/// # Errors
/// As [`read`].
pub fn read_with(text: &str, command_line: usize, files: &[Span]) -> Result<Document, ReadFailure> {
    let mut all = read_all(text, command_line, files, &BTreeMap::new())?;
    all.retain(|document| !document.start.is_part);
    let first = all.swap_remove(0);
    match all.is_empty() {
        true => Ok(first),
        false => {
            let message = format!("the file starts QEMU in {} ways", all.len() + 1);
            let place = Span::empty(first.start.offset);
            Err(ReadFailure::new(place, message).help("put each into a separate file"))
        }
    }
}

/// Reads each command line of a text, in the order of the text: a script may start QEMU several times, and text that only
/// counts under a condition is a [part](crate::Start::is_part) of its own. `values` are those of its variables that it does not set itself; the other arguments are those of [`read_with`].
///
/// ```
/// # use std::collections::BTreeMap;
/// let script = "qemu-system-x86_64 -drive file=$DIR/a,format=raw &\nqemu-system-x86_64 -drive file=$DIR/b,format=raw";
/// let values = BTreeMap::from([("DIR".to_owned(), "/srv".to_owned())]);
/// let all = vmdisk_qemu::read_all(script, script.len(), &[], &values)?;
/// let paths = all.iter().map(|it| it.domain.disks[0].backend.image().and_then(|it| it.host_path()));
/// assert!(paths.eq([Some("/srv/a"), Some("/srv/b")]));
/// # Ok::<(), vmdisk_qemu::ReadFailure>(())
/// ```
///
/// # Errors
/// If the text has no command line of QEMU.
pub fn read_all(
    text: &str,
    command_line: usize,
    files: &[Span],
    values: &BTreeMap<String, String>,
) -> Result<Vec<Document>, ReadFailure> {
    Parsed::all(text, command_line, files, values, document)
}

fn document(parsed: Parsed) -> Document {
    let accepted = Accepted::none_of(parsed.options());
    let index = Index::to_read(parsed.options(), &accepted);
    let mut lowered = Lowered::new(&parsed, &index);
    let firmware = firmware::find(&index);
    let others = leftovers(&parsed, &index, &lowered, &firmware);
    let iothread_names = lowered.take_iothread_names();
    let board = lowered.board();
    let defaults = lowered.defaults();
    let has_machine = lowered.has_machine(&parsed);
    let open_words = open_words(parsed.options());
    let (mut domain, noted) = lowered.finish(&open_words);
    // A file may start QEMU many times.
    domain.disks.shrink_to_fit();
    note_made(&mut domain, parsed.made(), &parsed.start().folder);
    let mut kept = noted.kept;
    kept.extend(open_values(&parsed, &accepted, &noted.owners));
    let mut problems = noted.problems;
    problems.sort_by_key(|problem| problem.span);
    let missing = parsed.missing_files().iter();
    Document {
        start: parsed.start().clone(),
        form: parsed.form(),
        domain,
        source_map: noted.map,
        problems,
        open_fields: noted.open,
        open_words,
        holes: parsed.holes().to_vec(),
        hole_places: hole_places(parsed.options()),
        shared: parsed.shared().to_vec(),
        kept,
        others,
        firmware: firmware.firmware,
        is_open: parsed.is_open(),
        config_files: missing.filter_map(|(_, name)| name.clone()).collect(),
        iothread_names,
        slots: noted.slots,
        owners: noted.owners,
        board,
        defaults,
        has_machine,
        options: parsed.into_options(),
    }
}

/// The holes in the words and values of options.
fn hole_places(options: &[WrittenOption]) -> BTreeMap<Span, BTreeSet<usize>> {
    let texts = options.iter().flat_map(|option| {
        let word = option.text.iter().map(|text| (option.span, text));
        let values = option.properties.iter().flat_map(Properties::iter);
        word.chain(values.map(|property| (property.span, &property.value)))
    });
    let mut places: BTreeMap<Span, BTreeSet<usize>> = BTreeMap::new();
    for (span, text) in texts {
        for (_, hole) in text.holes() {
            places.entry(span).or_default().insert(hole as usize);
        }
    }
    places
}

/// The words that a shell fills in with properties, and the options that contain them.
fn open_words(options: &[WrittenOption]) -> BTreeSet<Span> {
    let open = options.iter().filter(|option| option.is_open());
    open.flat_map(|option| option.open_words().chain([option.span]))
        .collect()
}
