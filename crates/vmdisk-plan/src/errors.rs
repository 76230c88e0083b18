//! Several errors as one.

use std::fmt;

/// Several errors as one, whose text has a line for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorList<E>(pub(crate) Vec<E>);

impl<E> std::ops::Deref for ErrorList<E> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        &self.0
    }
}

impl<E> From<Vec<E>> for ErrorList<E> {
    fn from(errors: Vec<E>) -> Self {
        ErrorList(errors)
    }
}

impl<E> IntoIterator for ErrorList<E> {
    type Item = E;
    type IntoIter = std::vec::IntoIter<E>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, E> IntoIterator for &'a ErrorList<E> {
    type Item = &'a E;
    type IntoIter = std::slice::Iter<'a, E>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<E: fmt::Display> fmt::Display for ErrorList<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, error) in self.0.iter().enumerate() {
            let end = if nth == 0 { "" } else { "\n" };
            write!(f, "{end}{error}")?;
        }
        Ok(())
    }
}

impl<E: std::error::Error> std::error::Error for ErrorList<E> {}
