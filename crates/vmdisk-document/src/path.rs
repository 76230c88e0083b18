//! Paths of values, as messages show them.

use std::fmt;

/// The path of a value: a chain on the stack, which is only written out for a mistake.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Path::Key(parent, key) => {
                let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
                if key.is_empty() || !key.bytes().all(plain) {
                    write!(f, "{parent}[{key:?}]")
                } else if matches!(parent, Path::Root) {
                    f.write_str(key)
                } else {
                    write!(f, "{parent}.{key}")
                }
            }
        }
    }
}
