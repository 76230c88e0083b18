//! A result for a terminal.

use super::result::BenchResult;
use super::table::{Group, baseline_name, groups, summary_line};

/// A result for a terminal: a table for each workload, then what was left out and what to mind.
pub fn text(result: &BenchResult) -> String {
    let plan = &result.header.plan;
    let mut text = format!(
        "{}: {}\n{}\n",
        plan.name,
        plan.question,
        summary_line(result)
    );
    for group in groups(result) {
        text.push('\n');
        table(&mut text, result, &group);
    }
    list(
        &mut text,
        "left out",
        result
            .left_out
            .iter()
            .map(|left_out| format!("{}: {}", left_out.what, left_out.why)),
    );
    list(&mut text, "mind", result.remarks.iter().cloned());
    text
}

fn table(text: &mut String, result: &BenchResult, group: &Group<'_>) {
    text.push_str(&format!("{}, {}\n", group.workload, group.phase.name()));
    let against = match baseline_name(result, group) {
        Some(name) => format!("against {name}"),
        None => "against its baseline".to_owned(),
    };
    let mut rows: Vec<[&str; 6]> = vec![["configuration", "median", "varies", "p99", &against, ""]];
    rows.extend(group.rows.iter().map(|row| {
        [
            row.configuration,
            &row.median,
            &row.variation,
            &row.p99,
            &row.ratio,
            &row.verdict,
        ]
    }));
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..6).map(width).collect();
    for row in &rows {
        let mut line = String::from(" ");
        for (column, value) in row.iter().enumerate() {
            let pad = widths[column] - value.chars().count();
            // Numbers end at the same place, words begin there.
            let is_number = matches!(column, 1..=3);
            line.push(' ');
            if is_number {
                line.extend(std::iter::repeat_n(' ', pad));
            }
            line.push_str(value);
            if !is_number {
                line.extend(std::iter::repeat_n(' ', pad));
            }
            line.push(' ');
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

fn list(text: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    text.push_str(&format!("\n{title}:\n"));
    for item in items {
        text.push_str(&format!("  {item}\n"));
    }
}
