//! `guests-exceed-hugepages`

use vmdisk_fields::phrase;
use vmdisk_rule::{
    Context, Evidence, Group, OtherGuests, Report, Resource, Severity, declare_rule,
};

declare_rule! {
    /// The guests of a host need more huge pages together than the host has.
    ///
    /// ## What it reports
    /// Adds up the huge pages that the guests of the run need on one host, for each page size. The rule reports the
    /// first guest, in the order of the files, with which the sum exceeds the pool. It compares guests whose host is
    /// known: from a single facts file, from `--live`, or from `--host NAME=PATTERN`. A guest in several files, such as
    /// a snapshot and its domain, counts once. `hugepages-insufficient` reports a guest that exceeds the pool alone.
    ///
    /// ## Why it matters
    /// QEMU allocates the pages when it starts. The guests that start last do not start, which shows only after a
    /// restart of the host or a migration.
    ///
    /// ## Use instead
    /// Reserve enough pages for all guests at boot (`hugepagesz=2M hugepages=N`), or use normal pages for some guests.
    /// If the guests never run together, allow the rule with this reason.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme,beside-web2
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <memory unit='GiB'>12</memory>
    ///   <memoryBacking>
    ///     <hugepages/>
    ///   </memoryBacking>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme,beside-web2
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <memory unit='GiB'>4</memory>
    ///   <memoryBacking>
    ///     <hugepages/>
    ///   </memoryBacking>
    /// </domain>
    /// ```
    /// Not checked if the other guests of the host are unknown:
    /// ```xml,not-checked,beside-unknown
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <memory unit='GiB'>12</memory>
    ///   <memoryBacking>
    ///     <hugepages/>
    ///   </memoryBacking>
    /// </domain>
    /// ```
    name: "guests-exceed-hugepages",
    group: Group::Startup,
    severity: Severity::Warning,
    evidence: &[
        Evidence::Source("Linux Documentation/mm/hugetlbfs_reserv.rst: mmap() fails if there are not enough huge pages to cover the mapping"),
    ],
    check: Guests(check),
}

fn check(_: &Context<'_>, others: &OtherGuests, report: &mut Report) {
    for shortage in &others.shortages {
        let Resource::HugePages(page) = shortage.resource else {
            continue;
        };
        report
            .finding(
                shortage.at,
                phrase!(
                    "{guests} guests need {needed} huge pages of {page}, and the host has {pool}",
                    guests = shortage.guests,
                    needed = shortage.needed,
                    page,
                    pool = shortage.available,
                ),
            )
            .label("with this guest, the sum exceeds the pool")
            .note("the guests that start last do not start")
            .help("reserve more pages at boot, or use normal pages for some of the guests");
    }
}
