//! The places of the fields of a model, stored outside the model.

use std::collections::BTreeMap;

use crate::Span;

/// A typed name of a model field that knows its enclosing field.
pub trait SourcePath: Copy + Ord {
    /// The enclosing field, used when the exact one was not written; `None` at the top.
    fn parent(self) -> Option<Self>;
}

/// The place of one field, and the ranges that edits of it need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The text to show: an attribute's value, an element's start tag, an option's value.
    pub span: Span,
    /// The text to delete with the field: an attribute with its name, a whole element.
    pub whole: Span,
    /// For an element: the offset at which a further attribute may be inserted.
    pub attributes_end: Option<usize>,
}

/// Places of the fields of one document.
#[derive(Clone, Debug)]
pub struct SourceMap<P> {
    places: BTreeMap<P, Place>,
}

impl<P> Default for SourceMap<P> {
    fn default() -> Self {
        SourceMap {
            places: BTreeMap::new(),
        }
    }
}

impl<P: SourcePath> SourceMap<P> {
    /// Records the place of `path`; the first place of a path is kept.
    pub fn record(&mut self, path: P, place: Place) {
        self.places.entry(path).or_insert(place);
    }

    /// The place of exactly this field, if it was written.
    pub fn place(&self, path: P) -> Option<&Place> {
        self.places.get(&path)
    }

    /// The place of the field, or of the nearest enclosing field that was written.
    pub fn resolve(&self, path: P) -> Option<(P, &Place)> {
        let mut at = path;
        loop {
            if let Some(place) = self.places.get(&at) {
                return Some((at, place));
            }
            at = at.parent()?;
        }
    }

    /// All places, in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (P, &Place)> {
        self.places.iter().map(|(path, place)| (*path, place))
    }

    /// The number of places.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if it has no places.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Path {
        Disk,
        Driver,
        Cache,
    }
    impl SourcePath for Path {
        fn parent(self) -> Option<Self> {
            match self {
                Path::Disk => None,
                Path::Driver => Some(Path::Disk),
                Path::Cache => Some(Path::Driver),
            }
        }
    }

    #[test]
    fn an_unwritten_field_resolves_to_the_nearest_written_parent() {
        let mut map = SourceMap::default();
        assert!(map.resolve(Path::Cache).is_none());
        let place = |start| Place {
            span: Span::new(start, start + 1),
            whole: Span::new(start, start + 1),
            attributes_end: None,
        };
        map.record(Path::Disk, place(1));
        assert_eq!(map.resolve(Path::Cache), Some((Path::Disk, &place(1))));
        map.record(Path::Cache, place(5));
        map.record(Path::Cache, place(9));
        assert_eq!(map.resolve(Path::Cache), Some((Path::Cache, &place(5))));
    }
}
