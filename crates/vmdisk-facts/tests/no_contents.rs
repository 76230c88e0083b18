//! A path that leads to another file than one of facts: its contents are not repeated.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use vmdisk_facts::Facts;

#[test]
fn no_error_repeats_what_is_in_the_file() {
    let secret = "hunter2-correct-horse";
    for text in [
        format!("root:x:0:0:{secret}:/root:/bin/sh\nnobody:x\n"),
        format!("{secret}\n"),
        format!("- {secret}\n"),
        format!("\"{secret}\""),
        format!("{secret}: 1\n"),
        format!("{{\"password\": \"{secret}\"}}"),
        format!("files: {secret}\n"),
        format!("files: [{secret}]\n"),
        format!("kernel: {{version: {secret}}}\n"),
        format!("schema_version: {secret}\n"),
        format!("memory: {secret}\n"),
        format!("[{secret}"),
        format!("{{\"a\": {secret}}}"),
    ] {
        let error = Facts::parse(&text).expect_err(&text).to_string();
        assert!(!error.contains(secret), "{text}: {error}");
    }
}
