//! Replays the committed inputs of `fixtures/fuzz/image-header` through what a fuzzer would call.
//!
//! `VMDISK_BLESS=1 cargo test -p vmdisk-image --test it fuzz_replay` writes the seeds anew. An input a fuzzer found
//! belongs in the same directory, under any other name.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests read and write files, and stop at a failure"
)]

use std::path::PathBuf;

use crate::support::fuzz::{fuzz_probe, pieces};
use crate::support::image::{
    BACKING_FORMAT, DATA_FILE, Image, qcow2_v2, qcow2_v3, with_backing, with_extensions,
};
use crate::support::microsoft::{vhdx, vpc_footer};

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/fuzz/image-header")
}

/// One small input for each format and for each way through the reader.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let extensions = with_extensions(
        qcow2_v3().be32(32, 2).be64(72, 0b1_0111).be64(88, 3),
        &[
            (BACKING_FORMAT, b"qcow2"),
            (DATA_FILE, b"data.raw"),
            (0x6803_f857, b"\0\x29time travel"),
            (0x0537_be77, b"\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\x02\x50"),
            (
                0x2385_2875,
                &[
                    0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 2, 0, 0,
                ],
            ),
            (0x1234_5678, b"unknown"),
        ],
    );
    let many: Vec<(u32, &[u8])> = (0..80).map(|index| (0x1000 + index, &b""[..])).collect();
    let descriptor = "# Disk DescriptorFile\nversion=1\nCID=1234abcd\nparentCID=ffffffff\n\
                      parentFileNameHint=\"base.vmdk\"\ncreateType=\"monolithicFlat\"\nRW 8192 FLAT \"flat.vmdk\" 0\n";
    let sparse = |capacity: u64, directory: u64| {
        Image::zeros(512)
            .put(0, b"KDMV")
            .le32(4, 1)
            .le64(12, capacity)
            .le64(20, 128)
            .le64(28, 1)
            .le64(36, 2)
            .le32(44, 512)
            .le64(56, directory)
            .put(512, descriptor.as_bytes())
    };
    let footer = vpc_footer(2, 4096, u64::MAX);
    vec![
        ("empty", Vec::new()),
        ("qcow2-v2", qcow2_v2().cut(512).0),
        ("qcow2-v3", qcow2_v3().cut(512).0),
        ("qcow2-whole", pieces(&qcow2_v3().0)),
        (
            "qcow2-backing",
            with_backing(qcow2_v3(), b"json:{\"driver\":\"raw\"}")
                .cut(0x840)
                .0,
        ),
        (
            "qcow2-extensions",
            pieces(&with_backing(extensions, b"../base\0.img").0),
        ),
        (
            "qcow2-many-extensions",
            with_extensions(qcow2_v3(), &many).cut(1024).0,
        ),
        (
            "qcow2-extension-overrun",
            qcow2_v3().be32(112, 1).be32(116, u32::MAX).cut(128).0,
        ),
        (
            "qcow2-far-extension",
            pieces(&qcow2_v3().be32(112, 1).be32(116, 60000).0),
        ),
        (
            "qcow2-large-clusters",
            qcow2_v3()
                .be32(20, 21)
                .be64(8, 2 << 20)
                .be32(16, 1023)
                .cut(128)
                .0,
        ),
        (
            "qcow2-all-ones",
            Image(vec![0xff; 512]).put(0, b"QFI\xfb\0\0\0\x03").0,
        ),
        (
            "qcow",
            qcow2_v2()
                .be32(4, 1)
                .put(32, &[12, 9, 0, 0])
                .be64(40, 48)
                .cut(48)
                .0,
        ),
        (
            "qcow-backing",
            qcow2_v2()
                .be32(4, 1)
                .put(32, &[12, 9, 0, 0])
                .be64(8, 48)
                .be32(16, 8)
                .put(48, b"base.img")
                .cut(56)
                .0,
        ),
        (
            "qed",
            Image::zeros(128)
                .put(0, b"QED\0")
                .le32(4, 65536)
                .le32(8, 4)
                .le32(12, 1)
                .le64(16, 5)
                .le64(40, 65536)
                .le64(48, 1 << 20)
                .le32(56, 64)
                .le32(60, 8)
                .put(64, b"base.img")
                .0,
        ),
        ("vmdk-descriptor", descriptor.as_bytes().to_vec()),
        ("vmdk-sparse", sparse(8192, 21).0),
        ("vmdk-descriptor-in-sparse", sparse(0, 21).0),
        (
            "vmdk-footer",
            pieces(
                &Image::zeros(4096)
                    .put(0, &sparse(0, u64::MAX).0)
                    .put(3072, &sparse(9, 5).0)
                    .0,
            ),
        ),
        (
            "vmdk-cowd",
            Image::zeros(512)
                .put(0, b"COWD")
                .le32(4, 1)
                .le32(12, 2048)
                .le32(16, 1)
                .0,
        ),
        ("vpc-fixed", Image::zeros(4096).put(4096, &footer.0).0),
        ("vhdx", pieces(&vhdx().0)),
        (
            "vdi",
            Image::zeros(512)
                .put(64, &[0x7f, 0x10, 0xda, 0xbe])
                .le32(68, 0x1_0001)
                .le32(76, 1)
                .le32(340, 512)
                .le32(344, 1024)
                .le32(360, 512)
                .le64(368, 1 << 20)
                .le32(376, 1 << 20)
                .le32(384, 1)
                .0,
        ),
        (
            "luks1",
            Image::zeros(592)
                .put(0, b"LUKS\xba\xbe\0\x01aes")
                .put(40, b"xts-plain64")
                .put(72, b"sha256")
                .be32(104, 4040)
                .be32(108, 64)
                .be32(208, 0x00ac_71f3)
                .be32(248, 8)
                .be32(252, 4000)
                .0,
        ),
        (
            "luks2",
            Image::zeros(600)
                .put(0, b"LUKS\xba\xbe\0\x02")
                .be64(8, 16384)
                .put(24, b"label")
                .0,
        ),
        (
            "parallels",
            Image::zeros(128)
                .put(0, b"WithouFreSpacExt")
                .le32(16, 2)
                .le32(28, 2048)
                .le32(32, 4)
                .le64(36, 8192)
                .0,
        ),
    ]
}

#[test]
fn the_committed_inputs_satisfy_the_invariants() {
    if std::env::var_os("VMDISK_BLESS").is_some() {
        std::fs::create_dir_all(directory()).unwrap();
        for (name, seed) in seeds() {
            std::fs::write(directory().join(name), seed).unwrap();
        }
    }
    let mut count = 0;
    for entry in std::fs::read_dir(directory()).unwrap() {
        let path = entry.unwrap().path();
        fuzz_probe(&std::fs::read(path).unwrap());
        count += 1;
    }
    assert!(
        count >= seeds().len(),
        "{count} inputs in {}",
        directory().display()
    );
}

#[test]
fn every_seed_is_committed_and_small() {
    for (name, seed) in seeds() {
        let committed = std::fs::read(directory().join(name)).unwrap_or_default();
        assert!(
            committed == seed,
            "{name} differs: write it anew with VMDISK_BLESS=1"
        );
        assert!(seed.len() <= 8192, "{name} has {} bytes", seed.len());
    }
}
