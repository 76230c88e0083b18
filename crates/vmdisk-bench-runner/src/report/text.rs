//! A result for a terminal.

use comfy_table::{CellAlignment, Table};

use super::answer::{accelerator_label, answer};
use super::pairs::lines;
use super::result::BenchResult;
use super::table::{Grid, grid, groups, summary_line};

/// Formats a result for a terminal: the answer, a table for each workload, omissions, and caveats.
pub fn text(result: &BenchResult) -> String {
    let plan = &result.header.plan;
    let mut text = format!(
        "{}: {}{}\n{}\n",
        plan.name,
        plan.question,
        accelerator_label(result),
        summary_line(result)
    );
    list(&mut text, "answer", answer(result).into_iter());
    for group in groups(result) {
        text.push_str(&format!("\n{}, {}\n", group.workload, group.phase.name()));
        text.push_str(&table(&grid(result, &group)));
        text.extend(lines(result, &group).map(|line| format!("  {line}\n")));
    }
    let left_out = result.left_out.iter();
    list(
        &mut text,
        "left out",
        left_out.map(|left_out| format!("{}: {}", left_out.what, left_out.why)),
    );
    list(&mut text, "caveats", result.remarks.iter().cloned());
    text
}

/// Formats a table without lines; numbers are right-aligned, text is left-aligned.
pub(super) fn table(grid: &Grid) -> String {
    let mut table = Table::new();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_header(grid.heads.iter().map(|(head, _)| head));
    for (column, (_, is_number)) in table.column_iter_mut().zip(&grid.heads) {
        column.set_cell_alignment(match is_number {
            true => CellAlignment::Right,
            false => CellAlignment::Left,
        });
    }
    for row in &grid.rows {
        table.add_row(row);
    }
    let lines = table.lines().map(|line| format!(" {}\n", line.trim_end()));
    lines.collect()
}

/// Appends a list with a title, unless it is empty.
pub(super) fn list(text: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    text.push_str(&format!("\n{title}:\n"));
    for item in items {
        text.push_str(&format!("  {item}\n"));
    }
}
