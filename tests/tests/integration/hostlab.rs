//! The host lab, when it is asked for: it boots two kernels without KVM, which takes minutes.

use vmdisk_tests::{has_program, repository, run_in};

/// Real LVM, md, LUKS, btrfs, NVMe and SCSI stacks under two kernels, with their facts and trials.
///
/// Only with `VMDISK_HOSTLAB=1`, even under `VMDISK_REAL=require`: what it takes grows with everything else that runs.
#[test]
#[allow(
    clippy::print_stderr,
    reason = "a skipped test says so to whoever runs it"
)]
fn storage_stacks_built_for_real_give_the_facts_written_for_them() {
    if std::env::var_os("VMDISK_HOSTLAB").is_none_or(|value| value != "1") {
        eprintln!("skipped: the host lab: needs VMDISK_HOSTLAB=1 and some minutes");
        return;
    }
    for program in ["qemu-system-x86_64", "apt-get", "dpkg-deb"] {
        assert!(
            has_program(program),
            "VMDISK_HOSTLAB=1, and {program} is missing"
        );
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let lab = run_in(repository(), &cargo, &["xtask", "hostlab"], "");
    assert_eq!(lab.code, 0, "{}{}", lab.stdout, lab.stderr);
    for kernel in ["Linux 6.1:", "Linux 6.12:"] {
        assert!(lab.stdout.contains(kernel), "{}", lab.stdout);
    }
}
