//! How a syntax spells what a [`Phrase`](crate::Phrase) names.

use vmdisk_model::{FieldPath, IoThreadId};

use crate::FirstReleases;
use crate::setting::{Setting, in_words, noun};

/// Spells names and settings the way a document writes them, or would write them.
pub trait Speller {
    /// The name of a disk, between backticks.
    fn disk(&self, nth: usize) -> String;

    /// The kind and name of a controller.
    fn controller(&self, nth: usize) -> String;

    /// The name of an iothread, without the word.
    fn iothread(&self, id: IoThreadId) -> String;

    /// Settings that belong together, in backticks. A setting of the document is spelled as written there,
    /// any other in its correct spelling. `None` if the syntax cannot express it.
    fn settings(&self, settings: &[Setting]) -> Option<String>;

    /// The name of a field, between backticks; `None` if the syntax has none.
    fn field(&self, at: FieldPath) -> Option<String>;

    /// The first releases that accept a setting, if the document does not have it yet.
    fn first_releases(&self, setting: &Setting) -> FirstReleases {
        let _ = setting;
        FirstReleases::default()
    }
}

/// Spells everything in plain words, for texts about no document.
#[derive(Clone, Copy, Debug)]
pub struct NeutralSpeller;

impl Speller for NeutralSpeller {
    fn disk(&self, nth: usize) -> String {
        format!("disk {nth}")
    }

    fn controller(&self, nth: usize) -> String {
        format!("controller {nth}")
    }

    fn iothread(&self, id: IoThreadId) -> String {
        id.to_string()
    }

    fn settings(&self, settings: &[Setting]) -> Option<String> {
        let words: Vec<String> = settings.iter().map(in_words).collect();
        Some(words.join(" and "))
    }

    fn field(&self, at: FieldPath) -> Option<String> {
        Some(format!("the {}", noun(at)))
    }
}
