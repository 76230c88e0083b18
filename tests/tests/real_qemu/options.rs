//! The options that have no value, held to what each QEMU says of its own.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use vmdisk_tests::on_each_qemu;

/// True if QEMU reads the word after an option as another option.
fn has_no_value(program: &str, option: &str) -> bool {
    let output = Command::new(program)
        .args([option, "-no-such-a", "-no-such-b"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stderr).contains("-no-such-a: invalid option")
}

#[test]
fn each_option_has_a_value_or_none_as_qemu_reads_it() {
    on_each_qemu("options without a value", |build| {
        let program = build.emulator().display().to_string();
        let help = Command::new(&program).arg("-help").output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let names = help.lines().filter_map(|line| {
            let word = line.strip_prefix('-')?.split([' ', '/', '[', ',']).next()?;
            Some(word.trim_start_matches('-').to_owned())
        });
        let names: BTreeSet<String> = names.filter(|name| !name.is_empty()).collect();
        assert!(names.len() > 80, "{names:?}");
        // They print something and end before QEMU reads the next word.
        let asks = ["h", "help", "version", "audio-help"];
        for name in names.iter().filter(|name| !asks.contains(&name.as_str())) {
            let line = format!("qemu-system-x86_64 -{name} /x.img");
            let disks = vmdisk_qemu::read(&line).unwrap().domain.disks.len();
            let is_image = [
                "cdrom", "fda", "hda", "hdc", "mtdblock", "pflash", "sd", "drive", "blockdev",
            ];
            if is_image.contains(&name.as_str()) {
                continue;
            }
            let without = has_no_value(&program, &format!("-{name}"));
            assert_eq!(disks == 1, without, "QEMU {}: -{name}", build.name);
        }
    });
}
