//! `<os>`: the machine, its firmware, and the boot order.

use vmdisk_model::{Architecture, BootDevice, Domain, Firmware, MachineType};

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::writer::Writer;

const AT: UnmodeledPath = UnmodeledPath::path("os");
const TYPE: UnmodeledPath = UnmodeledPath::path("os/type");
const BOOT: &str = "os/boot";

/// Reads the machine, its firmware and the boot order.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    element: &mut Element<'_>,
    domain: &mut Domain,
    kept: &mut UnmodeledContent,
) {
    let Some(mut os) = reader.child(element, "os") else {
        return;
    };
    domain.firmware = os.take("firmware", Firmware::from_word);
    if let Some(mut os_type) = reader.child(&mut os, "type") {
        domain.architecture = os_type.take("arch", Architecture::from_word);
        domain.machine = os_type.take_text("machine").map(MachineType);
        let text = os_type.content();
        let mut parts = reader.close(os_type);
        parts.text = Some(text).filter(|text| text != "hvm");
        kept.note(TYPE, parts);
    }
    for node in os.children("boot") {
        let device = node.attribute("dev").and_then(BootDevice::from_word);
        let Some(device) = device else {
            os.give_back(node);
            continue;
        };
        let mut boot = reader.open_child(&os, node, os.owner);
        boot.take_known("dev");
        kept.note(
            UnmodeledPath::nth(BOOT, domain.boot_devices.len()),
            reader.close(boot),
        );
        domain.boot_devices.push(device);
    }
    kept.note(AT, reader.close(os));
}

/// Writes the machine, its firmware and the boot order.
pub(crate) fn write<'k>(
    writer: &mut Writer<'k>,
    firmware: Option<Firmware>,
    architecture: Option<Architecture>,
    machine: Option<&MachineType>,
    boot_devices: &[BootDevice],
    kept: &'k UnmodeledContent,
) {
    writer.start("os", kept.at(AT));
    writer.optional("firmware", firmware);
    let parts = kept.at(TYPE);
    writer.start("type", parts);
    writer.optional("arch", architecture);
    writer.optional("machine", machine);
    let text = parts.text.clone().unwrap_or_else(|| "hvm".to_owned());
    writer.end_with_text(Some(text));
    for (nth, device) in boot_devices.iter().enumerate() {
        writer.start("boot", kept.at(UnmodeledPath::nth(BOOT, nth)));
        writer.attribute("dev", device);
        writer.end();
    }
    writer.end();
}
