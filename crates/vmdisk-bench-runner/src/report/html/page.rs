//! The frame of a self-contained page, without scripts, fonts or network access.

use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("../style.css");

/// Returns a page with this title and content.
pub(crate) fn page(title: &str, content: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " – vmdisk bench" }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (content) } }
        }
    }
    .into_string()
}

/// Returns a section with a list; empty if the list is empty.
pub(crate) fn list(title: &str, items: impl Iterator<Item = String>) -> Markup {
    let mut items = items.peekable();
    html! {
        @if items.peek().is_some() {
            section {
                h2 { (title) }
                ul { @for item in items { li { (item) } } }
            }
        }
    }
}

/// Returns a heading with an anchor.
pub(crate) fn heading(text: &str) -> Markup {
    let anchor: String = text
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        })
        .collect();
    html! { h2 id=(anchor) { a href={ "#" (anchor) } { (text) } } }
}
