//! `vmdisk lsp` in a build without the cargo feature `lsp`: it says that it was left out.

use crate::args::LspArgs;
use crate::color::Colors;
use crate::exit::Exit;
use crate::io::Io;
use crate::stop::Stop;

/// Reports that the language server is not compiled in.
pub(crate) fn run(_: &LspArgs, _: &mut Io<'_>, _: Colors) -> Result<Exit, Stop> {
    Err(
        Stop::new("this vmdisk was built without the language server")
            .help("build vmdisk-cli with its cargo feature `lsp`"),
    )
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn the_language_server_was_left_out_and_the_command_says_so() {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut io = Io {
            stdin: &mut std::io::empty(),
            stdout: &mut stdout,
            stderr: &mut stderr,
            stdout_has_color: false,
            stdout_has_links: false,
            stdout_width: None,
            stderr_has_color: false,
        };
        let words = ["vmdisk", "lsp"].map(OsString::from);
        assert_eq!(crate::run(words, &mut io), Exit::CouldNot);
        let said = String::from_utf8(stderr).unwrap();
        assert!(said.contains("without the language server"), "{said}");
    }
}
