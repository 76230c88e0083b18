//! The machine around the disks of a spec.

use serde_json::{Value as Schema, json};
use vmdisk_document::Value;
use vmdisk_model::{Architecture, Bytes, CpuMode, DomainType, Firmware, IoThread, Polling};

use super::guest_devices::{GuestChannel, GuestConsole, GuestDevices, GuestNetwork};
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
        /// Operating system; default `linux`. The disks of `windows` on a PC are on a bus that its installer knows.
        os: Option<GuestOs> = "os",
        /// Drivers beside those of the installer; `virtio` of the driver CD puts the disks of Windows on virtio.
        drivers: Option<GuestDrivers> = "drivers",
        /// Firmware; default: the machine's own, and `efi` for a machine without one and for a PC that boots from a disk
        /// with 4096-byte sectors.
        firmware: Option<Firmware> = "firmware",
        /// Number of vCPUs; default 1.
        vcpus: Option<u32> = "vcpus",
        /// Virtual CPU; default for x86_64 and aarch64: `host-passthrough` with KVM, and `maximum` (libvirt 7.1) without.
        cpu: Option<CpuMode> = "cpu",
        /// Memory; default 1 GiB.
        memory: Option<Bytes> = "memory",
        /// Number of iothreads (event-loop threads), `auto` for as many as the disks need, or a list with the options of
        /// each, from number 1.
        iothreads: Option<IoThreadCount> = "iothreads",
        /// Huge pages: `true` for the host's default size, or a size; default `false`.
        hugepages: Option<HugePagesSpec> = "hugepages",
        /// Network card: `none`, a network of libvirt such as `default`, or `bridge:NAME`; default `none`.
        network: Option<GuestNetwork> = "network",
        /// Console; default: none.
        console: Option<GuestConsole> = "console",
        /// Channel to a program in the guest; default: none.
        channel: Option<GuestChannel> = "channel",
        /// TPM 2.0, which libvirt emulates with `swtpm`; default `false`.
        tpm: Option<bool> = "tpm",
        /// Device with the host's random numbers; default `false`.
        rng: Option<bool> = "rng",
    }
}

impl GuestSpec {
    /// The devices beside the disks.
    pub(crate) fn devices(&self) -> GuestDevices {
        let network = self.network.clone();
        GuestDevices {
            network: network.filter(|it| *it != GuestNetwork::None),
            console: self.console,
            channel: self.channel,
            tpm: self.tpm == Some(true),
            rng: self.rng == Some(true),
        }
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

spec_words! {
    /// The operating system of a guest, as far as its disks depend on it.
    pub enum GuestOs {
        /// Linux, or another with drivers for virtio.
        Linux = "linux",
        /// Windows, which has no drivers for virtio on its installer.
        Windows = "windows",
    }
}

spec_words! {
    /// Drivers that are installed with the guest.
    pub enum GuestDrivers {
        /// Those of the driver CD of virtio-win.
        Virtio = "virtio",
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

section! {
    /// An iothread; QEMU chooses its unset options.
    #[derive(Default)]
    pub struct IoThreadOptions {
        /// Longest time that it polls before it sleeps, in nanoseconds; 0 disables polling, QEMU's default is 32768
        /// (libvirt 9.4).
        poll_max_ns: Option<u64> = "poll-max-ns",
        /// Factor by which the polling time grows; QEMU's default 0 doubles it (libvirt 9.4).
        poll_grow: Option<u64> = "poll-grow",
        /// Divisor by which the polling time shrinks; QEMU's default 0 ends polling (libvirt 9.4).
        poll_shrink: Option<u64> = "poll-shrink",
        /// Fewest threads in its pool; QEMU's default is 0 (libvirt 8.5, QEMU 7.1).
        thread_pool_min: Option<u32> = "thread-pool-min",
        /// Most threads in its pool; QEMU's default is 64 (libvirt 8.5, QEMU 7.1).
        thread_pool_max: Option<u32> = "thread-pool-max",
    }
}

impl IoThreadOptions {
    /// Sets the options of an iothread of the model.
    pub(crate) fn apply(&self, thread: &mut IoThread) {
        let IoThreadOptions {
            poll_max_ns,
            poll_grow,
            poll_shrink,
            thread_pool_min,
            thread_pool_max,
        } = self;
        thread.polling = Polling {
            max: *poll_max_ns,
            grow: *poll_grow,
            shrink: *poll_shrink,
        };
        thread.thread_pool_min = *thread_pool_min;
        thread.thread_pool_max = *thread_pool_max;
    }

    /// The options of an iothread of the model.
    pub(super) fn of_model(thread: &IoThread) -> Self {
        let IoThread {
            id: _,        // its place in the list
            is_listed: _, // how libvirt writes it
            thread_pool_min,
            thread_pool_max,
            polling: Polling { max, grow, shrink },
        } = thread;
        IoThreadOptions {
            poll_max_ns: *max,
            poll_grow: *grow,
            poll_shrink: *shrink,
            thread_pool_min: *thread_pool_min,
            thread_pool_max: *thread_pool_max,
        }
    }
}

/// How many event-loop threads a guest has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoThreadCount {
    /// As many as the disks need.
    Auto,
    /// This many, which the disks that can use one share.
    Number(u32),
    /// As many as are in the list, with these options.
    Each(Vec<IoThreadOptions>),
}

impl IoThreadCount {
    /// The number of iothreads; `None` for as many as the disks need.
    pub fn number(&self) -> Option<u32> {
        match self {
            IoThreadCount::Auto => None,
            IoThreadCount::Number(number) => Some(*number),
            IoThreadCount::Each(threads) => Some(u32::try_from(threads.len()).unwrap_or(u32::MAX)),
        }
    }
}

impl SpecValue for IoThreadCount {
    fn read(node: Value, reader: &mut Reader) -> Option<Self> {
        match node {
            Value::Text(word) if word == "auto" => Some(IoThreadCount::Auto),
            Value::List(items) => {
                let threads = reader.items(items, IoThreadOptions::read);
                threads.map(IoThreadCount::Each)
            }
            node => u32::read(node, reader).map(IoThreadCount::Number),
        }
    }

    fn write(&self) -> Value {
        match self {
            IoThreadCount::Auto => Value::Text("auto".to_owned()),
            IoThreadCount::Number(number) => number.write(),
            IoThreadCount::Each(threads) => Value::list(threads.iter().map(SpecValue::write)),
        }
    }

    fn schema() -> Schema {
        json!({
            "anyOf": [
                { "const": "auto" },
                u32::schema(),
                { "type": "array", "items": IoThreadOptions::schema() }
            ]
        })
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
        json!({ "anyOf": [bool::schema(), Bytes::schema()] })
    }
}
