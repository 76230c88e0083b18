//! Templates: what is true of a text whatever its placeholders stand for.
//!
//! A placeholder is unknown, and so is what depends on it. No rule knows that: the rules run over the text with each
//! placeholder filled in with every word that may stand there, and over each of its alternatives. What they report of all of
//! these texts is true of the template. What they report of some of them was not checked.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use vmdisk_model::FieldPath;
use vmdisk_source::template::Template;
use vmdisk_source::{Edit, Span};

use crate::document::read_source;
use crate::placeholders::{QuotedPlaceholders, attributes_in, placeholder_in};
use crate::rules::{Missing, NotChecked, Rule};
use crate::text_report::{Mark, marks, of_text};
use crate::trial::QemuTrialOutcome;
use crate::{Detail, Diagnostic, Document, LintOptions, LintReport, Source};

/// Bytes of all texts that are tried for a template, which is half a second.
const MAX_BYTES: usize = 1 << 20;
/// Number of texts that are tried of the largest template.
const MIN_TEXTS: usize = 2;
/// Number of files and of devices of the host that are tried for a placeholder.
const MAX_PATHS: usize = 32;
/// Number of texts in which each placeholder is filled in.
const TOGETHER: usize = 12;

/// Words in place of values, which the findings show to be none: `__NAME__`, `TBD`.
fn words(document: &Document, report: &LintReport) -> Vec<Span> {
    const REFUSED: [&str; 4] = [
        "identity-refused",
        "invalid-value",
        "relative-path",
        "target-name-refused",
    ];
    if !matches!(document.source, Source::LibvirtXml(_)) {
        return Vec::new();
    }
    let refused = report
        .diagnostics
        .iter()
        .filter(|it| REFUSED.contains(&it.rule.name));
    let is_free = |span: Span| {
        let template = document.template();
        template.is_none_or(|it| it.placeholders_in(span).next().is_none())
    };
    let refused =
        refused.filter(|it| it.fix.is_none() && it.place.is_exact && is_free(it.place.span));
    let is_word = |it: &&Diagnostic| {
        let text = it.place.span.slice(document.read_text());
        // A value has no tag.
        let text = text.filter(|text| !text.contains('<'));
        // Serial numbers and products are in capitals.
        text.is_some_and(|text| is_word(text, it.rule.name != "identity-refused"))
    };
    refused.filter(is_word).map(|it| it.place.span).collect()
}

/// True for `__NAME__`, `#NAME#`, `[NAME]`, `<name>`, `your-name` and, if no value is, words in capitals.
fn is_word(text: &str, can_be_in_capitals: bool) -> bool {
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    let text = text.trim();
    let is_mark = |c: char| "_#@%[](){}!-~^*?.<>|`".contains(c);
    let inner = text.trim_matches(is_mark);
    let is_in_name = |c: char| c.is_alphanumeric() || " _-.".contains(c);
    let is_wrapped = text.starts_with(is_mark)
        && text.ends_with(is_mark)
        && !inner.is_empty()
        && !text.starts_with(['-', '.', '('])
        && inner.chars().all(is_in_name);
    let is_caps = |it: &str| {
        let is_in = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "_-".contains(c);
        it.len() > 2 && it.starts_with(|c: char| c.is_ascii_uppercase()) && it.chars().all(is_in)
    };
    let has_name = ["__", "@", "#", "%"].iter().any(|mark| {
        let parts: Vec<&str> = text.split(mark).collect();
        parts.len() > 2
            && parts[1..parts.len() - 1]
                .iter()
                .step_by(2)
                .any(|it| is_caps(it))
    });
    let is_joint = |c: char| "_- ".contains(c);
    let mut parts = inner.split(is_joint);
    let is_yours = parts.clone().count() > 1
        && (parts
            .next()
            .is_some_and(|it| it.eq_ignore_ascii_case("your"))
            || parts
                .next_back()
                .is_some_and(|it| it.eq_ignore_ascii_case("here")));
    is_wrapped || (can_be_in_capitals && is_caps(inner)) || has_name || is_yours
}

/// Alternatives, each of a choice.
type Chosen = Vec<(usize, Option<usize>)>;

/// A text to try: its alternatives, and what is filled in.
struct Plan {
    chosen: Chosen,
    filled: Vec<(Span, String)>,
    cause: String,
}

/// A text for a template.
struct Variant {
    document: Document,
    /// The filled-in placeholders, each with the place of its text, ascending.
    filled: Vec<(Span, Span)>,
    left_out: Vec<Span>,
    /// The placeholder or condition that differs from the first text; empty if several do.
    cause: String,
}

impl Variant {
    /// The place in the template of a place in the text.
    fn origin(&self, at: usize) -> usize {
        let before = self.filled.partition_point(|(_, text)| text.start <= at);
        match before.checked_sub(1).map(|nth| self.filled[nth]) {
            None => at,
            Some((placeholder, text)) if at < text.end => placeholder.start,
            Some((placeholder, text)) => at - text.end + placeholder.end,
        }
    }

    /// True for a place with a placeholder that is as the template has it: the first text has it so, too.
    fn is_open(&self, template: &Template, place: Span) -> bool {
        let place = Span::new(self.origin(place.start), self.origin(place.end));
        let is_filled = |span| self.filled.binary_search_by_key(&span, |it| it.0).is_ok();
        let mut inside = template.placeholders_in(place);
        inside.any(|it| !is_filled(it.span)) && placeholder_in(template, place).is_some()
    }

    fn edits(&self, found: &Mark) -> Option<Vec<Edit>> {
        let edits = found.edits.as_ref()?;
        let origin = |edit: &Edit| {
            let span = Span::new(self.origin(edit.span.start), self.origin(edit.span.end));
            Edit::replace(span, edit.text.clone())
        };
        Some(edits.iter().map(origin).collect())
    }
}

/// Runs the rules over the texts of a template.
struct Tryout<'t> {
    template: &'t Template,
    /// The template's own text.
    written: &'t str,
    options: &'t LintOptions,
    /// As `options`, for texts that nobody sees.
    brief: LintOptions,
    /// The bytes that may still be tried.
    bytes: usize,
    /// The bytes that one of this text counts for: a spec is planned, which takes the time of 16 bytes of XML.
    price: usize,
}

/// The report about a template: findings that hold for all of its texts.
pub(crate) fn lint(
    document: &Document,
    report: LintReport,
    options: &LintOptions,
    outcome: &QemuTrialOutcome,
    wants_edits: bool,
) -> LintReport {
    let own = document.template.as_deref();
    let words = words(document, &report);
    if own.is_none() && words.is_empty() {
        return report;
    }
    let template = match own {
        Some(own) if words.is_empty() => Cow::Borrowed(own),
        own => Cow::Owned(Template::with_words(own, &document.text, &words)),
    };
    let brief = options.clone().detail(Detail::Titles);
    let price = match document.source {
        Source::Spec(_) => 16,
        Source::LibvirtXml(_) | Source::QemuCommandLine(_) => 1,
    };
    let mut tryout = Tryout {
        template: &template,
        written: &document.text,
        options,
        brief,
        bytes: MAX_BYTES.max(MIN_TEXTS * price * document.text.len()),
        price,
    };
    let mut report = match words.is_empty() {
        true => tryout.certain(document, &[], report),
        false => {
            let mut document = document.clone();
            document.set_template(template.clone().into_owned());
            let report = of_text(&document, options, outcome, wants_edits);
            tryout.certain(&document, &[], report)
        }
    };
    tryout.add_alternatives(&mut report, wants_edits);
    let names = template.placeholders.iter().map(|it| it.name.as_str());
    let conditions = template
        .choices
        .iter()
        .filter_map(|it| it.condition.slice(&document.text));
    report.placeholders = names.chain(conditions).collect::<BTreeSet<_>>().len();
    let order = |diagnostic: &Diagnostic| (diagnostic.place.span, diagnostic.rule.name);
    report.diagnostics.sort_by_key(order);
    report
}

impl Tryout<'_> {
    /// Adds what holds in each alternative that the first text does not have.
    fn add_alternatives(&mut self, report: &mut LintReport, wants_edits: bool) {
        for (nth, choice) in self.template.choices.iter().enumerate() {
            for (alternative, place) in choice.alternatives.iter().enumerate().skip(1) {
                let chosen = [(nth, Some(alternative))];
                let plan = Plan {
                    chosen: chosen.to_vec(),
                    filled: Vec::new(),
                    cause: String::new(),
                };
                let Some(variant) = self.variant(plan) else {
                    continue;
                };
                let mut document = variant.document;
                document.text = self.written.into();
                document.set_template(self.template.choose(&chosen));
                let outcome = QemuTrialOutcome::default();
                let mut found = of_text(&document, self.options, &outcome, wants_edits);
                let is_inside = |it: &Diagnostic| {
                    place.start <= it.place.span.start && it.place.span.start < place.end
                };
                found.diagnostics.retain(is_inside);
                if !found.diagnostics.is_empty() {
                    let own = self.certain(&document, &chosen, found);
                    report.diagnostics.extend(own.diagnostics);
                }
            }
        }
    }

    /// The part of a report that holds for all texts with some alternatives.
    fn certain(
        &mut self,
        document: &Document,
        chosen: &[(usize, Option<usize>)],
        mut report: LintReport,
    ) -> LintReport {
        let template = document.template.as_deref().unwrap_or(self.template);
        let quoted = QuotedPlaceholders::of(template, &document.domain().disks);
        let mut missed = Missed::default();
        report.diagnostics.retain(|found| {
            let name = placeholder_in(template, found.place.span);
            let name = name.or_else(|| attributes_in(template, found.place.span));
            let name = name.or_else(|| quoted.as_ref()?.first(&found.title));
            missed.add_if(name, found.rule, found.at)
        });
        for one in report
            .not_checked
            .iter_mut()
            .filter(|it| it.missing.why == Missing::OPEN_VALUE)
        {
            let span = document.nearest_place(one.at).span;
            one.missing = missing(placeholder_in(template, span).unwrap_or_default());
        }
        for one in document.missed_by_paths(&mut report.not_checked) {
            one.missing = missing("");
        }
        let first: BTreeSet<(&str, usize)> = report.diagnostics.iter().map(key_of).collect();
        let left_out = self.template.left_out(chosen);
        for plan in self.plans(document, chosen) {
            let Some(variant) = self.variant(plan) else {
                continue;
            };
            let wants_edits = report.diagnostics.iter().any(|it| it.fix.is_some());
            let others = marks(&variant.document, &self.brief, wants_edits);
            let others = others
                .into_iter()
                .map(|it| ((it.rule.name, variant.origin(it.place.start)), it));
            let others: BTreeMap<(&str, usize), Mark> = others.collect();
            // A value that is refused says nothing of others, and neither does a spec that is.
            let is_refused = |(rule, at): &(&str, usize)| match *rule {
                "invalid-value" => variant.filled.iter().any(|(span, _)| span.start == *at),
                rule => rule == "spec-refused" && !first.contains(&(rule, *at)),
            };
            if others.keys().any(is_refused) {
                continue;
            }
            report.diagnostics.retain_mut(|found| {
                if is_left_out(&variant.left_out, found.place.span.start) {
                    return true;
                }
                let Some(same) = others.get(&key_of(found)) else {
                    missed.add(&variant.cause, found.rule, found.at);
                    return false;
                };
                let edits = found.fix.as_ref().map(|fix| fix.edits.clone());
                if edits.is_some() && edits != variant.edits(same) {
                    found.fix = None;
                }
                true
            });
            if variant.left_out == left_out {
                let new = others.iter().filter(|(key, found)| {
                    !first.contains(*key) && !variant.is_open(template, found.place)
                });
                new.for_each(|(_, found)| missed.add(&variant.cause, found.rule, found.at));
            }
        }
        if let Some(quoted) = &quoted {
            let texts = report.diagnostics.iter_mut().flat_map(Diagnostic::texts);
            texts.for_each(|text| quoted.restore(text));
            for missed in &mut report.not_checked {
                quoted.restore(&mut missed.missing.what);
            }
        }
        report.not_checked.extend(missed.into_entries());
        report
    }

    /// The texts to compare with the first one, as many as may be tried.
    fn plans(&self, document: &Document, chosen: &[(usize, Option<usize>)]) -> Vec<Plan> {
        let template = self.template;
        let left_out = template.left_out(chosen);
        let numbers = vmdisk_libvirt::numbers(document.read_text());
        let mut groups: BTreeMap<&str, (Vec<Span>, Vec<String>)> = BTreeMap::new();
        for placeholder in &template.placeholders {
            if is_left_out(&left_out, placeholder.span.start) {
                continue;
            }
            let (spans, texts) = groups.entry(&placeholder.name).or_default();
            spans.push(placeholder.span);
            let own = match &document.source {
                Source::LibvirtXml(source) => {
                    vmdisk_libvirt::fillings(source, document.read_text(), &numbers, placeholder)
                }
                Source::Spec(_) => spec_words(document, placeholder.span),
                Source::QemuCommandLine(_) => Vec::new(),
            };
            let is_path = own.iter().any(|text| text == "/srv/x.qcow2");
            for text in own.into_iter().chain(self.paths().filter(|_| is_path)) {
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
        }
        groups.retain(|_, (_, texts)| !texts.is_empty());
        let most_texts = self.bytes / (self.price * self.written.len()).max(1);
        let mut out = Vec::new();
        let together = if groups.is_empty() { 0 } else { TOGETHER };
        for nth in 0..together.min(most_texts) {
            let all = groups
                .values()
                .enumerate()
                .flat_map(|(group, (spans, texts))| {
                    let text = &texts[(nth + nth * group) % texts.len()];
                    spans.iter().map(move |span| (*span, text.clone()))
                });
            out.push(Plan {
                chosen: chosen.to_vec(),
                filled: all.collect(),
                cause: String::new(),
            });
        }
        for (nth, choice) in template.choices.iter().enumerate() {
            let none = (!choice.is_complete).then_some(None);
            let each = (0..choice.alternatives.len()).map(Some).chain(none);
            for alternative in each.filter(|it| *it != Some(0)) {
                let others = chosen.iter().copied().filter(|(other, _)| *other != nth);
                let cause = choice.condition.slice(self.written).unwrap_or_default();
                out.push(Plan {
                    chosen: others.chain([(nth, alternative)]).collect(),
                    filled: Vec::new(),
                    cause: cause.to_owned(),
                });
            }
        }
        let most = groups.values().map(|(_, texts)| texts.len()).max();
        for nth in 0..most.unwrap_or(0) {
            for (name, (spans, texts)) in &groups {
                let Some(text) = texts.get(nth) else {
                    continue;
                };
                if out.len() >= most_texts {
                    return out;
                }
                out.push(Plan {
                    chosen: chosen.to_vec(),
                    filled: spans.iter().map(|span| (*span, text.clone())).collect(),
                    cause: (*name).to_owned(),
                });
            }
        }
        out
    }

    /// Images of the host, of which a placeholder may name any.
    fn paths(&self) -> impl Iterator<Item = String> {
        let facts = self.options.facts();
        let files = facts.into_iter().flat_map(|facts| &facts.files);
        let devices = facts.into_iter().flat_map(|facts| &facts.blockdevs);
        let devices = devices.filter_map(|device| device.paths.first());
        let files = files.map(|file| &file.path).take(MAX_PATHS);
        files.chain(devices.take(MAX_PATHS)).cloned()
    }

    /// The text with some alternatives and texts; `None` if it cannot be read, or too many were.
    fn variant(&mut self, plan: Plan) -> Option<Variant> {
        let Plan {
            chosen,
            mut filled,
            cause,
        } = plan;
        self.bytes = self.bytes.checked_sub(self.price * self.written.len())?;
        let open = self.template.choosing(&chosen);
        filled.sort_unstable();
        let mut text = String::with_capacity(open.len());
        let mut places = Vec::with_capacity(filled.len());
        let mut done = 0;
        for (span, with) in filled {
            text.push_str(open.get(done..span.start)?);
            let start = text.len();
            match open.as_bytes().get(span.start) {
                Some(b'\'') => text.extend(["'", &with, "'"]),
                _ => text.push_str(&with),
            }
            places.push((span, Span::new(start, text.len())));
            done = span.end;
        }
        text.push_str(open.get(done..)?);
        let source = read_source(&text, vmdisk_libvirt::read_only).ok()?;
        Some(Variant {
            filled: places,
            left_out: self.template.left_out(&chosen),
            document: Document::new(text, source),
            cause,
        })
    }
}

/// Words of specs: those that mistakes at the place expect, and texts of each kind.
fn spec_words(document: &Document, span: Span) -> Vec<String> {
    const TEXTS: [&str; 12] = [
        "x",
        "7",
        "1",
        "0",
        "16",
        "1GiB",
        "4096",
        "true",
        "false",
        "/srv/x.qcow2",
        "/dev/x",
        "vdx",
    ];
    let mut words: Vec<String> = TEXTS.map(str::to_owned).to_vec();
    if let Source::Spec(spec) = &document.source {
        let own = spec
            .planned
            .mistakes
            .iter()
            .filter(|it| it.span.overlaps(span));
        for mistake in own {
            let said = format!(
                "{} {}",
                mistake.message,
                mistake.help.as_deref().unwrap_or_default()
            );
            words.extend(said.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    words
}

fn is_left_out(left_out: &[Span], at: usize) -> bool {
    let after = left_out.partition_point(|it| it.start <= at);
    after > 0 && at < left_out[after - 1].end
}

fn key_of(found: &Diagnostic) -> (&'static str, usize) {
    (found.rule.name, found.place.span.start)
}

fn missing(name: &str) -> Missing {
    let what = match name {
        "" => "the value of a placeholder".to_owned(),
        name => format!("the value of `{name}`"),
    };
    Missing::new(what, Missing::PLACEHOLDER)
}

/// Rules that need what a placeholder stands for.
#[derive(Default)]
struct Missed(BTreeMap<(&'static str, FieldPath, String), &'static Rule>);

impl Missed {
    fn add(&mut self, name: &str, rule: &'static Rule, at: FieldPath) {
        self.0.insert((rule.name, at, name.to_owned()), rule);
    }

    /// Adds a rule if there is a placeholder, and returns true if there is none.
    fn add_if(&mut self, name: Option<&str>, rule: &'static Rule, at: FieldPath) -> bool {
        if let Some(name) = name {
            self.add(name, rule, at);
        }
        name.is_none()
    }

    /// All entries; one that names no placeholder only where no other does.
    fn into_entries(self) -> impl Iterator<Item = NotChecked> {
        let mut last = None;
        // Those without a name come first, so the reverse order meets them last.
        let entries = self.0.into_iter().rev();
        let entries = entries.filter(move |((rule, at, name), _)| {
            let is_again = last.replace((*rule, *at)) == Some((*rule, *at));
            !(name.is_empty() && is_again)
        });
        entries.map(|((_, at, name), rule)| NotChecked::new(rule, at, missing(&name)))
    }
}
