//! `encryption-secret-missing`

use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::line::{Line, line_rule};
use super::nodes::{Node, drives, nodes};

line_rule! {
    /// An encrypted image has no secret to open it.
    ///
    /// ## What it reports
    /// Reports a `luks` node without `key-secret`, only one of `encrypt.format` and `encrypt.key-secret`, and a secret
    /// that no `-object` defines.
    ///
    /// ## Why it matters
    /// QEMU cannot open the image and exits at start with `Parameter 'key-secret' is required for cipher` or
    /// `No secret with id 'key0'`.
    ///
    /// ## Use instead
    /// Define the secret and name it in the node: `-object secret,id=key0,file=KEYFILE` with `key-secret=key0`. Use
    /// `file=` instead of `data=`, which other users can see in the process list.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.luks \
    ///   -blockdev driver=luks,node-name=l0,file=f0 \
    ///   -device virtio-blk-pci,drive=l0,id=vda
    /// ```
    ///
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.qcow2,format=qcow2,encrypt.format=luks,encrypt.key-secret=key0,if=virtio,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -object secret,id=key0,file=/etc/keys/a \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.luks \
    ///   -blockdev driver=luks,node-name=l0,file=f0,key-secret=key0 \
    ///   -device virtio-blk-pci,drive=l0,id=vda
    /// ```
    name: "encryption-secret-missing",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("Parameter 'key-secret' is required for cipher", "crypto/block-luks.c"),
        Evidence::refused_by_qemu("No secret with id 'key0'", "crypto/secret_common.c"),
    ],
    check: Text(check),
}

/// The type of the referenced object.
const SECRET: &str = "secret";

/// The required member of such an object.
const FILE: &str = "file=…";

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    for node in nodes(line).chain(drives(line)) {
        match node.driver() {
            "qcow2" => check_qcow2_secret(line, report, &node),
            "luks" if node.get("key-secret").is_none() => {
                let message = "a `luks` node has no key-secret, so QEMU cannot open it";
                let help = "set key-secret, and define its secret with -object secret and file=";
                line.refuse(report, node.option, node.span(), message, help);
            }
            "luks" => node.check_object(line, report, "key-secret", SECRET, FILE),
            _ => {}
        }
    }
}

fn check_qcow2_secret(line: &Line<'_>, report: &mut Report, node: &Node<'_>) {
    if let Some(secret) = node.get("encrypt.key-secret") {
        if node.get("encrypt.format").is_none() {
            let message = "encrypt.key-secret without encrypt.format";
            let help = "add encrypt.format=luks";
            line.refuse(report, node.option, secret.span, message, help);
        }
        node.check_object(line, report, "encrypt.key-secret", SECRET, FILE);
    } else if let Some(format) = node.get("encrypt.format") {
        let message = "encrypt.format without encrypt.key-secret";
        let help = "set encrypt.key-secret, and define its secret with -object secret and file=";
        line.refuse(report, node.option, format.span, message, help);
    }
}
