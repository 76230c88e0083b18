//! PCI addresses of devices, most of which the model does not have.

use crate::value::any_base;
use crate::xml::Node;

/// Domain, bus, slot and function.
pub(crate) type PciPlace = (u32, u32, u32, u32);

/// The PCI address of a device with its element. An address of zeros counts as unset, as libvirt treats it.
pub(crate) fn pci_address(device: Node<'_>) -> Option<(Node<'_>, PciPlace)> {
    let address = device.child("address")?;
    if address.attribute("type") != Some("pci") {
        return None;
    }
    let part = |name: &str| match address.attribute(name) {
        Some(written) => any_base(written),
        None => Some(0),
    };
    let place = (
        part("domain")?,
        part("bus")?,
        part("slot")?,
        part("function")?,
    );
    (place != (0, 0, 0, 0)).then_some((address, place))
}
