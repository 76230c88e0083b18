//! Which alternatives of a template are taken together: a condition that is written twice holds twice or not at all.

use std::collections::BTreeMap;

use vmdisk_source::template::Branches;

/// The value of each subject of conditions; `None` for a value that no condition names. A subject that is only true or
/// false is empty or `None`.
pub(super) type State = BTreeMap<String, Option<String>>;

/// Alternatives with their conditions.
pub(super) struct Choice<'t> {
    branches: &'t Branches,
    /// The statement before each alternative.
    statements: Vec<&'t str>,
    /// The condition of each alternative, other than of the one that is taken otherwise.
    tests: Vec<Test>,
}

impl<'t> Choice<'t> {
    pub(super) fn new(branches: &'t Branches, text: &'t str) -> Self {
        let first = branches.condition.slice(text).unwrap_or_default();
        let between = branches.alternatives.windows(2);
        let between = between.map(|pair| text.get(pair[0].end..pair[1].start).unwrap_or_default());
        let statements: Vec<&str> = [first].into_iter().chain(between).map(str::trim).collect();
        let number = statements.len() - usize::from(branches.is_complete);
        let tests = statements[..number].iter().map(|it| Test::of(it)).collect();
        Choice {
            branches,
            statements,
            tests,
        }
    }

    /// All alternatives, with that of taking none.
    pub(super) fn alternatives(&self) -> impl Iterator<Item = Option<usize>> + use<> {
        let none = (!self.branches.is_complete).then_some(None);
        (0..self.statements.len()).map(Some).chain(none)
    }

    /// The alternative that is taken in a state.
    pub(super) fn taken(&self, state: &State) -> Option<usize> {
        let first = self.tests.iter().position(|test| test.holds(state));
        first.or(self.branches.is_complete.then_some(self.tests.len()))
    }

    /// The statement before an alternative.
    pub(super) fn statement(&self, alternative: Option<usize>) -> String {
        match alternative {
            Some(nth) => self.statements[nth].to_owned(),
            None => format!("not {}", self.statements[0]),
        }
    }

    /// Adds what an alternative requires; false if that contradicts what is required already.
    fn require(&self, alternative: Option<usize>, state: &mut State) -> bool {
        let own = alternative.unwrap_or(self.tests.len());
        // A condition that holds says more than a condition that does not.
        let holds = self
            .tests
            .get(own)
            .is_none_or(|test| test.require(true, state));
        let mut before = self.tests.iter().take(own);
        holds && before.all(|test| test.require(false, state))
    }
}

/// The state in which each subject has the first value that a condition names.
pub(super) fn usual(choices: &[Choice<'_>]) -> State {
    let mut state = State::new();
    for test in choices.iter().flat_map(|choice| &choice.tests) {
        let value = || Some(test.value.clone());
        state.entry(test.subject.clone()).or_insert_with(value);
    }
    state
}

/// What an alternative of a choice requires, with the alternatives around it; `None` for a contradiction.
pub(super) fn required(
    choices: &[Choice<'_>],
    nth: usize,
    alternative: Option<usize>,
) -> Option<State> {
    let mut state = State::new();
    let place = choices[nth].branches.condition;
    let is_possible = choices[nth].require(alternative, &mut state)
        && choices.iter().all(|choice| {
            let alternatives = choice.branches.alternatives.iter();
            let mut around = alternatives.enumerate();
            let around = around.find(|(_, it)| it.start <= place.start && place.end <= it.end);
            around.is_none_or(|(at, _)| choice.require(Some(at), &mut state))
        });
    is_possible.then_some(state)
}

/// A condition.
struct Test {
    subject: String,
    /// The value that the subject is compared with; empty for one that is true or false.
    value: String,
    is_negated: bool,
}

impl Test {
    /// The condition in a statement.
    fn of(statement: &str) -> Self {
        let is_inverted = statement.starts_with("{{^");
        let code = statement.trim_matches(|letter: char| "{}<>%#^-+~ \t".contains(letter));
        let (word, rest) = code.split_once(' ').unwrap_or((code, ""));
        let rest = rest.trim();
        let (code, is_unless) = match word {
            "if" | "elif" | "elsif" | "elseif" => (rest, false),
            "unless" => (rest, true),
            "else" => (rest.strip_prefix("if ").unwrap_or(code), false),
            // A loop, or a section.
            _ => (code, false),
        };
        let (subject, value, is_not) = comparison(code);
        Test {
            subject,
            value,
            is_negated: is_not != (is_unless || is_inverted),
        }
    }

    fn holds(&self, state: &State) -> bool {
        let value = state.get(&self.subject).and_then(Option::as_ref);
        (value == Some(&self.value)) != self.is_negated
    }

    /// Adds a value with which the condition holds, or does not; false if there is one already with which it is not so.
    fn require(&self, holds: bool, state: &mut State) -> bool {
        let value = || (holds != self.is_negated).then(|| self.value.clone());
        state.entry(self.subject.clone()).or_insert_with(value);
        self.holds(state) == holds
    }
}

/// The subject of a condition, the value that it is compared with, and whether the condition holds for all other values.
fn comparison(code: &str) -> (String, String, bool) {
    let is_joined = [" and ", " or ", "&&", "||"]
        .iter()
        .any(|it| code.contains(it));
    let truth = |subject: &str, is_not| (subject.trim().to_owned(), String::new(), is_not);
    if is_joined {
        return truth(code, false);
    }
    if let Some(rest) = code.strip_prefix("not ").or_else(|| code.strip_prefix('!')) {
        let (subject, value, is_not) = comparison(rest.trim());
        return (subject, value, !is_not);
    }
    if let Some((subject, test)) = code.split_once(" is not ") {
        return truth(&format!("{subject} is {test}"), true);
    }
    let compared = |operator: &str| code.split_once(operator);
    // As Go writes it.
    let called = |name: &str| code.strip_prefix(name)?.trim().split_once(' ');
    let all = [
        (compared(" == "), false),
        (compared(" != "), true),
        (called("eq "), false),
        (called("ne "), true),
    ];
    let found = all
        .into_iter()
        .find_map(|(parts, is_not)| Some((parts?, is_not)));
    match found {
        // A subject that is compared may be true as well.
        Some(((subject, value), is_not)) => (
            format!("{} ==", subject.trim()),
            value.trim().to_owned(),
            is_not,
        ),
        None => truth(code, false),
    }
}

#[cfg(test)]
mod tests {
    use super::Test;

    #[test]
    fn a_condition_has_a_subject_in_the_words_of_each_engine() {
        for (statement, subject, value, is_negated) in [
            ("{% if a %}", "a", "", false),
            ("{%- if not a -%}", "a", "", true),
            ("{% elif a is not defined %}", "a is defined", "", true),
            ("{% if a == 'x' %}", "a ==", "'x'", false),
            ("{% if not a == 'x' %}", "a ==", "'x'", true),
            ("{% if a or b != c %}", "a or b != c", "", false),
            ("{% for d in disks %}", "for d in disks", "", false),
            ("{{- if eq .A \"x\" }}", ".A ==", "\"x\"", false),
            ("{{ else if ne .A \"x\" }}", ".A ==", "\"x\"", true),
            ("{{#a}}", "a", "", false),
            ("{{^a}}", "a", "", true),
            ("<% unless @a != 1 -%>", "@a ==", "1", false),
            ("<% if !@a %>", "@a", "", true),
        ] {
            let test = Test::of(statement);
            let found = (&*test.subject, &*test.value, test.is_negated);
            assert_eq!(found, (subject, value, is_negated), "{statement}");
        }
    }
}
