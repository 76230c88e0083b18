//! Names of places in a spec, without reference to any text.

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

    #[test]
    fn a_path_reads_as_people_write_it() {
        let path = SpecPath::disk(2).key("qcow2").key("size");
        assert_eq!(path.to_string(), "disks[2].qcow2.size");
        assert_eq!(path.parent(), Some(SpecPath::disk(2).key("qcow2")));
        assert_eq!(SpecPath::default().parent(), None);
    }
}
