//! Configurations without names.

use vmdisk_model::{
    Backend, BackendSource, Backing, DevicePath, Disk, Domain, Frontend, Image, Protocol,
};

use super::{Level, Redactor};

impl Redactor {
    /// The guest with names and paths as tokens; what the model does not hold is not in it at all.
    pub fn domain(&self, domain: &Domain) -> Domain {
        let mut domain = domain.clone();
        domain.name = domain.name.map(|name| self.name(&name));
        domain.uuid = domain.uuid.map(|uuid| self.uuid(&uuid));
        for Disk { frontend, backend } in &mut domain.disks {
            self.frontend(frontend);
            self.backend(backend);
        }
        domain
    }

    fn frontend(&self, frontend: &mut Frontend) {
        if self.level() == Level::Full {
            return;
        }
        let short = |text: &mut Option<String>, kind: &str, length: usize| {
            *text = text.take().map(|text| self.digits(kind, &text, length));
        };
        // Whether a device can show it all is judged by its length: 20 bytes, or 36.
        let digits = match frontend.serial.as_ref().map_or(0, String::len) {
            0..=20 => 12,
            21..=36 => 24,
            37.. => 40,
        };
        short(&mut frontend.serial, "serial", digits);
        // Sixteen digits, of which libvirt wants no other number.
        short(&mut frontend.wwn, "wwn", 16);
        short(&mut frontend.vendor, "vendor", 8);
        short(&mut frontend.product, "product", 12);
        frontend.alias = frontend
            .alias
            .take()
            .map(|alias| match alias.strip_prefix("ua-") {
                Some(own) => format!("ua-{}", self.name(own)),
                None => alias,
            });
    }

    fn backend(&self, backend: &mut Backend) {
        if let Some(iotune) = &mut backend.iotune {
            iotune.group = iotune.group.take().map(|group| self.name(&group));
        }
        match &mut backend.source {
            BackendSource::Image(image) => self.image(image),
            BackendSource::VhostUser(socket) => socket.path = self.path(&socket.path),
            BackendSource::Empty | BackendSource::Other(_) => {}
        }
    }

    fn image(&self, top: &mut Image) {
        let mut next = Some(top);
        while let Some(image) = next {
            match &mut image.protocol {
                Protocol::File { path } => *path = self.path(path),
                Protocol::HostDevice { path } => *path = DevicePath(self.path(&path.0)),
                Protocol::Other(_) => {}
            }
            // How storage is to be made names groups and pools, and is no part of a configuration.
            image.creation = None;
            next = match &mut image.backing {
                Backing::Image(below) => Some(below),
                Backing::Unspecified | Backing::Terminated => None,
            };
        }
    }

    fn uuid(&self, uuid: &str) -> String {
        if self.level() == Level::Full {
            return uuid.to_owned();
        }
        let digits = self.digits("uuid", uuid, 32);
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
        parts.join("-")
    }
}
