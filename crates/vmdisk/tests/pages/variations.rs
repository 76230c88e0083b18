//! The limits of the rules: what each says of its examples when one thing in them is different.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use serde_json::Value;
use vmdisk::rules::{Check, Consumer, Context, Example, Outcome, Policy, RULES, Rule};
use vmdisk_facts::{Facts, HostIndex, Target};
use vmdisk_model::{
    Architecture, Backend, BackendSource, Backing, Controller, Creation, DevicePath, Domain,
    DomainType, FieldKind, FieldValue, Fields, Firmware, Frontend, Image, MachineType, NetworkHost,
    NetworkProtocol, NetworkSource, Protocol, Scope, Switch, VhostUserSocket,
};

use super::{Document, fixtures, policy_of, target_of};

/// Values of a field other than its own.
fn others(kind: FieldKind, value: Option<&FieldValue>) -> Vec<FieldValue> {
    let all = match kind {
        FieldKind::Word(words) => words.iter().map(|word| FieldValue::Word(word)).collect(),
        FieldKind::Switch => [Switch::On, Switch::Off].map(FieldValue::from).to_vec(),
        FieldKind::Flag => vec![FieldValue::Set],
        FieldKind::Number => vec![1_u32.into()],
        FieldKind::Text => ["", "a,b", "0123456789abcdef0123"]
            .map(FieldValue::from)
            .to_vec(),
        _ => Vec::new(),
    };
    all.into_iter()
        .filter(|other| Some(other) != value)
        .collect()
}

/// Texts in which one value, or one line with an element, is different, with the name of the change.
fn texts(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut add = |name: String, range: Range<usize>, other: &str| {
        found.push((
            name,
            format!("{}{other}{}", &text[..range.start], &text[range.end..]),
        ));
    };
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    for (at, mark) in text.match_indices(['=', '>']) {
        let before = &text[..at];
        let name = &before[before.trim_end_matches(is_of_name).len()..];
        let quoted = usize::from(text[at + 1..].starts_with('\''));
        let begin = at + 1 + quoted;
        let rest = &text[begin..];
        let end = begin
            + rest
                .find(['\'', ',', '<', '>', ' ', '\n'])
                .unwrap_or(rest.len());
        let value = &text[begin..end];
        if mark == "=" {
            add(format!("{name} unset"), at - name.len()..end + quoted, "");
        }
        let numbers = value
            .parse::<u64>()
            .map(|it| [0, 1, it.saturating_sub(1), it + 1, it * 2, it * 100]);
        let others = match numbers {
            Ok(numbers) => numbers.map(|it| it.to_string()).to_vec(),
            Err(_) if value.is_empty() => Vec::new(),
            Err(_) => ["", "other", "/other", "a/b"].map(str::to_owned).to_vec(),
        };
        for other in others.iter().filter(|other| *other != value) {
            add(format!("{name}={other}"), begin..end, other);
        }
    }
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        let (element, end) = (line.trim(), begin + line.len());
        if element.starts_with('<') && (element.ends_with("/>") || element.contains("</")) {
            let name = element[1..]
                .split([' ', '>', '/'])
                .next()
                .unwrap_or_default();
            add(format!("<{name}> unset"), begin..end, "");
            add(format!("<{name}> twice"), end..end, line);
        }
        begin = end;
    }
    found
}

/// A guest in which one thing is different, with its name.
type Guests = Vec<(String, Domain)>;

/// Adds the guests in which one field of every `part` is unset or has another value.
fn vary<T: Fields>(
    found: &mut Guests,
    domain: &Domain,
    fields: &[T::Field],
    parts: impl Fn(&mut Domain) -> Vec<&mut T>,
) where
    T::Field: std::fmt::Debug,
{
    for field in fields {
        let mut first = domain.clone();
        let Some(part) = parts(&mut first).into_iter().next() else {
            return;
        };
        let Some(slot) = part.field(*field) else {
            continue;
        };
        let (value, kind) = (slot.get(), slot.kind());
        let mut unset = domain.clone();
        for part in parts(&mut unset) {
            part.field_mut(*field).expect("it is a field").clear();
        }
        found.push((format!("{field:?} unset"), unset));
        for other in others(kind, value.as_ref()) {
            let mut changed = domain.clone();
            for part in parts(&mut changed) {
                part.set(*field, other.clone());
            }
            found.push((format!("{field:?}={other}"), changed));
        }
    }
}

/// Guests in which one thing that is not a field is different.
fn vary_rest(found: &mut Guests, domain: &Domain) {
    let mut add = |name: &str, change: &dyn Fn(&mut Domain)| {
        let mut changed = domain.clone();
        change(&mut changed);
        found.push((name.to_owned(), changed));
    };
    for machine in [
        "pc",
        "q35",
        "pc-i440fx-2.6",
        "pc-q35-4.0",
        "pc-q35-7.2",
        "microvm",
        "isapc",
    ] {
        add(machine, &|domain| {
            domain.machine = Some(MachineType::new(machine))
        });
    }
    for architecture in [
        Architecture::X86_64,
        Architecture::Aarch64,
        Architecture::S390x,
    ] {
        add(&architecture.to_string(), &|domain| {
            domain.architecture = Some(architecture)
        });
    }
    for vcpus in [1, 2, 16] {
        add(&format!("{vcpus} vcpus"), &|domain| {
            domain.vcpus = Some(vcpus)
        });
    }
    for scope in [Scope::WholeGuest, Scope::DisksOnly] {
        add(&format!("{scope:?}"), &|domain| domain.scope = scope);
    }
    for firmware in [None, Some(Firmware::Efi), Some(Firmware::Bios)] {
        add(&format!("{firmware:?}"), &|domain| {
            domain.firmware = firmware
        });
    }
    add("tcg", &|domain| domain.domain_type = Some(DomainType::Qemu));
    add("acpi off", &|domain| domain.acpi = Some(Switch::Off));
    add("no iothreads", &|domain| domain.iothreads.clear());
    add("no default iothread", &|domain| {
        domain.default_iothread = None
    });
    add("no controllers", &|domain| domain.controllers.clear());
    add("first controller twice", &|domain| {
        domain
            .controllers
            .extend(domain.controllers.first().cloned())
    });
    add("last disk alone", &|domain| {
        drop(domain.disks.drain(..domain.disks.len().saturating_sub(1)))
    });
    add("first disk alone", &|domain| domain.disks.truncate(1));
    for name in [
        "vdb",
        "sdc",
        "hdb",
        "xvda",
        "nvme0n1",
        "fda",
        "vda1",
        "vdA",
        "vdaaaaaa",
        "vdabcdefg",
        "a",
    ] {
        add(&format!("TargetDev={name}"), &|domain| {
            for disk in domain.disks.iter_mut().take(1) {
                disk.frontend.target = Some(name.to_owned());
            }
        });
    }
    add("first disk twice, once read-only", &|domain| {
        domain.disks.extend(domain.disks.first().cloned());
        if let Some(disk) = domain.disks.last_mut() {
            disk.backend.is_read_only = true;
        }
    });
    add("last disk read-only", &|domain| {
        if let Some(disk) = domain.disks.last_mut() {
            disk.backend.is_read_only = true;
        }
    });
    add("first disk twice", &|domain| {
        domain.disks.extend(domain.disks.first().cloned())
    });
    let mut source = |name: &str, source: &dyn Fn() -> BackendSource| {
        add(name, &|domain| {
            for disk in &mut domain.disks {
                disk.backend.source = source();
            }
        });
    };
    source("empty", &|| BackendSource::Empty);
    source("vhost-user", &|| {
        VhostUserSocket::new("/run/vhost.sock").into()
    });
    source("nbd", &|| {
        let hosts = vec![NetworkHost::tcp("store.example", None)];
        let source = NetworkSource::new(NetworkProtocol::Nbd, None, hosts);
        Image::new(None, Protocol::Network(Box::new(source))).into()
    });
    let mut image = |name: &str, change: &dyn Fn(&mut Image)| {
        add(name, &|domain| {
            for disk in &mut domain.disks {
                if let BackendSource::Image(image) = &mut disk.backend.source {
                    change(image);
                }
            }
        });
    };
    image("as a file", &|image| {
        if let Some(path) = image.host_path().map(str::to_owned) {
            image.protocol = Protocol::File { path };
        }
    });
    image("as a device", &|image| {
        if let Some(path) = image.host_path().map(str::to_owned) {
            image.protocol = Protocol::HostDevice {
                path: DevicePath::new(path),
            };
        }
    });
    image("created", &|image| {
        image.creation = Some(Creation::RawFile {
            size: None,
            preallocation: None,
        });
    });
    image("no backing", &|image| image.backing = Backing::Terminated);
    image("backing unspecified", &|image| {
        image.backing = Backing::Unspecified
    });
    image("on an overlay", &|image| {
        let below = std::mem::replace(
            image,
            Image::file("/srv/over.qcow2", vmdisk_model::Format::Qcow2),
        );
        image.backing = Backing::Image(Box::new(below));
    });
}

fn guests(domain: &Domain) -> Guests {
    let mut found = Guests::new();
    vary::<Frontend>(&mut found, domain, Frontend::FIELDS, |domain| {
        domain
            .disks
            .iter_mut()
            .map(|disk| &mut disk.frontend)
            .collect()
    });
    vary::<Backend>(&mut found, domain, Backend::FIELDS, |domain| {
        domain
            .disks
            .iter_mut()
            .map(|disk| &mut disk.backend)
            .collect()
    });
    vary::<Image>(&mut found, domain, Image::FIELDS, |domain| {
        let backends = domain.disks.iter_mut().map(|disk| &mut disk.backend);
        let images = backends.filter_map(|backend| match &mut backend.source {
            BackendSource::Image(image) => Some(&mut **image),
            _ => None,
        });
        images.collect()
    });
    vary::<Controller>(&mut found, domain, Controller::FIELDS, |domain| {
        domain.controllers.iter_mut().collect()
    });
    vary_rest(&mut found, domain);
    found.retain(|(_, changed)| changed != domain);
    found
}

/// Facts in which every value of one key is different, with the name of the change.
fn hosts(name: &str) -> Vec<(String, Facts)> {
    fn keys(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    if member.is_boolean() || member.is_number() || member.is_string() {
                        found.insert(key.clone());
                    }
                    keys(member, found);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
            _ => {}
        }
    }
    fn change(value: &mut Value, key: &str, to: &dyn Fn(&Value) -> Option<Value>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    if name == key
                        && let Some(other) = to(member)
                    {
                        *member = other;
                    } else {
                        change(member, key, to);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| change(item, key, to)),
            _ => {}
        }
    }
    fn whole(number: f64) -> Value {
        match number.fract() == 0.0 {
            true => (number as u64).into(),
            false => number.into(),
        }
    }
    type Change = fn(&Value) -> Option<Value>;
    let changes: [(&str, Change); 9] = [
        ("no", |value| {
            let is_one = value.is_boolean() || value.is_number() || value.is_string();
            is_one.then_some(Value::Null)
        }),
        ("not", |value| Some((!value.as_bool()?).into())),
        ("0", |value| value.is_number().then(|| 0.into())),
        ("1", |value| value.is_number().then(|| 1.into())),
        ("100", |value| value.is_number().then(|| 100.into())),
        ("less", |value| {
            Some(whole((value.as_f64()? - 1.0).max(0.0)))
        }),
        ("more", |value| Some(whole(value.as_f64()? + 1.0))),
        ("twice", |value| Some((value.as_u64()? * 2).into())),
        ("other", |value| value.is_string().then(|| "other".into())),
    ];
    let path = fixtures().join(format!("facts/{name}.json"));
    let text = std::fs::read_to_string(path).expect("the file is there");
    let root: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut found = BTreeSet::new();
    keys(&root, &mut found);
    let mut hosts = Vec::new();
    for key in found {
        for (word, to) in changes {
            let mut changed = root.clone();
            change(&mut changed, &key, &to);
            if changed != root
                && let Ok(facts) = serde_json::from_value(changed)
            {
                hosts.push((format!("{word} {key}"), facts));
            }
        }
    }
    hosts
}

/// Returns what a rule reports: the severity of each finding, and the number of its notes.
fn times(
    rule: &'static Rule,
    example: &Example,
    context: &Context<'_>,
    hosts: &[HostIndex<'_>],
) -> String {
    let mut outcome = Outcome::default();
    match rule.check {
        Check::Model(check) => outcome.judge(context, rule, |report| check(context, report)),
        Check::Guests(_) => super::add_other_guests(example, context, &mut outcome),
        Check::Hosts(_) => outcome = super::run_on_several(context.domain, hosts),
        _ => {}
    }
    let own = outcome
        .findings
        .iter()
        .filter(|finding| finding.rule == rule);
    let shown = own.map(|finding| {
        let fix = if finding.fix.is_some() {
            " with a fix"
        } else {
            ""
        };
        format!(
            "{} {}{fix}",
            finding.severity,
            finding.details().notes.len()
        )
    });
    let mut shown: Vec<String> = shown.collect();
    shown.sort();
    if outcome.not_checked.iter().any(|missed| missed.rule == rule) {
        shown.push("not checked".to_owned());
    }
    match shown.is_empty() {
        true => "silent".to_owned(),
        false => shown.join(" + "),
    }
}

/// Names of changes, those of one thing joined: `Bus=ide|sata`, or `Bus=*` for every value that was tried.
fn joined(names: &[String], tried: &BTreeMap<String, usize>) -> String {
    let key = |name: &String| {
        name.split_once('=')
            .map_or(name.clone(), |(key, _)| key.to_owned())
    };
    let of_one = names.chunk_by(|one, other| key(one) == key(other));
    let shown = of_one.map(|names| {
        let key = key(&names[0]);
        let values = names
            .iter()
            .filter_map(|name| Some(name.split_once('=')?.1));
        let values: Vec<&str> = values.collect();
        match tried.get(&key) {
            _ if values.is_empty() => key,
            Some(all) if *all == values.len() && values.len() > 1 => format!("{key}=*"),
            _ => format!("{key}={}", values.join("|")),
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}

const QEMUS: [&str; 16] = [
    "5.2", "6.0", "6.2", "7.0", "7.1", "7.2", "8.0", "8.1", "8.2", "9.0", "9.1", "9.2", "10.0",
    "10.1", "10.2", "11.1",
];
const LIBVIRTS: [&str; 9] = [
    "9.0", "9.2", "9.8", "10.0", "10.10", "11.2", "11.5", "12.0", "12.5",
];

#[derive(Default)]
pub(super) struct Hosts(BTreeMap<String, Vec<(String, Facts)>>);

/// The differences that matter to a rule, by how often it reports then.
pub(super) fn line(rule: &'static Rule, example: &Example, known: &mut Hosts) -> Option<String> {
    let is_varied = matches!(
        rule.check,
        Check::Model(_) | Check::Guests(_) | Check::Hosts(_)
    );
    if !is_varied || example.says("fixed") {
        return None;
    }
    let names = example.values_of("facts-");
    let facts: Vec<Facts> = names.iter().map(|name| super::facts_named(name)).collect();
    let hosts: Vec<HostIndex<'_>> = facts.iter().map(HostIndex::new).collect();
    let document = Document::read(rule, example, &example.text);
    let target = target_of(example);
    let context = Context {
        host: hosts.first(),
        policy: policy_of(example),
        consumer: match &document {
            Document::Xml(_) => Consumer::Libvirt,
            Document::CommandLine(_) => Consumer::Qemu,
        },
        versioned_syntax: document.versioned_syntax(),
        ..Context::new(document.domain(), &target)
    };
    let usual = times(rule, example, &context, &hosts);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut tried: BTreeMap<String, usize> = BTreeMap::new();
    let mut note = |name: String, context: &Context<'_>, hosts: &[HostIndex<'_>]| {
        if let Some((key, _)) = name.split_once('=') {
            *tried.entry(key.to_owned()).or_default() += 1;
        }
        let times = times(rule, example, context, hosts);
        if times != usual {
            found.entry(times).or_default().push(name);
        }
    };
    for (name, domain) in guests(document.domain()) {
        note(
            name,
            &Context {
                domain: &domain,
                ..context
            },
            &hosts,
        );
    }
    for (name, text) in texts(&example.text) {
        let document = match &document {
            Document::Xml(_) => vmdisk_libvirt::read(&text).ok().map(Document::Xml),
            Document::CommandLine(_) => vmdisk_qemu::read(&text).ok().map(Document::CommandLine),
        };
        if let Some(document) = document {
            let (domain, versioned_syntax) = (document.domain(), document.versioned_syntax());
            note(
                name,
                &Context {
                    domain,
                    versioned_syntax,
                    ..context
                },
                &hosts,
            );
        }
    }
    note(
        "no facts".to_owned(),
        &Context {
            host: None,
            ..context
        },
        &hosts,
    );
    note(
        "no target".to_owned(),
        &Context {
            target: &Target::default(),
            ..context
        },
        &hosts,
    );
    for consumer in [Consumer::Libvirt, Consumer::Qemu] {
        note(
            format!("{consumer:?}"),
            &Context {
                consumer,
                ..context
            },
            &hosts,
        );
    }
    for policy in Policy::ALL {
        note(
            policy.as_str().to_owned(),
            &Context {
                policy: *policy,
                ..context
            },
            &hosts,
        );
    }
    let qemus = QEMUS.iter().map(|version| format!("qemu={version}"));
    for name in qemus.chain(LIBVIRTS.iter().map(|version| format!("libvirt={version}"))) {
        let other: Target = name.parse().expect("it is a target");
        note(
            name,
            &Context {
                target: &other.or(target.clone()),
                ..context
            },
            &hosts,
        );
    }
    if let Some(name) = names.first() {
        let others = known
            .0
            .entry((*name).to_owned())
            .or_insert_with(|| self::hosts(name));
        for (name, other) in others {
            let other = [&*other].into_iter().chain(facts.iter().skip(1));
            let hosts: Vec<HostIndex<'_>> = other.map(HostIndex::new).collect();
            note(
                name.clone(),
                &Context {
                    host: hosts.first(),
                    ..context
                },
                &hosts,
            );
        }
    }
    let parts = found
        .iter()
        .map(|(times, names)| format!("{times}: {}", joined(names, &tried)));
    Some(parts.collect::<Vec<_>>().join("; "))
}

/// Compares what matters to the rules whose names begin with a letter with the record.
fn compare(letter: &str) {
    let mut known = Hosts::default();
    let mut text = String::new();
    for rule in RULES.iter().filter(|rule| rule.name.starts_with(letter)) {
        for (nth, example) in rule.examples().iter().enumerate() {
            if let Some(line) = line(rule, example, &mut known).filter(|line| !line.is_empty()) {
                text.push_str(&format!("{} {}: {line}\n", rule.name, nth + 1));
            }
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/variations");
    let path = folder.join(format!("{letter}.txt"));
    if std::env::var_os("VMDISK_BLESS").is_some_and(|value| value == "yes") {
        std::fs::write(&path, &text).expect("the golden file is written");
    }
    let expected = std::fs::read_to_string(&path).expect("the golden file is there");
    assert_eq!(text, expected, "VMDISK_BLESS=yes writes the file");
}

/// One test for each letter, so that they run at once.
macro_rules! what_matters_is_recorded {
    ($($rules_with:ident)+) => {
        $(#[test]
        fn $rules_with() {
            compare(&stringify!($rules_with)["rules_with_".len()..]);
        })+

        #[test]
        fn each_rule_begins_with_one_of_the_letters() {
            let letters = [$(&stringify!($rules_with)["rules_with_".len()..]),+];
            for rule in RULES {
                assert!(letters.contains(&&rule.name[..1]), "{}", rule.name);
            }
        }
    };
}

what_matters_is_recorded! {
    rules_with_a
    rules_with_b
    rules_with_c
    rules_with_d
    rules_with_e
    rules_with_f
    rules_with_g
    rules_with_h
    rules_with_i
    rules_with_k
    rules_with_l
    rules_with_m
    rules_with_n
    rules_with_o
    rules_with_p
    rules_with_q
    rules_with_r
    rules_with_s
    rules_with_t
    rules_with_u
    rules_with_v
    rules_with_w
    rules_with_z
}
