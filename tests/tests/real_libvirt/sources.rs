//! Every member of a network source on every protocol: what libvirt does is what the table of fields says.

use std::fmt::Write as _;

use vmdisk::{LintOptions, lint, read};
use vmdisk_facts::Version;
use vmdisk_fields::{Unused, image};
use vmdisk_libvirt::{UnmodeledContent, write_disk};
use vmdisk_model::*;
use vmdisk_tests::{LibvirtBuild, libvirts};

/// The rules of the reactions.
const RULES: [&str; 5] = [
    "login-refused",
    "network-server-refused",
    "network-source-refused",
    "source-option-ignored",
    "unsupported-by-target",
];

/// The members of a network source that some protocols lack.
fn members() -> Vec<ImageField> {
    let fields = NetworkSource::FIELDS.iter().copied();
    let fields = fields.filter(|field| image(*field).protocols.is_some());
    fields.chain([ImageField::Authentication]).collect()
}

/// Sets a member to something that no other member has.
fn set(field: ImageField, image: &mut Image) {
    let Protocol::Network(source) = &mut image.protocol else {
        panic!("it is on a network");
    };
    let text = || "planted".to_owned();
    let is_set = match (field, field.kind()) {
        (ImageField::Cookies, _) => {
            let (name, value) = ("name".to_owned(), text());
            source.cookies.push(Cookie { name, value });
            true
        }
        (ImageField::Authentication, _) => {
            let is_rbd = source.protocol == NetworkProtocol::Rbd;
            let uuid = "11111111-2222-3333-4444-555555555555".to_owned();
            image.authentication = Some(Box::new(Authentication {
                username: Some(text()),
                secret: Some(Secret {
                    secret_type: Some(if is_rbd { "ceph" } else { "iscsi" }.to_owned()),
                    reference: SecretReference::Uuid(uuid),
                }),
            }));
            true
        }
        // QEMU has them as numbers.
        (ImageField::User | ImageField::Group, _) => source.set(field, "+77"),
        // The default of TLS is off, and certificates are verified.
        (ImageField::Tls, _) => source.set(field, Switch::On),
        (_, Some(FieldKind::Switch)) => source.set(field, Switch::Off),
        (_, Some(FieldKind::Text)) => source.set(field, text()),
        (_, Some(FieldKind::Number)) => source.set(field, 77_u32),
        (_, Some(FieldKind::Count)) => source.set(field, 77_u64),
        (_, Some(FieldKind::Size)) => source.set(field, Bytes(77_824)),
        _ => false,
    };
    assert!(is_set, "a {field:?} needs a value here");
}

/// True if a protocol that has the member passes it to QEMU; the rest is for nbdkit.
fn is_passed_on(field: ImageField) -> bool {
    use ImageField::{Group, Query, User, Username};
    matches!(field, Query | User | Group | Username) || image(field).node.is_some()
}

/// A guest with a source that has what its protocol needs, and one member more.
fn guest(protocol: NetworkProtocol, member: Option<ImageField>) -> String {
    let name = match protocol {
        NetworkProtocol::Iscsi => "iqn.2026-11.com.example:a/3",
        NetworkProtocol::Nfs => "/pool/image",
        _ => "pool/image",
    };
    let hosts = vec![NetworkHost::tcp("server", None)];
    let mut source = NetworkSource::new(protocol, Some(name.to_owned()), hosts);
    if protocol == NetworkProtocol::Ssh {
        source.username = Some("someone".to_owned());
        source.keyfile = Some("/key".to_owned());
    }
    let mut image = Image::new(Some(Format::Raw), Protocol::Network(Box::new(source)));
    if let Some(member) = member {
        set(member, &mut image);
    }
    let mut disk = Disk::new(Frontend::new("sda", TargetBus::Sata), image);
    if protocol.is_curl() {
        disk.frontend.device = Some(Device::Cdrom);
        disk.backend.is_read_only = true;
    }
    let disk = write_disk(&disk, &UnmodeledContent::default()).unwrap();
    format!(
        "<domain type='qemu'><name>source</name><uuid>11111111-2222-3333-4444-555555555555</uuid>\
         <memory unit='MiB'>64</memory><vcpu>1</vcpu><os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features>\
         <devices><emulator>/usr/bin/qemu-system-x86_64</emulator>\n{disk}</devices></domain>"
    )
}

/// What libvirt makes of a guest: the definition that it keeps, and the command line, if there is one.
pub(crate) struct Made {
    pub(crate) definition: Option<String>,
    line: Option<String>,
    said: String,
}

/// What libvirt makes of each guest, with or without its command line, at which libvirt 9.0 crashes for some guests.
pub(crate) fn made_by(libvirt: &LibvirtBuild, guests: &[String], with_line: bool) -> Vec<Made> {
    let native = if with_line {
        "domxml-to-native qemu-argv"
    } else {
        "echo"
    };
    let session = libvirt.session();
    let mut commands = String::new();
    for (number, xml) in guests.iter().enumerate() {
        let file = session.folder().join(format!("{number}.xml"));
        std::fs::write(&file, xml).unwrap();
        let file = file.display();
        let _ = writeln!(
            commands,
            "echo BEGIN {number}\ndefine {file}\ndumpxml --inactive source\necho LINE\n\
             {native} {file}\necho END {number}\nundefine source"
        );
    }
    let said = session.say(&commands).expect("virsh can be started");
    let made = (0..guests.len()).map(|number| {
        let part = said.split_once(&format!("\nBEGIN {number}\n"));
        let part = part.and_then(|(_, rest)| rest.split_once(&format!("\nEND {number}\n")));
        let (part, _) = part.unwrap_or_else(|| panic!("libvirt ended before {number}: {said}"));
        let (definition, line) = part.split_once("\nLINE\n").expect("it was said");
        let is_defined = definition.contains("defined from");
        let definition = definition.split_once("<domain").map(|(_, rest)| rest);
        Made {
            definition: definition.filter(|_| is_defined).map(str::to_owned),
            line: line
                .lines()
                .find(|line| line.contains("-blockdev"))
                .map(str::to_owned),
            said: part.to_owned(),
        }
    });
    made.collect()
}

/// The rules about members that report a guest.
fn reported(xml: &str, libvirt: &LibvirtBuild) -> Vec<&'static str> {
    let options = LintOptions::default().target(libvirt.target());
    let found = lint(&read(xml).unwrap(), &options).diagnostics;
    let rules = found.iter().map(|found| found.rule.name);
    rules.filter(|rule| RULES.contains(rule)).collect()
}

/// The difference between a libvirt and the table; `None` if they agree.
fn difference(
    member: ImageField,
    protocol: NetworkProtocol,
    libvirt: &LibvirtBuild,
    plain: &Made,
    made: &Made,
) -> Option<String> {
    let is_kept = made.definition != plain.definition;
    // The login needs the daemon that has the secrets.
    let is_passed = made.line != plain.line && member != ImageField::Authentication;
    let (protocols, unused) = image(member).protocols.expect("it is in the table");
    let (major, minor, micro) = image(member).libvirt.since.expect("libvirt has it");
    let is_known = libvirt.version >= Version(major, minor, micro);
    let is_its_own = protocols.contains(&protocol);
    let (rule, expected) = match (is_its_own, unused) {
        (true, _) if is_known => (None, (true, is_kept, is_passed_on(member))),
        // What is older than the member drops it.
        (true, _) => (Some("unsupported-by-target"), (true, false, false)),
        (false, Unused::Dropped) => (Some("source-option-ignored"), (true, false, false)),
        (false, Unused::Ignored) => (Some("source-option-ignored"), (true, true, false)),
        (false, Unused::RefusedAtStart) => (Some("network-server-refused"), (true, true, true)),
        (false, Unused::Refused) if member == ImageField::Authentication => {
            (Some("login-refused"), (false, true, false))
        }
        (false, Unused::Refused) => (Some("network-source-refused"), (false, true, true)),
    };
    let found = (made.definition.is_some(), is_kept, is_passed);
    let starts = match member {
        ImageField::Authentication => made.definition.is_some(),
        _ => made.line.is_some(),
    };
    let refuses = !is_its_own && matches!(unused, Unused::Refused | Unused::RefusedAtStart);
    let rules = reported(&guest(protocol, Some(member)), libvirt);
    let is_right = match rule {
        // One cause gives one finding.
        Some("source-option-ignored") => {
            let of_plain = reported(&guest(protocol, None), libvirt);
            let more = rules.iter().filter(|rule| !of_plain.contains(rule));
            more.eq(&["source-option-ignored"])
        }
        Some(rule) => rules.contains(&rule),
        None => !rules.iter().any(|rule| *rule != "unsupported-by-target"),
    };
    if found == expected && starts != refuses && is_right {
        return None;
    }
    let version = libvirt.version;
    Some(format!(
        "libvirt {version}, {protocol}, {member:?}: (defined, kept, passed) is {found:?}, not {expected:?}; \
         starts: {starts}; {rules:?}, not {rule:?}\n{}",
        made.said
    ))
}

#[test]
fn each_member_of_each_protocol_is_kept_dropped_ignored_or_refused_as_the_table_says() {
    let members = members();
    for libvirt in libvirts("members of network sources") {
        let mut guests = Vec::new();
        for protocol in NetworkProtocol::ALL {
            guests.push(guest(*protocol, None));
            guests.extend(members.iter().map(|member| guest(*protocol, Some(*member))));
        }
        let made = made_by(&libvirt, &guests, true);
        let mut wrong = Vec::new();
        let (mut cells, mut gone) = (0, Vec::new());
        for (protocol, made) in NetworkProtocol::ALL
            .iter()
            .zip(made.chunks(members.len() + 1))
        {
            let (plain, made) = made.split_first().expect("each protocol has a plain guest");
            if plain.line.is_none() {
                gone.push(protocol.as_str());
                continue;
            }
            cells += made.len();
            let cells = members.iter().zip(made);
            wrong.extend(cells.filter_map(|(member, made)| {
                difference(*member, *protocol, &libvirt, plain, made)
            }));
        }
        println!(
            "libvirt {}: {cells} members of protocols, {} differences; without a driver: {gone:?}",
            libvirt.version,
            wrong.len()
        );
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(gone.len() <= 3, "{gone:?}");
    }
}
