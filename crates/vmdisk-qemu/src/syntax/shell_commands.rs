//! The commands of a script: assignments, those of the shell itself, and programs.

use std::ops::Range;
use std::rc::Rc;

use vmdisk_source::Span;

use super::arithmetic::{self, Numbers};
use super::brace_expansion;
use super::expansion::{self, Mode};
use super::hole::Command;
use super::program::{is_program, is_program_variable};
use super::script_text::{MAX_DEPTH, Script};
use super::shell_state::{ARGUMENTS, Done, Flow, PLACE, Shell, Value, joined, literal};
use super::shell_words::TokenKind;
use super::text::Text;

impl Shell {
    /// The one word that a word of the script expands to where no splitting happens.
    pub(super) fn word(&mut self, script: &Script, at: usize) -> Text {
        let range = script.tokens.get(at).map_or(0..0, |it| it.range.clone());
        self.one(&script.text, range, Mode::One)
    }

    pub(super) fn one(&mut self, source: &Text, range: Range<usize>, mode: Mode) -> Text {
        let start = source.span(range.start..range.start).start;
        let words = expansion::expand(self, source, range, mode, None);
        words
            .into_iter()
            .next()
            .unwrap_or_else(|| Text::empty(start))
    }

    pub(super) fn words(&mut self, script: &Script, at: usize) -> Vec<Text> {
        let range = script.tokens.get(at).map_or(0..0, |it| it.range.clone());
        let has_braces = script.text.as_str()[range.clone()].contains('{') && !self.is_posix;
        if has_braces && let Some(raw) = brace_expansion::expand(&script.text.part(range.clone())) {
            // Several words have parts of this text, so none is edited.
            let place = script.text.span(range);
            let words = raw.iter().flat_map(|raw| {
                let length = raw.as_str().len();
                expansion::expand(self, raw, 0..length, Mode::Words, None)
            });
            let words = words.map(|word| {
                let mut moved = Text::empty(place.start);
                moved.push_moved(&word, 0..word.as_str().len(), place);
                moved
            });
            return words.collect();
        }
        expansion::expand(self, &script.text, range, Mode::Words, None)
    }

    /// A command of words, with assignments before it or alone.
    pub(super) fn simple(&mut self, script: &Rc<Script>, at: &mut usize, live: bool) -> Done {
        let mut words: Vec<Text> = Vec::new();
        let mut assigned = Vec::new();
        let (mut is_first, first) = (true, *at);
        let mut input = None;
        self.has_assumed = false;
        let goes = self.goes;
        while let Some(token) = script.tokens.get(*at) {
            match &token.kind {
                TokenKind::Word => {}
                TokenKind::Output => {
                    self.has_output |= live;
                    *at += 1;
                    continue;
                }
                TokenKind::Input(_) | TokenKind::InputWord | TokenKind::InputScript => {
                    input = self.input_of(script, *at, live).or(input);
                    *at += 1;
                    continue;
                }
                _ => break,
            }
            let word = &script.text.as_str()[token.range.clone()];
            let declares = words
                .first()
                .is_some_and(|first| DECLARING.contains(&first.as_str()));
            let parts = assignment(word).filter(|_| is_first || declares);
            let is_list = parts.is_some() && script.operator(*at + 1) == Some("=(");
            let position = *at;
            *at += 1;
            if is_list {
                *at += 1;
                while *at < script.tokens.len() && script.operator(*at) != Some("=)") {
                    *at += 1;
                }
                *at += 1;
            }
            if !live {
                if let Some((name, ..)) = parts
                    && !self.of_caller.contains(&word[name.clone()])
                {
                    self.skipped.insert(word[name].to_owned());
                }
                continue;
            }
            match parts {
                Some((name, ..)) if declares => {
                    let name = &word[name];
                    self.declare(name, &words);
                    self.assign(script, position, is_list);
                    self.after_declaration(name, &words);
                }
                Some(_) => assigned.push((position, is_list)),
                None if declares && !word.starts_with('-') => self.declare(word, &words),
                None => {
                    is_first = false;
                    self.goes = words
                        .first()
                        .is_some_and(|first| matches!(first.as_str(), "cd" | "pushd"));
                    words.extend(self.words(script, position));
                }
            }
        }
        self.goes = goes;
        let prints = words.first().is_none_or(|it| it.as_str() != "cd");
        if live && prints && !self.captures.is_empty() && script.has_redirection(first..*at) {
            self.forget_output();
        }
        if words.is_empty() {
            for (position, is_list) in assigned {
                self.assign(script, position, is_list);
            }
            return (Flow::Next, live.then_some(true));
        }
        self.name_program(&mut words[0], script.word(first));
        self.run_with(script, words, assigned, input)
    }

    /// `$QEMU` names itself, whatever makes its value unknown.
    fn name_program(&mut self, word: &mut Text, raw: Option<&str>) {
        let name = raw.map(|it| it.trim_matches('"'));
        if let Some(name) = name.filter(|it| is_program_variable(it))
            && let Some((end, hole)) = word.hole_at(0)
            && end == word.as_str().len()
        {
            let reason = self.out.holes[hole as usize].reason.clone();
            *word = self.hole(name, word.whole(), reason);
        }
    }

    /// Runs a command with the assignments before it and its input.
    fn run_with(
        &mut self,
        script: &Rc<Script>,
        words: Vec<Text>,
        assigned: Vec<(usize, bool)>,
        input: Option<Text>,
    ) -> Done {
        // Before a program, assignments are only for its environment.
        let separators = self.variables.get("IFS").cloned();
        let is_read = words[0].as_str() == "read";
        if is_read || self.functions.contains_key(words[0].as_str()) {
            for (position, is_list) in assigned {
                self.assign(script, position, is_list);
            }
        }
        let has_input = input.is_some();
        let outer = if has_input {
            std::mem::replace(&mut self.input, input)
        } else {
            None
        };
        let done = self.run(words);
        if has_input {
            self.input = outer;
        }
        if is_read {
            self.put("IFS", separators);
        }
        done
    }

    /// The value of a declared variable as a number, or as the name of another variable.
    fn after_declaration(&mut self, name: &str, words: &[Text]) {
        let has = |option: &str| words.iter().any(|it| it.as_str() == option);
        let Some(value) = self.variables.get(name).filter(|it| it.is_word()) else {
            return;
        };
        let text = value.text();
        if has("-i") {
            let number = self.number(&text);
            Numbers::assign(self, name, number);
        }
        if has("-n") {
            self.references.insert(name.to_owned(), text);
        }
    }

    /// Declares a variable with the words of `declare -A` before it.
    fn declare(&mut self, name: &str, words: &[Text]) {
        if words.iter().any(|it| it.as_str() == "-A") {
            self.maps.insert(name.to_owned());
        }
        match words[0].as_str() {
            "export" => drop(self.exported.insert(name.to_owned())),
            "local" | "declare" | "typeset" => {
                let former = self.variables.get(name).cloned();
                if let Some(locals) = self.locals.last_mut() {
                    locals.entry(name.to_owned()).or_insert(former);
                }
            }
            _ => {}
        }
    }

    /// `NAME=value`, `NAME+=value`, `NAME[1]=value` or `NAME=(…)`.
    pub(super) fn assign(&mut self, script: &Rc<Script>, position: usize, is_list: bool) {
        let token = &script.tokens[position];
        let raw = &script.text.as_str()[token.range.clone()];
        let Some((written, adds, value)) = assignment(raw) else {
            return;
        };
        let index = raw[written.end..value.start].split_once('[');
        let index = index
            .and_then(|(_, rest)| rest.split_once(']'))
            .map(|(it, _)| it.to_owned());
        let other = self.references.get(&raw[written.clone()]).cloned();
        let name = other.as_deref().unwrap_or(&raw[written]);
        let offset = token.range.start;
        self.has_assumed = false;
        if is_list {
            let name = name.to_owned();
            return self.assign_list(script, &name, position + 2, adds);
        }
        let range = offset + value.start..offset + value.end;
        if index.is_none() && self.append(script, name, range, adds) {
            return;
        }
        let range = offset + value.start..offset + value.end;
        let mut word = self.one(&script.text, range, Mode::One);
        if adds && index.is_none() {
            match self.get(name) {
                Some(mut before) if before.is_word() && before.words.len() == 1 => {
                    before.words[0].push_part(&word, 0..word.as_str().len());
                    word = before.words.remove(0);
                }
                before => {
                    self.set_unknown(name, "its former value is unknown");
                    if let Some(value) = self.variables.get_mut(name) {
                        value.choice = before.and_then(|before| before.choice);
                    }
                    return;
                }
            }
        }
        match index {
            None => self.set_word(name, word),
            Some(index) if self.maps.contains(name) => match self.key(&index) {
                None => self.set_unknown(name, "its elements are set one by one"),
                Some(key) => self.set_word(&format!("{name}[{key}]"), word),
            },
            Some(index) => {
                self.note(name);
                let nth = self.number(&index).and_then(|it| usize::try_from(it).ok());
                let array = self.variables.entry(name.to_owned());
                let array = array.or_insert_with(|| Value::list(Vec::new(), true));
                match nth {
                    Some(nth) if nth < array.words.len() => array.words[nth] = word,
                    Some(nth) if nth == array.words.len() => array.words.push(word),
                    _ => *array = Value::unknown("its elements are set one by one".to_owned()),
                }
            }
        }
    }

    /// The key of an element of a map, if it is known.
    pub(super) fn key(&mut self, index: &str) -> Option<String> {
        let has_assumed = self.has_assumed;
        let key = self.one(&literal(index), 0..index.len(), Mode::One);
        self.has_assumed = has_assumed;
        (!key.has_hole()).then(|| key.as_str().to_owned())
    }

    /// `NAME+=rest` and `NAME="$NAME rest"`, which append in place.
    fn append(&mut self, script: &Rc<Script>, name: &str, value: Range<usize>, adds: bool) -> bool {
        let text = &script.text.as_str()[value.clone()];
        let quote = usize::from(text.starts_with('"'));
        let own = [format!("${{{name}}}"), format!("${name}")];
        let is_whole = |own: &String| {
            let after = text[quote..].strip_prefix(own.as_str());
            after.is_some_and(|it| {
                !it.starts_with(|c: char| c.is_ascii_alphanumeric() || "_[".contains(c))
            })
        };
        let own = own.iter().find(|own| !adds && is_whole(own));
        let own = own.map_or(0, String::len);
        let is_used_again = text[quote + own..].contains(name);
        let before = self.variables.get(name);
        let is_known = before.map_or(self.read_file.is_none(), Value::is_word);
        if !(adds || own > 0) || !is_known || is_used_again {
            return false;
        }
        self.note(name);
        let former = self.variables.remove(name);
        self.has_assumed = former.as_ref().is_some_and(|it| it.is_assumed);
        let former = former.and_then(|it| it.words.into_iter().next());
        let (skip, mode) = match (adds, quote) {
            (true, _) => (0, Mode::One),
            (false, 0) => (own, Mode::One),
            (false, _) => (quote + own, Mode::Quoted),
        };
        let range = value.start + skip..value.end;
        let words = expansion::expand(self, &script.text, range, mode, former);
        let word = words.into_iter().next();
        self.set_word(name, word.unwrap_or_default());
        true
    }

    /// `NAME=(…)` and `NAME+=(…)`
    pub(super) fn assign_list(
        &mut self,
        script: &Rc<Script>,
        name: &str,
        mut at: usize,
        adds: bool,
    ) {
        self.lists.insert(name.to_owned());
        let mut words = Vec::new();
        while let Some(raw) = script.word(at) {
            let member = raw.strip_prefix('[').and_then(|it| it.split_once("]="));
            match member.filter(|_| self.maps.contains(name)) {
                Some((key, value)) => {
                    let key = key.trim_matches(['"', '\'']);
                    let member = format!("{name}[{key}]");
                    let end = script.tokens[at].range.end;
                    let word = self.one(&script.text, end - value.len()..end, Mode::One);
                    self.set_word(&member, word);
                }
                None => words.extend(self.words(script, at)),
            }
            at += 1;
        }
        self.note(name);
        match self.variables.get_mut(name) {
            Some(before) if adds && before.unknown.is_none() => {
                before.is_list = true;
                before.words.extend(words);
            }
            Some(_) if adds => {}
            None if adds && self.read_file.is_some() => {
                self.set_unknown(name, "its former value is unknown");
            }
            _ => self.set(name, Value::list(words, true)),
        }
    }

    pub(super) fn number(&mut self, text: &str) -> Option<i64> {
        if !text.contains("${") && !text.contains("$(") {
            return arithmetic::evaluate(text, self);
        }
        let text = self.one(&literal(text), 0..text.len(), Mode::Document);
        let text = text.as_str().to_owned();
        arithmetic::evaluate(&text, self)
    }

    /// Runs a command with known and unknown words.
    pub(super) fn run(&mut self, words: Vec<Text>) -> Done {
        self.assumed = None;
        if self.owners.is_empty() {
            self.site = words[0].whole().start;
        }
        let name = words[0].as_str();
        self.line.push(program(name).to_owned());
        let next = (Flow::Next, Some(true));
        let rest = &words[1..];
        match name {
            ":" | "true" | "export" | "readonly" | "local" | "declare" | "typeset" => return next,
            "false" => return (Flow::Next, Some(false)),
            "echo" => {
                self.capture(name, rest);
                return next;
            }
            "printf" if !self.sets(name, rest) => {
                self.capture(name, rest);
                return next;
            }
            "break" => return (Flow::Break, None),
            "continue" => return (Flow::Continue, None),
            "exit" => return (Flow::Exit, None),
            "return" => return (Flow::Return, None),
            "[" | "test" => {
                let end = rest.len() - usize::from(name == "[" && !rest.is_empty());
                return (Flow::Next, self.status_of_test(&rest[..end]));
            }
            "let" => {
                let mut value = None;
                for word in rest {
                    value = self.number(word.as_str());
                }
                return (Flow::Next, value.map(|value| value != 0));
            }
            "eval" => return (self.nested(joined(rest)), None),
            _ => {}
        }
        if matches!(name, "read" | "mapfile" | "readarray") {
            return (Flow::Next, self.reads(name, rest));
        }
        if self.sets(name, rest) {
            let is_inner = matches!(name, "cd" | "pushd") && !self.captures.is_empty();
            let is_certain = is_inner || matches!(name, "set" | "shift" | "unset");
            return (Flow::Next, is_certain.then_some(true));
        }
        if self.functions.contains_key(name) {
            return self.call(name, rest.to_vec());
        }
        if !self.captures.is_empty() {
            self.capture(name, rest);
            return (Flow::Next, None);
        }
        if words
            .iter()
            .any(|word| WRAPPERS.contains(&program(word.as_str())))
        {
            let inner = words.iter().position(|word| {
                let text = word.as_str();
                text.contains([' ', '\n']) && (text.contains("qemu") || text.contains("kvm"))
            });
            if let Some(at) = inner {
                // `sh -c SCRIPT NAME ARGUMENT…`
                let option = words[..at].last().map_or("", Text::as_str);
                let is_command = option.starts_with('-') && option.ends_with('c');
                let args = words.get(at + 2..).unwrap_or_default().to_vec();
                let is_elsewhere = begins_elsewhere(&words[..at]);
                self.in_new_shell(words[at].clone(), is_command.then_some(args), is_elsewhere);
                return (Flow::Next, None);
            }
        }
        let is_last = name == "exec" && words.len() > 1;
        self.start(words);
        (if is_last { Flow::Exit } else { Flow::Next }, None)
    }

    /// Runs a program.
    fn start(&mut self, words: Vec<Text>) {
        let words = self.fed(words);
        let before = self.variables.get(PLACE).cloned();
        if let Some(folder) = folder_of_env(&words) {
            self.change_folder(Some(&folder));
        }
        self.out.commands.push(Command {
            words,
            owner: self.owners.last().cloned(),
            site: self.site,
            folder: self.place(),
        });
        self.put(PLACE, before);
    }

    /// The words of a command, with those that a program such as `xargs` fills in.
    fn fed(&mut self, mut words: Vec<Text>) -> Vec<Text> {
        let Some(feeder) = feeder(&words).map(str::to_owned) else {
            return words;
        };
        let reason = format!("`{feeder}` fills it in");
        let is_search = feeder == "find";
        if is_search
            && words
                .last()
                .is_some_and(|it| matches!(it.as_str(), ";" | "+"))
        {
            words.pop();
        }
        let end = words.last().map_or(0, |word| word.whole().end);
        for word in &mut words {
            if let Some(at) = word.as_str().find("{}") {
                let end = word.as_str().len();
                let hole = self.hole("{}", word.span(at..at + 2), reason.as_str());
                let mut filled = word.part(0..at);
                filled.push_part(&hole, 0..2);
                filled.push_part(word, at + 2..end);
                *word = filled;
            }
        }
        if !is_search {
            words.push(self.hole(&format!("$({feeder})"), Span::empty(end), reason));
        }
        words
    }

    /// Runs a command of the shell that sets variables or arguments.
    pub(super) fn sets(&mut self, name: &str, rest: &[Text]) -> bool {
        match name {
            "set" => {
                let at = rest.iter().position(|word| word.as_str() == "--");
                if let Some(at) = at {
                    let words = match &rest[at + 1..] {
                        // `eval set -- "$(getopt …)"`: the arguments in another order.
                        [word]
                            if word
                                .hole_at(0)
                                .is_some_and(|(end, _)| end == word.as_str().len()) =>
                        {
                            vec![self.caller_arguments(word.whole())]
                        }
                        words => words.to_vec(),
                    };
                    self.set(ARGUMENTS, Value::list(words, true));
                }
            }
            "shift" => {
                let count = rest
                    .first()
                    .map_or(Some(1), |word| word.as_str().parse().ok());
                let known = self.args.iter().position(|word| word.as_str() == "$@");
                let known = known.unwrap_or(self.args.len());
                self.note(ARGUMENTS);
                self.args.drain(..count.unwrap_or(0).min(known));
            }
            "cd" | "pushd" | "popd" => {
                self.change_folder(rest.last().filter(|_| name != "popd"));
            }
            "unset" => {
                for word in rest {
                    self.set(word.as_str(), Value::list(Vec::new(), false));
                }
            }
            "." | "source" => {
                let file = rest.first().map_or("", Text::as_str).to_owned();
                let reason = format!("`{file}`, which is not read, may set it");
                let names: Vec<String> = self.variables.keys().cloned().collect();
                for name in names {
                    self.set_unknown(&name, &reason);
                }
                self.read_file = Some(file);
            }
            "getopts" => {
                self.assumed = Some(false);
                for word in rest {
                    self.set_unknown(word.as_str(), "`getopts` sets it");
                }
            }
            "printf" => {
                let [option, variable, format, values @ ..] = rest else {
                    return false;
                };
                if option.as_str() != "-v" {
                    return false;
                }
                match expansion::printf(format, values) {
                    Some(text) => self.set_word(variable.as_str(), text),
                    None => self.set_unknown(variable.as_str(), "`printf` sets it"),
                }
            }
            _ => return false,
        }
        true
    }

    /// Runs text as a part of this script.
    fn nested(&mut self, text: Text) -> Flow {
        self.bytes += text.as_str().len();
        let Ok(script) = Script::new(text) else {
            return Flow::Next;
        };
        self.depth += 8;
        let flow = match self.depth > 8 * MAX_DEPTH {
            true => Flow::Next,
            false => self.list(&Rc::new(script), &mut 0, true).0,
        };
        self.depth -= 8;
        flow
    }

    /// Runs text as a script of its own, with the variables that this one exports, and with arguments that may be unknown.
    fn in_new_shell(&mut self, text: Text, args: Option<Vec<Text>>, is_elsewhere: bool) {
        let exported = |name: &str| Some((name.to_owned(), self.variables.get(name)?.clone()));
        let names = self.exported.iter().map(String::as_str);
        let inherited = names.chain([PLACE]).filter_map(exported).collect();
        let place = text.span(0..0);
        let args = args.unwrap_or_else(|| vec![self.caller_arguments(place)]);
        let before = (
            std::mem::replace(&mut self.variables, inherited),
            std::mem::replace(&mut self.args, args),
            std::mem::take(&mut self.functions),
            std::mem::take(&mut self.branches),
        );
        if is_elsewhere {
            self.lose_folder();
        }
        self.nested(text);
        (self.variables, self.args, self.functions, self.branches) = before;
    }

    /// The lines of `<<WORD`, if they are a script that a shell or the script itself runs.
    pub(super) fn document(&mut self, script: &Rc<Script>, range: Range<usize>, is_quoted: bool) {
        let body = &script.text.as_str()[range.clone()];
        let is_run = self.has_output || self.line.iter().any(|it| WRAPPERS.contains(&it.as_str()));
        if !is_run || !(body.contains("qemu") || body.contains("kvm")) {
            return;
        }
        let text = if is_quoted {
            script.text.part(range)
        } else {
            self.one(&script.text, range, Mode::Document)
        };
        let (line, has_output) = (std::mem::take(&mut self.line), self.has_output);
        let is_elsewhere = line.iter().any(|it| it == "ssh");
        self.in_new_shell(text, None, is_elsewhere);
        (self.line, self.has_output) = (line, has_output);
    }
}

/// True for the words before a script that runs on another host, or in the folder of another user.
fn begins_elsewhere(words: &[Text]) -> bool {
    let has = |names: &[&str]| words.iter().any(|it| names.contains(&program(it.as_str())));
    has(&["ssh"]) || (has(&["su"]) && has(&["-", "-l", "--login"]))
}

/// The folder of `env -C FOLDER …`.
pub(super) fn folder_of_env(words: &[Text]) -> Option<Text> {
    let at = words
        .iter()
        .position(|word| program(word.as_str()) == "env")?;
    let mut options = words[at + 1..].iter();
    while let Some(word) = options.next().filter(|word| word.as_str().starts_with('-')) {
        let text = word.as_str();
        match text.strip_prefix("--chdir=") {
            Some(folder) => return Some(word.part(text.len() - folder.len()..text.len())),
            None if matches!(text, "-C" | "--chdir") => return options.next().cloned(),
            None => {}
        }
    }
    None
}

/// The program before QEMU that adds words to its command, from an input or a search.
pub(super) fn feeder(words: &[Text]) -> Option<&str> {
    let before = words.iter().map(|word| program(word.as_str()));
    let mut before = before.take_while(|it| !is_program(it));
    before.find(|it| matches!(*it, "find" | "parallel" | "xargs"))
}

/// Commands whose arguments are assignments.
const DECLARING: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];

/// Programs that run one of their arguments, or their input, as a script.
const WRAPPERS: [&str; 13] = [
    "ash", "bash", "dash", "ksh", "screen", "script", "sh", "ssh", "su", "tmux", "watch", "xterm",
    "zsh",
];

fn program(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The name of an assignment, whether it adds to the variable, and its value, as ranges of the word.
pub(super) fn assignment(word: &str) -> Option<(Range<usize>, bool, Range<usize>)> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let length = word.find(|letter| !is_name(letter))?;
    if length == 0 || word.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let mut rest = &word[length..];
    if rest.starts_with('[') {
        rest = &rest[rest.find(']')? + 1..];
    }
    let adds = rest.starts_with('+');
    let value = rest.strip_prefix('+').unwrap_or(rest).strip_prefix('=')?;
    Some((0..length, adds, word.len() - value.len()..word.len()))
}
