//! Values at their limits: lint, the command line and a spec say what libvirt 9.0 and QEMU 7.2 say.

use vmdisk::plan::{Spec, plan};
use vmdisk::write::{QemuOptions, libvirt_xml, qemu_command_line};
use vmdisk::{LintOptions, Severity, lint, read};
use vmdisk_facts::Facts;

/// Who refuses a guest. Found with `virsh define` and `virsh start` of libvirt 9.0 with QEMU 7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Nobody,
    /// libvirt alone.
    Libvirt,
    /// Both: QEMU, which libvirt starts; or libvirt, where QEMU has no such value.
    Both,
}

/// Attributes of `<driver>`, elements of the disk, and who refuses it.
const PROBES: [(&str, &str, By); 18] = [
    (
        "",
        "<iotune><total_bytes_sec>0</total_bytes_sec><read_bytes_sec>1000000</read_bytes_sec></iotune>",
        By::Nobody,
    ),
    (
        "",
        "<iotune><total_iops_sec>0</total_iops_sec><write_iops_sec>5</write_iops_sec></iotune>",
        By::Nobody,
    ),
    (
        "",
        "<iotune><read_bytes_sec>100</read_bytes_sec><read_bytes_sec_max>0</read_bytes_sec_max></iotune>",
        By::Nobody,
    ),
    (
        "",
        "<iotune><read_bytes_sec>100</read_bytes_sec><read_bytes_sec_max_length>0</read_bytes_sec_max_length></iotune>",
        By::Nobody,
    ),
    (
        "",
        "<iotune><total_bytes_sec>1000000</total_bytes_sec><total_bytes_sec_max_length>5</total_bytes_sec_max_length></iotune>",
        By::Both,
    ),
    (
        "",
        "<iotune><read_bytes_sec>0</read_bytes_sec><group_name>g</group_name></iotune>",
        By::Libvirt,
    ),
    (
        "",
        "<blockio logical_block_size='0' physical_block_size='4096'/>",
        By::Nobody,
    ),
    (
        "",
        "<blockio logical_block_size='4096' physical_block_size='512'/>",
        By::Both,
    ),
    (
        "",
        "<blockio logical_block_size='512' discard_granularity='0'/>",
        By::Nobody,
    ),
    ("", "<boot order='0'/>", By::Libvirt),
    ("queues='0'", "", By::Nobody),
    ("queues='2000'", "", By::Both),
    ("queue_size='0'", "", By::Nobody),
    ("queue_size='3'", "", By::Both),
    ("queue_size='2048'", "", By::Both),
    ("", "<serial>a b/c,d</serial>", By::Libvirt),
    (
        "",
        "<serial>012345678901234567890123456789</serial>",
        By::Nobody,
    ),
    ("", "<wwn>5000c50015ea71ad</wwn>", By::Both),
];

#[test]
fn values_at_their_limits_get_one_answer() {
    for (driver, elements, by) in PROBES {
        let disk = format!(
            "<domain type='qemu'><name>g</name><memory unit='MiB'>64</memory><vcpu>1</vcpu><os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os><features><acpi/></features><devices><disk type='file' device='disk'><driver name='qemu' type='raw' cache='none' discard='unmap' {driver}/><source file='/srv/a.raw'/><target dev='vda' bus='virtio'/>{elements}</disk></devices></domain>"
        );
        let document = read(&disk).expect("the probe is well-formed");
        let report = lint(&document, &LintOptions::default());
        let mut errors = report.diagnostics.iter();
        let error = errors.find(|it| it.severity == Severity::Error);
        assert_eq!(error.is_some(), by != By::Nobody, "{disk}: {error:?}");

        let arguments = qemu_command_line(document.domain(), &QemuOptions::default());
        assert_eq!(arguments.is_ok(), by != By::Both, "{disk}: {arguments:?}");

        let (mut spec, _) = Spec::of_domain(document.domain());
        spec.guest = None;
        let planned = plan(&spec, &Facts::default(), &Default::default());
        assert_eq!(planned.is_ok(), by == By::Nobody, "{disk}: {planned:?}");
        if let (Ok(planned), By::Nobody) = (planned, by) {
            let written = libvirt_xml(&planned.domain).expect("a plan can be written");
            let value = [driver, elements].concat();
            assert!(
                !value.contains("'0'") || written.contains("='0'"),
                "{written}"
            );
            assert!(
                !value.contains(">0<") || written.contains(">0<"),
                "{written}"
            );
        }
    }
}
