//! Image files: creation as configured, and filling over their whole length.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FallocateFlags;
use vmdisk_model::{Creation, Format, Preallocation};

use super::noise::Noise;
use super::storage::PreparedStorage;
use crate::programs;
use crate::safety::Scratch;
use crate::{Cancel, Configuration, Error};

/// Timeout of qemu-img for creating or filling one image.
const LIMIT: Duration = Duration::from_secs(3600);

/// Returns the format of a configuration's image.
fn format(configuration: &Configuration) -> Format {
    configuration
        .disk()
        .backend
        .image()
        .and_then(|image| image.format)
        .unwrap_or(Format::Raw)
}

/// Returns the maximum size of an image file, including its tables.
pub(super) fn largest_bytes(configuration: &Configuration) -> u64 {
    let size = configuration.size.0;
    if format(configuration) == Format::Raw {
        return size;
    }
    size + size / 64 + (1 << 20)
}

/// Returns the size of the file that an image is filled from; raw images are filled directly.
pub(super) fn filling_bytes(configuration: &Configuration) -> u64 {
    if format(configuration) == Format::Raw {
        return 0;
    }
    configuration.size.0
}

/// Creates the image file of a configuration.
pub(super) fn create(
    scratch: &Scratch,
    name: &str,
    configuration: &Configuration,
    cancel: &Cancel,
) -> Result<PathBuf, Error> {
    let size = configuration.size.0;
    let creation = configuration
        .disk()
        .backend
        .image()
        .and_then(|image| image.creation.as_ref());
    let (path, file) = scratch
        .new_file(name)
        .map_err(|error| Error::refused("to create a file", error))?;
    let failed = |error: std::io::Error| Error::io("allocate", &path, error);
    match (format(configuration), creation) {
        (Format::Raw, creation) => {
            let preallocation = match creation {
                Some(Creation::RawFile { preallocation, .. }) => *preallocation,
                _ => None,
            };
            match preallocation.unwrap_or(Preallocation::Off) {
                Preallocation::Off => file.set_len(size).map_err(failed)?,
                Preallocation::Falloc => {
                    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size)
                        .map_err(|error| failed(error.into()))?;
                }
                Preallocation::Full => {
                    let block = vec![0_u8; 1 << 20];
                    let mut left = size;
                    while left > 0 {
                        cancel.check()?;
                        let now = left.min(1 << 20);
                        (&file)
                            .write_all(&block[..usize::try_from(now).expect("a MiB at most")])
                            .map_err(failed)?;
                        left -= now;
                    }
                    file.sync_all().map_err(failed)?;
                }
            }
        }
        (Format::Qcow2, Some(Creation::Qcow2(creation))) => {
            let vmdisk_model::Qcow2Creation {
                // The configuration's size is the one the guest sees.
                size: _,
                preallocation,
                cluster_size,
                extended_l2,
                lazy_refcounts,
                // Benchmarks do not use backing chains.
                backing: _,
            } = creation;
            let mut options = Vec::new();
            if let Some(preallocation) = preallocation {
                options.push(format!("preallocation={}", preallocation.as_str()));
            }
            if let Some(cluster_size) = cluster_size {
                options.push(format!("cluster_size={}", cluster_size.0));
            }
            let switch = |on: bool| if on { "on" } else { "off" };
            if let Some(extended) = extended_l2 {
                options.push(format!("extended_l2={}", switch(*extended)));
            }
            if let Some(lazy) = lazy_refcounts {
                options.push(format!("lazy_refcounts={}", switch(*lazy)));
            }
            qemu_img_create(&path, "qcow2", &options, size, cancel)?;
        }
        (other, _) => qemu_img_create(&path, other.as_str(), &[], size, cancel)?,
    }
    Ok(path)
}

/// Writes every byte of the storage as often as the configuration requires, with new random data each time. Guests fill
/// disks behind sockets.
pub(super) fn fill(
    configuration: &Configuration,
    storage: &PreparedStorage,
    seed: u32,
    cancel: &Cancel,
) -> Result<(), Error> {
    if storage.socket_queues().is_some() {
        return Ok(());
    }
    let mut seeds = (0..configuration.fills).map(|fill| seed.wrapping_add(fill));
    seeds.try_for_each(|seed| fill_once(configuration, storage, seed, cancel))
}

fn fill_once(
    configuration: &Configuration,
    storage: &PreparedStorage,
    seed: u32,
    cancel: &Cancel,
) -> Result<(), Error> {
    let format = format(configuration);
    if format == Format::Raw {
        return write_noise(&storage.path, storage.offset, storage.length, seed, cancel);
    }
    // Through the format: qemu-img copies random data into the existing image.
    let source = storage.path.with_extension("noise");
    File::create_new(&source).map_err(|error| Error::io("create", &source, error))?;
    let filled = write_noise(&source, 0, storage.length, seed, cancel).and_then(|()| {
        let word = OsStr::new;
        let argv = [
            word("qemu-img"),
            word("convert"),
            word("-n"),
            word("-f"),
            word("raw"),
            word("-O"),
            word(format.as_str()),
            source.as_os_str(),
            storage.path.as_os_str(),
        ];
        programs::output(&argv, LIMIT, cancel).map(|_| ())
    });
    fs::remove_file(&source).map_err(|error| Error::io("remove", &source, error))?;
    filled
}

fn qemu_img_create(
    path: &Path,
    format: &str,
    options: &[String],
    size: u64,
    cancel: &Cancel,
) -> Result<(), Error> {
    let (options, size) = (options.join(","), size.to_string());
    let word = OsStr::new;
    let mut argv = vec![
        word("qemu-img"),
        word("create"),
        word("-q"),
        word("-f"),
        word(format),
    ];
    if !options.is_empty() {
        argv.extend([word("-o"), word(&options)]);
    }
    argv.extend([path.as_os_str(), word(&size)]);
    programs::output(&argv, LIMIT, cancel).map(|_| ())
}

fn write_noise(
    path: &Path,
    offset: u64,
    length: u64,
    seed: u32,
    cancel: &Cancel,
) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::io("fill", path, error);
    let mut file = OpenOptions::new().write(true).open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let mut noise = Noise::new(u64::from(seed));
    let mut block = vec![0_u8; 1 << 20];
    let mut writer = BufWriter::with_capacity(0, &file);
    let mut left = length;
    while left > 0 {
        cancel.check()?;
        let now = usize::try_from(left.min(1 << 20)).expect("a MiB at most");
        noise.fill(&mut block[..now]);
        writer.write_all(&block[..now]).map_err(failed)?;
        left -= now as u64;
    }
    writer.flush().map_err(failed)?;
    file.sync_all().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::storage::StorageKind;
    use crate::{PlanOptions, read_plan};

    #[test]
    fn storage_is_filled_as_often_as_the_plan_requires() {
        let filled = |fills: u32, seed: u32| {
            let text = format!(
                "version: 1\nname: t\nquestion: q\nsize: 1M\nphases: [steady]\nfills: {fills}\n\
                 workloads: [4k-random-read-qd1]\n"
            );
            let plan = read_plan(&text, "t", &PlanOptions::default()).unwrap();
            let file = tempfile::NamedTempFile::new().unwrap();
            let storage = PreparedStorage::new(file.path().to_owned(), 1 << 20, StorageKind::File);
            fill(&plan.configurations[0], &storage, seed, &Cancel::new()).unwrap();
            fs::read(file.path()).unwrap()
        };
        assert_eq!(filled(1, 7).len(), 1 << 20);
        assert!(filled(1, 7) != filled(1, 9), "the data differs");
        assert!(filled(3, 7) == filled(1, 9), "the third fill is the last");
    }
}
