//! Command lines far above any guest: refused at once, with the place; and those far above a usual guest, which read.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fmt::Write as _;

use vmdisk_qemu::{ReadFailure, read};

const PROGRAM: &str = "qemu-system-x86_64 -machine q35 ";

/// `count` times what `part` makes of a number, behind the program.
fn line(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).fold(PROGRAM.to_owned(), |mut line, nth| {
        write!(line, "{} ", part(nth)).unwrap();
        line
    })
}

fn refused(text: &str) -> ReadFailure {
    let failure = read(text).map(|document| document.domain.disks.len());
    let failure = failure.expect_err("far too much");
    assert!(text.is_char_boundary(failure.span.end), "{failure:?}");
    assert!(failure.help.is_some(), "{failure:?}");
    failure
}

#[test]
fn too_many_words_are_refused_in_every_form_at_the_first_that_is_too_many() {
    let quoted = vec!["\"x\""; 200_010].join(",");
    for text in [
        format!("qemu-system-x86_64\0{}", "\0".repeat(300_000)),
        format!("qemu-system-x86_64\n-S\n{}", "x\n".repeat(300_000)),
        format!("[\"qemu-system-x86_64\",{quoted}]"),
        line(300_000, |_| "-drive x".to_owned()),
        format!(
            "[Service]\nExecStart={}\n",
            line(300_000, |_| "x".to_owned())
        ),
    ] {
        let failure = refused(&text);
        let words = "the command line has more than 200000 words";
        assert_eq!(failure.message, words, "{}", &text[..30]);
        assert!(failure.span.end < text.len(), "{failure:?}");
    }
}

#[test]
fn too_many_properties_are_refused_at_their_option() {
    let keys =
        |count: usize| (0..count).fold(String::new(), |keys, nth| keys + &format!(",k{nth}=v"));
    for value in [keys(5000), ",a".repeat(100_000)] {
        let text = format!("{PROGRAM}-drive file=/x{value}");
        let failure = refused(&text);
        assert_eq!(failure.message, "an option has more than 4096 properties");
        assert_eq!(failure.span.start, PROGRAM.len());
    }
    let some = keys(4000);
    let text = line(80, |_| format!("-drive file=/x{some}"));
    assert_eq!(
        refused(&text).message,
        "the command line has more than 300000 properties"
    );
    let text = format!("{PROGRAM}-drive file=/x,{}driver=raw", "file.".repeat(300));
    assert_eq!(
        refused(&text).message,
        "the name of a property has more than 1024 bytes"
    );
    let json = format!("{{\"driver\":\"file\"{}}}", ",\"a\":1".repeat(5000));
    let document = read(&format!("{PROGRAM}-blockdev '{json}'")).unwrap();
    assert_eq!(
        document.problems[0].message,
        "not JSON: more than 4096 members"
    );
}

#[test]
fn too_many_options_are_refused_whatever_they_are_written_in() {
    let groups = "[drive]\n  file = \"/x\"\n".repeat(50_001);
    assert_eq!(
        refused(&groups).message,
        "the command line has more than 50000 options"
    );
    let keys = format!("[drive]\n{}", "  file = \"/x\"\n".repeat(4097));
    assert_eq!(refused(&keys).message, "a group has more than 4096 keys");
    let command = "{\"execute\":\"device_add\",\"arguments\":{\"driver\":\"virtio-blk-pci\"}}\n";
    let commands = command.repeat(50_001);
    assert_eq!(
        refused(&commands).message,
        "the command line has more than 50000 options"
    );
}

#[test]
fn twenty_thousand_disks_are_read() {
    let text = line(20_000, |nth| {
        format!(
            "-blockdev driver=file,filename=/srv/{nth}.img,node-name=n{nth} -device virtio-blk-pci,drive=n{nth},id=d{nth}"
        )
    });
    let document = read(&text).unwrap();
    assert_eq!(document.domain.disks.len(), 20_000);
    let last = document.domain.disks[19_999].backend.image();
    assert_eq!(
        last.and_then(|image| image.host_path()),
        Some("/srv/19999.img")
    );
}

#[test]
fn disks_that_share_a_long_chain_cost_no_more_than_the_limit() {
    // 900 nodes below each of 2000 disks would be 1.8 million images.
    let chain = (1..900).fold(String::new(), |chain, nth| {
        let below = nth - 1;
        chain + &format!("-blockdev driver=qcow2,node-name=a{nth},file=f,backing=a{below} ")
    });
    let text = format!(
        "{PROGRAM}-blockdev driver=file,node-name=f,filename=/x -blockdev driver=qcow2,node-name=a0,file=f {chain}{}",
        (0..2000).fold(String::new(), |disks, nth| {
            disks + &format!("-device virtio-blk-pci,drive=a899,id=d{nth} ")
        })
    );
    let document = read(&text).unwrap();
    let images = |disk: &vmdisk_model::Disk| {
        disk.backend
            .image()
            .map_or(0, |image| image.chain().count())
    };
    let all: usize = document.domain.disks.iter().map(images).sum();
    assert!((90_000..=100_000).contains(&all), "{all}");
    let limit = "all disks together have more than 100000 nodes";
    assert!(
        document
            .problems
            .iter()
            .any(|problem| problem.message == limit)
    );
}

#[test]
fn suggestions_end_and_the_mistakes_are_still_reported() {
    let text = line(2000, |nth| {
        format!(
            "-blockdev driver=file,node-name=x{nth:05}-disk,filename=/x -device virtio-blk-pci,drive=x{nth:05}-dsk,id=d{nth}"
        )
    });
    let document = read(&text).unwrap();
    let missing: Vec<bool> = document
        .problems
        .iter()
        .filter(|problem| problem.message.starts_with("node or drive"))
        .map(|problem| problem.help.as_deref() != Some("write its -blockdev"))
        .collect();
    assert_eq!(missing.len(), 2000);
    assert!(missing[0]);
    assert_eq!(missing.iter().filter(|has_name| **has_name).count(), 49);
}

#[test]
fn an_empty_argument_is_no_disk() {
    // QEMU 7.2: "Device needs media, but drive is empty".
    let document = read("qemu-system-x86_64\0-name\0g\0\0\0-hda\0/x\0").unwrap();
    assert_eq!(document.domain.disks.len(), 1);
    let [problem] = document.problems.as_slice() else {
        panic!("{:?}", document.problems)
    };
    assert!(
        problem.message.starts_with("an empty argument"),
        "{problem:?}"
    );
    for text in [
        // Programs that change their title leave zero bytes behind the last word.
        "qemu-system-x86_64\0-hda\0/x\0\0\0\0",
        "qemu-system-x86_64\n\n-hda\n/x\n\n",
    ] {
        let document = read(text).unwrap();
        assert_eq!(document.domain.disks.len(), 1, "{text:?}");
        assert_eq!(document.problems, [], "{text:?}");
    }
}

#[test]
fn the_lines_of_a_units_value_are_no_settings() {
    let text = "[Service]\nExecStart=/bin/true \\\nExecStart=qemu-system-x86_64 -hda /x\n";
    assert!(read(text).is_err());
}
