//! Internal to vmdisk: the vmdisk command: lint, generate, facts, explain.
//!
//! This crate alone reads files, prints and sets the exit status; everything it knows about disks comes
//! from the crate `vmdisk`. [`run`] is the whole program over streams that a test can replace.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests read what they wrote")
)]

mod advise;
mod age;
mod apply;
mod args;
mod ask;
mod atomic;
mod baseline;
#[cfg_attr(not(feature = "bench"), path = "no_bench.rs")]
mod bench;
mod capture;
mod clock;
mod color;
mod config;
mod contents;
mod convert;
mod decide;
mod deferred;
mod draw;
mod edit;
mod exit;
mod explain;
mod facts;
mod facts_file;
mod generate;
mod hook;
mod host;
mod hosts;
mod input;
mod io;
mod lint;
#[cfg_attr(not(feature = "lsp"), path = "no_lsp.rs")]
mod lsp;
mod next;
mod output;
mod pager;
mod parsers;
mod pattern;
mod qemu;
mod render;
mod report;
mod sanitize;
mod schema;
mod shell;
mod sources;
mod stop;
mod trace;
mod usage;
mod values;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::process::ExitCode;

pub use exit::Exit;
pub use io::Io;
#[cfg(feature = "schema")]
pub use schema::generate_schemas;

use args::{Cli, Command, Printed};
use color::Colors;
use input::watch;
use stop::Stop;

/// Runs the command on this process's arguments and streams.
pub fn main() -> ExitCode {
    #[cfg(feature = "bench")]
    if vmdisk_bench_runner::guest::is_first_program() {
        // A benchmark packs this very program into a guest, where it is the only process.
        vmdisk_bench_runner::guest::run_as_first_program();
    }
    if vmdisk_capture::is_stage() {
        // A capture runs this very program for its steps.
        return vmdisk_capture::run_stage();
    }
    let (mut stdin, mut stdout, mut stderr) = (
        std::io::stdin().lock(),
        std::io::stdout().lock(),
        std::io::stderr().lock(),
    );
    let shows = |choice| {
        matches!(
            choice,
            anstream::ColorChoice::Auto
                | anstream::ColorChoice::Always
                | anstream::ColorChoice::AlwaysAnsi
        )
    };
    let mut io = Io {
        stdout_has_color: shows(anstream::AutoStream::choice(&stdout)),
        stdout_has_links: shows_links(),
        stdout_width: rustix::termios::tcgetwinsize(std::io::stdout())
            .ok()
            .map(|size| usize::from(size.ws_col)),
        stderr_has_color: shows(anstream::AutoStream::choice(&stderr)),
        stdin: &mut stdin,
        stdout: &mut stdout,
        stderr: &mut stderr,
    };
    ExitCode::from(run(std::env::args_os(), &mut io).code())
}

/// True if standard output is a terminal that may show links. A terminal that does not know them ignores them.
fn shows_links() -> bool {
    let is_capable = |kind: OsString| !kind.is_empty() && kind != "dumb" && kind != "linux";
    std::io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(is_capable)
}

/// Runs the command with these arguments, the first of which is the program's name.
pub fn run(arguments: impl IntoIterator<Item = OsString>, io: &mut Io<'_>) -> Exit {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::read(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let end = usage::end(error, &arguments, io);
            return end.unwrap_or_else(|stop| complain(&stop, io, io.stderr_has_color));
        }
    };
    let colors = Colors::choose(cli.color, io);
    watch::look_at_words(&arguments[1..]);
    match dispatch(cli.command, &arguments, io, colors) {
        Ok(exit) => exit,
        Err(stop) => complain(&stop, io, colors.stderr),
    }
}

fn dispatch(
    command: Command,
    arguments: &[OsString],
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<Exit, Stop> {
    match command {
        Command::Lint(args) => lint::command(*args.0, io, colors),
        Command::Generate(args) => generate::run(&args.0, io, colors),
        Command::Apply(args) => {
            atomic::interrupt::is_handled_elsewhere();
            apply::run(*args.0, io, colors)
        }
        Command::Convert(args) => convert::run(&args.0, io, colors),
        Command::Decide(args) => decide::run(&args.0, arguments, io, colors),
        Command::Advise(args) => advise::run(&args.0, arguments, io, colors),
        Command::Trace(args) => trace::run(&args.0, io, colors),
        Command::Facts(args) => facts::run(&args.0, io, colors),
        Command::Capture(args) => capture::run(*args.0, io),
        Command::Bench(args) => {
            atomic::interrupt::is_handled_elsewhere();
            bench::run(&args.0, io, colors)
        }
        Command::Hook(args) => hook::run(&args.0, io),
        Command::Lsp(args) => lsp::run(&args.0, io, colors),
        Command::Edit(args) => edit::run(*args.0, io, colors),
        Command::Explain(args) => explain::explain(&args.0, colors.stdout, io),
        Command::Print(args) => match &args.0.what {
            Printed::Schema(args) => schema::run(args, io),
            Printed::Completions(args) => shell::completions(args, io),
            Printed::Man(args) => shell::man(args, io),
        },
    }
}

fn complain(stop: &Stop, io: &mut Io<'_>, colored: bool) -> Exit {
    let messages: Vec<String> = stop
        .0
        .iter()
        .map(|message| message.render(colored))
        .collect();
    io.say(&messages.join("\n"));
    Exit::CouldNot
}
