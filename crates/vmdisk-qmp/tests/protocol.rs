//! The protocol with a scripted peer, and programs that are not QEMU.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails like the test itself"
)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use vmdisk_facts::Version;
use vmdisk_qmp::{Client, Launch, QmpError};

const GREETING: &str = r#"{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7},
    "package": " (Debian 1)"}, "capabilities": ["oob"]}}"#;
const READY: &str = r#"{"return": {}, "id": 1}"#;

/// Writes the first text, then the next text after each received line; returns the lines.
fn serve(stream: UnixStream, texts: Vec<String>) -> Vec<Value> {
    let mut writer = stream.try_clone().unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut asked = Vec::new();
    for (nth, text) in texts.iter().enumerate() {
        if nth > 0 {
            let Some(Ok(line)) = lines.next() else { break };
            asked.push(serde_json::from_str(&line).unwrap());
        }
        // The client may be gone.
        let _ = writer.write_all(text.as_bytes());
    }
    asked
}

/// Returns a client whose peer sends a greeting and then answers each command with one of these texts.
fn client(answers: &[&str]) -> (Client, JoinHandle<Vec<Value>>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut texts = vec![GREETING.replace('\n', "") + "\r\n", format!("{READY}\r\n")];
    texts.extend(answers.iter().map(|text| (*text).to_owned()));
    let peer = std::thread::spawn(move || serve(theirs, texts));
    (Client::over(ours, Duration::from_secs(20)).unwrap(), peer)
}

/// Returns the error for a first text that is not a greeting.
fn greeted_with(text: &str) -> QmpError {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let text = text.to_owned();
    std::thread::spawn(move || serve(theirs, vec![text]));
    Client::over(ours, Duration::from_secs(20)).unwrap_err()
}

#[test]
fn a_greeting_contains_the_version_and_the_package() {
    let (client, peer) = client(&[]);
    assert_eq!(client.greeting().version, Version(7, 2, 22));
    assert_eq!(client.greeting().package, "Debian 1");
    drop(client);
    let asked = peer.join().unwrap();
    assert_eq!(asked[0]["execute"], "qmp_capabilities");
}

#[test]
fn answers_are_matched_to_commands_among_events_and_late_answers() {
    let (mut client, peer) = client(&[
        "{\"event\": \"STOP\", \"data\": {\"a\": 1}}\r\n{\"return\": \"late\", \"id\": 77}\r\n\r\n{\"return\": [1], \"id\": 2}\n",
        "{\"error\": {\"class\": \"GenericError\", \"desc\": \"no such node\"}, \"id\": 3}\n{\"event\": \"RESUME\"}\n",
    ]);
    assert_eq!(client.ask("query", json!({ "x": 1 })).unwrap(), json!([1]));
    let refused = client.ask("blockdev-del", json!({})).unwrap_err();
    assert_eq!(refused.to_string(), "blockdev-del: no such node");
    assert!(matches!(refused, QmpError::Refused { class, .. } if class == "GenericError"));
    let mut name = || {
        client
            .next_event(Duration::from_millis(200))
            .unwrap()
            .map(|event| event.name)
    };
    assert_eq!(name().as_deref(), Some("STOP"));
    assert_eq!(name().as_deref(), Some("RESUME"));
    let asked = peer.join().unwrap();
    assert_eq!(asked[1]["arguments"], json!({ "x": 1 }));
}

#[test]
fn a_timeout_ends_the_wait_and_the_next_command_gets_its_answer() {
    let (mut client, _peer) = client(&[
        "",
        "{\"return\": \"late\", \"id\": 2}\n{\"return\": \"mine\", \"id\": 3}\n",
    ]);
    client.set_timeout(Duration::from_millis(50));
    let begun = Instant::now();
    let late = client.ask("query-slow", json!({})).unwrap_err();
    assert_eq!(
        late.to_string(),
        "no answer to query-slow within 0.05 seconds"
    );
    assert!(begun.elapsed() < Duration::from_secs(10));
    client.set_timeout(Duration::from_secs(20));
    assert_eq!(client.ask("query-quick", json!({})).unwrap(), json!("mine"));
}

#[test]
fn a_peer_without_qmp_is_an_error() {
    for text in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "{}\n",
        "{\"QMP\": {\"version\": {\"qemu\": {\"major\": -1, \"minor\": 0, \"micro\": 0}}}}\n",
        "[\"\u{1b}[31m\n",
    ] {
        let error = greeted_with(text);
        assert!(matches!(error, QmpError::NotQmp(_)), "{text:?}: {error}");
        assert!(!error.to_string().contains('\u{1b}'), "{error}");
    }
    let error = greeted_with("{\"QMP\":");
    assert!(matches!(error, QmpError::Ended { .. }), "{error}");
}

#[test]
fn a_missing_or_silent_socket_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("qmp.sock");
    let error = Client::connect(&path, Duration::from_millis(50)).unwrap_err();
    assert!(
        error.to_string().starts_with(&format!(
            "could not connect to QMP socket {}: ",
            path.display()
        )),
        "{error}"
    );
    let _listener = UnixListener::bind(&path).unwrap();
    let error = Client::connect(&path, Duration::from_millis(50)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no answer to the greeting within 0.05 seconds"
    );
    let long = folder.path().join("x".repeat(200));
    assert!(matches!(
        Client::connect(&long, Duration::ZERO),
        Err(QmpError::Connect { .. })
    ));
}

#[test]
fn a_program_that_is_not_qemu_is_an_error_with_its_output() {
    let missing = Launch::paused("vmdisk-no-such-program")
        .start()
        .unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("could not start vmdisk-no-such-program: "),
        "{missing}"
    );
    let refusing = Launch::running("sh")
        .arg("-c")
        .arg("true")
        .start()
        .unwrap_err();
    let QmpError::Ended { status, stderr } = &refusing else {
        panic!("{refusing:?}");
    };
    // The shell interprets our first option as its own, and fails.
    assert!(status.is_some_and(|status| !status.success()), "{refusing}");
    assert!(!stderr.is_empty() && refusing.stderr() == stderr);
}

#[test]
fn a_silent_program_is_killed_after_the_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("silent");
    vmdisk_testing::write_program(
        &script,
        "#!/bin/sh\necho I am thinking >&2\necho $$ > \"$0.pid\"\nexec sleep 600\n",
    );
    let begun = Instant::now();
    let error = Launch::running(&script)
        .timeout(Duration::from_millis(700))
        .start()
        .unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(
        error.to_string(),
        "no answer to the greeting within 0.7 seconds; QEMU wrote: I am thinking"
    );
    let process = std::fs::read_to_string(folder.path().join("silent.pid")).unwrap();
    assert!(
        !std::path::Path::new("/proc").join(process.trim()).exists(),
        "it is still there"
    );
}
