//! Every configuration below `fixtures/`, and the guests of a host with a configuration, for tests that compare the reports
//! of two interfaces.

use std::path::{Path, PathBuf};

/// A configuration, and the facts to check it with.
#[derive(Clone, Debug)]
pub struct Case {
    /// The function of the library: `lint` or `lint_all`.
    pub call: &'static str,
    /// The name of the file, or of the case.
    pub name: String,
    /// Its text, or the JSON of all names and texts.
    pub text: String,
    /// The JSON of the options.
    pub options: String,
    /// The text of the facts.
    pub facts: Option<String>,
}

fn configurations(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the fixtures are in the repository") {
        let path = entry.expect("a directory can be read to its end").path();
        let is_one =
            |it: &std::ffi::OsStr| ["xml", "args", "yaml", "sh"].iter().any(|one| it == *one);
        if path.is_dir() && !path.ends_with("sysroots") {
            files.extend(configurations(&path));
        } else if path.extension().is_some_and(is_one) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Each configuration without facts and with some: those beside it, or those of the fixtures in turn.
pub fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let read = |path: &Path| {
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let hosts = std::fs::read_dir(root.join("facts")).expect("the fixtures are in the repository");
    let mut hosts: Vec<PathBuf> = hosts.filter_map(|it| Some(it.ok()?.path())).collect();
    hosts.sort();
    let mut cases = Vec::new();
    for (nth, path) in configurations(&root).into_iter().enumerate() {
        let beside = path.with_extension("facts.json");
        let facts = match beside.exists() {
            true => &beside,
            false => &hosts[nth % hosts.len()],
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        for facts in [None, Some(read(facts))] {
            cases.push(Case {
                call: "lint",
                name: name.clone().into_owned(),
                text: read(&path),
                options: serde_json::json!({"name": name}).to_string(),
                facts,
            });
        }
    }
    assert!(cases.len() > 100, "{}", cases.len());
    cases.extend(host_cases().into_iter().map(|(case, _)| case));
    cases
}

/// The configuration of the guests of a host.
pub const HOST_CONFIG: &str = "\
min-severity = \"advice\"
exclude = [\"old/\"]
[rules]
performance = \"off\"
cache-unsafe = \"warning\"
native-without-direct = \"error\"
[[files]]
paths = [\"lab/**\", \"!lab/strict.xml\"]
policy = \"lab\"
rules = { cache-unsafe = \"off\" }
[[rule]]
name = \"house-serial\"
when = \"disk.media == 'disk' and not disk.serial\"
message = \"the disk has no serial number\"
help = \"write one\"
";

/// The guests of a host by the names of their files, some of which conflict, in the order of a directory: one that is
/// excluded, one that cannot be read, a command line and a spec.
pub fn host_inputs() -> Vec<(String, String)> {
    let guest = |name: &str, image: &str, cache: &str, more: &str| {
        format!(
            "<domain type='kvm'><name>{name}</name><memory unit='MiB'>3000</memory><vcpu>2</vcpu><os><type>hvm</type></os>\
             <memoryBacking><hugepages/></memoryBacking><devices>\n<disk type='file' device='disk'>\
             <driver name='qemu' type='qcow2' cache='{cache}' io='native'/><source file='{image}'/>{more}\
             <target dev='vda' bus='virtio'/></disk>\n</devices></domain>\n"
        )
    };
    let backing = "<backingStore type='file'><format type='qcow2'/><source file='/srv/a.qcow2'/><backingStore/></backingStore>";
    let line =
        "qemu-system-x86_64 -m 1G -drive file=/srv/b.qcow2,format=qcow2,if=virtio,cache=unsafe\n";
    [
        ("a.xml", guest("a", "/srv/a.qcow2", "unsafe", "")),
        ("b.args", line.to_owned()),
        ("b.xml", guest("b", "/srv/b.qcow2", "none", "")),
        ("broken.xml", "<domain>\n <os>\n</domain>".to_owned()),
        (
            "c.yaml",
            "version: 1\nname: c\ndisks: [{raw: {path: /srv/c.img, size: 1G}}]\n".to_owned(),
        ),
        (
            "lab/over.xml",
            guest("over", "/srv/over.qcow2", "unsafe", backing),
        ),
        (
            "lab/strict.xml",
            guest("strict", "/srv/a.qcow2", "unsafe", ""),
        ),
        ("old/a.xml", guest("old", "/srv/a.qcow2", "unsafe", "")),
        ("same-as-a.xml", guest("a", "/srv/a.qcow2", "none", "")),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into()
}

/// The facts of a host with little of everything.
const SMALL: &str = r#"{"schema_version": "1.0", "limits": {"aio_max_nr": 1500}, "cpu": {"arch": "x86_64"},
    "kernel": {"cmdline": {"default_hugepagesz": null}},
    "memory": {"hugepages": {"2048": {"nr": 2000, "free": 2000, "reserved": 0}}},
    "mounts": [{"id": "m1", "point": "/srv", "fstype": "xfs", "source": "/dev/sda1", "fs": "f1", "options": {"rw": true}}],
    "filesystems": [{"id": "f1", "kind": "xfs", "free_bytes": 5000000000, "devices": []}],
    "files": [
      {"path": "/srv/a.qcow2", "present": true, "kind": "regular", "real_path": "/srv/a.qcow2", "mount": "m1",
       "inode": "8:1/1", "size": 1000000, "alloc": 1000000, "image": {"format": "qcow2", "virtual_size": 4000000000, "backing": null}},
      {"path": "/srv/b.qcow2", "present": true, "kind": "regular", "real_path": "/srv/a.qcow2", "mount": "m1",
       "inode": "8:1/1", "size": 1000000, "alloc": 1000000, "image": {"format": "qcow2", "virtual_size": 4000000000, "backing": null}}
    ]}"#;

/// The guests of a host with and without facts, each with options and the same as arguments of the command.
pub fn host_cases() -> Vec<(Case, Vec<&'static str>)> {
    let inputs = host_inputs().into_iter();
    let inputs = inputs.map(|(name, text)| serde_json::json!({"name": name, "text": text}));
    let inputs = serde_json::Value::from(inputs.collect::<Vec<_>>()).to_string();
    let mut cases = Vec::new();
    for facts in [None, Some(SMALL.to_owned())] {
        for (options, arguments) in [
            ("{}", ""),
            (r#"{"select": ["data-safety"]}"#, "--select=data-safety"),
            (r#"{"extend_select": ["all"]}"#, "--extend-select=all"),
            (
                r#"{"ignore": ["clarity", "image-shared-by-guests"]}"#,
                "--ignore=clarity,image-shared-by-guests",
            ),
            (
                r#"{"min_severity": "pedantic", "policy": "lab"}"#,
                "--min-severity=pedantic --policy=lab",
            ),
            (
                r#"{"target": "qemu=9.2,libvirt=10.0"}"#,
                "--target=qemu=9.2,libvirt=10.0",
            ),
        ] {
            let mut options: serde_json::Value = serde_json::from_str(options).expect("it is JSON");
            options["config"] = HOST_CONFIG.into();
            let case = Case {
                call: "lint_all",
                name: format!("a host, {arguments}"),
                text: inputs.clone(),
                options: options.to_string(),
                facts: facts.clone(),
            };
            cases.push((case, arguments.split_whitespace().collect()));
        }
    }
    cases
}

/// The cases as a file: the function, the text, the facts and the options of each, and a zero byte after each of them.
pub fn cases_file(cases: &[Case]) -> String {
    let mut out = String::new();
    for case in cases {
        let facts = case.facts.as_deref().unwrap_or_default();
        for part in [case.call, &case.text, facts, &case.options] {
            assert!(!part.contains('\0'), "{}", case.name);
            out.push_str(part);
            out.push('\0');
        }
    }
    out
}

/// Checks that a program printed the report of each case, byte for byte, and a zero byte after each.
///
/// # Panics
/// If one differs.
pub fn check_reports(cases: &[Case], printed: &[u8], expected: impl Fn(&Case) -> String) {
    let printed = String::from_utf8_lossy(printed);
    let reports: Vec<&str> = printed.split('\0').collect();
    assert_eq!(reports.len(), cases.len() + 1, "{printed:.300}");
    for (case, report) in cases.iter().zip(reports) {
        assert_eq!(report, expected(case), "{}", case.name);
    }
}
