//! A host in a guest: `cargo xtask hostlab` boots Debian's kernels under QEMU without KVM, builds real storage
//! stacks, and compares the facts that `vmdisk` collects on each with `fixtures/facts-lab/`.
//!
//! Packages come from the system's mirror and are unpacked under `target/hostlab`; nothing is installed, and no
//! privileges are needed.

mod boot;
mod expected;
mod initramfs;
mod io_path;
pub(crate) mod packages;
mod results;
mod stacks;
pub(crate) mod tiny;
mod trials;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use initramfs::Ours;
use packages::{Packages, Release};
use stacks::{STACKS, Stack};
use vmdisk_bench_runner::guest::Kernel;

/// The parts to run
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only this kernel; may be repeated
    #[arg(long = "kernel", value_name = "VERSION", value_parser = ["6.1", "6.12"])]
    kernels: Vec<String>,
    /// Only this stack; may be repeated
    #[arg(long = "stack", value_name = "NAME")]
    stacks: Vec<String>,
    /// Rounds of the presets that need root; 6 or more give significant results, which are stored in
    /// target/hostlab/presets
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u32,
    /// Print all output of the guest
    #[arg(long)]
    verbose: bool,
}

/// The Debian release of the lab, independent of the host's: its kernel is 6.1, its backports have 6.12.
const RELEASE: Release = Release {
    name: "bookworm",
    suites: &["", "-updates", "-backports", "-security"],
};

/// The kernels, with their suite in the lab's release.
const KERNELS: &[(&str, &str)] = &[("6.1", ""), ("6.12", "-backports")];

/// The package that depends on the newest kernel for virtual machines.
const CLOUD: &str = "linux-image-cloud-amd64";

/// The packages with programs for the stacks.
const TOOLS: &[&str] = &[
    "bcache-tools",
    "btrfs-progs",
    "coreutils",
    "cryptsetup-bin",
    "dash",
    "e2fsprogs",
    "fdisk",
    "fio",
    "kmod",
    "lvm2",
    "mdadm",
    "mount",
    "nvme-cli",
    "thin-provisioning-tools",
    "udev",
    "util-linux",
    "xfsprogs",
];

/// Runs the lab.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments {
        kernels,
        stacks,
        rounds,
        verbose,
    } = arguments;
    for name in stacks {
        ensure!(
            STACKS.iter().any(|stack| stack.name == name),
            "unknown stack `{name}`; expected one of {}",
            STACKS
                .iter()
                .map(|stack| stack.name)
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    let mut chosen: Vec<&Stack> = STACKS
        .iter()
        .filter(|stack| stacks.is_empty() || stacks.iter().any(|name| name == stack.name))
        .collect();
    if boot::virtiofsd().is_none() {
        chosen.retain(|stack| stack.name != "virtiofs");
        println!("skipped: virtiofs: virtiofsd is not installed, or this is not root");
    }
    let folder = crate::repository().join("target/hostlab");
    std::fs::create_dir_all(&folder)?;
    let ours = build(&folder)?;
    let packages = Packages::ready(&folder, RELEASE)?;
    let debian = packages.unpacked("tools", "", TOOLS, |_| true)?;
    let booted = kernels_of(&packages, kernels)?;
    // Guests take long, and another program may need packages.
    drop(packages);
    let mut wrong = Vec::new();
    for (version, kernel) in booted {
        let archive = initramfs::archive(&debian, &kernel, &ours, &chosen, *rounds)?.bytes();
        let scratch = tempfile::tempdir_in(&folder)?;
        // A failure does not hide the findings under the other kernel.
        let outcome = match boot::boot(&kernel.image, &archive, scratch.path(), *rounds) {
            Ok(outcome) => outcome,
            Err(error) => {
                wrong.push(format!("Linux {version}: {error:#}"));
                continue;
            }
        };
        println!(
            "Linux {version}: {} stacks in {:.1} s ({} MiB of initramfs)",
            chosen.len(),
            outcome.took.as_secs_f64(),
            archive.len() >> 20
        );
        for line in &outcome.said {
            if *verbose
                || !(line.starts_with("done ")
                    || line.starts_with("up ")
                    || line.starts_with("end "))
            {
                println!("  {line}");
            }
        }
        let failed = outcome
            .said
            .iter()
            .filter_map(|line| line.strip_prefix("failed "));
        wrong.extend(
            failed.map(|stack| format!("Linux {version}: {stack} was not built or not removed")),
        );
        expected::keep_recordings(version, &chosen, &outcome)?;
        wrong.extend(expected::compare(version, &chosen, &outcome)?);
        wrong.extend(io_path::compare(version, &chosen, &outcome)?);
        wrong.extend(trials::judge(version, &chosen, &outcome, *rounds));
        trials::keep_measurements(&folder.join("presets"), version, &outcome)?;
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("the lab found differences:\n{}", wrong.join("\n"))
}

/// Unpacks the kernels of these versions; without any, all.
fn kernels_of(
    packages: &Packages,
    versions: &[String],
) -> anyhow::Result<Vec<(&'static str, Kernel)>> {
    let is_chosen = |version: &str| versions.is_empty() || versions.iter().any(|it| it == version);
    let kernels = KERNELS.iter().filter(|(version, _)| is_chosen(version));
    let unpacked = kernels.map(|(version, suite)| {
        let root = unpacked_kernel(packages, version, suite, CLOUD)?;
        Ok((*version, Kernel::find(&root)?))
    });
    unpacked.collect()
}

/// Unpacks the kernel for guests of benchmarks, and prints its path.
pub(crate) fn kernel() -> anyhow::Result<()> {
    let (version, suite) = KERNELS[0];
    let folder = crate::repository().join("target/hostlab");
    std::fs::create_dir_all(&folder)?;
    let unpacked = unpacked_kernel(&Packages::ready(&folder, RELEASE)?, version, suite, CLOUD)?;
    Kernel::find(&unpacked)?;
    println!("{}", unpacked.display());
    Ok(())
}

/// Unpacks the kernel that a package depends on.
fn unpacked_kernel(
    packages: &Packages,
    name: &str,
    suite: &str,
    latest: &str,
) -> anyhow::Result<PathBuf> {
    packages.unpacked(&format!("linux-{name}"), suite, &[latest], |package| {
        package.starts_with("linux-image-") && package != latest
    })
}

/// Builds the programs for the guest, statically linked.
fn build(folder: &Path) -> anyhow::Result<Ours> {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let output = folder.join("cargo");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--locked",
            "-p",
            "vmdisk-tests",
            "--bins",
        ])
        .args(["--target", TARGET, "--target-dir"])
        .arg(&output)
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .env("CARGO_PROFILE_DEV_STRIP", "symbols")
        .current_dir(crate::repository())
        .status()
        .context("could not start cargo")?;
    ensure!(status.success(), "the build of the guest's programs failed");
    let built = output.join(TARGET).join("debug");
    Ok(Ours {
        vmdisk: built.join("vmdisk-under-test"),
        inside: built.join("lab-inside"),
    })
}
