//! `guests-exceed-aio-slots`

use vmdisk_fields::phrase;
use vmdisk_rule::{
    Context, Evidence, Group, OtherGuests, Report, Resource, Severity, declare_rule,
};

declare_rule! {
    /// The guests of a host need more Linux AIO slots together than the host has.
    ///
    /// ## What it reports
    /// Adds up the slots of `fs.aio-max-nr` that the guests of the run reserve on one host: 1024 for each thread that
    /// runs disks with `io='native'`. The rule reports the first guest, in the order of the files, with which the sum
    /// exceeds the limit. It compares guests whose host is known: from a single facts file, from `--live`, or from
    /// `--host NAME=PATTERN`. A guest in several files, such as a snapshot and its domain, counts once.
    /// `aio-slots-exhausted` reports a guest that exceeds the limit alone.
    ///
    /// ## Why it matters
    /// Without free slots, QEMU 5.2 and 7.2 do not start, and QEMU 10.0 and 11.1 use threads instead, with a line in
    /// their log. The default of 65536 is enough for 64 threads.
    ///
    /// ## Use instead
    /// Raise the limit in `/etc/sysctl.d`: `fs.aio-max-nr=1048576`. Alternatively use `io='io_uring'`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-aio-slots-few,beside-native
    /// <domain type='kvm'>
    ///   <name>web3</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native'/>
    ///       <source file='/srv/img/web3.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-aio-slots-few,beside-native
    /// <domain type='kvm'>
    ///   <name>web3</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/web3.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked if the other guests of the host are unknown:
    /// ```xml,not-checked,beside-unknown
    /// <domain type='kvm'>
    ///   <name>web3</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native'/>
    ///       <source file='/srv/img/web3.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "guests-exceed-aio-slots",
    group: Group::Startup,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("each thread calls io_setup(1024); denied, QEMU 5.2 and 7.2 exit, 10.0 and 11.1 start", "QEMU 5.2, 7.2, 10.0 and 11.1 with io_setup failing with EAGAIN, tests/tests/qemu_refuses/denied.rs"),
        Evidence::Source("Linux Documentation/admin-guide/sysctl/fs.rst: io_setup fails with EAGAIN if aio-nr reaches aio-max-nr; fs/aio.c: 65536 by default"),
    ],
    check: Guests(check),
}

fn check(_: &Context<'_>, others: &OtherGuests, report: &mut Report) {
    for shortage in &others.shortages {
        if shortage.resource != Resource::AioSlots {
            continue;
        }
        report
            .finding(
                shortage.at,
                phrase!(
                    "{guests} guests need {needed} slots for Linux AIO, and the host has {slots}",
                    guests = shortage.guests,
                    needed = shortage.needed,
                    slots = shortage.available,
                ),
            )
            .label("with this guest, the sum exceeds `fs.aio-max-nr`")
            .help(phrase!(
                "raise `fs.aio-max-nr` on the host to {slots} or more",
                slots = shortage.needed.max(shortage.available.saturating_mul(2)),
            ));
    }
}
