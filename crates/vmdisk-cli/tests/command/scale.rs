//! Guests of a size that nobody has: everything comes to its end, and says what is wrong with them.
//!
//! That the time grows with the size and not with its square is measured by `cargo bench -p vmdisk-benches`.

use std::fmt::Write as _;

use crate::{Place, Run, UNSAFE, finish};

/// As many disks as one guest is tried with.
const MANY: usize = 10_000;

/// The name of the nth disk: `sda`, …, `sdz`, `sdaa`, ….
fn name(nth: usize) -> String {
    let mut letters = Vec::new();
    let mut rest = nth + 1;
    while rest > 0 {
        rest -= 1;
        letters.push(b'a' + u8::try_from(rest % 26).unwrap());
        rest /= 26;
    }
    letters.reverse();
    format!("sd{}", String::from_utf8(letters).unwrap())
}

/// A guest with that many disks, three lines each from line 4 on, of which each has these options.
fn guest(options: impl Fn(usize) -> &'static str) -> String {
    guest_with("", options, |_| String::new())
}

/// A guest with that many disks, each with options and an address.
fn guest_with(
    controllers: &str,
    options: impl Fn(usize) -> &'static str,
    address: impl Fn(usize) -> String,
) -> String {
    let mut text = format!(
        "<domain type='kvm'><name>many</name><memory>1048576</memory>\n<os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features>\n<devices>{controllers}\n"
    );
    for nth in 0..MANY {
        let (name, options, address) = (name(nth), options(nth), address(nth));
        let _ = write!(
            text,
            "<disk type='file' device='disk'><driver name='qemu' type='qcow2'{options}/>\n\
             <source file='/srv/{name}.qcow2'/>\n<target dev='{name}' bus='scsi'/>{address}</disk>\n"
        );
    }
    text.push_str("</devices>\n</domain>\n");
    text
}

/// The line on which the nth disk begins.
const fn line(nth: usize) -> usize {
    4 + 3 * nth
}

const GOOD: &str = " cache='none' discard='unmap'";

/// The last is unsafe, the one before it misspelt.
fn two_mistakes(nth: usize) -> &'static str {
    match MANY - nth {
        1 => " cache='unsafe' discard='unmap'",
        2 => " cache='none' discrad='unmap'",
        _ => GOOD,
    }
}

#[test]
fn two_mistakes_among_ten_thousand_disks_are_found_and_mended() {
    let text = guest(two_mistakes);
    let place = Place::with(&[("a.xml", &text)]);
    let run = place.run(&["lint", "a.xml", "--format", "concise"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let found = |rule: &str| -> Vec<&str> {
        run.stdout
            .lines()
            .filter(|line| line.contains(rule))
            .collect()
    };
    let unsafe_cache = found("[cache-unsafe]");
    let misspelt = found("[unknown-attribute]");
    assert_eq!((unsafe_cache.len(), misspelt.len()), (1, 1));
    let at = |nth: usize| format!("a.xml:{}:", line(nth));
    assert!(
        unsafe_cache[0].starts_with(&at(MANY - 1)),
        "{unsafe_cache:?}"
    );
    assert!(misspelt[0].starts_with(&at(MANY - 2)), "{misspelt:?}");
    place.run(&["lint", "a.xml", "--fix"]);
    let fixed = text
        .replace("cache='unsafe'", "cache='writeback'")
        .replace("discrad", "discard");
    assert!(place.read("a.xml") == fixed, "two words are mended");
}

#[test]
fn a_mistake_in_each_of_ten_thousand_disks_is_told_and_mended_in_each() {
    let text = guest(|_| " cache='unsafe'");
    let place = Place::with(&[("a.xml", &text)]);
    let run = place.run(&["lint", "a.xml"]);
    assert_eq!(run.code, 1);
    let told = run.stdout.matches("[cache-unsafe]").count();
    assert_eq!(told, MANY, "{}", run.stderr);
    place.run(&["lint", "a.xml", "--fix"]);
    let fixed = text.replace("cache='unsafe'", "cache='writeback'");
    assert!(place.read("a.xml") == fixed, "each is mended");
}

#[test]
fn ten_thousand_disks_that_share_a_name_and_an_image_are_refused() {
    // Every thousandth has the name and the image of the first.
    let first = format!("'{}'", name(0));
    let text: String = guest(|_| GOOD)
        .split_inclusive("</disk>")
        .enumerate()
        .map(|(nth, disk)| match nth % 1000 {
            0 => disk
                .replace(&format!("'{}'", name(nth)), &first)
                .replace(&format!("/{}.", name(nth)), "/sda."),
            _ => disk.to_owned(),
        })
        .collect();
    let place = Place::with(&[("a.xml", &text)]);
    let run = place.run(&["lint", "a.xml", "--format", "concise"]);
    for rule in ["[duplicate-target]", "[duplicate-disk-source]"] {
        let found = run.stdout.matches(rule).count();
        assert_eq!(found, 9, "{rule}: {}", run.stderr);
    }
}

#[test]
fn ten_thousand_disks_are_converted_and_resolved() {
    let place = Place::with(&[("a.xml", &guest(|_| GOOD))]);
    let same = place.run(&["convert", "a.xml", "--to", "libvirt-xml"]);
    assert_eq!(same.code, 0, "{}", same.stderr);
    assert_eq!(same.stdout.matches("<disk ").count(), MANY);
    let resolved = place.run(&["convert", "a.xml", "--to", "libvirt-xml", "--resolved"]);
    assert_eq!(resolved.code, 0, "{}", resolved.stderr);
    let count = |what: &str| resolved.stdout.matches(what).count();
    assert_eq!(count("<address type='drive'"), MANY);
    assert_eq!(count("<controller type='scsi'"), MANY.div_ceil(7));
    let line = place.run(&["convert", "a.xml", "--to", "qemu", "--resolved"]);
    // As many controllers as libvirt makes of it have no room in the machine.
    assert_eq!(line.code, 2);
    assert!(line.stderr.contains("has room for"), "{}", line.stderr);
}

#[test]
fn ten_thousand_disks_on_one_controller_go_to_qemu_and_come_back() {
    let place_of = |nth: usize| {
        format!("<address type='drive' controller='0' bus='0' target='0' unit='{nth}'/>")
    };
    let controller = "<controller type='scsi' index='0' model='virtio-scsi'/>";
    let text = guest_with(controller, |_| GOOD, place_of);
    let place = Place::with(&[("a.xml", &text)]);
    let line = place.run(&["convert", "a.xml", "--to", "qemu"]);
    assert_eq!(line.code, 0, "{}", line.stderr);
    assert_eq!(line.stdout.matches("scsi-hd").count(), MANY);
    let back = place.run_with_input(&["convert", "--to", "libvirt-xml"], line.stdout.as_bytes());
    assert_eq!(back.code, 0, "{}", back.stderr);
    assert_eq!(back.stdout.matches("<disk ").count(), MANY);
}

/// A disk on that many images below the top, each named by a function of its depth.
fn chain(below: usize, path: impl Fn(usize) -> String) -> String {
    let mut text = format!(
        "<disk type='file'>\n<driver name='qemu' type='qcow2'/>\n<source file='{}'/>\n",
        path(0)
    );
    for depth in 1..=below {
        let _ = writeln!(
            text,
            "<backingStore type='file'><format type='qcow2'/><source file='{}'/>",
            path(depth)
        );
    }
    text.push_str("<backingStore/>\n");
    text.push_str(&"</backingStore>".repeat(below));
    text.push_str("\n<target dev='vda' bus='virtio'/>\n</disk>\n");
    text
}

fn numbered(depth: usize) -> String {
    format!("/srv/{depth}.qcow2")
}

/// Runs the command with a quarter of the stack that a program has on Linux, and its threads with half of what
/// Rust gives them.
fn run_on_a_small_stack(place: &Place, arguments: &[&str]) -> Run {
    if !cfg!(target_os = "linux") {
        return place.run(arguments);
    }
    let vmdisk = place.command(arguments);
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", "ulimit -s 2048 && exec \"$0\" \"$@\""])
        .arg(vmdisk.get_program())
        .args(vmdisk.get_args())
        .current_dir(vmdisk.get_current_dir().unwrap())
        .env("RUST_MIN_STACK", "1048576")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    finish(command, b"")
}

#[test]
fn a_chain_of_sixty_images_is_read_written_and_called_long() {
    let text = chain(60, numbered);
    let place = Place::with(&[("a.xml", &text)]);
    let run = run_on_a_small_stack(&place, &["lint", "a.xml", "--format", "concise"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout
            .contains("warning[chain-too-long]: the chain of `vda` has 61 images"),
        "{run:?}"
    );
    assert!(!run.stdout.contains("error["), "{run:?}");
    for form in ["disk-xml", "libvirt-xml"] {
        let there = run_on_a_small_stack(&place, &["convert", "a.xml", "--to", form]);
        assert_eq!(there.code, 0, "{there:?}");
        assert_eq!(there.stdout.matches("/srv/").count(), 61);
    }
    let line = run_on_a_small_stack(&place, &["convert", "a.xml", "--to", "qemu"]);
    assert_eq!(line.code, 0, "{line:?}");
    let back = place.run_with_input(&["convert", "--to", "disk-xml"], line.stdout.as_bytes());
    assert_eq!(back.stdout.matches("/srv/").count(), 61, "{back:?}");
}

#[test]
fn a_chain_of_more_images_than_libvirt_takes_is_an_error() {
    let place = Place::with(&[
        ("taken.xml", &chain(199, numbered)),
        ("refused.xml", &chain(200, numbered)),
    ]);
    let lint = |file: &str| run_on_a_small_stack(&place, &["lint", file, "--format", "concise"]);
    let taken = lint("taken.xml");
    assert!(
        taken.stdout.contains("warning[chain-too-long]"),
        "{taken:?}"
    );
    let refused = lint("refused.xml");
    assert!(
        refused
            .stdout
            .contains("error[chain-too-long]: the chain of `vda` has more than 200 images"),
        "{refused:?}"
    );
}

#[test]
fn what_nests_deeper_than_libvirt_reads_is_refused_with_its_place() {
    // The disk itself is 1 deep, and so is what stands inside the last image.
    let place = Place::with(&[
        ("deepest.xml", &chain(254, numbered)),
        ("deeper.xml", &chain(255, numbered)),
    ]);
    for arguments in [
        &["lint", "deepest.xml"][..],
        &["convert", "deepest.xml", "--to", "disk-xml"],
        &["convert", "deepest.xml", "--to", "qemu"],
        &[
            "convert",
            "deepest.xml",
            "--to",
            "libvirt-xml",
            "--resolved",
        ],
    ] {
        let run = run_on_a_small_stack(&place, arguments);
        assert!(run.code < 2, "{arguments:?}: {run:?}");
    }
    for arguments in [
        &["lint", "deeper.xml"][..],
        &["lint", "deeper.xml", "--fix"],
        &["convert", "deeper.xml", "--to", "disk-xml"],
        &["convert", "deeper.xml", "--to", "libvirt-xml", "--resolved"],
    ] {
        let run = run_on_a_small_stack(&place, arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {run:?}");
        assert!(
            run.stderr.contains("more than 256 deep") && run.stderr.contains("deeper.xml:258:"),
            "{arguments:?}: {run:?}"
        );
    }
}

#[test]
fn a_loop_in_a_chain_is_found_at_the_image_that_comes_back() {
    let first = chain(3, |depth| numbered(depth % 3));
    let inner = chain(4, |depth| numbered(if depth == 4 { 2 } else { depth }));
    let place = Place::with(&[("first.xml", &first), ("inner.xml", &inner)]);
    let lint = |file: &str| place.run(&["lint", file, "--format", "concise"]);
    let run = lint("first.xml");
    let says = "[chain-too-long]: the chain of `vda` is a loop";
    assert!(
        run.stdout.contains(&format!("first.xml:6:63: error{says}")),
        "{run:?}"
    );
    // Nobody writes the image that stands there twice, and QEMU opens what is written.
    let run = lint("inner.xml");
    assert!(
        run.stdout
            .contains(&format!("inner.xml:7:63: warning{says}")),
        "{run:?}"
    );
    for file in ["first.xml", "inner.xml"] {
        let same = place.run(&["convert", file, "--to", "disk-xml"]);
        assert_eq!(same.code, 0, "{same:?}");
    }
}

#[test]
fn a_chain_of_ten_thousand_nodes_on_a_command_line_comes_to_its_end() {
    let mut line = String::from("qemu-system-x86_64 -nodefaults -machine q35");
    for nth in 0..MANY {
        let backing = nth
            .checked_sub(1)
            .map_or(String::new(), |below| format!(",backing=n{below}"));
        let _ = write!(
            line,
            " -blockdev driver=file,node-name=f{nth},filename=/srv/{nth}.qcow2 \
             -blockdev driver=qcow2,node-name=n{nth},file=f{nth}{backing}"
        );
    }
    let _ = writeln!(line, " -device virtio-blk-pci,drive=n{}", MANY - 1);
    let place = Place::with(&[("vm.args", &line)]);
    let run = run_on_a_small_stack(&place, &["lint", "vm.args", "--format", "concise"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stdout.contains("has more than 200 images"),
        "{}",
        run.stdout
    );
    for form in ["qemu", "disk-xml"] {
        let there = run_on_a_small_stack(&place, &["convert", "vm.args", "--to", form]);
        assert!(there.code == 0 || there.code == 2, "{}", there.stderr);
    }
}

#[test]
fn a_page_about_thousands_of_fixes_on_one_line_has_no_diff_of_that_line() {
    let disk = UNSAFE.replace('\n', "");
    let text = format!("<devices>{}</devices>", disk.repeat(2000));
    let place = Place::with(&[("a.xml", &text)]);
    let run = place.run(&[
        "lint",
        "a.xml",
        "--select",
        "cache-unsafe",
        "--format",
        "html",
        "-o",
        "a.html",
    ]);
    assert_eq!(run.code, 1, "{run:?}");
    let page = place.read("a.html");
    assert_eq!(page.matches("</code> fixes it").count(), 2000);
    assert!(page.len() < 30_000_000, "{}", page.len());
}

#[test]
fn more_disks_than_any_guest_has_are_refused() {
    const MOST: usize = 20_000;
    let xml = |disks: usize| {
        let disk = "<disk type='block'/>\n".repeat(disks);
        format!("<domain><devices>\n{disk}</devices></domain>")
    };
    let line = |disks| format!("qemu-system-x86_64{}", " -drive if=virtio".repeat(disks));
    let spec = |disks| {
        format!(
            "version: 1\ndisks:\n{}",
            "- {raw: {path: /a}}\n".repeat(disks)
        )
    };
    for (name, text) in [
        ("a.xml", &xml as &dyn Fn(usize) -> String),
        ("a.args", &line),
        ("a.yaml", &spec),
    ] {
        let place = Place::with(&[(name, &text(MOST + 1))]);
        for command in ["lint", "trace"] {
            let run = place.run(&[command, name]);
            let said = format!("{}{}", run.stdout, run.stderr);
            assert_eq!(run.code, 2, "{command} {name}: {said}");
            assert!(said.contains("more than 20000 disks"), "{name}: {said}");
        }
        assert!(vmdisk::read(&text(MOST)).is_ok(), "{name}");
    }
}
