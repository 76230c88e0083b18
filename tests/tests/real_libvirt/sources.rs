//! Every member of a network source on every protocol: what libvirt does is what the table of fields says.

use std::fmt::Write as _;

use vmdisk::{LintOptions, lint, read};
use vmdisk_facts::Version;
use vmdisk_fields::{Unused, image};
use vmdisk_libvirt::vocabulary::{Pick, source_of};
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

/// A member of a network source.
struct Member {
    field: ImageField,
    /// The attribute of an identity; empty for other members.
    part: &'static str,
}

fn members() -> Vec<Member> {
    let fields = NetworkSource::FIELDS
        .iter()
        .filter(|field| image(**field).protocols.is_some() && **field != ImageField::Identity);
    let fields = fields.chain([&ImageField::Authentication]);
    let parts = ["user", "group", "username", "keyfile", "agentsock"];
    let parts = parts.iter().map(|part| Member {
        field: ImageField::Identity,
        part,
    });
    let fields = fields.map(|field| Member {
        field: *field,
        part: "",
    });
    fields.chain(parts).collect()
}

impl Member {
    fn name(&self) -> String {
        format!("{:?} {}", self.field, self.part)
    }

    /// Sets the member to something that no other member has.
    fn set(&self, image: &mut Image) {
        let Protocol::Network(source) = &mut image.protocol else {
            panic!("it is on a network");
        };
        let text = || Some("planted".to_owned());
        match self.field {
            ImageField::Identity => {
                let identity = source.identity.get_or_insert_default();
                match self.part {
                    "user" => identity.user = Some("+77".to_owned()),
                    "group" => identity.group = Some("+77".to_owned()),
                    "username" => identity.username = text(),
                    "keyfile" => identity.keyfile = text(),
                    _ => identity.agent_socket = text(),
                }
            }
            ImageField::Cookies => {
                let (name, value) = ("name".to_owned(), "planted".to_owned());
                source.cookies.push(Cookie { name, value });
            }
            ImageField::Authentication => {
                let is_rbd = source.protocol == NetworkProtocol::Rbd;
                let uuid = "11111111-2222-3333-4444-555555555555".to_owned();
                image.authentication = Some(Authentication {
                    username: text(),
                    secret: Some(Secret {
                        secret_type: Some(if is_rbd { "ceph" } else { "iscsi" }.to_owned()),
                        reference: SecretReference::Uuid(uuid),
                    }),
                });
            }
            field => {
                let is_set = match field.kind() {
                    Some(FieldKind::Text) => source.set(field, "planted"),
                    // The default of TLS is off, and certificates are verified.
                    Some(FieldKind::Switch) if field == ImageField::Tls => {
                        source.set(field, Switch::On)
                    }
                    Some(FieldKind::Switch) => source.set(field, Switch::Off),
                    Some(FieldKind::Number) => source.set(field, 77_u32),
                    Some(FieldKind::Count) => source.set(field, 77_u64),
                    Some(FieldKind::Size) => source.set(field, Bytes(77_824)),
                    _ => false,
                };
                assert!(is_set, "a {field:?} needs a value here");
            }
        }
    }

    /// The protocols that have it, and the reaction of libvirt to the others.
    fn protocols(&self) -> (&'static [NetworkProtocol], Unused) {
        let (protocols, unused) = image(self.field).protocols.expect("it is in the table");
        match self.part {
            "" => (protocols, unused),
            "user" | "group" => (&[NetworkProtocol::Nfs], unused),
            _ => (&[NetworkProtocol::Ssh], unused),
        }
    }

    /// The libvirt that first knew it.
    fn since(&self) -> Version {
        let (_, identity) = source_of("network").child("identity").expect("it has one");
        let Pick::Element(identity) = identity.pick else {
            panic!("it has one table");
        };
        let of_part = identity.attribute(self.part).map(|part| part.since);
        let since = of_part.or(image(self.field).libvirt.since);
        let (major, minor, micro) = since.expect("libvirt has it");
        Version(major, minor, micro)
    }

    /// True if a protocol that has it passes it to QEMU; the rest is for nbdkit.
    fn is_passed(&self) -> bool {
        match self.field {
            ImageField::Query => true,
            ImageField::Identity => matches!(self.part, "user" | "group" | "username"),
            field => image(field).node.is_some(),
        }
    }
}

/// A guest with a source that has what its protocol needs, and one member more.
fn guest(protocol: NetworkProtocol, member: Option<&Member>) -> String {
    let name = match protocol {
        NetworkProtocol::Iscsi => "iqn.2026-11.com.example:a/3",
        NetworkProtocol::Nfs => "/pool/image",
        _ => "pool/image",
    };
    let hosts = vec![NetworkHost::tcp("server", None)];
    let mut source = NetworkSource::new(protocol, Some(name.to_owned()), hosts);
    if protocol == NetworkProtocol::Ssh {
        source.identity = Some(NetworkIdentity {
            username: Some("someone".to_owned()),
            keyfile: Some("/key".to_owned()),
            ..NetworkIdentity::default()
        });
    }
    let mut image = Image::new(Some(Format::Raw), Protocol::Network(Box::new(source)));
    if let Some(member) = member {
        member.set(&mut image);
    }
    let mut disk = Disk::new(Frontend::new("sda", TargetBus::Sata), image);
    if protocol.is_curl() {
        disk.frontend.device = Some(Device::Cdrom);
        disk.backend.is_read_only = true;
    }
    let disk = write_disk(&disk, &UnmodeledContent::default()).unwrap();
    format!(
        "<domain type='qemu'><name>source</name><uuid>11111111-2222-3333-4444-555555555555</uuid>\
         <memory unit='MiB'>64</memory><vcpu>1</vcpu><os><type arch='x86_64' machine='q35'>hvm</type></os>\
         <devices><emulator>/usr/bin/qemu-system-x86_64</emulator>\n{disk}</devices></domain>"
    )
}

/// What libvirt makes of a guest: the definition that it keeps, and the command line, if there is one.
struct Made {
    definition: Option<String>,
    line: Option<String>,
    said: String,
}

fn made_by(libvirt: &LibvirtBuild, guests: &[String]) -> Vec<Made> {
    let session = libvirt.session();
    let mut commands = String::new();
    for (number, xml) in guests.iter().enumerate() {
        let file = session.folder().join(format!("{number}.xml"));
        std::fs::write(&file, xml).unwrap();
        let file = file.display();
        let _ = writeln!(
            commands,
            "echo BEGIN {number}\ndefine {file}\ndumpxml --inactive source\necho LINE\n\
             domxml-to-native qemu-argv {file}\necho END {number}\nundefine source"
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
    let options = LintOptions {
        target: libvirt.target(),
        ..LintOptions::default()
    };
    let found = lint(&read(xml).unwrap(), &options).diagnostics;
    let rules = found.iter().map(|found| found.rule.name);
    rules.filter(|rule| RULES.contains(rule)).collect()
}

/// The difference between a libvirt and the table; `None` if they agree.
fn difference(
    member: &Member,
    protocol: NetworkProtocol,
    libvirt: &LibvirtBuild,
    plain: &Made,
    made: &Made,
) -> Option<String> {
    let is_kept = made.definition != plain.definition;
    // The login needs the daemon that has the secrets.
    let is_passed = made.line != plain.line && member.field != ImageField::Authentication;
    let (protocols, unused) = member.protocols();
    let is_known = libvirt.version >= member.since();
    let is_its_own = protocols.contains(&protocol);
    let (rule, expected) = match (is_its_own, unused) {
        (true, _) if is_known => (None, (true, is_kept, member.is_passed())),
        // What is older than the member drops it.
        (true, _) => (Some("unsupported-by-target"), (true, false, false)),
        (false, Unused::Dropped) => (Some("source-option-ignored"), (true, false, false)),
        (false, Unused::Ignored) => (Some("source-option-ignored"), (true, true, false)),
        (false, Unused::RefusedAtStart) => (Some("network-server-refused"), (true, true, true)),
        (false, Unused::Refused) if member.field == ImageField::Authentication => {
            (Some("login-refused"), (false, true, false))
        }
        (false, Unused::Refused) => (Some("network-source-refused"), (false, true, true)),
    };
    let found = (made.definition.is_some(), is_kept, is_passed);
    let starts = match member.field {
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
    let name = member.name();
    let version = libvirt.version;
    Some(format!(
        "libvirt {version}, {protocol}, {name}: (defined, kept, passed) is {found:?}, not {expected:?}; \
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
            guests.extend(members.iter().map(|member| guest(*protocol, Some(member))));
        }
        let made = made_by(&libvirt, &guests);
        let mut wrong = Vec::new();
        let (mut cells, mut gone) = (0, Vec::new());
        for (protocol, made) in NetworkProtocol::ALL
            .iter()
            .zip(made.chunks(members.len() + 1))
        {
            let (plain, made) = made.split_first().expect("each protocol has a plain guest");
            if plain.line.is_none() {
                gone.push(protocol.as_wire());
                continue;
            }
            cells += made.len();
            let cells = members.iter().zip(made);
            wrong.extend(
                cells.filter_map(|(member, made)| {
                    difference(member, *protocol, &libvirt, plain, made)
                }),
            );
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
