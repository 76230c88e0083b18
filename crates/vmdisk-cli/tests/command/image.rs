//! Headers of images.

use crate::Place;

/// A qcow2 image of 64 KiB, version 3, by hand.
pub(crate) fn qcow2(backing: Option<(&str, Option<&str>)>) -> Vec<u8> {
    let mut image = vec![0; 4 * 65536];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"QFI\xfb\x00\x00\x00\x03");
    put(20, &16u32.to_be_bytes());
    put(24, &65536u64.to_be_bytes());
    put(36, &1u32.to_be_bytes());
    put(40, &(3u64 * 65536).to_be_bytes());
    put(48, &65536u64.to_be_bytes());
    put(56, &1u32.to_be_bytes());
    put(96, &4u32.to_be_bytes());
    put(100, &104u32.to_be_bytes());
    let mut at = 104;
    let Some((name, format)) = backing else {
        return image;
    };
    if let Some(format) = format {
        put(at, &[0xe2, 0x79, 0x2a, 0xca]);
        put(at + 4, &(format.len() as u32).to_be_bytes());
        put(at + 8, format.as_bytes());
        at += 8 + format.len().next_multiple_of(8);
    }
    at += 8;
    put(at, name.as_bytes());
    put(8, &(at as u64).to_be_bytes());
    put(16, &(name.len() as u32).to_be_bytes());
    image
}

#[test]
fn the_header_of_an_image_is_shown_with_the_command_for_the_rest() {
    let place = Place::with(&[]);
    let mut image = qcow2(Some(("gone.qcow2", Some("qcow2"))));
    image[79] |= 0b11;
    place.write("top.qcow2", &image);
    place.write("base.img", &[0; 65536]);
    let run = place.run(&["facts", "top.qcow2", "base.img", "--format", "text"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let top = "top.qcow2: qcow2 on gone.qcow2 (qcow2), version 3, size 64 KiB, clusters 64 KiB, snapshots 0, \
        not closed properly, corrupt, O_DIRECT";
    for words in [
        top,
        "base.img: raw, size 64 KiB, O_DIRECT",
        "`qemu-img info IMAGE` and `qemu-img check IMAGE`",
    ] {
        assert!(run.stdout.contains(words), "{words}: {run:?}");
    }
    assert!(
        !run.stdout.contains("gone.qcow2: "),
        "a name in a header is not opened: {run:?}"
    );
}
