//! Configurations without names.

use vmdisk_model::{
    Backend, BackendSource, Backing, Controller, DevicePath, Disk, Domain, FieldValue, Fields,
    Frontend, Image, ImageField, NetworkSource, Protocol, Secret, SecretReference,
};

use super::{Level, Redactor};

/// True for a target such as `vda`, `sdaa`, `hda1` or `nvme0n1`, which is not private; others may be somebody's name.
fn is_plain_target(target: &str) -> bool {
    if let Some(rest) = target.strip_prefix("nvme") {
        let is_number = |text: &str| {
            (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        return rest.split('n').count() <= 2 && rest.split('n').all(is_number);
    }
    let Some(rest) = ["vd", "sd", "hd", "xvd", "fd", "ubd"]
        .iter()
        .find_map(|prefix| target.strip_prefix(prefix))
    else {
        return false;
    };
    let letters = rest.trim_end_matches(|character: char| character.is_ascii_digit());
    let is_letters = letters.bytes().all(|byte| byte.is_ascii_lowercase());
    is_letters && (1..=2).contains(&letters.len()) && rest.len() - letters.len() <= 2
}

impl Redactor {
    /// The guest with names and paths as tokens; text outside the model is left out.
    pub fn domain(&self, domain: &Domain) -> Domain {
        let mut domain = domain.clone();
        domain.name = domain.name.map(|name| self.name(&name));
        domain.uuid = domain.uuid.map(|uuid| self.uuid(&uuid));
        for Disk { frontend, backend } in &mut domain.disks {
            self.frontend(frontend);
            self.backend(backend);
        }
        for controller in &mut domain.controllers {
            self.controller(controller);
        }
        for group in &mut domain.throttle_groups {
            group.group = group.group.take().map(|group| self.name(&group));
        }
        for device in domain
            .blkiotune
            .iter_mut()
            .flat_map(|tune| &mut tune.devices)
        {
            device.path = device.path.take().map(|path| self.path(&path));
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
        frontend.serial = frontend.serial.take().map(|serial| self.serial(&serial));
        // Parameters of a boot loader may name a system.
        short(&mut frontend.loadparm, "loadparm", 8);
        // Sixteen digits, of which libvirt wants no other number.
        short(&mut frontend.wwn, "wwn", 16);
        short(&mut frontend.vendor, "vendor", 8);
        short(&mut frontend.product, "product", 12);
        self.alias(&mut frontend.alias);
        let target = frontend.target.take();
        frontend.target = target.map(|target| match is_plain_target(&target) {
            true => target,
            false => self.name(&target),
        });
    }

    /// A serial number. A device shows the first 20 bytes, or 36: whether it can show it all, and whether it shows the
    /// same as another, is judged by those parts.
    fn serial(&self, serial: &str) -> String {
        if serial.len() < 20 {
            return self.digits("serial", serial, 12);
        }
        let (first, rest) = split_before(serial, 20);
        let (second, third) = split_before(rest, 16);
        let parts = [(first, 20), (second, 16), (third, 4)];
        let parts = parts.iter().filter(|(part, _)| !part.is_empty());
        let digits = parts.map(|(part, count)| self.digits("serial", part, *count));
        digits.collect()
    }

    /// A name that somebody gave a device; the others are libvirt's.
    fn alias(&self, alias: &mut Option<String>) {
        *alias = alias.take().map(|alias| match alias.strip_prefix("ua-") {
            Some(own) => format!("ua-{}", self.name(own)),
            None => alias,
        });
    }

    fn controller(&self, controller: &mut Controller) {
        if self.level() == Level::Full {
            return;
        }
        let serial = controller.serial.take();
        controller.serial = serial.map(|serial| self.digits("serial", &serial, 12));
        self.alias(&mut controller.alias);
    }

    fn backend(&self, backend: &mut Backend) {
        if let Some(iotune) = &mut backend.iotune {
            iotune.group = iotune.group.take().map(|group| self.name(&group));
        }
        for group in &mut backend.throttle_filters {
            *group = self.name(group);
        }
        match &mut backend.source {
            BackendSource::Image(image) => self.image(image),
            BackendSource::VhostUser(socket) => {
                socket.path = self.path(&socket.path);
                if let Some(served) = &mut socket.served {
                    self.image(served);
                }
            }
            BackendSource::Empty => {}
        }
    }

    fn image(&self, top: &mut Image) {
        let mut next = Some(top);
        while let Some(image) = next {
            self.storage(image);
            next = match &mut image.backing {
                Backing::Image(below) => Some(below),
                Backing::Unspecified | Backing::Terminated => None,
            };
        }
    }

    /// The storage of an image; the caller handles the images below it.
    fn storage(&self, image: &mut Image) {
        match &mut image.protocol {
            Protocol::File { path }
            | Protocol::Directory { path }
            | Protocol::VhostVdpa { path } => *path = self.path(path),
            Protocol::HostDevice { path } => *path = DevicePath(self.path(&path.0)),
            Protocol::Network(source) => self.network(source),
            Protocol::Volume(source) => {
                source.pool = self.name(&source.pool);
                source.volume = self.name(&source.volume);
            }
            // A place on a bus names nobody.
            Protocol::Nvme(_) | Protocol::Other(_) => {}
        }
        let name = |text: &mut Option<String>| *text = text.take().map(|text| self.name(&text));
        name(&mut image.fd_group);
        if let Some(login) = &mut image.authentication {
            name(&mut login.username);
            if let Some(secret) = &mut login.secret {
                self.secret(secret);
            }
        }
        if let Some(encryption) = &mut image.encryption {
            for secret in &mut encryption.secrets {
                self.secret(secret);
            }
        }
        if let Some(reservations) = &mut image.reservations {
            reservations.socket = reservations.socket.take().map(|path| self.path(&path));
        }
        if let Some(data_file) = &mut image.data_file {
            // A data file has none of its own.
            self.storage(data_file);
        }
        // Creation options name groups and pools, and are not part of a configuration.
        image.creation = None;
    }

    fn network(&self, source: &mut NetworkSource) {
        let name = |text: &mut Option<String>| *text = text.take().map(|text| self.name(&text));
        let path = |text: &mut Option<String>| *text = text.take().map(|text| self.path(&text));
        for field in NetworkSource::FIELDS {
            let Some(FieldValue::Text(text)) = source.get(*field) else {
                continue;
            };
            let redacted = match field {
                // A slash parts a pool from an image, and a target from a unit: the parts are names, the slash is none.
                ImageField::NetworkName => {
                    let parts = text.split('/').map(|part| match part {
                        "" => String::new(),
                        part => self.name(part),
                    });
                    parts.collect::<Vec<_>>().join("/")
                }
                // An address may be signed.
                ImageField::Query => self.secret_text(&text),
                _ if vmdisk_fields::image(*field).is_path => self.path(&text),
                _ => self.name(&text),
            };
            source.set(*field, redacted);
        }
        for host in &mut source.hosts {
            name(&mut host.name);
            path(&mut host.socket);
        }
        for cookie in &mut source.cookies {
            cookie.name = self.name(&cookie.name);
            cookie.value = self.secret_text(&cookie.value);
        }
    }

    /// A text that may be a secret, which no level keeps.
    fn secret_text(&self, text: &str) -> String {
        match self.level() {
            Level::Full => "redacted".to_owned(),
            Level::Shareable | Level::Minimal => self.name(text),
        }
    }

    fn secret(&self, secret: &mut Secret) {
        match &mut secret.reference {
            SecretReference::Uuid(uuid) => *uuid = self.uuid(uuid),
            SecretReference::Usage(name) | SecretReference::Object(name) => *name = self.name(name),
            SecretReference::File { path, .. } => *path = self.path(path),
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

/// Parts a text after so many bytes, or before the character that would be cut in two.
fn split_before(text: &str, bytes: usize) -> (&str, &str) {
    let mut ends = (0..=bytes.min(text.len())).rev();
    let end = ends.find(|end| text.is_char_boundary(*end));
    text.split_at(end.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_tell_nothing_stay() {
        for target in ["vda", "sdaa", "hda1", "xvdb", "fda", "nvme0n1"] {
            assert!(is_plain_target(target), "{target}");
        }
        for target in [
            "TOKtarget",
            "vdacme",
            "sdhost",
            "vda\n",
            "vd",
            "vdA",
            "sda12345",
            "nvmeacme",
            "nvme",
            "",
        ] {
            assert!(!is_plain_target(target), "{target}");
        }
    }
}
