//! `vhost-user-server-socket`

use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::line::{Line, base_of, line_rule};
use crate::members::Members;
use crate::syntax::value::is_on;

line_rule! {
    /// QEMU waits for the vhost-user daemon, because the socket has `server=on`.
    ///
    /// ## What it reports
    /// Reports `server=on` on the `-chardev` of a vhost-user disk.
    ///
    /// ## Why it matters
    /// The daemon creates the socket, and QEMU connects to it. With `server=on`, QEMU stops at start until a client
    /// connects, regardless of `wait`, and does not answer on its monitor. `qemu-storage-daemon` and SPDK create the
    /// socket and never connect, so the guest hangs without a message.
    ///
    /// ## Use instead
    /// Remove `server=on`, and start the daemon first: `-chardev socket,id=disk0,path=SOCKET`.
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
    name: "vhost-user-server-socket",
    group: Group::Startup,
    severity: Severity::Warning,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::measured("QMP answers nothing until a client connects", "QEMU 5.2, 7.2, 10.0 and 11.1"),
    ],
    check: Text(check),
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    for (option, driver, device) in line.index.devices() {
        if base_of(driver) == "vhost-user-blk" {
            check_socket(line, report, option, device);
        }
    }
}

fn check_socket(line: &Line<'_>, report: &mut Report, option: usize, device: Members<'_>) {
    let name = device.get("chardev").map(|chardev| chardev.value.as_str());
    let Some(chardev) = name.and_then(|name| line.index.chardev(name)) else {
        return;
    };
    let Some(server) = line
        .index
        .properties(chardev)
        .and_then(|socket| socket.get("server"))
    else {
        return;
    };
    if is_on(Some(server)) {
        let message = "QEMU creates the socket itself, and waits for the daemon before it starts";
        let help = "remove server: the daemon creates the socket, and QEMU connects";
        line.refuse(report, option, server.span, message, help);
    }
}
