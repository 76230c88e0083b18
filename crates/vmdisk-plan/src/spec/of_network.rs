//! Converts a network source to the backend of a spec.

use vmdisk_fields::{Unused, UnusedMember, remove_ignored_members, unused_members};
use vmdisk_model::{
    Authentication, Device, Disk, DiskField, FieldPath, Format, Image, ImageField, NetworkHost,
    NetworkProtocol, NetworkSource, NetworkTransport, Secret,
};

use super::access::DeviceAccess;
use super::check_network::format_in_name;
use super::dropped::DroppedFields;
use super::network::{
    AuthenticationSpec, NetworkHostSpec, NetworkIdentitySpec, NetworkSpec, PROTOCOLS, SecretSpec,
    copy, secret_type,
};

/// The backend of a source on a network; `None` if no spec can say it.
pub(super) fn network_of(
    nth: usize,
    disk: &Disk,
    image: &Image,
    source: &NetworkSource,
    report: &mut DroppedFields,
) -> Option<NetworkSpec> {
    let protocol = source.protocol;
    let at = |field| FieldPath::Image(nth, 0, field);
    if !PROTOCOLS.contains(&protocol) {
        let what = format!("a source on {protocol}, which current QEMU does not support,");
        report.report_dropped(at(ImageField::NetworkProtocol), what, true);
        return None;
    }
    let mut servers = Vec::with_capacity(source.hosts.len());
    for host in &source.hosts {
        let Some(server) = host_of(host) else {
            let what = "a server with RDMA transport";
            report.report_dropped(at(ImageField::Hosts), what, true);
            return None;
        };
        servers.push(server);
    }
    for UnusedMember {
        field,
        noun,
        unused,
        ..
    } in unused_members(source)
    {
        let is_refused = matches!(unused, Unused::Refused | Unused::RefusedAtStart);
        let what = format!("{noun}, which a source on {protocol} does not have,");
        report.report_dropped(at(field), what, is_refused);
        if is_refused {
            return None;
        }
    }
    let mut source = source.clone();
    remove_ignored_members(&mut source);
    if !source.cookies.is_empty() {
        let what = "the list of cookies for the server, which can contain secrets,";
        report.report_dropped(at(ImageField::Cookies), what, false);
    }
    let format = image.format.unwrap_or(Format::Raw);
    let is_lun = disk.frontend.effective_device() == Device::Lun;
    let mut spec = NetworkSpec::new(protocol);
    copy(NetworkSpec::FIELDS, &source, &mut spec);
    spec.hosts = (!servers.is_empty()).then_some(servers);
    let is_raw = format == Format::Raw && format_in_name(source.name.as_deref()).is_none();
    spec.format = (!is_raw).then_some(format);
    spec.identity = identity_of(nth, &source, report);
    let login = image.authentication.as_ref();
    spec.auth = login.and_then(|login| login_of(nth, protocol, login, report));
    spec.access = is_lun.then_some(DeviceAccess::Lun);
    if spec.only_read_because().is_some() && disk.is_writable() {
        let what = format!("write access, which QEMU does not support over {protocol},");
        report.report_dropped(FieldPath::Disk(nth, DiskField::ReadOnly), what, false);
    }
    Some(spec)
}

/// A server; `None` if it is reached in a way that no spec says.
fn host_of(host: &NetworkHost) -> Option<NetworkHostSpec> {
    let NetworkHost {
        name,
        port,
        transport,
        socket,
    } = host;
    match transport {
        None | Some(NetworkTransport::Tcp) => Some(NetworkHostSpec {
            name: name.clone(),
            port: *port,
            socket: socket.clone(),
        }),
        Some(NetworkTransport::Unix) => Some(NetworkHostSpec {
            socket: socket.clone(),
            ..NetworkHostSpec::default()
        }),
        Some(NetworkTransport::Rdma) => None,
    }
}

fn identity_of(
    nth: usize,
    source: &NetworkSource,
    report: &mut DroppedFields,
) -> Option<NetworkIdentitySpec> {
    let mut identity = NetworkIdentitySpec::default();
    copy(NetworkIdentitySpec::FIELDS, source, &mut identity);
    let has_key = identity.keyfile.is_some() || identity.agent_socket.is_some();
    if identity.username.is_some() && !has_key {
        // libvirt refuses it, and QEMU alone has the keys of its user.
        let what = "the user name without a key or an agent";
        report.report_dropped(FieldPath::Image(nth, 0, ImageField::Identity), what, false);
        return None;
    }
    (identity != NetworkIdentitySpec::default()).then_some(identity)
}

fn login_of(
    nth: usize,
    protocol: NetworkProtocol,
    login: &Authentication,
    report: &mut DroppedFields,
) -> Option<AuthenticationSpec> {
    let at = FieldPath::Image(nth, 0, ImageField::Authentication);
    let Authentication { username, secret } = login;
    let (Some(username), Some(secret)) = (username, secret) else {
        let what = "a login without a user name or a libvirt secret";
        report.report_dropped(at, what, false);
        return None;
    };
    let Secret {
        secret_type: word,
        reference,
    } = secret;
    let Some(found) = SecretSpec::of_model(reference) else {
        let what = "a login with a secret that libvirt does not have";
        report.report_dropped(at, what, false);
        return None;
    };
    let expected = secret_type(protocol);
    if word.as_deref() != Some(expected) {
        let what = format!("the type of the secret, which the spec replaces with '{expected}',");
        report.report_dropped(at, what, false);
    }
    Some(AuthenticationSpec {
        username: username.clone(),
        secret: found,
    })
}
