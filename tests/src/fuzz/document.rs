//! Domains and command lines: read, linted, fixed and written.

use vmdisk::{Document, FixScope, LintOptions, fix, lint, read_bytes};

/// Domain XML.
pub(super) fn check_xml(input: &[u8]) {
    check(input);
}

/// A command line; it always starts with a name that says so.
pub(super) fn check_command_line(input: &[u8]) {
    let mut line = b"qemu-system-x86_64 ".to_vec();
    line.extend_from_slice(input);
    check(&line);
}

fn check(input: &[u8]) {
    let Ok(document) = read_bytes(input) else {
        return;
    };
    holds(&document);
    let _ = vmdisk::losses(&document);
    let written = [
        vmdisk::write::libvirt_xml(document.domain()),
        vmdisk::write::document_xml(&document),
    ];
    for xml in written.iter().flatten() {
        let again = vmdisk::read(xml);
        assert!(again.is_ok(), "{:?}: {xml}", again.err());
    }
    let options = vmdisk::write::QemuOptions::default();
    let _ = vmdisk::write::qemu_command_line(document.domain(), &options);
    if let Ok(fixed) = fix(
        &document.text,
        &LintOptions::default(),
        FixScope::SafeAndUnsafe,
    ) {
        holds(&fixed.document);
    }
}

/// Every place is in the text, at the border of characters, and edits can be made where they are to be made.
fn holds(document: &Document) {
    for diagnostic in lint(document, &LintOptions::default()).diagnostics {
        let related = diagnostic.related.iter().map(|related| related.place.span);
        let edits = diagnostic.fix.iter().flat_map(|fix| &fix.edits);
        let spans = std::iter::once(diagnostic.place.span)
            .chain(related)
            .chain(edits.map(|edit| edit.span));
        for span in spans {
            assert!(
                document.text.get(span.start..span.end).is_some(),
                "{}: {span:?} of {} bytes",
                diagnostic.rule.name,
                document.text.len()
            );
        }
    }
}
