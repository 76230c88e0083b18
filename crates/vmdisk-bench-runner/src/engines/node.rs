//! The block nodes of a configuration, from our command line writer.

use serde_json::{Value, json};
use vmdisk_facts::Target;
use vmdisk_model::{BackendSource, Domain, Frontend, Protocol, Scope, TargetBus};
use vmdisk_qemu::Options;

use super::storage::PreparedStorage;
use crate::{Configuration, Error};

/// The blockdevs of a disk, children first.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    blockdevs: Vec<Value>,
}

impl Nodes {
    /// Builds the nodes of a configuration on the storage created for it.
    pub(crate) fn of(
        configuration: &Configuration,
        storage: &PreparedStorage,
        target: &Target,
    ) -> Result<Self, Error> {
        let mut disk = configuration.disk().clone();
        set_path(&mut disk.backend.source, storage)?;
        // The node is used without a device, so the disk needs no controller.
        disk.frontend = Frontend::new("vda", TargetBus::Virtio);
        let domain = Domain {
            scope: Scope::DisksOnly,
            disks: vec![disk],
            ..Domain::default()
        };
        let line = vmdisk_qemu::write(
            &domain,
            &Options {
                target: target.clone(),
            },
        )
        .map_err(|problems| {
            Error::refused(
                format!("to write the disk of {}", configuration.name),
                problems,
            )
        })?;
        let blockdevs = line
            .blockdevs()
            .map(|object| {
                serde_json::from_str(&object.to_string()).expect("the writer emits valid JSON")
            })
            .collect();
        Ok(Self { blockdevs })
    }

    /// Adds a node that shows only the usable range of the storage.
    pub(crate) fn within(mut self, storage: &PreparedStorage) -> Self {
        let range = json!({
            "driver": "raw", "node-name": "range", "file": self.top(),
            "offset": storage.offset, "size": storage.length,
        });
        self.blockdevs.push(range);
        self
    }

    /// Returns the command line arguments that open the nodes, with `option` before each.
    pub(crate) fn words(&self, option: &str) -> Vec<String> {
        self.blockdevs
            .iter()
            .flat_map(|node| [option.to_owned(), node.to_string()])
            .collect()
    }

    /// Returns the name of the node for a device or export.
    pub(crate) fn top(&self) -> &str {
        self.blockdevs
            .last()
            .and_then(|node| node["node-name"].as_str())
            .unwrap_or_default()
    }
}

/// Sets the path of the created storage in a disk.
pub(crate) fn set_path(source: &mut BackendSource, storage: &PreparedStorage) -> Result<(), Error> {
    let path = storage.path.to_str().ok_or_else(|| {
        Error::refused(
            format!("to use {}", storage.path.display()),
            "the path is not valid UTF-8, which QEMU's options require",
        )
    })?;
    let BackendSource::Image(image) = source else {
        return Err(Error::refused("to measure it", "the disk is not an image"));
    };
    match &mut image.protocol {
        Protocol::File { path: old } => path.clone_into(old),
        Protocol::HostDevice { path: old } => old.0 = path.to_owned(),
        _ => {
            return Err(Error::refused(
                "to measure it",
                "its image is neither a file nor a device of this host",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_node_is_the_top_and_each_node_has_an_option() {
        let nodes = Nodes {
            blockdevs: vec![
                json!({"driver": "file", "node-name": "f", "filename": "/a b.qcow2", "cache": {"direct": true}}),
                json!({"driver": "qcow2", "node-name": "d", "file": "f", "cache": {"direct": true}}),
            ],
        };
        assert_eq!(nodes.top(), "d");
        assert_eq!(nodes.words("--blockdev").len(), 4);
    }
}
