//! Conversion of operating system errors to reasons for unknown facts.

use std::io;

use rustix::io::Errno;
use vmdisk_facts::{Fact, Reason, Unknown};
pub(crate) use vmdisk_source::sanitize::system_message as message;

/// Returns the reason for a failure, with the attempted operation and the system's message.
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
    Unknown::new(reason, format!("{what}: {}", message(error)))
}

/// Parses the text of a file as a fact: absent if the file does not exist, unknown if it cannot be read or parsed.
pub(crate) fn fact_of<T>(
    what: &str,
    read: io::Result<String>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Fact<T> {
    match read {
        Ok(text) => match parse(&text) {
            Some(value) => Fact::Known(value),
            None => Fact::unknown(Reason::Parse, format!("{what}: '{}'", shortened(&text))),
        },
        Err(error) if missing(&error) => Fact::Absent,
        Err(error) => Fact::Unknown(obstacle(what, &error)),
    }
}

/// Returns true if the error means that the file does not exist.
pub(crate) fn missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Shortens a text for messages.
pub(crate) fn shortened(text: &str) -> String {
    const MAX_LENGTH: usize = 60;
    if text.chars().count() <= MAX_LENGTH {
        return text.to_owned();
    }
    text.chars().take(MAX_LENGTH).chain(['…']).collect()
}

/// Returns the symbolic name of an error (`EINVAL`), or its number.
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
    fn a_missing_file_is_absent_and_an_unreadable_one_unknown() {
        let number = |text: &str| text.parse::<u32>().ok();
        let missing = fact_of("x", Err(io::Error::from(Errno::NOENT)), number);
        assert_eq!(missing, Fact::Absent);
        let forbidden = fact_of("/sys/x", Err(io::Error::from(Errno::ACCESS)), number);
        assert_eq!(
            forbidden,
            Fact::unknown(Reason::Permission, "/sys/x: permission denied")
        );
        assert_eq!(fact_of("x", Ok("7".to_owned()), number), Fact::Known(7));
        assert_eq!(
            fact_of("x", Ok("seven".to_owned()), number),
            Fact::unknown(Reason::Parse, "x: 'seven'")
        );
    }
}
