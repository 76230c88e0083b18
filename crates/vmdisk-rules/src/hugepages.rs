//! The huge pages of a host, and those that a guest needs.

use vmdisk_facts::{Fact, HostIndex};
use vmdisk_model::{Bytes, Domain, HugePages};
use vmdisk_rule::{Context, Missing};

/// A host's pool, and the part of it that the guest needs.
pub(crate) struct Pool {
    /// The size of a page.
    pub(crate) page: Bytes,
    /// Pages that the guest needs.
    pub(crate) needed: u64,
    /// Pages of the host, including those on demand.
    pub(crate) existing: u64,
    /// Free and not reserved.
    pub(crate) usable: u64,
}

/// Compares the guest's memory with the pool of its page size.
///
/// # Errors
/// Fails if the memory or the pool is not known.
pub(crate) fn compare(
    domain: &Domain,
    asked: &HugePages,
    host: &HostIndex<'_>,
) -> Result<Pool, Missing> {
    let what = || "the memory of the guest".to_owned();
    let memory = domain
        .memory
        .ok_or_else(|| Missing::new(what(), "not configured"))?;
    let page = page_size(domain, asked, host)?;
    let words = || format!("the host's huge pages of {page}");
    let pools = &host.facts().memory.hugepages;
    if pools.is_empty() {
        return Err(Missing::new(words(), Missing::NOT_COLLECTED));
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

/// The pages of this size that a host has or can add on demand; `None` if that is not known.
pub(crate) fn existing(host: &HostIndex<'_>, page: Bytes) -> Option<u64> {
    let pool = host.facts().memory.hugepages.get(&(page.0 / Bytes::KIB))?;
    let on_demand = pool.overcommit.value().copied().unwrap_or(0);
    Some(pool.nr.value()?.saturating_add(on_demand))
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
pub(crate) fn kernel_word(page: Bytes) -> String {
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
