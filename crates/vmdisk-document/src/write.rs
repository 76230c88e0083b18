//! Writes values as YAML in block style.

use std::fmt::Write;

use crate::{Node, Value, yaml};

impl Value {
    /// The value as YAML, which reads back as the same value; equal values give equal texts.
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        write_block(&mut text, self, 0);
        text
    }
}

/// Writes a value from here on and ends the line; lines after the first are indented.
fn write_block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::List(items) if !items.is_empty() => {
            for (nth, Node { value, .. }) in items.iter().enumerate() {
                start_line(out, indent, nth);
                out.push_str("- ");
                write_block(out, value, indent + 2);
            }
        }
        Value::Map(members) if !members.is_empty() => {
            for (nth, member) in members.iter().enumerate() {
                start_line(out, indent, nth);
                write_text(out, &member.key);
                out.push(':');
                let value = &member.node.value;
                // A list below a key is not indented further.
                let inner = if member.node.items().is_empty() {
                    indent + 2
                } else {
                    indent
                };
                if member.node.items().is_empty() && member.node.members().is_empty() {
                    out.push(' ');
                } else {
                    out.push('\n');
                    out.extend(std::iter::repeat_n(' ', inner));
                }
                write_block(out, value, inner);
            }
        }
        _ => {
            write_inline(out, value);
            out.push('\n');
        }
    }
}

fn start_line(out: &mut String, indent: usize, nth: usize) {
    if nth > 0 {
        out.extend(std::iter::repeat_n(' ', indent));
    }
}

fn write_inline(out: &mut String, value: &Value) {
    let written = match value {
        Value::Null => write!(out, "null"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Unsigned(value) => write!(out, "{value}"),
        Value::Signed(value) => write!(out, "{value}"),
        Value::Float(value) if value.is_nan() => write!(out, ".nan"),
        Value::Float(value) if value.is_infinite() => {
            write!(out, "{}.inf", if *value < 0.0 { "-" } else { "" })
        }
        Value::Float(value) => write!(out, "{value:?}"),
        Value::Text(text) => {
            write_text(out, text);
            Ok(())
        }
        Value::List(_) => write!(out, "[]"),
        Value::Map(_) => write!(out, "{{}}"),
    };
    written.expect("a string can always be written to");
}

/// Writes text without quotes if every YAML tool reads it as that text, else in quotes.
pub(crate) fn write_text(out: &mut String, text: &str) {
    let is_shown = |c: char| c == ' ' || c.is_alphanumeric() || c.is_ascii_graphic();
    if is_plain(text) {
        out.push_str(text);
    } else if text.chars().all(is_shown) {
        out.push('\'');
        out.push_str(&text.replace('\'', "''"));
        out.push('\'');
    } else {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                c if is_shown(c) => out.push(c),
                c => {
                    let written = match u32::from(c) {
                        code @ ..=0xff => write!(out, "\\x{code:02x}"),
                        code @ ..=0xffff => write!(out, "\\u{code:04x}"),
                        code => write!(out, "\\U{code:08x}"),
                    };
                    written.expect("a string can always be written to");
                }
            }
        }
        out.push('"');
    }
}

/// True if text needs no quotes, also for tools that read YAML 1.1.
fn is_plain(text: &str) -> bool {
    /// Truth values of YAML 1.1.
    const SWITCHES: [&str; 6] = ["y", "n", "yes", "no", "on", "off"];
    let is_inner = |c: char| c.is_alphanumeric() || "/._-+@%=~^(), :".contains(c);
    let begins = |c: char| c.is_alphanumeric() || "/_".contains(c);
    // Numbers, versions, dates and times.
    let is_number_like = text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || "._:+- eETtZz".contains(c));
    text.starts_with(begins)
        && text.chars().all(is_inner)
        && !text.contains(": ")
        && !text.ends_with([' ', ':'])
        && !is_number_like
        && !SWITCHES.contains(&text.to_lowercase().as_str())
        && yaml::is_text(text)
}
