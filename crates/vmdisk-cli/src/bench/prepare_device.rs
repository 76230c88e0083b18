//! `vmdisk bench prepare-device`.

use std::io::Read;

use vmdisk_bench_runner::report::bytes;
use vmdisk_bench_runner::safety::{self, Refused};

use super::args::PrepareDeviceArgs;
use super::recovery;
use crate::clock;
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver;
use crate::render::message::Message;
use crate::sanitize;
use crate::stop::{Stop, plain};

/// Longest accepted answer, in bytes; longer than any serial number.
const MAX_ANSWER_BYTES: u64 = 4096;

/// Checks a device, asks for its serial number, and marks it.
pub(super) fn run(args: &PrepareDeviceArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let PrepareDeviceArgs {
        device,
        confirm_serial,
    } = args;
    recovery::revert_changes(io);
    let preparation = safety::prepare(device).map_err(|refused| stop(&refused))?;
    let identity = preparation.identity().clone();
    let typed = match confirm_serial {
        Some(serial) => serial.clone(),
        None => {
            let question = format!(
                "no data was found on {}, which has {}.\n\
                Benchmarks will overwrite all of it. To allow that, type its {} ({}): ",
                device.display(),
                bytes(preparation.size_bytes()),
                identity.kind,
                identity.value
            );
            io.say(&sanitize::lines(&question));
            let mut line = Vec::new();
            let mut byte = [0];
            let failed = |error: std::io::Error| {
                Stop::new(format!("could not read the answer: {}", plain(&error)))
            };
            let mut answer = io.stdin.take(MAX_ANSWER_BYTES);
            while answer.read(&mut byte).map_err(failed)? == 1 && byte != *b"\n" {
                line.push(byte[0]);
            }
            String::from_utf8_lossy(&line).into_owned()
        }
    };
    let marker = preparation
        .confirm(&typed, &clock::now())
        .map_err(|refused| stop(&refused))?;
    let text = format!(
        "{} is marked ({}); to measure on it, use\n  --destroy-data-on {} --confirm-serial '{}'\n",
        device.display(),
        marker.uuid,
        device.display(),
        marker.identity
    );
    deliver(io, None, &sanitize::lines(&text))?;
    Ok(Exit::Clean)
}

fn stop(refused: &Refused) -> Stop {
    let device = &refused.device;
    let messages = refused
        .refusals
        .iter()
        .map(|refusal| Message::error(format!("{device} is not marked: {refusal}")))
        .collect();
    Stop(messages).help("nothing was written; use an empty device that no guest uses")
}
