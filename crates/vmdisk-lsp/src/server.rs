//! The life of a session: requests, notifications and their order.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{
    CodeActionKind, CodeActionParams, CompletionParams, DidChangeTextDocumentParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, HoverParams, PublishDiagnosticsParams,
    TextDocumentPositionParams, TextDocumentSyncKind, Uri,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::connection::{Incoming, Queue};
use crate::documents::{Documents, Open};
use crate::file_settings::FileSettings;
use crate::{actions, completion, hover};

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// True if the editor sent `shutdown` before `exit`, as the protocol asks.
    pub is_orderly: bool,
}

/// Serves an editor until it sends `exit` or closes the stream. Findings are published when no message waits.
///
/// # Errors
/// If the streams fail, or the input is not the protocol. A malformed message is skipped, and the editor logs it.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write,
    settings: &mut dyn FileSettings,
) -> io::Result<SessionEnd> {
    let mut queue = Queue::read(input)?;
    let mut server = Server {
        output,
        settings,
        documents: Documents::default(),
        state: State::New,
        has_snippets: false,
        watches: false,
    };
    loop {
        server.cancel(&mut queue)?;
        if !queue.has_more() {
            server.publish()?;
        }
        let Some(incoming) = queue.next() else {
            return Ok(SessionEnd { is_orderly: false });
        };
        match incoming {
            Incoming::Message(Message::Request(request)) => server.request(request)?,
            Incoming::Message(Message::Notification(it)) if it.method == "exit" => {
                let is_orderly = server.state == State::ShutDown;
                return Ok(SessionEnd { is_orderly });
            }
            Incoming::Message(Message::Notification(it)) => server.notification(it)?,
            // Of the requests that this server makes, no answer matters.
            Incoming::Message(Message::Response(_)) => {}
            Incoming::Malformed(why) => {
                server.log(&format!("skipped a malformed message: {why}"))?
            }
            Incoming::Broken(error) => return Err(error),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Running,
    ShutDown,
}

struct Server<'w, W> {
    output: W,
    settings: &'w mut dyn FileSettings,
    documents: Documents,
    state: State,
    /// True if the editor fills in snippets.
    has_snippets: bool,
    /// True if the editor watches files on request.
    watches: bool,
}

/// The answer to a request.
type Answer = Result<Value, (ErrorCode, String)>;

impl<W: Write> Server<'_, W> {
    fn request(&mut self, Request { id, method, params }: Request) -> io::Result<()> {
        let answer = match (self.state, method.as_str()) {
            (State::New, "initialize") => Ok(self.initialize(&params)),
            (State::New, _) => Err((
                ErrorCode::ServerNotInitialized,
                "expected `initialize` first".to_owned(),
            )),
            (State::ShutDown, _) | (State::Running, "initialize") => Err((
                ErrorCode::InvalidRequest,
                format!("`{method}` is not expected now"),
            )),
            (State::Running, "shutdown") => {
                self.state = State::ShutDown;
                Ok(Value::Null)
            }
            (State::Running, _) => {
                let ask = AssertUnwindSafe(|| self.ask(&method, params));
                catch_unwind(ask).unwrap_or_else(|_| {
                    // What it found so far may be half of a result.
                    self.documents.forget();
                    Err((ErrorCode::InternalError, a_bug("could not be answered")))
                })
            }
        };
        let response = match answer {
            Ok(result) => Response::new_ok(id, result),
            Err((code, message)) => Response::new_err(id, code as i32, message),
        };
        Message::Response(response).write(&mut self.output)
    }

    fn ask(&mut self, method: &str, params: Value) -> Answer {
        match method {
            "textDocument/codeAction" => {
                let params: CodeActionParams = read(params)?;
                let settings = &mut *self.settings;
                let uri = params.text_document.uri.as_ref();
                let open = checked(&mut self.documents, uri, settings);
                Ok(json!(
                    open.map(|open| actions::actions(open, &params, settings))
                ))
            }
            "textDocument/hover" => {
                let HoverParams {
                    text_document_position_params: at,
                    ..
                } = read(params)?;
                let settings = &mut *self.settings;
                let open = checked(&mut self.documents, at.text_document.uri.as_ref(), settings);
                Ok(json!(open.and_then(|open| hover::hover(open, at.position))))
            }
            "textDocument/completion" => {
                let CompletionParams {
                    text_document_position_params: at,
                    ..
                } = read(params)?;
                Ok(json!(self.complete(&at)))
            }
            _ => Err((
                ErrorCode::MethodNotFound,
                format!("unknown request `{method}`"),
            )),
        }
    }

    fn complete(&mut self, at: &TextDocumentPositionParams) -> Option<lsp_types::CompletionList> {
        let open = self.documents.get_mut(at.text_document.uri.as_ref())?;
        let target = self.settings.target(&open.path);
        let offset = open.text.offset(at.position);
        let found = completion::complete(&open.path, open.text.as_str(), offset, &target)?;
        Some(found.to_list(&open.text, self.has_snippets))
    }

    fn initialize(&mut self, params: &Value) -> Value {
        let is_true = |pointer: &str| params.pointer(pointer) == Some(&Value::Bool(true));
        self.has_snippets =
            is_true("/capabilities/textDocument/completion/completionItem/snippetSupport");
        self.watches = is_true("/capabilities/workspace/didChangeWatchedFiles/dynamicRegistration");
        self.state = State::Running;
        json!({
            "capabilities": capabilities(),
            "serverInfo": { "name": "vmdisk", "version": env!("CARGO_PKG_VERSION") },
        })
    }

    fn notification(&mut self, Notification { method, params }: Notification) -> io::Result<()> {
        if self.state != State::Running {
            return Ok(());
        }
        let done = match method.as_str() {
            "initialized" => return self.watch(),
            "textDocument/didOpen" => read(params).map(|params: DidOpenTextDocumentParams| {
                let it = params.text_document;
                self.documents.open(it.uri.0, it.version, it.text);
            }),
            "textDocument/didChange" => read(params).map(|params: DidChangeTextDocumentParams| {
                let it = params.text_document;
                let uri = it.text_document_identifier.uri;
                self.documents
                    .change(uri.as_ref(), it.version, params.content_changes);
            }),
            "textDocument/didClose" => match read::<DidCloseTextDocumentParams>(params) {
                Ok(params) => return self.close(params.text_document.uri.as_ref()),
                Err(error) => Err(error),
            },
            // A configuration or a facts file may have been saved.
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => {
                self.documents.forget();
                Ok(())
            }
            _ => Ok(()),
        };
        match done {
            Ok(()) => Ok(()),
            Err((_, why)) => self.log(&format!("skipped `{method}`: {why}")),
        }
    }

    fn close(&mut self, uri: &str) -> io::Result<()> {
        match self.documents.close(uri) {
            Some(open) if open.has_findings => self.notify(
                "textDocument/publishDiagnostics",
                &PublishDiagnosticsParams {
                    uri: Uri(open.uri),
                    version: None,
                    diagnostics: Vec::new(),
                },
            ),
            Some(_) | None => Ok(()),
        }
    }

    /// Asks the editor for a notification when a configuration changes.
    fn watch(&mut self) -> io::Result<()> {
        if !self.watches {
            return Ok(());
        }
        let params = json!({"registrations": [{
            "id": "configuration",
            "method": "workspace/didChangeWatchedFiles",
            "registerOptions": {"watchers": [{"globPattern": "**/vmdisk.toml"}]},
        }]});
        let id = RequestId::from("watch".to_owned());
        let request = Request::new(id, "client/registerCapability".to_owned(), params);
        Message::Request(request).write(&mut self.output)
    }

    /// Checks every document that changed, and publishes its findings.
    fn publish(&mut self) -> io::Result<()> {
        let mut messages = Vec::new();
        for open in self.documents.unpublished() {
            let found = open.check(self.settings);
            let said = unchecked(&found.not_checked);
            let diagnostics: Vec<_> = found
                .findings
                .iter()
                .map(|found| found.diagnostic.clone())
                .collect();
            if open.has_findings || !diagnostics.is_empty() {
                open.has_findings = !diagnostics.is_empty();
                let params = PublishDiagnosticsParams {
                    uri: Uri(open.uri.clone()),
                    version: Some(open.version),
                    diagnostics,
                };
                messages.push(("textDocument/publishDiagnostics", json!(params)));
            }
            if said != open.said && !said.is_empty() {
                let message = format!("{}: {said}", open.path.display());
                messages.push(("window/logMessage", json!({"type": 3, "message": message})));
            }
            open.said = said;
            open.is_published = true;
        }
        for (method, params) in messages {
            self.notify(method, &params)?;
        }
        Ok(())
    }

    /// Answers requests that were cancelled before their turn.
    fn cancel(&mut self, queue: &mut Queue) -> io::Result<()> {
        for cancellation in queue.take_cancellations() {
            let id = cancellation.params.get("id").cloned();
            let id = id.and_then(|id| serde_json::from_value::<RequestId>(id).ok());
            if let Some(request) = id.and_then(|id| queue.cancel(&id)) {
                let code = ErrorCode::RequestCanceled as i32;
                let response = Response::new_err(request.id, code, "cancelled".to_owned());
                Message::Response(response).write(&mut self.output)?;
            }
        }
        Ok(())
    }

    fn log(&mut self, message: &str) -> io::Result<()> {
        self.notify("window/logMessage", &json!({"type": 2, "message": message}))
    }

    fn notify(&mut self, method: &str, params: &impl serde::Serialize) -> io::Result<()> {
        let notification = Notification::new(method.to_owned(), params);
        Message::Notification(notification).write(&mut self.output)
    }
}

/// An open document with the result for its text.
fn checked<'d>(
    documents: &'d mut Documents,
    uri: &str,
    settings: &mut dyn FileSettings,
) -> Option<&'d Open> {
    let open = documents.get_mut(uri)?;
    open.check(settings);
    Some(open)
}

/// The message about rules that lack facts.
fn unchecked(rules: &[&str]) -> String {
    match rules {
        [] => String::new(),
        rules => format!(
            "not checked for lack of facts or versions: {}; name them in vmdisk.toml",
            rules.join(", ")
        ),
    }
}

/// The message about what panicked.
fn a_bug(what: &str) -> String {
    format!(
        "{what} because of a bug in vmdisk; please report it at {}/issues",
        env!("CARGO_PKG_REPOSITORY")
    )
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, (ErrorCode, String)> {
    serde_json::from_value(params).map_err(|error| (ErrorCode::InvalidParams, error.to_string()))
}

/// The capabilities of the server. They are plain JSON: the types of the protocol would bring 60 KB for its other providers.
fn capabilities() -> Value {
    json!({
        "textDocumentSync": {
            "openClose": true,
            "change": TextDocumentSyncKind::Incremental,
            "save": true,
        },
        "hoverProvider": true,
        "completionProvider": { "triggerCharacters": ["<", " ", "'", "\"", "=", ","] },
        "codeActionProvider": { "codeActionKinds": [CodeActionKind::QuickFix, actions::FIX_ALL] },
    })
}

#[cfg(test)]
mod tests {
    use lsp_types::{
        CodeActionOptions, CompletionOptions, Save, ServerCapabilities, TextDocumentSyncOptions,
    };

    use super::*;

    #[test]
    fn the_capabilities_are_those_of_the_protocol() {
        let typed = ServerCapabilities {
            text_document_sync: Some(
                TextDocumentSyncOptions {
                    open_close: Some(true),
                    change: Some(TextDocumentSyncKind::Incremental),
                    save: Some(Save::Bool(true)),
                    ..TextDocumentSyncOptions::default()
                }
                .into(),
            ),
            hover_provider: Some(true.into()),
            completion_provider: Some(CompletionOptions {
                trigger_characters: Some(["<", " ", "'", "\"", "=", ","].map(str::to_owned).into()),
                ..CompletionOptions::default()
            }),
            code_action_provider: Some(
                CodeActionOptions {
                    code_action_kinds: Some(vec![
                        CodeActionKind::QuickFix,
                        CodeActionKind::new(actions::FIX_ALL),
                    ]),
                    ..CodeActionOptions::default()
                }
                .into(),
            ),
            ..ServerCapabilities::default()
        };
        assert_eq!(json!(typed), capabilities());
    }
}
