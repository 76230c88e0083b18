//! What the host lab's guest needs besides `vmdisk` and Debian's programs (`cargo xtask hostlab`).
//!
//! `send` hands a file over, `record` a host with its facts; the others are the trials that the strongest findings rest on.
#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "the lab's console is its output"
)]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use vmdisk_collect::{FactGroup, Request, collect};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("LAB {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[OsString]) -> anyhow::Result<()> {
    let words: Vec<&str> = arguments
        .iter()
        .map(|argument| argument.to_str().context("an argument is no UTF-8"))
        .collect::<anyhow::Result<_>>()?;
    match words.as_slice() {
        ["send", name, file] => send(name, Path::new(file)),
        ["record", name, paths @ ..] => record(name, paths),
        ["race", file, writes] => race(Path::new(file), writes.parse()?),
        ["direct", directory] => direct(Path::new(directory)),
        ["fill", device] => fill(Path::new(device)),
        ["stale", device, chunk] => stale(Path::new(device), chunk.parse()?),
        _ => bail!("no such trial: {words:?}"),
    }
}

/// Writes a file behind a line with its name and length, as the host takes it apart.
fn send(name: &str, file: &Path) -> anyhow::Result<()> {
    let bytes = fs::read(file).with_context(|| file.display().to_string())?;
    hand_over(name, &bytes)
}

fn hand_over(name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{name} {}", bytes.len())?;
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Collects facts while recording what they are from, and hands both over.
fn record(name: &str, paths: &[&str]) -> anyhow::Result<()> {
    let folder = Path::new("/tmp/recording");
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.paths = paths.iter().map(PathBuf::from).collect();
    request.groups = BTreeSet::from([
        FactGroup::Core,
        FactGroup::Lvm,
        FactGroup::Dm,
        FactGroup::Nvme,
    ]);
    request.record = Some(folder.to_owned());
    let facts = collect(&request);
    let mut tree = Vec::new();
    for path in paths {
        append(&mut tree, 'a', path, b"");
    }
    pack(folder, Path::new("/"), &mut tree)?;
    fs::remove_dir_all(folder)?;
    hand_over(&format!("{name}.facts.json"), facts.to_json().as_bytes())?;
    hand_over(&format!("{name}.tree"), &tree)
}

/// Packs a folder, names in order, so that one file of text holds it: git keeps no empty folder, and a host has many.
fn pack(folder: &Path, inside: &Path, tree: &mut Vec<u8>) -> anyhow::Result<()> {
    let mut names: Vec<OsString> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<_>>()?;
    names.sort_unstable();
    for name in names {
        let (path, inside) = (folder.join(&name), inside.join(&name));
        let text = inside.to_str().context("a name is no UTF-8")?;
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_symlink() {
            let target = fs::read_link(&path)?;
            append(tree, 'l', text, target.as_os_str().as_encoded_bytes());
        } else if metadata.is_dir() {
            append(tree, 'd', text, b"");
            pack(&path, &inside, tree)?;
        } else {
            append(tree, 'f', text, &fs::read(&path)?);
        }
    }
    Ok(())
}

/// One entry: what it is (asked for, folder, link, file), its path and the length of its content, then that.
fn append(tree: &mut Vec<u8>, kind: char, path: &str, content: &[u8]) {
    tree.extend_from_slice(format!("{kind} {path} {}\n", content.len()).as_bytes());
    tree.extend_from_slice(content);
    if !content.is_empty() {
        tree.push(b'\n');
    }
}

/// O_DIRECT on x86.
const O_DIRECT: i32 = 0o40_000;
const PIECE: usize = 64 * 1024;

/// A buffer that begins at a page, found within a larger one.
struct Aligned {
    storage: Vec<u8>,
    start: usize,
}

impl Aligned {
    const PAGE: usize = 4096;

    fn new() -> Self {
        // Not zeroes: a file system may store those as a hole.
        let storage = vec![7_u8; PIECE + Self::PAGE];
        let start = storage.as_ptr().align_offset(Self::PAGE).min(Self::PAGE);
        Self { storage, start }
    }

    fn bytes(&self) -> &[u8] {
        &self.storage[self.start..self.start + PIECE]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + PIECE]
    }
}

fn forget_cached_pages() -> anyhow::Result<()> {
    fs::write("/proc/sys/vm/drop_caches", "3").context("drop_caches")
}

/// Writes with O_DIRECT while the memory that is written from changes, as a guest's may, and reads it all back.
fn race(path: &Path, writes: u32) -> anyhow::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(O_DIRECT)
        .open(path)
        .with_context(|| path.display().to_string())?;
    let mut buffer = Aligned::new();
    let address = buffer.bytes().as_ptr() as u64;
    let mut write_errors = 0_u32;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| -> anyhow::Result<()> {
        // From outside, as the memory of a guest changes under QEMU, whatever this program's own threads may do.
        let memory = OpenOptions::new().write(true).open("/proc/self/mem")?;
        let done = &done;
        scope.spawn(move || {
            let mut state = 1_u32;
            while !done.load(Ordering::Relaxed) {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let place = u64::from(state >> 8) % PIECE as u64;
                // A byte that could not be changed is one chance less.
                let _ = memory.write_at(&[state as u8], address + place);
            }
        });
        for number in 0..writes {
            let written = file.write_at(buffer.bytes(), u64::from(number) * PIECE as u64);
            if !matches!(written, Ok(PIECE)) {
                write_errors += 1;
            }
        }
        done.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    file.sync_all()?;
    drop(file);
    forget_cached_pages()?;
    let file = File::open(path)?;
    let mut read_errors = 0_u32;
    for number in 0..writes {
        let read = file.read_at(buffer.bytes_mut(), u64::from(number) * PIECE as u64);
        read_errors += u32::from(!matches!(read, Ok(PIECE)));
    }
    println!("writes={writes} write_errors={write_errors} read_errors={read_errors}");
    Ok(())
}

/// Writes files with O_DIRECT and counts how many of their pages went through the page cache.
fn direct(directory: &Path) -> anyhow::Result<()> {
    const PIECES: u64 = 128;
    let buffer = Aligned::new();
    // What else the kernel does must not be counted, so that the quietest of several rounds tells.
    let mut fewest = u64::MAX;
    for round in 0..3 {
        // A new file each time: a journal of data keeps the pages of what was written before.
        let path = directory.join(format!("trial-{round}.img"));
        File::create(&path)?.set_len(PIECES * PIECE as u64)?;
        let opened = OpenOptions::new()
            .write(true)
            .custom_flags(O_DIRECT)
            .open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) => {
                println!("open={}", error.raw_os_error().unwrap_or(0));
                fs::remove_file(&path)?;
                return Ok(());
            }
        };
        forget_cached_pages()?;
        let (dirtied, cached) = (pages("nr_dirtied")?, pages("nr_file_pages")?);
        for number in 0..PIECES {
            file.write_all_at(buffer.bytes(), number * PIECE as u64)?;
        }
        // A fallback to buffered writing throws the pages away again, and a journal of data dirties none.
        let dirtied = pages("nr_dirtied")?.saturating_sub(dirtied);
        let cached = pages("nr_file_pages")?.saturating_sub(cached);
        fewest = fewest.min(dirtied.max(cached));
        fs::remove_file(&path)?;
    }
    let all = PIECES * (PIECE / Aligned::PAGE) as u64;
    println!("open=0 pages={all} cached={fewest}");
    Ok(())
}

/// A count of pages: `nr_dirtied` of those that were ever written to within the page cache, `nr_file_pages` of those in it.
fn pages(name: &str) -> anyhow::Result<u64> {
    let text = fs::read_to_string("/proc/vmstat")?;
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
        .with_context(|| format!("/proc/vmstat has no {name}"))
}

/// What the deleted volume held.
const SECRET: u8 = b'S';

fn length_of(device: &mut File) -> anyhow::Result<u64> {
    Ok(io::Seek::seek(device, io::SeekFrom::End(0))?)
}

/// Writes the same byte all over a device.
fn fill(device: &Path) -> anyhow::Result<()> {
    let mut file = OpenOptions::new().write(true).open(device)?;
    let length = length_of(&mut file)?;
    let piece = vec![SECRET; 1 << 20];
    let mut place = 0;
    while place < length {
        let count = piece.len().min((length - place) as usize);
        file.write_all_at(&piece[..count], place)?;
        place += count as u64;
    }
    file.sync_all()?;
    println!("bytes={length}");
    Ok(())
}

/// Writes 4 KiB of zeroes into each chunk of a new device, and counts the bytes that can be read from what was there before.
fn stale(device: &Path, chunk: u64) -> anyhow::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(device)?;
    let length = length_of(&mut file)?;
    let mut place = 0;
    while place < length {
        file.write_all_at(&[0; 4096], place + 4096)?;
        place += chunk;
    }
    file.sync_all()?;
    forget_cached_pages()?;
    let mut piece = vec![0; 1 << 20];
    let (mut place, mut stale) = (0, 0_u64);
    while place < length {
        let count = piece.len().min((length - place) as usize);
        file.read_exact_at(&mut piece[..count], place)?;
        stale += piece[..count]
            .iter()
            .filter(|byte| **byte == SECRET)
            .count() as u64;
        place += count as u64;
    }
    println!("bytes={length} stale={stale}");
    Ok(())
}
