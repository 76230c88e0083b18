//! The files below a directory that may hold a guest, by the ends of their names.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::input::absolute::absolute;
use crate::input::bounded;
use crate::input::ignored::Ignored;
use crate::input::watch::Progress;
use crate::pattern;
use crate::stop::plain;

/// The files found below a directory.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Files by the ends of their names, sorted; whether they hold a guest is for the reader to say.
    pub(crate) files: Vec<PathBuf>,
    /// Unreadable paths, each with the reason.
    pub(crate) trouble: Vec<(PathBuf, String)>,
}

/// Ends of the names of files that may hold a guest.
pub(crate) const EXTENSIONS: [&str; 6] = ["xml", "args", "cmdline", "cfg", "yaml", "yml"];

/// Ends of the names of files that may start QEMU: scripts, makefiles, units, and documentation with commands.
pub(crate) const SCRIPTS: [&str; 10] = [
    "adoc", "bash", "hcl", "just", "ksh", "md", "mk", "rst", "service", "sh",
];

/// Ends of the names of files from which other programs make guests: they are not read, but counted.
const UNREAD: [&str; 10] = [
    "bat", "cmd", "fish", "nix", "pl", "ps1", "py", "rb", "tf", "zsh",
];

/// Names of files that may start QEMU. Those without an end are looked into as well.
pub(crate) const NAMES: [&str; 6] = [
    "Containerfile",
    "Dockerfile",
    "GNUmakefile",
    "Makefile",
    "justfile",
    "makefile",
];

/// Ends of the names of templates.
pub(crate) const TEMPLATES: [&str; 13] = [
    "ejs", "erb", "gotmpl", "hbs", "in", "j2", "jinja", "jinja2", "mustache", "template", "tftpl",
    "tmpl", "tpl",
];

/// Hidden names that are looked into: hosted services keep their workflows there.
const HIDDEN: [&str; 4] = [".circleci", ".forgejo", ".github", ".gitlab-ci.yml"];

/// The size of the largest file that is looked into whatever its name is.
const SMALL: u64 = 64 * 1024;

/// The end of a file's name, without that of a template: `xml` of `vm.xml.j2`.
pub(crate) fn extension_of(path: &Path) -> Option<&OsStr> {
    let extension = path.extension()?;
    let is_template = TEMPLATES
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known));
    match is_template {
        true => Path::new(path.file_stem()?).extension(),
        false => Some(extension),
    }
}

/// All files below `directory` that `.gitignore` does not exclude and that have such names, or are small and name QEMU.
/// Hidden ones are left out but for [`HIDDEN`], and so are links to anything but a regular file below `directory`.
pub(crate) fn guest_files(directory: &Path, progress: &Progress) -> Found {
    let mut found = Found::default();
    let mut links = Vec::new();
    let here = absolute(directory);
    let ignored = Ignored::of(&here, &mut found.trouble);
    let mut todo = vec![(directory.to_owned(), here, ignored)];
    while let Some((directory, absolute, ignored)) = todo.pop() {
        progress.at(&directory);
        for entry in pattern::list(&directory, &HIDDEN, &mut found.trouble) {
            let (is_directory, is_link) = (entry.kind.is_dir(), entry.kind.is_symlink());
            let is_wanted = has_wanted_name(&entry.name);
            let is_candidate = is_directory || entry.kind.is_file() || is_link && is_wanted;
            let absolute = absolute.join(&entry.name);
            if !is_candidate || ignored.hides(&absolute, is_directory) {
                continue;
            }
            let path = directory.join(&entry.name);
            if !is_directory && !is_wanted && !is_small_and_names_qemu(&path) {
                continue;
            }
            if is_directory {
                let below = ignored.below(&absolute, &mut found.trouble);
                todo.push((path, absolute, below));
            } else if is_link {
                links.push(path);
            } else {
                found.files.push(path);
            }
        }
    }
    keep_links_below(directory, links, &mut found);
    found.files.sort();
    found.trouble.sort();
    found
}

/// Adds the links to files below a directory that are not found anyway.
fn keep_links_below(directory: &Path, mut links: Vec<PathBuf>, found: &mut Found) {
    if links.is_empty() {
        return;
    }
    // libvirt's autostart folder links to the files next to it, which are checked once.
    let mut seen: HashSet<PathBuf> = found.files.iter().flat_map(fs::canonicalize).collect();
    links.sort();
    for link in links {
        let targets = fs::canonicalize(directory).and_then(|root| Ok((root, link.canonicalize()?)));
        match targets {
            // Whoever may put a link into a directory does not thereby choose what is read, or fixed, elsewhere.
            Ok((root, target)) => {
                if target.starts_with(root) && target.is_file() && seen.insert(target) {
                    found.files.push(link);
                }
            }
            // The target has no path, as that of /dev/stdin, or is not there. Only a name promises a guest.
            Err(error) if names_guest(&link) => found.trouble.push((link, plain(&error))),
            Err(_) => {}
        }
    }
}

/// True for a small text that names a program of QEMU. A file that cannot be read is not one that the run is about.
fn is_small_and_names_qemu(path: &Path) -> bool {
    let bytes = bounded::open_regular(path).and_then(|file| bounded::contents(file, SMALL));
    bytes.is_ok_and(|bytes| {
        let text = String::from_utf8_lossy(&bytes);
        // Facts and reports of vmdisk name QEMU, and hold no guest.
        !bytes.contains(&0) && names_qemu(&text) && !text.contains("\"schema_version\"")
    })
}

/// True if a text names a program of QEMU.
pub(crate) fn names_qemu(text: &str) -> bool {
    text.contains("qemu-system-") || text.contains("qemu-kvm")
}

fn has_wanted_name(name: &OsStr) -> bool {
    let path = Path::new(name);
    path.extension().is_none() || names_guest(path) || has_known_end(path, &[&UNREAD])
}

/// True for a name of [`EXTENSIONS`], [`SCRIPTS`] or [`NAMES`].
fn names_guest(path: &Path) -> bool {
    let is_named = NAMES.iter().any(|known| path.ends_with(known));
    is_named || has_known_end(path, &[&EXTENSIONS, &SCRIPTS])
}

fn has_known_end(path: &Path, lists: &[&[&str]]) -> bool {
    extension_of(path).is_some_and(|extension| {
        let mut known = lists.iter().copied().flatten();
        known.any(|known| extension.eq_ignore_ascii_case(known))
    })
}

/// True for a text that is read as a script: its name says so, or its first line.
pub(crate) fn is_script(path: &Path, text: &str) -> bool {
    let is_named = path.file_name().is_some_and(has_wanted_name);
    (is_named || text.starts_with("#!")) && !has_known_end(path, &[&UNREAD])
}

/// True unless a file has the end of one that only holds a guest.
pub(crate) fn may_be_script(path: &Path) -> bool {
    !has_known_end(path, &[&["xml", "args", "cmdline", "cfg"]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_guest_files_that_git_would_see_are_found_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("sub/named.xml")).unwrap();
        fs::create_dir_all(root.join("build")).unwrap();
        fs::write(root.join(".gitignore"), "build/\n").unwrap();
        for name in [
            "z.xml",
            "a.XML",
            "sub/m.xml",
            "build/x.xml",
            "notes.odt",
            ".hidden.xml",
            ".git/x.xml",
        ] {
            fs::write(root.join(name), "<domain/>").unwrap();
        }
        let found = guest_files(root, &Progress::default());
        let names: Vec<&Path> = found
            .files
            .iter()
            .map(|path| path.strip_prefix(root).unwrap())
            .collect();
        assert_eq!(
            names,
            [
                Path::new("a.XML"),
                Path::new("sub/m.xml"),
                Path::new("z.xml")
            ]
        );
        assert!(found.trouble.is_empty());
    }

    #[test]
    fn workflows_and_small_texts_that_name_qemu_are_found_whatever_their_name_is() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join(".github/workflows")).unwrap();
        let start = "#!/bin/sh\nqemu-system-x86_64 -hda a.img\n";
        let large = start.repeat(SMALL as usize / start.len() + 1);
        for (name, text) in [
            (".github/workflows/ci.yml", "on: push\n"),
            (".gitlab-ci.yml", "test: {}\n"),
            (".profile", start),
            ("start.local", start),
            ("notes.odt", "no guest\n"),
            ("program.bin", "\0qemu-system-x86_64\n"),
            ("large.log", &large),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        let found = guest_files(root, &Progress::default());
        let expected = [".github/workflows/ci.yml", ".gitlab-ci.yml", "start.local"];
        assert_eq!(found.files, expected.map(|name| root.join(name)));
        assert!(found.trouble.is_empty());
    }

    #[test]
    fn the_hook_and_the_guide_have_the_same_names() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let hook = fs::read_to_string(root.join(".pre-commit-hooks.yaml")).unwrap();
        let guide = fs::read_to_string(root.join("docs/lint.md")).unwrap();
        let join = |list: &[&str]| list.join("|");
        let ends = [join(&EXTENSIONS), join(&SCRIPTS)].join("|");
        let expected = format!(
            "files: '(\\.({ends})(\\.({}))?|(^|/)({}))$'",
            join(&TEMPLATES),
            join(&NAMES)
        );
        // pre-commit installs the command of one hook, and the other uses what is there.
        assert_eq!(hook.matches(&expected).count(), 2, "expected {expected}");
        let ends = EXTENSIONS.iter().chain(&SCRIPTS).chain(&TEMPLATES);
        let ends = ends.map(|end| format!("`.{end}`"));
        let ends = ends.chain(HIDDEN.iter().map(|name| format!("`{name}`")));
        for name in ends.chain(NAMES.iter().map(|name| format!("`{name}`"))) {
            assert!(guide.contains(&name), "docs/lint.md does not name {name}");
        }
    }

    #[test]
    fn the_editor_opens_each_of_these_files() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let guide = fs::read_to_string(root.join("docs/editor.md")).unwrap();
        let line = guide.lines().find(|line| line.contains("filetypes = {"));
        let line = line.unwrap();
        for end in EXTENSIONS.iter().chain(&SCRIPTS).chain(&NAMES) {
            let kind = match *end {
                "adoc" => "asciidoc",
                "args" | "bash" | "cmdline" | "ksh" => "sh",
                "Containerfile" | "Dockerfile" => "dockerfile",
                "GNUmakefile" | "Makefile" | "makefile" | "mk" => "make",
                "justfile" => "just",
                "md" => "markdown",
                "service" => "systemd",
                "yml" => "yaml",
                end => end,
            };
            assert!(line.contains(&format!("'{kind}'")), "{end}: {line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_counts_if_it_leads_to_a_regular_file_below_that_is_not_found_anyway() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("qemu/autostart")).unwrap();
        fs::write(root.join("qemu/web1.xml"), "<domain/>").unwrap();
        fs::write(root.join("outside.xml"), "<domain/>").unwrap();
        symlink("../web1.xml", root.join("qemu/autostart/web1.xml")).unwrap();
        symlink("../outside.xml", root.join("qemu/outside.xml")).unwrap();
        for dangling in ["dangling.xml", "Makefile", "md0", "deploy.py"] {
            symlink("nowhere", root.join("qemu").join(dangling)).unwrap();
        }
        symlink("/dev/stdin", root.join("qemu/terminal.xml")).unwrap();
        symlink("/dev/null", root.join("qemu/device.xml")).unwrap();
        fs::write(root.join("qemu/.hidden"), "<domain/>").unwrap();
        symlink(".hidden", root.join("qemu/inside.xml")).unwrap();
        symlink(".hidden", root.join("qemu/twice.xml")).unwrap();
        let fifo = std::process::Command::new("mkfifo")
            .arg(root.join("qemu/.pipe"))
            .status();
        if fifo.is_ok_and(|status| status.success()) {
            symlink(".pipe", root.join("qemu/pipe.xml")).unwrap();
        }
        let found = guest_files(&root.join("qemu"), &Progress::default());
        let names: Vec<&Path> = found
            .files
            .iter()
            .map(|path| path.strip_prefix(root.join("qemu")).unwrap())
            .collect();
        let trouble: Vec<&Path> = found.trouble.iter().map(|(path, _)| &**path).collect();
        let promised = ["Makefile", "dangling.xml"].map(|name| root.join("qemu").join(name));
        assert_eq!(trouble[..2], promised);
        assert!(
            trouble
                .iter()
                .all(|path| path.extension().is_some() || path.ends_with("Makefile"))
        );
        let expected = ["inside.xml", "web1.xml"].map(Path::new);
        assert_eq!(names, expected);
    }
}
