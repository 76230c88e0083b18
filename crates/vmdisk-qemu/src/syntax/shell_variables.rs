//! Variables of a shell script or a makefile that hold the program or its options.

use std::collections::HashMap;

use super::text::Text;

/// Replaces a variable by the program or the options that the script assigns to it. Other variables are kept: their
/// values are unknown. Returns the names of the variables with options that it replaced.
pub(crate) fn expand(
    text: &str,
    commands: &mut [Vec<Text>],
    is_program: fn(&str) -> bool,
) -> Vec<String> {
    let mut variables = Variables::default();
    for words in commands.iter() {
        variables.read(text, words, is_program);
    }
    if variables.options.is_empty() && variables.programs.is_empty() {
        return Vec::new();
    }
    for words in commands {
        // Each pass removes the options that it uses, so a chain of variables comes to an end.
        while words.iter().any(|word| variables.has_options(word)) {
            *words = std::mem::take(words)
                .into_iter()
                .flat_map(|word| variables.options_of(word))
                .collect();
        }
        for word in words {
            let name = variable_name(word.as_str());
            if let Some(Some(program)) = name.and_then(|name| variables.programs.get(name)) {
                let place = word.whole();
                let mut value = Text::empty(place.start);
                value.push_escape(program, place);
                *word = value;
            }
        }
    }
    variables.used
}

/// The variables of a script. `None` stands for a second definition, which may be of another branch of the script.
#[derive(Default)]
struct Variables {
    options: HashMap<String, Option<Options>>,
    programs: HashMap<String, Option<String>>,
    branches: Vec<Branch>,
    used: Vec<String>,
}

/// Options in a variable.
#[derive(Default)]
struct Options {
    words: Vec<Text>,
    /// True if another branch of the script adds options, which are not among the words.
    is_partial: bool,
}

/// Where in a condition of the script a command is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Branch {
    First,
    Other,
}

impl Variables {
    fn read(&mut self, text: &str, words: &[Text], is_program: fn(&str) -> bool) {
        self.enter(words);
        let Some(assignment) = Assignment::of(words) else {
            return;
        };
        let Assignment {
            name,
            mut values,
            mut adds,
            is_list,
        } = assignment;
        let is_own = |word: &Text| variable_name(word.as_str()) == Some(name);
        // `NAME="$NAME -option"`
        if values.iter().any(is_own) {
            values.retain(|word| !is_own(word));
            adds = true;
        }
        match values.as_slice() {
            [program] if is_program(program.as_str()) => {
                let program = program.as_str();
                self.programs
                    .entry(name.to_owned())
                    .and_modify(|known| *known = None)
                    .or_insert_with(|| Some(program.to_owned()));
            }
            [_, ..]
                if (is_list || are_options(&values))
                    && !values.iter().any(|word| is_program(word.as_str())) =>
            {
                let before = text[..words[0].whole().start].trim_end();
                let is_alternative =
                    self.branches.contains(&Branch::Other) || before.ends_with("||");
                self.define(name, values, adds, is_alternative);
            }
            _ => {}
        }
    }

    fn define(&mut self, name: &str, values: Vec<Text>, adds: bool, is_alternative: bool) {
        let known = self.options.contains_key(name);
        let options = self
            .options
            .entry(name.to_owned())
            .or_insert_with(|| Some(Options::default()));
        match options {
            Some(options) if adds && is_alternative => options.is_partial = true,
            Some(options) if adds || !known => options.words.extend(values),
            _ => *options = None,
        }
    }

    /// Follows the conditions of a script and of a makefile.
    fn enter(&mut self, words: &[Text]) {
        match words[0].as_str() {
            "if" | "ifeq" | "ifneq" | "ifdef" | "ifndef" => self.branches.push(Branch::First),
            "case" => self.branches.push(Branch::Other),
            "else" | "elif" => {
                if let Some(branch) = self.branches.last_mut() {
                    *branch = Branch::Other;
                }
            }
            "fi" | "esac" | "endif" => {
                self.branches.pop();
            }
            _ => {}
        }
    }

    fn has_options(&self, word: &Text) -> bool {
        let known = variable_name(word.as_str()).and_then(|name| self.options.get(name));
        known.is_some_and(Option::is_some)
    }

    /// The options in a variable. Each is used once, so that a short script has a short command.
    fn options_of(&mut self, word: Text) -> Vec<Text> {
        let name = variable_name(word.as_str());
        let options = match name.and_then(|name| self.options.get_mut(name)) {
            Some(options) => options.take(),
            None => None,
        };
        match options {
            Some(mut options) => {
                self.used.extend(name.map(str::to_owned));
                if options.is_partial {
                    options.words.push(word);
                }
                options.words
            }
            None => vec![word],
        }
    }
}

/// A command that assigns a variable.
struct Assignment<'t> {
    name: &'t str,
    values: Vec<Text>,
    /// True if the variable keeps its former value.
    adds: bool,
    /// True for `NAME=(…)`.
    is_list: bool,
}

impl<'t> Assignment<'t> {
    fn of(words: &'t [Text]) -> Option<Self> {
        let words = match words {
            [keyword, rest @ ..]
                if matches!(
                    keyword.as_str(),
                    "export" | "local" | "readonly" | "then" | "do" | "else"
                ) =>
            {
                rest
            }
            _ => words,
        };
        let (first, rest) = words.split_first()?;
        let mut is_list = false;
        let (name, values) = match (first.as_str().split_once('='), rest) {
            // `NAME=(…)`
            (Some((name, "")), _) => {
                is_list = true;
                (name, rest.to_vec())
            }
            (Some((name, value)), []) => {
                let start = first.as_str().len() - value.len();
                (name, split(first, start))
            }
            // `NAME := …` of a makefile
            (None, [operator, values @ ..])
                if matches!(operator.as_str(), "=" | ":=" | "::=" | "?=" | "+=") =>
            {
                let name = first.as_str();
                return Some(Assignment {
                    name,
                    values: values.to_vec(),
                    adds: operator.as_str() == "+=",
                    is_list,
                });
            }
            // `NAME=-option value` of a makefile; a shell runs the value.
            (Some((name, value)), _) if value.starts_with('-') => {
                let start = first.as_str().len() - value.len();
                let mut values = split(first, start);
                values.extend_from_slice(rest);
                (name, values)
            }
            _ => return None,
        };
        let bare = name.trim_end_matches(['+', ':', '?']);
        Some(Assignment {
            name: bare,
            values,
            adds: name.ends_with('+'),
            is_list,
        })
    }
}

/// True for options, and for variables followed by options.
fn are_options(words: &[Text]) -> bool {
    let is_option = |word: &str| {
        let name = word.strip_prefix('-').unwrap_or_default();
        name.starts_with(|it: char| it.is_ascii_alphabetic())
    };
    let first = words[0].as_str();
    (is_option(first) || variable_name(first).is_some())
        && words.iter().any(|word| is_option(word.as_str()))
}

/// The words of an unquoted variable with this value, which starts at `start` of a word.
fn split(word: &Text, start: usize) -> Vec<Text> {
    let mut words = Vec::new();
    let mut at = start;
    for part in word.as_str()[start..].split_inclusive(|it: char| it.is_ascii_whitespace()) {
        let length = part.trim_end().len();
        if length > 0 {
            words.push(word.part(at..at + length));
        }
        at += part.len();
    }
    words
}

/// The name in `$NAME`, `${NAME}`, `${NAME[@]}` and `$(NAME)`.
pub(crate) fn variable_name(word: &str) -> Option<&str> {
    let name = word.strip_prefix('$')?;
    let between = |open, close| name.strip_prefix(open)?.strip_suffix(close);
    let name = between('{', '}').or(between('(', ')')).unwrap_or(name);
    let name = name.strip_suffix("[@]").unwrap_or(name);
    let name = name.strip_suffix("[*]").unwrap_or(name);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}
