//! Values that QEMU assumes for a command line, and that libvirt needs explicitly.

use std::path::Path;

use vmdisk_model::{
    Architecture, Bytes, Domain, DomainType, Image, MachineType, NetworkProtocol, Protocol, Scope,
    Switch,
};

use crate::paths::{relative_paths, resolve_paths_of};
use crate::{Document, Source};

/// Memory of a guest that says none.
const MEMORY_OF_QEMU: Bytes = Bytes(128 << 20);

/// The name of a guest that has none.
const NAME: &str = "guest";

/// Fills in QEMU's defaults for a command line, and reports settings that libvirt needs in another form. Other
/// documents do not change.
pub fn complete(document: &mut Document) -> Completion {
    let mut completion = Completion::default();
    let Source::QemuCommandLine(source) = &mut document.source else {
        return completion;
    };
    let drives = source.empty_drives();
    if source.domain.scope == Scope::WholeGuest {
        complete_machine(&mut source.domain, &mut completion);
    }
    if !drives.is_empty() {
        completion.chosen.push(format!(
            "the guest has no {}: empty drives that QEMU adds without -nodefaults",
            drives.join(" or ")
        ));
    }
    completion.unfit.extend(unfit_disks(document));
    completion
}

/// The messages of [`complete`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// Values that the document does not have and that were chosen; nothing is lost.
    pub chosen: Vec<String>,
    /// Settings that are lost, or that libvirt needs in another form.
    pub unfit: Vec<String>,
}

/// Settings of disks on a command line that libvirt needs in another form; none of other documents.
pub fn unfit_disks(document: &Document) -> Vec<String> {
    let mut notes = Vec::new();
    let Source::QemuCommandLine(source) = &document.source else {
        return notes;
    };
    for disk in &source.domain.disks {
        for path in disk.backend.image().into_iter().flat_map(relative_paths) {
            notes.push(format!(
                "disk {}: `{path}` is relative to where QEMU is started, and libvirt needs the full path",
                disk.name()
            ));
        }
        for user in disk.backend.image().into_iter().flat_map(users_without_key) {
            notes.push(format!(
                "disk {}: libvirt refuses the user `{user}` without a key: define a libvirt secret, and add `<secret>` to `<auth>`",
                disk.name()
            ));
        }
    }
    notes
}

/// The users of Ceph and iSCSI whose keys the configuration does not name: QEMU has defaults, libvirt has none.
fn users_without_key(image: &Image) -> impl Iterator<Item = &str> {
    image.chain().filter_map(|image| {
        let Protocol::Network(network) = &image.protocol else {
            return None;
        };
        let has_keys = matches!(
            network.protocol,
            NetworkProtocol::Rbd | NetworkProtocol::Iscsi
        );
        let login = image.authentication.as_ref().filter(|_| has_keys)?;
        match login.secret {
            Some(_) => None,
            None => login.username.as_deref(),
        }
    })
}

fn complete_machine(domain: &mut Domain, completion: &mut Completion) {
    if domain.name.is_none() {
        let note = format!("the guest has no name, so `{NAME}` is used");
        completion.chosen.push(note);
        domain.name = Some(NAME.to_owned());
    }
    // Without -accel, QEMU emulates.
    domain.domain_type.get_or_insert(DomainType::Qemu);
    if let Some(machine) = &mut domain.machine {
        let name = machine.without_vendor().to_owned();
        if name != machine.0 {
            completion.unfit.push(format!(
                "the suffix of the machine `{machine}` is not carried over: only QEMUs of its vendor know it"
            ));
            *machine = MachineType::new(name);
        }
    }
    let is_pc = |machine: &MachineType| machine.is_q35() || machine.is_i440fx();
    if domain.architecture.is_none() && domain.machine.as_ref().is_some_and(is_pc) {
        domain.architecture = Some(Architecture::X86_64);
    }
    if domain.is_pc() {
        // Of libvirt, a guest has it only if told.
        domain.acpi.get_or_insert(Switch::On);
    }
    domain.memory.get_or_insert(MEMORY_OF_QEMU);
}

/// Makes the relative paths of files of a command line full, as QEMU does that starts in the directory `base`; returns those paths.
pub fn resolve_paths(document: &mut Document, base: &Path) -> Vec<String> {
    let mut resolved = Vec::new();
    document.for_each_disk_of_command_lines(|disk| resolve_paths_of(disk, base, &mut resolved));
    resolved
}
