//! Introspection of a QEMU program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use vmdisk_facts::capability::{CapabilityRow, TABLE};
use vmdisk_facts::{Component, INTROSPECTION_VERSION, Introspection, Owner, Probe};

use crate::error::QmpError;
use crate::launch::Launch;
use crate::qemu::QemuProcess;
use crate::schema::Schema;

/// The device types whose properties are recorded: disks, their controllers, and the bridges they are connected to.
const DEVICES: &[&str] = &[
    "am53c974",
    "dc390",
    "emmc",
    "floppy",
    "i82801b11-bridge",
    "ich9-ahci",
    "ich9-usb-ehci1",
    "ich9-usb-uhci1",
    "ide-cd",
    "ide-cf",
    "ide-hd",
    "ioh3420",
    "isa-fdc",
    "lsi53c810",
    "lsi53c895a",
    "megasas",
    "megasas-gen2",
    "mptsas1068",
    "nec-usb-xhci",
    "nvme",
    "nvme-ns",
    "nvme-subsys",
    "pci-bridge",
    "pcie-pci-bridge",
    "pcie-root-port",
    "piix3-ide",
    "piix3-usb-uhci",
    "piix4-ide",
    "piix4-usb-uhci",
    "pvscsi",
    "pxb",
    "pxb-pcie",
    "qemu-xhci",
    "scsi-block",
    "scsi-cd",
    "scsi-generic",
    "scsi-hd",
    "sd-card",
    "sdhci-pci",
    "usb-bot",
    "usb-ehci",
    "usb-storage",
    "usb-uas",
    "vhost-scsi-pci",
    "vhost-scsi-pci-non-transitional",
    "vhost-scsi-pci-transitional",
    "vhost-user-blk",
    "vhost-user-blk-pci",
    "vhost-user-blk-pci-non-transitional",
    "vhost-user-blk-pci-transitional",
    "vhost-user-scsi-pci",
    "vhost-user-scsi-pci-non-transitional",
    "vhost-user-scsi-pci-transitional",
    "virtio-blk-device",
    "virtio-blk-pci",
    "virtio-blk-pci-non-transitional",
    "virtio-blk-pci-transitional",
    "virtio-scsi-device",
    "virtio-scsi-pci",
    "virtio-scsi-pci-non-transitional",
    "virtio-scsi-pci-transitional",
];

/// The object types whose properties are recorded.
const OBJECTS: &[&str] = &[
    "iothread",
    "memory-backend-file",
    "memory-backend-memfd",
    "memory-backend-ram",
    "memory-backend-shm",
    "pr-manager-helper",
    "secret",
    "throttle-group",
    "tls-creds-anon",
    "tls-creds-psk",
    "tls-creds-x509",
];

/// Queries a QEMU program for all capabilities that introspection can show; takes about 0.1 s.
///
/// The program is started without a machine, opens no image, and exits before this returns. Some builds crash on some
/// queries: such an answer is recorded as unknown, and a new process is started for the rest.
///
/// # Errors
/// If the program does not start, is not a QEMU, or does not answer a basic query within `timeout`.
pub fn introspect(program: &Path, timeout: Duration) -> Result<Introspection, QmpError> {
    let mut asked = IntrospectionSession {
        program: program.to_owned(),
        timeout,
        qemu: None,
    };
    let qemu = asked.qemu()?;
    let greeting = qemu.greeting().clone();
    let arch = qemu.ask("query-target", json!({}))?;
    let machines = qemu.ask("query-machines", json!({}))?;
    let schema = Schema::new(qemu.ask("query-qmp-schema", json!({}))?);

    let mut capabilities = BTreeMap::new();
    let mut unknown = BTreeMap::new();
    let mut types: BTreeMap<&str, Result<Option<BTreeSet<String>>, String>> = BTreeMap::new();
    let mut properties = |asked: &mut IntrospectionSession, name: &'static str| {
        types
            .entry(name)
            .or_insert_with(|| asked.properties(name))
            .clone()
    };
    for row in TABLE.iter().filter(|row| row.component == Component::Qemu) {
        let CapabilityRow { name, probe, .. } = row;
        let has = match probe {
            Probe::QmpSchema(path) => Ok(schema.has(path)),
            Probe::BlockDriver(driver) => {
                match schema.has(&format!("blockdev-add/arg-type/+{driver}")) {
                    true => asked.loads(driver),
                    false => Ok(false),
                }
            }
            Probe::QomType(name) => properties(&mut asked, name).map(|found| found.is_some()),
            Probe::DeviceProperty { device, property } => {
                let found = properties(&mut asked, device);
                found.map(|found| found.is_some_and(|all| all.contains(*property)))
            }
            Probe::Trial => continue,
        };
        match has {
            Ok(has) => {
                capabilities.insert((*name).to_owned(), has);
            }
            Err(why) => {
                unknown.insert((*name).to_owned(), why);
            }
        }
    }
    let mut members = BTreeMap::new();
    for (driver, found) in schema.variants("blockdev-add") {
        members.insert(Owner::Node(&driver).key(), found);
    }
    for name in DEVICES {
        if let Ok(Some(found)) = asked.types("device-list-properties", name) {
            members.insert(Owner::Device(name).key(), found);
        }
    }
    for name in OBJECTS {
        if let Ok(Some(found)) = asked.types("qom-list-properties", name) {
            members.insert(Owner::Object(name).key(), found);
        }
    }
    Ok(Introspection {
        schema_version: INTROSPECTION_VERSION,
        qemu: greeting.version,
        package: greeting.package,
        arch: arch["arch"].as_str().unwrap_or_default().to_owned(),
        capabilities,
        unknown,
        machines: machine_types(&machines),
        members,
    })
}

/// The program, and its process until that crashes.
struct IntrospectionSession {
    program: PathBuf,
    timeout: Duration,
    qemu: Option<QemuProcess>,
}

impl IntrospectionSession {
    fn qemu(&mut self) -> Result<&mut QemuProcess, QmpError> {
        let qemu = match self.qemu.take() {
            Some(qemu) => qemu,
            None => Launch::paused(&self.program)
                .args(["-nodefaults", "-machine", "none"])
                .timeout(self.timeout)
                .start()?,
        };
        Ok(self.qemu.insert(qemu))
    }

    /// Returns the properties of a type; `None` if the type does not exist.
    ///
    /// `qom-list-types` would list all types at once, but loads every module, which crashes a QEMU that finds
    /// modules of another build.
    fn properties(&mut self, name: &str) -> Result<Option<BTreeSet<String>>, String> {
        let is_device = TABLE
            .iter()
            .any(|row| matches!(row.probe, Probe::DeviceProperty { device, .. } if device == name));
        // QEMU creates most properties of a device with the device; its type alone has few.
        let command = if is_device {
            "device-list-properties"
        } else {
            "qom-list-properties"
        };
        let types = self.types(command, name)?;
        Ok(types.map(|types| types.into_keys().collect()))
    }

    /// Returns true if a block driver is in the program or in a module that can be loaded: the schema names modules
    /// that are not installed. Without the options that it needs, a driver refuses before it opens anything.
    fn loads(&mut self, driver: &str) -> Result<bool, String> {
        let command = format!("drive_add \"\" if=none,driver={driver}");
        let question = json!({ "command-line": command });
        let answer = self
            .qemu()
            .and_then(|qemu| qemu.ask("human-monitor-command", question));
        let said = answer.map_err(|error| self.failed(error))?;
        let said = said.as_str().unwrap_or_default();
        let is_missing = [
            format!("Unknown driver '{driver}'"),
            format!("Driver '{driver}' is not whitelisted"),
        ];
        Ok(!is_missing.iter().any(|missing| said.contains(missing)))
    }

    /// The text of an error. What may have ended the program gets a new one for the next question.
    fn failed(&mut self, error: QmpError) -> String {
        if !matches!(error, QmpError::Refused { .. }) {
            self.qemu = None;
        }
        error.to_string()
    }

    /// Returns the properties of a type with the names of their types; `None` if the type does not exist.
    fn types(
        &mut self,
        command: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, String> {
        let question = json!({ "typename": name });
        let answer = self.qemu().and_then(|qemu| qemu.ask(command, question));
        match answer {
            Ok(list) => Ok(Some(types(&list))),
            Err(QmpError::Refused { class, .. }) if class == "DeviceNotFound" => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }
}

/// Returns the machine types and their aliases, except the empty machine.
fn machine_types(list: &Value) -> Vec<String> {
    let mut all = names(list);
    let aliases = list.as_array().into_iter().flatten();
    all.extend(aliases.filter_map(|one| Some(one["alias"].as_str()?.to_owned())));
    all.remove("none");
    all.into_iter().collect()
}

/// Returns the names in a list of properties, with the names of their types.
fn types(list: &Value) -> BTreeMap<String, String> {
    let named = list.as_array().into_iter().flatten();
    named
        .filter_map(|one| Some((one["name"].as_str()?, one["type"].as_str().unwrap_or("any"))))
        // Children of a device and the property `type` of every object cannot be set.
        .filter(|(name, kind)| *name != "type" && !kind.starts_with("child<"))
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect()
}

/// Returns the names in a list of named entries.
fn names(list: &Value) -> BTreeSet<String> {
    let named = list.as_array().into_iter().flatten();
    named
        .filter_map(|one| Some(one["name"].as_str()?.to_owned()))
        .collect()
}
