//! One row of a table: a command line that is refused, and one that is not.

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use vmdisk::facts::{Facts, Version};
use vmdisk::{Host, LintOptions, Severity, lint, read_bytes};
use vmdisk_tests::{QemuBuild, qemus, real};

use crate::setting::Setting;

/// Longest wait for a QEMU; an idle machine needs some hundredths of a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which QEMUs refuse a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusing {
    /// Every one.
    All,
    /// This one and later ones.
    Since(Version),
    /// Those before this one.
    Before(Version),
    /// None: it starts, and does not do what it says.
    Nobody,
}

impl Refusing {
    fn refuses(self, qemu: Version) -> bool {
        match self {
            Refusing::All => true,
            Refusing::Since(version) => qemu >= version,
            Refusing::Before(version) => qemu < version,
            Refusing::Nobody => false,
        }
    }
}

/// A command line that is refused, the rule that says so, and what to write instead.
///
/// Words are parted by spaces outside single quotes; `{raw}` and its like are the files of [`Setting`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The rule.
    pub(crate) rule: &'static str,
    /// The options behind `-nodefaults`; those of the machine first if it is not q35.
    pub(crate) refused: &'static str,
    /// What QEMU says, one of these parted by `|`; nothing for an abort.
    pub(crate) says: &'static str,
    /// Which QEMUs refuse it.
    pub(crate) by: Refusing,
    /// The options that start and are not reported; empty where there is nothing to write instead.
    pub(crate) mended: &'static str,
}

/// A row that every QEMU refuses.
pub(crate) const fn row(
    rule: &'static str,
    refused: &'static str,
    says: &'static str,
    mended: &'static str,
) -> Row {
    Row {
        rule,
        refused,
        says,
        by: Refusing::All,
        mended,
    }
}

/// A row that QEMU takes, and does not do.
pub(crate) const fn silent(rule: &'static str, taken: &'static str, mended: &'static str) -> Row {
    Row {
        rule,
        refused: taken,
        says: "",
        by: Refusing::Nobody,
        mended,
    }
}

impl Row {
    pub(crate) const fn by(mut self, by: Refusing) -> Self {
        self.by = by;
        self
    }
}

/// The words of a row's options, behind those of the machine.
pub(crate) fn words(options: &str, setting: &Setting) -> Vec<String> {
    let text = setting.filled(options);
    let mut words = vec!["-nodefaults".to_owned()];
    if !text.contains("-machine") {
        words.extend(["-machine".to_owned(), "q35".to_owned()]);
    }
    let mut word = String::new();
    let mut is_quoted = false;
    for character in text.chars() {
        match character {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => {
                words.extend(Some(std::mem::take(&mut word)).filter(|it| !it.is_empty()))
            }
            _ => word.push(character),
        }
    }
    words.extend(Some(word).filter(|it| !it.is_empty()));
    words
}

/// Starts a QEMU, and hands back what it says if it does not come up.
pub(crate) fn refusal(qemu: &QemuBuild, words: &[String], setting: &Setting) -> Option<String> {
    let mut child = Command::new(qemu.emulator())
        .args([
            "-S",
            "-display",
            "none",
            "-no-user-config",
            "-accel",
            "tcg",
            "-qmp",
            "stdio",
        ])
        .args(words)
        .env("LC_ALL", "C")
        .current_dir(setting.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", qemu.emulator().display()));
    let mut stdin = child.stdin.take().expect("it was piped");
    // A QEMU that has ended reads no commands.
    let _ = std::io::Write::write_all(
        &mut stdin,
        b"{\"execute\":\"qmp_capabilities\"}\n{\"execute\":\"quit\"}\n",
    );
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("QEMU {} neither starts nor refuses {words:?}", qemu.name);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then(|| format!("{said} [{}]", output.status))
}

/// The words as somebody writes them into a script.
pub(crate) fn as_shell(words: &[String]) -> String {
    let mut text = "qemu-system-x86_64".to_owned();
    for word in words {
        text.push_str(" \\\n  '");
        text.push_str(word);
        text.push('\'');
    }
    text
}

/// How severely the linter reports a rule for a QEMU; `None` if it does not.
pub(crate) fn reported(
    rule: &str,
    qemu: &QemuBuild,
    words: &[String],
    setting: &Setting,
) -> Option<Severity> {
    reported_on(rule, qemu, words, setting.facts())
}

/// The same on a host of which these facts are known.
pub(crate) fn reported_on(
    rule: &str,
    qemu: &QemuBuild,
    words: &[String],
    facts: &Facts,
) -> Option<Severity> {
    let text = as_shell(words);
    let document =
        read_bytes(text.as_bytes()).unwrap_or_else(|failure| panic!("{failure:?}\n{text}"));
    let host = Host::new(facts.clone());
    let options = LintOptions::default()
        .host(host.clone())
        .target(qemu.target());
    let report = lint(&document, &options);
    report
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.rule.name == rule)
        .map(|diagnostic| diagnostic.severity)
        .max()
}

/// What is wrong with a row on a QEMU.
fn fault(row: &Row, qemu: &QemuBuild, setting: &Setting) -> Option<String> {
    let Row {
        rule,
        refused,
        says,
        by,
        mended,
    } = row;
    let bad = words(refused, setting);
    let is_to_refuse = by.refuses(qemu.version);
    let answer = refusal(qemu, &bad, setting);
    if let Some(said) = &answer
        && let Some((_, driver)) = said.split_once("Unknown driver '")
        && !says.contains("Unknown driver")
    {
        let driver = driver.split('\'').next().unwrap_or_default();
        let needs = format!("the block driver {driver} of QEMU {}", qemu.name);
        real(false, rule, &needs);
        return None;
    }
    match &answer {
        Some(said) if is_to_refuse && says.split('|').any(|text| said.contains(text)) => {}
        None if !is_to_refuse => {}
        Some(said) if is_to_refuse => {
            return Some(format!("says something else than `{says}`: {said}"));
        }
        Some(said) => return Some(format!("refuses what it should take: {said}")),
        None => return Some("takes it".to_owned()),
    }
    let is_silent = matches!(by, Refusing::Nobody);
    if (is_to_refuse || is_silent) && reported(rule, qemu, &bad, setting).is_none() {
        return Some(format!("{rule} does not report it"));
    }
    if mended.is_empty() {
        return None;
    }
    let good = words(mended, setting);
    if let Some(said) = refusal(qemu, &good, setting) {
        return Some(format!(
            "refuses what is to be written instead, {mended}: {said}"
        ));
    }
    if reported(rule, qemu, &good, setting).is_some() {
        return Some(format!(
            "{rule} reports what is to be written instead: {mended}"
        ));
    }
    None
}

/// Tries every row on every QEMU at hand, and says all that is wrong at once.
pub(crate) fn try_rows(test: &str, rows: &[Row]) {
    try_rows_since(test, Version(0, 0, 0), rows);
}

/// Tries rows on the QEMUs from a version on, which is the first that has what they are about.
#[allow(clippy::print_stdout, reason = "a test says how much it tried")]
pub(crate) fn try_rows_since(test: &str, first: Version, rows: &[Row]) {
    let mut builds = qemus(test);
    builds.retain(|qemu| qemu.version >= first);
    if builds.is_empty() {
        return;
    }
    let pairs: Vec<(&QemuBuild, &Row)> = builds
        .iter()
        .flat_map(|qemu| rows.iter().map(move |row| (qemu, row)))
        .collect();
    let (count, tries) = (rows.len(), pairs.len());
    println!(
        "{test}: {count} rows, {tries} tries on {} QEMUs",
        builds.len()
    );
    let next = Mutex::new(pairs.iter());
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                // QEMU's locks would make one try fail the other.
                let Some(setting) = Setting::new(test) else {
                    return;
                };
                loop {
                    let Some((qemu, row)) = next.lock().unwrap().next() else {
                        return;
                    };
                    if let Some(fault) = fault(row, qemu, &setting) {
                        let line = format!("QEMU {}: {}: {fault}", qemu.name, row.refused);
                        faults.lock().unwrap().push(line);
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(
        faults.is_empty(),
        "{} of {} tries went wrong:\n{}",
        faults.len(),
        pairs.len(),
        faults.join("\n")
    );
}

/// Holds a QEMU and the rule of a row to having nothing against its options.
pub(crate) fn accepts(qemu: &QemuBuild, row: &Row) {
    let Some(setting) = Setting::new(row.rule) else {
        return;
    };
    let words = words(row.refused, &setting);
    let said = refusal(qemu, &words, &setting);
    assert_eq!(said, None, "{}", row.refused);
    assert_eq!(
        reported(row.rule, qemu, &words, &setting),
        None,
        "{}",
        row.refused
    );
}
