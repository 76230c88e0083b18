//! Plans a disk for a host, and prints its XML and the script that creates it: provisioner PATH SIZE FACTS
use std::error::Error;

use vmdisk::Host;
use vmdisk::model::Bytes;
use vmdisk::plan::{Spec, plan, script};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, size, facts] = &arguments[..] else {
        return Err("expected PATH SIZE FACTS".into());
    };
    let host = Host::parse(&std::fs::read_to_string(facts)?)?;
    let Bytes(size) = size.parse()?;
    let spec = format!("version: 1\ndisks: [{{qcow2: {{path: {path:?}, size: {size}}}}}]");
    let spec = Spec::from_yaml(&spec)?;
    let plan = plan(&spec, host.facts(), &host.options().target)?;
    for choice in &plan.choices {
        eprintln!("{}={}: {}", choice.option, choice.value, choice.reason);
    }
    print!("{}\n{}", vmdisk::write::libvirt_xml(&plan.domain)?, script(&plan));
    Ok(())
}
