//! A planned guest with what is around its disks: devices that a spec asks for, and what Windows needs.
//!
//! The devices are those that virt-install (virt-manager 4.1) gives a guest. QEMU has no network of libvirt, no program that
//! emulates a TPM, and no place for the socket of a channel.

use vmdisk_libvirt::{Unwritable, read};
use vmdisk_model::{Board, CpuMode, Domain, DomainField, FieldPath, TargetBus};
use vmdisk_plan::{ChoiceSource, GuestConsole, GuestDevices, GuestNetwork, Plan};
use vmdisk_qemu::{WriteProblem, WriteProblems};

use crate::windows::{HYPERV, WORDS, XML, is_windows};
use crate::write;

/// The model of the network card: Windows without the driver for virtio disks has none for the card either.
fn network_model(plan: &Plan) -> &'static str {
    let is_virtio = |bus| matches!(bus, TargetBus::Virtio | TargetBus::Scsi);
    let mut disks = plan.domain.disks.iter();
    let has_virtio = disks.any(|disk| is_virtio(disk.frontend.effective_bus()));
    match plan.domain.board() {
        _ if !is_windows(plan) || has_virtio => "virtio",
        Board::Q35 => "e1000e",
        _ => "e1000",
    }
}

/// The devices as elements of libvirt.
fn elements(plan: &Plan) -> String {
    let GuestDevices {
        network,
        console,
        channel,
        tpm,
        rng,
    } = &plan.devices;
    let mut out = String::new();
    let connected = match network {
        Some(GuestNetwork::Network(name)) => Some(("network", name)),
        Some(GuestNetwork::Bridge(name)) => Some(("bridge", name)),
        Some(GuestNetwork::None) | None => None,
    };
    if let Some((kind, name)) = connected {
        let model = network_model(plan);
        out.push_str(&format!(
            "<interface type='{kind}'>\n      <source {kind}='{name}'/>\n      <model type='{model}'/>\n    </interface>"
        ));
    }
    if console.is_some() {
        out.push_str("<console type='pty'/>");
    }
    if channel.is_some() {
        out.push_str(
            "<channel type='unix'>\n      <target type='virtio' name='org.qemu.guest_agent.0'/>\n    </channel>",
        );
    }
    if *console == Some(GuestConsole::Display) {
        let model = match is_windows(plan) {
            true => "vga",
            false => "virtio",
        };
        out.push_str("<graphics type='vnc' autoport='yes'/>");
        out.push_str(&format!(
            "<video>\n      <model type='{model}'/>\n    </video>"
        ));
    }
    if *tpm {
        out.push_str("<tpm>\n      <backend type='emulator' version='2.0'/>\n    </tpm>");
    }
    if *rng {
        out.push_str(
            "<rng model='virtio'>\n      <backend model='random'>/dev/urandom</backend>\n    </rng>",
        );
    }
    out
}

/// The planned guest as XML for libvirt, with its devices and with what its operating system needs.
///
/// # Errors
/// If a name or path holds a character that XML cannot carry.
pub fn planned_xml(plan: &Plan) -> Result<String, Unwritable> {
    let around = if is_windows(plan) { XML } else { "" };
    let devices = elements(plan);
    let text = format!("<domain>{around}<devices>{devices}</devices></domain>");
    let kept = read(&text).expect("it is a guest").kept;
    write::libvirt_xml_with(&plan.domain, &kept)
}

/// The planned guest as QEMU gets it: its first disk boots, and the words of a command line are those of its devices and of
/// what its operating system needs.
///
/// # Errors
/// Names the devices that only libvirt provides.
pub fn planned_for_qemu(plan: &Plan) -> Result<(Domain, Vec<String>), WriteProblems> {
    let mut domain = plan.domain.clone();
    domain.boot_from_first_disk();
    let is_chosen = plan
        .choices
        .iter()
        .any(|it| it.at == FieldPath::Domain(DomainField::Cpu) && it.source != ChoiceSource::Asked);
    // With KVM it is the host's, too, and it starts without.
    if domain.cpu == Some(CpuMode::Host) && is_chosen {
        domain.cpu = Some(CpuMode::Maximum);
    }
    let mut words = devices(plan)?;
    if is_windows(plan) {
        let cpu = match domain.cpu.take() {
            Some(CpuMode::Host) => "host",
            Some(CpuMode::Maximum) => "max",
            None => "qemu32",
        };
        words.extend(WORDS.map(str::to_owned));
        words.extend(["-cpu".to_owned(), format!("{cpu},{HYPERV}")]);
    }
    Ok((domain, words))
}

/// The devices as words of a command line.
fn devices(plan: &Plan) -> Result<Vec<String>, WriteProblems> {
    let GuestDevices {
        network,
        console,
        channel,
        tpm,
        rng,
    } = &plan.devices;
    let mut words: Vec<String> = Vec::new();
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    let transport = match plan.domain.board() {
        Board::Ccw => "ccw",
        _ => "pci",
    };
    let model = match network_model(plan) {
        "virtio" => format!("virtio-net-{transport}"),
        model => model.to_owned(),
    };
    let mut missing = Vec::new();
    match network {
        Some(GuestNetwork::Network(name)) if name == "default" => {
            add("-nic", format!("user,model={model}"));
        }
        Some(GuestNetwork::Network(name)) => {
            missing.push(format!("the network `{name}` of libvirt"))
        }
        Some(GuestNetwork::Bridge(name)) => add("-nic", format!("bridge,br={name},model={model}")),
        Some(GuestNetwork::None) | None => {}
    }
    if console.is_some() {
        add("-serial", "mon:stdio".to_owned());
    }
    if *console == Some(GuestConsole::Display) {
        let display = match plan.domain.is_pc() {
            _ if is_windows(plan) => "VGA".to_owned(),
            true => "virtio-vga".to_owned(),
            false => format!("virtio-gpu-{transport}"),
        };
        add("-device", display);
    }
    if *rng {
        add(
            "-object",
            "rng-random,id=rng0,filename=/dev/urandom".to_owned(),
        );
        add("-device", format!("virtio-rng-{transport},rng=rng0"));
    }
    missing.extend(channel.map(|_| "the socket of the guest agent".to_owned()));
    missing.extend(tpm.then(|| "a TPM, for which a `swtpm` must run".to_owned()));
    let problems = missing.into_iter().map(|what| WriteProblem {
        at: FieldPath::Domain(DomainField::Devices),
        disk: None,
        message: format!("QEMU alone does not have {what}"),
        help: Some("generate `--to libvirt-xml`, or leave it out".to_owned()),
    });
    let problems: Vec<WriteProblem> = problems.collect();
    match problems.is_empty() {
        true => Ok(words),
        false => Err(WriteProblems(problems)),
    }
}
