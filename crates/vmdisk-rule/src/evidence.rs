//! The evidence of a rule.

/// A piece of evidence that a reader can check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A program refuses the configuration. A test in this repository starts the program and gets the message, unless
    /// the row is marked as a citation of documents only.
    Refused {
        /// Program and versions, such as `libvirt 9.0`.
        by: &'static str,
        /// Its message; `…` stands for names and numbers.
        text: &'static str,
        /// The source of the message: file and function.
        source: &'static str,
    },
    /// A measurement, with figures and method.
    Measured {
        /// The figures.
        figures: &'static str,
        /// The method: kernel, program, command, or a file in `fixtures/measurements/`.
        how: &'static str,
    },
    /// A document or a commit.
    Source(&'static str),
    /// A vulnerability by its number.
    Cve(&'static str),
    /// A claim about speed that is not yet measured in this repository, and its basis.
    NotMeasuredHere(&'static str),
}

const BY_LIBVIRT: &str = "libvirt";
const AT_START: &str = "libvirt at the start";
const IN_DOCUMENTS: &str = "libvirt, from documents only";

impl Evidence {
    /// A refusal by a program in these versions, such as `QEMU 7.2 and later`.
    pub const fn refused_by(by: &'static str, text: &'static str, source: &'static str) -> Self {
        Evidence::Refused { by, text, source }
    }

    /// A refusal by every QEMU: its message, in which `…` stands for variable parts, and the source.
    pub const fn refused_by_qemu(text: &'static str, source: &'static str) -> Self {
        Self::refused_by("QEMU", text, source)
    }

    /// A refusal by libvirt: its message, in which `…` stands for variable parts, and the source.
    pub const fn refused_by_libvirt(text: &'static str, source: &'static str) -> Self {
        Self::refused_by(BY_LIBVIRT, text, source)
    }

    /// A configuration that libvirt accepts, but refuses to start.
    pub const fn refused_by_libvirt_at_start(text: &'static str, source: &'static str) -> Self {
        Self::refused_by(AT_START, text, source)
    }

    /// A refusal in libvirt's source that no tested libvirt can be made to print; `source` gives the reason.
    pub const fn refused_by_libvirt_in_documents(text: &'static str, source: &'static str) -> Self {
        Self::refused_by(IN_DOCUMENTS, text, source)
    }

    /// Figures, and the method: kernel, program, command, or a file in `fixtures/measurements/`.
    pub const fn measured(figures: &'static str, how: &'static str) -> Self {
        Evidence::Measured { figures, how }
    }

    /// True if libvirt refuses to define the configuration.
    pub fn is_refused_by_libvirt(&self) -> bool {
        matches!(
            self,
            Evidence::Refused {
                by: BY_LIBVIRT | IN_DOCUMENTS,
                ..
            }
        )
    }

    /// True if the program accepts the configuration, but refuses to start it.
    pub fn is_at_start(&self) -> bool {
        matches!(self, Evidence::Refused { by, .. } if *by == AT_START)
    }

    /// True if no tested program prints it.
    pub fn is_from_documents(&self) -> bool {
        matches!(self, Evidence::Refused { by, .. } if *by == IN_DOCUMENTS)
    }

    /// True if the `message` of `program` matches the quoted text.
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
