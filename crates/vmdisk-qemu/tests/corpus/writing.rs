//! From the same XML we write the same graphs of nodes.

use vmdisk_qemu::write;

use super::support::*;

#[test]
fn graphs_of_nodes_are_libvirts() {
    let Some(directory) = corpus("qemublock-xml2json") else {
        return;
    };
    let (mut compared, mut ambiguous) = (0, 0);
    let mut wrong = Vec::new();
    for (name, path) in files(&directory, ".xml") {
        let Ok(expected) = std::fs::read_to_string(directory.join(format!("{name}.json"))) else {
            // Refused by libvirt for the length of a node's name, which is not ours to choose.
            assert!(name.starts_with("nodename-long"), "{name} has no answer");
            continue;
        };
        let expected = expected.split_inclusive("\n}\n");
        let expected: Vec<String> = expected.map(str::to_owned).collect();
        let document = vmdisk_libvirt::read(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let line = write(&document.domain, &options("qemu=10.0,libvirt=11.3"))
            .unwrap_or_else(|problems| panic!("{name}: {problems}"));
        let mut ours: Vec<String> = line.blockdevs().map(ToString::to_string).collect();
        ours.reverse();
        let graph = |nodes: &[String]| {
            let words = nodes
                .iter()
                .flat_map(|node| ["-blockdev".to_owned(), node.clone()]);
            let line = Line::new(&words.collect::<Vec<_>>());
            // Some of this data gives one name to two nodes.
            let is_unique = line.node_count() == nodes.len();
            let top: serde_json::Value = serde_json::from_str(&nodes[0]).unwrap();
            is_unique.then(|| line.graph(top["node-name"].as_str().unwrap()))
        };
        let (Some(ours), Some(expected)) = (graph(&ours), graph(&expected)) else {
            ambiguous += 1;
            continue;
        };
        compared += 1;
        if ours != expected {
            wrong.push(format!(
                "{name}:\n  ours      {ours}\n  libvirt's {expected}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    eprintln!("{compared} graphs are the same");
    assert!(ambiguous <= 5, "{ambiguous} have a name twice");
    assert!(compared > 20, "only {compared} graphs were compared");
}
