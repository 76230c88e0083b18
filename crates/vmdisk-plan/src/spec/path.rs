//! Names of places in a spec, without reference to any text.

use vmdisk_document::{Node, PathStep};
use vmdisk_source::Span;

/// One step from a value to one inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpecSegment {
    /// The value of a key.
    Key(String),
    /// The nth element of a list, from 0.
    Index(usize),
}

/// The name of a place in a spec, shown as `disks[0].qcow2.size`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpecPath(pub Vec<SpecSegment>);

impl SpecPath {
    /// True for a group of a disk, such as `disks[0].qcow2`.
    pub(crate) fn is_below_disk(&self) -> bool {
        matches!(
            self.0.as_slice(),
            [SpecSegment::Key(list), SpecSegment::Index(_), SpecSegment::Key(_), ..] if list == "disks"
        )
    }

    /// The nth disk, from 0.
    pub fn disk(index: usize) -> Self {
        SpecPath::default().key("disks").index(index)
    }

    /// The value of a key of this one.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.then(SpecSegment::Key(key.into()))
    }

    /// The nth element of this one.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.then(SpecSegment::Index(index))
    }

    fn then(&self, segment: SpecSegment) -> Self {
        let mut segments = Vec::with_capacity(self.0.len() + 1);
        segments.extend_from_slice(&self.0);
        segments.push(segment);
        SpecPath(segments)
    }

    /// What encloses this one; `None` at the top.
    pub fn parent(&self) -> Option<Self> {
        let (_, enclosing) = self.0.split_last()?;
        Some(SpecPath(enclosing.to_vec()))
    }

    /// The steps of the path.
    pub(crate) fn steps(&self) -> impl Iterator<Item = PathStep<'_>> {
        self.0.iter().map(|segment| match segment {
            SpecSegment::Key(key) => PathStep::Key(key),
            SpecSegment::Index(index) => PathStep::Index(*index),
        })
    }

    /// The place of the value, or of its key; if it is not written, the place of the nearest value around it.
    pub(crate) fn span_in(&self, root: &Node, is_about_key: bool) -> Span {
        let key = match self.0.split_last() {
            // The last of two equal keys is the one too many.
            Some((SpecSegment::Key(key), above)) if is_about_key => {
                let above = SpecPath(above.to_vec());
                let around = root.find(above.steps());
                around.and_then(|around| around.members().iter().rev().find(|at| at.key == *key))
            }
            Some(_) | None => None,
        };
        match key {
            Some(member) => member.key_span,
            None => root.nearest(self.steps()).span,
        }
    }

    /// True at the top.
    pub fn is_top(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Display for SpecPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                SpecSegment::Key(key) if at == 0 => f.write_str(key)?,
                SpecSegment::Key(key) => write!(f, ".{key}")?,
                SpecSegment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "version: 1\ndisks:\n- raw: {path: /a, size: 1G}\n- qcow2:\n    path: \"é\"\n    size:   x\n    nothing:\n";

    fn written(path: &SpecPath, is_about_key: bool) -> (&str, usize) {
        let document = vmdisk_document::read_yaml(TEXT, 100).unwrap();
        let span = path.span_in(&document.root, is_about_key);
        (span.slice(TEXT).unwrap(), span.start)
    }

    #[test]
    fn a_path_reads_as_people_write_it() {
        let path = SpecPath::disk(2).key("qcow2").key("size");
        assert_eq!(path.to_string(), "disks[2].qcow2.size");
        assert_eq!(path.parent(), Some(SpecPath::disk(2).key("qcow2")));
        assert_eq!(SpecPath::default().parent(), None);
    }

    #[test]
    fn keys_and_values_are_found_where_they_are_written() {
        let second = SpecPath::disk(1).key("qcow2");
        assert_eq!(
            written(&SpecPath::default().key("version"), true),
            ("version", 0)
        );
        assert_eq!(written(&SpecPath::default().key("version"), false).0, "1");
        assert_eq!(
            written(&SpecPath::disk(0).key("raw").key("size"), false).0,
            "1G"
        );
        assert_eq!(written(&second.key("path"), false).0, "\"é\"");
        assert_eq!(written(&second.key("size"), true).0, "size");
        assert_eq!(written(&second.key("size"), false).0, "x");
        assert_eq!(written(&second.key("nothing"), true).0, "nothing");
        assert_eq!(written(&second.key("nothing"), false), ("", TEXT.len() - 1));
        assert_eq!(
            written(&SpecPath::disk(0), false).0,
            "raw: {path: /a, size: 1G}"
        );
    }

    #[test]
    fn a_missing_value_is_placed_at_the_value_that_should_have_it() {
        let second = SpecPath::disk(1).key("qcow2");
        assert_eq!(
            written(&second.key("absent"), true),
            written(&second, false)
        );
        assert_eq!(
            written(&second.key("path").key("below"), true),
            written(&second.key("path"), false)
        );
        assert_eq!(
            written(&SpecPath::disk(7), false),
            written(&SpecPath::default().key("disks"), false)
        );
    }
}
