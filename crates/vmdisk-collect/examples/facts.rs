//! Prints the facts of this host and of the paths given, as JSON: `facts [--root DIR] [--lvm] [PATH]…`.

use vmdisk_collect::{FactGroup, Request, collect};

#[expect(clippy::print_stdout, reason = "printing is what the example is for")]
fn main() {
    let mut request = Request::new("2026-11-20T05:00:00Z");
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--root" {
            request.root = arguments.next().unwrap_or_default().into();
        } else if argument == "--lvm" {
            request.groups.insert(FactGroup::Lvm);
        } else {
            request.paths.push(argument.into());
        }
    }
    print!("{}", collect(&request).to_json());
}
