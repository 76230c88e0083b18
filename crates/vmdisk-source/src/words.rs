//! Enums whose values have one word each.

/// Declares an enum with the word of each value: `enum Level as name { Low = "low", High = "high", }`.
///
/// ```
/// vmdisk_source::words! {
///     /// A level.
///     pub enum Level as name {
///         /// The lowest.
///         Low = "low",
///         /// The highest.
///         High = "high",
///     }
/// }
/// assert_eq!(Level::ALL.iter().map(|level| level.name()).collect::<Vec<_>>(), ["low", "high"]);
/// assert_eq!(Level::High.to_string(), "high");
/// assert_eq!("low".parse(), Ok(Level::Low));
/// let error = "middle".parse::<Level>().unwrap_err();
/// assert_eq!(error.to_string(), "expected `low` or `high`, found `middle`");
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$($meta:tt)*])*
        $vis:vis enum $name:ident as $word:ident {
            $($(#[$($of_value:tt)*])* $value:ident = $text:literal,)+
        }
    ) => {
        $(#[$($meta)*])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$($of_value)*])* $value,)+
        }

        #[allow(dead_code, reason = "private enums may need less")]
        impl $name {
            /// Every value, in the order of declaration.
            $vis const ALL: &'static [Self] = &[$(Self::$value,)+];

            /// The word of every value, in the same order.
            $vis const WORDS: &'static [&'static str] = &[$($text,)+];

            /// The value of a word.
            $vis fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($text => Some(Self::$value),)+
                    _ => None,
                }
            }

            /// The word for the value.
            $vis const fn $word(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::from_word(word).ok_or_else(|| $crate::UnknownWord::new(word, Self::WORDS))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.$word())
            }
        }
    };
}

/// A word that no value of an enum has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownWord {
    /// The word.
    pub word: String,
    /// The words of the values.
    pub expected: &'static [&'static str],
}

impl UnknownWord {
    /// A word that is none of `expected`.
    pub fn new(word: &str, expected: &'static [&'static str]) -> Self {
        let word = word.to_owned();
        UnknownWord { word, expected }
    }
}

impl std::fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (last, others) = self.expected.split_last().unwrap_or((&"", &[]));
        let list = match others {
            [] => String::new(),
            _ => format!("`{}` or ", others.join("`, `")),
        };
        write!(f, "expected {list}`{last}`, found `{}`", self.word)
    }
}

impl std::error::Error for UnknownWord {}
