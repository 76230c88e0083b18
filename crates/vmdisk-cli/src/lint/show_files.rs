//! `--show-files`: the files that a run would check.

use crate::color::Colors;
use crate::exit::Exit;
use crate::input::complaints::complaints;
use crate::input::inputs::{Inputs, Origin};
use crate::input::read;
use crate::io::Io;
use crate::output::deliver;
use crate::sanitize::line;
use crate::stop::Stop;

/// Prints the path of each input that would be checked.
pub(crate) fn run(inputs: &Inputs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let mut text = String::new();
    let mut holds_ours = vec![false; inputs.searches.len()];
    for input in &inputs.files {
        if let Origin::Found(number) = input.origin {
            // A run reports a file that it cannot read, so it would check it.
            let is_ours =
                read::input(input).map_or(true, |bytes| read::is_ours(&input.file, &bytes));
            if !is_ours {
                continue;
            }
            holds_ours[number] = true;
        }
        text.push_str(&line(&input.path()));
        text.push('\n');
    }
    deliver(io, None, &text)?;
    let mut exit = Exit::Clean;
    for (search, holds_ours) in inputs.searches.iter().zip(holds_ours) {
        for checked in complaints(search, holds_ours) {
            if let Err(message) = checked.outcome {
                io.say(&format!("{}\n", message.render(colors.stderr)));
                exit = Exit::CouldNot;
            }
        }
    }
    Ok(exit)
}
