//! Markdown pages as text for a terminal.

const BOLD: &str = "\u{1b}[1m";
const RESET: &str = "\u{1b}[0m";

/// The page with headings in bold or capitals, and indented examples.
pub(super) fn formatted(page: &str, has_color: bool) -> String {
    let mut out = String::with_capacity(page.len());
    let mut in_example = false;
    let mut follows_example = false;
    for line in page.lines() {
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
            out.push_str(line);
        }
        out.push('\n');
        follows_example = false;
    }
    out
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
            formatted(PAGE, false),
            "A-RULE\n\nIt is `so`.\n\nREPORTED\n\n    <a/>\n\nThe same after its fix:\n\n    <b/>\n\nNot this:\n\n    <c/>\n"
        );
    }

    #[test]
    fn headings_are_bold_on_a_terminal_with_color() {
        assert!(formatted(PAGE, true).starts_with("\u{1b}[1ma-rule\u{1b}[0m\n"));
    }
}
