//! The evidence of a rule.

/// One piece of evidence, of a kind that a reader can check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A program refuses the configuration; a test in this repository starts it and is refused, unless the row is marked
    /// as a citation of documents only.
    Refused {
        /// Program and versions, such as `libvirt 9.0`.
        by: &'static str,
        /// Its text; `…` means names and numbers.
        text: &'static str,
        /// Where the text comes from: file and function.
        source: &'static str,
    },
    /// Somebody measured it; the figures and how they were come by.
    Measured {
        /// The figures.
        figures: &'static str,
        /// How: kernel, program, command, or a file in `fixtures/measurements/`.
        how: &'static str,
    },
    /// A document or a commit.
    Source(&'static str),
    /// A vulnerability by its number.
    Cve(&'static str),
    /// A claim about speed that has no measurement in this repository yet, and what it rests on meanwhile.
    NotMeasuredHere(&'static str),
}

const AT_START: &str = "libvirt at the start";
const IN_DOCUMENTS: &str = "libvirt, from documents only";

impl Evidence {
    /// A refusal by libvirt: its text, in which `…` means the variable parts, and its source.
    pub const fn refused_by_libvirt(text: &'static str, source: &'static str) -> Self {
        Evidence::Refused {
            by: "libvirt",
            text,
            source,
        }
    }

    /// Something that libvirt takes, and refuses to start.
    pub const fn refused_by_libvirt_at_start(text: &'static str, source: &'static str) -> Self {
        Evidence::Refused {
            by: AT_START,
            text,
            source,
        }
    }

    /// Something that libvirt refuses as its source has it, and that none that is tried here can be made to say:
    /// `source` says why.
    pub const fn refused_by_libvirt_in_documents(text: &'static str, source: &'static str) -> Self {
        Evidence::Refused {
            by: IN_DOCUMENTS,
            text,
            source,
        }
    }

    /// True if the program takes the configuration, and refuses to start it.
    pub fn is_at_start(&self) -> bool {
        matches!(self, Evidence::Refused { by, .. } if *by == AT_START)
    }

    /// True if no program was made to say it.
    pub fn is_from_documents(&self) -> bool {
        matches!(self, Evidence::Refused { by, .. } if *by == IN_DOCUMENTS)
    }

    /// True if `program` says in `message` what it is quoted for.
    ///
    /// ```
    /// use vmdisk_rule::Evidence;
    /// let evidence = Evidence::refused_by_libvirt("disk model '…' not supported for bus '…'", "a source");
    /// let message = "unsupported configuration: disk model 'virtio' not supported for bus 'sata'";
    /// assert!(evidence.is_said_by("libvirt", message));
    /// assert!(!evidence.is_said_by("QEMU", message));
    /// ```
    pub fn is_said_by(&self, program: &str, message: &str) -> bool {
        let Evidence::Refused { by, text, .. } = self else {
            return false;
        };
        if !by.starts_with(program) {
            return false;
        }
        let mut rest = message;
        text.split('…').all(|part| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    }
}

impl std::fmt::Display for Evidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Evidence::Refused { by, text, source } => {
                write!(f, "refused by {by}: `{text}` ({source})")
            }
            Evidence::Measured { figures, how } => write!(f, "measured: {figures} ({how})"),
            Evidence::Source(source) => write!(f, "source: {source}"),
            Evidence::Cve(number) => f.write_str(number),
            Evidence::NotMeasuredHere(source) => {
                write!(f, "not measured by this project yet; rests on: {source}")
            }
        }
    }
}
