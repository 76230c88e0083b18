//! `vmdisk lsp`: sessions over standard input and output.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use vmdisk_testing::Editor;

use crate::{Place, UNSAFE};

fn editor(place: &Place, arguments: &[&str]) -> Editor {
    let program = Path::new(crate::program());
    Editor::start(program, arguments, &place.path(""))
}

fn uri(place: &Place, name: &str) -> String {
    format!("file://{}", place.path(name).display())
}

fn rules(findings: &[Value]) -> Vec<&str> {
    findings
        .iter()
        .filter_map(|found| found["code"].as_str())
        .collect()
}

fn labels(completion: &Value) -> Vec<&str> {
    let items = completion["items"].as_array().expect("a list");
    items
        .iter()
        .filter_map(|item| item["label"].as_str())
        .collect()
}

fn item<'v>(completion: &'v Value, label: &str) -> &'v Value {
    let items = completion["items"].as_array().expect("a list");
    let found = items.iter().find(|item| item["label"] == label);
    found.unwrap_or_else(|| panic!("{label} is not in {:?}", labels(completion)))
}

/// A domain of at least 30 KB whose last disk is on a line behind characters of several sizes.
fn large_domain() -> (String, u32) {
    let mut text = "<domain type='kvm'>\n  <name>large</name>\n  <memory unit='GiB'>4</memory>\n  <vcpu>4</vcpu>\n  <os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features>\n  <devices>\n".to_owned();
    let mut disks = 0;
    while text.len() < 30_000 {
        let _ = write!(
            text,
            "    <disk type='file' device='disk'>\n      <driver name='qemu' type='qcow2' cache='none' io='native' discard='unmap'/>\n      <source file='/srv/large/disk-{disks}.qcow2'/>\n      <target dev='sd{}' bus='scsi'/>\n      <serial>large-{disks}</serial>\n    </disk>\n",
            name(disks)
        );
        disks += 1;
    }
    text.push_str("    <disk type='file' device='disk'>\n");
    let line = u32::try_from(text.lines().count()).unwrap();
    text.push_str("      <!-- \u{1f4be} ü --><driver name='qemu' type='qcow2' cache='unsafe'/>\n      <source file='/srv/last.qcow2'/>\n      <target dev='vda' bus='virtio'/>\n    </disk>\n    <controller type='scsi' model='virtio-scsi'/>\n  </devices>\n</domain>\n");
    (text, line)
}

/// `a` to `z`, `aa`, …
fn name(number: usize) -> String {
    let letter = |number: usize| char::from(b'a' + u8::try_from(number % 26).unwrap());
    match number / 26 {
        0 => letter(number).to_string(),
        tens => format!("{}{}", letter(tens - 1), letter(number)),
    }
}

#[test]
fn a_session_finds_fixes_completes_and_explains_in_a_large_domain() {
    let place = Place::with(&[]);
    let mut editor = editor(&place, &["--target", "qemu=7.2,libvirt=9.0"]);
    let uri = uri(&place, "large.xml");
    let (text, line) = large_domain();
    editor.open(&uri, &text);
    let found = editor.findings(&uri);
    let found = found
        .iter()
        .find(|found| found["code"] == "cache-unsafe")
        .expect("it is unsafe");
    assert_eq!(
        (&found["source"], &found["severity"]),
        (&json!("vmdisk"), &json!(1))
    );
    let href = found["codeDescription"]["href"].as_str().unwrap();
    assert!(href.ends_with("/docs/rules/cache-unsafe.md"), "{href}");
    // The comment has 13 characters, of which one is two UTF-16 units.
    let start = "      <!-- xx ü --><driver name='qemu' type='qcow2' cache='"
        .chars()
        .count();
    let range = json!({
        "start": {"line": line, "character": start},
        "end": {"line": line, "character": start + "unsafe".len()},
    });
    assert_eq!(found["range"], range);

    // A quick fix, applied as an editor does.
    let params =
        json!({"textDocument": {"uri": uri}, "range": range, "context": {"diagnostics": [found]}});
    let actions = editor.request("textDocument/codeAction", params.clone());
    let titles: Vec<&Value> = actions
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["title"])
        .collect();
    let expected = [
        "use `cache='writeback'`",
        "Allow cache-unsafe here",
        "Apply all safe fixes of vmdisk",
    ];
    assert_eq!(titles, expected, "{actions}");
    let edits = &actions[0]["edit"]["changes"][&uri];
    assert_eq!(edits.as_array().map(Vec::len), Some(1), "{actions}");
    assert_eq!(edits[0]["range"], range);
    let changes = json!([{"range": range, "text": edits[0]["newText"]}]);
    editor.change(&uri, 2, &changes);
    assert!(!rules(&editor.findings(&uri)).contains(&"cache-unsafe"));

    // A value is deleted and completed again.
    let new = edits[0]["newText"].as_str().unwrap();
    let end = json!({"line": line, "character": start + new.len()});
    let range = json!({"start": range["start"], "end": end});
    editor.change(&uri, 3, &json!([{"range": range, "text": ""}]));
    let column = u32::try_from(start).unwrap();
    let proposed = editor.at("textDocument/completion", &uri, line, column);
    assert!(
        labels(&proposed).contains(&"directsync"),
        "{:?}",
        labels(&proposed)
    );
    let none = item(&proposed, "none");
    assert_eq!(none["detail"], "libvirt 0.6");
    assert_eq!(none["textEdit"]["newText"], "none");
    assert!(
        none["documentation"]["value"]
            .as_str()
            .unwrap()
            .contains("O_DIRECT")
    );

    // Hover: the attribute, and the page of a rule.
    editor.change(&uri, 4, &json!([{"text": text}]));
    let hover = editor.at("textDocument/hover", &uri, line, column + 1);
    let page = hover["contents"]["value"].as_str().unwrap();
    assert_eq!(hover["contents"]["kind"], "markdown");
    assert!(
        page.contains("| `unsafe` |") && page.contains("# cache-unsafe"),
        "{page}"
    );
    assert!(!page.contains("xml,reported"), "{page}");
    assert_eq!(editor.exit(), Some(0));
}

#[test]
fn all_safe_fixes_are_one_action_that_does_what_lint_fix_does() {
    let place = Place::with(&[]);
    place.write("a.xml", UNSAFE.as_bytes());
    let mut editor = editor(&place, &[]);
    let uri = uri(&place, "a.xml");
    editor.open(&uri, UNSAFE);
    editor.findings(&uri);
    let zero = json!({"line": 0, "character": 0});
    let params = json!({
        "textDocument": {"uri": uri},
        "range": {"start": zero, "end": zero},
        "context": {"diagnostics": [], "only": ["source.fixAll"]},
    });
    let actions = editor.request("textDocument/codeAction", params);
    assert_eq!(actions.as_array().map(Vec::len), Some(1), "{actions}");
    let edit = &actions[0]["edit"]["changes"][&uri][0];
    editor.change(
        &uri,
        2,
        &json!([{"range": edit["range"], "text": edit["newText"]}]),
    );
    let left = editor.findings(&uri);
    place.run(&["lint", "--fix", "a.xml"]);
    editor.change(&uri, 3, &json!([{"text": place.read("a.xml")}]));
    assert_eq!(editor.findings(&uri), left);
    assert!(!rules(&left).contains(&"cache-unsafe"));
}

#[test]
fn a_finding_is_allowed_where_it_is_and_a_reason_is_asked_for() {
    let place = Place::with(&[]);
    let mut editor = editor(&place, &[]);
    let spec = "version: 1\ndisks:\n- qcow2: {path: /a.qcow2}\n  cache: unsafe\n";
    for (name, text) in [("a.xml", UNSAFE), ("a.yaml", spec)] {
        let uri = uri(&place, name);
        editor.open(&uri, text);
        let findings = editor.findings(&uri);
        let found = findings.iter().find(|one| one["code"] == "cache-unsafe");
        let params = json!({
            "textDocument": {"uri": uri},
            "range": found.unwrap()["range"],
            "context": {"diagnostics": [], "only": ["quickfix"]},
        });
        let actions = editor.request("textDocument/codeAction", params);
        let actions = actions.as_array().unwrap();
        let at = actions
            .iter()
            .position(|one| one["title"] == "Allow cache-unsafe here");
        let at = at.unwrap_or_else(|| panic!("{actions:?}"));
        assert!(at > 0 && actions[0]["isPreferred"] == true, "{actions:?}");
        let edit = &actions[at]["edit"]["changes"][&uri][0];
        editor.change(
            &uri,
            2,
            &json!([{"range": edit["range"], "text": edit["newText"]}]),
        );
        let left = editor.findings(&uri);
        assert!(!rules(&left).contains(&"cache-unsafe"), "{left:?}");
        assert!(
            rules(&left).contains(&"allowance-without-reason"),
            "{left:?}"
        );
    }
}

#[test]
fn settings_are_those_of_the_nearest_configuration_and_change_with_it() {
    let place = Place::with(&[]);
    place.write("vmdisk.toml", b"[rules]\ncache-unsafe = \"off\"\n");
    let mut editor = editor(&place, &[]);
    let uri = uri(&place, "a.xml");
    editor.open(&uri, UNSAFE);
    let found = editor.findings(&uri);
    assert!(
        !rules(&found).contains(&"cache-unsafe") && !found.is_empty(),
        "{found:?}"
    );

    place.write("vmdisk.toml", b"[rules]\ncache-unsaef = \"off\"\n");
    editor.notify("workspace/didChangeWatchedFiles", json!({"changes": []}));
    let found = editor.findings(&uri);
    let message = found[0]["message"].as_str().unwrap();
    assert!(
        message.contains("vmdisk.toml:2:1: ") && message.contains("cache-unsafe"),
        "{message}"
    );

    place.write("vmdisk.toml", b"exclude = [\"a.xml\"]\n");
    editor.notify(
        "textDocument/didSave",
        json!({"textDocument": {"uri": uri}}),
    );
    assert!(editor.findings(&uri).is_empty());
    assert!(
        editor
            .log
            .iter()
            .any(|line| line.contains("not checked for lack of facts"))
    );
    assert_eq!(editor.exit(), Some(0));
}

#[test]
fn xml_is_completed_while_it_is_written() {
    let place = Place::with(&[]);
    let mut editor = editor(&place, &["--target", "qemu=7.2,libvirt=9.0"]);
    let uri = "untitled:Untitled-1";
    let text =
        "<domain>\n<devices>\n<disk type='network'>\n<dri\n<source \n<driver cache='\n</disk>";
    editor.open(uri, text);
    let mut at = |line, column| editor.at("textDocument/completion", uri, line, column);
    let elements = at(3, 4);
    assert!(labels(&elements).contains(&"driver") && !labels(&elements).contains(&"disk"));
    let attributes = at(4, 8);
    // Of a network disk, not of a file.
    assert!(labels(&attributes).contains(&"protocol") && !labels(&attributes).contains(&"file"));
    let protocol = item(&attributes, "protocol");
    assert_eq!(protocol["textEdit"]["newText"], "protocol='$1'");
    assert_eq!(protocol["insertTextFormat"], 2);
    let values = at(5, 15);
    assert!(labels(&values).contains(&"writethrough"));

    // Newer than the target: last, and marked.
    editor.change(uri, 2, &json!([{"text": "<disk type='file'><driver \n"}]));
    let driver = editor.at("textDocument/completion", uri, 0, 26);
    let newer = item(&driver, "discard_no_unref");
    assert_eq!(newer["detail"], "libvirt 9.5, QEMU 8.1 (not in the target)");
    assert!(newer["sortText"].as_str() > item(&driver, "queues")["sortText"].as_str());
}

#[test]
fn specs_are_completed_from_their_schema() {
    let place = Place::with(&[]);
    let mut editor = editor(&place, &[]);
    let uri = uri(&place, "a.yaml");
    let text = "version: 1\ndisks:\n- qcow2: {path: /srv/a.qcow2, \n  cache: \n  \nguest:\n  ";
    editor.open(&uri, text);
    let mut at = |line, column| editor.at("textDocument/completion", &uri, line, column);
    let backend = at(2, 31);
    assert!(
        labels(&backend).contains(&"cluster-size"),
        "{:?}",
        labels(&backend)
    );
    // An open brace swallows what follows it.
    editor.change(
        &uri,
        2,
        &json!([{"text": text.replace("qcow2, ", "qcow2}")}]),
    );
    let mut at = |line, column| editor.at("textDocument/completion", &uri, line, column);
    let values = at(3, 9);
    assert!(
        labels(&values).contains(&"writeback"),
        "{:?}",
        labels(&values)
    );
    let keys = at(4, 2);
    let discard = item(&keys, "discard-no-unref");
    assert_eq!(discard["detail"], "libvirt 9.5, QEMU 8.1");
    assert_eq!(discard["textEdit"]["newText"], "discard-no-unref: ");
    assert!(labels(&at(6, 2)).contains(&"vcpus"));
    let hover = at_hover(&mut editor, &uri, 3, 4);
    assert!(
        hover.contains("cache") && hover.contains("driver/@cache"),
        "{hover}"
    );
}

fn at_hover(editor: &mut Editor, uri: &str, line: u32, column: u32) -> String {
    let hover = editor.at("textDocument/hover", uri, line, column);
    hover["contents"]["value"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn command_lines_are_completed_in_both_syntaxes() {
    let place = Place::with(&[]);
    let mut editor = editor(&place, &["--target", "qemu=7.2"]);
    let uri = uri(&place, "a.sh");
    let text = "qemu-system-x86_64 \\\n  -blockdev '{\"driver\":\"qcow2\",\"node-name\":\"a\",\"di\":1}' \\\n  -blockdev driver=file,filename=/a,aio= \\\n  -device virtio-blk-pci,drive=a,num \\\n  -drive file=/b,cache= \\\n  -dev\n";
    editor.open(&uri, text);
    let mut at = |line: u32, text: &str| {
        let column = u32::try_from(text.len()).unwrap();
        editor.at("textDocument/completion", &uri, line, column)
    };
    let json_keys = at(
        1,
        "  -blockdev '{\"driver\":\"qcow2\",\"node-name\":\"a\",\"di",
    );
    assert!(
        labels(&json_keys).contains(&"discard-no-unref"),
        "{:?}",
        labels(&json_keys)
    );
    let newer = item(&json_keys, "discard-no-unref");
    assert_eq!(
        newer["detail"],
        "QEMU 10.0, 11.1, of 5.2, 7.2, 10.0, 11.1 (not in the target)"
    );
    let aio = at(2, "  -blockdev driver=file,filename=/a,aio=");
    assert_eq!(labels(&aio), ["threads", "native", "io_uring"]);
    let property = at(3, "  -device virtio-blk-pci,drive=a,num");
    assert_eq!(
        item(&property, "num-queues")["textEdit"]["newText"],
        "num-queues="
    );
    let cache = at(4, "  -drive file=/b,cache=");
    assert!(
        labels(&cache).contains(&"writethrough"),
        "{:?}",
        labels(&cache)
    );
    let option = at(5, "  -dev");
    assert!(
        labels(&option).contains(&"-device"),
        "{:?}",
        labels(&option)
    );
    let hover = at_hover(&mut editor, &uri, 3, 27);
    assert!(
        hover.contains("**`drive`** of device `virtio-blk-pci`"),
        "{hover}"
    );
    let hover = at_hover(&mut editor, &uri, 1, 34);
    assert!(hover.contains("block driver `qcow2`"), "{hover}");
}

#[test]
fn a_variable_of_a_script_shows_its_value_or_why_it_is_unknown() {
    let place = Place::with(&[]);
    let mut editor = editor(&place, &[]);
    let uri = uri(&place, "a.sh");
    let text = "D=/srv\nfor i in a b; do O+=\" -drive file=$D/$i.img,format=raw,if=virtio\"; done\nqemu-system-x86_64 -hda $1 $O\n";
    editor.open(&uri, text);
    for (line, column, expected) in [
        (1, 35, "`$D` is `/srv`"),
        (1, 38, "`$i` is unknown: line 2 may change it"),
        (2, 25, "`$1` is unknown: it is an argument of the script"),
    ] {
        let hover = at_hover(&mut editor, &uri, line, column);
        assert!(hover.contains(expected), "{hover}");
    }
}

#[test]
fn findings_inside_a_script_stand_where_their_text_is() {
    let place = Place::with(&[]);
    let mut editor = editor(&place, &[]);
    let uri = uri(&place, "b.sh");
    let text = "# ü\nC=unsafe\nadd() { O+=(-drive \"file=$1,format=raw,if=virtio,cahce=none\"); }\n\
        add /srv/a\nread -r F <<< raw\n\
        qemu-system-x86_64 \"${O[@]}\" -drive file=/b,format=$F,if=virtio,cache=$C\n";
    editor.open(&uri, text);
    let found = editor.findings(&uri);
    for (rule, line, word) in [
        ("property-refused", 2, "cahce"),
        ("cache-unsafe", 1, "unsafe"),
    ] {
        let found = found.iter().find(|it| it["code"] == rule).expect(rule);
        let start = text.lines().nth(line).and_then(|it| it.find(word)).unwrap();
        let range = json!({
            "start": {"line": line, "character": start},
            "end": {"line": line, "character": start + word.len()},
        });
        assert_eq!(found["range"], range, "{found}");
        // The disk of `cache-unsafe` is `vdb` beside what the function may add, and the same disk.
        let said = found["message"].as_str().unwrap();
        assert!(!said.contains("the same is true"), "{said}");
    }
}

#[test]
fn foreign_texts_have_no_findings_and_no_proposals() {
    let place = Place::with(&[]);
    let mut editor = editor(&place, &[]);
    let (ours, theirs) = (uri(&place, "a.xml"), uri(&place, "pom.xml"));
    editor.open(
        &theirs,
        "<project cache='unsafe'><driver cache=''/></project>",
    );
    editor.open(&ours, UNSAFE);
    assert!(!editor.findings(&ours).is_empty());
    assert_eq!(
        editor.at("textDocument/completion", &theirs, 0, 39),
        Value::Null
    );
    assert_eq!(editor.at("textDocument/hover", &theirs, 0, 12), Value::Null);
    editor.notify(
        "textDocument/didClose",
        json!({"textDocument": {"uri": ours}}),
    );
    assert!(
        editor.findings(&ours).is_empty(),
        "findings of a closed document are removed"
    );
    assert_eq!(editor.exit(), Some(0));
}

#[test]
fn hostile_messages_and_positions_end_nothing() {
    let place = Place::with(&[]);
    let mut editor = editor(&place, &[]);
    let uri = uri(&place, "a.xml");
    editor.send(b"Content-Length: 4\r\n\r\n\xff\xfe{}");
    editor.send(b"Content-Length: 2\r\n\r\n[]");
    editor.notify("textDocument/didOpen", json!({"textDocument": 7}));
    editor.notify(
        "textDocument/didChange",
        json!({"textDocument": {"uri": "x", "version": 1}, "contentChanges": []}),
    );
    editor.open(&uri, UNSAFE);
    editor.findings(&uri);
    let far = json!({"line": u32::MAX, "character": u32::MAX});
    let zero = json!({"line": 0, "character": 0});
    for (version, (start, end)) in (2..).zip([(&far, &far), (&far, &zero), (&zero, &far)]) {
        editor.change(
            &uri,
            version,
            &json!([{"range": {"start": start, "end": end}, "text": "\u{1f4be}<"}]),
        );
        for method in ["textDocument/hover", "textDocument/completion"] {
            for (line, column) in [(u32::MAX, 0), (0, u32::MAX), (0, 1), (1, 0)] {
                editor.at(method, &uri, line, column);
            }
        }
    }
    let id = editor.ask("textDocument/rename", json!({}));
    assert_eq!(editor.answer(id)["error"]["code"], -32601);
    let id = editor.ask("textDocument/hover", json!({"textDocument": []}));
    assert_eq!(editor.answer(id)["error"]["code"], -32602);
    let id = editor.ask("initialize", json!({}));
    assert_eq!(editor.answer(id)["error"]["code"], -32600);
    assert!(
        editor.log.iter().any(|line| line.contains("malformed")),
        "{:?}",
        editor.log
    );
    assert_eq!(editor.exit(), Some(0));
}

#[test]
fn a_stream_that_is_not_the_protocol_fails() {
    let place = Place::with(&[]);
    let program = Path::new(crate::program());
    for (bytes, code) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], 2),
        (b"Content-Length: 99999999999999999\r\n\r\n", 2),
        // The editor died.
        (b"", 1),
    ] {
        let mut editor = Editor::start_raw(program, &[], &place.path(""));
        editor.send(bytes);
        assert_eq!(editor.wait(), Some(code));
    }
    let mut editor = Editor::start_raw(program, &[], &place.path(""));
    let id = editor.ask("textDocument/hover", json!({}));
    assert_eq!(editor.answer(id)["error"]["code"], -32002);
}

#[test]
fn a_very_large_document_is_edited_and_a_cancelled_request_is_not_answered_late() {
    let place = Place::with(&[]);
    let mut editor = editor(&place, &[]);
    let uri = uri(&place, "a.xml");
    let mut text = UNSAFE.replace("</disk>", "");
    text.push_str("<!--");
    text.push_str(&"\u{e9}\n".repeat(10 * 1024 * 1024 / 3));
    text.push_str("--></disk>\n");
    editor.open(&uri, &text);
    // The first one keeps the server busy, so the second waits in the queue.
    let position = json!({"textDocument": {"uri": uri}, "position": {"line": 1, "character": 50}});
    let first = editor.ask("textDocument/hover", position.clone());
    let second = editor.ask("textDocument/hover", position);
    editor.notify("$/cancelRequest", json!({"id": second}));
    let answer = editor.answer(first);
    assert!(
        answer["result"]["contents"]["value"].is_string(),
        "{answer}"
    );
    // It is cancelled, or was answered before the cancellation was read.
    let answer = editor.answer(second);
    assert!(
        answer["error"]["code"] == -32800 || answer["result"].is_object(),
        "{answer}"
    );
    let zero = json!({"line": 0, "character": 0});
    editor.change(
        &uri,
        2,
        &json!([{"range": {"start": zero, "end": zero}, "text": "<!--x-->"}]),
    );
    assert!(rules(&editor.findings(&uri)).contains(&"cache-unsafe"));
    assert_eq!(editor.exit(), Some(0));
}
