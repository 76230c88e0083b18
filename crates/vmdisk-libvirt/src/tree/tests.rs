//! The tree is held to another parser's.

use proptest::prelude::*;

use super::*;
use crate::guard::guard;

/// Every node with its name, its attributes, its own text and its place.
fn ours(text: &str) -> Option<Vec<String>> {
    let guarded = guard(text).ok()?;
    let describe = |node: Node<'_>| {
        let attributes: Vec<_> = node
            .attributes()
            .iter()
            .map(|attribute| (attribute.name.slice(text), node.value(attribute)))
            .collect();
        let parent = node.parent().map_or(0, |parent| parent.span().start);
        let name = node.name();
        format!(
            "<{name}> {:?} {attributes:?} {:?} in {parent}",
            node.span(),
            node.text().0
        )
    };
    let elements = guarded.tree.nodes().filter(|node| node.is_element());
    Some(elements.map(describe).collect())
}

/// The same by another parser.
fn theirs(text: &str) -> Option<Vec<String>> {
    let tree = roxmltree::Document::parse(text).ok()?;
    let describe = |node: roxmltree::Node<'_, '_>| {
        let attributes: Vec<_> = node
            .attributes()
            .map(|attribute| (Some(attribute.name()), Cow::Borrowed(attribute.value())))
            .collect();
        let texts = node.children().filter(roxmltree::Node::is_text);
        let own: String = texts.filter_map(|child| child.text()).collect();
        let parent = node
            .parent_element()
            .map_or(0, |parent| parent.range().start);
        let name = node.tag_name().name();
        let span = Span::from(node.range());
        format!("<{name}> {span:?} {attributes:?} {own:?} in {parent}")
    };
    let elements = tree.descendants().filter(roxmltree::Node::is_element);
    Some(elements.map(describe).collect())
}

/// Well-formed elements with almost everything that may stand in them; a carriage return before a
/// reference is one thing that the other parser gets wrong.
fn element() -> impl Strategy<Value = String> {
    let value = "([ a-z\u{e9}\t\n>/]|&amp;|&lt;|&#10;|&#x1F4BE;){0,5}";
    let attribute = |name: &'static str| {
        prop_oneof![
            3 => Just(String::new()),
            1 => value.prop_map(move |value| format!(" {name}='{value}'")),
            1 => value.prop_map(move |value| format!("\n{name} = \"'{value}\"")),
        ]
    };
    let leaf = prop_oneof![
        "[ a-z\u{e9}\n'\">]{0,6}",
        "(&amp;|&gt;|&quot;|&#9;|x){1,3}",
        "<!\\[CDATA\\[[ a-z&<>\n]{0,5}\\]\\]>",
        "<!--[ a-z<>&']{0,5}-->",
        "<\\?[a-z]{1,2} [a-z<'>]{0,5}\\?>",
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        let name = "[a-z_\u{e9}][a-z0-9.-]{0,3}";
        let children = proptest::collection::vec(inner, 0..5);
        (name, attribute("a"), attribute("b1"), children).prop_map(|(name, a, b, children)| {
            let children = children.concat();
            match children.is_empty() {
                true => format!("<{name}{a}{b}/>"),
                false => format!("<{name}{a}{b}\n>{children}</{name} >"),
            }
        })
    })
    .prop_map(|inside| format!("<root>{inside}</root>"))
}

proptest! {
    #[test]
    fn another_parser_sees_the_same_tree(text in element()) {
        prop_assert_eq!(ours(&text), theirs(&text), "{}", text);
    }

    #[test]
    fn what_is_taken_another_parser_takes_and_sees_the_same(
        text in element(),
        places in proptest::collection::vec((any::<prop::sample::Index>(), "[<>&;'\"/!?=\\[\\] a\u{1}-]{0,2}"), 1..3),
    ) {
        let mut characters: Vec<String> = text.chars().map(String::from).collect();
        for (at, instead) in places {
            let at = at.index(characters.len());
            characters[at] = instead;
        }
        let text = characters.concat();
        let ours = ours(&text);
        if ours.is_some() {
            prop_assert_eq!(ours, theirs(&text), "{}", text);
        }
    }
}
