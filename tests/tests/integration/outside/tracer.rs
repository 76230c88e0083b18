//! Prints the I/O paths of a guest on this host as JSON: tracer GUEST
use vmdisk_collect::{Request, collect};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("expected a guest")?;
    let document = vmdisk::read(&std::fs::read_to_string(&path)?)?;
    let facts = collect(&Request::of(&document.facts_needed(), "2026-11-26T00:00:00Z"));
    let host = vmdisk::Host::new(facts);
    let traced = vmdisk::trace::trace(&document, &host.options());
    print!("{}", vmdisk::report::trace::to_json(&path, None, &traced));
    Ok(())
}
