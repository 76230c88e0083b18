//! The cost of a lint of one domain for each interface, in one run: `cargo bench -p vmdisk-benches --bench calls`.
//!
//! Python needs `python3`, WebAssembly `node` and `cargo xtask wasm`; what is missing is skipped with a line.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    unsafe_code,
    reason = "a measurement prints, and calls as C does"
)]

use std::ffi::CString;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::ptr::null;
use std::time::Instant;

use vmdisk::calls::{CallOptions, lint};
use vmdisk_capi::{vmdisk_free, vmdisk_lint};

/// Batches of each interface. The fastest counts: other programs on the machine only add time.
const BATCHES: usize = 30;

/// Lints of a batch.
const ROUNDS: u32 = 300;

const PYTHON: &str = "import sys, time, vmdisk
text = open(sys.argv[1]).read()
def batch():
    begun = time.perf_counter()
    for _ in range(300): vmdisk.lint(text)
    return (time.perf_counter() - begun) * 1e6 / 300
print(min(batch() for _ in range(30)))";

const NODE: &str = "import { readFileSync } from 'node:fs';
import { load } from './vmdisk.js';
const vmdisk = await load(), text = readFileSync(process.argv[2], 'utf8');
const batch = () => {
    const begun = performance.now();
    for (let n = 0; n < 300; n += 1) vmdisk.lint(text);
    return (performance.now() - begun) * 1e3 / 300;
};
console.log(Math.min(...Array.from({ length: 30 }, batch)));";

/// Microseconds of a lint.
fn cost(run: impl Fn()) -> f64 {
    let batches = (0..BATCHES).map(|_| {
        let begun = Instant::now();
        (0..ROUNDS).for_each(|_| run());
        begun.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS)
    });
    batches.fold(f64::INFINITY, f64::min)
}

/// The number that a program prints, or why there is none.
fn printed(command: &mut Command) -> Result<f64, String> {
    let done = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    text.parse()
        .map_err(|_| String::from_utf8_lossy(&done.stderr).into_owned())
}

fn main() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let file = root.join("fixtures/mistakes/09-cache-unsafe.xml");
    let text = std::fs::read_to_string(&file).unwrap();
    let options = CallOptions::default();
    let rust = cost(|| drop(black_box(lint(&text, None, &options)).unwrap()));
    let c_text = CString::new(text.as_str()).unwrap();
    let c = cost(|| unsafe { vmdisk_free(vmdisk_lint(c_text.as_ptr(), null(), null())) });

    let own = std::env::current_exe().unwrap();
    let place = tempfile::tempdir().unwrap();
    let copy = |from: PathBuf, to: &str| {
        let to = place.path().join(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(&from, to).map_err(|error| format!("{}: {error}", from.display()))
    };
    let module = own.with_file_name("libvmdisk_python.so");
    let init = root.join("crates/vmdisk-python/python/vmdisk/__init__.py");
    let python = copy(module, "vmdisk/_vmdisk.abi3.so")
        .and_then(|_| copy(init, "vmdisk/__init__.py"))
        .and_then(|_| {
            let mut python = Command::new("python3");
            printed(python.args(["-c", PYTHON]).arg(&file).current_dir(&place))
        });
    let library = own.ancestors().nth(3).unwrap().join("wasm/vmdisk.wasm");
    let node = copy(library, "vmdisk.wasm")
        .and_then(|_| copy(root.join("bindings/npm/vmdisk.js"), "vmdisk.js"))
        .and_then(|_| copy(root.join("bindings/npm/package.json"), "package.json"))
        .and_then(|_| {
            std::fs::write(place.path().join("cost.js"), NODE).unwrap();
            let mut node = Command::new("node");
            printed(node.arg("cost.js").arg(&file).current_dir(&place))
        });
    println!("a lint of {}, in µs", file.file_name().unwrap().display());
    for (name, cost) in [
        ("Rust", Ok(rust)),
        ("C", Ok(c)),
        ("Python", python),
        ("wasm in Node", node),
    ] {
        match cost {
            Ok(cost) => println!("{name:14} {cost:8.1} {:6.2}", cost / rust),
            Err(reason) => println!("skipped: {name}: {reason}"),
        }
    }
}
