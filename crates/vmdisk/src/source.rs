//! Spans, line numbers and edits.

pub use vmdisk_source::{
    Allowance, Edit, EditConflict, LineIndex, Place, Position, SourceMap, SourcePath, Span,
    UnknownWord, VersionedSyntax, WordKind, apply_edits, has_expansion, nearest, sanitize, secrets,
    template,
};
