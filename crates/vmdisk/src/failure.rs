//! Why a text cannot be read at all.

use vmdisk_source::Span;
use vmdisk_source::secrets::mask_message_about;

/// The syntax of the text that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadFailureKind {
    /// The text is not readable as XML; with the reason.
    LibvirtXml(vmdisk_libvirt::ReadFailureKind),
    /// A command line.
    QemuCommandLine,
    /// A spec that is not YAML.
    Spec,
}

/// Why a text cannot be read at all, with its place.
///
/// Mistakes in the values of a readable document are findings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ReadFailure {
    /// What kind of failure.
    pub kind: ReadFailureKind,
    /// Where; empty at the start where the bytes could not become text.
    pub span: Span,
    /// The mistake: lower case, no full stop.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// Other places that explain it, each with what is there.
    pub related: Vec<(Span, String)>,
}

impl ReadFailure {
    /// The place in the text, if it has one that can be shown.
    pub fn place_in(&self, text: &str) -> Option<Span> {
        let has_place = !text.is_empty() && !text.contains('\0') && self.span != Span::empty(0);
        has_place.then_some(self.span)
    }

    /// Masks the secrets in what it quotes of the text.
    pub(crate) fn masked(mut self, text: &str) -> Self {
        let related = self.related.iter_mut().map(|(_, said)| said);
        let texts = std::iter::once(&mut self.message).chain(&mut self.help);
        for said in texts.chain(related) {
            *said = mask_message_about(said, text);
        }
        self
    }
}

impl From<vmdisk_libvirt::ReadFailure> for ReadFailure {
    fn from(failure: vmdisk_libvirt::ReadFailure) -> Self {
        let vmdisk_libvirt::ReadFailure {
            kind,
            span,
            message,
            help,
            related,
        } = failure;
        ReadFailure {
            kind: ReadFailureKind::LibvirtXml(kind),
            span,
            message,
            help,
            related,
        }
    }
}

impl From<vmdisk_qemu::ReadFailure> for ReadFailure {
    fn from(failure: vmdisk_qemu::ReadFailure) -> Self {
        let vmdisk_qemu::ReadFailure {
            span,
            message,
            help,
        } = failure;
        ReadFailure {
            kind: ReadFailureKind::QemuCommandLine,
            span,
            message,
            help,
            related: Vec::new(),
        }
    }
}
