
/// True if the mutant of this number runs; notes in a file that its place was reached.
#[doc(hidden)]
pub fn __mutant(number: usize) -> bool {
    use std::sync::{LazyLock, Mutex};
    static CHOSEN: LazyLock<Option<usize>> =
        LazyLock::new(|| std::env::var("VMDISK_MUTANT").ok()?.parse().ok());
    static REACHED: LazyLock<Option<Mutex<(std::fs::File, std::collections::BTreeSet<usize>)>>> =
        LazyLock::new(|| {
            let path = std::env::var_os("VMDISK_MUTANTS_REACHED")?;
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path).ok()?;
            Some(Mutex::new((file, std::collections::BTreeSet::new())))
        });
    if let Some(reached) = &*REACHED {
        let mut reached = reached.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if reached.1.insert(number) {
            let _ = std::io::Write::write_all(&mut reached.0, format!("{number}\n").as_bytes());
        }
    }
    *CHOSEN == Some(number)
}
