//! The places of the fields of a model, stored outside the model.

use std::hash::Hash;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::Span;

/// A typed name of a model field that knows its enclosing field.
pub trait SourcePath: Copy + Ord {
    /// The same name in fewer bytes.
    type Key: Copy + Eq + Hash;

    /// Its key; two names of one document have different keys.
    fn key(self) -> Self::Key;

    /// The name with this key.
    fn of_key(key: Self::Key) -> Self;

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
///
/// Every field that is written has one and few are looked up, so recording one must be cheap, and one must be small.
#[derive(Clone, Debug)]
pub struct SourceMap<P: SourcePath> {
    places: FxHashMap<P::Key, Packed>,
}

/// A place with the offsets of a text that is less than 4 GiB long; those of a longer text end there.
#[derive(Clone, Copy, Debug)]
struct Packed([u32; 5]);

impl Packed {
    /// No offset.
    const NONE: u32 = u32::MAX;

    fn of(place: Place) -> Self {
        let small = |at: usize| u32::try_from(at).unwrap_or(Self::NONE - 1);
        let Place {
            span,
            whole,
            attributes_end,
        } = place;
        let end = attributes_end.map_or(Self::NONE, small);
        Packed([
            small(span.start),
            small(span.end),
            small(whole.start),
            small(whole.end),
            end,
        ])
    }

    fn place(self) -> Place {
        let [start, end, whole_start, whole_end, attributes_end] = self.0.map(|at| at as usize);
        Place {
            span: Span::new(start, end),
            whole: Span::new(whole_start, whole_end),
            attributes_end: (self.0[4] != Self::NONE).then_some(attributes_end),
        }
    }
}

impl<P: SourcePath> Default for SourceMap<P> {
    fn default() -> Self {
        SourceMap {
            places: FxHashMap::default(),
        }
    }
}

impl<P: SourcePath> SourceMap<P> {
    /// An empty map with room for places of a text that is so long.
    pub fn of_text(text: &str) -> Self {
        // As libvirt writes it, there is at most one place for each 48 bytes. A hostile text gets no large map.
        const MOST: usize = 1 << 12;
        let expected = (text.len() / 48).min(MOST);
        SourceMap {
            places: FxHashMap::with_capacity_and_hasher(expected, FxBuildHasher),
        }
    }

    /// Records the place of `path`; the first place of a path is kept.
    pub fn record(&mut self, path: P, place: Place) {
        self.places
            .entry(path.key())
            .or_insert_with(|| Packed::of(place));
    }

    /// The place of exactly this field, if it was written.
    pub fn place(&self, path: P) -> Option<Place> {
        self.places.get(&path.key()).map(|place| place.place())
    }

    /// The place of the field, or of the nearest enclosing field that was written.
    pub fn resolve(&self, path: P) -> Option<(P, Place)> {
        let mut at = path;
        loop {
            if let Some(place) = self.place(at) {
                return Some((at, place));
            }
            at = at.parent()?;
        }
    }

    /// All places, in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (P, Place)> {
        let places = self.places.iter();
        let places = places.map(|(key, place)| (P::of_key(*key), *place));
        let mut places: Vec<(P, Packed)> = places.collect();
        places.sort_unstable_by_key(|(path, _)| *path);
        places.into_iter().map(|(path, it)| (path, it.place()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    enum Path {
        Disk,
        Driver,
        Cache,
    }
    impl SourcePath for Path {
        type Key = Self;
        fn key(self) -> Self {
            self
        }
        fn of_key(key: Self) -> Self {
            key
        }
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
            attributes_end: (start == 1).then_some(start),
        };
        map.record(Path::Disk, place(1));
        assert_eq!(map.resolve(Path::Cache), Some((Path::Disk, place(1))));
        map.record(Path::Cache, place(5));
        map.record(Path::Cache, place(9));
        assert_eq!(map.resolve(Path::Cache), Some((Path::Cache, place(5))));
        let paths: Vec<Path> = map.iter().map(|(path, _)| path).collect();
        assert_eq!(paths, [Path::Disk, Path::Cache], "in the order of paths");
    }
}
