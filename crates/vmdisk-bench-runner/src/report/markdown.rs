//! A result as Markdown.

use super::result::BenchResult;
use super::table::{baseline_name, groups, summary_line};

/// A result as Markdown, to be pasted into an issue or a page.
pub fn markdown(result: &BenchResult) -> String {
    let plan = &result.header.plan;
    let mut text = format!(
        "# {}\n\n{}\n\n{}.\n",
        escape(&plan.name),
        escape(&plan.question),
        escape(&summary_line(result))
    );
    for group in groups(result) {
        let against = match baseline_name(result, &group) {
            Some(name) => format!("against {}", escape(name)),
            None => "against its baseline".to_owned(),
        };
        text.push_str(&format!(
            "\n## {}, {}\n\n| configuration | median | varies | p99 | {against} | |\n|---|---:|---:|---:|---|---|\n",
            escape(&group.workload),
            group.phase.name()
        ));
        for row in &group.rows {
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} | {} |\n",
                escape(row.configuration),
                row.median,
                row.variation,
                row.p99,
                row.ratio,
                row.verdict
            ));
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
        text.push_str("\n## Mind\n\n");
        for remark in &result.remarks {
            text.push_str(&format!("- {}\n", escape(remark)));
        }
    }
    if !result.header.environment.is_empty() {
        text.push_str("\n## Where\n\n");
        for (what, value) in &result.header.environment {
            text.push_str(&format!("- {}: {}\n", escape(what), escape(value)));
        }
    }
    text
}

/// Text that means itself in Markdown, in a table too.
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
