//! What is written is read back, and what is read is written back.

use crate::strategies;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use vmdisk_libvirt::{
    Document, ReadFailure, Unmodeled, read, read_bytes, read_only, sniff, write_domain,
};
use vmdisk_source::Span;

/// Pieces that XML, and ours in particular, is made of.
const PIECES: &[&str] = &[
    "<domain>",
    "</domain>",
    "<devices>",
    "</devices>",
    "<disk>",
    "<disk type='file'>",
    "</disk>",
    "<driver",
    "<driver cache='none'/>",
    "<source file='/é'/>",
    "<target dev='vda'/>",
    "<iotune>",
    "<backingStore>",
    "<backingStore type='file'>",
    "</backingStore>",
    "<backingStore/>",
    "<a:b",
    "<controller type='scsi'/>",
    "<iothreads>4000000000</iothreads>",
    "<memory unit='x'>",
    "/>",
    " xmlns='u'",
    " xmlns:q='u'",
    " type=\"block\"",
    " q:x='1'",
    "='",
    "'",
    "\"",
    ">",
    "<",
    "&",
    "&amp;",
    "&#1;",
    "&#x20;",
    "&nope;",
    "<!--",
    "-->",
    "<!-- vmdisk: allow(a) b -->",
    "<![CDATA[",
    "]]>",
    "<?xml version='1.0'?>",
    "<?x?>",
    "<!DOCTYPE a>",
    "\u{feff}",
    " ",
    "\n",
    "\r\n",
    "é",
    "漢😀",
    "\u{1}",
    "\u{fffe}",
    "text",
    "12",
    "<serial>",
    "</serial>",
    "<metadata>",
    "</metadata>",
    "<v:lint xmlns:v='https://vmdisk.invalid/lint/1'>",
    "<v:allow rule='a'/>",
    "</v:lint>",
];

fn assert_in(text: &str, span: Span, what: &str) {
    assert!(span.slice(text).is_some(), "{what}: {span:?} of {text:?}");
}

/// A document that is only linted differs in nothing but its kept parts.
#[track_caller]
fn assert_same_to_lint(text: &str, result: &Result<Document, ReadFailure>) {
    match (read_only(text), result) {
        (Ok(linted), Ok(document)) => {
            let places = |it: &Document| it.source_map.iter().collect::<Vec<_>>();
            assert_eq!(linted.root, document.root, "{text}");
            assert_eq!(linted.domain, document.domain, "{text}");
            assert_eq!(linted.problems, document.problems, "{text}");
            assert_eq!(linted.versioned_syntax, document.versioned_syntax, "{text}");
            assert_eq!(linted.allowances, document.allowances, "{text}");
            assert_eq!(places(&linted), places(document), "{text}");
        }
        (Err(failure), Err(expected)) => assert_eq!(failure, *expected, "{text}"),
        (linted, _) => panic!("{text}: {linted:?}"),
    }
}

fn assert_spans(text: &str, result: &Result<Document, ReadFailure>) {
    match result {
        Err(failure) => {
            assert_in(text, failure.span, &failure.message);
            for (span, label) in &failure.related {
                assert_in(text, *span, label);
            }
        }
        Ok(document) => {
            for problem in &document.problems {
                assert_in(text, problem.span, &problem.message);
                for edit in &problem.fix {
                    assert_in(text, edit.span, &problem.message);
                }
            }
            for (path, place) in document.source_map.iter() {
                assert_in(text, place.span, &format!("{path:?}"));
                assert_in(text, place.whole, &format!("{path:?}"));
                assert!(text.is_char_boundary(place.attributes_end.unwrap_or_default()));
            }
            for allowance in &document.allowances {
                assert_in(text, allowance.span, "allowance");
                assert_in(text, allowance.covers, "allowance");
                for (name, span) in &allowance.rules {
                    assert_eq!(span.slice(text), Some(name.as_str()));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        // A failure is printed in full, and the tree stays as it was. PROPTEST_CASES asks for more cases.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_written_model_is_read_back_without_a_problem(domain in strategies::domain()) {
        let text = write_domain(&domain, &Unmodeled::default()).unwrap();
        let document = read(&text).unwrap();
        let mut problems = document.problems.clone();
        // About a guest that is read without a problem and does not boot.
        problems.retain(|problem| problem.rule.name != "seabios-4096-sectors");
        prop_assert_eq!(problems, [], "{}", text);
        prop_assert_eq!(&document.domain, &domain, "{}", text);
        assert_spans(&text, &Ok(document.clone()));
        prop_assert_eq!(document.write().unwrap(), text);
    }

    #[test]
    fn what_is_unknown_comes_back_as_it_was_written(
        domain in strategies::domain(),
        places in vec((any::<Index>(), any::<bool>()), 1..6),
    ) {
        let mut text = write_domain(&domain, &Unmodeled::default()).unwrap();
        let mut marks = Vec::new();
        for (nth, (index, is_attribute)) in places.into_iter().enumerate() {
            let tags: Vec<usize> = text
                .match_indices('<')
                .map(|(at, _)| at)
                .filter(|at| {
                    let ours = ["</", "<!", "<mark", "<b>"];
                    !ours.iter().any(|start| text[*at..].starts_with(start))
                })
                .collect();
            let start = *index.get(&tags);
            if is_attribute {
                let mark = format!("mark{nth}x=\"it's &lt; {nth}\"");
                let name = text[start..].find([' ', '>', '/']).unwrap() + start;
                text.insert_str(name, &format!(" {mark}"));
                marks.push(mark);
            } else {
                let end = text[start..].find('>').unwrap() + start;
                if text.as_bytes()[end - 1] == b'/' {
                    continue;
                }
                let mark = format!("<mark{nth}x a='&amp;'>\n <!-- c --> <b>é</b></mark{nth}x>");
                text.insert_str(end + 1, &mark);
                marks.push(mark);
            }
        }
        let document = read(&text).unwrap();
        prop_assert_eq!(&document.domain, &domain, "{}", text);
        assert_spans(&text, &Ok(document.clone()));
        let written = document.write().unwrap();
        for mark in &marks {
            prop_assert_eq!(written.matches(mark).count(), 1, "{}\n{}", mark, written);
        }
        let again = read(&written).unwrap();
        prop_assert_eq!(&again.domain, &domain);
        prop_assert_eq!(again.write().unwrap(), written);
    }

    #[test]
    fn no_text_makes_the_reader_panic_or_point_outside_it(pieces in vec(select(PIECES), 0..24)) {
        let text = pieces.concat();
        let result = read(&text);
        assert_spans(&text, &result);
        assert_same_to_lint(&text, &result);
        if let Ok(document) = result {
            prop_assert!(sniff(&text).is_readable());
            let written = document.write().unwrap();
            let again = read(&written).unwrap();
            prop_assert_eq!(&again.domain, &document.domain, "{}\n{}", text, written);
            prop_assert_eq!(again.write().unwrap(), written);
        }
    }

    #[test]
    fn no_damage_to_a_document_makes_the_reader_panic_or_point_outside_it(
        domain in strategies::domain(),
        cuts in vec((any::<Index>(), 0..6_usize, select(PIECES)), 1..4),
    ) {
        let mut text = write_domain(&domain, &Unmodeled::default()).unwrap();
        for (index, length, piece) in cuts {
            let mut start = index.index(text.len() + 1);
            while !text.is_char_boundary(start) { start -= 1; }
            let mut end = (start + length).min(text.len());
            while !text.is_char_boundary(end) { end += 1; }
            text.replace_range(start..end, piece);
        }
        let result = read(&text);
        assert_spans(&text, &result);
        assert_same_to_lint(&text, &result);
        if let Ok(document) = result {
            let written = document.write().unwrap();
            let again = read(&written).unwrap();
            prop_assert_eq!(&again.domain, &document.domain, "{}\n{}", text, written);
            prop_assert_eq!(again.write().unwrap(), written);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = read_bytes(&bytes);
    }
}
