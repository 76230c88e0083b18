//! From the same XML our libvirt style writes the same nodes, to the byte.

use vmdisk_qemu::write;

use super::support::*;

/// JSON without the spaces that are there for people.
fn compact(pretty: &str) -> String {
    pretty
        .lines()
        .map(|line| line.trim().replacen("\": ", "\":", 1))
        .collect()
}

/// A node without the ids of the objects beside it, which this data makes up; and without the secret of
/// cookies, which it leaves out.
fn without_object_ids(node: &str) -> String {
    let members = [
        "key-secret",
        "password-secret",
        "tls-creds",
        "pr-manager",
        "cookie-secret",
    ];
    members.iter().fold(node.to_owned(), |node, member| {
        let key = format!("\"{member}\":\"");
        let Some(at) = node.find(&key) else {
            return node;
        };
        let (before, rest) = node.split_at(at + key.len());
        let (_, after) = rest.split_once('"').unwrap();
        if *member == "cookie-secret" {
            let before = before.strip_suffix(&key).unwrap();
            return format!("{before}{}", after.strip_prefix(',').unwrap());
        }
        format!("{before}\"{after}")
    })
}

#[test]
fn nodes_are_libvirts_to_the_byte() {
    let Some(directory) = corpus("qemublock-xml2json") else {
        return;
    };
    let mut compared = 0;
    let mut wrong = Vec::new();
    for (name, path) in files(&directory, ".xml") {
        let Ok(expected) = std::fs::read_to_string(directory.join(format!("{name}.json"))) else {
            // Refused by libvirt for the length of a node's name, which is not ours to choose.
            assert!(name.starts_with("nodename-long"), "{name} has no answer");
            continue;
        };
        let expected: Vec<String> = expected.split_inclusive("\n}\n").map(compact).collect();
        let document = vmdisk_libvirt::read(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let domain = document.domain;
        // A QEMU for which libvirt writes the format node of raw images too, as this data has it.
        let line = write(&domain, &options("qemu=8.2,libvirt=11.3"))
            .unwrap_or_else(|problems| panic!("{name}: {problems}"));
        let mut ours: Vec<String> = line.blockdevs().map(ToString::to_string).collect();
        ours.reverse();
        if ours.len() != expected.len() {
            wrong.push(format!(
                "{name}: {} nodes, not {}",
                ours.len(),
                expected.len()
            ));
            continue;
        }
        let node_name = |node: &str| {
            let rest = node.split("\"node-name\":").nth(1).unwrap();
            format!("\"{}\"", rest.split('"').nth(1).unwrap())
        };
        let names: Vec<(String, String)> = ours
            .iter()
            .zip(&expected)
            .map(|(ours, expected)| (node_name(ours), node_name(expected)))
            .collect();
        for (ours, expected) in ours.iter().zip(&expected) {
            let ours = names
                .iter()
                .fold(ours.clone(), |node, (from, to)| node.replace(from, to));
            compared += 1;
            if without_object_ids(&ours) != without_object_ids(expected) {
                wrong.push(format!(
                    "{name}:\n  ours     {ours}\n  libvirt's {expected}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    eprintln!("{compared} nodes are the same");
    assert!(compared > 110, "only {compared} nodes were compared");
}
