//! The facts to collect from a host.

use std::collections::BTreeSet;
use std::path::PathBuf;

use vmdisk::Facts;
use vmdisk::model::{BackendSource, Backing, Domain, Format, Image};
use vmdisk_collect::{Request, collect};

use crate::clock;

/// The facts to collect from a host.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FactRequest {
    /// Paths that configurations name.
    pub(crate) paths: BTreeSet<String>,
    /// The images among them whose headers name their backing files.
    pub(crate) chains: BTreeSet<String>,
}

impl FactRequest {
    /// Adds what the disks of a guest name.
    pub(crate) fn add(&mut self, domain: &Domain) {
        for disk in &domain.disks {
            match &disk.backend.source {
                BackendSource::Image(image) => self.add_image(image),
                BackendSource::VhostUser(socket) => {
                    self.paths.insert(socket.path.clone());
                }
                BackendSource::Empty => {}
            }
        }
    }

    /// Asks the host this runs on.
    pub(crate) fn ask(self) -> Facts {
        let absolute = |paths: BTreeSet<String>| {
            let paths = paths.into_iter().map(PathBuf::from);
            paths.filter(|path| path.is_absolute()).collect()
        };
        let mut request = Request::new(clock::now());
        request.paths = absolute(self.paths);
        request.chains = absolute(self.chains);
        collect(&request)
    }

    fn add_image(&mut self, image: &Image) {
        for image in image.chain() {
            if let Some(path) = image.data_file.as_deref().and_then(Image::host_path) {
                self.paths.insert(path.to_owned());
            }
            let Some(path) = image.host_path() else {
                continue;
            };
            self.paths.insert(path.to_owned());
            // The header of what is opened as raw is the guest's, and must lead nobody anywhere.
            let is_for_the_header = image.backing == Backing::Unspecified
                && image.is_headed_by_its_format()
                && image.format.is_some_and(Format::has_backing);
            if is_for_the_header {
                self.chains.insert(path.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_header_of_an_image_that_is_opened_as_such_leads_on() {
        let text = "<devices>
            <disk><driver type='qcow2'/><source file='/a'/><target dev='vda'/></disk>
            <disk><driver type='raw'/><source file='/b'/><target dev='vdb'/></disk>
            <disk><source file='/c'/><target dev='vdc'/></disk>
            <disk><driver type='qcow2'/><source file='/d'/><backingStore/><target dev='vdd'/></disk>
            <disk><driver type='qcow2'/><source file='/e'/>
              <backingStore type='file'><format type='qcow2'/><source file='/f'/></backingStore>
              <target dev='vde'/></disk>
          </devices>";
        let text = format!("<domain>{text}</domain>");
        let mut wanted = FactRequest::default();
        wanted.add(vmdisk::read(&text).unwrap().domain());
        let set = |words: &str| words.split(' ').map(str::to_owned).collect();
        assert_eq!(
            wanted,
            FactRequest {
                paths: set("/a /b /c /d /e /f"),
                chains: set("/a /f"),
            }
        );
    }
}
