//! A command line that has been read.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_model::{Domain, FieldPath, IoThreadId};
use vmdisk_rule::Problem;

use vmdisk_source::{SourceMap, Span};

use crate::firmware::FlashFirmware;
use crate::interface::Defaults;
use crate::slots::Slots;
use crate::syntax::hole::Hole;
use crate::syntax::option::WrittenOption;
use crate::syntax::start::{CommandLineForm, Start};
use vmdisk_model::Board;

/// A command line: the model, and the span of everything in it.
#[derive(Clone, Debug)]
pub struct Document {
    /// The start among those of its file.
    pub start: Start,
    /// The form of the text.
    pub form: CommandLineForm,
    /// The guest; [`Scope::DisksOnly`](vmdisk_model::Scope::DisksOnly) for lines of options that name
    /// neither program nor machine.
    pub domain: Domain,
    /// The span of each field.
    pub source_map: SourceMap<FieldPath>,
    /// Mistakes, in the order of the text.
    pub problems: Vec<Problem>,
    /// Fields that a shell or systemd fills in later: the model does not have their values.
    pub open_fields: BTreeSet<FieldPath>,
    /// Words that a shell fills in later, and the options that contain them: they may have other properties than the
    /// written ones.
    pub open_words: BTreeSet<Span>,
    /// Expansions without a known value, and why.
    pub holes: Vec<Hole>,
    /// The numbers of the holes in each word and value that has some.
    pub(crate) hole_places: BTreeMap<Span, BTreeSet<usize>>,
    /// Text that no edit can change alone: it stands in several places of the command line, or apart from its option.
    pub shared: Vec<Span>,
    /// Settings of disks and controllers outside the model.
    pub kept: Vec<UnmodeledProperty>,
    /// Options, and parts of options, that the model does not have, in order.
    pub others: Vec<OtherOption>,
    /// The firmware on flash, which `others` name too.
    pub firmware: Option<FlashFirmware>,
    /// Files named by `-readconfig` and not given: their contents are unknown.
    pub config_files: Vec<String>,
    /// True if such a file, also one whose name is unknown, or an unknown word may have further options.
    pub(crate) is_open: bool,
    /// Names of iothreads, including iothreads without an object.
    pub(crate) iothread_names: BTreeMap<IoThreadId, String>,
    pub(crate) slots: Slots,
    /// The field of each option, by the index of the option.
    pub(crate) owners: BTreeMap<usize, FieldPath>,
    pub(crate) board: Board,
    pub(crate) defaults: Defaults,
    /// True if the machine is written, or the program has a default one: `pc`.
    pub(crate) has_machine: bool,
    pub(crate) options: Vec<WrittenOption>,
}

impl Document {
    /// The options that share a byte with `span` or touch it, and the bytes between them.
    pub fn options_around(&self, span: Span) -> Span {
        let touched = self
            .options
            .iter()
            .map(|option| option.span)
            .filter(|option| option.start <= span.end && span.start <= option.end);
        touched.fold(span, |all, option| {
            Span::new(all.start.min(option.start), all.end.max(option.end))
        })
    }

    /// The expansions without a known value in the value or word at a span.
    pub fn holes_in(&self, span: Span) -> impl Iterator<Item = &Hole> {
        let holes = self.hole_places.get(&span).into_iter().flatten();
        holes.filter_map(|hole| self.holes.get(*hole))
    }

    /// The places of its options.
    pub fn places(&self) -> impl Iterator<Item = Span> {
        self.options.iter().map(|option| option.span)
    }

    /// True if something fills in a part of the options at a span.
    pub fn is_filled(&self, span: Span) -> bool {
        let span = self.options_around(span);
        self.holes.iter().any(|hole| hole.span.overlaps(span))
    }

    /// True if an edit of a span would change more, or less, than it seems to.
    pub fn is_shared(&self, span: Span) -> bool {
        let span = self.options_around(span);
        let mut shared = self.shared.iter();
        shared.any(|shared| shared.start <= span.end && span.start <= shared.end)
    }

    /// The id of an iothread: the configured one, or the default.
    pub fn iothread_name(&self, id: IoThreadId) -> String {
        let written = self.iothread_names.get(&id);
        written.map_or_else(|| format!("iothread{id}"), Clone::clone)
    }
}

/// A property of a disk or controller that the model does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmodeledProperty {
    /// The disk, controller or guest that it belongs to.
    pub at: FieldPath,
    /// Its key, such as `encrypt.key-secret`.
    pub key: String,
    /// Its span.
    pub span: Span,
    /// True for tuning and security settings: without it the guest still has the same disks with the same data.
    pub is_tuning: bool,
    /// True if the model only lacks its value, because a shell or systemd fills it in.
    pub is_open: bool,
}

/// An option, or a part of one, that the model does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherOption {
    /// Its name, such as `-netdev` or `-machine smm`.
    pub name: String,
    /// The span of the option with its value.
    pub span: Span,
    /// True if it provides a disk.
    pub has_data: bool,
    /// True for a word that a shell fills in: it may be any option.
    pub is_unknown: bool,
    /// True if it is a part of [`Document::firmware`].
    pub is_firmware: bool,
}
