//! Facts that need LVM's tools: zeroing, fullness, discards. Collected only on request; needs root.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use vmdisk_facts::blockdev::{Lvm, Percent};
use vmdisk_facts::{BlockDevice, BlockKind, CollectError, DeviceNumber, Fact, Reason, Unknown};

use crate::process::ProgramQuery;
use crate::root::Root;

const COLUMNS: &str = "vg_name,lv_name,segtype,lv_size,chunk_size,zero,discards,pool_lv,origin,data_percent,metadata_percent,\
lv_when_full,thin_count,lv_health_status,lv_kernel_major,lv_kernel_minor,vg_free";

/// One line of `lvs --reportformat json`; every value is text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct LvsRow {
    vg_name: String,
    lv_name: String,
    segtype: String,
    lv_size: String,
    chunk_size: String,
    zero: String,
    discards: String,
    pool_lv: String,
    origin: String,
    data_percent: String,
    metadata_percent: String,
    lv_when_full: String,
    thin_count: String,
    lv_health_status: String,
    lv_kernel_major: String,
    lv_kernel_minor: String,
    vg_free: Option<String>,
}

#[derive(Deserialize)]
struct LvsReport {
    report: Vec<LvsSection>,
}

#[derive(Deserialize)]
struct LvsSection {
    #[serde(default)]
    lv: Vec<LvsRow>,
}

/// Adds the facts of `lvs` to the logical volumes among the devices.
pub(crate) fn complete(
    root: &Root,
    devices: &mut [BlockDevice],
    threshold: &Fact<u32>,
    limit: Duration,
    errors: &mut Vec<CollectError>,
) {
    if !devices.iter().any(|device| device.kind.is_lvm()) {
        return;
    }
    let report = query(root, limit).and_then(|printed| Volumes::parse(&printed));
    match report {
        Ok(volumes) => {
            for device in devices.iter_mut().filter(|device| device.kind.is_lvm()) {
                volumes.fill(device, threshold);
            }
        }
        Err(unknown) => {
            for device in devices.iter_mut().filter(|device| device.kind.is_lvm()) {
                mark(device, &unknown);
            }
            errors.push(CollectError::of("lvs", unknown));
        }
    }
}

fn query(root: &Root, limit: Duration) -> Result<String, Unknown> {
    ProgramQuery {
        program: "lvs",
        arguments: &[
            "--all",
            "--reportformat",
            "json",
            "--units",
            "b",
            "--nosuffix",
            "-o",
            COLUMNS,
        ],
        recorded: "/vmdisk/lvs.json",
    }
    .ask(root, limit)
}

/// All logical volumes, by number and by name.
struct Volumes {
    rows: Vec<LvsRow>,
    by_number: HashMap<DeviceNumber, usize>,
    by_name: HashMap<(String, String), usize>,
    /// By group and pool: the total size of its volumes, and the number of snapshots.
    pools: HashMap<(String, String), (u64, u32)>,
    /// By group and origin: the number of snapshots.
    origins: HashMap<(String, String), u32>,
}

impl Volumes {
    fn parse(printed: &str) -> Result<Self, Unknown> {
        let report: LvsReport = serde_json::from_str(printed)
            .map_err(|error| Unknown::new(Reason::Parse, format!("the output of lvs: {error}")))?;
        let mut volumes = Self {
            rows: report
                .report
                .into_iter()
                .flat_map(|section| section.lv)
                .collect(),
            by_number: HashMap::new(),
            by_name: HashMap::new(),
            pools: HashMap::new(),
            origins: HashMap::new(),
        };
        for (place, row) in volumes.rows.iter_mut().enumerate() {
            // Names of internal volumes are in brackets.
            row.lv_name = bare(&row.lv_name).to_owned();
            row.pool_lv = bare(&row.pool_lv).to_owned();
            row.origin = bare(&row.origin).to_owned();
            let number =
                DeviceNumber::parse(&format!("{}:{}", row.lv_kernel_major, row.lv_kernel_minor));
            if let Some(number) = number {
                volumes.by_number.insert(number, place);
            }
            let group = row.vg_name.clone();
            // A volume with several segments has several lines; its size must be counted once.
            let first = volumes
                .by_name
                .insert((group.clone(), row.lv_name.clone()), place)
                .is_none();
            if first && !row.origin.is_empty() && row.segtype != "raid" {
                *volumes
                    .origins
                    .entry((group.clone(), row.origin.clone()))
                    .or_default() += 1;
            }
            if first && row.segtype == "thin" && !row.pool_lv.is_empty() {
                let (size, snapshots) = volumes
                    .pools
                    .entry((group, row.pool_lv.clone()))
                    .or_default();
                *size = size.saturating_add(row.lv_size.parse().unwrap_or(0));
                *snapshots += u32::from(!row.origin.is_empty());
            }
        }
        Ok(volumes)
    }

    fn row(&self, device: &BlockDevice) -> Option<&LvsRow> {
        let names = device
            .lvm
            .value()
            .and_then(|lvm| lvm.vg.value().cloned().zip(lvm.lv.value().cloned()));
        let named = names.and_then(|names| self.by_name.get(&names));
        // The layers of a pool have other device numbers than the one in lvs.
        let numbered = device
            .dev
            .value()
            .and_then(|number| self.by_number.get(number));
        let place = if device.kind == BlockKind::LvmThinPool {
            named.or(numbered)
        } else {
            numbered.or(named)
        };
        place.map(|place| &self.rows[*place])
    }

    fn fill(&self, device: &mut BlockDevice, threshold: &Fact<u32>) {
        let Some(row) = self.row(device) else {
            mark(
                device,
                &Unknown::new(Reason::Conflict, "`lvs` does not list this volume"),
            );
            return;
        };
        let group = row.vg_name.clone();
        let is_pool = device.kind == BlockKind::LvmThinPool;
        let pool_name = if is_pool { &row.lv_name } else { &row.pool_lv }.clone();
        let pool = self
            .by_name
            .get(&(group.clone(), pool_name.clone()))
            .map(|place| &self.rows[*place]);
        // A thin volume gets its pool's properties, so that rules need not look for the pool.
        let from = pool.unwrap_or(row);
        let in_pool = self.pools.get(&(group.clone(), pool_name)).copied();
        let own_snapshots = self
            .origins
            .get(&(group.clone(), row.lv_name.clone()))
            .copied()
            .unwrap_or(0);
        device.lvm = Fact::Known(Lvm {
            vg: word(&group),
            lv: word(&row.lv_name),
            segtype: word(&row.segtype),
            pool: word(&row.pool_lv),
            origin: word(&row.origin),
            chunk: match from.chunk_size.parse() {
                Ok(0) | Err(_) => Fact::Absent,
                Ok(bytes) => Fact::Known(bytes),
            },
            zero: match from.zero.as_str() {
                "zero" => Fact::Known(true),
                // Zeroing does not apply without a pool.
                "unknown" => Fact::Absent,
                "" if from.segtype == "thin-pool" => Fact::Known(false),
                "" => Fact::Absent,
                other => Fact::unknown(Reason::Parse, format!("lvs zero: '{other}'")),
            },
            discards: word(&from.discards),
            data_percent: percent(if pool.is_some() {
                &from.data_percent
            } else {
                &row.data_percent
            }),
            metadata_percent: percent(&from.metadata_percent),
            when_full: word(&from.lv_when_full),
            thin_count: match from.thin_count.parse() {
                Ok(count) => Fact::Known(count),
                Err(_) => Fact::Absent,
            },
            snapshots: Fact::Known(if is_pool {
                in_pool.map_or(0, |(_, snapshots)| snapshots)
            } else {
                own_snapshots
            }),
            virtual_bytes: in_pool.map_or(Fact::Absent, |(size, _)| Fact::Known(size)),
            autoextend_threshold: if pool.is_some() {
                threshold.clone()
            } else {
                Fact::Absent
            },
            health: word(&row.lv_health_status),
            vg_free: free_of_group(row.vg_free.as_deref()),
        });
    }
}

/// Marks requested facts that could not be collected.
fn mark(device: &mut BlockDevice, unknown: &Unknown) {
    let Fact::Known(lvm) = &mut device.lvm else {
        return;
    };
    let Lvm {
        vg: _,
        lv: _,
        segtype,
        pool: _,
        origin,
        chunk,
        zero,
        discards,
        data_percent,
        metadata_percent,
        when_full,
        thin_count,
        snapshots,
        virtual_bytes,
        autoextend_threshold,
        health,
        vg_free,
    } = lvm;
    fill(segtype, unknown);
    fill(origin, unknown);
    fill(chunk, unknown);
    fill(zero, unknown);
    fill(discards, unknown);
    fill(data_percent, unknown);
    fill(metadata_percent, unknown);
    fill(when_full, unknown);
    fill(thin_count, unknown);
    fill(snapshots, unknown);
    fill(virtual_bytes, unknown);
    fill(autoextend_threshold, unknown);
    fill(health, unknown);
    fill(vg_free, unknown);
}

fn fill<T>(fact: &mut Fact<T>, unknown: &Unknown) {
    if fact.is_not_collected() {
        *fact = Fact::Unknown(unknown.clone());
    }
}

fn bare(name: &str) -> &str {
    name.strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name)
}

/// A recording of an older version has no such column.
fn free_of_group(text: Option<&str>) -> Fact<u64> {
    match text.map(str::parse) {
        None => Fact::NotCollected,
        Some(Ok(bytes)) => Fact::Known(bytes),
        Some(Err(_)) => Fact::unknown(Reason::Parse, "vg_free of lvs"),
    }
}

fn word(text: &str) -> Fact<String> {
    Fact::or_absent((!text.is_empty()).then(|| text.to_owned()))
}

fn percent(text: &str) -> Fact<Percent> {
    match (text, Percent::parse(text)) {
        // Inactive volumes have no percentages.
        ("", _) => Fact::Absent,
        (_, Some(percent)) => Fact::Known(percent),
        (_, None) => Fact::unknown(Reason::Parse, format!("lvs: `{text}` is not a percentage")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LVS: &str = r#"{"report": [{"lv": [
        {"vg_name":"vg","lv_name":"thin1","segtype":"thin","lv_size":"1073741824","chunk_size":"0","zero":"unknown","pool_lv":"pool",
         "origin":"","data_percent":"12.50","metadata_percent":"","thin_count":"","lv_health_status":"","vg_extent_size":"4194304","vg_free":"1073741824",
         "lv_kernel_major":"253","lv_kernel_minor":"5"},
        {"vg_name":"vg","lv_name":"snap","segtype":"thin","lv_size":"1073741824","chunk_size":"0","zero":"unknown","pool_lv":"pool",
         "origin":"thin1","lv_kernel_major":"-1","lv_kernel_minor":"-1","vg_extent_size":"4194304"},
        {"vg_name":"vg","lv_name":"pool","segtype":"thin-pool","lv_size":"536870912","chunk_size":"4194304","zero":"","discards":"passdown",
         "data_percent":"97.31","metadata_percent":"20.02","lv_when_full":"queue","thin_count":"2","vg_extent_size":"4194304",
         "lv_kernel_major":"253","lv_kernel_minor":"3"},
        {"vg_name":"vg","lv_name":"[pool_tdata]","segtype":"linear","lv_size":"536870912","zero":"unknown",
         "lv_kernel_major":"253","lv_kernel_minor":"2","vg_extent_size":"4194304"}
    ]}]}"#;

    fn device(name: &str, minor: u32, kind: BlockKind) -> BlockDevice {
        BlockDevice {
            kind,
            dev: Fact::Known(DeviceNumber { major: 253, minor }),
            lvm: Fact::Known(Lvm {
                vg: Fact::Known("vg".to_owned()),
                lv: Fact::Known(name.to_owned()),
                ..Lvm::default()
            }),
            ..BlockDevice::default()
        }
    }

    fn filled(mut device: BlockDevice) -> Lvm {
        Volumes::parse(LVS)
            .unwrap()
            .fill(&mut device, &Fact::Known(100));
        device.lvm.known().unwrap()
    }

    #[test]
    fn a_thin_volume_has_the_properties_of_its_pool() {
        let lvm = filled(device("thin1", 5, BlockKind::LvmThin));
        assert_eq!(lvm.zero, Fact::Known(false));
        assert_eq!(lvm.chunk, Fact::Known(4_194_304));
        assert_eq!(lvm.data_percent, Fact::Known(Percent(9731)));
        assert_eq!(lvm.when_full, Fact::Known("queue".to_owned()));
        assert_eq!(lvm.snapshots, Fact::Known(1));
        assert_eq!(lvm.virtual_bytes, Fact::Known(2 << 30));
        assert_eq!(lvm.autoextend_threshold, Fact::Known(100));
        assert_eq!(lvm.origin, Fact::Absent);
        assert_eq!(lvm.vg_free, Fact::Known(1 << 30));
    }

    #[test]
    fn the_tpool_layer_is_identified_with_its_pool() {
        // `-tpool` has another number than the one lvs prints for the pool.
        let lvm = filled(device("pool", 4, BlockKind::LvmThinPool));
        assert_eq!(lvm.segtype, Fact::Known("thin-pool".to_owned()));
        assert_eq!(lvm.thin_count, Fact::Known(2));
        assert_eq!(lvm.snapshots, Fact::Known(1));
    }

    #[test]
    fn a_volume_without_a_pool_has_no_zeroing() {
        let lvm = filled(device("pool_tdata", 2, BlockKind::LvmThinData));
        assert_eq!(lvm.zero, Fact::Absent);
        assert_eq!(lvm.discards, Fact::Absent);
        assert_eq!(lvm.vg_free, Fact::NotCollected);
    }

    #[test]
    fn a_failed_query_makes_facts_unknown_and_keeps_facts_of_sysfs() {
        let mut device = device("thin1", 5, BlockKind::LvmThin);
        if let Fact::Known(lvm) = &mut device.lvm {
            lvm.chunk = Fact::Known(65_536);
        }
        mark(&mut device, &Unknown::new(Reason::Permission, "lvs"));
        let lvm = device.lvm.known().unwrap();
        assert_eq!(lvm.zero, Fact::unknown(Reason::Permission, "lvs"));
        assert_eq!(lvm.chunk, Fact::Known(65_536));
    }

    #[test]
    fn invalid_output_is_a_reason() {
        assert_eq!(
            Volumes::parse("  WARNING: x")
                .err()
                .map(|unknown| unknown.reason().clone()),
            Some(Reason::Parse)
        );
    }
}
