//! `hugepages-insufficient`

use vmdisk_fields::phrase;
use vmdisk_model::{Bytes, DomainField, FieldPath};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Report, Severity, declare_rule};

use crate::hugepages::{self, Pool};

declare_rule! {
    /// The host has fewer huge pages than the guest's memory needs.
    ///
    /// ## What it reports
    /// Compares `<memory>` of a guest with `<hugepages/>` to the host's pool of that page size. It is an error if the
    /// whole pool is too small, and a warning if the pool is large enough but too few pages were free when the facts
    /// were collected: another guest used them, or this one. Several page sizes for different NUMA cells are not
    /// checked. Pages that the kernel can add on demand (`nr_overcommit_hugepages`, usually 0) count as available.
    ///
    /// ## Why it matters
    /// QEMU allocates all of the guest's memory from the pool at start, and fails if the pool is too small. The pool
    /// must be reserved at boot or soon after: later, memory is too fragmented for many 2 MiB pages, and almost always
    /// for 1 GiB pages.
    ///
    /// ## Use instead
    /// Reserve the pages at boot with the kernel parameters `hugepagesz=2M hugepages=N`, or soon after boot in
    /// `/sys/kernel/mm/hugepages`. Reserved pages are not available to anything else. Alternatively remove
    /// `<hugepages/>`; the guest then uses normal pages, which cost more TLB misses.
    ///
    /// ## Reported
    /// ```xml,reported,facts-hugepages-none
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>4</memory>
    ///   <memoryBacking>
    ///     <hugepages>
    ///       <page size='2' unit='MiB'/>
    ///     </hugepages>
    ///   </memoryBacking>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>4</memory>
    ///   <memoryBacking>
    ///     <hugepages/>
    ///   </memoryBacking>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>4</memory>
    ///   <memoryBacking>
    ///     <hugepages/>
    ///   </memoryBacking>
    /// </domain>
    /// ```
    name: "hugepages-insufficient",
    group: Group::Startup,
    severity: Severity::Error,
    is_about_host: true,
    evidence: &[
        Evidence::Source("Linux Documentation/mm/hugetlbfs_reserv.rst: mmap fails if there are not enough huge pages for the mapping"),
        Evidence::Source("QEMU system/physmem.c: unable to map backing store for guest RAM"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let domain = context.domain;
    let Some(asked) = &domain.memory_backing.huge_pages else {
        return;
    };
    let at = FieldPath::Domain(DomainField::HugePages);
    let compared = context
        .host(|| "the host's huge pages".to_owned())
        .and_then(|host| hugepages::compare(domain, asked, host));
    let Some(Pool {
        page,
        needed,
        existing,
        usable,
    }) = report.require(at, compared)
    else {
        return;
    };
    if needed <= usable {
        return;
    }
    let memory = Bytes(needed.saturating_mul(page.0));
    let is_too_small = existing < needed;
    let finding = report.finding(
        at,
        if is_too_small {
            format!("the guest needs {needed} huge pages of {page}, but the host has {existing}")
        } else {
            format!("the guest needs {needed} huge pages of {page}, but only {usable} were free")
        },
    );
    finding
        .label(format!("{memory} in pages of {page}"))
        .related(FieldPath::Domain(DomainField::Memory), "the guest's memory");
    if is_too_small {
        finding.note("the guest does not start, even alone on this host");
    } else {
        finding
            .severity(Severity::Warning)
            .confidence(Confidence::Assumed)
            .note(format!(
                "only a warning: the host has {existing} such pages, and other guests, or this one, used {} when the facts were collected",
                existing - usable
            ));
    }
    finding.help(phrase!(
        "reserve {needed} such pages for this guest, at boot with `hugepagesz={size} hugepages=N` \
         or soon after in /sys/kernel/mm/hugepages; alternatively remove {hugepages}",
        needed,
        size = hugepages::kernel_word(page),
        hugepages = at,
    ));
}
