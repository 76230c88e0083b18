//! What others do with names while an output is written: at each step, and at random.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::step::STEP;
use super::{ReplaceError, create, replace, rewrite, write};

/// The steps between which names are used.
const STEPS: [&str; 6] = [
    "resolved",
    "looked at",
    "opened",
    "created",
    "written",
    "compared",
];

const OURS: &str = "before";
const NEW: &str = "after";
/// An image, since another text is what an output may replace.
const THEIRS: &str = "theirs, which nothing may destroy\0";

type Function = fn(&Path) -> Result<(), ReplaceError>;

const FUNCTIONS: [(&str, Function); 4] = [
    ("replace", |path| {
        replace(path, OURS.as_bytes(), NEW.as_bytes())
    }),
    ("write", |path| write(path, NEW.as_bytes())),
    ("rewrite", |path| {
        rewrite(path, |out| out.write_all(NEW.as_bytes()))
    }),
    ("create", |path| create(path, NEW.as_bytes())),
];

/// A directory `d` with the output, and a file of somebody else beside it.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["d", "other"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("victim"), THEIRS).unwrap();
        fs::write(folder.path().join("other/a.xml"), THEIRS).unwrap();
        Scene { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// No file of theirs is lost, and nothing is left of ours.
    fn assert_unharmed(&self, what: &str) {
        assert_eq!(
            fs::read_to_string(self.at("victim")).unwrap(),
            THEIRS,
            "{what}"
        );
        let in_other = ["other/a.xml", "d/a.xml"].map(|name| fs::read_to_string(self.at(name)));
        assert!(
            in_other.iter().flatten().any(|text| text == THEIRS),
            "{what}: {in_other:?}"
        );
        for folder in ["d", "other", "moved"] {
            let Ok(entries) = fs::read_dir(self.at(folder)) else {
                continue;
            };
            for entry in entries {
                let name = entry.unwrap().file_name();
                assert!(
                    !name.to_string_lossy().ends_with(".tmp"),
                    "{what}: {name:?}"
                );
            }
        }
    }
}

/// What another user does with the name `d/a.xml`.
fn swap(root: &Path, kind: usize) {
    let name = root.join("d/a.xml");
    match kind {
        // A link to a file of somebody else.
        0 => {
            let _ = fs::remove_file(&name);
            let _ = symlink(root.join("victim"), &name);
        }
        // A file of somebody else, whose only copy is lost if it is replaced.
        1 => drop(fs::rename(root.join("other/a.xml"), &name)),
        // Another directory.
        2 => {
            let _ = fs::rename(root.join("d"), root.join("moved"));
            let _ = symlink(root.join("other"), root.join("d"));
        }
        // A hard link to a file of somebody else.
        3 => {
            let _ = fs::remove_file(&name);
            let _ = fs::hard_link(root.join("victim"), &name);
        }
        // Nothing.
        _ => drop(fs::remove_file(&name)),
    }
}

#[test]
fn a_swap_at_any_step_destroys_nothing_of_others() {
    let mut reached_steps = std::collections::BTreeSet::new();
    for (name, function) in FUNCTIONS {
        for (step, kind) in STEPS
            .iter()
            .flat_map(|step| (0..5).map(move |kind| (*step, kind)))
        {
            // What is there at the first look is what the run has read to change it.
            if name == "rewrite" && step == "resolved" && kind == 1 {
                continue;
            }
            let scene = Scene::new();
            let path = scene.at("d/a.xml");
            if name != "create" {
                fs::write(&path, OURS).unwrap();
            }
            let root = scene.folder.path().to_owned();
            let (seen, mut is_done) = (std::rc::Rc::new(RefCell::new(false)), false);
            let was_seen = std::rc::Rc::clone(&seen);
            STEP.set(Some(Box::new(move |at| {
                if at == step && !is_done {
                    is_done = true;
                    *was_seen.borrow_mut() = true;
                    swap(&root, kind);
                }
            })));
            let result = function(&path);
            STEP.set(None);
            if *seen.borrow() {
                reached_steps.insert(step);
            }
            scene.assert_unharmed(&format!("{name} at {step:?}, swap {kind}: {result:?}"));
        }
    }
    assert_eq!(reached_steps.len(), STEPS.len(), "{reached_steps:?}");
}

#[test]
fn swaps_at_random_destroy_nothing_of_others() {
    let tries = std::env::var("VMDISK_RACES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(40);
    let mut written = std::collections::BTreeMap::new();
    for nth in 0..tries {
        let (name, function) = FUNCTIONS[nth % FUNCTIONS.len()];
        let kind = nth / FUNCTIONS.len() % 5;
        // It replaces what it finds first, which may be what was swapped.
        if name == "rewrite" {
            continue;
        }
        let scene = Scene::new();
        let path = scene.at("d/a.xml");
        if name != "create" {
            fs::write(&path, OURS).unwrap();
        }
        let is_over = AtomicBool::new(false);
        let root = scene.folder.path();
        std::thread::scope(|scope| {
            scope.spawn(|| swap_after(root, kind, nth % 97, &is_over));
            let is_written = function(&path).is_ok();
            is_over.store(true, Ordering::Relaxed);
            let (all, ended) = written.entry(name).or_insert((0, 0));
            (*all, *ended) = (*all + 1, *ended + usize::from(is_written));
        });
        scene.assert_unharmed(&format!("{name}, swap {kind}"));
    }
    println!("tries, and how many of them wrote: {written:?}");
    let is_shown = written.values().all(|(all, ended)| ended * 2 > *all);
    assert!(tries < 400 || is_shown, "{written:?}");
}

/// Waits for four times so many microseconds, and swaps if the function has not ended.
fn swap_after(root: &Path, kind: usize, when: usize, is_over: &AtomicBool) {
    let then = Instant::now() + Duration::from_micros(4 * when as u64);
    while Instant::now() < then {
        std::thread::yield_now();
    }
    if !is_over.load(Ordering::Relaxed) {
        swap(root, kind);
    }
}
