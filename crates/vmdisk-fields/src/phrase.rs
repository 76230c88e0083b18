//! Texts about a configuration whose settings are spelled when they are shown.
//!
//! A [`Phrase`] is a template with typed pieces. It is cheap to make: nothing is formatted until a [`Speller`] of the
//! syntax that the user wrote renders it.
//!
//! ```
//! use vmdisk_fields::{DiskName, NeutralSpeller, phrase, setting};
//! use vmdisk_model::{CacheMode, DiskField, FieldPath};
//!
//! let cache = FieldPath::Disk(0, DiskField::Cache);
//! let title = phrase!("{disk} sets {cache}", disk = DiskName(0), cache = setting(cache, CacheMode::Unsafe));
//! assert_eq!(title.render(&NeutralSpeller), "disk 0 sets cache mode `unsafe`");
//! ```

use std::borrow::Cow;

use vmdisk_model::{Bytes, Change, FieldPath, IoThreadId};

use crate::setting::{Setting, Settings, in_words, noun};
use crate::{FirstReleases, OpenVersions, Speller};

/// A text whose settings and names are spelled when it is shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Phrase(Form);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Form {
    Text(Cow<'static, str>),
    Template {
        template: &'static str,
        names: &'static [&'static str],
        pieces: Vec<Piece>,
    },
    /// The first, unless the syntax cannot express one of its settings.
    Either(Box<[Phrase; 2]>),
    /// `a, b and c`, with the word before the last.
    List(Vec<Phrase>, &'static str),
}

/// A typed part of a [`Phrase`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Piece {
    /// Plain text.
    Text(Cow<'static, str>),
    /// The name of a disk.
    Disk(DiskName),
    /// The name of the disk that the phrase is about, see [`Phrase::about`].
    ThisDisk,
    /// The name of a controller, with its kind.
    Controller(ControllerName),
    /// The name of an iothread.
    IoThread(IoThreadId),
    /// Settings that belong together.
    Settings(Settings),
    /// The name of a field, without its value.
    Field(FieldPath),
    /// A path, a file name, program output or a command: printed unchanged, in backticks.
    Quoted(Cow<'static, str>),
    /// A size.
    Size(Bytes),
    /// A text inside.
    Phrase(Phrase),
}

/// The nth disk (from 0), by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskName(pub usize);

/// The nth controller (from 0), by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControllerName(pub usize);

/// A path, program output or a command, printed unchanged in backticks.
pub fn quoted(text: impl Into<Cow<'static, str>>) -> Piece {
    Piece::Quoted(text.into())
}

/// Makes a [`Phrase`] of a template and its pieces; `name` alone is short for `name = name`.
///
/// A placeholder without a piece, and a piece without a placeholder, do not compile.
#[macro_export]
macro_rules! phrase {
    (@piece $name:ident) => { $crate::Piece::from($name) };
    (@piece $name:ident $value:expr) => { $crate::Piece::from($value) };
    ($template:literal $(, $name:ident $(= $value:expr)?)* $(,)?) => {{
        const NAMES: &[&str] = &[$(stringify!($name),)* "disk"];
        const NAMES_THIS_DISK: bool = $crate::check_template($template, NAMES);
        let pieces = vec![$($crate::phrase!(@piece $name $($value)?)),*];
        $crate::Phrase::of_template($template, NAMES, pieces, NAMES_THIS_DISK)
    }};
}

/// Panics, at compile time, if the placeholders of a template are not these names, of which the last may be missing;
/// returns true if it is not.
#[doc(hidden)]
pub const fn check_template(template: &str, names: &[&str]) -> bool {
    let bytes = template.as_bytes();
    let mut seen = 0_u64;
    let mut at = 0;
    while at < bytes.len() {
        assert!(bytes[at] != b'}', "a closing brace stands alone");
        if bytes[at] == b'{' {
            let mut end = at + 1;
            while end < bytes.len() && bytes[end] != b'}' {
                end += 1;
            }
            assert!(end < bytes.len(), "a placeholder is not closed");
            let mut name = 0;
            while name < names.len() && !is_name(bytes, at + 1, end, names[name]) {
                name += 1;
            }
            assert!(name < names.len(), "a placeholder has no piece");
            seen |= 1 << name;
            at = end;
        }
        at += 1;
    }
    let last = names.len() - 1;
    let given = (1 << last) - 1;
    assert!(seen & given == given, "a piece has no placeholder");
    seen >> last == 1
}

const fn is_name(template: &[u8], start: usize, end: usize, name: &str) -> bool {
    let name = name.as_bytes();
    let mut at = 0;
    while at < name.len() && start + at < end && template[start + at] == name[at] {
        at += 1;
    }
    at == name.len() && start + at == end
}

impl Phrase {
    /// True if the text names one of these fields.
    pub fn names(&self, is_one: &dyn Fn(FieldPath) -> bool) -> bool {
        match &self.0 {
            Form::Text(_) => false,
            Form::Template { pieces, .. } => pieces.iter().any(|piece| match piece {
                Piece::Settings(settings) => settings.set.iter().any(|set| is_one(set.at)),
                Piece::Field(at) => is_one(*at),
                Piece::Phrase(inner) => inner.names(is_one),
                _ => false,
            }),
            Form::Either(both) => both.iter().any(|one| one.names(is_one)),
            Form::List(all, _) => all.iter().any(|one| one.names(is_one)),
        }
    }

    /// For [`phrase!`].
    #[doc(hidden)]
    pub fn of_template(
        template: &'static str,
        names: &'static [&'static str],
        mut pieces: Vec<Piece>,
        names_this_disk: bool,
    ) -> Self {
        if names_this_disk {
            pieces.push(Piece::ThisDisk);
        }
        Phrase(Form::Template {
            template,
            names,
            pieces,
        })
    }

    /// Gives `{disk}` its meaning where no piece does: the disk of a field.
    ///
    /// ```
    /// use vmdisk_fields::{NeutralSpeller, phrase};
    /// use vmdisk_model::{DiskField, FieldPath};
    ///
    /// let mut title = phrase!("{what} is missing", what = phrase!("the image of {disk}"));
    /// title.about(FieldPath::Disk(3, DiskField::Source));
    /// assert_eq!(title.render(&NeutralSpeller), "the image of disk 3 is missing");
    /// ```
    pub fn about(&mut self, at: FieldPath) {
        match &mut self.0 {
            Form::Text(_) => {}
            Form::Template { pieces, .. } => {
                for piece in pieces {
                    match (&mut *piece, at.disk()) {
                        (Piece::ThisDisk, Some(disk)) => *piece = Piece::Disk(DiskName(disk)),
                        (Piece::Phrase(inner), _) => inner.about(at),
                        _ => {}
                    }
                }
            }
            Form::Either(both) => both.iter_mut().for_each(|one| one.about(at)),
            Form::List(all, _) => all.iter_mut().for_each(|one| one.about(at)),
        }
    }

    /// The text in a syntax. A setting that the syntax cannot express is named in plain words.
    pub fn render(&self, speller: &dyn Speller) -> String {
        self.render_for(speller, OpenVersions::default())
    }

    /// The text in a syntax. Each setting that not every considered release of the open programs accepts is followed
    /// by the first that does: `(QEMU 8.1 or later)`.
    pub fn render_for(&self, speller: &dyn Speller, open: OpenVersions) -> String {
        let mut writer = Writer {
            speller,
            open,
            // Most texts are about as long, and growing in steps costs more than the words.
            out: String::with_capacity(64),
            is_exact: true,
        };
        writer.phrase(self);
        writer.out
    }

    /// The text in a syntax; `None` if the syntax cannot express one of its settings.
    pub fn spell(&self, speller: &dyn Speller) -> Option<String> {
        self.spell_for(speller, OpenVersions::default())
    }

    fn spell_for(&self, speller: &dyn Speller, open: OpenVersions) -> Option<String> {
        let mut writer = Writer {
            speller,
            open,
            out: String::new(),
            is_exact: true,
        };
        writer.phrase(self);
        writer.is_exact.then_some(writer.out)
    }

    /// Every group of settings in the text, in order.
    pub fn settings<'p>(&'p self, speller: &dyn Speller, found: &mut Vec<&'p Settings>) {
        match &self.0 {
            Form::Text(_) => {}
            Form::Template { pieces, .. } => {
                for piece in pieces {
                    match piece {
                        Piece::Settings(settings) => found.push(settings),
                        Piece::Phrase(inner) => inner.settings(speller, found),
                        _ => {}
                    }
                }
            }
            Form::Either(both) => {
                let is_first = both[0].spell(speller).is_some();
                both[usize::from(!is_first)].settings(speller, found);
            }
            Form::List(phrases, _) => {
                for inner in phrases {
                    inner.settings(speller, found);
                }
            }
        }
    }
}

/// The first text, or the second where the syntax cannot express a setting of the first.
pub fn either(first: impl Into<Phrase>, second: impl Into<Phrase>) -> Phrase {
    Phrase(Form::Either(Box::new([first.into(), second.into()])))
}

/// `a, b and c`.
pub fn all_of<T: Into<Piece>>(pieces: impl IntoIterator<Item = T>) -> Phrase {
    list(pieces, " and ")
}

/// `a, b or c`.
pub fn one_of<T: Into<Piece>>(pieces: impl IntoIterator<Item = T>) -> Phrase {
    list(pieces, " or ")
}

fn list<T: Into<Piece>>(pieces: impl IntoIterator<Item = T>, last: &'static str) -> Phrase {
    let pieces = pieces
        .into_iter()
        .map(|piece| phrase!("{piece}", piece = piece.into()));
    Phrase(Form::List(pieces.collect(), last))
}

/// The instruction for a fix: `use …`, `remove …`, or both.
pub fn apply(changes: &[Change]) -> Phrase {
    let mut settings = Vec::new();
    let mut removed = Vec::new();
    for change in changes {
        match change {
            Change::Set { at, value } => settings.push(crate::setting(*at, value.clone())),
            Change::Remove { at } => removed.push(*at),
        }
    }
    match (settings.is_empty(), removed.is_empty()) {
        (false, true) => phrase!("use {settings}", settings),
        (true, _) => phrase!("remove {fields}", fields = all_of(removed)),
        (false, false) => {
            phrase!(
                "use {settings}, and remove {fields}",
                settings,
                fields = all_of(removed)
            )
        }
    }
}

struct Writer<'s> {
    speller: &'s dyn Speller,
    open: OpenVersions,
    out: String,
    is_exact: bool,
}

impl Writer<'_> {
    fn phrase(&mut self, phrase: &Phrase) {
        match &phrase.0 {
            Form::Text(text) => self.out.push_str(text),
            Form::Template {
                template,
                names,
                pieces,
            } => self.template(template, names, pieces),
            Form::Either(both) => match both[0].spell_for(self.speller, self.open) {
                Some(text) => self.out.push_str(&text),
                None => self.phrase(&both[1]),
            },
            Form::List(phrases, last) => self.list(phrases, last),
        }
    }

    fn list(&mut self, phrases: &[Phrase], last: &str) {
        for (nth, phrase) in phrases.iter().enumerate() {
            let is_last = nth + 1 == phrases.len();
            match nth {
                0 => {}
                _ if is_last => self.out.push_str(last),
                _ => self.out.push_str(", "),
            }
            self.phrase(phrase);
        }
    }

    fn template(&mut self, template: &'static str, names: &[&str], pieces: &[Piece]) {
        let mut rest = template;
        // `phrase!` has checked that each placeholder ends and has a piece.
        while let Some((before, after)) = rest.split_once('{') {
            self.out.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                break;
            };
            let piece = names
                .iter()
                .position(|it| *it == name)
                .and_then(|nth| pieces.get(nth));
            if let Some(piece) = piece {
                self.piece(piece);
            }
            rest = after;
        }
        self.out.push_str(rest);
    }

    fn settings(&mut self, settings: &Settings) {
        match self.speller.settings(&settings.set) {
            Some(text) => {
                self.out.push_str(&text);
                self.releases(&settings.set);
            }
            None => {
                self.is_exact = false;
                let words = settings.set.iter().map(in_words).collect::<Vec<_>>();
                self.out.push_str(&words.join(" and "));
            }
        }
        if !settings.names_removed {
            return;
        }
        // The document cannot have what its syntax has no name for.
        let removed = settings.removed.iter();
        for (nth, field) in removed.filter_map(|at| self.speller.field(*at)).enumerate() {
            self.out
                .push_str(if nth == 0 { " without " } else { " and " });
            self.out.push_str(&field);
        }
    }

    fn field(&mut self, at: FieldPath) {
        match self.speller.field(at) {
            Some(text) => self.out.push_str(&text),
            None => {
                self.is_exact = false;
                self.out.push_str(&format!("the {}", noun(at)));
            }
        }
    }

    fn releases(&mut self, settings: &[Setting]) {
        if self.open == OpenVersions::default() {
            return;
        }
        let first = settings
            .iter()
            .map(|setting| self.speller.first_releases(setting))
            .fold(FirstReleases::default(), FirstReleases::and);
        if let Some(text) = first.of_programs(self.open).text() {
            self.out.push_str(&format!(" ({text})"));
        }
    }

    fn piece(&mut self, piece: &Piece) {
        match piece {
            Piece::Text(text) => self.out.push_str(text),
            Piece::Disk(DiskName(nth)) => self.out.push_str(&self.speller.disk(*nth)),
            Piece::ThisDisk => {
                debug_assert!(false, "`{{disk}}` in a phrase that is about none");
                self.out.push_str("the disk");
            }
            Piece::Controller(ControllerName(nth)) => {
                self.out.push_str(&self.speller.controller(*nth));
            }
            Piece::IoThread(id) => self.out.push_str(&self.speller.iothread(*id)),
            Piece::Settings(settings) => self.settings(settings),
            Piece::Field(at) => self.field(*at),
            Piece::Quoted(text) => {
                self.out.push('`');
                self.out.push_str(text);
                self.out.push('`');
            }
            Piece::Size(size) => self.out.push_str(&size.to_string()),
            Piece::Phrase(phrase) => self.phrase(phrase),
        }
    }
}

impl From<String> for Phrase {
    fn from(text: String) -> Self {
        Phrase(Form::Text(text.into()))
    }
}

impl From<&'static str> for Phrase {
    fn from(text: &'static str) -> Self {
        Phrase(Form::Text(text.into()))
    }
}

impl From<Cow<'static, str>> for Phrase {
    fn from(text: Cow<'static, str>) -> Self {
        Phrase(Form::Text(text))
    }
}

/// Makes pieces of what is shown as plain text, or has a variant of its own.
macro_rules! pieces {
    ($($type:ty: $of:expr;)+) => {$(
        impl From<$type> for Piece {
            fn from(it: $type) -> Self {
                let of: fn($type) -> Piece = $of;
                of(it)
            }
        }
    )+};
}

pieces! {
    &'static str: |text| Piece::Text(text.into());
    String: |text| Piece::Text(text.into());
    Cow<'static, str>: Piece::Text;
    u32: |number| Piece::Text(number.to_string().into());
    u64: |number| Piece::Text(number.to_string().into());
    usize: |number| Piece::Text(number.to_string().into());
    DiskName: Piece::Disk;
    ControllerName: Piece::Controller;
    IoThreadId: Piece::IoThread;
    Setting: |setting| Piece::Settings(vec![setting].into());
    Vec<Setting>: |settings| Piece::Settings(settings.into());
    Settings: Piece::Settings;
    FieldPath: Piece::Field;
    Bytes: Piece::Size;
    Phrase: Piece::Phrase;
}

impl<const N: usize> From<[Setting; N]> for Piece {
    fn from(settings: [Setting; N]) -> Self {
        Piece::Settings(Vec::from(settings).into())
    }
}
