//! `vmdisk bench` in a build without the cargo feature `bench`: it says that it was left out.

use crate::color::Colors;
use crate::exit::Exit;
use crate::io::Io;
use crate::stop::Stop;

use args::BenchArgs;

/// Reports that benchmarks are not compiled in, for every subcommand.
pub(crate) fn run(_: &BenchArgs, _: &mut Io<'_>, _: Colors) -> Result<Exit, Stop> {
    Err(Stop::new("this vmdisk was built without benchmarks")
        .help("build vmdisk-cli with its cargo feature `bench`"))
}

/// The command line of `vmdisk bench`.
pub(crate) mod args {
    use std::ffi::OsString;

    #[derive(clap::Args, Debug)]
    #[command(disable_help_flag = true)]
    pub(crate) struct BenchArgs {
        /// Not read in this build.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        _words: Vec<OsString>,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn every_benchmark_command_says_that_benchmarks_were_left_out() {
        for words in [
            &["bench"][..],
            &["bench", "run", "five-backends", "--dry-run"],
        ] {
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
            let words = std::iter::once(&"vmdisk").chain(words).map(OsString::from);
            assert_eq!(crate::run(words, &mut io), Exit::CouldNot);
            let said = String::from_utf8(stderr).unwrap();
            assert!(said.contains("built without benchmarks"), "{said}");
        }
    }
}
