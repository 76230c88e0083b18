//! The guide from an empty repository to a green CI, executed.

use std::process::{Command, Stdio};

use crate::{Place, Run, finish};

const GUIDE: &str = include_str!("../../../../docs/ci.md");

/// Number of guests in the guide.
const GUESTS: usize = 50;

/// The blocks of shell commands, and whether the last command of each fails.
fn blocks() -> Vec<(bool, String)> {
    let mut blocks = Vec::new();
    let mut block: Option<(bool, String)> = None;
    for line in GUIDE.lines() {
        match (line, &mut block) {
            ("```sh", None) => block = Some((false, String::new())),
            ("```sh,fails", None) => block = Some((true, String::new())),
            ("```", Some(_)) => blocks.extend(block.take()),
            (line, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            (_, None) => {}
        }
    }
    blocks
}

/// The definition of a guest; every third has the same mistakes.
fn guest(number: usize, place: &Place) -> String {
    let image = place.path(&format!("images/{number:02}.raw"));
    std::fs::create_dir_all(image.parent().unwrap()).unwrap();
    std::fs::File::create(&image)
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    let driver = match number % 3 {
        0 => "cache='none' io='threads'",
        1 => "cache='writeback' io='native'",
        _ => "cache='unsafe'",
    };
    format!(
        "<domain type='kvm'>
  <name>guest{number:02}</name>
  <memory unit='MiB'>512</memory>
  <vcpu>2</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' {driver}/>
      <source file='{}'/>
      <target dev='vda' bus='virtio'/>
    </disk>
  </devices>
</domain>
",
        image.display()
    )
}

/// A virsh that knows the guests.
const VIRSH: &str = r#"case $1 in
list) ls "$GUESTS" | sed 's/\.xml$//'; echo ;;
dumpxml) cat "$GUESTS/$3.xml" ;;
*) exit 1 ;;
esac
"#;

fn run(place: &Place, script: &str) -> Run {
    let bin = place.path("bin");
    let path = std::env::var("PATH").unwrap();
    let repository = place.path("repository");
    std::fs::create_dir_all(&repository).unwrap();
    let mut command = Command::new("bash");
    command
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(repository)
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("GUESTS", place.path("guests"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(command, b"")
}

#[test]
fn the_guide_ends_with_a_green_run_and_only_a_new_mistake_is_red() {
    let place = Place::with(&[]);
    place.program("bin/virsh", VIRSH);
    std::os::unix::fs::symlink(crate::program(), place.path("bin/vmdisk")).unwrap();
    for number in 0..GUESTS {
        let text = guest(number, &place);
        place.write(&format!("guests/guest{number:02}.xml"), text.as_bytes());
    }
    let blocks = blocks();
    assert!(blocks.len() >= 8, "{blocks:?}");
    let mut red = 0;
    for (fails, script) in blocks {
        let run = run(&place, &script);
        assert_eq!(run.code, i32::from(fails), "{script}\n{run:?}");
        if fails {
            let other = run
                .stdout
                .lines()
                .filter(|line| line.contains("--> domains/"));
            let other: Vec<&str> = other.collect();
            assert!(!other.is_empty(), "{run:?}");
            assert!(other.iter().all(|line| line.contains("guest07")), "{run:?}");
            red += 1;
        }
    }
    assert_eq!(red, 1);
    let sarif = place.read("repository/vmdisk.sarif");
    assert!(sarif.contains("\"baselineState\": \"unchanged\""));
    let names = std::fs::read_dir(place.path("repository/domains")).unwrap();
    assert_eq!(names.count(), GUESTS);
}
