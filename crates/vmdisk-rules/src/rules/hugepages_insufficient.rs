//! `hugepages-insufficient`

use vmdisk_facts::{Fact, HostIndex};
use vmdisk_fields::phrase;
use vmdisk_model::{Bytes, Domain, DomainField, FieldPath, HugePages};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Missing, Report, Severity, declare_rule};

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
    pub(super) static RULE = {
        name: "hugepages-insufficient",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Source("Linux Documentation/admin-guide/mm/hugetlbpage: mmap from the pool fails when it is used up"),
            Evidence::Source("QEMU backends/hostmem.c: QEMU exits if a memory backend cannot be mapped"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let domain = context.domain;
    let Some(asked) = &domain.memory_backing.huge_pages else {
        return;
    };
    let at = FieldPath::Domain(DomainField::HugePages);
    let compared = context
        .host(|| "the host's huge pages".to_owned())
        .and_then(|host| compare(domain, asked, host));
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
        size = kernel_word(page),
        hugepages = at,
    ));
}

/// A host's pool, and the part of it that the guest needs.
struct Pool {
    page: Bytes,
    needed: u64,
    existing: u64,
    /// Free and not reserved.
    usable: u64,
}

fn compare(domain: &Domain, asked: &HugePages, host: &HostIndex<'_>) -> Result<Pool, Missing> {
    let what = || "the memory of the guest".to_owned();
    let memory = domain
        .memory
        .ok_or_else(|| Missing::new(what(), "not configured"))?;
    let page = page_size(domain, asked, host)?;
    let words = || format!("the host's huge pages of {page}");
    let pools = &host.facts().memory.hugepages;
    if pools.is_empty() {
        return Err(Missing::new(words(), "not collected"));
    }
    let needed = memory.0.div_ceil(page.0);
    let Some(pool) = pools.get(&(page.0 / Bytes::KIB)) else {
        // The kernel lists every size that it supports.
        return Ok(Pool {
            page,
            needed,
            existing: 0,
            usable: 0,
        });
    };
    let set_aside = Context::known(pool.nr.clone(), words)?.unwrap_or(0);
    // Facts of earlier collectors lack these counts, which usually are zero.
    let on_demand = pool.overcommit.clone().known().unwrap_or(0);
    let existing = set_aside.saturating_add(on_demand);
    if existing < needed {
        let usable = 0;
        return Ok(Pool {
            page,
            needed,
            existing,
            usable,
        });
    }
    let free = Context::known(pool.free.clone(), words)?.unwrap_or(0);
    let promised = Context::known(pool.reserved.clone(), words)?.unwrap_or(0);
    Ok(Pool {
        page,
        needed,
        existing,
        usable: free.saturating_sub(promised).saturating_add(on_demand),
    })
}

/// The size of the pages for all of the guest's memory.
fn page_size(domain: &Domain, asked: &HugePages, host: &HostIndex<'_>) -> Result<Bytes, Missing> {
    let what = || "the size of the huge pages".to_owned();
    let has_cells = !domain.memory_backing.cell_access.is_empty();
    match asked.page_sizes.as_slice() {
        [] => default_size(host),
        [page] if !has_cells && page.0 >= Bytes::KIB => Ok(*page),
        [..] => Err(Missing::new(
            what(),
            "the sizes of NUMA cells are not modelled",
        )),
    }
}

/// The host's default page size.
fn default_size(host: &HostIndex<'_>) -> Result<Bytes, Missing> {
    let what = || "the host's default size of huge pages".to_owned();
    let facts = host.facts();
    let asked = facts.kernel.cmdline.get("default_hugepagesz").cloned();
    let asked = asked.unwrap_or(Fact::NotCollected);
    if let Some(word) = Context::known(asked, what)? {
        let size = from_kernel_word(&word)
            .filter(|size| size.0 >= Bytes::KIB)
            .ok_or_else(|| {
                Missing::new(what(), format!("default_hugepagesz={word} is not a size"))
            })?;
        // The kernel ignores a size that it does not support, with a warning.
        let pools = &facts.memory.hugepages;
        if pools.is_empty() || pools.contains_key(&(size.0 / Bytes::KIB)) {
            return Ok(size);
        }
    }
    match Context::known(facts.cpu.arch.as_str(), what)? {
        Some("x86_64") => Ok(Bytes(2 * Bytes::MIB)),
        Some(arch) => Err(Missing::new(what(), format!("it differs on {arch}"))),
        None => Err(Missing::new(what(), "the architecture is not known")),
    }
}

/// Parses a page size like the kernel's `memparse`: a number as in C, then a letter for a power of 1024; the rest is
/// ignored, so `1GB` is 1 GiB.
fn from_kernel_word(word: &str) -> Option<Bytes> {
    const LETTERS: &str = "kmgtpe";
    let (radix, digits) = match word.get(..2) {
        Some("0x" | "0X") => (16, &word[2..]),
        _ if word.starts_with('0') => (8, word),
        _ => (10, word),
    };
    let end = digits
        .find(|letter: char| !letter.is_digit(radix))
        .unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    let power = rest
        .chars()
        .next()
        .and_then(|letter| LETTERS.find(letter.to_ascii_lowercase()))
        .map_or(0, |at| at as u32 + 1);
    let number = u64::from_str_radix(number, radix).ok()?;
    number.checked_mul(Bytes::KIB.pow(power)).map(Bytes)
}

/// A page size in the syntax of kernel parameters.
fn kernel_word(page: Bytes) -> String {
    let Bytes(size) = page;
    if size.is_multiple_of(Bytes::GIB) {
        format!("{}G", size / Bytes::GIB)
    } else if size.is_multiple_of(Bytes::MIB) {
        format!("{}M", size / Bytes::MIB)
    } else {
        format!("{}K", size / Bytes::KIB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_kernel_reads_its_parameters() {
        for (word, size) in [
            ("1G", Some(Bytes::GIB)),
            ("1GB", Some(Bytes::GIB)),
            ("1g", Some(Bytes::GIB)),
            ("2M", Some(2 * Bytes::MIB)),
            ("2MiB", Some(2 * Bytes::MIB)),
            ("2048K", Some(2 * Bytes::MIB)),
            ("2048kB", Some(2 * Bytes::MIB)),
            ("2097152", Some(2 * Bytes::MIB)),
            ("0x200000", Some(2 * Bytes::MIB)),
            ("010M", Some(8 * Bytes::MIB)),
            ("G", None),
            ("0x", None),
            ("", None),
            ("ä", None),
            ("99999999999999999999", None),
            ("999999999999E", None),
        ] {
            assert_eq!(from_kernel_word(word), size.map(Bytes), "{word}");
        }
    }

    #[test]
    fn kernel_words_are_read_back() {
        for size in [Bytes::KIB * 64, Bytes::MIB * 2, Bytes::MIB * 16, Bytes::GIB] {
            assert_eq!(
                from_kernel_word(&kernel_word(Bytes(size))),
                Some(Bytes(size))
            );
        }
    }
}
