//! Chores of this repository: `cargo xtask --help`.
#![allow(clippy::print_stdout, reason = "chores talk to whoever runs them")]

mod codegen;
mod cycles;
mod direct_io;
mod fleet;
mod fuzz;
mod hostlab;
mod libvirts;
mod qemus;
mod race;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of this repository")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Writes the generated pages and schemas under docs/, or checks that they are up to date
    Codegen {
        /// Write nothing; fail if a file differs from what would be written
        #[arg(long)]
        check: bool,
    },
    /// Fails at files of a crate that import each other, except for the cycles that are listed as known
    Cycles,
    /// Writes realistic, seeded domain files, most clean, some with findings
    Domains {
        /// Folder to write into; made if missing
        folder: PathBuf,
        /// How many
        #[arg(long, default_value_t = 1000)]
        count: u32,
        /// Seed: the same seed gives the same files
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Makes the guest in which tests count flushes: a kernel and its first file system, in target/guest
    Guest,
    /// Runs the fuzz targets, each for a while, from the committed inputs on
    Fuzz(fuzz::Arguments),
    /// Unpacks Debian's cloud kernel, which the guests of benchmarks boot in tests, and prints where it is
    Kernel,
    /// Boots hosts in a guest, builds storage stacks for real, and holds the facts of each to what is written
    Hostlab(hostlab::Arguments),
    /// Fetches libvirt 11.3 with QEMU 10.0 from the system's own mirror and unpacks them beside the system (needs root)
    Libvirts {
        /// Folder to unpack into [default: target/libvirts, where tests look for it]
        folder: Option<PathBuf>,
    },
    /// Fetches QEMU 5.2, 7.2, 10.0 and 11.1 from the system's own mirror and unpacks them side by side, installing none
    Qemus {
        /// Folder to unpack into [default: target/qemus, where tests look for them]
        folder: Option<PathBuf>,
    },
    /// Records the answers of the QEMUs that `cargo xtask qemus` unpacked, in fixtures/capabilities; codegen reduces them
    Record {
        /// Folder of the unpacked QEMUs [default: target/qemus]
        folder: Option<PathBuf>,
    },
    /// Times `vmdisk lint -j1` beside `xmllint` on 1,000 generated domains, in one run
    Race {
        /// Rounds; each runs every command once, in turn
        #[arg(long, default_value_t = 15)]
        rounds: u32,
        /// How many domain files
        #[arg(long, default_value_t = 1000)]
        count: u32,
        /// Seed of the domain files
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().chore {
        Chore::Codegen { check } => codegen::run(check),
        Chore::Cycles => cycles::run(),
        Chore::Domains {
            folder,
            count,
            seed,
        } => {
            let bytes = fleet::write_all(&folder, count, seed)?;
            println!("{count} domains, {bytes} bytes, in {}", folder.display());
            Ok(())
        }
        Chore::Guest => hostlab::flushes::run(),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Kernel => hostlab::kernel(),
        Chore::Hostlab(arguments) => hostlab::run(&arguments),
        Chore::Libvirts { folder } => libvirts::run(folder),
        Chore::Qemus { folder } => qemus::run(folder),
        Chore::Record { folder } => qemus::record(folder),
        Chore::Race {
            rounds,
            count,
            seed,
        } => race::run(rounds, count, seed),
    }
}

/// The root of the repository.
fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the xtask package lies in the repository")
        .to_owned()
}
