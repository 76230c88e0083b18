//! The simple commands of a script, each with where it stands: certainly run once, under a condition, in a loop, in a function.

use std::collections::HashMap;

use super::hole::Hole;
use super::lexer::{Placed, Token, Word, tokens};
use super::text::Text;
use crate::failure::ReadFailure;
use crate::runners::is_name;

/// The text of a value that is assigned.
#[derive(Clone, Debug)]
pub(super) enum Written {
    Word(Text),
    List(Vec<Word>),
}

/// `NAME=value`, `NAME+=value`, and `set -- value`, whose name is `@`.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) is_append: bool,
    /// True for a member: `NAME[1]=value`.
    pub(super) is_member: bool,
    pub(super) value: Written,
}

/// A simple command.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    /// Its place in the file.
    pub(super) at: usize,
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<Word>,
    /// A line that a shell of its own runs after another program has put the values of its variables into it.
    pub(super) script: Option<Text>,
    /// The text of arithmetic, and names of variables that syntax sets.
    pub(super) sets: Vec<String>,
    /// True if the script runs it once, in order.
    pub(super) is_certain: bool,
    /// True if what it assigns is lost after the group of commands around it.
    pub(super) is_isolated: bool,
    /// The innermost condition or loop: its place.
    pub(super) condition: Option<usize>,
    /// Where the text begins that runs under the same conditions.
    pub(super) block: Option<usize>,
    /// The function that it stands in.
    pub(super) owner: Option<String>,
    /// The steps in which others may run before it once more: its loop, or all after the start of its function.
    pub(super) repeats: Option<(usize, usize)>,
}

impl Step {
    /// A command that runs once, in order.
    pub(super) fn command(at: usize, words: Vec<Word>) -> Self {
        Step {
            at,
            words,
            is_certain: true,
            ..Step::default()
        }
    }

    /// A line with holes that a shell of its own runs.
    pub(super) fn running(script: Text, owner: &str) -> Self {
        let mut step = Step::command(script.whole().start, Vec::new());
        step.script = Some(script);
        step.owner = Some(owner.to_owned()).filter(|it| !it.is_empty());
        step
    }

    pub(super) fn assigning(name: &str, value: Text, at: usize) -> Self {
        let assignment = Assignment {
            name: name.to_owned(),
            is_append: false,
            is_member: false,
            value: Written::Word(value),
        };
        Step {
            assignments: vec![assignment],
            ..Step::command(at, Vec::new())
        }
    }

    /// A change of a variable that is not followed.
    pub(super) fn changing(name: &str, at: usize) -> Self {
        let mut step = Step::assigning(name, Text::empty(at), at);
        step.assignments[0].is_member = true;
        step
    }
}

impl From<Vec<Step>> for Steps {
    fn from(list: Vec<Step>) -> Self {
        Steps {
            list,
            functions: HashMap::new(),
        }
    }
}

/// The commands of a script.
#[derive(Default)]
pub(super) struct Steps {
    pub(super) list: Vec<Step>,
    /// The names of functions.
    pub(super) functions: HashMap<String, usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    If,
    Loop,
    Case,
    Group,
    Subshell,
}

struct Frame {
    kind: Kind,
    at: usize,
    first: usize,
    owner: Option<String>,
    /// True if what is inside may not run.
    is_condition: bool,
    /// The place of the branch.
    branch: usize,
    /// True before the parenthesis after a pattern.
    is_pattern: bool,
}

/// What the next word is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Command,
    LoopVariable,
    LoopList,
    FunctionName,
    CaseWord,
    /// Nothing: it is after a compound command.
    Ignored,
}

/// Reads the commands of a text.
pub(super) fn steps(
    source: &Text,
    is_documentation: bool,
    holes: &mut Vec<Hole>,
) -> Result<Steps, ReadFailure> {
    let tokens = tokens(source, is_documentation, holes)?;
    let mut parser = Parser {
        out: Steps::default(),
        frames: Vec::new(),
        step: Step::default(),
        array: None,
        chain: None,
        is_piped: false,
        continues: false,
        function: None,
        next: Next::Command,
        has_ended: false,
        is_broken: None,
    };
    for placed in tokens {
        parser.token(placed);
        if parser.has_ended || parser.is_broken.is_some() {
            break;
        }
    }
    if !parser.has_ended {
        parser.finish(false);
        let open = parser.frames.last().map(|frame| frame.at);
        parser.is_broken = parser.is_broken.or(open);
    }
    match parser.is_broken {
        Some(at) => Err(ReadFailure::new(
            vmdisk_source::Span::empty(at),
            "the commands of the script are not understood: what begins here is not closed, or what ends here was not begun",
        )
        .help(CAPTURE)),
        None => Ok(parser.out),
    }
}

/// The remedy where reading is not certain.
pub(super) const CAPTURE: &str =
    "run it and check what it starts: `vmdisk capture -- COMMAND | vmdisk lint -`";

/// Commands within each other, at most.
const MAX_DEPTH: usize = 200;

struct Parser {
    out: Steps,
    frames: Vec<Frame>,
    step: Step,
    /// The members of the array that is being assigned.
    array: Option<Vec<Word>>,
    /// The place of the command whose status decides over the next.
    chain: Option<usize>,
    is_piped: bool,
    /// True if a line end does not end the command.
    continues: bool,
    /// The function whose body comes next.
    function: Option<String>,
    next: Next,
    has_ended: bool,
    is_broken: Option<usize>,
}

impl Parser {
    fn token(&mut self, Placed { token, at }: Placed) {
        match token {
            Token::Word(word) => self.word(word, at),
            Token::Operator(operator) => self.operator(operator, at),
            Token::Descriptor(name) => self.step.sets.push(name),
        }
    }

    fn is_fresh(&self) -> bool {
        self.step.words.is_empty() && self.step.assignments.is_empty()
    }

    fn begin(&mut self, at: usize) {
        self.continues = false;
        if self.is_fresh() && self.step.sets.is_empty() {
            self.step.at = at;
        }
    }

    fn open(&mut self, kind: Kind, at: usize) {
        let is_group = matches!(kind, Kind::Group | Kind::Subshell);
        let owner = self.function.take();
        if self.frames.len() >= MAX_DEPTH {
            self.is_broken = Some(at);
        }
        self.frames.push(Frame {
            kind,
            at,
            first: self.out.list.len(),
            is_condition: !is_group || self.chain.is_some(),
            branch: at,
            owner,
            is_pattern: false,
        });
        self.chain = None;
        self.next = Next::Command;
    }

    fn close(&mut self, kind: Kind, at: usize) {
        let Some(frame) = self.frames.pop_if(|frame| frame.kind == kind) else {
            self.is_broken = Some(at);
            return;
        };
        let end = self.out.list.len();
        let is_repeated = frame.kind == Kind::Loop || frame.owner.is_some();
        if is_repeated {
            let to = if frame.owner.is_some() {
                usize::MAX
            } else {
                end
            };
            for step in &mut self.out.list[frame.first..end] {
                let (from, until) = step.repeats.unwrap_or((frame.first, to));
                step.repeats = Some((from.min(frame.first), until.max(to)));
            }
        }
        self.next = Next::Ignored;
    }

    fn word(&mut self, word: Word, at: usize) {
        if let Some(array) = &mut self.array {
            array.push(word);
            return;
        }
        let is_in_pattern = self.frames.last().is_some_and(|frame| frame.is_pattern);
        if is_in_pattern && word.bare() != Some("esac") {
            return;
        }
        if self.is_fresh() && self.step.sets.is_empty() {
            if let Some(bare) = word.bare()
                && matches!(self.next, Next::Command | Next::Ignored)
                && self.keyword(bare, at)
            {
                return;
            }
            match self.next {
                Next::Ignored => return,
                Next::LoopVariable => {
                    self.begin(at);
                    match word.bare() {
                        Some(name) => self.step.sets.push(name.to_owned()),
                        // Arithmetic.
                        None => self.step.words.push(word),
                    }
                    self.next = Next::LoopList;
                    return;
                }
                Next::FunctionName => {
                    self.name_function(word.text.as_str());
                    return;
                }
                Next::CaseWord => {
                    if word.bare() == Some("in") {
                        self.next = Next::Command;
                        self.set_pattern(true);
                    }
                    return;
                }
                Next::Command | Next::LoopList => {}
            }
        }
        if self.next == Next::LoopList {
            return;
        }
        self.begin(at);
        if (self.step.words.is_empty() || self.declares())
            && let Some(assignment) = assignment(&word, self.declares())
        {
            // Most commands have one.
            self.step.assignments.reserve_exact(1);
            self.step.assignments.push(assignment);
            return;
        }
        self.step.words.push(word);
    }

    /// True within `export NAME=value` and the like.
    fn declares(&self) -> bool {
        let first = self.step.words.first().and_then(Word::bare);
        first.is_some_and(|it| DECLARES.contains(&it))
    }

    /// True if a word of the syntax begins or ends something.
    fn keyword(&mut self, word: &str, at: usize) -> bool {
        self.continues = false;
        match word {
            "if" => self.open(Kind::If, at),
            "while" | "until" => self.open(Kind::Loop, at),
            "for" | "select" => {
                self.open(Kind::Loop, at);
                self.next = Next::LoopVariable;
            }
            "case" => {
                self.open(Kind::Case, at);
                self.next = Next::CaseWord;
            }
            "{" => self.open(Kind::Group, at),
            "function" => self.next = Next::FunctionName,
            "fi" => self.close(Kind::If, at),
            "done" => self.close(Kind::Loop, at),
            "esac" => self.close(Kind::Case, at),
            "}" => self.close(Kind::Group, at),
            "else" | "elif" => {
                self.next = Next::Command;
                if let Some(frame) = self.frames.last_mut() {
                    (frame.at, frame.branch) = (at, at);
                }
            }
            "then" | "do" | "!" | "time" => self.next = Next::Command,
            _ => return false,
        }
        true
    }

    fn set_pattern(&mut self, is_pattern: bool) {
        if let Some(frame) = self.frames.last_mut() {
            frame.is_pattern = is_pattern;
        }
    }

    fn name_function(&mut self, name: &str) {
        self.out
            .functions
            .insert(name.to_owned(), self.out.list.len());
        self.function = Some(name.to_owned());
        self.step = Step::default();
        self.next = Next::Command;
        self.continues = true;
    }

    fn operator(&mut self, operator: &'static str, at: usize) {
        let is_pattern = self.frames.last().is_some_and(|frame| frame.is_pattern);
        match operator {
            "=(" => {
                self.array = Some(Vec::new());
                return;
            }
            "=)" => {
                let members = self.array.take().unwrap_or_default();
                if let Some(last) = self.step.assignments.last_mut() {
                    last.value = Written::List(members);
                }
                return;
            }
            ")" if is_pattern => {
                self.set_pattern(false);
                self.next = Next::Command;
                return;
            }
            _ if is_pattern => return,
            "()" => {
                match self.step.words.as_slice() {
                    [name] if self.step.assignments.is_empty() => {
                        let name = name.text.as_str().to_owned();
                        self.name_function(&name);
                    }
                    [] if self.function.is_some() => {}
                    _ => self.is_broken = Some(at),
                }
                return;
            }
            "(" => {
                if self.is_fresh() && self.next == Next::Command {
                    self.open(Kind::Subshell, at);
                } else {
                    self.is_broken = Some(at);
                }
                return;
            }
            "\n" if self.continues => return,
            _ => {}
        }
        let is_empty = self.is_fresh() && self.step.sets.is_empty();
        let chain = if is_empty { at } else { self.step.at };
        self.finish(matches!(operator, "|" | "|&" | "&"));
        self.next = Next::Command;
        match operator {
            ")" => self.close(Kind::Subshell, at),
            ";;" | ";&" | ";;&" => match self.frames.last_mut() {
                Some(frame) if frame.kind == Kind::Case => {
                    (frame.is_pattern, frame.branch) = (true, at);
                }
                _ => self.is_broken = Some(at),
            },
            "&&" | "||" => {
                self.chain = self.chain.or(Some(chain));
                self.continues = true;
            }
            "|" | "|&" => {
                self.is_piped = true;
                self.continues = true;
            }
            _ => {}
        }
        if !self.continues {
            (self.chain, self.is_piped) = (None, false);
        } else if !operator.starts_with('|') || operator == "||" {
            self.is_piped = false;
        }
    }

    /// Ends the command, which runs in a shell of its own if it `is_apart`.
    fn finish(&mut self, is_apart: bool) {
        let mut step = std::mem::take(&mut self.step);
        self.function = None;
        if step.words.is_empty() && step.assignments.is_empty() && step.sets.is_empty() {
            return;
        }
        let is_apart = is_apart || self.is_piped;
        let innermost = self.frames.iter().rev().find(|frame| frame.is_condition);
        step.condition = self.chain.or(innermost.map(|frame| frame.at));
        step.block = self.chain.or(innermost.map(|frame| frame.branch));
        step.owner = self
            .frames
            .iter()
            .rev()
            .find_map(|frame| frame.owner.clone());
        step.is_certain = self.frames.is_empty() && self.chain.is_none() && !is_apart;
        let is_group = |frame: &Frame| {
            frame.kind == Kind::Subshell
                || frame.kind == Kind::Group && !frame.is_condition && frame.owner.is_none()
        };
        step.is_isolated = is_apart || self.frames.iter().any(is_group);
        let first = step.words.first().and_then(Word::bare);
        let ends = match first {
            Some("exit" | "return") => true,
            Some("exec") => step.words.len() > 1,
            _ => false,
        };
        self.has_ended = ends && step.is_certain;
        self.out.list.push(step);
    }
}

/// The commands whose arguments are assignments.
pub(super) const DECLARES: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];

/// The assignment that a word is. The arguments of some commands may have quotes around the name.
fn assignment(word: &Word, may_be_quoted: bool) -> Option<Assignment> {
    let text = word.text.as_str();
    let (before, _) = text.split_once('=')?;
    let end = before.len() + 1;
    let is_literal = word.text.holes().all(|(hole, _)| hole.start >= end);
    let is_bare = word.bare >= end || may_be_quoted;
    let (name, is_append) = match before.strip_suffix('+') {
        Some(name) => (name, true),
        None => (before, false),
    };
    let member = name.split_once('[').map(|(name, _)| name);
    // The subscript of a member may be any expansion.
    let is_member = member.is_some_and(is_name) && word.bare > name.len().min(2);
    if !(is_bare && is_literal && is_name(name) || is_member) {
        return None;
    }
    Some(Assignment {
        name: member.unwrap_or(name).to_owned(),
        is_append,
        is_member,
        value: Written::Word(word.text.part(end.min(text.len())..text.len())),
    })
}

/// The arguments that `set` gives to the script or its function.
pub(super) fn arguments_set(step: &Step) -> Option<&[Word]> {
    let (first, mut rest) = step.words.split_first()?;
    if first.text.as_str() != "set" {
        return None;
    }
    while let Some((option, after)) = rest.split_first() {
        let option = option.text.as_str();
        rest = match option {
            "--" | "-" => return Some(after),
            // The name of an option follows.
            _ if option.starts_with(['-', '+']) && option.ends_with('o') => after.get(1..)?,
            _ if option.starts_with(['-', '+']) => after,
            _ => return Some(rest),
        };
    }
    None
}
