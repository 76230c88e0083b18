//! Images by hand, byte by byte.

use vmdisk_image::{Header, Qcow2Header, probe};

/// An image under construction: bytes, and ways to put numbers into them.
#[derive(Clone)]
pub(crate) struct Image(pub(crate) Vec<u8>);

impl Image {
    pub(crate) fn zeros(length: usize) -> Self {
        Self(vec![0; length])
    }

    pub(crate) fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        if self.0.len() < at + bytes.len() {
            self.0.resize(at + bytes.len(), 0);
        }
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    pub(crate) fn be16(self, at: usize, value: u16) -> Self {
        self.put(at, &value.to_be_bytes())
    }

    pub(crate) fn be32(self, at: usize, value: u32) -> Self {
        self.put(at, &value.to_be_bytes())
    }

    pub(crate) fn be64(self, at: usize, value: u64) -> Self {
        self.put(at, &value.to_be_bytes())
    }

    pub(crate) fn le16(self, at: usize, value: u16) -> Self {
        self.put(at, &value.to_le_bytes())
    }

    pub(crate) fn le32(self, at: usize, value: u32) -> Self {
        self.put(at, &value.to_le_bytes())
    }

    pub(crate) fn le64(self, at: usize, value: u64) -> Self {
        self.put(at, &value.to_le_bytes())
    }

    pub(crate) fn cut(mut self, length: usize) -> Self {
        self.0.truncate(length);
        self
    }

    pub(crate) fn header(&self) -> Header {
        probe(&mut self.0.as_slice()).unwrap()
    }

    pub(crate) fn qcow2(&self) -> Qcow2Header {
        match self.header() {
            Header::Qcow2(header) => header,
            other => panic!("not qcow2: {other:?}"),
        }
    }
}

pub(crate) const CLUSTER: u64 = 65536;

/// Types of extensions.
pub(crate) const BACKING_FORMAT: u32 = 0xe279_2aca;
pub(crate) const DATA_FILE: u32 = 0x4441_5441;

/// A sound image of version 2: 64 KiB clusters, 1 GiB; header, reference counts, one block of them, L1 table.
pub(crate) fn qcow2_v2() -> Image {
    Image::zeros(4 * CLUSTER as usize)
        .put(0, b"QFI\xfb")
        .be32(4, 2)
        .be32(20, 16)
        .be64(24, 1 << 30)
        .be32(36, 2)
        .be64(40, 3 * CLUSTER)
        .be64(48, CLUSTER)
        .be32(56, 1)
        // The one reference count block, and a count of one for each cluster.
        .be64(CLUSTER as usize, 2 * CLUSTER)
        .put(2 * CLUSTER as usize, &[0, 1, 0, 1, 0, 1, 0, 1])
}

/// The same of version 3.
pub(crate) fn qcow2_v3() -> Image {
    qcow2_v2().be32(4, 3).be32(96, 4).be32(100, 112)
}

/// Puts extensions behind the header's fields, padded, without an end marker, as zeros follow.
pub(crate) fn with_extensions(image: Image, extensions: &[(u32, &[u8])]) -> Image {
    let version = u32::from_be_bytes(image.0[4..8].try_into().unwrap());
    let mut at = if version == 2 {
        72
    } else {
        u32::from_be_bytes(image.0[100..104].try_into().unwrap()) as usize
    };
    let mut image = image;
    for (id, data) in extensions {
        image = image
            .be32(at, *id)
            .be32(at + 4, data.len() as u32)
            .put(at + 8, data);
        at += 8 + data.len().next_multiple_of(8);
    }
    image
}

/// Names a backing file, far enough behind the extensions.
pub(crate) fn with_backing(image: Image, name: &[u8]) -> Image {
    image
        .be64(8, 0x800)
        .be32(16, name.len() as u32)
        .put(0x800, name)
}
