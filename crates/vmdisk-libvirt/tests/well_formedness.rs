//! What is not XML, or goes beyond a limit, is refused with both ends of the mistake.

// What cannot be in a test is told by a panic.
#![allow(clippy::unwrap_used)]

use vmdisk_libvirt::{MAX_DEPTH, ReadFailure, ReadFailureKind, RootKind, read};

#[track_caller]
fn failure(text: &str) -> ReadFailure {
    match read(text) {
        Ok(_) => panic!("read: {text}"),
        Err(failure) => failure,
    }
}

/// Kind, the text at fault, and the message.
#[track_caller]
fn assert_failure(text: &str, kind: ReadFailureKind, at: &str, message: &str) {
    let failure = failure(text);
    let found = failure.span.slice(text).unwrap();
    assert_eq!(
        (failure.kind, found, failure.message.as_str()),
        (kind, at, message),
        "{text}"
    );
}

#[test]
fn a_mistake_in_the_markup_is_told_in_words_with_its_place() {
    let malformed = ReadFailureKind::Malformed;
    for (text, at, message) in [
        (
            "<disk><a></disk></a>",
            "</disk>",
            "expected `</a>`, found `</disk>`",
        ),
        ("<disk><a>", "<a>", "`<a>` is never closed"),
        (
            "<disk/></disk>",
            "</disk>",
            "`</disk>` closes nothing: no element is open here",
        ),
        (
            "<disk/><disk/>",
            "<disk/>",
            "a second root element, `<disk>`",
        ),
        ("<disk/> x ", "x", "text after the root element"),
        ("x <disk/>", "x", "text before the root element"),
        ("<disk>a & b</disk>", "&", "a stray `&`"),
        ("<disk>a&b</disk>", "&", "a stray `&`"),
        ("<disk a='b&c'/>", "&", "a stray `&`"),
        ("<disk>&nbsp;</disk>", "&nbsp;", "unknown entity `&nbsp;`"),
        ("<disk a='&nbsp;'/>", "&nbsp;", "unknown entity `&nbsp;`"),
        (
            "<disk>&#1;</disk>",
            "&#1;",
            "`&#1;` is not a character that XML allows",
        ),
        (
            "<disk a='&#xd800;'/>",
            "&#xd800;",
            "`&#xd800;` is not a character that XML allows",
        ),
        ("<disk a/>", "a", "attribute `a` of `<disk>` has no value"),
        ("<disk a=b/>", "b/", "the value `b/` is not quoted"),
        (
            "<disk a='b'c='d'/>",
            "c",
            "no white space before attribute `c`",
        ),
        ("<disk a='b<c'/>", "<", "`<` in an attribute's value"),
        ("<disk a='b/>", "'", "this quote is never closed"),
        (
            "<disk a='1' a='2'/>",
            "a",
            "attribute `a` of `<disk>` is written twice",
        ),
        (
            "<disk><!-- a -- b --></disk>",
            "-- b --></disk>",
            "`--` inside a comment",
        ),
        ("<disk><!-- a", "<!-- a", "this comment is never closed"),
        ("<:disk/>", ":disk", "`:disk` is not a name"),
        ("<1/>", "1", "`1` is not a name"),
        ("<disk", "", "the file ends inside the tag `<disk`"),
        (
            "<?xml version='2.0'?><disk/>",
            "<?xml version='2.0'?>",
            "unsupported XML version `2.0`, expected `1.0`",
        ),
        (
            " <?xml version='1.0'?><disk/>",
            "<?xml version='1.0'?>",
            "the XML declaration must be the first thing in the file",
        ),
        (
            "\u{feff}\u{feff}<disk/>",
            "\u{feff}",
            "a second byte order mark",
        ),
        ("", "", "no element at all: this is not XML"),
        ("  \n", "", "no element at all: this is not XML"),
        ("name: web1", "name: web1", "text before the root element"),
        (
            "<disk>\u{1}</disk>",
            "\u{1}",
            "the character U+0001 is not allowed in XML",
        ),
        ("<disk>]]></disk>", "]]>", "`]]>` outside a CDATA section"),
    ] {
        assert_failure(text, malformed, at, message);
    }
}

#[test]
fn a_name_that_is_not_one_is_refused_wherever_it_stands() {
    for (text, name) in [
        ("<di$k/>", "di$k"),
        ("<disk><a\u{37e}/></disk>", "a\u{37e}"),
        ("<disk b!='1'/>", "b!"),
        ("<disk 1b='1'/>", "1b"),
        ("<disk xmlns:='u'/>", "xmlns:"),
        ("<disk a:b:c='1'/>", "a:b:c"),
        ("< disk/>", ""),
        ("<disk><></></disk>", ""),
    ] {
        let message = format!("`{name}` is not a name");
        assert_failure(text, ReadFailureKind::Malformed, name, &message);
    }
    for (text, target) in [
        ("<disk><? a?></disk>", ""),
        ("<disk><?1?></disk>", "1"),
        ("<??><disk/>", ""),
    ] {
        let message = format!("`{target}` is not the name of a processing instruction");
        assert_failure(text, ReadFailureKind::Malformed, target, &message);
    }
    for text in [
        "<disk><?a?></disk>",
        "<disk><?a-b x?></disk>",
        "<?A\n?><disk/>",
    ] {
        assert!(read(text).is_ok(), "{text}");
    }
}

#[test]
fn a_character_that_xml_does_not_allow_is_refused_wherever_it_stands() {
    for c in ['\0', '\u{8}', '\u{1f}', '\u{fffe}', '\u{ffff}'] {
        for text in [
            format!("<disk>{c}</disk>"),
            format!("<disk a='é{c}'/>"),
            format!("<disk><!-- {c} --></disk>"),
            format!("<disk><?a {c}?></disk>"),
            format!("<disk><![CDATA[{c}]]></disk>"),
            format!("<disk/><!--{c}-->"),
        ] {
            let message = format!("the character U+{:04X} is not allowed in XML", u32::from(c));
            assert_failure(&text, ReadFailureKind::Malformed, &c.to_string(), &message);
        }
    }
}

#[test]
fn name_spaces_are_declared_as_they_must_be() {
    const XML: &str = "http://www.w3.org/XML/1998/namespace";
    const XMLNS: &str = "http://www.w3.org/2000/xmlns/";
    for (declaration, message) in [
        (
            "xmlns:xml='u'".to_owned(),
            "the prefix `xml` cannot be bound to another namespace",
        ),
        (
            "xmlns:xmlns='u'".to_owned(),
            "the prefix `xmlns` cannot be declared",
        ),
        (
            format!("xmlns:a='{XML}'"),
            "only the prefix `xml` can be bound to this namespace",
        ),
        (
            format!("xmlns='{XML}'"),
            "only the prefix `xml` can be bound to this namespace",
        ),
        (
            format!("xmlns:a='{XMLNS}'"),
            "only the prefix `xmlns` can be bound to this namespace",
        ),
        (
            format!("xmlns='{XMLNS}'"),
            "only the prefix `xmlns` can be bound to this namespace",
        ),
    ] {
        let text = format!("<disk><a {declaration}/></disk>");
        assert_failure(&text, ReadFailureKind::Malformed, &declaration, message);
    }
    let text = format!("<disk xmlns:xml='{XML}' xml:lang='de' lang='de'/>");
    assert!(read(&text).is_ok());
    assert_failure(
        "<disk><xmlns:a/></disk>",
        ReadFailureKind::Malformed,
        "xmlns:a",
        "an element cannot have the prefix `xmlns`",
    );
}

#[test]
fn attributes_whose_prefixes_stand_for_one_name_space_are_the_same() {
    let outer = "<disk xmlns:a='u' xmlns:b='u' xmlns:c='v'>";
    let text = format!("{outer}<x a:y='1' b:y='2'/></disk>");
    let message = "attributes `a:y` and `b:y` of `<x>` are the same: their prefixes are bound to one namespace";
    assert_failure(&text, ReadFailureKind::Malformed, "b:y", message);
    let [(span, _)] = failure(&text).related[..] else {
        panic!("no other end");
    };
    assert_eq!(span.slice(&text), Some("a:y"));
    for inner in [
        "<x a:y='1' c:y='2' y='3'/>",
        "<x a:y='1' a:z='2'/>",
        "<x xmlns:b='w' a:y='1' b:y='2'/>",
        "<x undeclared:y='1' a:y='2'/>",
    ] {
        assert!(read(&format!("{outer}{inner}</disk>")).is_ok(), "{inner}");
    }
}

#[test]
fn comments_and_declarations_have_no_more_than_they_may() {
    for (text, at) in [
        ("<disk><!--a--->\n</disk>", "--->"),
        ("<disk><!-- a-b -- c -->\n</disk>", "-- c -->"),
        ("<disk/><!----->", "--->"),
    ] {
        assert_failure(
            text,
            ReadFailureKind::Malformed,
            at,
            "`--` inside a comment",
        );
    }
    assert!(read("<disk><!----><!-- a-b - c --></disk>").is_ok());
    let out_of_place = |name| format!("`{name}` is out of place in an XML declaration");
    for (inside, at, message) in [
        (
            " version='1.0' version='1.0'",
            "version",
            out_of_place("version"),
        ),
        (
            " encoding='UTF-8' version='1.0'",
            "version",
            out_of_place("version"),
        ),
        (" version='1.0' a='b'", "a", out_of_place("a")),
        (
            " version=1.0",
            "1.0",
            "the value `1.0` is not quoted".to_owned(),
        ),
        (
            " version='1.0'encoding='UTF-8'",
            "encoding",
            "no white space before attribute `encoding`".to_owned(),
        ),
        (
            " version='1.0' x",
            "x",
            "attribute `x` of `<?xml>` has no value".to_owned(),
        ),
    ] {
        let text = format!("<?xml{inside}?><disk/>");
        let failure = failure(&text);
        assert_eq!(
            (failure.span.slice(&text), failure.message),
            (Some(at), message),
            "{text}"
        );
    }
    for text in [
        "<?xml version='1.0'>?><disk/>",
        "<?xml version='1.0'/>?><disk/>",
    ] {
        let message = "`>` inside an XML declaration";
        let declaration = text.strip_suffix("<disk/>").unwrap();
        assert_failure(text, ReadFailureKind::Malformed, declaration, message);
    }
    for text in ["<?xml?><disk/>", "<?xml encoding='UTF-8'?><disk/>"] {
        assert!(failure(text).message.starts_with("unsupported XML version"));
    }
    for text in [
        "<?xml version=\"1.0\" standalone = 'yes' ?><disk/>",
        "\u{feff}<?xml version='1.1' encoding='utf-8'?>\n<disk/>",
    ] {
        assert!(read(text).is_ok(), "{text}");
    }
}

#[test]
fn the_other_end_of_a_mistake_is_shown() {
    for (text, related, label) in [
        ("<disk>\n<a>\n</disk>", "<a>", "`<a>` opened here"),
        ("<disk><a>", "", "the file ends here; expected `</a>`"),
        (
            "<disk/><disk/>",
            "<disk/>",
            "the first root element ends here",
        ),
        ("<disk b='' b=''/>", "b", "first written here"),
    ] {
        let failure = failure(text);
        let [(span, found)] = &failure.related[..] else {
            panic!("{text}: {:?}", failure.related);
        };
        assert_eq!((span.slice(text), found.as_str()), (Some(related), label));
    }
}

#[test]
fn a_document_type_is_refused_before_its_entities_are_looked_at() {
    let text = "<!DOCTYPE domain [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><domain>&b;</domain>";
    assert_eq!(failure(text).kind, ReadFailureKind::DocumentType);
}

#[test]
fn limits_hold_and_what_is_within_them_is_read_in_time() {
    let nested =
        |depth: usize| format!("{}{}", "<domain>".repeat(depth), "</domain>".repeat(depth));
    assert_eq!(read(&nested(MAX_DEPTH)).map(|_| ()), Ok(()));
    assert_eq!(
        failure(&nested(MAX_DEPTH + 1)).kind,
        ReadFailureKind::TooLarge
    );

    let wide = |count: usize| {
        let attributes: String = (0..count).map(|nth| format!(" a{nth}='1'")).collect();
        format!("<domain><devices><disk{attributes}/></devices></domain>")
    };
    // libxml2 has no limit of its own for attributes and prefixes, and neither may be slow.
    assert_eq!(read(&wide(100_000)).map(|_| ()), Ok(()));

    let prefixed = |count: usize| {
        let declarations: String = (0..count).map(|nth| format!(" xmlns:p{nth}='u'")).collect();
        format!("<domain{declarations}/>")
    };
    assert_eq!(read(&prefixed(100_000)).map(|_| ()), Ok(()));
    let used: String = (0..50_000).map(|nth| format!(" p{nth}:a=''")).collect();
    let declared: String = (0..50_000)
        .map(|nth| format!(" xmlns:p{nth}='u{nth}'"))
        .collect();
    let text = format!("<domain{declared}><x{used}/></domain>");
    assert_eq!(read(&text).map(|_| ()), Ok(()));

    let long = format!("<disk>{}</disk>", " ".repeat(vmdisk_libvirt::MAX_BYTES));
    assert_eq!(failure(&long).kind, ReadFailureKind::TooLarge);
}

#[test]
fn a_deep_backing_chain_and_deep_data_stores_do_not_overflow_the_stack() {
    // libvirt itself stops at 200 images.
    let levels = MAX_DEPTH - 4;
    let open = "<backingStore type='file'><format type='qcow2'/><source file='/a'/>".repeat(levels);
    let text = format!(
        "<disk><source file='/a'/><target dev='vda'/>{open}{}</disk>",
        "</backingStore>".repeat(levels)
    );
    let document = read(&text).unwrap();
    assert_eq!(document.problems, []);
    let image = document.domain.disks[0].backend.image().unwrap();
    assert_eq!(image.chain().count(), levels + 1);
    assert_eq!(
        read(&document.write().unwrap()).unwrap().domain,
        document.domain
    );

    let levels = MAX_DEPTH / 2 - 2;
    let text = format!(
        "<disk><source file='/a'>{}{}</source><target dev='vda'/></disk>",
        "<dataStore><format type='raw'/><source file='/a'>".repeat(levels),
        "</source></dataStore>".repeat(levels)
    );
    // Of all that are one in another, libvirt looks at the second.
    let messages: Vec<String> = read(&text)
        .unwrap()
        .problems
        .into_iter()
        .map(|problem| problem.message)
        .collect();
    assert_eq!(messages, ["a data store cannot contain another data store"]);
}

#[test]
fn what_is_no_domain_can_be_told_apart_from_what_is_broken() {
    for (text, root) in [
        ("<network/>", RootKind::OtherLibvirt("network")),
        ("<html/>", RootKind::Foreign),
        ("<domstatus/>", RootKind::DomainStatus),
        ("<x:domain xmlns:x='u'/>", RootKind::Foreign),
    ] {
        assert_eq!(
            failure(text).kind,
            ReadFailureKind::NotADomainOrDisk(root),
            "{text}"
        );
    }
}
