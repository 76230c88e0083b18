//! The files of `<loader>` and `<nvram>` in a text.

use std::borrow::Cow;

use vmdisk_source::Span;

use crate::xml::Tree;

/// The files of firmware that a guest names, each with its place.
pub(crate) struct FirmwareElements<'t> {
    pub(crate) code: (Cow<'t, str>, Span),
    pub(crate) variables: Option<(Cow<'t, str>, Span)>,
    pub(crate) template: Option<(Cow<'t, str>, Span)>,
    /// True for flash, false for a ROM.
    pub(crate) is_flash: bool,
}

impl<'t> FirmwareElements<'t> {
    /// The files of a domain; `None` without a path of code.
    pub(crate) fn of(tree: &'t Tree<'t>) -> Option<Self> {
        let os = tree.root().child("os")?;
        let path = |(text, span): (Cow<'t, str>, Option<Span>)| match text.trim() {
            path if path.starts_with('/') => Some((Cow::Owned(path.to_owned()), span?)),
            _ => None,
        };
        let loader = os.child("loader")?;
        let nvram = os.child("nvram");
        // A source element has other storage.
        let own = nvram.filter(|it| it.children().next().is_none());
        let template = nvram.and_then(|it| {
            let mut attributes = it.attributes();
            let attribute = attributes.find(|it| it.is_named("template"))?;
            let path = attribute.value();
            path.starts_with('/')
                .then(|| (Cow::Borrowed(path), attribute.value_span()))
        });
        Some(FirmwareElements {
            code: path(loader.text())?,
            variables: own.and_then(|it| path(it.text())),
            template,
            is_flash: loader.attribute("type") == Some("pflash"),
        })
    }
}
