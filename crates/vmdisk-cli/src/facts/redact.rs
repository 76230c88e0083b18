//! `vmdisk facts redact`.

use vmdisk::Source;
use vmdisk::model::{Domain, Scope};
use vmdisk::redact::{Level, Redactor};
use vmdisk::write;
use vmdisk_source::secrets;

use crate::args::RedactArgs;
use crate::color::Colors;
use crate::exit::Exit;
use crate::facts_file::read_facts;
use crate::input::inputs::{Input, Origin};
use crate::input::read;
use crate::io::Io;
use crate::output::deliver_exact;
use crate::render::message::Message;
use crate::stop::Stop;

/// A shorter salt could be found by trying.
const SHORTEST_SALT: usize = 16;

/// Takes the names out of a facts file or a configuration.
pub(super) fn run(args: &RedactArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let RedactArgs {
        file,
        salt_file,
        level,
        output,
    } = args;
    let bytes = read::file(file).map_err(Stop::from)?;
    let is_xml = bytes.trim_ascii_start().starts_with(b"<");
    if *level == Level::Full && (is_xml || unsupported(&bytes).is_some()) {
        // Names stay, so the text stays too, and needs no salt.
        let text = String::from_utf8(bytes)
            .map_err(|_| Stop::file("redact", file, "it is not valid UTF-8"))?;
        deliver_exact(io, output.as_deref(), &secrets::redact(&text))?;
        return Ok(Exit::Clean);
    }
    let salt = match salt_file {
        Some(path) => read::file(path).map_err(Stop::from)?,
        None => std::env::var_os("VMDISK_SALT")
            .map(std::ffi::OsString::into_encoded_bytes)
            .ok_or_else(|| {
                Stop::new("no salt given").help("name a file with --salt-file, or set VMDISK_SALT; keep it out of the repository")
            })?,
    };
    // A line end is an editor's doing, and not part of the salt.
    let salt = salt.trim_ascii_end();
    if salt.len() < SHORTEST_SALT {
        return Err(Stop::new(format!(
            "the salt has {} bytes; use at least {SHORTEST_SALT}, because a shorter one can be guessed",
            salt.len()
        ))
        .help("`head -c 32 /dev/urandom | base64` makes a good one"));
    }
    let redactor = Redactor::new(salt, *level);
    let text = if is_xml {
        let input = Input::new(file.clone(), Origin::Named);
        let document = read::document(&input, &bytes).map_err(Stop::from)?;
        let is_half_understood = matches!(
            &document.source,
            Source::LibvirtXml(xml) if !xml.problems.is_empty()
        );
        if is_half_understood {
            let message = Message::warning(format!(
                "{}: parts that vmdisk does not understand are left out, so lint cannot report them",
                file.display()
            ));
            io.say(&message.render(colors.stderr));
        }
        let text = xml(&redactor.domain(document.domain()));
        secrets::redact(&text.map_err(|error| Stop::file("redact", file, error))?)
    } else if let Some(help) = unsupported(&bytes) {
        let title = format!(
            "{}: only facts and libvirt XML can be redacted",
            file.display()
        );
        return Err(Stop::new(title).help(help));
    } else {
        let facts = read_facts(file, io, colors)?;
        let redacted = redactor
            .facts(&facts)
            .map_err(|error| Stop::file("redact", file, error))?;
        secrets::redact_json(&redacted.to_json()).into_owned()
    };
    deliver_exact(io, output.as_deref(), &text)?;
    Ok(Exit::Clean)
}

/// The remedy for a document that is neither facts nor XML; `None` for anything else.
fn unsupported(bytes: &[u8]) -> Option<&'static str> {
    let text = std::str::from_utf8(bytes).ok()?;
    if vmdisk::is_spec(text) {
        Some("run `vmdisk generate SPEC -o guest.xml`, and redact guest.xml")
    } else if vmdisk::is_command_line(text) {
        Some("run `vmdisk convert FILE --to libvirt-xml -o guest.xml`, and redact guest.xml")
    } else {
        None
    }
}

fn xml(domain: &Domain) -> Result<String, write::Unwritable> {
    match domain.scope {
        Scope::WholeGuest => write::libvirt_xml(domain),
        Scope::DisksOnly => {
            let disks: Vec<String> = domain
                .disks
                .iter()
                .map(write::disk_xml)
                .collect::<Result<_, _>>()?;
            Ok(match disks.as_slice() {
                [disk] => disk.clone(),
                _ => format!("<devices>\n{}</devices>\n", disks.concat()),
            })
        }
    }
}
