//! No text that can be typed stops the server.

#[path = "support/session.rs"]
mod session;

use std::path::Path;

use proptest::prelude::*;
use serde_json::json;
use session::{Defaults, FILES, Messages, check, check_text};
use vmdisk::{Document, LintReport, Target};
use vmdisk_lsp::{FileSettings, SettingsError};

/// A document of each kind in [`FILES`].
const DOCUMENTS: [&str; 3] = [
    "<disk type='file' device='disk'>\n  <driver name='qemu' type='raw' cache='unsafe'/>\n  \
     <source file='rel.img'/>\n  <target dev='vda' bus='virtio'/>\n</disk>\n",
    "qemu-system-x86_64 -machine q35 \\\n  -blockdev driver=file,node-name=a,filename=/a.img \\\n  \
     -device '{\"driver\":\"virtio-blk-pci\",\"drive\":\"a\"}' -drive file=b.img,cache=unsafe\n",
    "version: 1\nguest: {name: a, memory: 1G}\ndisks:\n  - raw: {path: /a.img}\n    bus: virtio\n  \
     - qcow2:\n      path: /b.qcow2\n    cache: unsafe\n",
];

/// Characters of more than one byte or code unit, blanks that are not spaces, and those with a meaning.
const TYPED: &str =
    "[ü\u{a0}\u{3000}\u{1f4be}\u{301}\u{feff}\u{2028}\r\n\t :,=\\-'\"<>{}\\[\\]/#&$a]{0,8}";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_text_typed_anywhere_has_answers_at_every_position(
        kind in 0..FILES.len(),
        typed in prop::collection::vec((any::<prop::sample::Index>(), TYPED), 1..4),
        has_crlf in any::<bool>(),
    ) {
        let mut text: Vec<char> = DOCUMENTS[kind].chars().collect();
        for (at, typed) in typed {
            let at = at.index(text.len() + 1);
            text.splice(at..at, typed.chars());
        }
        let mut text: String = text.into_iter().collect();
        if has_crlf {
            text = text.replace('\n', "\r\n");
        }
        check_text(FILES[kind], &text);
    }

    #[test]
    fn any_bytes_have_answers(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        check(&bytes);
    }
}

#[test]
fn each_character_is_typed_in_each_place_of_a_spec() {
    let text = "version: 1\ndisks:\n  - raw: {path: /a}\n    bus: x\n";
    for (nth, _) in text.char_indices() {
        let (before, after) = text.split_at(nth);
        check_text("a.yaml", &format!("{before}ü\u{a0}{after}"));
    }
}

/// Settings with a bug.
struct Panics;

impl FileSettings for Panics {
    fn lint(
        &mut self,
        path: &Path,
        document: Document,
    ) -> Result<Option<(Document, LintReport)>, SettingsError> {
        Defaults.lint(path, document)
    }

    fn fix(&mut self, _: &Path, _: &str) -> Option<String> {
        None
    }

    fn target(&mut self, _: &Path) -> Target {
        panic!("a bug, on purpose")
    }
}

#[test]
fn a_request_that_panics_has_an_error_and_the_session_goes_on() {
    let mut messages = Messages::default();
    let uri = "file:///srv/a.xml";
    messages.request("initialize", json!({"capabilities": {}}));
    let opened = json!({"uri": uri, "version": 1, "languageId": "", "text": DOCUMENTS[0]});
    messages.notify("textDocument/didOpen", json!({"textDocument": opened}));
    let at = json!({"textDocument": {"uri": uri}, "position": {"line": 1, "character": 38}});
    messages.request("textDocument/completion", at.clone());
    messages.request("textDocument/hover", at);
    let said = messages.served(&mut Panics);
    let answer = |id: u32| {
        let id = format!("\"id\":{id},");
        said.iter().find(|message| message.contains(&id)).unwrap()
    };
    assert!(answer(1).contains("\"code\":-32603,"), "{said:?}");
    assert!(answer(2).contains("cache"), "{said:?}");
}
