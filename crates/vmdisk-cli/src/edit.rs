//! `vmdisk edit`: changes the definition of a guest of libvirt, with the linter before and after.

use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::args::{EditArgs, LintArgs};
use crate::atomic::interrupt;
use crate::color::Colors;
use crate::exit::Exit;
use crate::input::bounded::{self, MAX_BYTES};
use crate::input::hypervisor::virsh::{Virsh, VirshError};
use crate::io::Io;
use crate::lint;
use crate::sanitize::line;
use crate::stop::{Stop, plain};

/// The answer to the question before a guest is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Define,
    Edit,
    Leave,
}

/// Runs the command.
pub(crate) fn run(args: EditArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let EditArgs {
        name,
        connect,
        host,
        selection,
        configuration,
    } = args;
    let virsh = Virsh::new(connect.as_deref());
    let before = virsh.whole_definition(&name).map_err(failed)?;
    // Only the user may read it: a definition may have passwords.
    let private = fs::Permissions::from_mode(0o700);
    let make = || tempfile::Builder::new().permissions(private).tempdir();
    let folder = interrupt::create(make, TempDir::path)
        .map_err(|error| Stop::file("create a folder in", &std::env::temp_dir(), plain(&error)))?;
    let file = folder.path().join("domain.xml");
    #[expect(
        clippy::disallowed_methods,
        reason = "nobody else can write into the folder"
    )]
    let write = fs::write(&file, &before);
    write.map_err(|error| Stop::file("write", &file, plain(&error)))?;
    let mut check = LintArgs {
        host,
        selection,
        configuration,
        cannot_fix: true,
        virsh: Some(virsh.clone()),
        ..LintArgs::default()
    };
    let guest = Guest {
        name: &name,
        before,
        file: &file,
    };
    let ended = guest.edit(&virsh, &mut check, io, colors);
    let is_edited = bounded::regular(&file, MAX_BYTES).is_ok_and(|now| now != guest.before);
    let name = line(&name);
    match ended {
        Ok(End::Unchanged) => {
            io.say(&format!("{name} was not changed\n"));
            Ok(Exit::Clean)
        }
        Ok(End::Defined) => {
            io.say(&format!("{name} was defined\n"));
            Ok(Exit::Clean)
        }
        Ok(End::AsBefore) => {
            let kept = keep(folder, &file);
            io.say(&format!(
                "libvirt accepted the text, but {name} is as before: the text defines another guest, or libvirt drops \
                 the change; {kept}\n"
            ));
            Ok(Exit::Findings)
        }
        Ok(End::NotDefined) => {
            let kept = keep(folder, &file);
            io.say(&format!("{name} was not defined; {kept}\n"));
            Ok(Exit::Findings)
        }
        Err(stop) => {
            if is_edited {
                let kept = keep(folder, &file);
                io.say(&format!("{name} was not defined; {kept}\n"));
            }
            Err(stop)
        }
    }
}

/// How an edit ended.
enum End {
    /// The text is the same.
    Unchanged,
    /// libvirt has the new definition.
    Defined,
    /// libvirt took the text, and the definition is the same.
    AsBefore,
    /// The user does not want the new definition.
    NotDefined,
}

/// A guest, and the file with its definition.
struct Guest<'a> {
    name: &'a str,
    before: Vec<u8>,
    file: &'a Path,
}

impl Guest<'_> {
    /// Lets the user edit the file until libvirt takes it, or the user gives up.
    fn edit(
        &self,
        virsh: &Virsh,
        check: &mut LintArgs,
        io: &mut Io<'_>,
        colors: Colors,
    ) -> Result<End, Stop> {
        let Guest { name, before, file } = self;
        let definition = || virsh.whole_definition(name).map_err(failed);
        let mut lint = |text: &[u8], io: &mut Io<'_>| {
            check.given = vec![(format!("<domain {name}>").into(), text.to_owned())];
            lint::run(check, io, colors)
        };
        // Whatever is found, it can be edited.
        let _ = lint(before, io)?;
        let mut answer = Answer::Edit;
        loop {
            if answer == Answer::Edit {
                start_editor(file)?;
                let after = bounded::regular(file, MAX_BYTES);
                let after = after.map_err(|error| Stop::file("read", file, plain(&error)))?;
                if after == *before {
                    return Ok(End::Unchanged);
                }
                let _ = lint(&after, io)?;
            }
            answer = ask(name, io)?;
            match answer {
                Answer::Edit => {}
                Answer::Leave => return Ok(End::NotDefined),
                Answer::Define => {
                    if definition()? != *before {
                        return Err(Stop::new(format!("{name} was changed by somebody else"))
                            .help("run `vmdisk edit` again, and repeat your changes"));
                    }
                    match virsh.define(file) {
                        // A guest with another name and UUID is another guest.
                        Ok(()) if definition().is_ok_and(|now| now == *before) => {
                            return Ok(End::AsBefore);
                        }
                        Ok(()) => return Ok(End::Defined),
                        Err(error) => io.say(&format!("{}\n", line(&error.to_string()))),
                    }
                }
            }
        }
    }
}

fn failed(error: VirshError) -> Stop {
    let help = error.help();
    Stop::new(error.to_string()).help(help)
}

/// Keeps the edited text, and says where it is.
fn keep(folder: TempDir, file: &Path) -> String {
    let path = folder.path().to_owned();
    let _ = interrupt::end(&path, || folder.keep());
    format!("the text is in {}", line(&file.display().to_string()))
}

/// Starts the user's editor, and waits for its end.
fn start_editor(file: &Path) -> Result<(), Stop> {
    let named = ["VISUAL", "EDITOR"]
        .into_iter()
        .filter_map(std::env::var_os);
    let mut named = named.filter(|editor| !editor.is_empty());
    let editor = named.next().unwrap_or_else(|| OsString::from("vi"));
    let text = editor.to_string_lossy();
    // An editor may be named with arguments, such as `code --wait`. No shell reads them.
    let mut words = text.split_whitespace();
    let program = PathBuf::from(words.next().unwrap_or("vi"));
    let status = Command::new(&program).args(words).arg(file).status();
    let fail = |why: String| {
        Stop::new(format!("the editor {} {why}", program.display()))
            .help("set VISUAL or EDITOR to an editor that waits until the file is closed")
    };
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(fail(format!("failed: {status}"))),
        Err(error) => Err(fail(format!("could not be started: {}", plain(&error)))),
    }
}

/// Asks until there is an answer; the end of the input is a no.
fn ask(name: &str, io: &mut Io<'_>) -> Result<Answer, Stop> {
    loop {
        io.say(&format!(
            "define {}? [y]es, [e]dit again, [n]o: ",
            line(name)
        ));
        let Some(said) = read_line(io.stdin)? else {
            io.say("\n");
            return Ok(Answer::Leave);
        };
        match said.trim() {
            "y" | "yes" => return Ok(Answer::Define),
            "e" | "edit" => return Ok(Answer::Edit),
            "n" | "no" => return Ok(Answer::Leave),
            _ => {}
        }
    }
}

/// A line without its end; `None` at the end of the input.
fn read_line(stdin: &mut dyn Read) -> Result<Option<String>, Stop> {
    /// Longer lines are not answers.
    const MAX: usize = 1024;
    let mut bytes = Vec::new();
    let mut byte = [0];
    while bytes.len() < MAX {
        match stdin.read(&mut byte) {
            Ok(0) if bytes.is_empty() => return Ok(None),
            Ok(0) => break,
            Ok(_) if byte == *b"\n" => break,
            Ok(_) => bytes.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let why = plain(&error);
                return Err(Stop::new(format!("could not read standard input: {why}")));
            }
        }
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
