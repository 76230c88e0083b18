//! One message in rustc's style: title, snippet, notes, help, patch.

use annotate_snippets::renderer::Renderer;
use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Patch, Snippet};
use vmdisk_source::{Edit, LineIndex, Position, Span};

use crate::render::window::{Window, excerpt, shown_part};
use crate::sanitize;
use vmdisk_source::secrets::{Secrets, mask};

/// Further places shown at most; the rest is counted.
const MAX_RELATED: usize = 6;

/// Further places on lines at most so far away share the snippet of the main place.
const NEAR_BYTES: usize = 1500;

/// Width of a snippet: fixed, so that the same input gives the same bytes everywhere.
const WIDTH: usize = 120;

/// The heading of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heading {
    Error,
    Warning,
    Advice,
    Pedantic,
    Allowed,
}

impl Heading {
    fn level(self) -> Level<'static> {
        match self {
            Heading::Error => Level::ERROR,
            Heading::Warning => Level::WARNING,
            Heading::Advice => Level::INFO.with_name("advice"),
            Heading::Pedantic => Level::NOTE.with_name("pedantic"),
            Heading::Allowed => Level::NOTE.with_name("allowed"),
        }
    }
}

/// A place in a text, and the text.
#[derive(Clone, Copy)]
pub(crate) struct Quoted<'a> {
    pub(crate) text: &'a str,
    pub(crate) lines: &'a LineIndex,
    pub(crate) secrets: &'a Secrets,
    pub(crate) span: Span,
    pub(crate) label: Option<&'a str>,
    /// False shows the position alone.
    pub(crate) snippet: bool,
}

/// Everything a block may say.
pub(crate) struct Block<'a> {
    pub(crate) heading: Heading,
    pub(crate) id: Option<&'a str>,
    /// The address that the id links to.
    pub(crate) url: Option<String>,
    pub(crate) title: &'a str,
    pub(crate) path: Option<&'a str>,
    pub(crate) quoted: Option<Quoted<'a>>,
    pub(crate) related: Vec<(Span, &'a str)>,
    pub(crate) notes: Vec<String>,
    pub(crate) help: Option<String>,
    /// Edits shown as a patch under the help.
    pub(crate) patch: &'a [Edit],
}

impl Block<'_> {
    /// The block as text that ends with a line end.
    pub(crate) fn render(&self, colored: bool) -> String {
        let renderer = if colored {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let title = self.heading.level().primary_title(line(self.title));
        let title = match (self.id, &self.url) {
            (Some(id), Some(url)) => title.id(id).id_url(url),
            (Some(id), None) => title.id(id),
            (None, _) => title,
        };
        let mut group = Group::with_title(title);
        let windows = Windows::new(self);
        for element in windows.elements(self) {
            group = group.element(element);
        }
        for note in windows.notes.iter().chain(&self.notes) {
            group = group.element(Level::NOTE.message(line(note)));
        }
        let patch = self.patch_snippets();
        let mut groups = Vec::with_capacity(2);
        match (&self.help, patch.is_empty()) {
            (Some(help), true) => {
                groups.push(group.element(Level::HELP.message(line(help))));
            }
            (None, true) => groups.push(group),
            (help, false) => {
                groups.push(group);
                let help = help.as_deref().unwrap_or("write this instead");
                let mut group = Group::with_title(Level::HELP.secondary_title(line(help)));
                for (window, at, edits) in &patch {
                    let patches = edits.iter().filter_map(|edit| {
                        Some(Patch::new(
                            window.range(edit.span)?,
                            clean_source(&edit.text),
                        ))
                    });
                    group = group.element(
                        Snippet::source(window.text())
                            .line_start(at.line)
                            .patches(patches),
                    );
                }
                groups.push(group);
            }
        }
        let mut out = renderer.term_width(WIDTH).render(&groups);
        out.push('\n');
        out
    }

    /// Windows over edits that lie close together, each with its edits; empty if one of them cannot
    /// be shown.
    fn patch_snippets(&self) -> Vec<(Window<'_>, Position, Vec<&Edit>)> {
        let Some(quoted) = self.quoted.filter(|_| !self.patch.is_empty()) else {
            return Vec::new();
        };
        let mut edits: Vec<&Edit> = self.patch.iter().collect();
        edits.sort_by_key(|edit| edit.span);
        let mut clusters: Vec<(Span, Vec<&Edit>)> = Vec::new();
        for edit in edits {
            match clusters.last_mut() {
                Some((span, members)) if edit.span.start <= span.end + NEAR_BYTES => {
                    span.end = span.end.max(edit.span.end);
                    members.push(edit);
                }
                Some(_) | None => clusters.push((edit.span, vec![edit])),
            }
        }
        clusters
            .into_iter()
            .map(|(span, members)| {
                let window = Window::around(quoted.text, quoted.secrets, span)?;
                Some((
                    window,
                    quoted.lines.position(quoted.text, span.start),
                    members,
                ))
            })
            .collect::<Option<Vec<_>>>()
            .unwrap_or_default()
    }
}

fn line(text: &str) -> String {
    sanitize::line(text).into_owned()
}

/// The text of an edit, without secrets and with what acts on a terminal replaced.
fn clean_source(text: &str) -> String {
    mask(text).chars().map(sanitize::source_character).collect()
}

/// The windows of a block: one around the main place and those near it, one for each far place.
struct Windows<'a> {
    path: String,
    main: Option<Main<'a>>,
    far: Vec<(Window<'a>, usize, Span, String)>,
    /// What could not be shown as a snippet.
    notes: Vec<String>,
}

struct Main<'a> {
    position: Position,
    shown: Option<(Window<'a>, usize)>,
    span: Span,
    label: Option<String>,
    near: Vec<(Span, String)>,
}

impl<'a> Windows<'a> {
    fn new(block: &Block<'a>) -> Self {
        let mut windows = Windows {
            path: line(block.path.unwrap_or_default()),
            main: None,
            far: Vec::new(),
            notes: Vec::new(),
        };
        let Some(quoted) = block.quoted else {
            return windows;
        };
        let Quoted {
            text,
            lines: index,
            secrets,
            span,
            label,
            snippet,
        } = quoted;
        let span = shown_part(text, span);
        let line_of = |offset: usize| index.position(text, offset).line;
        let mut bounds = span;
        let mut near = Vec::new();
        let mut far = Vec::new();
        for (at, label) in block
            .related
            .iter()
            .take(if snippet { MAX_RELATED } else { 0 })
        {
            let at = shown_part(text, *at);
            let label = line(label);
            let is_near = at.start + NEAR_BYTES >= span.end && at.end <= span.start + NEAR_BYTES;
            if is_near {
                bounds = Span::new(bounds.start.min(at.start), bounds.end.max(at.end));
                near.push((at, label));
            } else {
                far.push((at, label));
            }
        }
        let mut shown = None;
        if snippet {
            shown = Window::around(text, secrets, bounds);
            if shown.is_none() {
                far.splice(0..0, near.drain(..));
                shown = Window::around(text, secrets, span);
                bounds = span;
            }
            if shown.is_none() {
                windows
                    .notes
                    .push(format!("it reads {}", excerpt(text, secrets, span)));
            }
        }
        for (at, label) in far {
            match Window::around(text, secrets, at) {
                Some(window) => windows.far.push((window, line_of(at.start), at, label)),
                None => windows
                    .notes
                    .push(format!("{label}: {}", excerpt(text, secrets, at))),
            }
        }
        let more = block.related.len().saturating_sub(MAX_RELATED);
        if snippet && more > 0 {
            windows.notes.push(format!("and {more} further places"));
        }
        windows.main = Some(Main {
            position: index.position(text, span.start),
            shown: shown.map(|window| (window, line_of(bounds.start))),
            span,
            label: label.map(line),
            near,
        });
        windows
    }

    fn elements<'b>(&'b self, block: &Block<'_>) -> Vec<Element<'b>> {
        let mut elements: Vec<Element<'b>> = Vec::new();
        let Some(main) = &self.main else {
            if block.path.is_some() {
                elements.push(Origin::path(self.path.as_str()).into());
            }
            return elements;
        };
        let primary = main
            .shown
            .as_ref()
            .and_then(|(window, at)| Some((window, *at, window.range(main.span)?)));
        match primary {
            Some((window, at, range)) => {
                let near = main.near.iter().filter_map(|(span, label)| {
                    let range = window.range(*span)?;
                    Some(AnnotationKind::Context.span(range).label(label.as_str()))
                });
                elements.push(
                    Snippet::source(window.text())
                        .path(self.path.as_str())
                        .line_start(at)
                        .annotation(
                            AnnotationKind::Primary
                                .span(range)
                                .label(main.label.as_deref()),
                        )
                        .annotations(near)
                        .into(),
                );
            }
            None => elements.push(
                Origin::path(self.path.as_str())
                    .line(main.position.line)
                    .char_column(main.position.column)
                    .into(),
            ),
        }
        for (window, at, span, label) in &self.far {
            if let Some(range) = window.range(*span) {
                elements.push(
                    Snippet::source(window.text())
                        .path(self.path.as_str())
                        .line_start(*at)
                        .annotation(AnnotationKind::Context.span(range).label(label.as_str()))
                        .into(),
                );
            }
        }
        elements
    }
}
