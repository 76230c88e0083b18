//! Markdown pages as text for a terminal.

use vmdisk_source::table::wrap;

const BOLD: &str = "\u{1b}[1m";
const RESET: &str = "\u{1b}[0m";

/// The page with headings in bold or capitals, indented examples, and paragraphs that are wrapped to a width, if one is given.
pub(super) fn formatted(page: &str, has_color: bool, width: Option<usize>) -> String {
    let mut out = String::with_capacity(page.len());
    let mut in_example = false;
    let mut follows_example = false;
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            in_example = !in_example;
            follows_example = !in_example;
            let words: Vec<&str> = info.split(',').skip(1).collect();
            if in_example && words.contains(&"fixed") {
                out.push_str("\nThe same after its fix:\n\n");
            } else if in_example && !out.ends_with("\n\n") {
                out.push('\n');
            }
            continue;
        }
        if in_example {
            out.push_str("    ");
            out.push_str(line);
        } else if let Some(title) = line.trim_start_matches('#').strip_prefix(' ')
            && line.starts_with('#')
        {
            heading(&mut out, title, has_color);
        } else {
            // Pages continue directly after the fence of an example.
            if !line.is_empty() && follows_example {
                out.push('\n');
            }
            match width {
                Some(width) if !line.starts_with('|') => {
                    let mut paragraph = line.to_owned();
                    while let Some(next) = lines.next_if(|next| continues(&paragraph, next)) {
                        paragraph.push(' ');
                        paragraph.push_str(next.trim_start());
                    }
                    wrap_paragraph(&mut out, &paragraph, width);
                }
                Some(_) | None => out.push_str(line),
            }
        }
        out.push('\n');
        follows_example = false;
    }
    out
}

/// The indent of the lines after the first, below an item of a list.
fn indent(paragraph: &str) -> usize {
    let text = paragraph.trim_start();
    let mark = ["- ", "* "].into_iter().find(|mark| text.starts_with(mark));
    paragraph.len() - text.len() + mark.map_or(0, str::len)
}

/// True if a line continues the paragraph or the item of a list before it.
fn continues(paragraph: &str, line: &str) -> bool {
    let begins_block = ["```", "#", "|", "- ", "* "]
        .into_iter()
        .any(|start| line.trim_start().starts_with(start));
    !paragraph.is_empty() && !line.trim().is_empty() && !begins_block
}

fn wrap_paragraph(out: &mut String, paragraph: &str, width: usize) {
    let column = paragraph.len() - paragraph.trim_start().len();
    out.push_str(&paragraph[..column]);
    wrap(out, paragraph, column, indent(paragraph), width);
}

fn heading(out: &mut String, title: &str, has_color: bool) {
    if has_color {
        out.push_str(&format!("{BOLD}{title}{RESET}"));
    } else {
        out.push_str(&title.to_uppercase());
    }
}

#[cfg(test)]
mod tests {
    use super::formatted;

    const PAGE: &str = "# a-rule\n\nIt is `so`.\n\n## Reported\n```xml,reported\n<a/>\n```\n```xml,fixed\n<b/>\n```\nNot this:\n```xml\n<c/>\n```\n";

    #[test]
    fn headings_are_capitals_and_examples_are_indented() {
        assert_eq!(
            formatted(PAGE, false, None),
            "A-RULE\n\nIt is `so`.\n\nREPORTED\n\n    <a/>\n\nThe same after its fix:\n\n    <b/>\n\nNot this:\n\n    <c/>\n"
        );
    }

    #[test]
    fn headings_are_bold_on_a_terminal_with_color() {
        assert!(formatted(PAGE, true, None).starts_with("\u{1b}[1ma-rule\u{1b}[0m\n"));
    }

    #[test]
    fn paragraphs_are_wrapped_and_no_word_is_lost() {
        let words = |text: &str| {
            text.to_lowercase()
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        for rule in vmdisk::rules::RULES {
            let page = rule.explain();
            let plain = formatted(&page, false, None);
            for width in [40, 80] {
                let wrapped = formatted(&page, false, Some(width));
                assert_eq!(words(&wrapped), words(&plain), "{}", rule.name);
                let is_text = |line: &&str| !line.starts_with("    ") && !line.starts_with('|');
                for line in wrapped.lines().filter(is_text) {
                    let is_one_word = line.split_whitespace().count() <= 2;
                    assert!(
                        line.chars().count() <= width || is_one_word || line == line.to_uppercase(),
                        "{line}"
                    );
                }
            }
        }
    }
}
