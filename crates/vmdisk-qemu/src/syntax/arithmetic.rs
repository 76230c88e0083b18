//! Arithmetic of a shell, `$((…))`, on whole numbers that are known.

/// The variables of an expression.
pub(crate) trait Numbers {
    /// The number in a variable, if it is known.
    fn number(&mut self, name: &str) -> Option<i64>;
    /// Sets a variable; `None` if its number is unknown.
    fn assign(&mut self, name: &str, number: Option<i64>);
}

/// The value of an expression; `None` if it is unknown.
pub(crate) fn evaluate(text: &str, numbers: &mut dyn Numbers) -> Option<i64> {
    let mut reader = Reader {
        rest: text,
        numbers,
        depth: 0,
    };
    let value = reader.level(0);
    reader.rest.trim().is_empty().then_some(value)?
}

/// The operators with two operands, by rising precedence. Longer ones come first among those with the same start.
const LEVELS: [&[&str]; 7] = [
    &["||"],
    &["&&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// Expressions within expressions, at most.
const MAX_DEPTH: usize = 64;

struct Reader<'t, 'n> {
    rest: &'t str,
    numbers: &'n mut dyn Numbers,
    depth: usize,
}

impl<'t> Reader<'t, '_> {
    fn takes(&mut self, word: &str) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(word) {
            Some(after) if word.len() == 2 || !after.starts_with('=') || "=()".contains(word) => {
                self.rest = after;
                true
            }
            _ => false,
        }
    }

    fn level(&mut self, level: usize) -> Option<i64> {
        let Some(operators) = LEVELS.get(level) else {
            return self.operand();
        };
        let mut left = self.level(level + 1);
        while let Some(operator) = operators.iter().copied().find(|it| self.takes(it)) {
            let right = self.level(level + 1);
            left = left.zip(right).and_then(|(a, b)| apply(operator, a, b));
        }
        if level == 0 && self.takes("?") {
            let yes = self.level(0);
            let no = if self.takes(":") { self.level(0) } else { None };
            left = left.and_then(|it| if it == 0 { no } else { yes });
        }
        left
    }

    fn operand(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.rest = "";
            return None;
        }
        let value = if self.takes("++") {
            self.step(1)
        } else if self.takes("--") {
            self.step(-1)
        } else if self.takes("-") {
            self.operand().and_then(i64::checked_neg)
        } else if self.takes("!") {
            self.operand().map(|value| i64::from(value == 0))
        } else if self.takes("(") {
            let value = self.level(0);
            if self.takes(")") { value } else { None }
        } else {
            self.name_or_number()
        };
        self.depth -= 1;
        value
    }

    /// `++NAME`
    fn step(&mut self, step: i64) -> Option<i64> {
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let rest = self.rest.trim_start();
        let length = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(length);
        self.rest = after;
        let next = self.numbers.number(name)?.checked_add(step);
        self.numbers.assign(name, next);
        next
    }

    fn name_or_number(&mut self) -> Option<i64> {
        let rest = self.rest.trim_start();
        let rest = rest.strip_prefix('$').unwrap_or(rest);
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let inner = rest.strip_prefix('{').unwrap_or(rest);
        let length = inner.find(|letter| !is_word(letter));
        let (word, mut after) = inner.split_at(length.unwrap_or(inner.len()));
        if inner.len() < rest.len() {
            after = after.strip_prefix('}')?;
        }
        self.rest = after;
        if word.starts_with(|letter: char| letter.is_ascii_digit()) {
            return match word.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16).ok(),
                None if word.len() > 1 && word.starts_with('0') => None,
                None => word.parse().ok(),
            };
        }
        if word.is_empty() {
            return None;
        }
        let before = self.numbers.number(word);
        for (operator, step) in [("++", 1), ("--", -1)] {
            if self.takes(operator) {
                let next = before.and_then(|it| it.checked_add(step));
                self.numbers.assign(word, next);
                return before;
            }
        }
        for operator in ["+=", "-=", "*=", "/=", "%="] {
            if self.takes(operator) {
                let right = self.level(0);
                let both = before.zip(right);
                let value = both.and_then(|(a, b)| apply(&operator[..1], a, b));
                self.numbers.assign(word, value);
                return value;
            }
        }
        if !self.rest.trim_start().starts_with("==") && self.takes("=") {
            let value = self.level(0);
            self.numbers.assign(word, value);
            return value;
        }
        before
    }
}

fn apply(operator: &str, a: i64, b: i64) -> Option<i64> {
    match operator {
        "||" => Some(i64::from(a != 0 || b != 0)),
        "&&" => Some(i64::from(a != 0 && b != 0)),
        "==" => Some(i64::from(a == b)),
        "!=" => Some(i64::from(a != b)),
        "<=" => Some(i64::from(a <= b)),
        ">=" => Some(i64::from(a >= b)),
        "<" => Some(i64::from(a < b)),
        ">" => Some(i64::from(a > b)),
        "<<" => u32::try_from(b).ok().and_then(|b| a.checked_shl(b)),
        ">>" => u32::try_from(b).ok().and_then(|b| a.checked_shr(b)),
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "/" => a.checked_div(b),
        _ => a.checked_rem(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    impl Numbers for HashMap<String, i64> {
        fn number(&mut self, name: &str) -> Option<i64> {
            self.get(name).copied()
        }
        fn assign(&mut self, name: &str, number: Option<i64>) {
            match number {
                Some(number) => self.insert(name.to_owned(), number),
                None => self.remove(name),
            };
        }
    }

    #[test]
    fn a_shell_computes_so() {
        for (text, expected) in [
            ("1 + 2 * 3", Some(7)),
            ("(1+2)*3", Some(9)),
            ("N-2", Some(1)),
            ("$N + ${N}", Some(6)),
            ("10 % 4 - -1", Some(3)),
            ("N++ + N", Some(7)),
            ("--N + N", Some(4)),
            ("N += 2", Some(5)),
            ("M = N", Some(3)),
            ("N <= 3 && !0", Some(1)),
            ("0x10", Some(16)),
            ("08", None),
            ("1 / 0", None),
            ("UNSET + 1", None),
            ("1 << 2 + 1", Some(8)),
            ("9 >> 1 < N", Some(0)),
            ("N > 2 ? N * 2 : 0", Some(6)),
            ("UNSET ? 1 : 2", None),
            ("1 << -1", None),
            ("9223372036854775807 + 1", None),
            ("", None),
        ] {
            let mut numbers = HashMap::from([("N".to_owned(), 3)]);
            assert_eq!(evaluate(text, &mut numbers), expected, "{text}");
        }
        let deep = "(".repeat(100_000);
        assert_eq!(evaluate(&deep, &mut HashMap::new()), None);
    }
}
