//! KVM: its presence, obstacles, and, on request, the result of a trial guest.
//!
//! A device node that can be opened proves nothing: some hosts create virtual machines but cannot run them.

use std::os::fd::AsRawFd;
use std::time::Duration;

use rustix::fs::MemfdFlags;
use vmdisk_facts::host::{Cpu, Kvm, KvmObstacle, Qemu};
use vmdisk_facts::{Fact, Reason, Unknown};

use crate::obstacle::obstacle;
use crate::process;
use crate::record::Trial;
use crate::root::Root;
use crate::tiny_guest;

const NODE: &str = "/dev/kvm";

/// Modules of KVM; the last three, for clouds and POWER, need no processor extension.
const MODULES: [&str; 5] = ["kvm_intel", "kvm_amd", "kvm_pvm", "kvm_hv", "kvm_pr"];

/// Collects facts about KVM without a trial.
pub(crate) fn kvm(root: &Root, cpu: &Cpu) -> Kvm {
    let dev_kvm = root.exists(NODE);
    let access = access(root, dev_kvm);
    let parameter = |module: &str| {
        let path = format!("/sys/module/{module}/parameters/nested");
        root.fact(&path, |text| match text {
            "Y" | "1" => Some(true),
            "N" | "0" => Some(false),
            _ => None,
        })
    };
    let loaded = |module: &str| root.exists(format!("/sys/module/{module}"));
    let module = match MODULES.iter().find(|module| loaded(module)) {
        Some(&module) => Fact::Known(module.to_owned()),
        None => Fact::Absent,
    };
    // Only one of the two modules can be loaded; KVM may also be built in.
    let nested = match parameter("kvm_intel") {
        Fact::Absent => parameter("kvm_amd"),
        settled @ (Fact::Known(_) | Fact::Unknown(_) | Fact::NotCollected) => settled,
    };
    let has_kvm = module.is_known() || loaded("kvm");
    // A container without /sys does not show whether its host has KVM.
    const HIDDEN: &str = "/sys is not mounted here";
    let is_hidden = !dev_kvm && !root.exists("/sys/class") && !root.exists("/sys/module");
    Kvm {
        dev_kvm: match is_hidden {
            true => Fact::unknown(Reason::Namespace, HIDDEN),
            false => Fact::Known(dev_kvm),
        },
        obstacle: match is_hidden {
            true => Fact::unknown(Reason::Namespace, HIDDEN),
            false => in_the_way(dev_kvm, &access, &cpu.virt, has_kvm),
        },
        access,
        module,
        proven: Fact::NotCollected,
        trial: Fact::NotCollected,
        nested,
    }
}

fn access(root: &Root, dev_kvm: bool) -> Fact<bool> {
    if !root.is_live() {
        return match root.answers().kvm_access {
            Some(allowed) => Fact::Known(allowed),
            // A recording with answers omits it only if there is no /dev/kvm.
            None if root.answers().privileged.is_some() => Fact::Absent,
            None => Fact::NotCollected,
        };
    }
    if !dev_kvm {
        return Fact::Absent;
    }
    let wanted = rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK;
    let allowed = rustix::fs::access(NODE, wanted).is_ok();
    if let Some(recorder) = root.recorder() {
        recorder.answer(|answers| answers.kvm_access = Some(allowed));
    }
    Fact::Known(allowed)
}

fn in_the_way(
    dev_kvm: bool,
    access: &Fact<bool>,
    flags: &Fact<Vec<String>>,
    has_kvm: bool,
) -> Fact<KvmObstacle> {
    if dev_kvm {
        return access.clone().and_then(|allowed| {
            if allowed {
                Fact::Absent
            } else {
                Fact::Known(KvmObstacle::Permission)
            }
        });
    }
    match flags {
        _ if has_kvm => Fact::Known(KvmObstacle::Node),
        Fact::Known(flags) if flags.is_empty() => Fact::Known(KvmObstacle::ProcessorOrFirmware),
        Fact::Known(_) => Fact::Known(KvmObstacle::Module),
        // Other processors have no such flags.
        Fact::Absent => Fact::unknown(
            Reason::Undecided,
            "/dev/kvm does not exist, and this processor has no flags that show why",
        ),
        unknown @ (Fact::Unknown(_) | Fact::NotCollected) => {
            unknown.as_ref().and_then(|_| Fact::NotCollected)
        }
    }
}

/// Runs a trial guest with KVM, and records the result.
pub(crate) fn try_kvm(
    root: &Root,
    kvm: &mut Kvm,
    arch: &Fact<String>,
    qemu: &Fact<Vec<Qemu>>,
    limit: Duration,
) {
    let Trial { proven, trial } = if root.is_live() {
        let trial = tried(kvm, arch, qemu, limit);
        if let Some(recorder) = root.recorder() {
            recorder.answer(|answers| answers.kvm_trial = trial.clone());
        }
        trial
    } else {
        root.answers().kvm_trial.clone()
    };
    kvm.proven = proven;
    kvm.trial = trial;
}

/// Returns the QEMU for general machines; distributions also install reduced ones.
fn ordinary(qemu: &[Qemu]) -> Option<&String> {
    let paths = || qemu.iter().filter_map(|qemu| qemu.path.value());
    let named = |name: &str| paths().find(|path| path.rsplit('/').next() == Some(name));
    named("qemu-system-x86_64").or_else(|| named("qemu-kvm"))
}

fn tried(kvm: &Kvm, arch: &Fact<String>, qemu: &Fact<Vec<Qemu>>, limit: Duration) -> Trial {
    let ended = |ran: bool, how: String| Trial {
        proven: Fact::Known(ran),
        trial: Fact::Known(how),
    };
    if kvm.dev_kvm.is_false() {
        return ended(false, "/dev/kvm does not exist".to_owned());
    }
    let not_tried = |unknown: Unknown| Trial {
        proven: Fact::Unknown(unknown.clone()),
        trial: Fact::Unknown(unknown),
    };
    if !arch.as_str().is(&"x86_64") {
        let why = "the trial guest supports x86_64 only";
        return not_tried(Unknown::new(Reason::Undecided, why));
    }
    let program = match qemu.as_ref().settled() {
        Ok(all) => all.and_then(|all| ordinary(all)),
        Err(unknown) => return not_tried(unknown),
    };
    let Some(program) = program else {
        return not_tried(Unknown::new(
            Reason::ToolMissing,
            "no QEMU for x86_64 is installed",
        ));
    };
    if kvm.access.is_false() {
        let why = "/dev/kvm: the collector has no access";
        return not_tried(Unknown::new(Reason::Permission, why));
    }
    let failed = match run(program, "kvm", limit) {
        Ok(Ended::Spoke(took)) => {
            let seconds = took.as_secs() + 1;
            return ended(true, format!("a 64-bit guest ran within {seconds} s"));
        }
        Ok(Ended::Silent) => {
            let seconds = limit.as_secs();
            format!("a 64-bit guest did not finish within {seconds} s")
        }
        Ok(Ended::Died(complaint)) if complaint.is_empty() => {
            "QEMU exited before the guest finished".to_owned()
        }
        Ok(Ended::Died(complaint)) => format!("QEMU exited before the guest finished: {complaint}"),
        Err(unknown) => return not_tried(unknown),
    };
    // If the guest also fails under emulation, the cause is QEMU or the load of the host, not KVM.
    match run(program, "tcg", limit) {
        Ok(Ended::Spoke(_)) => ended(false, failed),
        Ok(Ended::Silent | Ended::Died(_)) => not_tried(Unknown::new(
            Reason::Undecided,
            format!("{failed}; it also failed under emulation"),
        )),
        Err(unknown) => not_tried(unknown),
    }
}

/// The end of a trial guest.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// It finished after this time.
    Spoke(Duration),
    /// It did not finish before the timeout.
    Silent,
    /// QEMU exited with this message.
    Died(String),
}

/// Runs the tiny guest from memory, without creating a file.
fn run(program: &str, accelerator: &str, limit: Duration) -> Result<Ended, Unknown> {
    let failed = |error: std::io::Error| obstacle("a disk in memory", &error);
    let memory = rustix::fs::memfd_create("vmdisk-guest", MemfdFlags::CLOEXEC)
        .map_err(|error| failed(error.into()))?;
    let mut disk = std::fs::File::from(memory);
    std::io::Write::write_all(&mut disk, &tiny_guest::disk()).map_err(failed)?;
    // QEMU opens the disk through this process's descriptor, which stays open until QEMU exits.
    let path = format!("/proc/{}/fd/{}", std::process::id(), disk.as_raw_fd());
    let port = format!("isa-debugcon,iobase={:#x},chardev=said", tiny_guest::PORT);
    let drive = format!("file={path},format=raw,if=none,id=disk,readonly=on");
    // libvirt's processor for guests with `host-passthrough`.
    let processor = if accelerator == "kvm" { "host" } else { "max" };
    let arguments = [
        "-machine",
        "q35",
        "-accel",
        accelerator,
        "-cpu",
        processor,
        "-m",
        "16",
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
        "-chardev",
        "stdio,id=said",
        "-device",
        &port,
        "-drive",
        &drive,
        "-device",
        "virtio-blk-pci,drive=disk",
    ];
    let said = process::until(program, &arguments, tiny_guest::SAYS, limit)?;
    Ok(match said {
        process::Output::Seen(took) => Ended::Spoke(took),
        process::Output::TimedOut => Ended::Silent,
        process::Output::Exited(complaint) => Ended::Died(complaint),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obstacles_are_distinguished() {
        let flags =
            |flags: &[&str]| Fact::Known(flags.iter().map(|&flag| flag.to_owned()).collect());
        let none = Fact::Absent;
        let way = |dev_kvm, access: &Fact<bool>, flags, has_kvm| {
            in_the_way(dev_kvm, access, &flags, has_kvm)
        };
        assert_eq!(
            way(false, &none, flags(&[]), false),
            Fact::Known(KvmObstacle::ProcessorOrFirmware)
        );
        assert_eq!(
            way(false, &none, flags(&["svm"]), false),
            Fact::Known(KvmObstacle::Module)
        );
        assert_eq!(
            way(false, &none, flags(&["vmx"]), true),
            Fact::Known(KvmObstacle::Node)
        );
        assert_eq!(
            way(true, &Fact::Known(false), flags(&["vmx"]), true),
            Fact::Known(KvmObstacle::Permission)
        );
        assert_eq!(
            way(true, &Fact::Known(true), flags(&[]), true),
            Fact::Absent
        );
        assert!(way(true, &Fact::NotCollected, flags(&[]), true).is_not_collected());
        assert!(way(false, &none, Fact::Absent, false).is_unknown());
    }

    /// Under emulation the guest always runs, so a failure with KVM is a failure of KVM.
    #[test]
    fn the_guest_runs_under_emulation() {
        let program = "/usr/bin/qemu-system-x86_64";
        if !vmdisk_testing::is_given(std::path::Path::new(program).exists(), program) {
            return;
        }
        let ended = run(program, "tcg", Duration::from_secs(60)).unwrap();
        assert!(matches!(ended, Ended::Spoke(_)), "{ended:?}");
    }
}
