//! What must hold for any bytes at all, for each reader of what others wrote.
//!
//! The targets in `fuzz/` call these with inputs they make up, and `tests/fuzz_corpus.rs` with those in
//! `fixtures/fuzz/NAME/`. `cargo xtask fuzz` runs the former.

pub mod allocator;
mod document;
mod facts;
mod spec;

#[path = "../../../crates/vmdisk-image/tests/support/counting.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod counting;
#[path = "../../../crates/vmdisk-image/tests/support/fuzz.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod image_header;

#[path = "../../../crates/vmdisk-lsp/tests/support/session.rs"]
mod session;

/// One reader, and what must hold of it.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name: the directory in `fixtures/fuzz/`, and the program in `fuzz/`.
    pub name: &'static str,
    /// Stops the program where something does not hold.
    pub check: fn(&[u8]),
    /// The most bytes it may hold for no input at all, whatever it is.
    pub held_at_least: usize,
    /// The most bytes it may hold more for each byte of input.
    pub held_for_each_byte: usize,
}

/// In `/proc/PID/cmdline` a single byte is a word, a word alone is a disk, and a disk has a place for everything that
/// could be written of it, findings and the mended copy included.
const COMMAND_LINE_BYTE: usize = 12 << 10;

/// Everything that is fuzzed.
pub const TARGETS: &[Target] = &[
    Target {
        name: "image-header",
        check: image_header::fuzz_probe,
        held_at_least: 2 << 20,
        held_for_each_byte: 8,
    },
    Target {
        name: "mountinfo",
        check: vmdisk_collect::for_fuzzing::mountinfo,
        held_at_least: 64 << 10,
        held_for_each_byte: 64,
    },
    Target {
        name: "facts",
        check: facts::check,
        held_at_least: 1 << 20,
        held_for_each_byte: 2048,
    },
    Target {
        name: "domain-xml",
        check: document::check_xml,
        held_at_least: 1 << 20,
        // What has zero bytes is a command line.
        held_for_each_byte: COMMAND_LINE_BYTE,
    },
    Target {
        name: "command-line",
        check: document::check_command_line,
        held_at_least: 1 << 20,
        held_for_each_byte: COMMAND_LINE_BYTE,
    },
    Target {
        name: "spec",
        check: spec::check,
        held_at_least: 1 << 20,
        held_for_each_byte: 2048,
    },
    Target {
        name: "language-server",
        check: session::check,
        // The schema of specs, and answers at 512 positions, each with all attributes of an element.
        held_at_least: 32 << 20,
        held_for_each_byte: COMMAND_LINE_BYTE,
    },
];

impl Target {
    /// The target of this name.
    ///
    /// # Panics
    /// If there is none.
    pub fn named(name: &str) -> &'static Target {
        TARGETS
            .iter()
            .find(|target| target.name == name)
            .unwrap_or_else(|| panic!("there is no fuzz target {name}"))
    }

    /// Checks one input, and that no more memory was held than the target may hold.
    ///
    /// # Panics
    /// Where something does not hold.
    pub fn run(&self, input: &[u8]) {
        let held = allocator::most_held(|| (self.check)(input));
        let may_hold = self
            .held_for_each_byte
            .saturating_mul(input.len())
            .saturating_add(self.held_at_least);
        assert!(
            held <= may_hold,
            "{}: {held} bytes were held for {} of input, and {may_hold} are allowed",
            self.name,
            input.len()
        );
    }
}
