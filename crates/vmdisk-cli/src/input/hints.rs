//! Files that vmdisk does not read, by their contents: what they are, and the command that yields what it reads.

use std::path::Path;

use crate::input::bounded;
use crate::pattern;
use crate::render::message::Message;

/// What begins a file that is not text, with the file in words and the remedy.
const BINARIES: &[(&[u8], &str, &str)] = &[
    (
        b"\x1f\x8b",
        "a gzip file",
        "`zcat FILE | vmdisk lint -` checks its contents",
    ),
    (
        b"\xfd7zXZ",
        "an xz file",
        "`xzcat FILE | vmdisk lint -` checks its contents",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "a zstd file",
        "`zstdcat FILE | vmdisk lint -` checks its contents",
    ),
    (
        b"BZh",
        "a bzip2 file",
        "`bzcat FILE | vmdisk lint -` checks its contents",
    ),
    (b"QFI\xfb", "a qcow2 image", IMAGE),
    (b"KDMV", "a vmdk image", IMAGE),
    (b"vhdxfile", "a vhdx image", IMAGE),
    (b"conectix", "a vhd image", IMAGE),
    (b"<<< Oracle VM", "a vdi image", IMAGE),
    (b"<Envelope", OVF.0, OVF.1),
];

const IMAGE: &str = "`vmdisk facts FILE --format text` shows it; lint checks the XML or the command line of its guest";

const OVF: (&str, &str) = (
    "an OVF descriptor",
    "`virt-v2v -i ova FILE -o local -os DIRECTORY` converts the guest; lint checks the XML that it writes",
);

const PROXMOX: (&str, &str) = (
    "a Proxmox VE configuration",
    "`qm showcmd NUMBER | vmdisk lint -` checks its command line",
);

const INCUS: (&str, &str) = (
    "an Incus instance",
    "`vmdisk lint /run/incus/NAME/qemu.conf` checks it while it runs",
);

/// Words of which a text has all, with the file in words and the remedy.
const TEXTS: &[(&[&str], &str, &str)] = &[
    (
        &["apiVersion:", "kubevirt.io/"],
        "a KubeVirt manifest",
        "`kubectl exec POD -c compute -- virsh dumpxml NAMESPACE_NAME | vmdisk lint -` checks the guest that it defines",
    ),
    (
        &["resource \"", "{\n"],
        "a Terraform configuration",
        "`virsh dumpxml NAME | vmdisk lint -` checks the guest that it defines, after `terraform apply`",
    ),
    (&["\nscsihw: "], PROXMOX.0, PROXMOX.1),
    (&["\nboot: order="], PROXMOX.0, PROXMOX.1),
    (&["\nvmgenid: "], PROXMOX.0, PROXMOX.1),
    (&["\ntype: virtual-machine"], INCUS.0, INCUS.1),
    (
        &["\ndevices:", "\n    type: disk", "\n    pool: "],
        INCUS.0,
        INCUS.1,
    ),
    (
        &["Vagrant.configure"],
        "a Vagrantfile",
        "`virsh dumpxml NAME | vmdisk lint -` checks the guest of vagrant-libvirt, after `vagrant up`",
    ),
    (
        &["\nsource \"qemu\""],
        "a Packer template",
        "`vmdisk lint --running` checks the guest while Packer builds it",
    ),
    (
        &["\nvirtualHW.version"],
        "a VMware configuration",
        "`virt-v2v -i vmx FILE -o local -os DIRECTORY` converts the guest; lint checks the XML that it writes",
    ),
    (
        &["- hosts:", "<domain"],
        "a playbook that contains XML",
        "put the XML into a file of its own, which the playbook reads",
    ),
    (
        &["\n- hosts:"],
        "a playbook",
        "name the domains that it defines, or check the guests with `vmdisk lint --all-domains`",
    ),
    (
        &["\n#cloud-config"],
        "cloud-init's user data",
        "name the XML or the command line of the guest",
    ),
    (
        &["virt-install "],
        "a script of virt-install",
        "`virt-install … --print-xml | vmdisk lint -` checks the guest that it defines",
    ),
    (
        &["virsh attach-disk "],
        "a script of virsh",
        "`virsh attach-disk … --print-xml | vmdisk lint -` checks the disk, and `vmdisk lint --domain NAME` the guest",
    ),
    (
        &["apiVersion:", "\nkind:"],
        "a Kubernetes manifest",
        "name the XML or the command line of a guest",
    ),
];

/// What a file is that could not be read as a guest, if its contents show it.
pub(crate) fn of(bytes: &[u8]) -> Option<Message> {
    let (what, help) = known(bytes)?;
    Some(Message::error(format!("{what}, which vmdisk does not read")).help(help.to_owned()))
}

/// The remedy for the first file of a directory that vmdisk does not read, if its contents show what it is.
pub(crate) fn of_directory(directory: &Path) -> Option<String> {
    /// Number of files that are looked at, and their length.
    const MAX_FILES: usize = 100;
    const MAX_BYTES: u64 = 1 << 20;
    let files = pattern::entries(directory).ok()?;
    files.into_iter().take(MAX_FILES).find_map(|path| {
        // An output may replace what is only looked at.
        let file = bounded::open_regular(&path).ok()?;
        let bytes = bounded::contents(file, MAX_BYTES).ok()?;
        let (what, help) = known(&bytes)?;
        Some(format!("`{}` is {what}: {help}", path.display()))
    })
}

/// A file in words, with its remedy.
fn known(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let text = std::str::from_utf8(bytes).ok();
    let text = text
        .map(|text| format!("\n{text}"))
        .filter(|text| !text.trim_start().starts_with('<'));
    let has_all = |words: &[&str]| {
        text.as_ref()
            .is_some_and(|text| words.iter().all(|word| text.contains(word)))
    };
    // An XML declaration says nothing of the contents.
    let bytes = match bytes.strip_prefix(b"<?xml".as_slice()) {
        Some(rest) => {
            let end = rest
                .iter()
                .position(|it| *it == b'>')
                .map_or(&rest[..0], |end| &rest[end + 1..]);
            end.trim_ascii_start()
        }
        None => bytes,
    };
    let mut binaries = BINARIES
        .iter()
        .filter(|(magic, ..)| bytes.starts_with(magic));
    let binary = binaries.next().map(|(_, what, help)| (*what, *help));
    binary.or_else(|| {
        let known = TEXTS.iter().find(|(words, ..)| has_all(words));
        known.map(|(_, what, help)| (*what, *help))
    })
}

/// What the name of a missing file may mean.
pub(crate) fn of_missing(path: &Path) -> Option<String> {
    let name = path.to_str()?;
    if name.contains("://") {
        return Some(format!(
            "for the guests of a libvirt: `vmdisk lint -c {name} --all-domains`"
        ));
    }
    let is_name = !name.contains(['/', '.']);
    is_name.then(|| {
        format!(
            "for a guest of libvirt: `vmdisk lint --domain {name}`; other commands read a file with its XML, which \
             `virsh dumpxml {name}` prints"
        )
    })
}
