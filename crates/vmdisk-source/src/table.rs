//! Tables that fit the width of a terminal.

use std::fmt::Write;

/// The least width of a last column that is wrapped.
const LEAST: usize = 30;

/// The rows in aligned columns. If they are wider than the terminal, the last column is wrapped; if little room is left for it,
/// each row becomes a record. With a head, the first row names the columns.
pub fn table(rows: &[Vec<String>], has_head: bool, width: Option<usize>) -> String {
    aligned(rows, has_head, &[], width)
}

/// As [`table`], with the columns of numbers aligned at their right.
pub fn aligned(
    rows: &[Vec<String>],
    has_head: bool,
    is_number: &[bool],
    width: Option<usize>,
) -> String {
    let mut out = String::new();
    let Some(last) = rows.first().and_then(|row| row.len().checked_sub(1)) else {
        return out;
    };
    let longest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..last).filter_map(longest).collect();
    let before = widths.iter().map(|width| width + 2).sum::<usize>();
    let width = width.unwrap_or(usize::MAX);
    let is_wide = longest(last).is_some_and(|longest| before + longest > width);
    if is_wide && before + LEAST > width {
        let head = has_head.then(|| &rows[0]);
        for row in &rows[usize::from(has_head)..] {
            record(&mut out, head, row, width);
        }
        return out;
    }
    for row in rows {
        for (nth, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match is_number.get(nth) {
                Some(true) => write!(out, "{cell:>width$}  "),
                _ => write!(out, "{cell:width$}  "),
            };
        }
        wrap(&mut out, &row[last], before, before, width);
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

/// A row over several lines: its first cell and each other one below the name of the column, or the last one below all others.
fn record(out: &mut String, head: Option<&Vec<String>>, row: &[String], width: usize) {
    let (first, others) = match head {
        Some(_) => row.split_at(1),
        None => row.split_at(row.len() - 1),
    };
    let first = first.join("  ");
    match first.chars().count() > width {
        true => wrap(out, &first, 0, 2, width),
        false => out.push_str(&first),
    }
    for (nth, cell) in others.iter().enumerate() {
        let name = head.map_or(String::new(), |head| format!("{}: ", head[nth + 1]));
        out.push_str("\n    ");
        wrap(out, &format!("{name}{cell}"), 4, 6, width);
    }
    out.push('\n');
}

/// Adds a line; if it is wider than the terminal, its further lines begin below the text after the label.
pub fn labelled(out: &mut String, label: &str, text: &str, width: Option<usize>) {
    let column = label.chars().count();
    out.push_str(label);
    match width.filter(|width| column + text.chars().count() > *width) {
        Some(width) => wrap(out, text, column, column, width),
        None => out.push_str(text),
    }
    out.push('\n');
}

/// The lines of a text; further lines of one that is wider than the terminal are indented by two more.
pub fn fitted(text: &str, width: Option<usize>) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let start = line.len() - line.trim_start().len();
        let (indent, rest) = line.split_at(start);
        match width.filter(|width| line.chars().count() > *width) {
            Some(width) => {
                out.push_str(indent);
                wrap(&mut out, rest, start, start + 2, width);
            }
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// Adds the words of a text from this column on; further lines are indented.
pub fn wrap(out: &mut String, text: &str, mut column: usize, indent: usize, width: usize) {
    let mut is_first = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !is_first && column + 1 + length > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if !is_first {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::table;

    fn rows() -> Vec<Vec<String>> {
        let rows = [
            ["place", "form", "findings"],
            ["/srv/images", "qcow2", "one two three four five six seven"],
        ];
        rows.map(|row| row.map(str::to_owned).to_vec()).to_vec()
    }

    #[test]
    fn columns_are_aligned_and_the_last_one_is_wrapped() {
        let aligned = "place        form   findings\n\
                       /srv/images  qcow2  one two three four five six seven\n";
        assert_eq!(table(&rows(), true, None), aligned);
        assert_eq!(table(&rows(), true, Some(53)), aligned);
        assert_eq!(
            table(&rows(), true, Some(52)),
            "place        form   findings\n\
             /srv/images  qcow2  one two three four five six\n                    seven\n"
        );
    }

    #[test]
    fn rows_are_records_on_a_narrow_terminal() {
        assert_eq!(
            table(&rows(), true, Some(30)),
            "/srv/images\n    form: qcow2\n    findings: one two three\n      four five six seven\n"
        );
        assert_eq!(
            table(&rows()[1..], false, Some(30)),
            "/srv/images  qcow2\n    one two three four five\n      six seven\n"
        );
        assert_eq!(table(&[], true, Some(30)), "");
    }
}
