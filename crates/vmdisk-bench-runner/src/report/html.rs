//! A result as one self-contained page, without scripts, fonts or network access.
//!
//! Every picture is in a row with its values as text. The colours are from Okabe and Ito and
//! distinguishable with every kind of colour vision; words repeat them.

pub(crate) mod chart;
mod group;
pub(crate) mod page;

use maud::{Markup, html};

use super::answer::answer;
use super::figures;
use super::result::BenchResult;
use super::table::{groups, summary_line, with_version};
use crate::{Accelerator, ConfigurationRecord, FindingSeverity, Measurement};

/// Maximum size of a page in bytes; a larger page omits parts and names them.
pub const MAX_PAGE_BYTES: usize = 500_000;

/// The amount of detail of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// Tables of the first groups only.
    Least,
    /// Ratios and tables.
    Ratios,
    /// Also latencies.
    Latencies,
    /// Everything.
    All,
}

/// Formats a result as one page.
pub fn html(result: &BenchResult) -> String {
    let mut text = String::new();
    for detail in [
        Detail::All,
        Detail::Latencies,
        Detail::Ratios,
        Detail::Least,
    ] {
        text = Page { result, detail }.write();
        if text.len() < MAX_PAGE_BYTES {
            break;
        }
    }
    text
}

struct Page<'a> {
    result: &'a BenchResult,
    detail: Detail,
}

impl Page<'_> {
    fn write(&self) -> String {
        let plan = &self.result.header.plan;
        let left_out = self.result.left_out.iter();
        let left_out =
            left_out.map(|left_out| format!("{}: {}", shortened(&left_out.what), left_out.why));
        let content = html! {
            header {
                h1 { (plan.name) }
                p class="question" { (plan.question) }
                div class="answer" {
                    @for sentence in answer(self.result) { p { (sentence) } }
                }
                (self.labels())
                p { (summary_line(self.result)) "." }
            }
            (page::list("Caveats", self.result.remarks.iter().cloned()))
            @if self.detail < Detail::All {
                p { "Time series and commands are omitted to keep this page small; the JSON result has them." }
            }
            (self.groups())
            (page::list("Left out", left_out))
            (self.configurations())
            (self.environment())
            (self.rounds())
            (method())
        };
        page::page(&plan.name, &content)
    }

    fn labels(&self) -> Markup {
        let has = |accelerator| {
            let mut cells = self.result.cells.iter();
            cells.any(|cell| cell.accelerator == accelerator)
        };
        let mut rounds = self.result.rounds.iter();
        let is_disturbed = rounds.any(|round| !round.disturbances.is_empty());
        let labels: Vec<&str> = [
            (has(Accelerator::Tcg), "TCG: emulated processors"),
            (has(Accelerator::Kvm), "KVM"),
            (is_disturbed, "machine was not quiet"),
        ]
        .into_iter()
        .filter_map(|(applies, label)| applies.then_some(label))
        .collect();
        html! {
            @if !labels.is_empty() {
                ul class="labels" { @for label in labels { li { (label) } } }
            }
        }
    }

    fn groups(&self) -> Markup {
        let mut bytes = 0;
        let mut sections = Vec::new();
        let mut is_cut = false;
        for group in groups(self.result) {
            if self.detail == Detail::Least && bytes > MAX_PAGE_BYTES / 2 {
                is_cut = true;
                break;
            }
            let section = group::section(self.result, &group, self.detail);
            bytes += section.0.len();
            sections.push(section);
        }
        html! {
            @for section in sections { (section) }
            @if is_cut {
                p { "The page is full: the JSON and CSV results have the rest." }
            }
        }
    }

    fn configurations(&self) -> Markup {
        let mut bytes = 0;
        let mut is_cut = false;
        let mut shown = Vec::new();
        let limit = if self.detail == Detail::Least {
            MAX_PAGE_BYTES / 5
        } else {
            MAX_PAGE_BYTES
        };
        for (index, configuration) in self.result.header.plan.configurations.iter().enumerate() {
            if bytes > limit {
                is_cut = true;
                break;
            }
            let markup = self.configuration(index, configuration);
            bytes += markup.0.len();
            shown.push(markup);
        }
        html! {
            section {
                h2 { "Configurations" }
                @for configuration in shown { (configuration) }
                @if is_cut { p { "The JSON result has the rest." } }
            }
        }
    }

    fn configuration(&self, index: usize, configuration: &ConfigurationRecord) -> Markup {
        let factors: Vec<String> = configuration
            .factors
            .iter()
            .filter(|(factor, _)| *factor != "name")
            .map(|(factor, value)| format!("{factor}={value}"))
            .collect();
        let mut samples = self.result.samples.iter();
        let cells = &self.result.header.plan.cells;
        let sample = samples.find(|sample| cells[sample.cell.0].configuration == index);
        html! {
            h3 { (configuration.name) }
            p {
                (factors.join(", ")) ". " (figures::bytes(configuration.size_bytes))
                @if !configuration.creation.is_empty() { "; " (configuration.creation) }
                "."
            }
            @if configuration.findings.is_empty() {
                p { "The linter reports nothing for it." }
            } @else {
                p { "The linter reports:" }
                ul {
                    @for finding in &configuration.findings {
                        li { (severity(finding.severity)) ": " (finding.title) " " code { (finding.rule) } }
                    }
                }
            }
            @if self.detail == Detail::All {
                details {
                    summary { "Disk and commands" }
                    pre { (configuration.disk_xml.trim_end()) }
                    @if let Some(sample) = sample { (commands(&sample.measurement)) }
                }
            }
        }
    }

    fn environment(&self) -> Markup {
        let header = &self.result.header;
        let mut pairs: Vec<(String, String)> = vec![
            ("vmdisk".to_owned(), header.vmdisk.clone()),
            ("plan".to_owned(), format!("SHA-256 {}", header.plan_hash)),
        ];
        if let Some(hash) = &header.facts_hash {
            pairs.push(("facts of the host".to_owned(), format!("SHA-256 {hash}")));
        }
        for (engine, versions) in &header.versions {
            let programs: Vec<String> = versions
                .iter()
                .map(|(program, version)| with_version(program, version))
                .collect();
            pairs.push((
                format!("engine {engine}"),
                format!("{}; measures {}", programs.join(", "), engine.measures()),
            ));
        }
        pairs.extend(header.environment.clone());
        html! {
            section {
                h2 { "Environment" }
                dl { @for (what, value) in &pairs { dt { (what) } dd { (value) } } }
            }
        }
    }

    fn rounds(&self) -> Markup {
        html! {
            section {
                h2 { "Rounds" }
                table {
                    thead {
                        tr {
                            @for head in ["round", "began", "control", "machine"] {
                                th scope="col" { (head) }
                            }
                        }
                    }
                    tbody {
                        @for round in &self.result.rounds {
                            tr {
                                th scope="row" {
                                    @if round.round == 0 { "warm-up" } @else { (round.round) }
                                }
                                td data-head="began" { (figures::duration(round.at_seconds)) }
                                td data-head="control" { (format!("{:.1}", round.control / 1e6)) " M steps/s" }
                                td data-head="machine" {
                                    @if round.disturbances.is_empty() { "quiet" }
                                    @else { (round.disturbances.join("; ")) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

const fn severity(severity: FindingSeverity) -> &'static str {
    match severity {
        FindingSeverity::Error => "error",
        FindingSeverity::Warning => "warning",
        FindingSeverity::Advice => "advice",
    }
}

/// Formats commands for a shell, followed by their input files.
fn commands(measurement: &Measurement) -> Markup {
    html! {
        @for command in &measurement.commands {
            pre { (shell(&command.argv)) }
        }
        @for (name, text) in &measurement.inputs {
            p { (name) ":" }
            pre { (text.trim_end()) }
        }
    }
}

/// Formats a command line that can be pasted into a shell.
fn shell(argv: &[String]) -> String {
    let words = argv.iter().map(String::as_str);
    shlex::try_join(words).unwrap_or_else(|_| format!("{argv:?}"))
}

fn method() -> Markup {
    html! {
        section {
            h2 { "Method" }
            p {
                "Every round measures each cell once, in an order determined by the seed; every second round reverses the \
                order of the previous one. A ratio divides a cell by its baseline in the same round. The tables show \
                geometric means; the charts show the interval of Student's t on the logarithms of the ratios, and a dot \
                for each round. A run that repeats until it is precise divides the error probability among its looks. \
                Verdicts are corrected for the number of comparisons (Holm). About equal means that differences above \
                10 % are ruled out; inconclusive means that they are not. Percentiles are computed over all requests of \
                a cell, and shown only if ten requests were slower. No sample is deleted."
            }
        }
    }
}

/// Shortens a list of names that is too long for a page.
fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 600;
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}… (the JSON result has all)", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_by_a_shell_into_its_words() {
        let argv = [
            "qemu-system-x86_64",
            "-object",
            r#"{"qom-type":"iothread","id":"iothread1"}"#,
            "a b's",
            "",
        ]
        .map(str::to_owned);
        let line = shell(&argv);
        assert_eq!(shlex::split(&line).as_deref(), Some(&argv[..]), "{line}");
    }
}
