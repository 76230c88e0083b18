//! Prints the facts of this host and of the paths given, as JSON.

use vmdisk_collect::{Request, collect};

#[expect(clippy::print_stdout, reason = "printing is what the example is for")]
fn main() {
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.paths = std::env::args_os().skip(1).map(Into::into).collect();
    print!("{}", collect(&request).to_json());
}
