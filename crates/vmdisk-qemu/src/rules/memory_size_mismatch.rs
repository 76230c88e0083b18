//! `memory-size-mismatch`

use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::line::{Line, line_rule};
use crate::object::read_memory::memory_of_machine;
use crate::syntax::value::size_of;

line_rule! {
    /// The memory backend has a different size than the guest.
    ///
    /// ## What it reports
    /// Reports an object named by `-machine memory-backend` if its size differs from `-m`. Without `-m` the guest has
    /// as much as the object.
    ///
    /// ## Why it matters
    /// QEMU exits at start with `Machine memory size does not match the size of the memory backend`. A vhost-user disk
    /// needs such an object, so a change of the guest's memory must be made in two places.
    ///
    /// ## Use instead
    /// Use the same size for both:
    /// `-m 4G -object memory-backend-memfd,id=mem,size=4G,share=on -machine memory-backend=mem`.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=mem0 \
    ///   -m 4G \
    ///   -object memory-backend-memfd,id=mem0,size=2G,share=on
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=mem0 \
    ///   -m 4G \
    ///   -object memory-backend-memfd,id=mem0,size=4G,share=on
    /// ```
    ///
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=mem0 \
    ///   -object memory-backend-memfd,id=mem0,size=512M,share=on
    /// ```
    name: "memory-size-mismatch",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("Machine memory size does not match the size of the memory backend", "hw/core/machine.c; 5.2 says: Size specified by -m option must match size of explicitly specified"),
    ],
    check: Text(check),
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let named = memory_of_machine(&line.index);
    let Some(option) = named.and_then(|(_, name)| line.index.object(name.value.as_str())) else {
        return;
    };
    let size = line
        .index
        .properties(option)
        .and_then(|object| object.get("size"));
    let Some(size) = size.filter(|size| !size.is_open()) else {
        return;
    };
    let memory = match line.domain().memory {
        Some(memory) => memory,
        None => return,
    };
    let Some(bytes) = size_of(size.value.as_str(), 1) else {
        return;
    };
    if bytes != memory {
        let message = format!("the memory object has {bytes}, but the guest has {memory}");
        let help = "use the same size for both";
        line.refuse(report, option, size.span, message, help);
    }
}
