//! The recipes of a makefile with the values of its variables.

use std::collections::{BTreeMap, HashMap, HashSet};

use vmdisk_source::Span;

use super::expansion::matches;
use super::hole::{Decisions, Evaluated, UNSET};
use super::program::is_program_variable;
use super::script;
use super::text::Text;
use crate::failure::ReadFailure;

/// True for text with assignments or rules of make.
pub(super) fn is_makefile(text: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_assignment = |line: &str| {
        let after = line.trim_start_matches(is_name);
        let operator = after.trim_start();
        let is_own = [":=", "::=", "?="]
            .iter()
            .any(|it| operator.starts_with(it));
        let is_spaced = after.starts_with([' ', '\t'])
            && ["= ", "+= ", "=\n"]
                .iter()
                .any(|it| operator.starts_with(it));
        after.len() < line.len() && (is_own || is_spaced)
    };
    let is_rule = |line: &str| {
        let target = line.split_once(':').map_or("", |(target, _)| target);
        !target.is_empty()
            && !target.contains(['"', '\'', '=', '#'])
            && !line.starts_with([' ', '\t'])
    };
    let mut lines = text.lines().zip(text.lines().skip(1));
    !text.starts_with("#!")
        && (text.lines().any(is_assignment)
            || lines.any(|(line, next)| next.starts_with('\t') && is_rule(line)))
}

/// The commands of all recipes.
pub(super) fn evaluate(
    file: &str,
    is_start: fn(&[Text]) -> bool,
    decisions: &Decisions,
    given: &BTreeMap<String, String>,
) -> Result<Evaluated, ReadFailure> {
    let mut make = Make {
        file,
        variables: HashMap::new(),
        rules: Vec::new(),
        specific: Vec::new(),
        branches: Vec::new(),
        included: None,
        skipped: HashSet::new(),
        used: HashSet::new(),
        local: HashMap::new(),
        given,
        out: Evaluated::default(),
        bytes: 0,
    };
    make.read();
    for rule in std::mem::take(&mut make.rules) {
        for (nth, line) in rule.recipe.iter().enumerate() {
            // A variable alone keeps the places of its value, so marks before it are cut first.
            let bare = line.as_str().trim_start_matches(MARKS);
            let start = line.as_str().len() - bare.len();
            make.used.clear();
            make.local = rule.local.clone();
            let text = make.expand(&line.part(start..line.as_str().len()), 0);
            let marks = text.as_str().len() - text.as_str().trim_start_matches(MARKS).len();
            let text = text.part(marks..text.as_str().len());
            if make.bytes > script::MAX_BYTES {
                let message = "the variables of the makefile expand to too much text";
                return Err(ReadFailure::new(rule.recipe[nth].whole(), message));
            }
            let before = make.out.commands.len();
            let seed = std::mem::take(&mut make.out);
            make.out = script::evaluate(text, is_start, decisions, given, seed)?;
            for command in &mut make.out.commands[before..] {
                command.owner = Some(rule.target.clone());
            }
        }
    }
    Ok(make.out)
}

#[derive(Clone)]
struct Variable {
    value: Text,
    /// True for `:=`, whose value is already expanded.
    is_expanded: bool,
    unknown: Option<&'static str>,
}

#[derive(Clone)]
struct Rule {
    target: String,
    /// The targets that are made before it.
    needs: Vec<String>,
    recipe: Vec<Text>,
    /// The variables of the target, and those that make sets for it.
    local: HashMap<String, Variable>,
}

struct Make<'t> {
    file: &'t str,
    variables: HashMap<String, Variable>,
    rules: Vec<Rule>,
    /// Variables of targets: the targets, the name, the operator and the value.
    specific: Vec<(Vec<String>, String, String, Variable)>,
    /// For each open condition, whether its part is read: `None` if that is unknown.
    branches: Vec<Option<bool>>,
    /// A file that the makefile reads.
    included: Option<String>,
    /// Variables that it sets only where it is not read.
    skipped: HashSet<String>,
    /// The variables of the current recipe line.
    used: HashSet<String>,
    local: HashMap<String, Variable>,
    given: &'t BTreeMap<String, String>,
    out: Evaluated,
    bytes: usize,
}

/// What may stand before a command of a recipe, also as the value of a variable.
const MARKS: [char; 5] = ['@', '-', '+', ' ', '\t'];

/// Variables within each other, at most.
const MAX_DEPTH: usize = 32;

impl Make<'_> {
    fn text(&self, start: usize, end: usize) -> Text {
        let mut text = Text::empty(start);
        text.push_verbatim(self.file, Span::new(start, end));
        text
    }

    fn read(&mut self) {
        let mut targets: Vec<usize> = Vec::new();
        let mut at = 0;
        while at < self.file.len() {
            let start = at;
            at = end_of_line(self.file, at);
            let whole = &self.file[start..at];
            let end = start + whole.trim_end().len();
            if whole.starts_with('\t') && !targets.is_empty() {
                if self.is_read() != Some(false) && end > start {
                    self.add_recipe(&targets, start + 1, end);
                }
                continue;
            }
            let line = whole.trim();
            let start = start + whole.len() - whole.trim_start().len();
            let (word, rest) = line.split_once([' ', '\t', '(']).unwrap_or((line, ""));
            if self.condition(word, rest, line) {
                continue;
            }
            if self.is_read() == Some(false) {
                let skipped = assignment(self.file, start, end);
                self.skipped.extend(skipped.map(|(name, ..)| name));
                continue;
            }
            match word {
                "" | "endef" | "export" | "unexport" if rest.is_empty() => {}
                "include" | "-include" | "sinclude" => self.included = Some(rest.trim().to_owned()),
                "define" => at = self.define(rest, at),
                _ if line.starts_with('#') => {}
                _ => {
                    targets.clear();
                    match assignment(self.file, start, end) {
                        Some((name, operator, value)) => {
                            let value = self.value(value, end);
                            self.assign(name, operator, value);
                        }
                        None => self.rule(start, end, &mut targets),
                    }
                }
            }
        }
        self.specify();
    }

    /// Gives the variables of a target to its rule, and to a copy of each rule that is made for it.
    fn specify(&mut self) {
        let mut values: BTreeMap<String, HashMap<String, Variable>> = BTreeMap::new();
        for (targets, name, operator, variable) in std::mem::take(&mut self.specific) {
            for target in targets {
                let of_target = values.entry(target).or_default();
                let before = of_target.get(&name).or_else(|| self.variables.get(&name));
                let variable = match (operator.as_str(), before.cloned()) {
                    ("?=", Some(_)) => continue,
                    ("+=", Some(before)) => self.joined(before, variable.clone()),
                    _ => variable.clone(),
                };
                of_target.insert(name.clone(), variable);
            }
        }
        if values.is_empty() {
            return;
        }
        let mut numbers: HashMap<String, Vec<usize>> = HashMap::new();
        for (nth, rule) in self.rules.iter().enumerate() {
            numbers.entry(rule.target.clone()).or_default().push(nth);
        }
        for (target, values) in values {
            for nth in needed(&self.rules, &numbers, &target) {
                let rule = &mut self.rules[nth];
                if rule.target == target {
                    rule.local.extend(values.clone());
                    continue;
                }
                self.bytes += rule.recipe.iter().map(Text::bytes).sum::<usize>();
                if self.bytes <= script::MAX_BYTES && !rule.recipe.is_empty() {
                    let mut copy = rule.clone();
                    copy.target.clone_from(&target);
                    copy.local.extend(values.clone());
                    self.rules.push(copy);
                }
            }
        }
    }

    /// A value with another one added to it.
    fn joined(&mut self, mut known: Variable, added: Variable) -> Variable {
        let mut value = added.value;
        if known.is_expanded {
            value = self.expand(&value, 0);
        }
        let start = Span::empty(value.whole().start);
        known.value.push_escape(" ", start);
        known.value.push_part(&value, 0..value.as_str().len());
        known.unknown = known.unknown.or(added.unknown);
        known
    }

    fn add_recipe(&mut self, targets: &[usize], start: usize, end: usize) {
        let line = self.text(start, end);
        for target in targets {
            self.rules[*target].recipe.push(line.clone());
        }
    }

    /// `define NAME`: the lines up to `endef` are its value. Returns their end.
    fn define(&mut self, rest: &str, at: usize) -> usize {
        let name = rest.trim().trim_end_matches(['=', ':', '?', '+']).trim();
        let body = self.file[at..].find("\nendef");
        let body = body.map_or(self.file.len(), |it| at + it);
        let value = self.text(at.min(body), body);
        self.assign(name.to_owned(), "=", value);
        body
    }

    /// `TARGET: NEEDS`, or a variable of a target.
    fn rule(&mut self, start: usize, end: usize, targets: &mut Vec<usize>) {
        let file = self.file;
        let text = &file[start..end];
        let Some(colon) = text.find(':') else {
            return;
        };
        let names = self.expand(&self.text(start, start + colon), 0);
        let names: Vec<String> = names
            .as_str()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        let after = start + colon + 1 + usize::from(text[colon + 1..].starts_with(':'));
        let rest = &file[after..end];
        let body = after + rest.len() - rest.trim_start().len();
        if let Some((name, operator, value)) = assignment(file, body, end) {
            let value = self.value(value, end);
            let variable = self.variable(operator, value);
            let operator = operator.to_owned();
            self.specific.push((names, name, operator, variable));
            return;
        }
        let inline = rest.find(';').map(|semicolon| after + semicolon);
        let needs = self.expand(&self.text(after, inline.unwrap_or(end)), 0);
        for name in names.iter().filter(|name| !name.starts_with(".PHONY")) {
            targets.push(self.rules.len());
            let local = self.automatic(name, needs.as_str());
            let recipe = inline.map(|semicolon| self.text(semicolon + 1, end));
            let needs = needs.as_str().split_whitespace().map(str::to_owned);
            self.rules.push(Rule {
                target: name.clone(),
                needs: needs.collect(),
                recipe: recipe.into_iter().collect(),
                local,
            });
        }
    }

    /// Whether the current line is read.
    fn is_read(&self) -> Option<bool> {
        match self.branches.contains(&Some(false)) {
            true => Some(false),
            false => (!self.branches.contains(&None)).then_some(true),
        }
    }

    /// Follows a line of a condition.
    fn condition(&mut self, word: &str, rest: &str, line: &str) -> bool {
        let status = match word {
            "ifeq" | "ifneq" => {
                let inner = line[word.len()..].trim();
                let pair = match inner.strip_prefix('(').and_then(|it| it.strip_suffix(')')) {
                    Some(inner) => inner.split_once(','),
                    None => inner.trim_matches(['"', '\'']).split_once(['"', '\'']),
                };
                let (a, b) = pair.unwrap_or_default();
                let b = b.trim_matches([' ', '\t', '"', '\'']);
                let (a, b) = (self.words_of(a), self.words_of(b));
                let status = a.zip(b).map(|(a, b)| a.trim() == b.trim());
                status.map(|status| status == (word == "ifeq"))
            }
            "ifdef" | "ifndef" => {
                let is_set = self.variables.contains_key(rest.trim());
                Some(is_set == (word == "ifdef"))
            }
            "else" => {
                if let Some(last) = self.branches.last_mut() {
                    *last = last.map(|status| !status);
                }
                return true;
            }
            "endif" => {
                self.branches.pop();
                return true;
            }
            _ => return false,
        };
        self.branches.push(status);
        true
    }

    /// The value of a text in a run without variables of the caller, if it is known then.
    fn words_of(&mut self, text: &str) -> Option<String> {
        let mut raw = Text::empty(0);
        raw.push_escape(text, Span::empty(0));
        let expanded = self.expand(&raw, 0);
        self.out.assumed_text(&expanded)
    }

    /// A value without its comment and with its lines joined.
    fn value(&self, start: usize, end: usize) -> Text {
        let raw = &self.file[start..end];
        let comment = raw
            .match_indices('#')
            .find(|(at, _)| !raw[..*at].ends_with('\\'));
        let raw = raw[..comment.map_or(raw.len(), |(at, _)| at)].trim_end();
        let mut value = Text::empty(start);
        let mut at = start;
        for line in raw.split_inclusive('\n') {
            let bare = line
                .trim_end()
                .strip_suffix('\\')
                .filter(|_| line.ends_with('\n'));
            let text = bare.map_or(line, str::trim_end);
            let blank = match at == start {
                true => 0,
                false => text.len() - text.trim_start().len(),
            };
            value.push_verbatim(self.file, Span::new(at + blank, at + text.len()));
            if bare.is_some() {
                value.push_escape(" ", Span::new(at + text.len(), at + line.len()));
            }
            at += line.len();
        }
        value
    }

    fn variable(&mut self, operator: &str, value: Text) -> Variable {
        let is_expanded = operator.starts_with(':');
        Variable {
            value: match is_expanded {
                true => self.expand(&value, 0),
                false => value,
            },
            is_expanded,
            unknown: (operator == "!=").then_some("it is the output of a command"),
        }
    }

    fn assign(&mut self, name: String, operator: &str, value: Text) {
        if operator == "?=" && self.variables.contains_key(&name) {
            return;
        }
        let mut variable = self.variable(operator, value);
        if self.is_read().is_none() {
            variable.unknown = Some("a branch sets it");
        }
        if operator == "+="
            && let Some(known) = self.variables.remove(&name)
        {
            variable = self.joined(known, variable);
        }
        self.variables.insert(name, variable);
    }

    /// The variables that make sets for a rule.
    fn automatic(&self, target: &str, needs: &str) -> HashMap<String, Variable> {
        let needs: Vec<&str> = needs
            .split_whitespace()
            .take_while(|it| *it != "|")
            .collect();
        let is_pattern = target.contains('%');
        let values = [
            ("@", target.to_owned()),
            ("<", needs.first().copied().unwrap_or_default().to_owned()),
            ("^", needs.join(" ")),
        ];
        let variable = |(name, value): (&str, String)| {
            let mut text = Text::empty(0);
            text.push_escape(&value, Span::empty(0));
            let variable = Variable {
                value: text,
                is_expanded: true,
                unknown: is_pattern.then_some("make sets it"),
            };
            (name.to_owned(), variable)
        };
        values.map(variable).into_iter().collect()
    }

    /// A text with the values of its variables.
    fn expand(&mut self, text: &Text, depth: usize) -> Text {
        let source = text.as_str();
        let mut out = Text::empty(text.whole().start);
        let mut at = 0;
        self.bytes += source.len();
        while let Some(found) = source[at..].find('$') {
            let start = at + found;
            out.push_part(text, at..start);
            if let Some((end, _)) = text.hole_at(start) {
                out.push_part(text, start..end);
                at = end;
                continue;
            }
            let rest = &source[start + 1..];
            let length = match rest.chars().next() {
                None => break,
                Some('$') => {
                    out.push_escape("$", text.span(start..start + 2));
                    at = start + 2;
                    continue;
                }
                Some(open @ ('(' | '{')) => closed(rest, open),
                Some(letter) => letter.len_utf8(),
            };
            at = start + 1 + length;
            let site = text.span(start..at);
            let name = match length > 1 {
                true => rest[1..length].trim_end_matches([')', '}']),
                false => &rest[..length],
            };
            let value = match self.bytes > script::MAX_BYTES || depth > MAX_DEPTH {
                true => Text::empty(site.start),
                false => self.reference(name, &source[start..at], site, depth),
            };
            self.bytes += value.as_str().len();
            self.out.note_use(site, std::slice::from_ref(&value));
            let is_blank = |letter: Option<char>| letter.is_none_or(char::is_whitespace);
            let is_whole = is_blank(source[..start].chars().next_back())
                && is_blank(source[at..].chars().next());
            match is_whole && !value.whole().is_empty() {
                true => out.push_part(&value, 0..value.as_str().len()),
                false => out.push_moved(&value, 0..value.as_str().len(), site),
            }
        }
        out.push_part(text, at.min(source.len())..source.len());
        out
    }

    /// The value of `$(NAME)`, `$(NAME:a=b)` or `$(function …)`.
    fn reference(&mut self, name: &str, written: &str, site: Span, depth: usize) -> Text {
        let mut whole = Text::empty(site.start);
        whole.push_escape(name, site);
        if let Some((function, arguments)) = name.split_once([' ', '\t'])
            && function
                .chars()
                .all(|it| it.is_ascii_alphabetic() || it == '-')
        {
            let result = self.function(function, arguments, depth);
            if let Some(result) = result {
                return moved(&result, site);
            }
            let values = match function {
                "if" => self.alternatives(arguments, depth),
                _ => Vec::new(),
            };
            let hole = self.hole(written, site, "it is the result of a function of make");
            if let Some(last) = self.out.holes.last_mut() {
                last.values = values;
            }
            return hole;
        }
        let name = match name.contains('$') {
            true => self.expand(&whole, depth + 1).as_str().to_owned(),
            false => name.to_owned(),
        };
        let (name, change) = match name.split_once(':') {
            Some((name, change)) => (name.to_owned(), change.split_once('=')),
            None => (name, None),
        };
        if let Some(given) = self.given.get(&name) {
            return moved(given, site);
        }
        let local = self.local.get(&name);
        let Some(variable) = local.or_else(|| self.variables.get(&name)).cloned() else {
            if self.skipped.contains(&name) {
                return Text::empty(site.start);
            }
            let (reason, assumed) = match (&self.included, name.as_str()) {
                (_, "CURDIR" | "PWD" | "HOME" | "MAKE" | "USER" | "*" | "?" | "+") => {
                    ("make sets it".to_owned(), None)
                }
                (Some(file), _) => (format!("`{file}`, which is not read, may set it"), None),
                (None, _) => (UNSET.to_owned(), Some("")),
            };
            let hole = self.hole(written, site, &reason);
            if let Some(last) = self.out.holes.last_mut() {
                last.assumed = assumed;
            }
            return hole;
        };
        if let Some(reason) = variable.unknown {
            return self.hole(written, site, reason);
        }
        let value = match variable.is_expanded {
            true => variable.value,
            false => self.expand(&variable.value, depth + 1),
        };
        if !self.used.insert(name) {
            self.out.shared.push(value.whole());
        }
        match change {
            // `$(QEMU)` names itself, whatever makes its value unknown.
            None if is_program_variable(written)
                && value
                    .hole_at(0)
                    .is_some_and(|(end, _)| end == value.as_str().len()) =>
            {
                self.hole(written, site, "it is the output of a command")
            }
            None => value,
            Some(_) if value.has_hole() => self.hole(written, site, "it is computed"),
            Some((from, to)) => {
                let (from, to) = match from.contains('%') {
                    true => (from.to_owned(), to.to_owned()),
                    false => (format!("%{from}"), format!("%{to}")),
                };
                moved(&substituted(value.as_str(), &from, &to), site)
            }
        }
    }

    fn hole(&mut self, written: &str, site: Span, reason: &str) -> Text {
        let is_plain = |letter: char| !letter.is_whitespace() && !",=\"'".contains(letter);
        let name = match written.find(|letter| !is_plain(letter)) {
            None => written.to_owned(),
            Some(length) => format!("{}…)", &written[..length]),
        };
        self.out.hole(&name, site, reason)
    }

    /// The values that `$(if …)` may have, if they are known.
    fn alternatives(&mut self, arguments: &str, depth: usize) -> Vec<String> {
        let mut parts = split_arguments(arguments, 3);
        parts.resize(3, "");
        let values = parts[1..].iter().map(|it| self.known(it, depth));
        values.collect::<Option<_>>().unwrap_or_default()
    }

    /// The result of a function whose arguments are known.
    fn function(&mut self, function: &str, arguments: &str, depth: usize) -> Option<String> {
        let most = match function {
            "or" | "and" | "call" => usize::MAX,
            "addprefix" | "addsuffix" | "filter" | "filter-out" | "word" => 2,
            "foreach" | "if" | "patsubst" | "subst" => 3,
            _ => 1,
        };
        let parts = split_arguments(arguments, most);
        if function == "foreach" {
            let [name, list, body] = parts.as_slice() else {
                return None;
            };
            let mut all = Vec::new();
            for word in self.known(list, depth)?.split_whitespace() {
                all.push(self.with([(name.trim().to_owned(), word.to_owned())], body, depth)?);
            }
            return Some(all.join(" "));
        }
        if function == "if" {
            let condition = self.known(parts.first()?, depth)?;
            let nth = if condition.trim().is_empty() { 2 } else { 1 };
            return parts
                .get(nth)
                .map_or(Some(String::new()), |it| self.known(it, depth));
        }
        let known: Option<Vec<String>> = parts.iter().map(|it| self.known(it, depth)).collect();
        let known = known?;
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let each = |list: &str, change: &dyn Fn(&str) -> String| {
            let words: Vec<String> = list.split_whitespace().map(change).collect();
            Some(words.join(" "))
        };
        match (function, known.as_slice()) {
            ("strip", [text]) => each(text, &str::to_owned),
            ("subst", [from, to, text]) if !from.is_empty() => Some(text.replace(from, to)),
            ("patsubst", [from, to, text]) => Some(substituted(text, from.trim(), to.trim())),
            ("addprefix", [prefix, list]) => each(list, &|word| format!("{prefix}{word}")),
            ("addsuffix", [suffix, list]) => each(list, &|word| format!("{word}{suffix}")),
            ("notdir", [list]) => each(list, &|word| {
                word.rsplit('/').next().unwrap_or(word).to_owned()
            }),
            ("dir", [list]) => each(list, &|word| {
                word.rfind('/')
                    .map_or("./".to_owned(), |at| word[..=at].to_owned())
            }),
            ("basename", [list]) => each(list, &|word| {
                word.rsplit_once('.').map_or(word, |(it, _)| it).to_owned()
            }),
            ("filter" | "filter-out", [patterns, list]) => {
                let fits = |word: &str| {
                    let mut patterns = patterns.split_whitespace();
                    patterns.any(|it| matches(&it.replace('%', "*"), word))
                };
                let words = list.split_whitespace();
                let words = words.filter(|it| fits(it) == (function == "filter"));
                Some(words.collect::<Vec<_>>().join(" "))
            }
            ("word", [nth, list]) => {
                let nth = nth.trim().parse::<usize>().ok()?.checked_sub(1)?;
                Some(list.split_whitespace().nth(nth).unwrap_or("").to_owned())
            }
            ("lastword", [list]) => Some(list.split_whitespace().last().unwrap_or("").to_owned()),
            ("firstword", [list]) => Some(list.split_whitespace().next().unwrap_or("").to_owned()),
            ("or", list) => {
                let mut set = list.iter().filter(|it| !it.trim().is_empty());
                Some((*set.next().unwrap_or(&"")).to_owned())
            }
            ("call", [name, values @ ..]) => {
                let values = values.iter().enumerate();
                let values = values.map(|(nth, it)| ((nth + 1).to_string(), (*it).to_owned()));
                let body = format!("$({})", name.trim());
                self.with(values.collect::<Vec<_>>(), &body, depth)
            }
            _ => None,
        }
    }

    /// The known value of a text with further variables.
    fn with(
        &mut self,
        values: impl IntoIterator<Item = (String, String)>,
        body: &str,
        depth: usize,
    ) -> Option<String> {
        let before = self.local.clone();
        for (name, value) in values {
            let variable = Variable {
                value: moved(&value, Span::empty(0)),
                is_expanded: true,
                unknown: None,
            };
            self.local.insert(name, variable);
        }
        let value = self.known(body, depth);
        self.local = before;
        value
    }

    fn known(&mut self, text: &str, depth: usize) -> Option<String> {
        let value = self.expand(&moved(text, Span::empty(0)), depth + 1);
        (!value.has_hole()).then(|| value.as_str().to_owned())
    }
}

/// The rules that are run to make a target.
fn needed(rules: &[Rule], numbers: &HashMap<String, Vec<usize>>, target: &str) -> Vec<usize> {
    let mut reached = HashSet::from([target]);
    let mut open = vec![target];
    let mut found = Vec::new();
    while let Some(next) = open.pop() {
        let of_target = numbers.get(next).into_iter().flatten();
        for nth in of_target.copied() {
            let needs = rules[nth].needs.iter().map(String::as_str);
            open.extend(needs.filter(|need| reached.insert(need)));
            found.push(nth);
        }
    }
    found
}

/// The end of a line with those that continue it.
fn end_of_line(file: &str, start: usize) -> usize {
    let mut at = start;
    loop {
        let line = file[at..].find('\n').map_or(file.len(), |it| at + it);
        let is_continued = file[at..line].trim_end_matches('\r').ends_with('\\');
        at = (line + 1).min(file.len());
        if !is_continued || at >= file.len() {
            return at;
        }
    }
}

/// A text that stands at another place.
fn moved(text: &str, place: Span) -> Text {
    let mut moved = Text::empty(place.start);
    moved.push_escape(text, place);
    moved
}

/// Words of which those that fit a pattern are replaced.
fn substituted(text: &str, from: &str, to: &str) -> String {
    let (before, after) = from.split_once('%').unwrap_or((from, ""));
    let pattern = from.replace('%', "*");
    let change = |word: &str| match matches(&pattern, word) {
        true => to.replace('%', &word[before.len()..word.len() - after.len()]),
        false => word.to_owned(),
    };
    let words: Vec<String> = text.split_whitespace().map(change).collect();
    words.join(" ")
}

/// The arguments of a function, separated by commas outside of parentheses; those of the last are its own.
fn split_arguments(text: &str, most: usize) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 && parts.len() + 1 < most => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Length from an opening bracket to its closing one.
fn closed(text: &str, open: char) -> usize {
    let close = if open == '(' { ')' } else { '}' };
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        depth += usize::from(letter == open);
        if letter == close {
            depth -= 1;
            if depth == 0 {
                return at + 1;
            }
        }
    }
    text.len()
}

/// The name, the operator and the start of the value of an assignment.
fn assignment(file: &str, start: usize, end: usize) -> Option<(String, &'static str, usize)> {
    let mut text = file.get(start..end)?;
    for keyword in ["export ", "override ", "private "] {
        text = text.strip_prefix(keyword).unwrap_or(text).trim_start();
    }
    let length =
        text.find(|letter: char| !letter.is_ascii_alphanumeric() && !"_.-".contains(letter))?;
    let rest = text[length..].trim_start();
    let operators = ["=", ":=", "::=", ":::=", "?=", "+=", "!="];
    let operator = operators.into_iter().find(|it| rest.starts_with(it))?;
    let value = rest[operator.len()..].trim_start();
    (length > 0).then(|| (text[..length].to_owned(), operator, end - value.len()))
}
