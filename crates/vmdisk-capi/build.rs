//! The name by which programs find the shared library; WebAssembly has no such names.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_FAMILY").as_deref() != Ok("wasm") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libvmdisk.so.1");
    }
}
