//! `vmdisk edit`: changes the definition of a guest of libvirt, with the linter before and after.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use vmdisk::FixScope;

use crate::args::{EditArgs, LintArgs};
use crate::ask::ask;
use crate::atomic::interrupt;
use crate::color::Colors;
use crate::exit::Exit;
use crate::input::bounded::{self, MAX_BYTES};
use crate::input::hypervisor::NotAFile;
use crate::input::hypervisor::virsh::{Virsh, VirshError};
use crate::io::Io;
use crate::lint;
use crate::output::deliver;
use crate::report::diff::unified;
use crate::sanitize::line;
use crate::stop::{Stop, plain};

/// The answer to the question before a guest is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Define,
    Edit,
    Leave,
}

const ANSWERS: [(&str, Answer); 3] = [
    ("yes", Answer::Define),
    ("edit", Answer::Edit),
    ("no", Answer::Leave),
];

/// Runs the command.
pub(crate) fn run(args: EditArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let EditArgs {
        names,
        fix,
        unsafe_fixes,
        connect,
        host,
        selection,
        configuration,
    } = args;
    let virsh = Virsh::new(connect.as_deref());
    let fixes = fix.then_some(match unsafe_fixes {
        true => FixScope::SafeAndUnsafe,
        false => FixScope::Safe,
    });
    let mut check = LintArgs {
        host,
        selection,
        configuration,
        cannot_fix: true,
        virsh: Some(virsh.clone()),
        ..LintArgs::default()
    };
    let mut exit = Exit::Clean;
    for name in &names {
        exit = exit.max(edit(name, fixes, &virsh, &mut check, io, colors)?);
    }
    Ok(exit)
}

/// Edits one guest, by its fixes or by the editor.
fn edit(
    name: &str,
    fixes: Option<FixScope>,
    virsh: &Virsh,
    check: &mut LintArgs,
    io: &mut Io<'_>,
    colors: Colors,
) -> Result<Exit, Stop> {
    let before = virsh.whole_definition(name).map_err(failed)?;
    // Only the user may read it: a definition may have passwords.
    let private = fs::Permissions::from_mode(0o700);
    let make = || tempfile::Builder::new().permissions(private).tempdir();
    let folder = interrupt::create(make, TempDir::path)
        .map_err(|error| Stop::file("create a folder in", &std::env::temp_dir(), plain(&error)))?;
    let file = folder.path().join("domain.xml");
    write(&file, &before)?;
    let guest = Guest {
        name,
        before: &before,
        file: &file,
        fixes,
    };
    let ended = guest.edit(virsh, check, io, colors);
    let is_edited = bounded::regular(&file, MAX_BYTES).is_ok_and(|now| now != before);
    let name = line(name);
    match ended {
        Ok(End::Unchanged) => {
            io.say(&format!("{name} was not changed\n"));
            Ok(Exit::Clean)
        }
        Ok(End::Defined) => {
            let later = match virsh.is_active(guest.name) {
                true => "; it runs, and has the change after its next start",
                false => "",
            };
            io.say(&format!("{name} was defined{later}\n"));
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
            // Only a text of a person is kept: fixes can be made again, and a definition may have passwords.
            let kept = fixes
                .is_none()
                .then(|| format!("; {}", keep(folder, &file)));
            io.say(&format!(
                "{name} was not defined{}\n",
                kept.unwrap_or_default()
            ));
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
    before: &'a [u8],
    file: &'a Path,
    /// What makes the first change, if it is not the editor.
    fixes: Option<FixScope>,
}

impl Guest<'_> {
    /// The text as an input of lint.
    fn given(&self, text: &[u8]) -> Vec<(PathBuf, Vec<u8>)> {
        vec![(NotAFile::domain(self.name), text.to_owned())]
    }

    /// Writes the text with its fixes into the file, and shows the difference.
    fn apply_fixes(
        &self,
        scope: FixScope,
        check: &mut LintArgs,
        io: &mut Io<'_>,
        colors: Colors,
    ) -> Result<(), Stop> {
        let (mut fixed, mut said) = (Vec::new(), Vec::new());
        let mut texts = Io {
            stdin: &mut std::io::empty(),
            stdout: &mut fixed,
            stderr: &mut said,
            ..*io
        };
        check.given = self.given(self.before);
        (check.fix, check.unsafe_fixes) = (true, scope == FixScope::SafeAndUnsafe);
        let exit = lint::run(check, &mut texts, colors);
        (check.fix, check.unsafe_fixes) = (false, false);
        if exit? == Exit::CouldNot {
            io.say(&String::from_utf8_lossy(&said));
            let what = format!("the fixes of {} could not be made", self.name);
            return Err(Stop::new(what).help("`vmdisk edit NAME` starts the editor"));
        }
        if fixed == self.before {
            return Ok(());
        }
        let text = |bytes| String::from_utf8_lossy(bytes);
        let label = NotAFile::domain(self.name);
        deliver(
            io,
            None,
            &unified(&label, &text(self.before), &text(&fixed)),
        )?;
        write(self.file, &fixed)
    }

    /// Lets the user edit the file until libvirt takes it, or the user gives up.
    fn edit(
        &self,
        virsh: &Virsh,
        check: &mut LintArgs,
        io: &mut Io<'_>,
        colors: Colors,
    ) -> Result<End, Stop> {
        let Guest {
            name,
            before,
            file,
            fixes: mut fixes_first,
        } = *self;
        let definition = || virsh.whole_definition(name).map_err(failed);
        let lint = |check: &mut LintArgs, text: &[u8], io: &mut Io<'_>| {
            check.given = self.given(text);
            lint::run(check, io, colors)
        };
        // Whatever is found, it can be edited.
        let _ = lint(check, before, io)?;
        let (mut answer, mut is_refused) = (Answer::Edit, false);
        loop {
            if answer == Answer::Edit {
                match fixes_first.take() {
                    Some(scope) => self.apply_fixes(scope, check, io, colors)?,
                    None => start_editor(file)?,
                }
                let after = bounded::regular(file, MAX_BYTES);
                let after = after.map_err(|error| Stop::file("read", file, plain(&error)))?;
                if after == before {
                    return Ok(End::Unchanged);
                }
                let _ = lint(check, &after, io)?;
                is_refused = false;
            }
            let question = format!("define {}? [y]es, [e]dit again, [n]o: ", line(name));
            answer = ask(&question, &ANSWERS, io)?.unwrap_or(Answer::Leave);
            match answer {
                Answer::Edit => {}
                Answer::Leave => return Ok(End::NotDefined),
                // libvirt would say the same.
                Answer::Define if is_refused => return Ok(End::NotDefined),
                Answer::Define => {
                    if definition()? != before {
                        return Err(Stop::new(format!("{name} was changed by somebody else"))
                            .help("run `vmdisk edit` again, and repeat your changes"));
                    }
                    match virsh.define(file) {
                        // A guest with another name and UUID is another guest.
                        Ok(()) if definition().is_ok_and(|now| now == before) => {
                            return Ok(End::AsBefore);
                        }
                        Ok(()) => return Ok(End::Defined),
                        Err(error) => {
                            io.say(&format!("{}\n", line(&error.to_string())));
                            is_refused = true;
                        }
                    }
                }
            }
        }
    }
}

/// Writes a file of the private folder.
fn write(file: &Path, text: &[u8]) -> Result<(), Stop> {
    #[expect(
        clippy::disallowed_methods,
        reason = "nobody else can write into the folder"
    )]
    let written = fs::write(file, text);
    written.map_err(|error| Stop::file("write", file, plain(&error)))
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
