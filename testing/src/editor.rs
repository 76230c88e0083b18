//! An editor without a screen: it starts `vmdisk lsp` and speaks the Language Server Protocol with it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Value, json};

/// How long the server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A session with a server.
#[derive(Debug)]
pub struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    requests: u64,
    /// The latest findings of each document that were not taken.
    findings: BTreeMap<String, Value>,
    /// Answers that were not taken, by the ids of their requests.
    answers: BTreeMap<u64, Value>,
    /// Texts of `window/logMessage`.
    pub log: Vec<String>,
}

impl Editor {
    /// Starts `program lsp` with these arguments in a folder, and initializes the session.
    pub fn start(program: &Path, arguments: &[&str], folder: &Path) -> Self {
        let mut editor = Editor::start_raw(program, arguments, folder);
        let capabilities = json!({
            "textDocument": {"completion": {"completionItem": {"snippetSupport": true}}},
            "workspace": {"didChangeWatchedFiles": {"dynamicRegistration": true}},
        });
        let params = json!({"processId": null, "rootUri": null, "capabilities": capabilities});
        let result = editor.request("initialize", params);
        assert_eq!(
            result["capabilities"]["textDocumentSync"]["change"], 2,
            "{result}"
        );
        editor.notify("initialized", json!({}));
        editor
    }

    /// Starts it without a message.
    pub fn start_raw(program: &Path, arguments: &[&str], folder: &Path) -> Self {
        let mut child = Command::new(program)
            .arg("lsp")
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let output = child.stdout.take().expect("it is piped");
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Editor {
            input: child.stdin.take(),
            child,
            messages,
            requests: 0,
            findings: BTreeMap::new(),
            answers: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    /// Sends bytes unchanged.
    pub fn send(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the session is open");
        input
            .write_all(bytes)
            .and_then(|()| input.flush())
            .expect("the server reads");
    }

    /// Sends a message.
    pub fn post(&mut self, message: &Value) {
        let text = message.to_string();
        self.send(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.post(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and returns its id.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        self.post(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request and returns its result.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The answer to a request: its result, or its error.
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            self.next();
        }
    }

    /// Opens a document.
    pub fn open(&mut self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "xml", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Changes a document.
    pub fn change(&mut self, uri: &str, version: i32, changes: &Value) {
        let document = json!({"uri": uri, "version": version});
        let params = json!({"textDocument": document, "contentChanges": changes});
        self.notify("textDocument/didChange", params);
    }

    /// A request about a place, such as `textDocument/hover`.
    pub fn at(&mut self, method: &str, uri: &str, line: u32, character: u32) -> Value {
        let position = json!({"line": line, "character": character});
        self.request(
            method,
            json!({"textDocument": {"uri": uri}, "position": position}),
        )
    }

    /// The next findings that are published for a document.
    pub fn findings(&mut self, uri: &str) -> Vec<Value> {
        loop {
            if let Some(found) = self.findings.remove(uri) {
                return found.as_array().cloned().unwrap_or_default();
            }
            self.next();
        }
    }

    /// Ends the session as the protocol asks, and returns the exit status.
    pub fn exit(mut self) -> Option<i32> {
        self.request("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        self.wait()
    }

    /// Closes the stream, and returns the exit status.
    pub fn wait(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().expect("the server ends").code()
    }

    /// Receives a message and keeps it if it is of use.
    fn next(&mut self) {
        let message = self
            .messages
            .recv_timeout(TIMEOUT)
            .expect("the server answers");
        match (message["method"].as_str(), message["id"].as_u64()) {
            (Some("textDocument/publishDiagnostics"), _) => {
                let params = &message["params"];
                let uri = params["uri"].as_str().unwrap_or_default().to_owned();
                self.findings.insert(uri, params["diagnostics"].clone());
            }
            (Some("window/logMessage"), _) => {
                let text = message["params"]["message"].as_str();
                self.log.push(text.unwrap_or_default().to_owned());
            }
            (None, Some(id)) => {
                self.answers.insert(id, message);
            }
            _ => {}
        }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // A failed test leaves no server behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a message; `None` at the end.
fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(number) = line.strip_prefix("Content-Length: ") {
            length = number.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
