//! The rows of the field table.

use vmdisk_model::{FieldKind, NetworkProtocol};

use crate::{DeviceModel, Since, Takers, ValueLimits};

/// A word that came later than its attribute, with the libvirt and the QEMU that first knew it.
pub type Later = (&'static str, Since, Option<Since>);

/// How libvirt writes a value where the kind of the field leaves a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    /// As the kind of the field has it.
    Usual,
    /// A switch as `yes` and `no`.
    YesNo,
    /// A number from 1.
    Positive,
    /// A word of the model, or one of these, which the model has no value for.
    WordOr(&'static [&'static str]),
}

/// Where libvirt writes a field.
#[derive(Clone, Copy, Debug)]
pub struct LibvirtPlace {
    /// The element below the disk or controller, or its attribute: `serial`, `driver/@cache`.
    pub place: &'static str,
    /// The libvirt that first knew it; `None` if none does, and `place` is QEMU's word.
    pub since: Option<Since>,
    /// How the value is written.
    pub form: ValueForm,
    /// Words that came later than the attribute.
    pub versioned_syntax: &'static [Later],
}

impl LibvirtPlace {
    /// The element of an attribute, empty for the outermost; for an element, its parent.
    pub const fn element(&self) -> &'static str {
        let (element, _) = self.split();
        element
    }

    /// The name of the attribute or element.
    pub const fn name(&self) -> &'static str {
        let (_, name) = self.split();
        name
    }

    /// True if the field is an attribute.
    pub const fn is_attribute(&self) -> bool {
        let bytes = self.place.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at] == b'@' {
                return true;
            }
            at += 1;
        }
        false
    }

    /// The element of an attribute or inner element.
    #[must_use]
    pub const fn parent(mut self) -> Self {
        self.place = self.element();
        self
    }

    /// The part before the last `/`, and the part after it without its `@`.
    const fn split(&self) -> (&'static str, &'static str) {
        let bytes = self.place.as_bytes();
        let mut name = bytes.len();
        while name > 0 && bytes[name - 1] != b'/' && bytes[name - 1] != b'@' {
            name -= 1;
        }
        let mut end = name;
        while end > 0 && (bytes[end - 1] == b'/' || bytes[end - 1] == b'@') {
            end -= 1;
        }
        (self.place.split_at(end).0, self.place.split_at(name).1)
    }
}

/// What libvirt does with a member of a network source whose protocol does not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    /// Drops it when the guest is defined.
    Dropped,
    /// Keeps it in the definition, and does not pass it to QEMU.
    Ignored,
    /// Refuses to define the guest.
    Refused,
    /// Refuses to start the guest.
    RefusedAtStart,
}

/// How a device of QEMU has a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As this property.
    Named(&'static str),
    /// Not on the device itself: set by device-specific code.
    Elsewhere,
    /// Not at all.
    Unknown,
}

/// Names of one field in the formats.
#[derive(Clone, Copy, Debug)]
pub struct FieldRow {
    /// What people call it, as the object of a sentence: `a serial number`.
    pub noun: &'static str,
    /// Which values it can have; `None` for an element around others.
    pub kind: Option<FieldKind>,
    /// The values that libvirt, QEMU and specs accept.
    pub values: ValueLimits,
    /// Where libvirt writes it.
    pub libvirt: LibvirtPlace,
    /// Disks on which libvirt accepts it.
    pub takers: Takers,
    /// True if libvirt refuses it on a disk that a vhost-user daemon serves.
    pub is_refused_on_vhost_user: bool,
    /// First QEMU release with it, if libvirt also supports older ones.
    pub qemu_since: Option<Since>,
    /// False for an option of the driver, the id or the nodes of a device, and for options that QEMU does not have.
    pub is_of_the_device: bool,
    properties: [(&'static [DeviceModel], &'static str); 2],
    elsewhere: &'static [DeviceModel],
    /// The property of QEMU's virtio-scsi controllers.
    pub virtio_scsi: Option<&'static str>,
    /// The words that QEMU has for words of the model, where they differ.
    qemu_words: &'static [(&'static str, &'static str)],
    /// True if it is an option of QEMU's block layer, which needs a medium.
    pub is_of_the_medium: bool,
    /// The member of a `-blockdev` node that it is, and mostly the key of `-drive`.
    pub node: Option<&'static str>,
    /// The protocols that have it, and the reaction of libvirt to the others; `None` if it is not a member of a
    /// network source, or all have it.
    pub protocols: Option<(&'static [NetworkProtocol], Unused)>,
    /// True if the value is a path of the host.
    pub is_path: bool,
    /// The key of a spec, if a spec can ask for it.
    pub spec: Option<&'static str>,
}

/// A field that libvirt has as an attribute or element.
pub(crate) const fn libvirt(place: &'static str, since: Since) -> FieldRow {
    FieldRow {
        noun: "",
        kind: None,
        values: ValueLimits::Any,
        libvirt: LibvirtPlace {
            place,
            since: Some(since),
            form: ValueForm::Usual,
            versioned_syntax: &[],
        },
        takers: Takers::ALL,
        is_refused_on_vhost_user: false,
        qemu_since: None,
        is_of_the_device: true,
        properties: [(&[], ""); 2],
        elsewhere: &[],
        virtio_scsi: None,
        qemu_words: &[],
        is_of_the_medium: false,
        node: None,
        protocols: None,
        is_path: false,
        spec: None,
    }
}

/// A field that libvirt has no word for; breadcrumbs use QEMU's.
pub(crate) const fn no_libvirt(word: &'static str) -> FieldRow {
    let mut row = libvirt(word, (0, 0, 0));
    row.libvirt.since = None;
    row
}

impl FieldRow {
    /// Says what people call it, and its kind.
    pub(crate) const fn named(mut self, noun: &'static str, kind: Option<FieldKind>) -> Self {
        self.noun = noun;
        self.kind = kind;
        self
    }

    pub(crate) const fn values(mut self, values: ValueLimits) -> Self {
        self.values = values;
        self
    }

    pub(crate) const fn form(mut self, form: ValueForm) -> Self {
        self.libvirt.form = form;
        self
    }

    pub(crate) const fn later(mut self, words: &'static [Later]) -> Self {
        self.libvirt.versioned_syntax = words;
        self
    }

    pub(crate) const fn takers(mut self, takers: Takers) -> Self {
        self.takers = takers;
        self
    }

    pub(crate) const fn not_vhost_user(mut self) -> Self {
        self.is_refused_on_vhost_user = true;
        self
    }

    pub(crate) const fn qemu_since(mut self, since: Since) -> Self {
        self.qemu_since = Some(since);
        self
    }

    /// Says which devices have it as which property.
    pub(crate) const fn on(mut self, name: &'static str, devices: &'static [DeviceModel]) -> Self {
        let at = if self.properties[0].0.is_empty() {
            0
        } else {
            1
        };
        self.properties[at] = (devices, name);
        self
    }

    pub(crate) const fn not_of_the_device(mut self) -> Self {
        self.is_of_the_device = false;
        self
    }

    /// Says which devices have it, and not as a property.
    pub(crate) const fn elsewhere(mut self, devices: &'static [DeviceModel]) -> Self {
        self.elsewhere = devices;
        self
    }

    pub(crate) const fn virtio_scsi(mut self, property: &'static str) -> Self {
        self.virtio_scsi = Some(property);
        self
    }

    pub(crate) const fn qemu_words(
        mut self,
        words: &'static [(&'static str, &'static str)],
    ) -> Self {
        self.qemu_words = words;
        self
    }

    /// Says which member of a node it is.
    pub(crate) const fn node(mut self, member: &'static str) -> Self {
        self.node = Some(member);
        self.of_the_medium()
    }

    pub(crate) const fn of_the_medium(mut self) -> Self {
        self.is_of_the_medium = true;
        self
    }

    /// Says which protocols have it, and what libvirt does for the others.
    pub(crate) const fn of(
        mut self,
        protocols: &'static [NetworkProtocol],
        unused: Unused,
    ) -> Self {
        self.protocols = Some((protocols, unused));
        self
    }

    pub(crate) const fn path(mut self) -> Self {
        self.is_path = true;
        self
    }

    pub(crate) const fn spec(mut self, key: &'static str) -> Self {
        self.spec = Some(key);
        self
    }
}

impl FieldRow {
    /// How a device has it.
    pub fn spelling(&self, device: DeviceModel) -> Spelling {
        let named = self.properties.iter();
        let mut named = named.filter(|(devices, _)| devices.contains(&device));
        match named.next() {
            Some((_, name)) => Spelling::Named(name),
            None if !self.is_of_the_device || self.elsewhere.contains(&device) => {
                Spelling::Elsewhere
            }
            None => Spelling::Unknown,
        }
    }

    /// True if a source on this protocol has it.
    pub fn is_of(&self, protocol: NetworkProtocol) -> bool {
        self.protocols
            .is_none_or(|(protocols, _)| protocols.contains(&protocol))
    }

    /// True if a device has it as a property.
    pub const fn is_property(&self) -> bool {
        !self.properties[0].0.is_empty()
    }

    /// The property of most devices that have it as one.
    pub const fn property(&self) -> Option<&'static str> {
        match self.properties[0] {
            ([], _) => None,
            (_, name) => Some(name),
        }
    }

    /// The word that QEMU has for a word of the model.
    pub fn qemu_word(&self, word: &'static str) -> &'static str {
        let mut words = self.qemu_words.iter();
        words
            .find(|(ours, _)| *ours == word)
            .map_or(word, |(_, qemu)| *qemu)
    }
}

/// Declares the rows of a kind of field: a list in the order of libvirt, and the row of each field.
///
/// A field without a row does not compile.
macro_rules! rows {
    (
        $(#[$list_meta:meta])* $list:ident;
        $(#[$meta:meta])* $row_of:ident($names:ident);
        $($field:ident: $noun:literal, $row:expr;)+
    ) => {
        $(#[$list_meta])*
        pub const $list: &[$names] = &[$($names::$field,)+];

        $(#[$meta])*
        pub const fn $row_of(field: $names) -> &'static FieldRow {
            &ROWS[field as usize]
        }

        /// In the order of the enum. A constant would be in the binary once for each crate that reads it.
        static ROWS: [FieldRow; $names::ALL.len()] = {
            const fn row(field: $names) -> FieldRow {
                match field {
                    $($names::$field => const { $row.named($noun, $names::$field.kind()) },)+
                }
            }
            let mut rows = [libvirt("", (0, 0, 0)); $names::ALL.len()];
            let mut at = 0;
            while at < rows.len() {
                rows[$names::ALL[at] as usize] = row($names::ALL[at]);
                at += 1;
            }
            rows
        };
    };
}

pub(crate) use rows;
