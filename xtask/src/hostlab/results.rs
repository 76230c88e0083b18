//! Files from the guest: one after another, each after a line `NAME LENGTH`.

use anyhow::{Context, ensure};

/// One file from the guest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Handed {
    /// Its name in the guest.
    pub(crate) name: String,
    /// Its content.
    pub(crate) bytes: Vec<u8>,
}

/// Parses the data from the port.
pub(crate) fn parse(mut bytes: &[u8]) -> anyhow::Result<Vec<Handed>> {
    let mut handed = Vec::new();
    while !bytes.is_empty() {
        let end = bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .context("a line without an end")?;
        let line = std::str::from_utf8(&bytes[..end]).context("a line that is not valid UTF-8")?;
        let (name, length) = line
            .rsplit_once(' ')
            .with_context(|| format!("`{line}` is not a name and a length"))?;
        let length: usize = length
            .parse()
            .with_context(|| format!("`{line}` has no valid length"))?;
        let content = &bytes[end + 1..];
        ensure!(
            content.len() >= length,
            "{name} ends after {} of {length} bytes",
            content.len()
        );
        handed.push(Handed {
            name: name.to_owned(),
            bytes: content[..length].to_vec(),
        });
        bytes = &content[length..];
    }
    Ok(handed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_parsed_one_after_another() {
        let handed = parse(b"a b.json 3\n{}\nempty 0\n").unwrap();
        assert_eq!(handed.len(), 2);
        assert_eq!(
            (handed[0].name.as_str(), handed[0].bytes.as_slice()),
            ("a b.json", &b"{}\n"[..])
        );
        assert_eq!(handed[1].bytes, b"");
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        assert!(parse(b"a 5\n123").is_err());
        assert!(parse(b"a 5").is_err());
        assert!(parse(b"a x\n").is_err());
    }
}
