//! The name by which programs find the shared library.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libvmdisk.so.1");
}
