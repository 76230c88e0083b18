//! A session about any text: each request at each position has an answer.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use vmdisk::{Document, FixScope, LintOptions, LintReport, Target};
use vmdisk_lsp::{FileSettings, SettingsError, serve};

/// Names of files of each language.
pub(crate) const FILES: [&str; 3] = ["a.xml", "a.args", "a.yaml"];

/// The most positions that are asked about.
const MAX_POSITIONS: usize = 64;

/// The default settings for every file.
pub(crate) struct Defaults;

impl FileSettings for Defaults {
    fn lint(
        &mut self,
        _: &Path,
        document: Document,
    ) -> Result<Option<(Document, LintReport)>, SettingsError> {
        let report = vmdisk::lint(&document, &LintOptions::default());
        Ok(Some((document, report)))
    }

    fn fix(&mut self, _: &Path, text: &str) -> Option<String> {
        let fixed = vmdisk::fix(text, &LintOptions::default(), FixScope::Safe).ok()?;
        Some(fixed.document.text.to_string())
    }

    fn target(&mut self, _: &Path) -> Target {
        Target::default()
    }
}

/// Messages as an editor sends them.
#[derive(Default)]
pub(crate) struct Messages {
    bytes: String,
    requests: usize,
}

impl Messages {
    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let _ = write!(self.bytes, "Content-Length: {}\r\n\r\n{body}", body.len());
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) {
        let id = self.requests;
        self.requests += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// The answers and notifications of a server.
    pub(crate) fn served(self, settings: &mut dyn FileSettings) -> Vec<String> {
        let mut output = Vec::new();
        let input = std::io::Cursor::new(self.bytes.into_bytes());
        serve(input, &mut output, settings).expect("the messages are well-formed");
        let mut rest = std::str::from_utf8(&output).expect("JSON is UTF-8");
        let mut found = Vec::new();
        while !rest.is_empty() {
            let (header, body) = rest.split_once("\r\n\r\n").expect("a header and a body");
            let length = header.strip_prefix("Content-Length: ");
            let length = length.and_then(|length| length.parse().ok());
            let (body, after) = body.split_at(length.expect("a length"));
            found.push(body.to_owned());
            rest = after;
        }
        found
    }
}

/// A file whose kind is the first byte, typed at once and then again in the middle.
///
/// # Panics
/// If a request has no answer, or one that a bug prevents.
pub(crate) fn check(input: &[u8]) {
    let Some((kind, text)) = input.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    check_text(FILES[usize::from(*kind) % FILES.len()], &text);
}

/// As [`check`], of a text in a file of this name.
///
/// # Panics
/// As [`check`].
pub(crate) fn check_text(file: &str, text: &str) {
    let uri = format!("file:///srv/{file}");
    let document = json!({"uri": uri});
    let mut messages = Messages::default();
    messages.request("initialize", json!({"capabilities": {}}));
    let opened = json!({"uri": uri, "version": 1, "languageId": "", "text": text});
    messages.notify("textDocument/didOpen", json!({"textDocument": opened}));
    let positions = positions(text);
    for position in &positions {
        let at = json!({"textDocument": document, "position": position});
        messages.request("textDocument/completion", at.clone());
        messages.request("textDocument/hover", at);
        let range = json!({"start": position, "end": positions[0]});
        messages.request(
            "textDocument/codeAction",
            json!({"textDocument": document, "range": range, "context": {"diagnostics": []}}),
        );
    }
    let middle = &positions[positions.len() / 2];
    let typed: String = text.chars().rev().take(40).collect();
    let change = json!({"range": {"start": middle, "end": positions[0]}, "text": typed});
    let changed = json!({"uri": uri, "version": 2});
    messages.notify(
        "textDocument/didChange",
        json!({"textDocument": changed, "contentChanges": [change]}),
    );
    let at = json!({"textDocument": document, "position": middle});
    messages.request("textDocument/completion", at.clone());
    messages.request("textDocument/hover", at);
    messages.request("shutdown", Value::Null);
    let requests = messages.requests;
    messages.notify("exit", Value::Null);
    let said = messages.served(&mut Defaults);
    for message in &said {
        let is_bug = message.contains("bug in vmdisk");
        assert!(!is_bug, "{message} about {text:?}");
    }
    // Only answers begin so.
    let answers = said
        .iter()
        .filter(|message| message.contains("\"result\":"));
    assert_eq!(answers.count(), requests, "{text:?}");
}

/// Positions in a text, in code units as the protocol counts them, also inside characters and line ends.
fn positions(text: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for (nth, line) in text.split('\n').enumerate() {
        let units = line.encode_utf16().count();
        all.extend((0..=units).map(|unit| json!({"line": nth, "character": unit})));
    }
    let step = all.len().div_ceil(MAX_POSITIONS);
    // The end is where somebody types.
    all.into_iter().rev().step_by(step).collect()
}
