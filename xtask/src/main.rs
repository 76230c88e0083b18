//! Chores of this repository: `cargo xtask --help`.
#![deny(clippy::too_many_lines, clippy::excessive_nesting)]
#![allow(clippy::print_stdout, reason = "chores print their results")]

mod api;
mod attacks;
mod bench_pairs;
mod codegen;
mod costs;
mod cycles;
mod direct_io;
mod dist;
mod fleet;
mod fuzz;
mod hostlab;
mod libvirts;
mod lines;
mod meanings;
mod memory;
mod mutants;
mod new_rule;
mod qemus;
mod random;
mod release;
mod site;
mod stubs;
mod target_diff;
mod type_names;
mod wasm;

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
    /// Write the public API of the promised crates under docs/api/, or check that it is up to date
    Api {
        /// Write no files; fail if a file is out of date
        #[arg(long)]
        check: bool,
    },
    /// Give the release binary mutated inputs of every kind, and its language server mutated texts
    Attacks(attacks::Arguments),
    /// Judge `vmdisk bench` by real runs: equal pairs, pairs with an injected slowdown, and fio by hand (needs fio)
    BenchPairs(bench_pairs::Arguments),
    /// Write the generated pages and schemas under docs/, or check that they are up to date
    Codegen {
        /// Write no files; fail if a file is out of date
        #[arg(long)]
        check: bool,
    },
    /// Measure the costs of vmdisk: instructions of ten workloads, bytes of the binary, crates, and memory that grows
    /// with the number of files (needs valgrind)
    Costs(costs::Arguments),
    /// Fail if files of a crate import each other in a cycle
    Cycles,
    /// Write the files of a release: a tarball, a Debian package and a Python wheel
    Dist(dist::Arguments),
    /// Build the guest with which tests count flushes and look at disks: a kernel and an initramfs, in target/guest
    Guest {
        /// Take a kernel with the drivers of all buses, and another instruction set's QEMU and UEFI; below target/guest
        #[arg(value_parser = hostlab::tiny::ARCHITECTURES.map(|it| it.name))]
        architecture: Option<String>,
    },
    /// Run the fuzz targets, each for a limited time, starting from the committed inputs
    Fuzz(fuzz::Arguments),
    /// Unpack Debian's cloud kernel for the guests of benchmarks in tests, and print its path
    Kernel,
    /// Boot hosts in a guest, build real storage stacks, and compare the facts of each with the expected files
    Hostlab(hostlab::Arguments),
    /// Download libvirt 11.3 with QEMU 10.0 from the system's mirror and unpack them without installation (needs root)
    Libvirts {
        /// Directory for the files [default: target/libvirts, which tests use]
        folder: Option<PathBuf>,
    },
    /// Count the lines of code of each crate, without comments, blank lines and tests, and of all tests
    Lines(lines::Arguments),
    /// Change conditions of crates, one at a time, and print the changes that no test notices
    Mutants(mutants::Arguments),
    /// Write the file of a new rule from the template of its crate, and add the rule to the crate's list
    NewRule(new_rule::Arguments),
    /// Download QEMU 5.2, 7.2, 10.0 and 11.1 from the system's mirror and unpack them without installation
    Qemus {
        /// Directory for the files [default: target/qemus, which tests use]
        folder: Option<PathBuf>,
    },
    /// Record the introspection of the QEMUs of `cargo xtask qemus` in fixtures/capabilities, for codegen
    Record {
        /// Directory of the unpacked QEMUs [default: target/qemus]
        folder: Option<PathBuf>,
    },
    /// Record the default interface of the machines of all installed QEMUs, which must be of one version
    Interfaces,
    /// Write target/playground/index.html: a page without a server that checks configurations as one types
    Playground,
    /// Write target/site/book: the documentation as a site, with `mdbook`
    Site,
    /// Print the capabilities, properties and members that one of two targets has and the other lacks
    TargetDiff(target_diff::Arguments),
    /// Find public types of two crates that have one name
    TypeNames,
    /// Build the library in WebAssembly, for the packages for npm and Go
    Wasm(wasm::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().chore {
        Chore::Api { check } => api::run(check),
        Chore::Attacks(arguments) => attacks::run(&arguments),
        Chore::BenchPairs(arguments) => bench_pairs::run(&arguments),
        Chore::Codegen { check } => codegen::run(check),
        Chore::Costs(arguments) => costs::run(&arguments),
        Chore::Cycles => cycles::run(),
        Chore::Guest { architecture } => hostlab::tiny::run(architecture.as_deref()),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Interfaces => qemus::record_interfaces(),
        Chore::Kernel => hostlab::kernel(),
        Chore::Hostlab(arguments) => hostlab::run(&arguments),
        Chore::Libvirts { folder } => libvirts::run(folder),
        Chore::Lines(arguments) => lines::run(&arguments),
        Chore::Mutants(arguments) => mutants::run(&arguments),
        Chore::NewRule(arguments) => new_rule::run(&arguments),
        Chore::Qemus { folder } => qemus::run(folder),
        Chore::Record { folder } => qemus::record(folder),
        Chore::TargetDiff(arguments) => {
            target_diff::run(&arguments);
            Ok(())
        }
        Chore::TypeNames => type_names::run(),
        Chore::Site => site::run(),
        Chore::Playground => wasm::playground(),
        Chore::Wasm(arguments) => wasm::run(&arguments),
        Chore::Dist(arguments) => dist::run(&arguments),
    }
}

/// Returns the root of the repository.
fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the xtask package is in the repository")
        .to_owned()
}
