//! A plan in a result.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use vmdisk_libvirt::{Unmodeled, UnmodeledContent};
use vmdisk_model::{Creation, ThinCreation};

use super::{
    Cell, CellId, Configuration, LeftOut, LinterFinding, NamedPair, Plan, Storage, Workload,
};

/// A plan in a result: every decision as text and numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlanRecord {
    /// Name of the preset, or of the plan.
    pub name: String,
    /// The question that it answers.
    pub question: String,
    /// The configurations.
    pub configurations: Vec<ConfigurationRecord>,
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// The cells that each round measures.
    pub cells: Vec<Cell>,
    /// Requested items that are not measured.
    pub left_out: Vec<LeftOut>,
    /// Pairs of configurations that the question also compares, by their names; the second is the baseline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<NamedPair>,
}

/// A configuration in a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ConfigurationRecord {
    /// The name.
    pub name: String,
    /// The factors.
    pub factors: BTreeMap<String, String>,
    /// The disk as libvirt XML, with a placeholder for its path.
    pub disk_xml: String,
    /// Its guest as libvirt XML.
    pub guest_xml: String,
    /// How its image is created.
    pub creation: String,
    /// The kind of storage.
    pub storage: Storage,
    /// Size that the guest sees, in bytes.
    pub size_bytes: u64,
    /// Number of times that steady storage is written before it is measured.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub fills: u32,
    /// True if QEMU uses it as a vhost-user-blk device.
    pub is_served_by_daemon: bool,
    /// True if fio on the host uses the page cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_buffered: bool,
    /// The linter's findings.
    pub findings: Vec<LinterFinding>,
}

const fn once() -> u32 {
    1
}

const fn is_once(fills: &u32) -> bool {
    *fills == 1
}

/// Returns the SHA-256 of some bytes, in hexadecimal.
pub fn hash_of(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl PlanRecord {
    /// Returns the SHA-256 of the plan, in hexadecimal: equal plans measure the same.
    pub fn hash(&self) -> String {
        let text = serde_json::to_vec(self)
            .expect("a plan holds only text, numbers and maps with text as keys");
        hash_of(&text)
    }

    /// Returns the name of a cell: configuration, workload and phase. Empty for an unknown number.
    pub fn cell_name(&self, id: CellId) -> String {
        let name = |cell: &Cell| {
            let configuration = self.configurations.get(cell.configuration)?;
            let workload = self.workloads.get(cell.workload)?;
            Some(format!(
                "{} {} {}",
                configuration.name,
                workload.name,
                cell.phase.name()
            ))
        };
        self.cells.get(id.0).and_then(name).unwrap_or_default()
    }

    /// Returns the first reference to something that the plan does not have.
    pub fn dangling(&self) -> Option<String> {
        self.cells.iter().enumerate().find_map(|(index, cell)| {
            let baseline = cell.baseline.map_or(0, |baseline| baseline.0);
            let is_whole = cell.configuration < self.configurations.len()
                && cell.workload < self.workloads.len()
                && baseline < self.cells.len();
            (!is_whole)
                .then(|| format!("cell {index} refers to something that the plan does not have"))
        })
    }
}

impl Plan {
    /// Converts the plan to the form used in results.
    pub fn record(&self) -> PlanRecord {
        let Plan {
            name,
            question,
            configurations,
            workloads,
            cells,
            left_out,
            pairs,
        } = self;
        PlanRecord {
            name: name.clone(),
            question: question.clone(),
            configurations: configurations.iter().map(record).collect(),
            workloads: workloads.clone(),
            cells: cells.clone(),
            left_out: left_out.clone(),
            pairs: pairs.clone(),
        }
    }
}

fn record(configuration: &Configuration) -> ConfigurationRecord {
    let Configuration {
        name,
        factors,
        guest,
        storage,
        size,
        fills,
        is_served_by_daemon,
        is_buffered,
        launcher: _, /* said by the factors */
        findings,
    } = configuration;
    let unwritable = |error| format!("<!-- not expressible in libvirt XML: {error} -->");
    let creation = configuration.disk().backend.image();
    ConfigurationRecord {
        name: name.clone(),
        factors: factors.clone(),
        disk_xml: vmdisk_libvirt::write_disk(configuration.disk(), &UnmodeledContent::default())
            .unwrap_or_else(unwritable),
        guest_xml: vmdisk_libvirt::write_domain(guest, &Unmodeled::default())
            .unwrap_or_else(unwritable),
        creation: creation
            .and_then(|image| image.creation.as_ref())
            .map(creation_in_words)
            .unwrap_or_default(),
        storage: storage.clone(),
        size_bytes: size.0,
        fills: *fills,
        is_served_by_daemon: *is_served_by_daemon,
        is_buffered: *is_buffered,
        findings: findings.clone(),
    }
}

fn creation_in_words(creation: &Creation) -> String {
    match creation {
        Creation::RawFile {
            size: _, /* said of the configuration */
            preallocation,
        } => format!(
            "raw, preallocation {}",
            preallocation.map_or("off", |mode| mode.as_str())
        ),
        Creation::Qcow2(qcow2) => {
            let mut words = format!(
                "qcow2, preallocation {}",
                qcow2.preallocation.map_or("off", |mode| mode.as_str())
            );
            if let Some(cluster_size) = qcow2.cluster_size {
                words.push_str(&format!(", clusters of {} bytes", cluster_size.0));
            }
            words
        }
        Creation::Other { size: _ } => "other".to_owned(),
        Creation::LogicalVolume { name, size: _ } => format!("logical volume {name}"),
        Creation::ThinVolume(ThinCreation {
            name,
            pool,
            size: _,
            pool_size: _,
            chunk_size: _,
            zero: _,
        }) => format!("thin volume {name} in {pool}"),
    }
}
