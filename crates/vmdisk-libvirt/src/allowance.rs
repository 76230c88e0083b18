//! Allowances: places where the author of a file allows findings of some rules, for a reason.
//!
//! There are two carriers. A comment lives in files; libvirt drops it when a domain is defined. An
//! element in `<metadata>` survives in libvirt's own definition.

use std::collections::HashMap;

use roxmltree::{Document, Node, NodeId};
use vmdisk_model::{DiskField, Domain, DomainField, FieldPath};
use vmdisk_source::{Allowance, ProblemKind, Span};

use crate::reader::Reader;
use crate::tag::{Tag, TagAttribute, scan_tag};
use crate::tree;

/// Name space of allowances in `<metadata>`.
pub const ALLOWANCE_NAMESPACE: &str = "https://vmdisk.invalid/lint/1";

/// Finds the allowances of a document, in the order of the text.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    tree: &Document<'_>,
    domain: &Domain,
) -> Vec<Allowance> {
    // Most documents have none, and then the tree need not be walked.
    let mut allowances = if reader.text.contains("vmdisk:") {
        read_comments(reader, tree)
    } else {
        Vec::new()
    };
    if !reader.text.contains(ALLOWANCE_NAMESPACE) {
        return allowances;
    }
    let elements = tree
        .descendants()
        .filter(|node| node.tag_name().namespace() == Some(ALLOWANCE_NAMESPACE))
        .filter(|node| node.tag_name().name() == "lint" && is_metadata(reader.text, *node));
    let lists: Vec<Node<'_, '_>> = elements.collect();
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

/// True for a child of the guest's `<metadata>`.
fn is_metadata(text: &str, node: Node<'_, '_>) -> bool {
    node.parent_element()
        .is_some_and(|parent| tree::name(text, parent) == "metadata")
}

/// What has been seen of an element's children so far.
#[derive(Default)]
struct Seen {
    /// Allowances that wait for the next element, by number.
    waiting: Vec<usize>,
    /// The last element.
    last: Option<Span>,
    /// Where the start tag of the element itself ends, once that has been asked for.
    tag_end: Option<usize>,
}

fn read_comments(reader: &mut Reader<'_>, tree: &Document<'_>) -> Vec<Allowance> {
    let mut allowances: Vec<Allowance> = Vec::new();
    let lines: Vec<usize> = reader.text.match_indices('\n').map(|(at, _)| at).collect();
    let mut parents: HashMap<NodeId, Seen> = HashMap::new();
    for node in tree.descendants() {
        let Some(parent) = node.parent().filter(|parent| !parent.is_root()) else {
            // Before or after the root element: the whole file.
            if node.is_comment()
                && let Some(allowance) = read_comment(reader, node.range().into())
            {
                allowances.push(allowance);
            }
            continue;
        };
        if node.is_element() {
            let seen = parents.entry(parent.id()).or_default();
            seen.last = Some(node.range().into());
            for nth in seen.waiting.drain(..) {
                allowances[nth].covers = node.range().into();
            }
        } else if node.is_comment()
            && let Some(mut allowance) = read_comment(reader, node.range().into())
        {
            let seen = parents.entry(parent.id()).or_default();
            allowance.covers = parent.range().into();
            match same_line(reader.text, &lines, allowance.span, parent, seen) {
                Some(element) => allowance.covers = element,
                None => seen.waiting.push(allowances.len()),
            }
            allowances.push(allowance);
        }
    }
    allowances
}

/// The element that a comment stands behind on one line: the one before it, or the parent if the
/// parent's start tag is all that stands before it there and nothing follows.
fn same_line(
    text: &str,
    lines: &[usize],
    comment: Span,
    parent: Node<'_, '_>,
    seen: &mut Seen,
) -> Option<Span> {
    let before = lines.partition_point(|newline| *newline < comment.start);
    let line = before.checked_sub(1).map_or(0, |nth| lines[nth] + 1);
    if let Some(element) = seen.last {
        return (element.end > line).then_some(element);
    }
    let start = parent.range().start;
    let tag_end = *seen
        .tag_end
        .get_or_insert_with(|| scan_tag(text, start).map_or(start, |tag| tag.end.end));
    let rest = text[comment.end..].trim_start_matches([' ', '\t', '\r']);
    let is_last = rest.is_empty() || rest.starts_with('\n');
    (tag_end > line && is_last).then(|| parent.range().into())
}

/// Reads a comment; `None` if it is not for us. It covers the whole file until told otherwise.
fn read_comment(reader: &mut Reader<'_>, span: Span) -> Option<Allowance> {
    let start = span.start + "<!--".len();
    let text = reader.text.get(start..span.end - "-->".len())?;
    let body = text.trim_start();
    let body = body.strip_prefix("vmdisk:")?.trim_start();
    let parsed = body
        .strip_prefix("allow")
        .map(str::trim_start)
        .and_then(|rest| rest.strip_prefix('('))
        .and_then(|rest| rest.split_once(')'));
    let rules = parsed.map(|(list, _)| rules_in(reader.text, list));
    let (Some((_, reason)), Some(rules)) = (parsed, rules.filter(|rules| !rules.is_empty())) else {
        // An allowance of nothing, which whoever judges allowances reports.
        return Some(Allowance {
            rules: Vec::new(),
            reason: None,
            span,
            covers: span,
        });
    };
    Some(Allowance {
        rules,
        reason: plain(reason),
        span,
        covers: Span::new(0, reader.text.len()),
    })
}

/// Names of rules between commas or blanks, each with its place; `list` is a part of `text`.
fn rules_in(text: &str, list: &str) -> Vec<(String, Span)> {
    list.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|name| !name.is_empty())
        .map(|name| {
            let start = name.as_ptr() as usize - text.as_ptr() as usize;
            (name.to_owned(), Span::new(start, start + name.len()))
        })
        .collect()
}

/// A reason on one line; `None` if there is none.
fn plain(reason: &str) -> Option<String> {
    let words: Vec<&str> = reason.split_whitespace().collect();
    Some(words.join(" ")).filter(|reason| !reason.is_empty())
}

fn read_list(
    reader: &mut Reader<'_>,
    list: Node<'_, '_>,
    disks: &HashMap<&str, Vec<Span>>,
    allowances: &mut Vec<Allowance>,
) {
    let at = FieldPath::Domain(DomainField::Domain);
    for node in list.children().filter(Node::is_element) {
        let span: Span = node.range().into();
        if node.tag_name().name() != "allow" {
            let message = format!("unknown element `<{}>`", tree::name(reader.text, node));
            let problem = reader.problem(ProblemKind::UnknownElement, at, span, message);
            problem.help = Some("expected `allow`".to_owned());
            continue;
        }
        let Some(Tag { attributes, .. }) = scan_tag(reader.text, span.start) else {
            continue;
        };
        let raw = |attribute: &TagAttribute| attribute.value.slice(reader.text).unwrap_or_default();
        let named = |name: &str| {
            attributes
                .iter()
                .find(|attribute| attribute.name.slice(reader.text) == Some(name))
        };
        let rules = named("rule").map_or_else(Vec::new, |rule| rules_in(reader.text, raw(rule)));
        if rules.is_empty() {
            let message = "an allowance without a `rule`".to_owned();
            reader.problem(ProblemKind::MissingValue, at, span, message);
            continue;
        }
        let covered = match (node.attribute("target"), named("target")) {
            (Some(target), Some(attribute)) => {
                let covered = disks.get(target).cloned().unwrap_or_default();
                if covered.is_empty() {
                    let message = format!("no disk has the target `{target}`");
                    reader.problem(ProblemKind::InvalidValue, at, attribute.value, message);
                }
                covered
            }
            _ => vec![Span::new(0, reader.text.len())],
        };
        for covers in covered {
            allowances.push(Allowance {
                rules: rules.clone(),
                reason: node.attribute("reason").and_then(plain),
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
            assert!(allowance.rules.is_empty() && allowance.covers == allowance.span);
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
