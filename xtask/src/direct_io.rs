//! The page on what O_DIRECT does where: made from the tables that decide, and from the trials these were held to.

use std::fmt::Write as _;

use anyhow::Context as _;
use vmdisk::facts::btrfs_regime::{TABLE, VENDORS, Write};
use vmdisk::facts::direct_io::trials::{Seen, TRIALS, Trial};
use vmdisk::facts::{Fact, Facts, FsKind, HostIndex, Version};

/// The page.
pub(crate) fn page() -> anyhow::Result<String> {
    let mut out = String::from(
        "<!-- Made by `cargo xtask codegen` from crates/vmdisk-facts. -->\n\n\
         # What O_DIRECT does where\n\n\
         This is what [facts](facts.md) conclude where nothing better is known: neither a trial write on the host itself\n\
         (`vmdisk facts --probe-dio`) nor an answer of `statx`. What is called *tried* was seen here, under the kernel that is named;\n\
         everything else is *read* from the sources that are named.\n\n",
    );
    filesystems(&mut out)?;
    btrfs(&mut out);
    trials(&mut out);
    Ok(out)
}

fn filesystems(out: &mut String) -> anyhow::Result<()> {
    out.push_str(
        "## Filesystems\n\nAs concluded for Linux 6.12.95, for a file of which nothing but the filesystem is known.\n\n\
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
        let facts = Facts::parse(&text).context("facts of our own")?.facts;
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

/// The kernels under which a filesystem was tried, or that it was not.
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
        "## btrfs, by kernel\n\nThe first three columns are what becomes of a write, for files with checksums, for NOCOW files where data\n\
         is kept once, and for NOCOW files where it is kept several times.\n\n\
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
    out.push_str("\nWhere vendors carry patches back without the version showing it, nothing is concluded:\n\n");
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
        Write::NotVerified => "not known",
    }
}

fn trials(out: &mut String) {
    out.push_str(
        "## The trials\n\n`cargo xtask hostlab` boots Debian's kernels, writes 8 MiB with O_DIRECT in each place and counts the pages that went\n\
         through the page cache. In some places the memory that is written from changes meanwhile, 300 times, and everything is\n\
         read back: what cannot be read had a wrong checksum.\n\n\
         | place | Linux | seen | unreadable after the race | by |\n|---|---|---|---|---|\n",
    );
    for Trial {
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
