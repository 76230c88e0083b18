//! Values and their places, mistakes, and limits on hostile text.

use proptest::prelude::*;
use vmdisk_document::*;

const MANY: usize = 200_000;

fn yaml(text: &str) -> Value {
    read_yaml(text, MANY)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .root
        .value
}

/// The message of the error, and the text from its place on.
fn error(text: &str) -> (String, &str) {
    let error = read_yaml(text, MANY).expect_err("the text has a mistake");
    (error.message, &text[error.span.start..])
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

#[test]
fn scalars_have_the_types_of_yaml_1_2() {
    for (written, value) in [
        ("", Value::Null),
        ("~", Value::Null),
        ("null", Value::Null),
        ("true", Value::Bool(true)),
        ("on", text("on")),
        ("7", Value::Unsigned(7)),
        ("+7", Value::Unsigned(7)),
        ("-7", Value::Signed(-7)),
        ("-0", Value::Unsigned(0)),
        ("0x10", Value::Unsigned(16)),
        ("0o17", Value::Unsigned(15)),
        ("007", text("007")),
        ("1.5", Value::Float(1.5)),
        ("1e3", Value::Float(1000.0)),
        ("-.inf", Value::Float(f64::NEG_INFINITY)),
        ("18446744073709551615", Value::Unsigned(u64::MAX)),
        (
            "18446744073709551616",
            Value::Float(18_446_744_073_709_551_616.0),
        ),
        (
            "-9223372036854775809",
            Value::Float(-9_223_372_036_854_775_809.0),
        ),
        ("10.0.2", text("10.0.2")),
        ("40G", text("40G")),
        ("e", text("e")),
        ("-", Value::list([Value::Null])),
        ("'7'", text("7")),
        ("\"\\u00e9\"", text("é")),
        ("!!str 7", text("7")),
        ("|\n  a\n  b\n", text("a\nb\n")),
    ] {
        assert_eq!(bare(&yaml(written)), value, "{written}");
    }
}

#[test]
fn values_and_keys_have_places() {
    let text = "# é\na: {b: [1, 'two']}\nlist:\n- key: x # note\n  empty:\n\nlast: end\n";
    let document = read_yaml(text, MANY).unwrap();
    let root = &document.root;
    let slice = |node: &Node| node.span.slice(text).unwrap().to_owned();
    assert_eq!(slice(root), text[5..].trim_end());
    let a = root.member("a").unwrap();
    assert_eq!(
        (a.key_span.slice(text), slice(&a.node)),
        (Some("a"), "{b: [1, 'two']}".into())
    );
    let two = root
        .find([PathStep::Key("a"), PathStep::Key("b"), PathStep::Index(1)])
        .unwrap();
    assert_eq!(slice(two), "'two'");
    let item = root.get("list").and_then(|list| list.item(0)).unwrap();
    assert_eq!(slice(item), "key: x # note\n  empty:");
    assert_eq!(
        slice(root.get("list").unwrap()),
        "- key: x # note\n  empty:"
    );
    assert_eq!(slice(item.get("empty").unwrap()), "");
    let comments: Vec<_> = document.comments.iter().collect();
    assert_eq!(comments[0].text, " é");
    assert!(comments[0].is_alone && !comments[1].is_alone);
    assert_eq!(comments[1].span.slice(text), Some("# note"));
}

#[test]
fn an_alias_is_a_copy_that_is_written_at_the_alias() {
    let text = "a: &x [1, 2]\nb: *x\n";
    let document = read_yaml(text, MANY).unwrap();
    assert!(document.has_anchors);
    let [a, b] = ["a", "b"].map(|key| document.root.get(key).unwrap());
    assert_eq!(a.value, b.value);
    assert_eq!(
        (a.span.slice(text), b.span.slice(text)),
        (Some("[1, 2]"), Some("*x"))
    );
}

#[test]
fn mistakes_of_yaml_have_places() {
    for (text, message, at) in [
        ("a: [1", "unclosed bracket", "[1"),
        ("a: !x 1\n", "a tag", "1\n"),
        ("{[1]: 2}", "expected a key", "[1]: 2}"),
        ("a: *b\n", "unknown anchor", "*b\n"),
        ("a: &a [*a]", "endless recursion", "*a]"),
        ("a: 1\n---\nb: 1\n", "more than one document", "---\nb: 1\n"),
        ("a: b: c\n", "", ": c\n"),
    ] {
        let (found, rest) = error(text);
        assert!(found.contains(message), "{text}: {found}");
        assert_eq!(rest, at, "{text}: {found}");
    }
}

#[test]
fn json_is_as_strict_as_serde_json() {
    let text = " {\"a\": [1, -2, 1.5e3, \"\\ud83d\\udcbe\\/\", true, null], \"b\": {}} \n";
    let document = read_json(text, MANY).unwrap();
    let list = document.root.get("a").unwrap();
    assert_eq!(list.span.slice(text), Some(&text[7..51]));
    assert_eq!(
        list.item(3).unwrap().value,
        Value::Text("\u{1f4be}/".into())
    );
    assert_eq!(
        bare(&document.root.value),
        serde_json::from_str(text).unwrap()
    );
    for (text, place) in [
        ("", 0),
        ("{", 1),
        ("{\"a\":1,}", 7),
        ("[1,]", 3),
        ("[1 2]", 3),
        ("{a: 1}", 1),
        ("{\"a\" 1}", 5),
        ("[01]", 1),
        ("[+1]", 1),
        ("[.5]", 1),
        ("[nan]", 1),
        ("[\"\t\"]", 1),
        ("[\"\\ud800\"]", 1),
        ("[\"a]", 1),
        ("[\"a\\", 1),
        ("1 1", 2),
        ("# note\n1", 0),
        ("{\"a\":1,\"a\":2}", 7),
    ] {
        let error = read_json(text, MANY).expect_err(text);
        assert_eq!(error.span.start, place, "{text}: {error}");
        assert!(
            text.starts_with("{\"a\":1,\"") || serde_json::from_str::<Value>(text).is_err(),
            "{text}"
        );
    }
}

/// Texts that made other readers slow, deep or large.
fn hostile(size: usize) -> Vec<String> {
    let mut texts: Vec<String> = [
        "[", "{", "[a,", "{a: ", "[\"]\",", "[']',", "- ", "? ", "- [", "[a\n", "&", "!", "%", "#",
        "\t", " ", "\n", "a: ", "a b ", "---\n", "# x\n", "a\n", "'", "\"", "|", "- - ", "*",
        "&a ", "? - ", ": ", "[]", "{}", ",",
    ]
    .iter()
    .map(|unit| unit.repeat(size / unit.len()))
    .collect();
    texts.push(format!("{}{}", "[".repeat(size / 2), "]".repeat(size / 2)));
    texts.push("a".repeat(size));
    texts.push(format!("a: |\n{}", " x\n".repeat(size / 3)));
    texts.push(format!("\"{}", "a\\\n".repeat(size / 3)));
    texts.push(
        (0..)
            .map(|n| format!("{}a:\n", " ".repeat(n)))
            .take((2 * size).isqrt())
            .collect(),
    );
    texts.push(
        (0..size / 20)
            .map(|n| format!("k{n}: &a{n} [1]\n"))
            .collect(),
    );
    texts.push(format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(size / 2),
        "*a,".repeat(size / 6)
    ));
    texts.push(format!(
        "{}[{}]",
        "- &a ".repeat(100),
        "x,".repeat(size / 2)
    ));
    let bomb = (1..30).map(|n| {
        format!(
            "a{n}: &a{n} [{}]\n",
            vec![format!("*a{}", n - 1); 10].join(",")
        )
    });
    texts.push(format!("a0: &a0 x\n{}", bomb.collect::<String>()));
    texts.push(format!("a:\n{}b: 1\n", "# note\n".repeat(size / 7)));
    texts
}

#[test]
fn hostile_text_ends_in_a_value_or_an_error_at_a_place() {
    for text in hostile(1 << 20) {
        for result in [read_yaml(&text, 1_000_000), read_json(&text, 1_000_000)] {
            let begin: String = text.chars().take(20).collect();
            if let Err(error) = result {
                assert!(error.span.end <= text.len(), "{begin:?}: {error:?}");
            }
        }
    }
}

#[test]
fn values_of_aliases_are_counted() {
    let list = vec!["x"; 5000].join(", ");
    let text = format!("a: &a [{list}]\nb: [{}]\n", vec!["*a"; 100].join(", "));
    assert!(
        error(&text).0.contains("more than 200000 values"),
        "{}",
        error(&text).0
    );
    let text = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(100_000),
        vec!["*a"; 100].join(", ")
    );
    assert!(
        error(&text).0.contains("repeat too much"),
        "{}",
        error(&text).0
    );
    assert!(read_json("[1,2,3]", 3).is_err());
    assert!(read_json("[1,2,3]", 4).is_ok());
}

fn value() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        any::<String>(),
        "[-a-z0-9:#{}&*!|>'\"%@`, \\n\\t.~/_=]{0,12}",
        Just("null".to_owned()),
        Just("On".to_owned()),
        Just("0x1f".to_owned()),
        Just("1:20".to_owned()),
        Just("---".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<u64>().prop_map(Value::Unsigned),
        (i64::MIN..0).prop_map(Value::Signed),
        any::<f64>()
            .prop_filter("NaN is not equal to itself", |value| !value.is_nan())
            .prop_map(Value::Float),
        word.clone().prop_map(Value::Text),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::list),
            prop::collection::vec((word.clone(), inner), 0..5).prop_map(Value::map),
        ]
    })
}

/// The same value without places.
fn bare(value: &Value) -> Value {
    if let Value::List(items) = value {
        return Value::list(items.iter().map(|item| bare(&item.value)));
    }
    if let Value::Map(members) = value {
        return Value::map(
            members
                .iter()
                .map(|at| (at.key.clone(), bare(&at.node.value))),
        );
    }
    value.clone()
}

proptest! {
    #[test]
    fn a_value_comes_back_from_its_yaml(value in value()) {
        let text = value.to_yaml();
        let read = read_yaml(&text, MANY);
        prop_assert_eq!(read.map(|document| bare(&document.root.value)), Ok(value), "{}", text);
    }

    #[test]
    fn json_is_read_as_serde_json_reads_it(text in "[\\[\\]{}:, a\"\\\\0-9.eE+\\-ntrulfs]{0,12}") {
        let theirs = serde_json::from_str::<Value>(&text).ok();
        let ours = read_json(&text, MANY);
        if let Ok(document) = ours {
            prop_assert_eq!(Some(bare(&document.root.value)), theirs);
        } else if let Some(value) = theirs {
            let root = Node::from(value);
            prop_assert!(root.duplicate_key().is_some(), "{}", text);
        }
    }

    #[test]
    fn every_place_lies_in_the_text(text in "[-a-z0-9:\\[\\]{}&*!|>'\"%@`#, \\n\\té]{0,80}") {
        fn check(node: &Node, text: &str) -> bool {
            node.span.slice(text).is_some()
                && node.items().iter().all(|item| check(item, text))
                && node.members().iter().all(|at| at.key_span.slice(text).is_some() && check(&at.node, text))
        }
        match read_yaml(&text, MANY) {
            Ok(document) => prop_assert!(check(&document.root, &text)),
            Err(error) => prop_assert!(error.span.slice(&text).is_some()),
        }
    }
}
