//! Several images that name each other as they like.

use std::collections::BTreeSet;

use vmdisk_image::chain::{Found, MAX_IMAGES, Resolution, ResolvedName, Top, walk};
use vmdisk_image::{Header, ReadAt, ReadError, probe};

/// Images of an input at most.
const MOST_IMAGES: usize = 16;

/// The input is images behind each other, each with its length in two bytes before it; the last byte of a name says
/// which of them is meant.
pub(super) fn check(mut input: &[u8]) {
    let mut headers: Vec<Header> = Vec::new();
    while headers.len() < MOST_IMAGES {
        let Some((length, rest)) = input.split_at_checked(2) else {
            break;
        };
        let length = usize::from(u16::from_le_bytes([length[0], length[1]])).min(rest.len());
        let (image, rest) = rest.split_at(length);
        input = rest;
        headers.push(probe(&mut Padded(image)).expect("bytes in memory can be read"));
    }
    let Some(first) = headers.first() else { return };
    let location = |number: usize| format!("/images/{number}").as_bytes().into();
    let top = Top {
        identity: 0_usize,
        location: location(0),
        header: first.clone(),
        format: None,
    };
    let mut asked = 0;
    let chain = walk(top, |reference| {
        asked += 1;
        assert_eq!(reference.depth, asked, "the walk asks once for each image");
        let (ResolvedName::Path(name)
        | ResolvedName::WorkingDirectory(name)
        | ResolvedName::Protocol(name)
        | ResolvedName::Json(name)) = &reference.place
        else {
            return Resolution::Missing {
                reason: "it cannot be".to_owned(),
            };
        };
        let number = name.as_bytes().last().map_or(0, |byte| usize::from(*byte)) % MOST_IMAGES;
        match headers.get(number) {
            Some(header) => Resolution::Found(Box::new(Found {
                identity: number,
                location: location(number),
                header: header.clone(),
            })),
            None => Resolution::Missing {
                reason: "no such file".to_owned(),
            },
        }
    });
    assert!(chain.links.len() <= MAX_IMAGES);
    // No image comes twice: a walk that comes back to one ends there.
    let images: BTreeSet<&[u8]> = chain
        .links
        .iter()
        .map(|link| link.location.as_bytes())
        .collect();
    assert_eq!(images.len(), chain.links.len());
}

/// An image with zeros behind what the input says of it.
struct Padded<'a>(&'a [u8]);

/// How long such an image is.
const LENGTH: u64 = 1 << 20;

impl ReadAt for Padded<'_> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let left = usize::try_from(LENGTH.saturating_sub(offset)).unwrap_or(0);
        let count = buffer.len().min(left);
        let written = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.0.get(offset..))
            .unwrap_or_default();
        let copied = written.len().min(count);
        buffer[..copied].copy_from_slice(&written[..copied]);
        buffer[copied..count].fill(0);
        Ok(count)
    }

    fn len(&self) -> Option<u64> {
        Some(LENGTH)
    }
}
