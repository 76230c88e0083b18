//! Disks behind servers: addresses, what is refused, what is chosen, and what comes back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use crate::common::host::{errors, planned};
use vmdisk_fields::Unused;
use vmdisk_model::*;
use vmdisk_plan::*;

fn read(text: &str) -> DiskSpec {
    DiskSpec::from_one_liner(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

/// The same disk, written as YAML.
fn yaml(text: &str) -> DiskSpec {
    let spec = Spec::from_yaml(&format!("version: 1\ndisks:\n- {text}\n"));
    spec.unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
        .disks
        .remove(0)
}

#[test]
fn addresses_and_names_say_what_the_keys_say() {
    for (line, written) in [
        (
            "nbd://store.example:10810/web1",
            "{network: {protocol: nbd, name: web1, hosts: [{name: store.example, port: 10810}]}}",
        ),
        (
            "nbd://[2001:db8::7],tls=on,bus=sata",
            "{network: {protocol: nbd, hosts: ['2001:db8::7'], tls: true}, bus: sata}",
        ),
        (
            "nbd+unix:///a%20b?socket=/run/n,,1.sock,format=qcow2",
            "{network: {protocol: nbd, name: a b, hosts: [{socket: '/run/n,1.sock'}], format: qcow2}}",
        ),
        (
            "nbd:web1,hosts=/run/nbd.sock",
            "{network: {protocol: nbd, name: web1, hosts: /run/nbd.sock}}",
        ),
        (
            "rbd:pool/web1,hosts.0=mon1,hosts.1=mon2:6790,snapshot=old,auth.username=fred,auth.secret.usage=key",
            "{network: {protocol: rbd, name: pool/web1, hosts: [mon1, 'mon2:6790'], snapshot: old, \
             auth: {username: fred, secret: {usage: key}}}}",
        ),
        (
            "rbd:pool/web1",
            "{network: {protocol: rbd, name: pool/web1}}",
        ),
        (
            "iscsi://fred@store.example/iqn.2013-07.example:disks/1,as=lun,auth.secret.usage=key",
            "{network: {protocol: iscsi, name: 'iqn.2013-07.example:disks/1', hosts: store.example, as: lun, \
             auth: {username: fred, secret: {usage: key}}}}",
        ),
        (
            "https://store.example/images/a.iso?token=a%20b,media=cdrom,ssl-verify=off",
            "{network: {protocol: https, name: images/a.iso, query: 'token=a%20b', hosts: store.example, \
             ssl-verify: false}, media: cdrom}",
        ),
        (
            "ssh://fred@store.example:2222/srv/a.img,identity.agent-socket=/run/agent",
            "{network: {protocol: ssh, name: /srv/a.img, hosts: [{name: store.example, port: 2222}], \
             identity: {username: fred, agent-socket: /run/agent}}}",
        ),
        (
            "nfs://store.example/srv/a.img,identity.user=+1000",
            "{network: {protocol: nfs, name: /srv/a.img, hosts: store.example, identity: {user: '+1000'}}}",
        ),
        (
            "gluster://g1.example/vol/a.img,hosts.1.name=g2.example",
            "{network: {protocol: gluster, name: vol/a.img, hosts: [g1.example, g2.example]}}",
        ),
    ] {
        assert_eq!(read(line), yaml(written), "{line}");
    }
}

#[test]
fn what_no_server_takes_is_refused_at_its_key() {
    let mut others = Vec::new();
    for (line, fault) in [
        (
            "nbd://user:word@store.example/a",
            "line 1, column 7: a password cannot be in a spec",
        ),
        (
            "nbd://fred@store.example/a",
            "line 1, column 7: nbd does not support a user name",
        ),
        (
            "https://store.example/images/debian-12.QCOW2",
            "the name ends as names of `qcow2` images do, but without a format it is read as raw",
        ),
        (
            "https://store.example/images/windows.vhdx",
            "the name ends as names of `vhd` images do, but without a format it is read as raw",
        ),
        (
            "rbd://mon1/pool/a",
            "line 1, column 1: addresses cannot start with `rbd:`",
        ),
        (
            "ssh+unix:///a?socket=/x",
            "column 1: addresses cannot start with `ssh+unix:`",
        ),
        ("nbd+unix:///a", "column 1: which UNIX socket?"),
        ("nbd+unix:///a?path=/x", "column 15: which UNIX socket?"),
        (
            "nbd+unix:web1",
            "column 10: `nbd+unix:` requires a name and a location",
        ),
        ("nbd:", "column 5: `nbd:` requires a name and a location"),
        (
            "https://store.example/a b.iso",
            "column 1: this is not a valid address: unexpected character",
        ),
        (
            "https://store.example/a%FF",
            "column 22: this is not valid UTF-8",
        ),
        (
            "https://store.example/a#b",
            "column 25: the address of a disk cannot have a # part",
        ),
        (
            "nfs://store.example/srv/a?b=c",
            "column 27: an address cannot have a ? part on nfs",
        ),
        (
            "nbd://store.example:70000/a",
            "column 21: network.hosts[0].port: a port is a number from 1 to 65535",
        ),
        (
            "nbd://a_b!/x",
            "column 7: network.hosts[0].name: `a_b!` is not a valid server name",
        ),
        (
            "nbd:web1",
            "column 5: network: `hosts` is missing: a disk on nbd needs a server; write `hosts: [NAME]`",
        ),
        // What QEMU's older syntax says is no name.
        ("nbd:store.example:10809", "`hosts` is missing"),
        (
            "https:a.iso,hosts.0=a,hosts.1=b",
            "network.hosts: a disk on https needs one server, but there are 2",
        ),
        (
            "nbd:a,hosts=mon1:x",
            "network.hosts[0]: expected a whole number, found `x`",
        ),
        (
            "nbd:a,hosts=[::1]x",
            "network.hosts[0]: `[::1]x` is not a valid server; write `[ADDRESS]:PORT`",
        ),
        (
            "nbd:a,hosts.0.name=mon1:6789",
            "`mon1:6789` is not a valid server name; write the port as `port`",
        ),
        (
            "nbd:a,hosts.0.name=[::1]",
            "write the address without brackets",
        ),
        (
            "nbd:a,hosts.0.port=1",
            "network.hosts[0]: a server has a `name`, or a `socket`",
        ),
        (
            "nbd:a,hosts.0.name=a,hosts.0.socket=/x",
            "network.hosts[0].socket: a server has a name or a socket, not both",
        ),
        (
            "nbd:a,hosts.0.socket=x",
            "network.hosts[0].socket: `x` is not an absolute path",
        ),
        (
            "nbd:a,hosts.0.socket=/x,hosts.0.port=1",
            "network.hosts[0].port: a UNIX socket has no port",
        ),
        (
            "https:a,hosts=/x",
            "network.hosts[0].socket: https runs over TCP",
        ),
        (
            "nfs:/a/b,hosts=store:2049",
            "network.hosts[0].port: the port of an nfs server cannot be set",
        ),
        (
            "nfs:a/b,hosts=store",
            "network.name: a disk on nfs is named `/directory/file`, not `a/b`",
        ),
        (
            "https://store.example",
            "network: `name` is missing: a disk on https is named by its path",
        ),
        (
            "rbd:web1",
            "network.name: a disk on rbd is named `pool/image`, not `web1`",
        ),
        (
            "rbd:pool/web1@old",
            "network.name: the part after an @ is a snapshot; use `snapshot`",
        ),
        ("rbd:a/b/c/d", "network.name: a disk on rbd"),
        (
            "gluster:vol,hosts=g1",
            "network.name: a disk on gluster is named `volume/path`",
        ),
        (
            "iscsi:iqn.x:y/z,hosts=a",
            "network.name: a disk on iscsi is named `target/unit`",
        ),
        (
            "nbd://a/x,snapshot=s",
            "network.snapshot: nbd has no `snapshot`; it belongs to `rbd`",
        ),
        (
            "nbd://a/x,timeout=1",
            "nbd has no `timeout`; it belongs to `http`, `https`, `ftp` and `ftps`",
        ),
        ("nbd://a/x,query=s", "network.query: nbd has no `query`"),
        (
            "nbd://a/x,tls-hostname=a",
            "network.tls-hostname: without `tls` the server",
        ),
        (
            "nbd:a,hosts=/x,tls=on",
            "network.tls: for a UNIX socket the host name",
        ),
        ("rbd:a/b,tls=on", "network.tls: rbd has no `tls`"),
        (
            "https://a/x,readahead=1000",
            "network.readahead: readahead must be a multiple of 512 bytes",
        ),
        (
            "https://a/x,timeout=20000",
            "network.timeout: timeout must be 1 to 10000 seconds",
        ),
        (
            "rbd:a/b,config-file=ceph.conf",
            "network.config-file: `ceph.conf` is not an absolute path",
        ),
        ("ssh://fred@a/x", "network.identity: libvirt requires a key"),
        (
            "ssh://a/x,identity.user=fred,identity.keyfile=/k,identity.username=f",
            "network.identity.user: ssh has no",
        ),
        (
            "nfs://a/x/y,identity.username=f,identity.user=f",
            "network.identity.username: nfs has no",
        ),
        (
            "rbd:a/b,identity.user=f",
            "network.identity: rbd has no `identity`",
        ),
        (
            "ssh://f@a/x,identity.keyfile=key",
            "network.identity.keyfile: `key` is not an absolute path",
        ),
        (
            "nbd://a/x,auth.username=f,auth.secret.usage=k",
            "network.auth: nbd has no `auth`",
        ),
        ("https://fred@a/x", "network.auth: `secret` is missing"),
        (
            "rbd:a/b,auth.username=f,auth.secret.uuid=k",
            "network.auth.secret.uuid: `k` is not a UUID",
        ),
        (
            "rbd:a/b,auth.username=f,auth.secret.uuid=01234567-89ab-cdef-0123-456789abcdef,auth.secret.usage=k",
            "network.auth.secret.usage: identify a secret by its `uuid` or its `usage`, not both",
        ),
        (
            "nbd://a/x,format=iso",
            "network.format: network disks do not support format `iso`",
        ),
        (
            "nbd://a/x,as=lun",
            "network.as: only a unit of an iscsi target supports SCSI commands",
        ),
        (
            "iscsi://a/t/1,as=lun,format=qcow2",
            "network.format: a SCSI device cannot have a format",
        ),
        ("nbd://a/x,hosts=b", "column 11: `hosts` is written twice"),
    ] {
        let found = DiskSpec::from_one_liner(line).expect_err(line);
        let found: Vec<String> = found.iter().map(SpecError::to_string).collect();
        // No advice names a protocol that no spec has.
        if found.len() != 1 || !found[0].contains(fault) || found[0].contains("vxhs") {
            others.push(format!("{line}: {found:?}, and not {fault}"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
    for (written, fault) in [
        ("{protocol: tftp, name: a, hosts: a}", "found `tftp`"),
        (
            "{protocol: nbd, hosts: []}",
            "disks[0].network.hosts: the list of servers is empty",
        ),
        (
            "{protocol: nbd, hosts: 7}",
            "expected a list of servers, found the number 7",
        ),
        (
            "{protocol: ssh, name: a, hosts: a, identity: {}}",
            "`username` is missing",
        ),
        ("{name: a}", "`protocol` is missing"),
    ] {
        let text = format!("version: 1\ndisks:\n- network: {written}\n");
        let found = Spec::from_yaml(&text).expect_err(written);
        assert!(
            found[0].to_string().contains(fault),
            "{written}: {found:#?}"
        );
    }
    // The model knows protocols that no QEMU speaks any more.
    let old = NetworkSpec {
        name: Some("a".to_owned()),
        ..NetworkSpec::new(NetworkProtocol::Sheepdog)
    };
    let found = Spec::new(vec![DiskSpec::new(old)]).check();
    assert!(
        found[0]
            .message
            .contains("current QEMU does not support sheepdog")
    );
}

#[test]
fn what_goes_past_the_host_is_chosen_by_the_protocol() {
    for (line, cache, discard, is_read_only) in [
        (
            "rbd:pool/a",
            CacheMode::Writeback,
            Some(Discard::Unmap),
            false,
        ),
        (
            "rbd:pool/a,shareable=on",
            CacheMode::None,
            Some(Discard::Unmap),
            false,
        ),
        ("rbd:pool/a,snapshot=s", CacheMode::Writeback, None, true),
        ("nbd://a/x", CacheMode::None, Some(Discard::Unmap), false),
        ("ssh://a/x", CacheMode::None, Some(Discard::Ignore), false),
        (
            "ssh://a/x,format=qcow2",
            CacheMode::None,
            Some(Discard::Unmap),
            false,
        ),
        ("https://a/x", CacheMode::None, None, true),
        ("https://a/x,media=cdrom", CacheMode::None, None, true),
    ] {
        let plan = planned(&[line]);
        let backend = &plan.domain.disks[0].backend;
        assert_eq!(backend.cache, Some(cache), "{line}");
        assert_eq!(backend.discard, discard, "{line}");
        assert_eq!(backend.is_read_only, is_read_only, "{line}");
        // It would be ignored.
        assert_eq!(backend.aio, None, "{line}");
        assert_eq!(plan.steps, [], "{line}");
        assert!(script(&plan).contains("Nothing to create"));
        for option in ["format", "cache"] {
            assert!(
                plan.choices.iter().any(|choice| choice.option == option),
                "{line}"
            );
        }
    }
    for (line, fault) in [
        (
            "nbd://a/x,io=native",
            "disks[0].io: QEMU connects to the server itself",
        ),
        (
            "https://a/x,readonly=off",
            "disks[0].readonly: QEMU cannot write over https",
        ),
        (
            "https://a/x,bus=sata",
            "disks[0].bus: bus sata does not support read-only disks, and QEMU cannot write over",
        ),
        ("nbd://a/x,transient=on", "only a disk in a file"),
        ("nbd://a/x,format=qcow2,shareable=on", "one writer"),
        ("https://a/x,copy-on-read=on", "cannot copy on read"),
        (
            "iscsi://a/t/1,as=lun,bus=virtio",
            "disks[0].bus: the SCSI device itself",
        ),
    ] {
        let found = errors(line);
        assert!(
            found.len() == 1 && found[0].contains(fault),
            "{line}: {found:?}"
        );
    }
}

#[test]
fn a_raw_image_with_the_name_of_another_format_comes_back() {
    for format in ["raw", "qcow2"] {
        let line = format!("nbd://store.example/web1.qcow2,format={format}");
        let plan = planned(&[&line]);
        let (again, not_carried) = Spec::of_domain(&plan.domain);
        assert_eq!(not_carried, []);
        assert_eq!(again.disks[0].backend, read(&line).backend);
    }
}

#[test]
fn two_disks_write_to_one_server_only_if_they_share() {
    let two = |first: &str, second: &str| Spec::new(vec![read(first), read(second)]).check();
    assert_eq!(two("nbd://a/x", "nbd://a/y"), []);
    assert_eq!(two("https://a/x", "https://a/x"), []);
    let found = two("nbd://a/x", "nbd:x,hosts=a");
    assert_eq!(
        found[0].to_string(),
        "disks[1].network: disks[0] and disks[1] write to the same storage; use separate storage, or write \
         `shareable: true` for both"
    );
}

#[test]
fn what_no_spec_says_of_a_server_is_told() {
    use ImageField as I;
    let of = |protocol, change: &dyn Fn(&mut Image, &mut NetworkSource)| {
        let host = NetworkHost::tcp("store.example", None);
        let mut source = NetworkSource::new(protocol, Some("a/b".to_owned()), vec![host]);
        let mut image = Image::file("", Format::Raw);
        change(&mut image, &mut source);
        image.protocol = Protocol::Network(Box::new(source));
        let mut domain = Domain {
            scope: Scope::DisksOnly,
            ..Domain::default()
        };
        domain
            .disks
            .push(Disk::new(Frontend::new("vda", TargetBus::Virtio), image));
        let (spec, not_carried) = Spec::of_domain(&domain);
        assert_eq!(spec.check(), [], "{}", spec.to_yaml());
        let refused = not_carried.iter().filter(|one| one.changes_guest).count();
        assert_eq!(spec.disks.len() + refused, 1);
        not_carried.iter().map(|one| one.at).collect::<Vec<_>>()
    };
    let at = |field| FieldPath::Image(0, 0, field);
    let login = |reference| Authentication {
        username: Some("fred".to_owned()),
        secret: Some(Secret {
            secret_type: Some("iscsi".to_owned()),
            reference,
        }),
    };
    use NetworkProtocol::*;
    let cookie = Cookie {
        name: "session".to_owned(),
        value: "secret".to_owned(),
    };
    let read_only = FieldPath::Disk(0, DiskField::ReadOnly);
    assert_eq!(
        of(Https, &|_, source| source.cookies.push(cookie.clone())),
        [at(I::Cookies), read_only]
    );
    assert_eq!(of(Vxhs, &|_, _| {}), [at(I::NetworkProtocol)]);
    let rdma = NetworkHost {
        transport: Some(NetworkTransport::Rdma),
        ..NetworkHost::tcp("a", None)
    };
    assert_eq!(
        of(Gluster, &|_, source| source.hosts = vec![rdma.clone()]),
        [at(I::Hosts)]
    );
    let file = SecretReference::File {
        path: "/key".to_owned(),
        is_base64: false,
    };
    let usage = SecretReference::Usage("key".to_owned());
    for (protocol, auth, told) in [
        (Iscsi, login(usage.clone()), vec![]),
        (Rbd, login(usage), vec![at(I::Authentication)]),
        (Rbd, login(file), vec![at(I::Authentication)]),
    ] {
        let found = of(protocol, &|image, source| {
            image.authentication = Some(Box::new(auth.clone()));
            source.name = Some(if protocol == Iscsi { "a/1" } else { "a/b" }.to_owned());
        });
        assert_eq!(found, told);
    }
    let fred = || Some("fred".to_owned());
    assert_eq!(
        of(Ssh, &|_, source| source.username = fred()),
        [at(I::Identity)]
    );
}

#[test]
fn what_a_protocol_lacks_is_named_and_left_out_of_its_spec_and_no_spec_has_what_libvirt_refuses() {
    let mut tried = 0;
    for protocol in [
        NetworkProtocol::Nbd,
        NetworkProtocol::Rbd,
        NetworkProtocol::Https,
    ] {
        for field in NetworkSource::FIELDS {
            let row = vmdisk_fields::image(*field);
            let is_ignored = matches!(row.protocols, Some((_, Unused::Dropped | Unused::Ignored)));
            let value: FieldValue = match field.kind() {
                _ if row.is_of(protocol) => continue,
                _ if *field == ImageField::Tls => Switch::On.into(),
                Some(FieldKind::Text) => "/planted".into(),
                Some(FieldKind::Switch) => Switch::Off.into(),
                Some(FieldKind::Number) => 77_u32.into(),
                Some(FieldKind::Count) => 77_u64.into(),
                Some(FieldKind::Size) => Bytes(65_536).into(),
                _ => continue,
            };
            let hosts = vec![NetworkHost::tcp("server", None)];
            let mut source = NetworkSource::new(protocol, Some("pool/image".to_owned()), hosts);
            assert!(source.set(*field, value));
            let mut domain = Domain::default();
            let image = Image::new(Some(Format::Raw), Protocol::Network(Box::new(source)));
            let mut disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), image);
            disk.backend.is_read_only = true;
            domain.disks.push(disk);
            let (spec, not_carried) = Spec::of_domain(&domain);
            let at = FieldPath::Image(0, 0, *field);
            let is_named = not_carried
                .iter()
                .any(|one| one.at == at && one.changes_guest != is_ignored);
            assert!(is_named, "{protocol}, {field:?}: {not_carried:?}");
            assert_eq!(spec.check(), [], "{protocol}, {field:?}");
            assert_eq!(
                spec.disks.len(),
                usize::from(is_ignored),
                "{protocol}, {field:?}"
            );
            assert!(!spec.to_yaml().contains("planted"), "{protocol}, {field:?}");
            tried += 1;
        }
    }
    assert!(tried > 15, "{tried}");
}
