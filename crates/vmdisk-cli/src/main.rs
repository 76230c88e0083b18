//! The vmdisk command.

fn main() -> std::process::ExitCode {
    vmdisk_cli::main()
}
