//! A conversion, and what became of one thing that was planted into its input.

use std::collections::BTreeSet;

use vmdisk::plan::Spec;
use vmdisk::write::{self, QemuOptions};
use vmdisk::{Completion, complete, losses, not_about_disks, not_about_disks_in_xml, read};

/// What a conversion came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// The output, and everything that was said about it.
    Done {
        output: String,
        said: BTreeSet<String>,
    },
    /// The reasons.
    Refused(String),
}

/// What becomes of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    LibvirtXml,
    Qemu,
    Spec,
}

/// Converts a text as `vmdisk convert` does.
pub(crate) fn convert(text: &str, target: Target) -> Conversion {
    let mut document = match read(text) {
        Ok(document) => document,
        Err(failure) => return Conversion::Refused(failure.to_string()),
    };
    let losses = losses(&document);
    let refused: Vec<&str> = losses
        .iter()
        .filter(|loss| loss.changes_guest)
        .map(|loss| loss.what.as_str())
        .collect();
    if !refused.is_empty() {
        return Conversion::Refused(refused.join("\n"));
    }
    let mut said: BTreeSet<String> = losses
        .iter()
        .map(|loss| format!("{}: {}", document.breadcrumb(loss.at), loss.what))
        .collect();
    said.extend(match target {
        Target::LibvirtXml => not_about_disks_in_xml(&document),
        Target::Qemu | Target::Spec => not_about_disks(&document),
    });
    let output = match target {
        Target::LibvirtXml => {
            let Completion { chosen, unfit, .. } = complete(&mut document);
            said.extend(chosen.into_iter().chain(unfit));
            write::document_xml(&document).map_err(|error| error.to_string())
        }
        Target::Qemu => {
            match write::qemu_command_line(document.domain(), &QemuOptions::default()) {
                Ok(line) => {
                    let left_out = line.left_out.iter();
                    said.extend(left_out.map(|note| format!("{:?}: {}", note.at, note.message)));
                    Ok(line.argv().join("\n"))
                }
                Err(problems) => Err(problems.to_string()),
            }
        }
        Target::Spec => {
            let Completion { chosen, unfit, .. } = complete(&mut document);
            said.extend(chosen.into_iter().chain(unfit));
            let (spec, not_carried) = Spec::of_domain(document.domain());
            let refused = not_carried.iter().find(|one| one.changes_guest);
            said.extend(
                not_carried
                    .iter()
                    .map(|one| format!("{:?}: {}", one.at, one.what)),
            );
            match refused {
                Some(one) => Err(one.what.clone()),
                None => Ok(spec.to_yaml()),
            }
        }
    };
    match output {
        Ok(output) => Conversion::Done { output, said },
        Err(reason) => Conversion::Refused(reason),
    }
}

/// True if the planted thing is in silence neither in the output nor named: both conversions come to the same.
///
/// `owners` are the names that cover it: that of an element around it, or of its option.
pub(crate) fn is_lost(before: &Conversion, after: &Conversion, owners: &[String]) -> bool {
    match (before, after) {
        (_, Conversion::Refused(_)) | (Conversion::Refused(_), _) => false,
        (
            Conversion::Done { output, said },
            Conversion::Done {
                output: output_after,
                said: said_after,
            },
        ) => {
            let is_named = owners.iter().any(|owner| {
                let name = format!("`{owner}`");
                said_after.iter().any(|said| said.ends_with(&name))
            });
            output == output_after && said == said_after && !is_named
        }
    }
}

/// Prints how many cases there were, and fails with the lost ones.
pub(crate) fn report(what: &str, cases: usize, lost: &[String]) {
    println!("{what}: {cases} cases, {} lost in silence", lost.len());
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}
