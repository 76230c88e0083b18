//! `encryption-secret-missing`

use vmdisk_source::ProblemKind;

use super::report_problems;
use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// An encrypted image has no secret that opens it.
    ///
    /// ## What it does
    /// Reports a node of driver `luks` without `key-secret`, `encrypt.format` and `encrypt.key-secret` of which
    /// only one is written, and a secret that no `-object` makes.
    ///
    /// ## Why it matters
    /// QEMU cannot open the image and does not start.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.luks \
    ///   -blockdev driver=luks,node-name=l0,file=f0 \
    ///   -device virtio-blk-pci,drive=l0,id=vda
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
    pub(super) static RULE = {
        name: "encryption-secret-missing",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "Parameter 'key-secret' is required for cipher",
                source: "crypto/block-luks.c",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "No secret with id 'key0'",
                source: "crypto/secret_common.c",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_problems(context, report, ProblemKind::SecretMissing);
}
