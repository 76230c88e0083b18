//! The playground in a browser, from a file in a sub-folder.

use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk::calls::{self, CallOptions};
use vmdisk_testing::{installed, needed};

use crate::built;

/// How long a browser may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Types a disk with a mistake, applies the fix of its finding, takes the link, and opens it.
const PROBE: &str = r#"<script>
addEventListener("load", async () => {
  const wait = async (is) => { for (let n = 0; n < 2000 && !is(); n += 1) await new Promise((then) => setTimeout(then, 25)); };
  const said = [];
  const seen = () => [...document.querySelectorAll("article")].map((it) => it.innerText).join("\n");
  try {
    await ready;
    const TEXT = "<disk type='file'>\n <driver name='qemu' type='raw' cache='unsafe'/>\n <source file='/é.img'/>\n <target dev='vda' bus='virtio'/>\n</disk>";
    field.focus();
    field.select();
    for (const letter of TEXT) document.execCommand("insertText", false, letter);
    said.push("typed " + (field.value === TEXT), "found " + seen().includes("cache-unsafe"));
    said.push("marked " + document.querySelector("mark.error")?.textContent);
    const rules = (report) => JSON.stringify(report.findings.map(({ rule }) => rule));
    said.push("report " + rules(vmdisk.lint(TEXT)));
    [...document.querySelectorAll("article")].find((it) => it.innerText.includes("cache-unsafe")).querySelector(".fix").click();
    said.push("fixed " + field.value.includes("cache='writeback'"), "gone " + !seen().includes("cache-unsafe"));
    said.push("paths " + document.querySelectorAll(".disk .step").length);
    await link();
    const [hash, text] = [location.hash, field.value];
    field.value = "";
    check();
    location.hash = "";
    location.hash = hash;
    await wait(() => field.value === text);
    said.push("linked " + (field.value === text));
    for (const [id, value] of [["host", "xfs-nvme"], ["target", "qemu=9.2"]]) {
      byId(id).value = value;
      byId(id).dispatchEvent(new Event("input", { bubbles: true }));
    }
    said.push("on a host " + summary.textContent, "drive " + document.body.innerText.includes("nvme0n1"));
    const sizes = [document.documentElement.scrollWidth - innerWidth];
    said.push("sticks out " + (Math.max(...sizes) > 0));
    for (const [name, text] of Object.entries(EXAMPLES)) {
      replace(text);
      said.push(name + ": " + seen().includes("cache-unsafe"));
    }
    replace("<disk");
    said.push("unreadable " + seen().includes("not readable"));
  } catch (error) {
    said.push(error.stack);
  }
  await fetch("REPORT", { method: "POST", mode: "no-cors", body: said.join(";\n") });
});
</script>
</html>"#;

#[test]
fn one_types_sees_a_finding_and_applies_its_fix() {
    let (Some(()), Some(page)) = (
        needed(installed("chromium")),
        needed(built("playground/index.html", "playground")),
    ) else {
        return;
    };
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.len() < 3_000_000, "{}", page.len());
    for network in ["src=", "https:", "http:"] {
        let own = page.split("const HOSTS").next().unwrap();
        assert!(!own.contains(network), "{network}");
    }
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("a folder/vmdisk/index.html");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let (before, _) = page.rsplit_once("</html>").unwrap();
    let reports = TcpListener::bind("127.0.0.1:0").unwrap();
    let probe = PROBE.replace(
        "REPORT",
        &format!("http://{}/", reports.local_addr().unwrap()),
    );
    std::fs::write(&file, format!("{before}{probe}")).unwrap();
    let mut browser = Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu"]);
    browser.args(["--disable-dev-shm-usage", "--no-first-run"]);
    // It stays until it is killed.
    browser.arg("--remote-debugging-port=0");
    let profile = place.path().join("profile");
    browser.arg(format!("--user-data-dir={}", profile.display()));
    let address = format!("file://{}", file.display()).replace(' ', "%20");
    browser.arg(address);
    let quiet = browser.stdin(Stdio::null()).stdout(Stdio::null());
    let mut browser = quiet.stderr(Stdio::null()).spawn().unwrap();
    let said = posted(&reports);
    browser.kill().unwrap();
    browser.wait().unwrap();
    let text = "<disk type='file'>\n <driver name='qemu' type='raw' cache='unsafe'/>\n <source file='/é.img'/>\n <target dev='vda' bus='virtio'/>\n</disk>";
    let report = calls::lint(text, None, &CallOptions::default()).unwrap();
    let rules: Vec<&str> = report
        .lines()
        .take_while(|line| !line.contains("\"allowed\": ["))
        .filter_map(|line| line.trim().strip_prefix("{\"rule\": \""))
        .map(|line| line.split('"').next().unwrap())
        .collect();
    let expected = [
        "typed true".to_owned(),
        "found true".to_owned(),
        "marked unsafe".to_owned(),
        format!("report {}", serde_json_text(&rules)),
        "fixed true".to_owned(),
        "gone true".to_owned(),
        "linked true".to_owned(),
        "drive true".to_owned(),
        "sticks out false".to_owned(),
        "a domain: true".to_owned(),
        "a command line: true".to_owned(),
        "a spec: true".to_owned(),
        "unreadable true".to_owned(),
    ];
    for line in expected {
        assert!(said.contains(&line), "{line}\n{said:.3000}");
    }
}

/// The body of the one request that arrives.
fn posted(reports: &TcpListener) -> String {
    reports.set_nonblocking(true).unwrap();
    let begun = Instant::now();
    let mut said = Vec::new();
    while begun.elapsed() < PATIENCE {
        let Ok((mut stream, _)) = reports.accept() else {
            std::thread::sleep(Duration::from_millis(25));
            continue;
        };
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut part = [0; 4096];
        // The browser waits for an answer, so the length that it names ends the body.
        while let Ok(count @ 1..) = stream.read(&mut part) {
            said.extend_from_slice(&part[..count]);
            let text = String::from_utf8_lossy(&said);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let mut lines = head.lines().map(str::to_ascii_lowercase);
                let length =
                    lines.find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                if length == Some(body.len()) {
                    return body.to_owned();
                }
            }
        }
    }
    panic!(
        "the page reported nothing: {}",
        String::from_utf8_lossy(&said)
    )
}

/// A list of words as JSON.
fn serde_json_text(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("[{}]", words.join(","))
}
