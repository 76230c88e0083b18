//! Reads commands that attach disks to a guest: one JSON object per line.

use vmdisk_source::Span;

use crate::failure::ReadFailure;
use crate::limits::{MAX_OPTIONS, exceeded};
use crate::syntax::json_text;
use crate::syntax::option::{Fault, OptionList, WrittenOption};
use crate::syntax::properties::{Properties, Property, Syntax};
use crate::syntax::text::Text;

/// Commands that identify a text as such a script.
const TELLING: [&str; 4] = ["blockdev-add", "device_add", "object-add", "chardev-add"];

/// True if a text is lines of commands, some of which attach disks.
pub(crate) fn is_monitor_script(text: &str) -> bool {
    let mut lines = text
        .trim_start_matches('\u{feff}')
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let is_command = |line: &str| line.starts_with('{') && line.contains("\"execute\"");
    lines.clone().next().is_some_and(is_command)
        && lines.any(|line| is_command(line) && TELLING.iter().any(|name| line.contains(name)))
}

/// The commands of a text as options, and the lines that are not JSON.
pub(crate) fn options(file: &str) -> Result<(Vec<WrittenOption>, Vec<Fault>), ReadFailure> {
    let mut options = OptionList::default();
    let mut faults = Vec::new();
    let mut start = 0;
    for whole in file.split_inclusive('\n') {
        let line = Span::new(start, start + whole.trim_end().len());
        start += whole.len();
        if line.is_empty() {
            continue;
        }
        let mut text = Text::empty(line.start);
        text.push_verbatim(file, line);
        match json_text::object_with(&text, file, "arguments.") {
            Ok((members, end)) => {
                if let Some(option) = option(line, &members, end) {
                    options.push(option)?;
                }
            }
            Err(_) if faults.len() == MAX_OPTIONS => {
                return Err(exceeded(
                    line,
                    "the file",
                    "lines that are not JSON",
                    MAX_OPTIONS,
                ));
            }
            Err(fault) => faults.push(Fault::not_json(fault)),
        }
    }
    Ok((options.into_options(), faults))
}

/// The option of a command; `end` is the end of its arguments.
fn option(line: Span, members: &Properties, end: Option<usize>) -> Option<WrittenOption> {
    let command = members.get("execute")?.value.as_str();
    let name = match command {
        // The first command of every script.
        "qmp_capabilities" => return None,
        "blockdev-add" => "blockdev",
        "device_add" => "device",
        "object-add" => "object",
        "chardev-add" => "chardev",
        other => other,
    };
    let arguments = members.iter().filter_map(|member| {
        let key = member.key.strip_prefix("arguments.")?;
        let key = match name {
            // The form before QEMU 6.0.
            "object" => key.strip_prefix("props.").unwrap_or(key),
            // The only values that a disk's socket can have.
            "chardev" if IMPLIED.contains(&(key, member.value.as_str())) => return None,
            "chardev" => chardev_key(key),
            _ => key,
        };
        Some(Property {
            key: key.to_owned(),
            ..member.clone()
        })
    });
    let syntax = match (&members.syntax, end) {
        (Syntax::Json { quote, .. }, Some(end)) => Syntax::Json {
            end,
            quote: quote.clone(),
        },
        (other, _) => other.clone(),
    };
    Some(WrittenOption {
        name: name.to_owned(),
        span: line,
        properties: Some(Properties::new(arguments.collect(), syntax)),
        text: None,
    })
}

/// Members of `chardev-add` with the only values that the socket of a disk can have.
const IMPLIED: [(&str, &str); 2] = [
    ("backend.data.addr.type", "unix"),
    ("backend.data.server", "false"),
];

/// The key of `-chardev` for a member of `chardev-add`.
fn chardev_key(key: &str) -> &str {
    match key {
        "backend.type" => "backend",
        "backend.data.addr.data.path" => "path",
        "backend.data.server" => "server",
        "backend.data.reconnect" => "reconnect",
        "backend.data.reconnect-ms" => "reconnect-ms",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = concat!(
        "{\"execute\":\"qmp_capabilities\"}\n",
        "{\"execute\":\"object-add\",\"arguments\":{\"qom-type\":\"iothread\",\"id\":\"io0\"}}\n",
        "\n{\"execute\":\"device_add\",\"arguments\":{\"driver\":\"virtio-blk-pci\",\"id\":\"vda\"},\"id\":7}\n",
    );

    #[test]
    fn commands_become_options_with_their_places() {
        assert!(is_monitor_script(SCRIPT));
        let (options, faults) = options(SCRIPT).unwrap();
        assert_eq!(faults, []);
        let names: Vec<&str> = options.iter().map(|option| option.name.as_str()).collect();
        assert_eq!(names, ["object", "device"]);
        let device = options[1].properties.as_ref().unwrap();
        let driver = device.get("driver").unwrap();
        assert_eq!(driver.span.slice(SCRIPT), Some("virtio-blk-pci"));
        let Syntax::Json { end, .. } = &device.syntax else {
            panic!("{:?}", device.syntax)
        };
        assert_eq!(&SCRIPT[*end..*end + 3], "},\"");
        assert_eq!(
            device.iter().count(),
            2,
            "the command's own id is none of them"
        );
    }

    #[test]
    fn other_objects_are_no_commands() {
        for text in [
            "{\"disks\": []}",
            "{\"execute\":\"query-status\"}\n",
            "{\"driver\":\"file\"}",
            "",
        ] {
            assert!(!is_monitor_script(text), "{text}");
        }
        let (found, faults) = options("{\"execute\":\"device_add\",\n").unwrap();
        assert!(found.is_empty());
        assert_eq!(faults.len(), 1);
    }
}
