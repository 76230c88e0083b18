//! The machine around the disks of a spec.

use schemars::{Schema, json_schema};
use vmdisk_document::Value;
use vmdisk_model::{Architecture, Bytes, DomainType, Firmware};

use super::section::{Reader, SpecValue, section};
use super::value::spec_words;

section! {
    /// The machine around the disks; everything has a default.
    #[derive(Default)]
    pub struct GuestSpec {
        /// Name; default `guest`.
        name: Option<String> = "name",
        /// UUID; default: libvirt makes one.
        uuid: Option<String> = "uuid",
        /// Virtualisation; default `kvm`.
        guest_type: Option<GuestType> = "type",
        /// Instruction set; default `x86_64`.
        arch: Option<Architecture> = "arch",
        /// QEMU machine; default `q35`.
        machine: Option<String> = "machine",
        /// Firmware; default: the machine's own, and `efi` for a PC that boots from a disk with 4096-byte sectors.
        firmware: Option<Firmware> = "firmware",
        /// Number of vCPUs; default 1.
        vcpus: Option<u32> = "vcpus",
        /// Memory; default 1 GiB.
        memory: Option<Bytes> = "memory",
        /// Number of iothreads (event-loop threads), or `auto` for as many as the disks need.
        iothreads: Option<IoThreadCount> = "iothreads",
        /// Huge pages: `true` for the host's default size, or a size; default `false`.
        hugepages: Option<HugePagesSpec> = "hugepages",
    }
}

spec_words! {
    /// How the guest's CPUs run.
    pub enum GuestType {
        /// Hardware virtualisation.
        Kvm = "kvm",
        /// Emulation (TCG).
        Qemu = "qemu",
    }
}

impl From<GuestType> for DomainType {
    fn from(guest_type: GuestType) -> Self {
        match guest_type {
            GuestType::Kvm => DomainType::Kvm,
            GuestType::Qemu => DomainType::Qemu,
        }
    }
}

/// How many event-loop threads a guest has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoThreadCount {
    /// As many as the disks need.
    Auto,
    /// This many, which the disks that can use one share.
    Number(u32),
}

impl SpecValue for IoThreadCount {
    fn read(node: Value, reader: &mut Reader) -> Option<Self> {
        match &node {
            Value::Text(word) if word == "auto" => Some(IoThreadCount::Auto),
            _ => u32::read(node, reader).map(IoThreadCount::Number),
        }
    }

    fn write(&self) -> Value {
        match self {
            IoThreadCount::Auto => Value::Text("auto".to_owned()),
            IoThreadCount::Number(number) => number.write(),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "anyOf": [{ "const": "auto" }, u32::schema()] })
    }
}

/// Whether guest memory comes from huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePagesSpec {
    /// No.
    No,
    /// Pages of the host's default size.
    DefaultSize,
    /// Pages of this size.
    Size(Bytes),
}

impl SpecValue for HugePagesSpec {
    fn read(node: Value, reader: &mut Reader) -> Option<Self> {
        const SWITCHES: [&str; 6] = ["true", "on", "yes", "false", "off", "no"];
        let is_switch = match &node {
            Value::Bool(_) => true,
            Value::Text(text) => SWITCHES.contains(&text.as_str()),
            _ => false,
        };
        if is_switch {
            let is_on = bool::read(node, reader)?;
            return Some(if is_on {
                HugePagesSpec::DefaultSize
            } else {
                HugePagesSpec::No
            });
        }
        Bytes::read(node, reader).map(HugePagesSpec::Size)
    }

    fn write(&self) -> Value {
        match self {
            HugePagesSpec::No => Value::Bool(false),
            HugePagesSpec::DefaultSize => Value::Bool(true),
            HugePagesSpec::Size(size) => size.write(),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "anyOf": [bool::schema(), Bytes::schema()] })
    }
}
