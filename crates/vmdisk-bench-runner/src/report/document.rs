//! What a report says, in whatever format: of one run, and of two that are compared.

use std::fmt::Write as _;

use vmdisk_source::table::{aligned, labelled};

use crate::method::ratio;
use crate::{CellId, Interval, Verdict};

/// A report as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchReport {
    /// Its name.
    pub name: String,
    /// Its question, or what is studied.
    pub question: String,
    /// How it was measured, in one line.
    pub summary: String,
    /// The sentences that answer the question.
    pub answer: Vec<String>,
    /// The tables.
    pub tables: Vec<ReportTable>,
    /// Lists with their titles; empty ones are not written.
    pub lists: Vec<(&'static str, Vec<String>)>,
    /// Descriptions of the machine.
    pub environment: Vec<String>,
}

/// A table of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportTable {
    /// Its heading.
    pub heading: String,
    /// Headings of the columns; true for numeric columns. The first column has names.
    pub heads: Vec<(String, bool)>,
    /// The rows.
    pub rows: Vec<ReportRow>,
    /// Sentences about rows.
    pub notes: Vec<String>,
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportRow {
    /// The text of each column.
    pub texts: Vec<String>,
    /// The ratio to the baseline; unset with too few rounds, and for a baseline.
    pub ratio: Option<Interval>,
    /// The verdict on it; unset for a baseline, and where there is none.
    pub verdict: Option<Verdict>,
    /// The cell of the run.
    pub cell: Option<CellId>,
}

impl BenchReport {
    /// Formats the report in lines that fit the width of a terminal, if one is given.
    pub fn text(&self, width: Option<usize>) -> String {
        let mut text = String::new();
        labelled(
            &mut text,
            "",
            &format!("{}: {}", self.name, self.question),
            width,
        );
        if !self.summary.is_empty() {
            labelled(&mut text, "", &self.summary, width);
        }
        list(&mut text, "answer", &self.answer, width);
        for table in &self.tables {
            text.push('\n');
            labelled(&mut text, "", &table.heading, width);
            text.push_str(&columns(table, width));
            for note in &table.notes {
                labelled(&mut text, "  ", note, width);
            }
        }
        for (title, items) in &self.lists {
            list(&mut text, title, items, width);
        }
        text
    }

    /// Formats the report as Markdown, for issues and documentation.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n\n", escape(&self.name), escape(&self.question));
        let items = |text: &mut String, items: &[String]| {
            text.extend(items.iter().map(|item| format!("- {}\n", escape(item))));
        };
        items(&mut text, &self.answer);
        if !self.summary.is_empty() {
            let _ = writeln!(text, "\n{}.", escape(&self.summary));
        }
        for table in &self.tables {
            let _ = writeln!(text, "\n## {}\n", escape(&table.heading));
            let line = |cells: &mut dyn Iterator<Item = String>| {
                let cells: Vec<String> = cells.collect();
                format!("| {} |\n", cells.join(" | "))
            };
            text.push_str(&line(&mut table.heads.iter().map(|(head, _)| escape(head))));
            let rule = |is_number: bool| if is_number { "---:" } else { "---" }.to_owned();
            let rules = table.heads.iter().map(|(_, is_number)| rule(*is_number));
            text.push_str(&line(&mut { rules }));
            for row in &table.rows {
                text.push_str(&line(&mut row.texts.iter().map(|cell| escape(cell))));
            }
            if !table.notes.is_empty() {
                text.push('\n');
                items(&mut text, &table.notes);
            }
        }
        let environment = [("environment", self.environment.clone())];
        for (title, of_title) in self.lists.iter().chain(&environment) {
            if !of_title.is_empty() {
                let (first, rest) = title.split_at(1);
                let _ = writeln!(text, "\n## {}{rest}\n", first.to_uppercase());
                items(&mut text, of_title);
            }
        }
        text
    }
}

/// Appends a list with a title, unless it is empty.
fn list(text: &mut String, title: &str, items: &[String], width: Option<usize>) {
    if !items.is_empty() {
        let _ = writeln!(text, "\n{title}:");
    }
    for item in items {
        labelled(text, "  ", item, width);
    }
}

/// Formats a table; numbers are right-aligned. Each ratio has its bar beside it, if there is room.
fn columns(table: &ReportTable, width: Option<usize>) -> String {
    let width = width.map(|width| width.saturating_sub(INDENT.len()));
    let mut rows: Vec<Vec<String>> = table.rows.iter().map(|row| row.texts.clone()).collect();
    rows.insert(
        0,
        table.heads.iter().map(|(head, _)| head.clone()).collect(),
    );
    let mut is_number: Vec<bool> = table
        .heads
        .iter()
        .map(|(_, is_number)| *is_number)
        .collect();
    let mut text = aligned(&rows, true, &is_number, width);
    if let Some((head, bars)) = bars(table) {
        // Before the last column, which has the verdicts.
        let place = is_number.len().saturating_sub(1);
        is_number.insert(place, false);
        for (row, bar) in rows.iter_mut().zip(std::iter::once(head).chain(bars)) {
            row.insert(place, bar);
        }
        let with_bars = aligned(&rows, true, &is_number, None);
        let mut lines = with_bars.lines();
        if lines.all(|line| width.is_none_or(|width| line.chars().count() <= width)) {
            text = with_bars;
        }
    }
    text.lines()
        .map(|line| format!("{INDENT}{line}\n"))
        .collect()
}

const INDENT: &str = "  ";

/// The width of a bar.
const BAR: usize = 25;

/// Draws the ratios of a table as `|--o--|` on one logarithmic scale, with a colon at 1, and the ends of the scale as head.
/// `None` without ratios.
fn bars(table: &ReportTable) -> Option<(String, Vec<String>)> {
    let known = || table.rows.iter().filter_map(|row| row.ratio);
    known().next()?;
    let low = known().map(|it| it.low).fold(0.8, f64::min);
    let high = known().map(|it| it.high).fold(1.25, f64::max);
    let at = |value: f64| {
        let share = (value / low).ln() / (high / low).ln();
        (share * (BAR - 1) as f64).round() as usize
    };
    let of_row = |row: &ReportRow| {
        let Some(Interval { ratio, low, high }) = row.ratio else {
            return String::new();
        };
        let mut bar = vec!['.'; BAR];
        bar[at(low)..=at(high)].fill('-');
        (bar[at(low)], bar[at(high)]) = ('|', '|');
        bar[at(1.0)] = ':';
        bar[at(ratio)] = 'o';
        bar.into_iter().collect()
    };
    let (low, high) = (ratio(low), ratio(high));
    let gap = BAR.saturating_sub(low.len() + high.len());
    let head = format!("{low}{}{high}", " ".repeat(gap));
    Some((head, table.rows.iter().map(of_row).collect()))
}

/// Escapes text for Markdown, including tables.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' => escaped.push(' '),
            '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '\\' | '#' => {
                escaped.push('\\');
                escaped.push(character);
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_a_common_scale_with_a_colon_at_1() {
        let row = |ratio: Option<[f64; 3]>| ReportRow {
            ratio: ratio.map(|[low, ratio, high]| Interval { ratio, low, high }),
            ..ReportRow::default()
        };
        let table = |rows| ReportTable {
            rows,
            ..ReportTable::default()
        };
        let rows = vec![
            row(None),
            row(Some([0.1, 0.2, 0.4])),
            row(Some([0.5, 1.0, 2.0])),
            row(Some([10.0, 10.0, 10.0])),
        ];
        let (head, bars) = bars(&table(rows)).unwrap();
        assert_eq!(head, "0.10                 10.0");
        assert_eq!(
            bars,
            [
                "",
                "|---o--|....:............",
                "........|---o---|........",
                "............:...........o",
            ]
        );
        assert_eq!(super::bars(&table(vec![row(None)])), None);
    }
}
