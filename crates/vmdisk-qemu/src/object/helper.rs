//! `-object pr-manager-helper` and `tls-creds-x509`, which nodes refer to.

use vmdisk_model::{ImageField, Reservations, Switch};

use crate::blockdev::Layer;
use crate::index::Index;
use crate::json::JsonObject;
use crate::notes::Notes;
use crate::writer::Writer;

/// The id of the helper that libvirt starts for a guest.
const MANAGED: &str = "pr-helper0";

/// Default socket of `qemu-pr-helper`.
const DEFAULT_SOCKET: &str = "/run/qemu-pr-helper.sock";

/// The properties of written certificates.
const TLS_DEFAULTS: [(&str, &[&str]); 3] = [
    ("dir", &["/etc/pki/libvirt-nbd"]),
    ("endpoint", &["client"]),
    ("verify-peer", &["on", "yes", "true"]),
];

impl Writer<'_> {
    /// Writes the object for persistent reservations; returns its id.
    pub(crate) fn reservations(&mut self, layer: &Layer<'_>) -> Option<String> {
        let Reservations {
            managed,
            socket,
            migration,
        } = layer.image.reservations.as_ref()?;
        let at = layer.at(ImageField::Reservations);
        if migration.is_some() {
            self.leave_out(
                at,
                "libvirt decides whether reservations migrate with the guest",
            );
        }
        let is_managed = *managed == Some(Switch::On) || (managed.is_none() && socket.is_none());
        let (id, path) = match socket {
            Some(path) if !is_managed => (layer.names.reservations(), path.clone()),
            _ => (MANAGED.to_owned(), DEFAULT_SOCKET.to_owned()),
        };
        if is_managed {
            self.leave_out(
                at,
                format!("libvirt starts a helper for reservations; without libvirt, start qemu-pr-helper at {path}"),
            );
        }
        if self.places().is_first_with_helper(&id) {
            let object = JsonObject::new()
                .with("qom-type", "pr-manager-helper")
                .with("id", id.as_str())
                .with("path", path);
            self.object(object, at);
        }
        Some(id)
    }

    /// Writes the object with the certificates for an encrypted connection; returns its id.
    pub(crate) fn tls_credentials(&mut self, layer: &Layer<'_>) -> String {
        let id = layer.names.tls();
        let at = layer.at(ImageField::Tls);
        // The directory that libvirt's `nbd_tls_x509_cert_dir` names on a host that has it.
        let object = JsonObject::new()
            .with("qom-type", "tls-creds-x509")
            .with("id", id.as_str())
            .with("dir", "/etc/pki/libvirt-nbd")
            .with("endpoint", "client")
            .with("verify-peer", true);
        self.object(object, at);
        id
    }
}

/// The reservation manager with this id.
pub(crate) fn read_reservations(
    id: &str,
    index: &Index<'_>,
    notes: &mut Notes<'_>,
) -> Reservations {
    let option = index.object(id);
    let socket = option
        .and_then(|option| index.properties(option)?.take_text("path"))
        .map(str::to_owned);
    if let (Some(option), Some(_)) = (option, &socket) {
        notes.read_object(option);
    }
    if id == MANAGED {
        return Reservations {
            managed: Some(Switch::On),
            ..Reservations::default()
        };
    }
    Reservations {
        managed: Some(Switch::Off),
        socket,
        migration: None,
    }
}

/// Records the certificates that a node uses.
pub(crate) fn read_tls(id: &str, index: &Index<'_>, notes: &mut Notes<'_>) {
    if let Some(option) = index.object(id) {
        notes.read_object(option);
        // The values that are written for every guest; another directory or verification is reported as dropped.
        let properties = index.properties(option);
        for (key, written) in TLS_DEFAULTS {
            if let Some(properties) = properties
                && properties
                    .value(key)
                    .is_some_and(|value| written.contains(&value))
            {
                properties.accept(&[key]);
            }
        }
    }
}
