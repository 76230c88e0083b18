//! A host in a guest: `cargo xtask hostlab` boots Debian's kernels under QEMU without KVM, builds storage stacks for
//! real, and holds the facts that `vmdisk` finds on each to those in `fixtures/facts-lab/`.
//!
//! Packages come from the system's own mirror and are unpacked under `target/hostlab`; nothing is installed, and no
//! rights are needed.

mod boot;
mod expected;
pub(crate) mod flushes;
mod initramfs;
pub(crate) mod packages;
mod results;
mod stacks;
mod trials;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use initramfs::Ours;
use packages::{Packages, Release};
use stacks::{STACKS, Stack};
use vmdisk_bench_runner::guest::Kernel;

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only this kernel; may be repeated
    #[arg(long = "kernel", value_name = "VERSION", value_parser = ["6.1", "6.12"])]
    kernels: Vec<String>,
    /// Only this stack; may be repeated
    #[arg(long = "stack", value_name = "NAME")]
    stacks: Vec<String>,
    /// Rounds of the presets that need root; with 6 and more their results show something, and are kept in
    /// target/hostlab/presets
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u32,
    /// Print everything the guest says
    #[arg(long)]
    verbose: bool,
}

/// The release the lab is made of, whatever newer Debian it runs on: its kernel is 6.1, its backports have 6.12.
const RELEASE: Release = Release {
    name: "bookworm",
    suites: &["", "-updates", "-backports", "-security"],
};

/// The kernels, and the suite of the lab's release each is in.
const KERNELS: &[(&str, &str)] = &[("6.1", ""), ("6.12", "-backports")];

/// Where stacks get their programs from.
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
            "there is no stack {name}; there are: {}",
            STACKS
                .iter()
                .map(|stack| stack.name)
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    let chosen: Vec<&Stack> = STACKS
        .iter()
        .filter(|stack| stacks.is_empty() || stacks.iter().any(|name| name == stack.name))
        .collect();
    let folder = crate::repository().join("target/hostlab");
    std::fs::create_dir_all(&folder)?;
    let ours = build(&folder)?;
    let packages = Packages::ready(&folder, RELEASE)?;
    let debian = packages.unpacked("tools", "", TOOLS, |_| true)?;
    let mut wrong = Vec::new();
    for (version, suite) in KERNELS {
        if !kernels.is_empty() && !kernels.iter().any(|kernel| kernel == version) {
            continue;
        }
        let kernel = Kernel::find(&unpacked_kernel(&packages, version, suite)?)?;
        let archive = initramfs::archive(&debian, &kernel, &ours, &chosen, *rounds)?.bytes();
        let scratch = tempfile::tempdir_in(&folder)?;
        // What was found under the other kernel is told all the same.
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
            failed.map(|stack| format!("Linux {version}: {stack} was not built or not taken down")),
        );
        expected::keep_recordings(version, &chosen, &outcome)?;
        wrong.extend(expected::compare(version, &chosen, &outcome)?);
        wrong.extend(trials::judge(version, &chosen, &outcome, *rounds));
        trials::keep_measurements(&folder.join("presets"), version, &outcome)?;
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("the lab found differences:\n{}", wrong.join("\n"))
}

/// Unpacks the kernel that guests of benchmarks boot, and says where it is.
pub(crate) fn kernel() -> anyhow::Result<()> {
    let (version, suite) = KERNELS[0];
    let folder = crate::repository().join("target/hostlab");
    std::fs::create_dir_all(&folder)?;
    let unpacked = unpacked_kernel(&Packages::ready(&folder, RELEASE)?, version, suite)?;
    Kernel::find(&unpacked)?;
    println!("{}", unpacked.display());
    Ok(())
}

fn unpacked_kernel(packages: &Packages, version: &str, suite: &str) -> anyhow::Result<PathBuf> {
    packages.unpacked(
        &format!("linux-{version}"),
        suite,
        &["linux-image-cloud-amd64"],
        |package| package.starts_with("linux-image-") && package != "linux-image-cloud-amd64",
    )
}

/// Builds the programs that run in the guest, without need of any library there.
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
        .context("cargo cannot be started")?;
    ensure!(status.success(), "the programs for the guest do not build");
    let built = output.join(TARGET).join("debug");
    Ok(Ours {
        vmdisk: built.join("vmdisk-under-test"),
        inside: built.join("lab-inside"),
    })
}
