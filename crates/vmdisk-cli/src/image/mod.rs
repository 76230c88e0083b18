//! `vmdisk image`.

mod finding;
pub(crate) mod json;
mod look;
mod shown;
mod text;

use std::path::Path;

use crate::args::{ImageArgs, TextFormat};
use crate::color::Colors;
use crate::exit::Exit;
use crate::input::used;
use crate::io::Io;
use crate::output::deliver;
use crate::render::message::{Message, MessagePlace};
use crate::stop::Stop;
use json::Failed;
use shown::Shown;

/// Runs the command.
pub(crate) fn run(args: &ImageArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let mut shown = Vec::new();
    let mut failed = Vec::new();
    for file in &args.files {
        let path = file.display().to_string();
        match look::look(file, args.chain) {
            Ok(image) => {
                // The collector opens images, and reads only their headers.
                used::file(file);
                for link in &image.links {
                    used::file(Path::new(&link.location.to_string()));
                }
                let findings = finding::about(&image);
                shown.push(Shown {
                    path,
                    image,
                    findings,
                });
            }
            Err(error) => failed.push(Failed {
                path,
                reason: error.to_string(),
            }),
        }
    }
    let text = match args.format {
        TextFormat::Text => text::write(&shown),
        TextFormat::Json => json::write(&shown, &failed),
    };
    deliver(io, args.output.as_deref(), &text)?;
    for Failed { path, reason } in &failed {
        let place = MessagePlace::new(path.clone(), None);
        let message = Message::error(format!("could not be read: {reason}")).at(place);
        io.say(&message.render(colors.stderr));
    }
    let mut findings = shown.iter().flat_map(|shown| &shown.findings);
    Ok(if !failed.is_empty() {
        Exit::CouldNot
    } else if findings.any(|finding| finding.severity >= args.fail_on) {
        Exit::Findings
    } else {
        Exit::Clean
    })
}
