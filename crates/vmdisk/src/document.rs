//! A text that was read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use vmdisk_facts::{Facts, Target};
use vmdisk_fields::{Label, OpenVersions, Phrase, Speller, disk, noun};
use vmdisk_libvirt::{RootKind, Unmodeled, XmlSpeller, write_domain};
use vmdisk_model::{BackendSource, ControllerField, DiskField, Domain, FieldPath, ImageField};
use vmdisk_plan::{PlannedSpec, SpecDocument, SpecSpeller, is_spec};
use vmdisk_qemu::{CommandLineForm, CommandLineSpeller, Folder};
use vmdisk_source::template::{Syntax, Template};
use vmdisk_source::{
    Allowance, Edit, LineIndex, SourceMap, Span, VersionedSyntax, WordKind, has_expansion,
};

use crate::paths::resolve_paths_of;
use crate::placeholders::{self, QuotedPlaceholders};
use crate::rules::{Missing, NotChecked, Text};
use crate::{DiskIdentity, Host, ReadFailure, ReadFailureKind, TextPlace};

/// A text that was read: the model, and where each part of it is written.
#[derive(Clone, Debug)]
pub struct Document {
    /// The text itself, which the starts of a script share.
    pub text: Arc<str>,
    /// The domain, and everything that the reader knows of its text.
    pub source: Source,
    /// The files behind the command line in [`text`](Self::text) that it names with `-readconfig`.
    pub config_files: Vec<ConfigFilePart>,
    /// The documents of the further starts of QEMU in the same text.
    pub further: Vec<Document>,
    /// Its lines, counted when a place is first asked for.
    lines: Arc<LineIndex>,
    /// True if any part of the text has an expansion, once it was asked for.
    has_expansion: Arc<OnceLock<bool>>,
    /// The template, if the text is one: its readers saw another text.
    pub(crate) template: Option<Box<Template>>,
    /// Fields with a placeholder of the template.
    open_fields: BTreeSet<FieldPath>,
    /// The allowances of a script.
    allowances: Arc<[Allowance]>,
}

/// A file that a command line names with `-readconfig`, and that was read with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigFilePart {
    /// Its name on the command line.
    pub name: String,
    /// Its position in the text of the document. Lines of places in it count from its own first line.
    pub span: Span,
}

/// The syntax of a text, with everything that its reader knows.
#[derive(Clone, Debug)]
pub enum Source {
    /// libvirt's XML.
    LibvirtXml(Box<vmdisk_libvirt::Document>),
    /// A command line of QEMU.
    QemuCommandLine(Box<vmdisk_qemu::Document>),
    /// A spec, with the guest that is planned from it.
    Spec(Box<PlannedDocument>),
}

impl Source {
    pub(crate) const fn domain_mut(&mut self) -> &mut Domain {
        match self {
            Source::LibvirtXml(document) => &mut document.domain,
            Source::QemuCommandLine(document) => &mut document.domain,
            Source::Spec(document) => &mut document.planned.domain,
        }
    }

    /// The place of each field in the text.
    pub fn source_map(&self) -> &SourceMap<FieldPath> {
        match self {
            Source::LibvirtXml(document) => &document.source_map,
            Source::QemuCommandLine(document) => &document.source_map,
            Source::Spec(document) => &document.planned.source_map,
        }
    }
}

/// A spec, and the guest that it asks for on some host.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlannedDocument {
    /// The spec.
    pub spec: SpecDocument,
    /// The guest; without facts after [`read`], for the host of the options in [`lint`](crate::lint).
    pub planned: PlannedSpec,
    /// The host with the storage that the spec creates.
    pub(crate) after: Option<Host>,
    /// The words of the XML for the guest that some libvirt lacks, found when they are first asked for.
    versioned_syntax: OnceLock<Vec<VersionedSyntax<FieldPath>>>,
}

impl PlannedDocument {
    fn new(spec: SpecDocument, mut planned: PlannedSpec) -> Self {
        let after = planned.after.take().map(Host::new);
        if after.is_some() {
            // The facts have what the spec creates.
            for disk in &mut planned.domain.disks {
                if let BackendSource::Image(image) = &mut disk.backend.source {
                    image.creation = None;
                }
            }
        }
        PlannedDocument {
            after,
            spec,
            planned,
            versioned_syntax: OnceLock::new(),
        }
    }

    fn versioned_syntax(&self) -> &[VersionedSyntax<FieldPath>] {
        self.versioned_syntax.get_or_init(|| {
            // What cannot be written is refused when it is planned.
            let xml = write_domain(&self.planned.domain, &Unmodeled::default()).unwrap_or_default();
            let written = vmdisk_libvirt::read_only(&xml);
            let mut words = written.map_or_else(|_| Vec::new(), |written| written.versioned_syntax);
            let speller = SpecSpeller(&self.planned.domain);
            for word in &mut words {
                // The spec has other words for elements and attributes; most values are the same.
                if word.kind != WordKind::Value || word.what.contains('<') {
                    word.what = match speller.field(word.at) {
                        Some(key) => format!("key {key}"),
                        None => format!("setting `{}`", noun(word.at)),
                    };
                }
            }
            words
        })
    }

    /// Forgets what depends on the numbers of the disks.
    pub(crate) fn disks_changed(&mut self) {
        self.versioned_syntax = OnceLock::new();
    }
}

/// Values for the variables of a command line, by name.
pub type Values = BTreeMap<String, String>;

type ReadXml = fn(&str) -> Result<vmdisk_libvirt::Document, vmdisk_libvirt::ReadFailure>;

/// Reads a libvirt domain or disk, a command line of QEMU, or a spec; the text determines which.
///
/// Reading continues after every mistake inside a well-formed document; [`lint`](crate::lint) reports the
/// mistakes as findings.
///
/// # Errors
/// If the text is not well-formed XML, too large or too deep, or neither a domain, nor a disk, nor a
/// command line, nor a spec.
pub fn read(text: &str) -> Result<Document, ReadFailure> {
    read_with(text, vmdisk_libvirt::read, &Values::new())
}

/// As [`read`], with this reader of XML, and these values for the variables of a command line.
fn read_with(text: &str, read_xml: ReadXml, values: &Values) -> Result<Document, ReadFailure> {
    let is_spec = is_spec(text);
    if !is_spec && vmdisk_qemu::sniff(text) {
        let document = read_command_line(text, text.len(), Vec::new(), values);
        return document.map_err(|failure| failure.masked(text));
    }
    let template = match (is_spec, text.contains('<')) {
        (true, _) => placeholders::of(text, Syntax::Yaml),
        (false, true) => placeholders::of(text, Syntax::Xml),
        (false, false) => None,
    };
    let readable = template.as_ref().map_or(text, |template| template.text());
    let source = match read_source(readable, read_xml) {
        Ok(source) => source,
        Err(mut failure) => {
            let parts = match &template {
                None => vmdisk_libvirt::documents(text),
                Some(_) => Vec::new(),
            };
            if !parts.is_empty() {
                return read_parts(text, parts, read_xml).map_err(|failure| failure.masked(text));
            }
            if let Some(template) = &template {
                failure.help = Some(placeholders::help(template.engine));
            }
            return Err(failure.masked(text));
        }
    };
    let mut document = Document::new(text, source);
    if let Some(template) = template {
        document.set_template(*template);
    }
    within_limits(document)
}

/// Reads documents that stand in one text, each a guest of its own; the first has the text.
fn read_parts(text: &str, parts: Vec<String>, read_xml: ReadXml) -> Result<Document, ReadFailure> {
    let documents = parts.into_iter().map(|part| {
        let source = Source::LibvirtXml(Box::new(read_xml(&part)?));
        within_limits(Document::new(part, source))
    });
    let mut documents: Vec<Document> = documents.collect::<Result<_, ReadFailure>>()?;
    let mut first = documents.remove(0);
    first.text = text.into();
    first.further = documents;
    Ok(first)
}

/// Reads the starts of a command line, of which the first is the document.
fn read_command_line(
    text: &str,
    length: usize,
    files: Vec<ConfigFilePart>,
    values: &Values,
) -> Result<Document, ReadFailure> {
    let spans: Vec<Span> = files.iter().map(|part| part.span).collect();
    let mut starts: Vec<Document> = Vec::new();
    let allowances: Arc<[Allowance]> = match text[..length].contains("vmdisk:") {
        true => Allowance::in_lines(&text[..length]).into(),
        false => Arc::default(),
    };
    let text: Arc<str> = text.into();
    for mut document in vmdisk_qemu::read_all(&text, length, &spans, values)? {
        if let Folder::Known(folder) = &document.start.folder {
            let disks = document.domain.disks.iter_mut();
            disks.for_each(|disk| resolve_paths_of(disk, Path::new(folder), &mut Vec::new()));
        }
        let has_comments = document.form != CommandLineForm::Json;
        let source = Source::QemuCommandLine(Box::new(document));
        let mut start = Document::new(Arc::clone(&text), source);
        if has_comments {
            start.allowances = Arc::clone(&allowances);
        }
        start.config_files.clone_from(&files);
        if let Some(first) = starts.first() {
            start.lines = Arc::clone(&first.lines);
            start.has_expansion = Arc::clone(&first.has_expansion);
        }
        starts.push(within_limits(start)?);
    }
    let mut first = starts.remove(0);
    first.further = starts;
    Ok(first)
}

pub(crate) fn read_source(text: &str, read_xml: ReadXml) -> Result<Source, ReadFailure> {
    if is_spec(text) {
        read_spec(text)
    } else if text.contains('<') || text.trim().is_empty() {
        Ok(Source::LibvirtXml(Box::new(read_xml(text)?)))
    } else {
        Err(not_ours(text))
    }
}

/// The most disks of a document: no guest has as many, and a report about more of them is of no use.
const MAX_DISKS: usize = 20_000;

/// The document; or a failure at the first disk that is too many.
fn within_limits(document: Document) -> Result<Document, ReadFailure> {
    let first = FieldPath::Disk(MAX_DISKS, DiskField::Disk);
    let excess = match &document.source {
        // Its plan is without disks that have mistakes.
        Source::Spec(planned) => planned.spec.disk_span(MAX_DISKS),
        Source::LibvirtXml(_) | Source::QemuCommandLine(_) => {
            let disk = document.domain().disks.get(MAX_DISKS);
            disk.map(|_| document.nearest_place(first).span)
        }
    };
    let Some(span) = excess else {
        return Ok(document);
    };
    let kind = match &document.source {
        Source::LibvirtXml(_) => {
            ReadFailureKind::LibvirtXml(vmdisk_libvirt::ReadFailureKind::TooLarge)
        }
        Source::QemuCommandLine(_) => ReadFailureKind::QemuCommandLine,
        Source::Spec(_) => ReadFailureKind::Spec,
    };
    Err(ReadFailure {
        kind,
        span,
        message: format!("more than {MAX_DISKS} disks"),
        help: Some("split it: no guest has as many disks".to_owned()),
        related: Vec::new(),
    })
}

/// A text without any element that is neither a command line nor a spec.
fn not_ours(text: &str) -> ReadFailure {
    let start = text.len() - text.trim_start().len();
    let line = text[start..].lines().next().unwrap_or_default().trim_end();
    ReadFailure {
        kind: ReadFailureKind::LibvirtXml(vmdisk_libvirt::ReadFailureKind::Malformed),
        span: Span::new(start, start + line.len()),
        message: "not libvirt XML, a QEMU command line or a spec".to_owned(),
        help: Some(
            "a command line begins with the program or an option, a spec has `version` and `disks` at the top; \
             files of -readconfig and QMP commands are read too"
                .to_owned(),
        ),
        related: Vec::new(),
    }
}

fn read_spec(text: &str) -> Result<Source, ReadFailure> {
    let spec = SpecDocument::read(text).map_err(|(span, message)| ReadFailure {
        kind: ReadFailureKind::Spec,
        span,
        message,
        help: None,
        related: Vec::new(),
    })?;
    let planned = spec.plan(text, &Facts::default(), &Target::default());
    Ok(Source::Spec(Box::new(PlannedDocument::new(spec, planned))))
}

/// Reads a command line of QEMU with the files that it names with `-readconfig`, each with its name and its text, in
/// the order of [`Document::unread_config_files`], and with values for its variables.
///
/// # Errors
/// As [`read`].
pub fn read_with_config_files(
    text: &str,
    files: &[(String, String)],
    values: &Values,
) -> Result<Document, ReadFailure> {
    if files.is_empty() {
        return read_with(text, vmdisk_libvirt::read, values);
    }
    let mut joined = text.to_owned();
    let mut parts = Vec::with_capacity(files.len());
    for (name, file) in files {
        // Each begins on a line of its own, and no place is in two of them.
        joined.push('\n');
        let start = joined.len();
        joined.push_str(file);
        parts.push(ConfigFilePart {
            name: name.clone(),
            span: Span::new(start, joined.len()),
        });
    }
    read_command_line(&joined, text.len(), parts, values)
}

/// Reads a document from bytes, saying plainly if they are not UTF-8. `/proc/PID/cmdline`, whose words
/// end in zero bytes, is read too.
///
/// # Errors
/// As [`read`], and if the bytes are in another encoding or no text at all.
pub fn read_bytes(bytes: &[u8]) -> Result<Document, ReadFailure> {
    read_bytes_with_values(bytes, &Values::new())
}

/// As [`read_bytes`], with values for the variables of a command line.
///
/// # Errors
/// As [`read_bytes`].
pub fn read_bytes_with_values(bytes: &[u8], values: &Values) -> Result<Document, ReadFailure> {
    read_bytes_with(bytes, vmdisk_libvirt::read, values)
}

/// As [`read_bytes`], for a document that is linted and not written: parts of XML that the model does not cover are not
/// copied.
///
/// # Errors
/// As [`read_bytes`].
pub fn read_to_lint(bytes: &[u8], values: &Values) -> Result<Document, ReadFailure> {
    read_bytes_with(bytes, vmdisk_libvirt::read_only, values)
}

/// Refuses a command line in a file whose name ends as those of a language that is not read, such as `py`: `end` is the part
/// after the last period. The name says more than the content, and less than a first line `#!`.
///
/// # Errors
/// The language, with the line that names QEMU.
pub fn check_name(bytes: &[u8], end: &str) -> Result<(), ReadFailure> {
    Ok(vmdisk_qemu::check_name(bytes, end)?)
}

fn read_bytes_with(
    bytes: &[u8],
    read_xml: ReadXml,
    values: &Values,
) -> Result<Document, ReadFailure> {
    match vmdisk_libvirt::decode(bytes) {
        Ok(text) => read_with(text, read_xml, values),
        Err(failure) => match std::str::from_utf8(bytes) {
            Ok(text) if bytes.len() <= vmdisk_libvirt::MAX_BYTES && vmdisk_qemu::sniff(text) => {
                read_with(text, read_xml, values)
            }
            Ok(_) | Err(_) => Err(failure.into()),
        },
    }
}

impl Document {
    /// A text about the guest, with the placeholders of its template as they are written.
    pub fn with_placeholders(&self, mut text: String) -> String {
        if let Some(quoted) = self.quoted_placeholders() {
            quoted.restore(&mut text);
        }
        text
    }

    /// The placeholders that messages quote; `None` if they can quote none.
    pub(crate) fn quoted_placeholders(&self) -> Option<QuotedPlaceholders<'_>> {
        QuotedPlaceholders::of(self.template()?, &self.domain().disks)
    }

    /// A disk by its number and the name of its target, as the text has it.
    pub(crate) fn disk_identity(&self, index: usize) -> DiskIdentity {
        let disk = self.domain().disks.get(index);
        let target = disk.and_then(|disk| disk.frontend.target.clone());
        let target = target.map(|target| self.with_placeholders(target));
        DiskIdentity { index, target }
    }

    pub(crate) fn new(text: impl Into<Arc<str>>, source: Source) -> Self {
        Document {
            text: text.into(),
            source,
            config_files: Vec::new(),
            further: Vec::new(),
            lines: Arc::default(),
            has_expansion: Arc::default(),
            template: None,
            open_fields: BTreeSet::new(),
            allowances: Arc::default(),
        }
    }

    /// The template that the text is; `None` if nothing is filled in later.
    pub fn template(&self) -> Option<&Template> {
        self.template.as_deref()
    }

    pub(crate) fn set_template(&mut self, template: Template) {
        self.open_fields = placeholders::open_fields(&template, self.source.source_map());
        self.template = Some(Box::new(template));
    }

    /// The text that the reader saw.
    pub(crate) fn read_text(&self) -> &str {
        self.template().map_or(&self.text, Template::text)
    }

    /// Fields whose values are filled in later; `None` where nothing is.
    pub(crate) fn open_fields(&self) -> Option<&BTreeSet<FieldPath>> {
        match &self.source {
            Source::QemuCommandLine(line) => Some(&line.open_fields),
            Source::LibvirtXml(_) | Source::Spec(_) => self.template().map(|_| &self.open_fields),
        }
    }

    /// The input of the rules about text.
    pub(crate) fn rule_input(&self) -> Text<'_> {
        match &self.source {
            Source::LibvirtXml(document) => Text::Xml(document, self.read_text()),
            Source::QemuCommandLine(document) => Text::CommandLine(document),
            Source::Spec(_) => Text::Spec,
        }
    }

    /// The guest, or the disks, that the text describes.
    pub fn domain(&self) -> &Domain {
        match &self.source {
            Source::LibvirtXml(document) => &document.domain,
            Source::QemuCommandLine(document) => &document.domain,
            Source::Spec(document) => &document.planned.domain,
        }
    }

    /// The same spec with the guest that is planned for a host; `None` if the text is not a spec, and so does not depend
    /// on the host.
    pub fn planned_for(&self, facts: &Facts, target: &Target) -> Option<Document> {
        let Source::Spec(document) = &self.source else {
            return None;
        };
        let spec = document.spec.clone();
        let planned = spec.plan(self.read_text(), facts, target);
        let source = Source::Spec(Box::new(PlannedDocument::new(spec, planned)));
        let mut document = Document::new(self.text.clone(), source);
        if let Some(template) = self.template() {
            document.set_template(template.clone());
        }
        Some(document)
    }

    /// The host on which the guest runs, if it is not the one of the facts: with the storage that a spec creates.
    pub(crate) fn host_after(&self) -> Option<&Host> {
        match &self.source {
            Source::Spec(document) => document.after.as_ref(),
            Source::LibvirtXml(_) | Source::QemuCommandLine(_) => None,
        }
    }

    /// The guest alone, when the text is no longer needed.
    pub fn into_domain(self) -> Domain {
        match self.source {
            Source::LibvirtXml(document) => document.domain,
            Source::QemuCommandLine(document) => document.domain,
            Source::Spec(document) => document.planned.domain,
        }
    }

    /// The text and its lines, for quoting from it.
    pub fn into_text(self) -> (Arc<str>, Arc<LineIndex>) {
        (self.text, self.lines)
    }

    /// Checks that lack facts about an image whose path is filled in later: no facts can have it.
    pub(crate) fn missed_by_paths<'n>(
        &self,
        not_checked: &'n mut [NotChecked],
    ) -> impl Iterator<Item = &'n mut NotChecked> {
        let is_open = |at: FieldPath| match &self.source {
            Source::QemuCommandLine(line) => {
                let mut holes = line.holes_in(self.nearest_place(at).span);
                holes.next().is_some()
            }
            Source::LibvirtXml(_) | Source::Spec(_) => {
                self.template.is_some() && self.open_fields.contains(&at)
            }
        };
        let places = (0..self.domain().disks.len()).filter(|disk| {
            let images = self.domain().disks[*disk].backend.image();
            let images = images.map_or(0, |image| image.chain().count());
            (0..images).any(|depth| is_open(FieldPath::Image(*disk, depth, ImageField::Path)))
        });
        let disks: BTreeSet<usize> = places.collect();
        not_checked.iter_mut().filter(move |one| {
            let is_of_path = one.at.disk().is_some_and(|it| disks.contains(&it));
            is_of_path && one.missing.why == Missing::NOT_COLLECTED
        })
    }

    /// What kind of XML document it is; `None` for a command line and a spec.
    pub fn root(&self) -> Option<RootKind> {
        match &self.source {
            Source::LibvirtXml(document) => Some(document.root),
            Source::QemuCommandLine(_) | Source::Spec(_) => None,
        }
    }

    fn source_map(&self) -> &SourceMap<FieldPath> {
        self.source.source_map()
    }

    /// Attributes and elements that some libvirt releases do not know, for a spec those of the XML that is written for
    /// it, whose spans are not in the spec; none for a command line.
    pub(crate) fn versioned_syntax(&self) -> &[VersionedSyntax<FieldPath>] {
        match &self.source {
            Source::LibvirtXml(document) => &document.versioned_syntax,
            Source::QemuCommandLine(_) => &[],
            Source::Spec(document) => document.versioned_syntax(),
        }
    }

    /// Places where findings are allowed.
    pub(crate) fn allowances(&self) -> &[Allowance] {
        match &self.source {
            Source::LibvirtXml(document) => &document.allowances,
            Source::QemuCommandLine(_) => &self.allowances,
            Source::Spec(document) => &document.spec.allowances,
        }
    }

    /// Where a field is written, or the nearest field around it.
    pub fn place(&self, at: FieldPath) -> TextPlace {
        TextPlace {
            breadcrumb: self.breadcrumb(at),
            ..self.nearest_place(at)
        }
    }

    /// As [`place`](Self::place), without its name.
    pub(crate) fn nearest_place(&self, at: FieldPath) -> TextPlace {
        match self.source_map().resolve(at) {
            Some((found, place)) => self.unnamed_place(place.span, found == at),
            None => self.unnamed_place(Span::empty(0), false),
        }
    }

    /// The folder in which a script starts QEMU; unchanged for any other document.
    pub fn folder(&self) -> &Folder {
        match &self.source {
            Source::LibvirtXml(_) | Source::Spec(_) => &Folder::Unchanged,
            Source::QemuCommandLine(document) => &document.start.folder,
        }
    }

    /// Names of the empty drives that QEMU adds to the machine of a command line; the guest has no disks for them.
    pub fn empty_drives(&self) -> Vec<&'static str> {
        match &self.source {
            Source::LibvirtXml(_) | Source::Spec(_) => Vec::new(),
            Source::QemuCommandLine(document) => document.empty_drives(),
        }
    }

    /// Files that the command line names with `-readconfig` and that were not read with it.
    pub fn unread_config_files(&self) -> &[String] {
        match &self.source {
            Source::LibvirtXml(_) | Source::Spec(_) => &[],
            Source::QemuCommandLine(document) => &document.config_files,
        }
    }

    /// The file of `-readconfig` that a place is in; `None` in the text itself.
    pub fn config_file_at(&self, span: Span) -> Option<&ConfigFilePart> {
        let is_in = |part: &&ConfigFilePart| part.span.start <= span.start;
        self.config_files.iter().rev().find(is_in)
    }

    /// The text without the files that it names.
    pub fn own_text(&self) -> &str {
        match self.config_files.first() {
            // The line end in front of the first file is not the text's.
            Some(first) => &self.text[..first.span.start - 1],
            None => &self.text,
        }
    }

    pub(crate) fn place_of_span(&self, at: FieldPath, span: Span, is_exact: bool) -> TextPlace {
        TextPlace {
            breadcrumb: self.breadcrumb(at),
            ..self.unnamed_place(span, is_exact)
        }
    }

    /// A place without its name.
    pub(crate) fn unnamed_place(&self, span: Span, is_exact: bool) -> TextPlace {
        let position = |offset: usize| {
            let mut position = self.lines.position(&self.text, offset);
            if let Some(part) = self.config_file_at(span) {
                let first = self.lines.position(&self.text, part.span.start);
                position.line = position.line - first.line + 1;
            }
            position
        };
        TextPlace {
            span,
            start: position(span.start),
            end: position(span.end),
            is_exact,
            breadcrumb: String::new(),
        }
    }

    /// A field in words: `disk vda › driver/@cache`, or without elements `disk vda › cache`.
    pub fn breadcrumb(&self, at: FieldPath) -> String {
        let words = |at| self.with_placeholders(breadcrumb(self.domain(), at));
        let mut crumb = words(at);
        if let Source::Spec(_) = &self.source
            && let FieldPath::Disk(index, field) = at
            && let Some(key) = disk(field).spec
        {
            let whole = FieldPath::Disk(index, DiskField::Disk);
            return format!("{} › {key}", words(whole));
        }
        if let Source::QemuCommandLine(_) | Source::Spec(_) = &self.source
            && let Some(attribute) = crumb.rfind('@')
        {
            let field = crumb.rfind(" › ").map_or(0, |before| before + " › ".len());
            if field < attribute {
                crumb.replace_range(field..=attribute, "");
            }
        }
        crumb
    }

    /// A phrase in the words of the text.
    pub(crate) fn render(&self, phrase: &Phrase) -> String {
        self.with_speller(|speller| phrase.render(speller))
    }

    /// A phrase in the words of the text, with the first releases of the open programs that accept its settings.
    pub(crate) fn render_help(&self, help: &Phrase, open: OpenVersions) -> String {
        self.with_speller(|speller| help.render_for(speller, open))
    }

    /// Calls `use_speller` with the speller of the text's syntax.
    pub(crate) fn with_speller<T>(&self, use_speller: impl FnOnce(&dyn Speller) -> T) -> T {
        match &self.source {
            Source::LibvirtXml(document) => use_speller(&XmlSpeller(&document.domain)),
            Source::QemuCommandLine(document) => {
                let text = &self.text;
                use_speller(&CommandLineSpeller { document, text })
            }
            Source::Spec(document) => use_speller(&SpecSpeller(&document.planned.domain)),
        }
    }

    /// Whether [`edits_of`](Self::edits_of) has the byte edits of a fix.
    pub(crate) fn can_make(&self, fix: &crate::rules::Fix) -> bool {
        match &self.source {
            Source::LibvirtXml(document) if self.template.is_none() && !self.has_expansion() => {
                vmdisk_libvirt::check_changes(self.read_text(), document, &fix.changes).is_ok()
            }
            Source::LibvirtXml(_) | Source::QemuCommandLine(_) | Source::Spec(_) => {
                self.edits_of(fix).is_some()
            }
        }
    }

    /// True if any part of the text has an expansion.
    fn has_expansion(&self) -> bool {
        *self.has_expansion.get_or_init(|| has_expansion(&self.text))
    }

    /// The byte edits of a fix; `None` if one of its steps cannot be made in this text.
    pub(crate) fn edits_of(&self, fix: &crate::rules::Fix) -> Option<Vec<Edit>> {
        let mut edits = fix.edits.clone();
        edits.extend(match &self.source {
            Source::LibvirtXml(document) => {
                vmdisk_libvirt::edits_of_all(self.read_text(), document, &fix.changes).ok()?
            }
            Source::QemuCommandLine(document) => {
                vmdisk_qemu::edits_of_all(document, &fix.changes).ok()?
            }
            Source::Spec(document) => {
                let PlannedDocument { spec, planned, .. } = &**document;
                spec.edits_of_all(self.read_text(), planned, &fix.changes)
                    .ok()?
            }
        });
        self.may_edit(&edits).then_some(edits)
    }

    /// True unless an edit touches text that something fills in later: nobody knows here what it will be.
    pub(crate) fn may_edit(&self, edits: &[Edit]) -> bool {
        let is_own = |edit: &Edit| match &self.source {
            Source::QemuCommandLine(document) => {
                document.is_shared(edit.span) || document.is_filled(edit.span)
            }
            Source::LibvirtXml(_) | Source::Spec(_) => {
                self.template().is_some_and(|it| it.touches(edit.span))
            }
        };
        let is_open = |edit: &Edit| is_own(edit) || has_expansion(self.touched_by(edit.span));
        let is_plain = match &self.source {
            Source::QemuCommandLine(document) => document.holes.is_empty(),
            Source::LibvirtXml(_) | Source::Spec(_) => self.template.is_none(),
        };
        is_plain && !self.has_expansion() || !edits.iter().any(is_open)
    }

    /// The replaced text, with the words that it is a part of or stands beside; on a command line, with whole options.
    fn touched_by(&self, span: Span) -> &str {
        let Span { start, end } = match &self.source {
            Source::QemuCommandLine(document) => document.options_around(span),
            Source::LibvirtXml(_) | Source::Spec(_) => span,
        };
        let (before, after) = (self.text.get(..start), self.text.get(end..));
        let word = |text: &str| text.find(char::is_whitespace).unwrap_or(text.len());
        let start = before
            .and_then(|text| text.rfind(char::is_whitespace))
            .map_or(0, |at| at + 1);
        let end = end + after.map_or(0, word);
        self.text.get(start..end).unwrap_or_default()
    }
}

/// A field of a guest in words: `disk vda › driver/@cache`.
pub fn breadcrumb(domain: &Domain, at: FieldPath) -> String {
    let of_disk = |index: usize, rest: &[&str]| match domain.disks.get(index) {
        Some(disk) => joined("disk ", disk.name(), rest),
        None => joined("disk ", &index.to_string(), rest),
    };
    match at {
        FieldPath::Domain(field) => field.label().to_owned(),
        FieldPath::Disk(index, DiskField::Disk) => of_disk(index, &[]),
        FieldPath::Disk(index, field) => of_disk(index, &[field.label()]),
        FieldPath::Image(index, 0, field) => of_disk(index, &[field.label()]),
        FieldPath::Image(index, depth, field) => {
            of_disk(index, &[&format!("backing image {depth}"), field.label()])
        }
        FieldPath::Controller(index, ControllerField::Controller) => {
            joined("controller ", &index.to_string(), &[])
        }
        FieldPath::Controller(index, field) => {
            joined("controller ", &index.to_string(), &[field.label()])
        }
        FieldPath::IoThread(index, field) => {
            joined("iothread ", &index.to_string(), &[field.label()])
        }
        FieldPath::Iotune(index, field) => of_disk(index, &["iotune", field.label()]),
        FieldPath::ThrottleGroup(index, field) => {
            joined("throttle group ", &index.to_string(), &[field.label()])
        }
    }
}

/// A thing by its name, and the way to something in it. There is one for each entry of a report, so it is not formatted.
fn joined(kind: &str, name: &str, rest: &[&str]) -> String {
    const ARROW: &str = " › ";
    let length = |part: &&str| ARROW.len() + part.len();
    let rest_length: usize = rest.iter().map(length).sum();
    let mut out = String::with_capacity(kind.len() + name.len() + rest_length);
    out.push_str(kind);
    out.push_str(name);
    for part in rest {
        out.push_str(ARROW);
        out.push_str(part);
    }
    out
}
