//! A report as one page with its pictures, which needs no other file and no script.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use vmdisk_bench_runner::BenchResult;
use vmdisk_bench_runner::report::{BenchReport, ReportTable};

use super::pictures;
use crate::draw;
use crate::render::PAGE_STYLE;
use crate::sanitize::line;

/// Writes the page.
pub(super) fn page(report: &BenchReport, result: Option<&BenchResult>) -> String {
    let pictures = pictures::of(report, result);
    let title = format!("vmdisk bench: {}", report.name);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (line(&title)) }
                style { (PreEscaped(PAGE_STYLE)) (PreEscaped(draw::STYLE)) }
            }
            body { main {
                h1 { (line(&report.name)) }
                p { (line(&report.question)) }
                (list(&report.answer))
                p class="path" { (line(&report.summary)) }
                @for (table, pictures) in report.tables.iter().zip(&pictures) {
                    section {
                        h2 { (line(&table.heading)) }
                        div class="pictures" { @for picture in pictures { (picture.in_page()) } }
                        (columns(table))
                        (list(&table.notes))
                    }
                }
                @for (title, items) in report.lists.iter().filter(|(_, items)| !items.is_empty()) {
                    h2 { (title) }
                    (list(items))
                }
                @if !report.environment.is_empty() {
                    h2 { "environment" }
                    (list(&report.environment))
                }
            } }
        }
    };
    format!("{}\n", page.into_string())
}

fn list(items: &[String]) -> Markup {
    html! { @if !items.is_empty() { ul { @for item in items { li { (line(item)) } } } } }
}

/// A table, each of whose rows is a list on a narrow screen.
fn columns(table: &ReportTable) -> Markup {
    let with_head = |texts: &[String]| -> Vec<(String, String, bool)> {
        let heads = table.heads.iter().zip(texts);
        heads
            .map(|((head, is_number), text)| (head.clone(), text.clone(), *is_number))
            .collect()
    };
    html! {
        table class="figures" {
            thead { tr { @for (head, is_number) in &table.heads { th class=[is_number.then_some("number")] { (line(head)) } } } }
            tbody {
                @for row in &table.rows {
                    tr {
                        @for (head, text, is_number) in with_head(&row.texts) {
                            td class=[is_number.then_some("number")] data-head=[(!text.is_empty()).then_some(&head)] { (line(&text)) }
                        }
                    }
                }
            }
        }
    }
}
