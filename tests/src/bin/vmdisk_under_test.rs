//! The `vmdisk` command as tests run it.

fn main() -> std::process::ExitCode {
    vmdisk_cli::main()
}
