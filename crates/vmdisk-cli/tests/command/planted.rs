//! Healthy guests with five planted mistakes of five groups: exactly these are found, each at its disk.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Place;

/// A rule, its group, and the disk that breaks it.
type Mistake = (&'static str, &'static str, &'static str);

/// Mistakes in guests of libvirt.
const IN_XML: [Mistake; 5] = [
    (
        "native-without-direct",
        "startup",
        "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='writeback' io='native'/>\
         <source file='/srv/planted/1.img'/><target dev='vdq' bus='virtio'/></disk>",
    ),
    (
        "cache-unsafe",
        "data-safety",
        "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='unsafe'/>\
         <source file='/srv/planted/2.img'/><target dev='vdr' bus='virtio'/></disk>",
    ),
    (
        "format-missing",
        "security",
        "<disk type='file' device='disk'><driver name='qemu'/>\
         <source file='/srv/planted/3.img'/><target dev='vds' bus='virtio'/></disk>",
    ),
    (
        "cache-writethrough",
        "performance",
        "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='writethrough'/>\
         <source file='/srv/planted/4.img'/><target dev='vdt' bus='virtio'/></disk>",
    ),
    (
        "detect-zeroes-unmap-no-discard",
        "clarity",
        "<disk type='file' device='disk'><driver name='qemu' type='raw' detect_zeroes='unmap'/>\
         <source file='/srv/planted/5.img'/><target dev='vdu' bus='virtio'/></disk>",
    ),
];

/// Other mistakes in guests of libvirt.
const IN_OTHER_XML: [Mistake; 5] = [
    (
        "duplicate-target",
        "startup",
        "<disk type='file' device='disk'><driver name='qemu' type='raw'/>\
         <source file='/srv/planted/1.img'/><target dev='vda' bus='virtio'/></disk>",
    ),
    (
        "error-policy-ignore",
        "data-safety",
        "<disk type='file' device='disk'><driver name='qemu' type='raw' error_policy='ignore'/>\
         <source file='/srv/planted/2.img'/><target dev='vdr' bus='virtio'/></disk>",
    ),
    (
        "format-missing",
        "security",
        "<disk type='file' device='disk'><driver name='qemu' cache='none'/>\
         <source file='/srv/planted/3.img'/><target dev='vds' bus='virtio'/></disk>",
    ),
    (
        "cache-writethrough",
        "performance",
        "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='directsync'/>\
         <source file='/srv/planted/4.img'/><target dev='vdt' bus='virtio'/></disk>",
    ),
    (
        "detect-zeroes-unmap-no-discard",
        "clarity",
        "<disk type='file' device='disk'><driver name='qemu' type='raw' detect_zeroes='unmap'/>\
         <source file='/srv/planted/5.img'/><target dev='vdu' bus='virtio'/></disk>",
    ),
];

/// Mistakes in command lines.
const IN_ARGUMENTS: [Mistake; 5] = [
    (
        "native-without-direct",
        "startup",
        "-drive file=/srv/planted/1.img,if=virtio,format=raw,cache=writeback,aio=native",
    ),
    (
        "cache-unsafe",
        "data-safety",
        "-drive file=/srv/planted/2.img,if=virtio,format=raw,cache=unsafe",
    ),
    (
        "format-missing",
        "security",
        "-drive file=/srv/planted/3.img,if=virtio",
    ),
    (
        "cache-writethrough",
        "performance",
        "-drive file=/srv/planted/4.img,if=virtio,format=raw,cache=writethrough",
    ),
    (
        "cache-contradicted",
        "clarity",
        "-drive file=/srv/planted/5.img,if=virtio,format=raw,cache=none,cache.direct=off",
    ),
];

/// The healthy guests with the mistakes that each gets.
const GUESTS: [(&str, &[Mistake; 5]); 8] = [
    ("virt-install.xml", &IN_XML),
    ("gnome-boxes.xml", &IN_OTHER_XML),
    ("kubevirt.xml", &IN_XML),
    ("nova.xml", &IN_OTHER_XML),
    ("ovirt.xml", &IN_XML),
    ("terraform.xml", &IN_OTHER_XML),
    ("multipass.args", &IN_ARGUMENTS),
    ("proxmox.args", &IN_ARGUMENTS),
];

fn plant(guest: &str, mistakes: &[Mistake]) -> String {
    let disks: Vec<&str> = mistakes.iter().map(|(.., disk)| *disk).collect();
    match guest.trim_end().strip_suffix("</domain>") {
        Some(guest) => {
            let devices = guest.trim_end().strip_suffix("</devices>").unwrap();
            format!("{devices}{}\n  </devices>\n</domain>\n", disks.join("\n"))
        }
        None => format!("{} \\\n  {}\n", guest.trim_end(), disks.join(" \\\n  ")),
    }
}

/// The number of findings above advice for each rule, and its group.
fn found(place: &Place, name: &str, arguments: &[&str]) -> BTreeMap<(String, String), usize> {
    let fixed = ["lint", name, "terraform-pool.xml"];
    let rest = ["--min-severity", "warning", "--format", "json"];
    let arguments: Vec<&str> = fixed
        .iter()
        .chain(&rest)
        .chain(arguments)
        .copied()
        .collect();
    let run = place.run(&arguments);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let mut found = BTreeMap::new();
    for finding in report["findings"].as_array().unwrap() {
        let rule = finding["rule"].as_str().unwrap().to_owned();
        let group = vmdisk::rules::find(&rule)
            .unwrap()
            .group
            .as_str()
            .to_owned();
        *found.entry((rule, group)).or_insert(0) += 1;
    }
    found
}

#[test]
fn five_mistakes_in_a_healthy_guest_are_all_that_is_found() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/healthy");
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    let (pool, facts) = (read("terraform-pool.xml"), read("host.facts.json"));
    for (name, mistakes) in GUESTS {
        let guest = plant(&read(name), mistakes);
        let files = [
            (name, guest.as_str()),
            ("terraform-pool.xml", &pool),
            ("host.facts.json", &facts),
        ];
        let place = Place::with(&files);
        let expected: BTreeMap<(String, String), usize> = mistakes
            .iter()
            .map(|(rule, group, _)| (((*rule).to_owned(), (*group).to_owned()), 1))
            .collect();
        assert_eq!(expected.len(), 5);
        for arguments in [&[][..], &["--facts", "host.facts.json"]] {
            assert_eq!(
                found(&place, name, arguments),
                expected,
                "{name} {arguments:?}\n{guest}"
            );
        }
        // Each mistake alone is found alone.
        for mistake in mistakes {
            let guest = plant(&read(name), std::slice::from_ref(mistake));
            let place = Place::with(&[(name, guest.as_str()), ("terraform-pool.xml", &pool)]);
            let found = found(&place, name, &[]);
            let rules: Vec<&str> = found.keys().map(|(rule, _)| rule.as_str()).collect();
            assert_eq!(rules, [mistake.0], "{name}\n{guest}");
        }
    }
}
