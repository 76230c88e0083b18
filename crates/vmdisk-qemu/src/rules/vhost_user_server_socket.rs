//! `vhost-user-server-socket`

use vmdisk_rule::{Evidence, Group, Report, Severity, declare_rule};

use super::line::{Line, base_of};
use crate::syntax::properties::Properties;
use crate::syntax::value::is_on;

declare_rule! {
    /// QEMU waits at a socket for the daemon that serves the disk, and the guest does not start.
    ///
    /// ## What it does
    /// Reports `server=on` at the `-chardev` of a vhost-user disk.
    ///
    /// ## Why it matters
    /// The daemon makes the socket and QEMU connects to it; the other way round QEMU stops at start until somebody
    /// connects, whatever `wait` says, and answers no monitor meanwhile. The storage daemon of QEMU, and SPDK, make
    /// the socket themselves and never connect.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=mem0 \
    ///   -m 1G \
    ///   -object memory-backend-memfd,id=mem0,size=1G,share=on \
    ///   -chardev socket,id=vub,path=/run/web1.sock,server=on \
    ///   -device vhost-user-blk-pci,chardev=vub,id=vda,config-wce=off
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35,memory-backend=mem0 \
    ///   -m 1G \
    ///   -object memory-backend-memfd,id=mem0,size=1G,share=on \
    ///   -chardev socket,id=vub,path=/run/web1.sock \
    ///   -device vhost-user-blk-pci,chardev=vub,id=vda,config-wce=off
    /// ```
    pub(crate) static RULE = {
        name: "vhost-user-server-socket",
        group: Group::Startup,
        severity: Severity::Warning,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::Measured {
                figures: "QMP answers nothing until a client connects",
                how: "QEMU 5.2, 7.2, 10.0 and 11.1",
            },
        ],
        supersedes: &[],
        check: Text,
    }
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    for (option, driver, device) in line.index.devices() {
        if base_of(driver) == "vhost-user-blk" {
            check_socket(line, report, option, device);
        }
    }
}

fn check_socket(line: &Line<'_>, report: &mut Report, option: usize, device: &Properties) {
    let name = device.peek("chardev").map(|chardev| chardev.value.as_str());
    let Some(chardev) = name.and_then(|name| line.index.chardev(name)) else {
        return;
    };
    let Some(server) = line
        .index
        .properties(chardev)
        .and_then(|socket| socket.peek("server"))
    else {
        return;
    };
    if is_on(Some(server)) {
        let message =
            "QEMU makes the socket itself, and does not start before the daemon connects to it";
        let help = "take server away: the daemon makes the socket, and QEMU connects";
        line.refuse(report, option, server.span, message, help);
    }
}
