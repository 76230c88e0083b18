//! House rules: conditions in `vmdisk.toml`, which report, are allowed and are selected as other rules are.

use crate::{Place, Run};

const GUIDE: &str = include_str!("../../../../docs/house-rules.md");

/// The twelve examples of the guide.
fn examples() -> &'static str {
    let blocks = GUIDE.split("```toml\n").skip(1);
    let blocks = blocks.filter_map(|block| block.split("```").next());
    blocks.last().unwrap()
}

fn guest(name: &str, disks: &str) -> String {
    format!(
        "<domain type='kvm'>\n<name>{name}</name>\n<memory unit='MiB'>512</memory>\n<vcpu>2</vcpu>\n<os><type \
         arch='x86_64' machine='q35'>hvm</type></os>\n<devices>\n{disks}</devices>\n</domain>\n"
    )
}

/// A guest whose disk breaks most of the rules.
fn bad() -> String {
    let backing = "<backingStore type='file'><format type='qcow2'/><source file='/srv/soft/b'/>";
    let first = format!(
        "<disk type='file' device='disk'>\n<driver name='qemu' type='qcow2' queues='4'/>\n<source file='/srv/golden/a'/>\n\
         {backing}{backing}{backing}<backingStore/></backingStore></backingStore></backingStore>\n\
         <target dev='vda' bus='virtio'/>\n</disk>\n"
    );
    let nfs = "<disk type='file' device='disk'>\n<driver name='qemu' type='qcow2'/>\n<source file='/srv/soft/web1.img'/>\n\
               <target dev='sda' bus='sata'/>\n</disk>\n";
    let further = (0..7).map(|nth| {
        format!(
            "<disk type='file' device='disk'>\n<driver name='qemu' type='raw'/>\n<source file='/srv/c{nth}'/>\n\
             <target dev='vd{}' bus='virtio'/>\n</disk>\n",
            char::from(b'b' + nth)
        )
    });
    guest(
        "web1",
        &format!("{first}{nfs}{}", further.collect::<String>()),
    )
}

const GOOD: &str = "<disk type='file' device='disk'>\n<driver name='qemu' type='raw' cache='none' io='native' \
                    discard='unmap' queues='2'/>\n<source file='/var/lib/libvirt/images/a.img'/>\n\
                    <target dev='vda' bus='virtio'/>\n<serial>one</serial>\n</disk>\n";

fn place(config: &str) -> Place {
    Place::with(&[
        (".git/HEAD", ""),
        ("vmdisk.toml", config),
        ("bad.xml", &bad()),
        ("good.xml", &guest("vm-1", GOOD)),
    ])
}

fn lint(place: &Place, arguments: &[&str]) -> Run {
    let words = ["lint", "--format", "concise", "--min-severity", "advice"];
    let words: Vec<&str> = words.iter().chain(arguments).copied().collect();
    place.run(&words)
}

/// The house rules that a run reports, each once.
fn reported(run: &Run) -> std::collections::BTreeSet<&str> {
    let names = run.stdout.split('[').skip(1);
    let names = names.filter_map(|rest| rest.split(']').next());
    names.filter(|name| name.starts_with("house-")).collect()
}

#[test]
fn each_example_of_the_guide_reports_a_guest_that_breaks_it_and_no_other() {
    let names: Vec<&str> = examples()
        .lines()
        .filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
        .collect();
    assert_eq!(names.len(), 12);
    let place = place(&examples().replace("100 * 1024 * 1024", "100000 * 1024 * 1024"));
    let facts = format!(
        "{}/../../fixtures/facts/unsafe-mounts.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let run = lint(&place, &["bad.xml", "--facts", &facts]);
    assert_eq!(reported(&run), names.into_iter().collect(), "{run:?}");
    assert!(
        run.stdout
            .contains(": warning[house-serial]: `vda`: the disk has no serial number"),
        "{run:?}"
    );
    let run = lint(&place, &["good.xml", "--facts", &facts]);
    assert!(reported(&run).is_empty(), "{run:?}");
}

#[test]
fn without_facts_a_rule_about_the_host_is_not_checked() {
    let place = place(examples());
    let run = place.run(&["lint", "good.xml", "-v"]);
    let missed = run.stdout.clone() + &run.stderr;
    assert!(missed.contains("house-room"), "{run:?}");
    // `and` ends before the fact: the image is no qcow2.
    assert!(!missed.contains("house-qcow2-on-nfs"), "{run:?}");
}

#[test]
fn a_house_rule_is_selected_ignored_allowed_and_switched_off_as_others() {
    let place = place(examples());
    let run = lint(&place, &["bad.xml", "--select", "house-serial"]);
    assert_eq!(reported(&run).len(), 1, "{run:?}");
    assert!(!run.stdout.contains("[bus-emulated]"), "{run:?}");
    let run = lint(&place, &["bad.xml", "--ignore", "house-serial"]);
    assert!(!reported(&run).contains("house-serial"), "{run:?}");
    assert!(reported(&run).contains("house-no-ide"), "{run:?}");
    let all = format!(
        "{}\n[rules]\nhouse-serial = 'off'\nhouse-no-ide = 'error'\nbus-emulated = 'off'\n",
        examples()
    );
    place.write("vmdisk.toml", all.as_bytes());
    let run = lint(&place, &["bad.xml"]);
    assert!(!run.stdout.contains("house-serial"), "{run:?}");
    assert!(run.stdout.contains(": error[house-no-ide]"), "{run:?}");
    place.write("vmdisk.toml", examples().as_bytes());
    let comment = "<!-- vmdisk: allow(house-serial) the inventory knows it -->\n<domain";
    place.write("bad.xml", bad().replacen("<domain", comment, 1).as_bytes());
    let run = lint(&place, &["bad.xml"]);
    assert!(!reported(&run).contains("house-serial"), "{run:?}");
    assert!(!run.stdout.contains("allowance-u"), "{run:?}");
}

#[test]
fn reports_for_programs_name_the_rule_and_its_page() {
    let place = place(examples());
    let run = place.run(&["lint", "bad.xml", "--format", "sarif"]);
    let sarif: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let rules = sarif["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let of_house = |result: &&serde_json::Value| result["ruleId"] == "house-serial";
    let result = results.iter().find(of_house).unwrap();
    let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
    assert_eq!(rule["id"], "house-serial");
    let page = rule["helpUri"].as_str().unwrap();
    assert!(page.ends_with("/docs/house-rules.md"), "{page}");
    // A baseline knows its findings.
    place.run(&["lint", "bad.xml", "--write-baseline", "known.json"]);
    let run = lint(&place, &["bad.xml", "--baseline", "known.json"]);
    assert!(reported(&run).is_empty(), "{run:?}");
}

#[test]
fn mistakes_have_their_places() {
    let rule = |name: &str, when: &str| {
        format!("[[rule]]\nname = \"{name}\"\nwhen = \"{when}\"\nmessage = \"m\"\n")
    };
    for (config, expected) in [
        (
            rule("serial", "disk.serial"),
            "error: `serial` is not a name of a house rule\n --> vmdisk.toml:2:8\n",
        ),
        (
            rule("house-a", "disk.serail"),
            "error: `disk` has no `serail`\n --> vmdisk.toml:3:8\n",
        ),
        (
            rule("house-a", "disk.filesystem.kin"),
            "`disk.filesystem` has no `kin`",
        ),
        (
            rule("house-a", "disk.filesystem"),
            "`disk.filesystem` has no value of its own",
        ),
        (rule("house-a", "guset.name"), "there is no `guset.name`"),
        (rule("house-a", "1 == 1"), "the condition names no field"),
        (rule("house-a", "disk.serial =="), " --> vmdisk.toml:3:8\n"),
        (rule("house-a", "disk.serial|upper"), "upper"),
        (rule("house-a", "disk.serial is nothing"), "nothing"),
        (
            format!("{0}{0}", rule("house-a", "disk.serial")),
            "two house rules have the name `house-a`",
        ),
        (
            "[[rule]]\nname = \"house-a\"\nmessage = \"m\"\n".to_owned(),
            "a house rule has no `when`",
        ),
        (
            "[[rule]]\nname = \"house-a\"\nwhen = \"disk.serial\"\nmesage = \"m\"\n".to_owned(),
            "did you mean `message`?",
        ),
    ] {
        let run = lint(&place(&config), &["bad.xml"]);
        assert_eq!(run.code, 2, "{config}: {run:?}");
        assert!(run.stderr.contains(expected), "{config}: {run:?}");
    }
}

/// What a hostile repository may write ends soon, in an error or in a rule that is not checked.
#[test]
fn hostile_conditions_are_bounded() {
    let deep = format!("{}disk.serial{}", "(".repeat(1000), ")".repeat(1000));
    for when in [
        deep.as_str(),
        "disk.serial == 'x' * 1000000000",
        "disk.serial == ['x'] * 1000000000",
        "disk.images ** 1000000000 > 1",
        "disk.serial ~ 'x' * 100000 ~ 'x' * 100000",
        &format!("disk.serial == '{}'", "x".repeat(5000)),
    ] {
        let config = format!("[[rule]]\nname = \"house-a\"\nwhen = \"{when}\"\nmessage = \"m\"\n");
        let start = std::time::Instant::now();
        let run = lint(&place(&config), &["bad.xml"]);
        assert!(run.code == 1 || run.code == 2, "{run:?}");
        assert!(start.elapsed().as_secs() < 20, "{when}");
    }
}
