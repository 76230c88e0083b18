//! What is not XML, or goes beyond a limit, is refused with both ends of the mistake.

// What cannot be in a test is told by a panic.
#![allow(clippy::unwrap_used)]

use vmdisk_libvirt::{
    MAX_ATTRIBUTES, MAX_DEPTH, MAX_PREFIXES, ReadFailure, ReadFailureKind, RootKind, read,
};

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
            "`&#1;` is no character that XML allows",
        ),
        (
            "<disk a='&#xd800;'/>",
            "&#xd800;",
            "`&#xd800;` is no character that XML allows",
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
            "not well-formed: a non-XML character '\\u{1}' found",
        ),
        ("<disk>]]></disk>", "]]>", "`]]>` outside a CDATA section"),
    ] {
        assert_failure(text, malformed, at, message);
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
    assert_eq!(read(&wide(MAX_ATTRIBUTES)).map(|_| ()), Ok(()));
    assert_eq!(
        failure(&wide(MAX_ATTRIBUTES + 1)).kind,
        ReadFailureKind::TooLarge
    );

    let prefixed = |count: usize| {
        let declarations: String = (0..count).map(|nth| format!(" xmlns:p{nth}='u'")).collect();
        format!("<domain{declarations}/>")
    };
    assert_eq!(read(&prefixed(MAX_PREFIXES)).map(|_| ()), Ok(()));
    assert_eq!(
        failure(&prefixed(MAX_PREFIXES + 1)).kind,
        ReadFailureKind::TooLarge
    );

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
    assert_eq!(messages, ["a data store cannot have one of its own"]);
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

#[test]
fn ten_thousand_disks_are_read_in_linear_time() {
    let text_of = |count: usize| {
        let disk = |nth: usize| {
            format!(
                "<disk type='file'><driver name='qemu' type='qcow2' cache='none'/>\
                 <source file='/srv/{nth}.qcow2'/><target dev='vd{nth}' bus='virtio'/></disk>\n"
            )
        };
        let disks: String = (0..count).map(disk).collect();
        format!("<domain><devices>\n{disks}</devices></domain>")
    };
    let time = |count: usize| {
        let text = text_of(count);
        let start = std::time::Instant::now();
        let document = read(&text).unwrap();
        assert_eq!(
            (document.problems.len(), document.domain.disks.len()),
            (0, count)
        );
        start.elapsed()
    };
    // The best of three, since other work runs here too; quadratic would be a hundred times more.
    let best = |count| (0..3).map(|_| time(count)).min().unwrap();
    let (small, large) = (best(1_000), best(10_000));
    assert!(
        large < small * 40,
        "1,000 in {small:?}, 10,000 in {large:?}"
    );
}
