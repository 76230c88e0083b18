
/// True if the mutant of this number runs; notes in a file that its place was reached.
#[doc(hidden)]
pub fn __mutant(number: usize) -> bool {
    use std::sync::atomic::{AtomicBool, Ordering};
    static CHOSEN: std::sync::LazyLock<Option<usize>> =
        std::sync::LazyLock::new(|| std::env::var("VMDISK_MUTANT").ok()?.parse().ok());
    static NOTE: std::sync::LazyLock<Option<std::fs::File>> = std::sync::LazyLock::new(|| {
        let path = std::env::var_os("VMDISK_MUTANTS_REACHED")?;
        std::fs::OpenOptions::new().append(true).create(true).open(path).ok()
    });
    static REACHED: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];
    if let Some(mut note) = NOTE.as_ref()
        && !REACHED[number].swap(true, Ordering::Relaxed)
    {
        let _ = std::io::Write::write_all(&mut note, format!("{number}\n").as_bytes());
    }
    *CHOSEN == Some(number)
}
