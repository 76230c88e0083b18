//! The facts that a guest needs.

use vmdisk_facts::FactsNeeded;
use vmdisk_model::{BackendSource, Backing, Domain, Format, Image};

use crate::{Document, Source};

impl Document {
    /// The facts that the rules need about this document. A collector that looks at more can be led astray: see
    /// [`FactsNeeded::chains`].
    ///
    /// ```
    /// let text = "<disk><driver type='raw'/><source file='/srv/a.img'/><target dev='vda'/></disk>";
    /// let needed = vmdisk::read(text)?.facts_needed();
    /// assert!(needed.paths.contains("/srv/a.img") && needed.chains.is_empty());
    /// # Ok::<(), vmdisk::ReadFailure>(())
    /// ```
    pub fn facts_needed(&self) -> FactsNeeded {
        let mut needed = FactsNeeded::default();
        for start in self.starts() {
            needed.extend(facts_needed(start.domain()));
            needed.paths.extend(start.firmware_paths());
        }
        needed
    }

    /// The files of UEFI.
    fn firmware_paths(&self) -> Vec<String> {
        match &self.source {
            Source::LibvirtXml(source) => source.firmware_paths(self.read_text()),
            Source::QemuCommandLine(line) => {
                let firmware = line.firmware.iter();
                let files = firmware.flat_map(|it| it.variables.iter().chain([&it.code]));
                files.map(|flash| flash.path.clone()).collect()
            }
            Source::Spec(_) => Vec::new(),
        }
    }
}

/// The facts that the rules need about a guest.
pub fn facts_needed(domain: &Domain) -> FactsNeeded {
    let mut needed = FactsNeeded::default();
    needed.paths.extend(domain.emulator.clone());
    for disk in &domain.disks {
        match &disk.backend.source {
            BackendSource::Image(image) => add_image(&mut needed, image),
            BackendSource::VhostUser(socket) => {
                needed.paths.insert(socket.path.clone());
            }
            BackendSource::Empty => {}
        }
    }
    needed.block_drivers = vmdisk_rules::has_optional_driver(domain);
    needed
}

fn add_image(needed: &mut FactsNeeded, image: &Image) {
    for image in image.chain() {
        if let Some(path) = image.data_file.as_deref().and_then(Image::host_path) {
            needed.paths.insert(path.to_owned());
        }
        let Some(path) = image.host_path() else {
            continue;
        };
        needed.paths.insert(path.to_owned());
        // The header of what is opened as raw is the guest's, and must lead nobody anywhere.
        let is_for_the_header = image.backing == Backing::Unspecified
            && image.is_headed_by_its_format()
            && image.format.is_some_and(Format::has_backing);
        if is_for_the_header {
            needed.chains.insert(path.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_header_of_an_image_that_is_opened_as_such_leads_on() {
        let text = "<domain><devices><emulator>/q</emulator>
            <disk><driver type='qcow2'/><source file='/a'/><target dev='vda'/></disk>
            <disk><driver type='raw'/><source file='/b'/><target dev='vdb'/></disk>
            <disk><source file='/c'/><target dev='vdc'/></disk>
            <disk type='network'><driver type='raw'/><source protocol='rbd' name='a/b'/><target dev='vdn'/></disk>
            <disk><driver type='qcow2'/><source file='/d'/><backingStore/><target dev='vdd'/></disk>
            <disk><driver type='qcow2'/><source file='/e'/>
              <backingStore type='file'><format type='qcow2'/><source file='/f'/></backingStore>
              <target dev='vde'/></disk>
          </devices></domain>";
        let needed = crate::read(text).unwrap().facts_needed();
        let set = |words: &str| words.split(' ').map(str::to_owned).collect();
        let expected = FactsNeeded {
            paths: set("/a /b /c /d /e /f /q"),
            chains: set("/a /f"),
            block_drivers: true,
            places: false,
        };
        assert_eq!(needed, expected);
    }
}
