//! The devices beside the disks without which nobody reaches a guest.

use std::fmt;

use serde_json::{Value as Schema, json};
use vmdisk_document::Value;

use super::section::{Reader, SpecValue};
use super::value::spec_words;

spec_words! {
    /// Where a guest is seen and typed into.
    pub enum GuestConsole {
        /// A serial port.
        Serial = "serial",
        /// A serial port, and a display that VNC shows.
        Display = "display",
    }
}

spec_words! {
    /// A channel between the host and a program in the guest.
    pub enum GuestChannel {
        /// QEMU's guest agent.
        Agent = "agent",
    }
}

/// What the network card of a guest is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestNetwork {
    /// There is no card.
    None,
    /// A network of libvirt. `default` is that of its installation, and QEMU's own (`user`) on a command line.
    Network(String),
    /// A bridge of the host.
    Bridge(String),
}

impl fmt::Display for GuestNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuestNetwork::None => f.write_str("none"),
            GuestNetwork::Network(name) => f.write_str(name),
            GuestNetwork::Bridge(name) => write!(f, "bridge:{name}"),
        }
    }
}

impl SpecValue for GuestNetwork {
    fn read(node: Value, reader: &mut Reader) -> Option<Self> {
        let text = String::read(node, reader)?;
        let name = text.strip_prefix("bridge:");
        let is_name = |name: &str| {
            let is_in = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            !name.is_empty() && name.chars().all(is_in)
        };
        match name {
            _ if !is_name(name.unwrap_or(&text)) => {
                let message = "expected `none`, the name of a network of libvirt such as `default`, or `bridge:NAME`";
                reader.refuse(message);
                None
            }
            Some(bridge) => Some(GuestNetwork::Bridge(bridge.to_owned())),
            None if text == "none" => Some(GuestNetwork::None),
            None => Some(GuestNetwork::Network(text)),
        }
    }

    fn write(&self) -> Value {
        Value::Text(self.to_string())
    }

    fn schema() -> Schema {
        json!({ "type": "string", "pattern": "^(bridge:)?[A-Za-z0-9._-]+$" })
    }
}

/// The devices beside the disks that a spec asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestDevices {
    /// A network card.
    pub network: Option<GuestNetwork>,
    /// A console.
    pub console: Option<GuestConsole>,
    /// A channel.
    pub channel: Option<GuestChannel>,
    /// A TPM 2.0.
    pub tpm: bool,
    /// The host's random numbers.
    pub rng: bool,
}
