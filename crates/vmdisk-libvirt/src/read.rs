//! Reads text to a [`Document`].

use vmdisk_model::{Domain, DomainField, FieldPath, GuestSystem};
use vmdisk_rule::reading::INVALID_VALUE;
use vmdisk_source::Edit;

use crate::allowance;
use crate::document::Document;
use crate::edits::Outlines;
use crate::encoding::decode;
use crate::passthrough::{self, Passthrough};
use crate::reader::Reader;
use crate::unmodeled::Unmodeled;
use crate::vocabulary::{DOMAIN_BACKUP, DOMAIN_CHECKPOINT, DOMAIN_SNAPSHOT};
use crate::xml::{Attribute, Node, parse};
use crate::{ReadFailure, ReadFailureKind, RootKind, StorageItem, domain, moment, storage};

/// Reads a domain, a `<disk>` or `<devices>`.
///
/// Reading does not stop at the first mistake: every wrong value, unknown name and missing source is one of the
/// [`problems`](Document::problems), with its span, and the rest is read normally.
///
/// ```
/// let text = "<disk type='file'>
///   <driver name='qemu' type='qcow2' cache='writebak' discrad='unmap'/>
///   <source file='/srv/web1.qcow2'/>
///   <target dev='vda' bus='virtio'/>
/// </disk>";
/// let document = vmdisk_libvirt::read(text)?;
/// let problems: Vec<_> = document.problems.iter().map(|problem| problem.span.slice(text)).collect();
/// assert_eq!(problems, [Some("writebak"), Some("discrad")]);
/// assert_eq!(document.problems[0].help.as_deref(), Some("did you mean `writeback`?"));
/// assert_eq!(document.domain.disks[0].name(), "vda");
/// # Ok::<(), vmdisk_libvirt::ReadFailure>(())
/// ```
///
/// # Errors
/// Fails if the text is not well-formed XML, exceeds a limit, has a document type, or is not a domain or disks.
pub fn read(text: &str) -> Result<Document, ReadFailure> {
    read_keeping(text, true)
}

/// As [`read`], for a document that is not written: its [`kept`](Document::kept) parts are empty, because it takes time
/// to copy them.
///
/// # Errors
/// As [`read`].
pub fn read_only(text: &str) -> Result<Document, ReadFailure> {
    read_keeping(text, false)
}

fn read_keeping(text: &str, keeps: bool) -> Result<Document, ReadFailure> {
    let elements = parse(text)?;
    let tree = elements.of(text);
    let node = tree.root();
    let root = RootKind::of_name(node.name());
    let mut reader = Reader::new(text, keeps);
    let (mut domain, kept, storage) = read_root(&mut reader, root, node)?;
    let passthrough = match root {
        RootKind::Domain => passthrough::read(node),
        _ => Passthrough::default(),
    };
    let mut devices = passthrough.devices.iter();
    domain.system = domain
        .system
        .or_else(|| devices.find_map(|(device, _)| GuestSystem::of_device(device)));
    report_default_namespace(&mut reader, node);
    let allowances = allowance::read(&mut reader, &tree, &domain);
    let Reader {
        map: source_map,
        mut problems,
        mut versioned_syntax,
        ..
    } = reader;
    problems.sort_by_key(|problem| problem.span);
    versioned_syntax.sort_by_key(|word| word.span);
    Ok(Document {
        root,
        domain,
        source_map,
        problems,
        versioned_syntax,
        allowances,
        kept,
        passthrough,
        storage,
        elements,
        outlines: Outlines::default(),
    })
}

/// Reads a domain, a `<disk>` or `<devices>` from the bytes of a file.
///
/// # Errors
/// Like [`read`]; also fails if the bytes are not UTF-8, and names their encoding.
pub fn read_bytes(bytes: &[u8]) -> Result<Document, ReadFailure> {
    read(decode(bytes)?)
}

fn read_root<'d>(
    reader: &mut Reader<'_>,
    root: RootKind,
    node: Node<'d>,
) -> Result<(Domain, Unmodeled, Option<StorageItem>), ReadFailure> {
    let guest = |(domain, kept)| Ok((domain, kept, None));
    let refuse = |message: String| {
        let kind = ReadFailureKind::NotADomainOrDisk(root);
        ReadFailure::new(kind, node.name_span(), message)
    };
    match root {
        RootKind::Domain => guest(domain::read(reader, node)),
        RootKind::Devices => guest(domain::read_devices_alone(reader, node)),
        RootKind::Disk => guest(domain::read_disk_alone(reader, node)),
        RootKind::DomainStatus => match node.child("domain") {
            Some(inner) => guest(domain::read(reader, inner)),
            None => Err(refuse("`<domstatus>` contains no `<domain>`".to_owned())),
        },
        RootKind::Pool => {
            let storage = storage::read_pool(reader, node);
            Ok((domain::disks_only(), Unmodeled::default(), storage))
        }
        RootKind::Volume => {
            let storage = storage::read_volume(reader, node);
            Ok((domain::disks_only(), Unmodeled::default(), Some(storage)))
        }
        RootKind::DomainSnapshot => guest(moment::read(reader, node, &DOMAIN_SNAPSHOT)),
        RootKind::DomainCheckpoint => guest(moment::read(reader, node, &DOMAIN_CHECKPOINT)),
        RootKind::DomainBackup => guest(moment::read(reader, node, &DOMAIN_BACKUP)),
        RootKind::OtherLibvirt(name) => Err(refuse(format!(
            "`<{name}>` of libvirt has no disks; vmdisk checks domains, disks, pools and volumes"
        ))),
        RootKind::Foreign | RootKind::NotXml => Err(refuse(format!(
            "`<{}>` is not a libvirt domain or disk",
            node.name()
        ))
        .help("expected `<domain>`, `<disk>` or `<devices>` as the outermost element")),
    }
}

/// libvirt searches for elements without a name space, and finds none in a default one.
fn report_default_namespace(reader: &mut Reader<'_>, root: Node<'_>) {
    let mut attributes = root.attributes();
    let is_default = |it: &Attribute<'_>| it.is_named("xmlns") && !it.value().is_empty();
    let Some(declaration) = attributes.find(is_default) else {
        return;
    };
    let at = FieldPath::Domain(DomainField::Domain);
    let message = "a default namespace hides every element from libvirt".to_owned();
    let problem = reader.problem(&INVALID_VALUE, at, declaration.verbatim(), message);
    problem.help = Some("delete it".to_owned());
    problem.fix = vec![Edit::delete(declaration.whole())];
}
