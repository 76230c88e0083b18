//! The vmdisk command.

fn main() -> std::process::ExitCode {
    vmdisk_cli::main()
}

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;
