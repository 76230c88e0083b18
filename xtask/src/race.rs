//! Compares `vmdisk lint -j1` with `xmllint` in one run, as ratios.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::{fleet, repository};

/// The path of libvirt's schema in distributions.
const SCHEMA: &str = "/usr/share/libvirt/schemas/domain.rng";

struct Runner {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
}

/// Builds the release binary, generates the domains, times all commands in turn and prints ratios. With a corpus, its
/// domains are raced too.
pub(crate) fn run(rounds: u32, count: u32, seed: u64) -> anyhow::Result<()> {
    let vmdisk = build_release()?;
    let folder = tempfile::tempdir()?;
    let bytes = fleet::write_all(folder.path(), count, seed)?;
    let files = sorted_files(folder.path())?;
    println!("{rounds} rounds in turn; median, minimum, ratio of medians to xmllint --noout");
    let about = format!("{count} domains, {bytes} bytes, seed {seed}");
    race(&about, &runners(&vmdisk, &files), rounds)?;
    let mut of_one = runners(&vmdisk, &[one_small_file(&files)?]);
    // The schema takes a hundred times as long as the file.
    of_one.retain(|runner| !runner.arguments.iter().any(|word| word == SCHEMA));
    race("one small file", &of_one, rounds * 20)?;
    if let Some(corpus) = std::env::var_os("VMDISK_CORPUS") {
        let files = sorted_files(&Path::new(&corpus).join("qemuxmlconf"))?;
        let about = format!("{} domains of libvirt's tests", files.len());
        race(&about, &runners(&vmdisk, &files), rounds)?;
    }
    Ok(())
}

/// Times commands in turn, and prints their times and ratios.
fn race(about: &str, runners: &[Runner], rounds: u32) -> anyhow::Result<()> {
    let mut times = vec![Vec::new(); runners.len()];
    for round in 0..=rounds {
        for (runner, times) in runners.iter().zip(&mut times) {
            let took = time(&runner.program, &runner.arguments)?;
            // The first round warms up the page cache and does not count.
            if round > 0 {
                times.push(took);
            }
        }
    }
    let base = runners
        .iter()
        .position(|runner| runner.name == "xmllint --noout")
        .map(|nth| median(&times[nth]));
    println!("{about}:");
    for (runner, times) in runners.iter().zip(&times) {
        let minimum = times.iter().min().context("at least one round")?;
        let median = median(times);
        let ratio = base.map_or(String::from("-"), |base| {
            format!("{:.2}", median.as_secs_f64() / base.as_secs_f64())
        });
        println!(
            "  {:30} {:>8.2} ms {:>8.2} ms {ratio:>6}",
            runner.name,
            milliseconds(median),
            milliseconds(*minimum)
        );
    }
    Ok(())
}

/// Builds the binary that ships for this processor, and returns its path.
pub(crate) fn build_release() -> anyhow::Result<PathBuf> {
    build_static(std::env::consts::ARCH)
}

/// Builds the binary for a release, which needs no C library, and returns its path.
pub(crate) fn build_static(arch: &str) -> anyhow::Result<PathBuf> {
    let target = format!("{arch}-unknown-linux-musl");
    let linker = format!(
        "CARGO_TARGET_{}_LINKER",
        target.replace('-', "_").to_uppercase()
    );
    let mut build = Command::new("cargo");
    build
        .args([
            "build",
            "--release",
            "--quiet",
            "--package",
            "vmdisk-cli",
            "--target",
            &target,
        ])
        .env("RUSTFLAGS", release_flags()?)
        .current_dir(repository());
    if arch != std::env::consts::ARCH && std::env::var_os(&linker).is_none() {
        // The linker of this host links for this host only.
        build.env(linker, "rust-lld");
    }
    if !build.status()?.success() {
        bail!("the release build failed; `rustup target add {target}` installs what it needs");
    }
    Ok(target_folder().join(target).join("release/vmdisk"))
}

/// Builds the libraries for C and Python, and returns their directory. Where `cargo-zigbuild` is installed, they are for a
/// processor and for the C library of RHEL 8 and all that came later; otherwise for this host.
pub(crate) fn build_libraries(arch: &str) -> anyhow::Result<Option<PathBuf>> {
    let has_zig = Command::new("cargo-zigbuild").arg("--version").output();
    let has_zig = has_zig.is_ok_and(|zig| zig.status.success());
    if arch != std::env::consts::ARCH && !has_zig {
        return Ok(None);
    }
    let target = format!("{arch}-unknown-linux-gnu");
    let mut build = Command::new("cargo");
    match has_zig {
        true => build.args(["zigbuild", "--target", &format!("{target}.2.28")]),
        false => build.arg("build"),
    };
    build.args(["--release", "--quiet"]);
    build.args(["--package", "vmdisk-capi", "--package", "vmdisk-python"]);
    build.env("RUSTFLAGS", release_flags()?);
    if !build.current_dir(repository()).status()?.success() {
        bail!(
            "the libraries could not be built; `rustup target add {target}` installs what they need"
        );
    }
    let folder = target_folder();
    Ok(Some(match has_zig {
        true => folder.join(target).join("release"),
        false => folder.join("release"),
    }))
}

/// The flags of the compiler for a binary that names no directory of this host: messages of a panic name the sources of
/// crates, which lie below cargo's home.
pub(crate) fn release_flags() -> anyhow::Result<String> {
    Ok(format!(
        "--remap-path-prefix={}=/cargo",
        cargo_home()?.display()
    ))
}

/// The directory that cargo keeps crates in.
pub(crate) fn cargo_home() -> anyhow::Result<PathBuf> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(home)
        .context("neither CARGO_HOME nor HOME is set")
}

/// Returns the commands to compare.
fn runners(vmdisk: &Path, files: &[String]) -> Vec<Runner> {
    let with = |first: &[&str], files: &[String]| -> Vec<String> {
        first
            .iter()
            .map(|word| (*word).to_owned())
            .chain(files.iter().cloned())
            .collect()
    };
    let mut runners = vec![
        Runner {
            name: "vmdisk lint -j1",
            program: vmdisk.to_owned(),
            arguments: with(
                &["lint", "-j1", "--fail-on", "error", "--format", "concise"],
                files,
            ),
        },
        Runner {
            name: "vmdisk lint -j1 --format json",
            program: vmdisk.to_owned(),
            arguments: with(&["lint", "-j1", "--format", "json"], files),
        },
    ];
    if which("xmllint") {
        runners.push(Runner {
            name: "xmllint --noout",
            program: "xmllint".into(),
            arguments: with(&["--noout"], files),
        });
        if Path::new(SCHEMA).exists() {
            runners.push(Runner {
                name: "xmllint --noout --relaxng",
                program: "xmllint".into(),
                arguments: with(&["--noout", "--relaxng", SCHEMA], files),
            });
        }
    } else {
        println!("xmllint is not installed: no comparison");
    }
    runners
}

fn time(program: &Path, arguments: &[String]) -> anyhow::Result<Duration> {
    let start = Instant::now();
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| program.display().to_string())?;
    Ok(start.elapsed())
}

fn sorted_files(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|word| word == "xml") {
            files.push(path.to_str().context("the names are UTF-8")?.to_owned());
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the smallest file of the fleet, about 1.4 KB, the size of a file written by hand.
fn one_small_file(files: &[String]) -> anyhow::Result<String> {
    let mut sized: Vec<(u64, &String)> = Vec::new();
    for file in files {
        sized.push((std::fs::metadata(file)?.len(), file));
    }
    sized.sort();
    Ok(sized.first().context("at least one file")?.1.clone())
}

pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}

fn which(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}

pub(crate) fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted[sorted.len() / 2]
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
