//! What a command reads: nothing above the limit, nothing that is not a file, nothing that another user puts in its way.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Place, Run, UNSAFE, finish};

/// The limit for every file.
const LIMIT: u64 = 16 * 1024 * 1024;

/// Every way in which a command line names a file that is read; `F` is the file.
const READS: &[&str] = &[
    "lint F",
    "lint a.xml F",
    "lint d",
    "lint d/*.xml",
    "lint a.xml --facts F",
    "lint a.xml --facts F --facts facts.json",
    "lint a.xml --config F",
    "lint a.xml --baseline F",
    "lint a.xml --diff --baseline F",
    "lint volume.xml F",
    "lint config.args",
    "lint --live F",
    "lint configured/a.xml",
    "lint F --write-baseline --baseline new.json",
    "advise --size 1G --facts F",
    "decide F",
    "decide a.xml --facts F",
    "decide a.xml --storage F",
    "trace F",
    "trace a.xml --facts F",
    "trace a.xml --storage F",
    "convert F --to spec",
    "convert a.xml --to spec --storage F",
    "generate F",
    "generate spec.yaml --into F",
    "generate spec.yaml --facts F",
    "facts show F",
    "facts diff F facts.json",
    "facts diff facts.json F",
    "facts diff facts.json facts.json --for F",
    "facts redact F --salt-file salt",
    "facts redact facts.json --salt-file F",
    "facts --for F",
    "bench run --plan F --dry-run --directory .",
    "bench run lint --domain F --dry-run --directory .",
    "bench report F",
    "bench report run",
    "bench resume run",
    "bench compare F F",
];

/// A directory with good files, and `F` for each place where one is read.
fn place() -> Place {
    let place = Place::with(&[
        ("a.xml", UNSAFE),
        ("facts.json", "{\"schema_version\": \"1.0\"}"),
        (
            "spec.yaml",
            "version: 1\ndisks:\n  - raw: {path: /srv/a.img, size: 1G}\n",
        ),
        ("salt", "0123456789abcdef0123456789abcdef"),
        ("config.args", "qemu-system-x86_64 -readconfig F"),
        (
            "configured/vmdisk.toml",
            "facts = \"F\"\nbaseline = \"F\"\n",
        ),
        ("configured/a.xml", UNSAFE),
        (
            "volume.xml",
            "<disk type='volume' device='disk'><source pool='p' volume='v'/><target dev='vda' bus='virtio'/></disk>",
        ),
    ]);
    for directory in ["d", "run"] {
        std::fs::create_dir(place.path(directory)).unwrap();
    }
    place
}

/// The places of `F` in the directories.
const PLACES: [&str; 4] = ["F", "d/F.xml", "configured/F", "run/run.json"];

/// Runs a command with a gigabyte of memory.
fn run(place: &Place, words: &str) -> (Run, Duration) {
    let started = Instant::now();
    let mut limited = Command::new("sh");
    let vmdisk = place.command(words.split(' '));
    limited
        .args(["-c", "ulimit -v 1048576; exec \"$0\" \"$@\""])
        .arg(vmdisk.get_program())
        .args(vmdisk.get_args())
        .current_dir(place.path(""))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    (finish(limited, b""), started.elapsed())
}

#[test]
fn no_command_reads_a_file_above_the_limit_or_waits_for_a_pipe() {
    type Make = fn(&std::path::Path);
    let files: [(&str, Make); 4] = [
        // Lengths around the limit: `input::bounded`.
        ("limit + 64", |path| sized(path, LIMIT + 64)),
        ("a terabyte", |path| sized(path, 1 << 40)),
        ("/dev/zero", |path| symlink("/dev/zero", path).unwrap()),
        ("a pipe", make_pipe),
    ];
    let failed = std::sync::Mutex::new(Vec::new());
    for (kind, make) in files {
        let place = place();
        PLACES.iter().for_each(|name| make(&place.path(name)));
        std::thread::scope(|scope| {
            for words in READS.chunks(READS.len().div_ceil(8)) {
                let (place, failed) = (&place, &failed);
                scope.spawn(move || {
                    for words in words {
                        let (run, time) = run(place, words);
                        let said = format!("{}{}", run.stdout, run.stderr);
                        let is_refused = REFUSALS.iter().any(|why| said.contains(why));
                        if run.code != 2 || !is_refused || time > Duration::from_secs(30) {
                            failed
                                .lock()
                                .unwrap()
                                .push(format!("{kind}, {words}: {time:?} {run:?}"));
                        }
                    }
                });
            }
        });
    }
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_file_that_waits_for_more_ends_where_nothing_is_there() {
    // All commands share the reader: one read, since it takes the messages away from other programs.
    let (run, time) = run(&place(), "lint /proc/kmsg");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(time < Duration::from_secs(10), "{time:?}");
}

#[test]
fn no_command_waits_for_a_mount_that_does_not_answer() {
    // A file system in user space without a program that answers, in a namespace of each command.
    let script = "mkdir -p hung && exec 3<>/dev/fuse \
                  && mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 hung hung || exit 99; \
                  timeout --signal=KILL 60 \"$0\" \"$@\" 3<&-";
    let place = place();
    for name in PLACES {
        symlink(place.path("hung/F"), place.path(name)).unwrap();
    }
    let run = |words: &str| {
        let vmdisk = place.command(words.split(' '));
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation", "private", "sh", "-c", script])
            .arg(vmdisk.get_program())
            .args(vmdisk.get_args())
            .current_dir(place.path(""))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        finish(command, b"")
    };
    let is_mounted = match run("--version").code {
        0 => Ok(()),
        _ => Err("the right to mount, and /dev/fuse".to_owned()),
    };
    if vmdisk_testing::needed(is_mounted).is_none() {
        return;
    }
    let words = READS
        .iter()
        .chain(&["facts F --format text", "lint a.xml --report json=F"]);
    let failed = std::thread::scope(|scope| {
        let runs: Vec<_> = words
            .map(|words| (*words, scope.spawn(move || run(words))))
            .collect();
        let runs = runs
            .into_iter()
            .map(|(words, run)| (words, run.join().unwrap()));
        runs.filter(|(_, run)| !matches!(run.code, 0..=2))
            .map(|(words, run)| format!("{words}: {run:?}"))
            .collect::<Vec<_>>()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The reasons why a file is not read.
const REFUSALS: [&str; 6] = [
    // A configuration that is found names a link that leads elsewhere.
    " is outside of ",
    "more than the 16 MiB",
    "not a regular file",
    "no program writes to this pipe",
    // In a directory, a pipe or a device is not an input.
    "no file below this directory",
    "no file matches",
];

fn sized(path: &std::path::Path, length: u64) {
    File::create(path).unwrap().set_len(length).unwrap();
}

/// A repository with a guest and an ignore file, which `make` makes.
fn repository(name: &str, make: &dyn Fn(&std::path::Path)) -> Place {
    let place = Place::with(&[
        ("r/.git/info/HEAD", ""),
        ("r/a.xml", UNSAFE),
        ("outside", "a.xml"),
    ]);
    make(&place.path("r").join(name));
    place
}

#[test]
fn an_ignore_file_is_read_only_if_it_is_small_and_in_the_repository() {
    let patterns = |count: usize| "a.xml\n".repeat(count);
    type Make<'a> = &'a dyn Fn(&std::path::Path);
    let refused: [(&str, Make<'_>); 7] = [
        ("it leads out of", &|path| {
            symlink("/dev/zero", path).unwrap()
        }),
        ("it leads out of", &|path| {
            symlink("/proc/kmsg", path).unwrap()
        }),
        ("it leads out of", &|path| {
            symlink(
                path.ancestors()
                    .find(|at| at.ends_with("r"))
                    .unwrap()
                    .with_file_name("outside"),
                path,
            )
            .unwrap()
        }),
        ("not a regular file", &|path| make_pipe(path)),
        ("not a regular file", &|path| {
            std::fs::create_dir(path).unwrap()
        }),
        ("more than the 1 MiB", &|path| sized(path, 1 << 40)),
        ("more than 10000 patterns", &|path| {
            std::fs::write(path, patterns(10_001)).unwrap()
        }),
    ];
    for name in [".gitignore", ".ignore", ".git/info/exclude"] {
        for (why, make) in refused {
            let place = repository(name, make);
            let (run, time) = run(&place, "lint r --select cache-unsafe");
            assert_eq!(run.code, 2, "{name} {why}: {run:?}");
            let line = format!("r/{name}");
            assert!(
                run.stderr.contains(why) && run.stderr.contains(&line),
                "{name} {why}: {run:?}"
            );
            assert!(
                run.stdout.contains("a.xml:2:"),
                "the guest is checked: {run:?}"
            );
            assert!(time < Duration::from_secs(10), "{name} {why}: {time:?}");
        }
        // A link inside the repository, and the largest file.
        for make in [
            &(|path: &std::path::Path| {
                let target = path
                    .ancestors()
                    .find(|at| at.ends_with("r"))
                    .unwrap()
                    .join("patterns");
                std::fs::write(&target, "a.xml\n").unwrap();
                symlink(target, path).unwrap();
            }) as Make<'_>,
            &|path| std::fs::write(path, patterns(10_000)).unwrap(),
        ] {
            let (run, _) = run(&repository(name, make), "lint r");
            assert!(
                run.stderr.contains("no file below this directory"),
                "{name}: {run:?}"
            );
        }
    }
}

fn make_pipe(path: &std::path::Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The text that no message may repeat.
const SECRET: &str = "S3CRET";

#[test]
fn a_configuration_that_is_found_leads_out_of_no_repository_and_no_secret_is_printed() {
    let shadow = format!("root:$y${SECRET}:20228:0:99999:7::\nuser:$y${SECRET}:1:0:99999:7::\n");
    let place = Place::with(&[("d/a.xml", UNSAFE), ("shadow", &shadow)]);
    let config = place.path("d/vmdisk.toml");
    let shadow = place.path("shadow");
    make_pipe(&place.path("d/fifo"));
    let named = |key: &str, path: &str| format!("{key} = {path:?}\n");
    let outside = shadow.display().to_string();
    let mut texts = Vec::new();
    for key in ["facts", "baseline"] {
        for path in [
            &*outside,
            "../shadow",
            "fifo",
            "/dev/stdin",
            "/dev/zero",
            "/proc/kmsg",
        ] {
            texts.push(named(key, path));
        }
    }
    for text in texts {
        std::fs::write(&config, &text).unwrap();
        let (run, time) = run(&place, "lint d -v");
        assert_eq!(run.code, 2, "{text}: {run:?}");
        assert!(run.stderr.contains("d/vmdisk.toml"), "{text}: {run:?}");
        assert!(!run.stderr.contains(SECRET), "{text}: {run:?}");
        assert!(time < Duration::from_secs(10), "{text}: {time:?}");
    }
    std::fs::remove_file(&config).unwrap();
    for target in ["../shadow", "fifo", "/dev/zero", "/proc/self/environ"] {
        symlink(target, &config).unwrap();
        let (run, time) = run(&place, "lint d");
        assert_eq!(run.code, 2, "{target}: {run:?}");
        assert!(!run.stderr.contains(SECRET), "{target}: {run:?}");
        assert!(time < Duration::from_secs(10), "{target}: {time:?}");
        std::fs::remove_file(&config).unwrap();
    }
    // Named by the caller: the file is read, and its keys still are not repeated.
    let (named, _) = run(&place, "lint d --facts shadow");
    assert!(
        named.code == 2 && !named.stderr.contains(SECRET),
        "{named:?}"
    );
}

#[test]
fn a_configuration_of_another_user_is_refused_and_verbose_names_the_one_in_use() {
    let place = Place::with(&[
        ("r/.git/HEAD", ""),
        ("r/vmdisk.toml", "[rules]\ncache-unsafe = \"off\"\n"),
        ("r/p/a.xml", UNSAFE),
    ]);
    let own = place.run(&["lint", "r", "-v"]);
    assert!(
        own.stderr.contains("configuration: r/vmdisk.toml\n"),
        "{own:?}"
    );
    if std::os::unix::fs::chown(place.path("r/vmdisk.toml"), Some(65534), None).is_err() {
        return;
    }
    let other = place.run(&["lint", "r/p/a.xml"]);
    assert_eq!(other.code, 2, "{other:?}");
    assert!(other.stderr.contains("--config r/vmdisk.toml"), "{other:?}");
    let named = place.run(&["lint", "r/p/a.xml", "--config", "r/vmdisk.toml"]);
    assert!(!named.stdout.contains("cache-unsafe"), "{named:?}");
    // The owner of the directory of the input decides about it.
    std::os::unix::fs::chown(place.path("r/p"), Some(65534), None).unwrap();
    let owner = place.run(&["lint", "r/p/a.xml"]);
    assert!(owner.code != 2, "{owner:?}");
}

#[test]
fn a_link_to_a_pipe_or_an_open_file_is_not_followed_in_a_directory() {
    for target in ["/dev/stdin", "/proc/self/fd/0"] {
        let place = Place::with(&[("w/a.xml", UNSAFE)]);
        symlink(target, place.path("w/x.xml")).unwrap();
        let run = place.run_with_input(&["lint", "w"], UNSAFE.as_bytes());
        assert_eq!(run.code, 2, "{target}: {run:?}");
        assert!(!run.stdout.contains("w/x.xml:"), "{target}: {run:?}");
    }
}
