//! Answers of QEMU programs, kept in the user's cache: a program that is the same still is not asked again.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, DirBuilder};
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vmdisk::facts::Introspection;
use vmdisk::facts::capability::TABLE;

use crate::input::bounded::{self, MAX_BYTES};

/// The identity of a program and of the query, to detect changes.
#[derive(Debug)]
pub(super) struct Key {
    file: PathBuf,
    identity: Identity,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    path: Vec<u8>,
    size: u64,
    modified_seconds: i64,
    modified_nanoseconds: i64,
    /// A number that changes with the questions.
    questions: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    identity: Identity,
    introspection: Introspection,
}

impl Key {
    /// The key of a program; `None` where the user has no cache or the program is not there.
    pub(super) fn of(program: &Path) -> Option<Self> {
        let path = fs::canonicalize(program).ok()?;
        let metadata = fs::metadata(&path).ok()?;
        let identity = Identity {
            path: path.as_os_str().as_bytes().to_vec(),
            size: metadata.size(),
            modified_seconds: metadata.mtime(),
            modified_nanoseconds: metadata.mtime_nsec(),
            questions: questions(),
        };
        let mut hasher = DefaultHasher::new();
        identity.path.hash(&mut hasher);
        let name = format!("{:016x}.json", hasher.finish());
        Some(Key {
            file: folder()?.join(name),
            identity,
        })
    }

    /// The program's earlier answer. If the file is unreadable, the program is probed again.
    pub(super) fn read(&self) -> Option<Introspection> {
        let text = bounded::regular(&self.file, MAX_BYTES).ok()?;
        let entry: Entry = serde_json::from_slice(&text).ok()?;
        (entry.identity == self.identity).then_some(entry.introspection)
    }

    /// Keeps what the program said, whole or not at all; without the right to write, it is asked again next time.
    pub(super) fn write(self, introspection: &Introspection) {
        let entry = Entry {
            identity: self.identity,
            introspection: introspection.clone(),
        };
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        if let (Ok(()), Ok(text)) = (made, serde_json::to_vec(&entry)) {
            // The answer is there already; keeping it saves a tenth of a second next time, and no more.
            let _ = crate::atomic::rewrite(&self.file, |file| file.write_all(&text));
        }
    }
}

/// The folder of the user's cache, where the user has one.
fn folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("vmdisk").join("qemu"))
}

fn questions() -> u64 {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    for row in TABLE {
        (row.name, format!("{:?}", row.probe)).hash(&mut hasher);
    }
    hasher.finish()
}
