//! What must hold for any bytes at all; a fuzz target is a call of [`fuzz_probe`].

use vmdisk_image::{Header, MAX_BYTES_READ, ReadAt, ReadError, probe};

use super::counting::Counting;

/// The most `read_at` calls one image may take: every header and table that is read in pieces, and then some.
pub(crate) const MAX_CALLS: u64 = 256;

/// Begins an input that is pieces instead of an image: each an offset of four bytes and a length of two, little endian,
/// and as many bytes. So that small inputs reach the far parts of large images.
pub(crate) const PIECES: &[u8] = b"PIECES\0\0";

/// Probes any input in several ways, and stops the program where something does not hold.
pub(crate) fn fuzz_probe(data: &[u8]) {
    match data.strip_prefix(PIECES) {
        Some(pieces) => fuzz_image(Pieces::new(pieces)),
        None => fuzz_image(data),
    }
}

fn fuzz_image<R: ReadAt + Clone>(image: R) {
    let mut input = Counting::new(image.clone());
    let Ok(header) = probe(&mut input) else {
        panic!("nothing fails to be read here")
    };
    assert!(
        input.bytes_read <= MAX_BYTES_READ,
        "{} bytes were read",
        input.bytes_read
    );
    assert!(input.calls <= MAX_CALLS, "{} calls were made", input.calls);
    hold(&header);

    // How much comes at once makes no difference.
    let mut piecemeal = Counting::new(image.clone());
    piecemeal.at_once = 1021;
    assert_eq!(probe(&mut piecemeal).as_ref(), Ok(&header));

    // Without a length, and with the end unreadable, everything still holds.
    let mut unknown = Counting::new(image.clone());
    unknown.tell_length = false;
    hold(&probe(&mut unknown).unwrap_or_else(|error| panic!("{error}")));
    let mut failing = Counting::new(image);
    failing.fails_from = Some(4096);
    hold(&probe(&mut failing).unwrap_or_else(|error| panic!("{error}")));
}

/// What holds for every header.
fn hold(header: &Header) {
    let _ = (
        header.virtual_size(),
        header.cluster_size(),
        header.is_encrypted(),
        header.probed_by_qemu(),
    );
    if let Some(backing) = header.backing() {
        let text = backing.reference.to_string();
        assert!(!text.contains(char::is_control), "{text:?}");
    }
}

/// An image of zeros with pieces of data.
#[derive(Clone)]
struct Pieces<'a> {
    pieces: Vec<(u64, &'a [u8])>,
    length: u64,
}

impl<'a> Pieces<'a> {
    fn new(mut data: &'a [u8]) -> Self {
        let mut pieces = Vec::new();
        while let Some((head, rest)) = data.split_at_checked(6) {
            let offset = u64::from(u32::from_le_bytes([head[0], head[1], head[2], head[3]]));
            let length = usize::from(u16::from_le_bytes([head[4], head[5]])).min(rest.len());
            let (piece, rest) = rest.split_at(length);
            pieces.push((offset, piece));
            data = rest;
        }
        let length = pieces
            .iter()
            .map(|&(offset, piece)| offset + piece.len() as u64)
            .max()
            .unwrap_or(0);
        Self { pieces, length }
    }
}

impl ReadAt for Pieces<'_> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let count = self.length.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..count];
        buffer.fill(0);
        let end = offset + count as u64;
        for &(at, piece) in &self.pieces {
            let (from, to) = (at.max(offset), (at + piece.len() as u64).min(end));
            if from < to {
                buffer[(from - offset) as usize..(to - offset) as usize]
                    .copy_from_slice(&piece[(from - at) as usize..(to - at) as usize]);
            }
        }
        Ok(count)
    }

    fn len(&self) -> Option<u64> {
        Some(self.length)
    }
}

/// An image as pieces: its pages that are not zero.
pub(crate) fn pieces(image: &[u8]) -> Vec<u8> {
    let mut data = PIECES.to_vec();
    let mut add = |offset: usize, piece: &[u8]| {
        data.extend((offset as u32).to_le_bytes());
        data.extend((piece.len() as u16).to_le_bytes());
        data.extend(piece);
    };
    for (index, sector) in image.chunks(64).enumerate() {
        if sector.iter().any(|byte| *byte != 0) {
            add(index * 64, sector);
        }
    }
    // The end of the image, so that it is as long.
    if let Some(last) = image.len().checked_sub(1) {
        add(last, &image[last..]);
    }
    data
}
