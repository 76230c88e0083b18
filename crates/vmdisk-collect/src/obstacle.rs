//! From an error of the operating system to the reason a fact is unknown.

use std::io;

use rustix::io::Errno;
use vmdisk_facts::{Fact, Reason, Unknown};

/// The reason an attempt failed, with what was tried and what the system said.
pub(crate) fn obstacle(what: &str, error: &io::Error) -> Unknown {
    let kind = error.kind();
    let reason = if kind == io::ErrorKind::PermissionDenied {
        Reason::Permission
    } else if kind == io::ErrorKind::TimedOut {
        Reason::Timeout
    } else if matches!(kind, io::ErrorKind::Unsupported | io::ErrorKind::NotFound) {
        Reason::UnsupportedKernel
    } else if kind == io::ErrorKind::InvalidData {
        Reason::Parse
    } else {
        Reason::Other("io".to_owned())
    };
    Unknown::new(reason, format!("{what}: {}", said(error)))
}

/// What the system said, without the number that Rust puts behind it.
pub(crate) fn said(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// A fact from reading a file: absent when the file does not exist, unknown when it cannot be read or understood.
pub(crate) fn fact_of<T>(
    what: &str,
    read: io::Result<String>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Fact<T> {
    match read {
        Ok(text) => match parse(text.trim()) {
            Some(value) => Fact::Known(value),
            None => Fact::unknown(
                Reason::Parse,
                format!("{what}: '{}'", shortened(text.trim())),
            ),
        },
        Err(error) if missing(&error) => Fact::Absent,
        Err(error) => Fact::Unknown(obstacle(what, &error)),
    }
}

/// Whether the error says that there is no such file.
pub(crate) fn missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Enough of a text to recognise it by.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}

/// The name of an error as programmers know it (`EINVAL`), or its number.
pub(crate) fn errno_name(errno: Errno) -> String {
    let name = match errno {
        Errno::INVAL => "EINVAL",
        Errno::AGAIN => "EAGAIN",
        Errno::OPNOTSUPP => "EOPNOTSUPP",
        Errno::NOSYS => "ENOSYS",
        Errno::NOSPC => "ENOSPC",
        Errno::DQUOT => "EDQUOT",
        Errno::IO => "EIO",
        Errno::PERM => "EPERM",
        Errno::ACCESS => "EACCES",
        Errno::ROFS => "EROFS",
        Errno::NOTTY => "ENOTTY",
        _ => return format!("errno {}", errno.raw_os_error()),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_absent_and_a_forbidden_one_unknown() {
        let number = |text: &str| text.parse::<u32>().ok();
        let missing = fact_of("x", Err(io::Error::from(Errno::NOENT)), number);
        assert_eq!(missing, Fact::Absent);
        let forbidden = fact_of("/sys/x", Err(io::Error::from(Errno::ACCESS)), number);
        assert_eq!(
            forbidden,
            Fact::unknown(Reason::Permission, "/sys/x: permission denied")
        );
        assert_eq!(fact_of("x", Ok("7\n".to_owned()), number), Fact::Known(7));
        assert_eq!(
            fact_of("x", Ok("seven\n".to_owned()), number),
            Fact::unknown(Reason::Parse, "x: 'seven'")
        );
    }
}
