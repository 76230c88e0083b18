//! One disk.

use crate::value::kind_of;
use crate::{
    Backend, BackendSource, DiskField, FieldKind, FieldType, Fields, Frontend, Geometry,
    VhostUserSocket,
};

/// One disk: a guest-visible frontend on a host-side backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// The guest side.
    pub frontend: Frontend,
    /// The host side.
    pub backend: Backend,
}

impl Disk {
    /// A disk with every option left open.
    pub fn new(frontend: Frontend, source: impl Into<BackendSource>) -> Self {
        Disk {
            frontend,
            backend: Backend::new(source),
        }
    }

    /// How people know the disk: its target's name, or a word that says it has none.
    pub fn name(&self) -> &str {
        self.frontend.target.as_deref().unwrap_or("(no target)")
    }

    /// True if the guest may write: neither marked read-only nor a CD drive, which libvirt forces
    /// to be read-only.
    pub fn is_writable(&self) -> bool {
        !self.backend.is_read_only && self.frontend.effective_device() != crate::Device::Cdrom
    }
}

impl Fields for Disk {
    type Field = DiskField;

    fn field(&self, field: DiskField) -> Option<&dyn FieldType> {
        let Disk { frontend, backend } = self;
        if field == DiskField::GeometryTranslation {
            return Some(&frontend.geometry.as_ref()?.translation);
        }
        if field == DiskField::ConfigWce {
            return Some(&backend.socket()?.config_wce);
        }
        frontend.field(field).or_else(|| backend.field(field))
    }

    fn field_mut(&mut self, field: DiskField) -> Option<&mut dyn FieldType> {
        let Disk { frontend, backend } = self;
        if field == DiskField::GeometryTranslation {
            return Some(&mut frontend.geometry.as_mut()?.translation);
        }
        if field == DiskField::ConfigWce {
            return match &mut backend.source {
                BackendSource::VhostUser(socket) => Some(&mut socket.config_wce),
                BackendSource::Image(_) | BackendSource::Empty => None,
            };
        }
        frontend
            .field_mut(field)
            .or_else(|| backend.field_mut(field))
    }
}

impl DiskField {
    /// Accepted values of the field; `None` for a group of fields.
    pub const fn kind(self) -> Option<FieldKind> {
        if matches!(self, DiskField::GeometryTranslation) {
            return Some(kind_of(|it: &Geometry| &it.translation));
        }
        if matches!(self, DiskField::ConfigWce) {
            return Some(kind_of(|it: &VhostUserSocket| &it.config_wce));
        }
        match Frontend::kind_of(self) {
            Some(kind) => Some(kind),
            None => Backend::kind_of(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Image, Switch, TargetBus};

    #[test]
    fn a_field_takes_values_of_its_kind_and_gives_them_back() {
        let image = Image::file("/srv/a.qcow2", Format::Qcow2);
        for field in DiskField::ALL {
            let mut disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), image.clone());
            disk.frontend.geometry = Some(Geometry::default());
            let value = match field.kind() {
                Some(FieldKind::Flag) => crate::FieldValue::Set,
                Some(FieldKind::Switch) => Switch::Off.into(),
                Some(FieldKind::Number) => 7_u32.into(),
                Some(FieldKind::Count) => 7_u64.into(),
                Some(FieldKind::Size) => crate::Bytes(7).into(),
                Some(FieldKind::Text) => "seven".to_owned().into(),
                Some(FieldKind::Word(words)) => crate::FieldValue::Word(words[0]),
                Some(FieldKind::IoThread) => crate::IoThreadId(7).into(),
                Some(FieldKind::Structure) | None => continue,
            };
            if *field == DiskField::ConfigWce {
                disk.backend.source = VhostUserSocket::new("/run/a.sock").into();
            }
            assert_eq!(disk.field(*field).map(FieldType::kind), field.kind());
            let before = disk.clone();
            assert!(!disk.set(*field, crate::FieldValue::Word("no word of any field")));
            assert_eq!(disk, before, "{field:?}");
            assert!(disk.set(*field, value.clone()), "{field:?}");
            assert!(
                disk.has(*field) && disk.get(*field) == Some(value),
                "{field:?}"
            );
        }
    }
}
