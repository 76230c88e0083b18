//! Allowances: the author of a file allows findings of some rules, with a reason.
//!
//! There are two forms. A comment works in files; libvirt drops it when a domain is defined. An element in `<metadata>`
//! survives in libvirt's own definition.

use std::cell::OnceCell;
use std::collections::HashMap;

use vmdisk_model::{DiskField, Domain, DomainField, FieldPath};
use vmdisk_rule::reading::{INVALID_VALUE, MISSING_VALUE};
use vmdisk_source::{Allowance, Span};

use crate::reader::Reader;
use crate::rules;
use crate::xml::{Attribute, Comment, Node, Tree, parse};

/// Name space of allowances in `<metadata>`.
pub const ALLOWANCE_NAMESPACE: &str = "https://vmdisk.invalid/lint/1";

/// Finds the allowances of a document, in the order of the text.
pub(crate) fn read(reader: &mut Reader<'_>, tree: &Tree<'_>, domain: &Domain) -> Vec<Allowance> {
    let mut allowances = read_comments(reader.text, tree);
    let lists: Vec<Node<'_>> = tree
        .elements()
        .filter(|node| node.is_named("metadata"))
        .flat_map(Node::children)
        .filter(|node| is_ours(*node, "lint"))
        .collect();
    if !lists.is_empty() {
        let mut disks: HashMap<&str, Vec<Span>> = HashMap::new();
        for (nth, disk) in domain.disks.iter().enumerate() {
            let place = reader.map.place(FieldPath::Disk(nth, DiskField::Disk));
            if let (Some(target), Some(place)) = (disk.frontend.target.as_deref(), place) {
                let element = Span::new(place.span.start, place.whole.end);
                disks.entry(target).or_default().push(element);
            }
        }
        for list in lists {
            read_list(reader, list, &disks, &mut allowances);
        }
    }
    allowances.sort_by_key(|allowance| allowance.span);
    allowances
}

/// For each place, the start of the innermost element around it; of a place outside of all elements, the start of the root.
/// A comment before an element covers it, and before the root the whole text. Empty if the text cannot be read.
pub fn elements_around(text: &str, places: &[Span]) -> Vec<usize> {
    let Ok(arenas) = parse(text) else {
        return Vec::new();
    };
    let tree = arenas.of(text);
    let around = |place: &Span| {
        let holds = |node: &Node<'_>| {
            let span = node.span();
            span.start <= place.start && place.end <= span.end
        };
        // Of the elements around a place, the innermost comes last.
        let inner = tree.elements().filter(holds).last();
        inner.unwrap_or_else(|| tree.root()).span().start
    };
    places.iter().map(around).collect()
}

/// True for an element of this name space.
fn is_ours(node: Node<'_>, name: &str) -> bool {
    node.local_name() == name && node.namespace() == Some(ALLOWANCE_NAMESPACE)
}

fn read_comments(text: &str, tree: &Tree<'_>) -> Vec<Allowance> {
    let mut allowances = Vec::new();
    // Computed once, and only if there is an allowance: all comments of a guest may be on one line.
    let lines: OnceCell<Vec<usize>> = OnceCell::new();
    let line_of = |offset: usize| {
        let lines = lines.get_or_init(|| text.match_indices('\n').map(|(at, _)| at + 1).collect());
        let before = lines.partition_point(|start| *start <= offset);
        before.checked_sub(1).map_or(0, |nth| lines[nth])
    };
    for comment in tree.comments() {
        let Some(mut allowance) = read_comment(text, comment.span) else {
            continue;
        };
        // Before or after the root element, it covers the whole file.
        if let Some(parent) = comment.parent {
            let line = line_of(comment.span.start);
            allowance.covers = covered(text, &comment, parent, line).span();
        }
        allowances.push(allowance);
    }
    allowances
}

/// The element that a comment covers: the element before it on its line, which begins at `line`; otherwise the next
/// element; otherwise the parent.
fn covered<'d>(text: &str, comment: &Comment<'d>, parent: Node<'d>, line: usize) -> Node<'d> {
    let is_behind = match comment.previous {
        Some(previous) => previous.span().end > line,
        None => {
            // Nothing follows: the start tag of the parent.
            let rest = text[comment.span.end..].trim_start_matches([' ', '\t', '\r']);
            parent.tag().end > line && (rest.is_empty() || rest.starts_with('\n'))
        }
    };
    let behind = comment.previous.or(Some(parent)).filter(|_| is_behind);
    behind.or_else(|| comment.next()).unwrap_or(parent)
}

/// Reads a comment; `None` if it is not an allowance. The default scope is the whole file.
fn read_comment(text: &str, span: Span) -> Option<Allowance> {
    let inside = Span::new(span.start + "<!--".len(), span.end - "-->".len());
    Allowance::in_comment(text, span, inside)
}

fn read_list(
    reader: &mut Reader<'_>,
    list: Node<'_>,
    disks: &HashMap<&str, Vec<Span>>,
    allowances: &mut Vec<Allowance>,
) {
    let at = FieldPath::Domain(DomainField::Domain);
    for node in list.children() {
        let span: Span = node.span();
        if node.local_name() != "allow" {
            let message = format!("unknown element `<{}>`", node.name());
            let problem = reader.problem(&rules::unknown_element::RULE, at, span, message);
            problem.help = Some("expected `allow`".to_owned());
            continue;
        }
        let named = |name: &str| node.attributes().find(|written| written.is_named(name));
        // As written, so that each name has its span.
        let raw = |rule: Attribute<'_>| rule.value_span().slice(reader.text).unwrap_or_default();
        let rules =
            named("rule").map_or_else(Vec::new, |rule| Allowance::rules_in(reader.text, raw(rule)));
        if rules.is_empty() {
            let message = "an allowance without a `rule`".to_owned();
            reader.problem(&MISSING_VALUE, at, span, message);
            continue;
        }
        let covered = match named("target") {
            Some(attribute) => {
                let target = attribute.value();
                let covered = disks.get(target).cloned().unwrap_or_default();
                if covered.is_empty() {
                    let message = format!("no disk has the target `{target}`");
                    let span = attribute.value_span();
                    reader.problem(&INVALID_VALUE, at, span, message);
                }
                covered
            }
            None => vec![Span::new(0, reader.text.len())],
        };
        for covers in covered {
            allowances.push(Allowance {
                rules: rules.clone(),
                reason: node.attribute("reason").and_then(Allowance::reason_in),
                span,
                covers,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    fn covered(text: &str) -> Vec<(Vec<String>, Option<String>, &str)> {
        let document = crate::read(text).unwrap();
        assert_eq!(document.problems, [], "{text}");
        document
            .allowances
            .iter()
            .map(|allowance| {
                for (name, span) in &allowance.rules {
                    assert_eq!(span.slice(text), Some(name.as_str()));
                }
                let rules = allowance
                    .rules
                    .iter()
                    .map(|(name, _)| name.clone())
                    .collect();
                let covers = allowance.covers.slice(text).unwrap();
                (rules, allowance.reason.clone(), covers)
            })
            .collect()
    }

    fn one(text: &str) -> &str {
        let mut found = covered(text);
        assert_eq!(found.len(), 1, "{text}");
        found.remove(0).2
    }

    #[test]
    fn a_comment_covers_the_next_element_of_its_parent() {
        let text = "<devices>
  <!-- vmdisk: allow(a, b-c) the data
       is scratch -->
  <!-- of interest to nobody -->
  <sound/>
  <video/>
</devices>";
        let expected = (
            vec!["a".to_owned(), "b-c".to_owned()],
            Some("the data is scratch".to_owned()),
            "<sound/>",
        );
        assert_eq!(covered(text), [expected]);
    }

    #[test]
    fn a_comment_behind_an_element_covers_that_element() {
        let text = "<devices>\n  <sound/> <!-- vmdisk: allow(a) --><video/>\n</devices>";
        assert_eq!(one(text), "<sound/>");
        let text = "<devices>\n  <sound>\n </sound> <!--x--> <!--vmdisk:allow(a)-->\n</devices>";
        assert_eq!(one(text), "<sound>\n </sound>");
        let text = "<devices>\n  <sound> <!-- vmdisk: allow(a) -->\n <x/> </sound>\n</devices>";
        assert!(one(text).starts_with("<sound>"), "the line opens it");
    }

    #[test]
    fn a_comment_with_no_element_after_it_covers_its_parent() {
        let text = "<devices>\n  <sound>\n  <!-- vmdisk: allow(a) -->\n  </sound><y/></devices>";
        assert!(one(text).starts_with("<sound>"));
    }

    #[test]
    fn a_comment_outside_the_root_covers_the_whole_file() {
        for text in [
            "<?xml version='1.0'?>\n<!-- vmdisk: allow(a) -->\n<devices/>\n",
            "<devices/>\n<!-- vmdisk: allow(a) -->\n",
        ] {
            assert_eq!(one(text), text);
        }
    }

    #[test]
    fn metadata_carries_allowances_for_one_disk_or_for_all() {
        let text = "<domain><metadata>
  <v:lint xmlns:v='https://vmdisk.invalid/lint/1'>
    <v:allow rule='cache-unsafe' target='vda' reason='scratch &amp; tmp'/>
    <v:allow rule='no-discard'/>
  </v:lint></metadata>
  <devices><disk><source file='/a'/><target dev='vda'/></disk></devices></domain>";
        let found = covered(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].1.as_deref(), Some("scratch & tmp"));
        assert!(found[0].2.starts_with("<disk>") && found[0].2.ends_with("</disk>"));
        assert_eq!((found[1].1.as_deref(), found[1].2), (None, text));
    }

    #[test]
    fn a_comment_that_is_not_understood_allows_no_rule() {
        for comment in ["alow(a)", "allow a", "allow( ) x", "ignore(a) x"] {
            let text = format!("<devices><!-- vmdisk: {comment} --></devices>");
            let document = crate::read(&text).unwrap();
            assert_eq!(document.problems, [], "{comment}");
            let [allowance] = document.allowances.as_slice() else {
                panic!("{:?}", document.allowances)
            };
            assert!(allowance.rules.is_empty(), "{comment}");
        }
    }

    #[test]
    fn an_allowance_that_allows_nothing_is_reported() {
        for (text, what) in [
            (
                "<domain><metadata><v:lint xmlns:v='https://vmdisk.invalid/lint/1'><v:allow rule='a' target='vdz'/></v:lint></metadata></domain>",
                "no disk has the target `vdz`",
            ),
            (
                "<domain><metadata><v:lint xmlns:v='https://vmdisk.invalid/lint/1'><v:allow/></v:lint></metadata></domain>",
                "without a `rule`",
            ),
            (
                "<domain><metadata><v:lint xmlns:v='https://vmdisk.invalid/lint/1'><v:alow/></v:lint></metadata></domain>",
                "unknown element",
            ),
        ] {
            let document = crate::read(text).unwrap();
            assert_eq!(document.allowances, [], "{text}");
            assert_eq!(document.problems.len(), 1, "{text}");
            assert!(document.problems[0].message.contains(what), "{text}");
        }
    }

    #[test]
    fn a_comment_about_something_else_is_none_of_ours() {
        for comment in ["x vmdisk: allow(a)", "vmdisk allow(a)", "allow(a)"] {
            let text = format!("<devices><!-- {comment} --></devices>");
            assert_eq!(covered(&text), []);
        }
    }
}
