//! The third phase of reading: turns options into the model, and records where everything is written.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_model::{Architecture, Domain, DomainField, FieldPath, IoThreadId, Scope};
use vmdisk_rule::reading::INVALID_VALUE;
use vmdisk_source::{Place, Span};

use crate::device::floppy::read_floppy_boot_order;
use crate::device::read::DiskReader;
use crate::device::read_controller::read_controllers;
use crate::index::Index;
use crate::interface::Defaults;
use crate::machine_read::read_machine;
use crate::notes::{FinishedNotes, Notes};
use crate::object::read_iothread::{IoThreadIds, read_iothreads, read_main_loop};
use crate::object::read_memory::{read_memory_backing, size_of_memory};
use crate::object::read_throttle::FilterGroups;
use crate::parse::{Parsed, READCONFIG};
use crate::read_daemon::read_daemons;
use crate::syntax::program::architecture;
use vmdisk_model::Board;

/// A command line as a model.
pub(crate) struct Lowered<'a> {
    domain: Domain,
    board: Board,
    defaults: Defaults,
    notes: Notes<'a>,
    iothread_names: BTreeMap<IoThreadId, String>,
}

impl<'a> Lowered<'a> {
    /// Reads the options into a model.
    pub(crate) fn new(parsed: &Parsed, index: &Index<'a>) -> Self {
        let mut notes = Notes::new(index);
        notes.set_open(parsed.is_open());
        let top = FieldPath::Domain(DomainField::Domain);
        for fault in parsed.faults() {
            notes
                .problem(&INVALID_VALUE, top, fault.span, fault.message.clone())
                .help = Some(fault.help.clone());
        }
        let (mut domain, board) = read_machine(parsed.program(), index, &mut notes);
        let mut ids = IoThreadIds::default();
        let mut groups = FilterGroups::default();
        domain.iothreads = read_iothreads(index, &mut ids, &mut notes);
        domain.default_iothread = read_main_loop(index, &mut notes);
        domain.memory_backing = read_memory_backing(index, &mut notes);
        if !index.has("m") {
            domain.memory = domain.memory.or_else(|| size_of_memory(index));
        }
        let (controllers, mut buses) = read_controllers(board, index, &mut ids, &mut notes);
        domain.controllers = controllers;
        let defaults = Defaults::of(parsed.program(), &domain, board);
        buses.default_interface = defaults.interface;
        domain.disks =
            DiskReader::new(index, &mut buses, &mut groups, &mut ids, &mut notes).read_all();
        read_daemons(parsed.daemons(), &mut domain, &mut notes);
        read_floppy_boot_order(index, &mut domain.disks, &mut notes);
        domain.throttle_groups = groups.read_all(index, &mut notes);
        notes.keep_the_rest(index);
        for (span, _) in parsed.missing_files() {
            // The file may contain disks, but is not available.
            notes.keep(FieldPath::Domain(DomainField::Devices), READCONFIG, *span);
        }
        let first = index.options().first();
        let place = Place {
            span: first.map_or(parsed.whole(), |first| first.span),
            whole: parsed.whole(),
            attributes_end: None,
        };
        notes.record_place(top, place);
        if domain.scope == Scope::WholeGuest {
            notes.record_place(FieldPath::Domain(DomainField::Devices), place);
        }
        Lowered {
            domain,
            board,
            defaults,
            notes,
            iothread_names: ids.names(),
        }
    }

    /// True if the machine is written, or is QEMU's default. RHEL's `qemu-kvm` has another one in each release, and a file
    /// that was not read may name one.
    pub(crate) fn has_machine(&self, parsed: &Parsed) -> bool {
        let architecture = parsed.program().and_then(architecture);
        let is_pc = matches!(
            architecture,
            Some(Architecture::X86_64 | Architecture::I686)
        );
        self.domain.machine.is_some() || is_pc && parsed.missing_files().is_empty()
    }

    pub(crate) const fn board(&self) -> Board {
        self.board
    }

    pub(crate) const fn defaults(&self) -> Defaults {
        self.defaults
    }

    /// The field of an option.
    pub(crate) fn owner(&self, option: usize) -> Option<FieldPath> {
        self.notes.owner(option)
    }

    /// True for an object that the model describes completely.
    pub(crate) fn is_read_object(&self, option: usize) -> bool {
        self.notes.is_read_object(option)
    }

    /// The ids of iothreads, by number.
    pub(crate) fn take_iothread_names(&mut self) -> BTreeMap<IoThreadId, String> {
        std::mem::take(&mut self.iothread_names)
    }

    /// True if the guest has a disk.
    pub(crate) const fn has_disks(&self) -> bool {
        !self.domain.disks.is_empty()
    }

    /// The model and the notes.
    pub(crate) fn finish(self, open_words: &BTreeSet<Span>) -> (Domain, FinishedNotes) {
        (self.domain, self.notes.finish(open_words))
    }
}
