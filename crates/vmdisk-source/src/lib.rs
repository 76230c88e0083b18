//! Places in source text, and edits at them.
