//! The page on O_DIRECT, generated from the tables behind the verdicts and from recorded trials.

use std::fmt::Write as _;

use anyhow::Context as _;
use vmdisk::facts::btrfs_regime::{TABLE, VENDORS, Write};
use vmdisk::facts::direct_io::trials::{DirectIoTrial, Seen, TRIALS};
use vmdisk::facts::{Fact, Facts, FsKind, HostIndex, Version};

/// Returns the page.
pub(crate) fn page() -> anyhow::Result<String> {
    let mut out = String::from(
        "<!-- Made by `cargo xtask codegen` from crates/vmdisk-facts. -->\n\n\
         # O_DIRECT by filesystem and kernel\n\n\
         These are the conclusions of [facts](facts.md) without better information: neither a trial write on the host itself\n\
         (`vmdisk facts --probe-dio`) nor an answer of `statx`. Entries under *tried* were observed under the named kernel;\n\
         all others are *read* from the named sources.\n\n",
    );
    filesystems(&mut out)?;
    btrfs(&mut out);
    trials(&mut out);
    Ok(out)
}

fn filesystems(out: &mut String) -> anyhow::Result<()> {
    out.push_str(
        "## Filesystems\n\nThe conclusions for Linux 6.12.95, if only the filesystem of a file is known.\n\n\
         | filesystem | O_DIRECT | tried under |\n|---|---|---|\n",
    );
    for kind in FsKind::NAMED {
        let name = kind.name();
        if *kind == FsKind::Btrfs {
            let _ = writeln!(out, "| btrfs | see below | {} |", tried("btrfs"));
            continue;
        }
        let text = format!(
            "{{\"kernel\": {{\"version\": [6, 12, 95]}}, \"mounts\": [{{\"id\": \"m1\", \"point\": \"/i\", \"fs\": \"f1\", \
             \"options\": {{\"data\": null}}}}], \"filesystems\": [{{\"id\": \"f1\", \"kind\": \"{name}\"}}], \
             \"files\": [{{\"path\": \"/i/a.img\", \"present\": true, \"mount\": \"m1\"}}]}}"
        );
        let facts = Facts::parse(&text).context("generated facts")?.facts;
        let said = match HostIndex::new(&facts).direct_io("/i/a.img") {
            Fact::Known(direct) => direct.because,
            Fact::Unknown(unknown) => format!("unknown: {}", unknown.detail),
            Fact::Absent | Fact::NotCollected => "unknown".to_owned(),
        };
        let _ = writeln!(out, "| {name} | {said} | {} |", tried(&name));
    }
    out.push('\n');
    Ok(())
}

/// Returns the kernels under which a filesystem was tried, or `read only`.
fn tried(filesystem: &str) -> String {
    let mut kernels: Vec<Version> = TRIALS
        .iter()
        .filter(|trial| trial.filesystem == filesystem)
        .map(|trial| trial.kernel)
        .collect();
    kernels.sort_unstable();
    kernels.dedup();
    if kernels.is_empty() {
        return "read only".to_owned();
    }
    let kernels: Vec<String> = kernels.iter().map(Version::to_string).collect();
    kernels.join(", ")
}

fn btrfs(out: &mut String) {
    out.push_str(
        "## btrfs, by kernel\n\nThe first three columns are the result of a write: for files with checksums, for NOCOW files with one copy of the\n\
        data, and for NOCOW files with several copies.\n\n\
         | Linux | checksums | NOCOW, one copy | NOCOW, several | tried under | source |\n|---|---|---|---|---|---|\n",
    );
    for row in TABLE {
        let range = if row.until.0 == u32::MAX {
            format!("{} and later", row.from)
        } else {
            format!("{} to before {}", row.from, row.until)
        };
        let mut kernels: Vec<Version> = TRIALS
            .iter()
            .filter(|trial| trial.filesystem == "btrfs")
            .map(|trial| trial.kernel)
            .filter(|kernel| (row.from..row.until).contains(kernel))
            .collect();
        kernels.dedup();
        kernels.sort_unstable();
        kernels.dedup();
        let tried = match kernels.as_slice() {
            [] => "read only".to_owned(),
            kernels => {
                let kernels: Vec<String> = kernels.iter().map(Version::to_string).collect();
                kernels.join(", ")
            }
        };
        let _ = writeln!(
            out,
            "| {range} | {} | {} | {} | {tried} | {} |",
            word(row.checksummed),
            word(row.plain),
            word(row.plain_redundant),
            row.source
        );
    }
    out.push_str("\nThere is no conclusion for kernels with backported patches that the version does not show:\n\n");
    for row in VENDORS {
        let _ = writeln!(
            out,
            "- {}, {} to before {}: {}",
            row.vendors.join(", "),
            row.from,
            row.until,
            row.why
        );
    }
    out.push('\n');
}

const fn word(write: Write) -> &'static str {
    match write {
        Write::Refused => "refused",
        Write::Direct => "direct",
        Write::Buffered => "page cache",
        Write::Bounced => "direct, copied first",
        Write::NotVerified => "unknown",
    }
}

fn trials(out: &mut String) {
    out.push_str(
        "## The trials\n\n`cargo xtask hostlab` boots Debian's kernels, writes 8 MiB with O_DIRECT in each place and counts the pages in the\n\
        page cache. In some places the source memory changes during the write, 300 times, and the file is\n\
        then read back: data with a wrong checksum is unreadable.\n\n\
         | place | Linux | result | unreadable after the race | method |\n|---|---|---|---|---|\n",
    );
    for DirectIoTrial {
        filesystem,
        with,
        kernel,
        how,
        seen,
        unreadable,
    } in TRIALS
    {
        let with = if with.is_empty() {
            String::new()
        } else {
            format!(", {with}")
        };
        let seen = match seen {
            Seen::Refused => "refused",
            Seen::Buffered => "page cache",
            Seen::Direct => "direct",
        };
        let raced = unreadable.map_or_else(
            || "not run".to_owned(),
            |(failed, all)| format!("{failed} of {all}"),
        );
        let _ = writeln!(
            out,
            "| {filesystem}{with} | {kernel} | {seen} | {raced} | {how} |"
        );
    }
}
