//! A result as Markdown.

use super::answer::{accelerator_label, answer};
use super::pairs::lines;
use super::result::BenchResult;
use super::table::{Grid, grid, groups, summary_line};

/// Formats a result as Markdown, for issues and documentation.
pub fn markdown(result: &BenchResult) -> String {
    let plan = &result.header.plan;
    let mut text = format!(
        "# {}\n\n{}{}\n\n",
        escape(&plan.name),
        escape(&plan.question),
        escape(accelerator_label(result)),
    );
    for sentence in answer(result) {
        text.push_str(&format!("- {}\n", escape(&sentence)));
    }
    text.push_str(&format!("\n{}.\n", escape(&summary_line(result))));
    for group in groups(result) {
        text.push_str(&format!(
            "\n## {}, {}\n\n",
            escape(group.workload),
            group.phase.name()
        ));
        let Grid { heads, rows } = grid(result, &group);
        let line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<String> = cells.collect();
            format!("| {} |\n", cells.join(" | "))
        };
        text.push_str(&line(&mut heads.iter().map(|(head, _)| escape(head))));
        let rule = |is_number: bool| if is_number { "---:" } else { "---" }.to_owned();
        text.push_str(&line(
            &mut heads.iter().map(|(_, is_number)| rule(*is_number)),
        ));
        for row in &rows {
            text.push_str(&line(&mut row.iter().map(|cell| escape(cell))));
        }
        let pairs = lines(result, &group).map(|line| format!("- {}\n", escape(&line)));
        let pairs: String = pairs.collect();
        if !pairs.is_empty() {
            text.push_str(&format!("\n{pairs}"));
        }
    }
    if !result.left_out.is_empty() {
        text.push_str("\n## Left out\n\n");
        for left_out in &result.left_out {
            text.push_str(&format!(
                "- {}: {}\n",
                escape(&left_out.what),
                escape(&left_out.why)
            ));
        }
    }
    if !result.remarks.is_empty() {
        text.push_str("\n## Caveats\n\n");
        for remark in &result.remarks {
            text.push_str(&format!("- {}\n", escape(remark)));
        }
    }
    if !result.header.environment.is_empty() {
        text.push_str("\n## Environment\n\n");
        for (what, value) in &result.header.environment {
            text.push_str(&format!("- {}: {}\n", escape(what), escape(value)));
        }
    }
    text
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
