//! New storage beyond empty images: copies, seed images, encrypted images, ZFS volumes and volumes of pools. `apply` and
//! the script end alike, whatever happens to a run.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Command, Output};

use serde_json::Value;
use vmdisk_testing::{installed, libvirt_driver, needed};

use crate::Place;
use crate::apply::{SYSTEM, images, run};

const KEY: &str = "not for a command line";

/// Disks below the folder D, each with its path, and how qemu-img opens it to compare it with its source.
const DISKS: &[(&str, &str, &str)] = &[
    (
        "qcow2: {path: D/web.qcow2, size: 8M, source: {path: D/base.qcow2, format: qcow2}, mode: '0640'}",
        "web.qcow2",
        "driver=qcow2,file.filename=D/web.qcow2",
    ),
    (
        "raw: {path: D/web.img, size: 8M, preallocation: falloc, source: {path: D/base.qcow2, format: qcow2}, owner: 'UID'}",
        "web.img",
        "driver=raw,file.filename=D/web.img",
    ),
    (
        "raw: {path: D/s.img, size: 4M, source: {path: D/base.qcow2, format: qcow2}, encryption: {secret: {usage: s}, key-file: D/key}}",
        "s.img",
        "driver=luks,key-secret=key,file.filename=D/s.img",
    ),
    (
        "qcow2: {path: \"D/e,x.qcow2\", size: 8M, source: {path: D/base.qcow2, format: qcow2}, encryption: {secret: {usage: s}, key-file: D/key}}",
        "e,x.qcow2",
        "driver=qcow2,encrypt.key-secret=key,file.filename=D/e,,x.qcow2",
    ),
    (
        "qcow2: {path: D/new.qcow2, size: 8M, encryption: {secret: {usage: s}, key-file: D/key}}",
        "new.qcow2",
        "",
    ),
    (
        "seed: {path: D/seed.iso, user-data: \"D/it's=\\\\u\", meta-data: D/meta, group: 'UID'}",
        "seed.iso",
        "",
    ),
];

fn prepared(disk: &str) -> Place {
    let place = Place::with(&[]);
    fs::create_dir(place.path("images")).unwrap();
    fs::create_dir(place.path("bin")).unwrap();
    for (name, text) in [
        ("key", KEY),
        ("it's=\\u", "#cloud-config\n"),
        ("meta", "instance-id: a\n"),
    ] {
        place.write(&format!("images/{name}"), text.as_bytes());
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(place.path(&format!("images/{name}")), mode).unwrap();
    }
    // A hole, which is zero in each copy.
    let byte = |nth: u32| if nth >> 20 == 2 { 0 } else { (nth / 999) as u8 };
    let contents: Vec<u8> = (0..4_u32 << 20).map(byte).collect();
    place.write("images/base.img", &contents);
    let convert =
        "cd \"$1\" && qemu-img convert -f raw -O qcow2 base.img base.qcow2 && rm base.img";
    let status = Command::new("sh")
        .args(["-c", convert, "sh"])
        .arg(place.path("images"))
        .status();
    assert!(status.unwrap().success());
    place.write("web1.yaml", spec(&place, disk).as_bytes());
    let script = place.run(&["generate", "web1.yaml", "--to", "script", "-o", "make.sh"]);
    assert_eq!(script.code, 0, "{}", script.stderr);
    place
}

fn spec(place: &Place, disk: &str) -> String {
    let uid = fs::metadata(place.path("images")).unwrap().uid();
    let folder = place.path("images");
    let disk = disk.replace("D/", &format!("{}/", folder.display()));
    format!(
        "version: 1\ndisks:\n- {}\n",
        disk.replace("UID", &uid.to_string())
    )
}

/// The commands of the steps, with another name of the file that is made. `vmdisk apply` and the script name it themselves.
fn commands(place: &Place) -> Vec<Vec<String>> {
    let run = place.run(&["generate", "web1.yaml", "--to", "steps"]);
    let steps: Value = serde_json::from_str(&run.stdout).unwrap();
    let argv = |step: &Value| {
        let argv: Vec<String> = serde_json::from_value(step["argv"].clone()).unwrap();
        let made = step["makes"].as_str().unwrap();
        let argv = vmdisk::plan::renamed(&argv, &format!("{made}.part"), "IMAGE");
        vmdisk::plan::renamed(&argv, made, "IMAGE")
    };
    steps["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|step| step["kind"] != "rename")
        .map(argv)
        .collect()
}

/// Does something else in the place of one command.
fn instead_of(place: &Place, argv: &[String], instead: &str) {
    let words: Vec<String> = argv[1..]
        .iter()
        .map(|word| vmdisk::plan::shell_word(word))
        .collect();
    let wanted = words.join(" ");
    let name = &argv[0];
    place.program(
        &format!("bin/{name}"),
        &format!(
            "same() {{ [ \"$*\" = \"$all\" ]; }}\nall=$(printf '%s\n' \"$*\" | sed 's#/proc/self/fd/[0-9]*/image#IMAGE#; s#[.]/image#IMAGE#')\nif same {wanted}; then {instead}; fi\nexec /usr/bin/{name} \"$@\""
        ),
    );
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn are_here() -> bool {
    needed(installed("qemu-img")).is_some() && needed(installed("xorriso")).is_some()
}

#[test]
fn each_kind_is_made_once_and_is_what_was_asked_for() {
    if !are_here() {
        return;
    }
    for (nth, (disk, name, opened)) in DISKS.iter().enumerate() {
        // A key takes seconds: one of both runs for each of the images.
        let has_key = disk.contains("key-file");
        for is_script in [false, true]
            .into_iter()
            .filter(|it| !has_key || *it == (nth % 2 == 0))
        {
            let place = prepared(disk);
            let before = images(&place);
            let output = run(&place, is_script, SYSTEM);
            assert!(output.status.success(), "{disk}: {}", said(&output));
            let made = images(&place);
            assert_eq!(made.len(), before.len() + 1, "{disk}: {:?}", made.keys());
            let again = run(&place, is_script, SYSTEM);
            assert!(again.status.success(), "{disk}: {}", said(&again));
            assert!(said(&again).contains("already"), "{disk}: {}", said(&again));
            assert_eq!(images(&place), made, "{disk}");
            let mode = fs::metadata(place.path(&format!("images/{name}")))
                .unwrap()
                .mode();
            let expected = if disk.contains("0640") { 0o640 } else { 0o600 };
            assert_eq!(mode & 0o777, expected, "{disk}");
            if !opened.is_empty() {
                let folder = format!("{}/", place.path("images").display());
                let same = Command::new("qemu-img")
                    .args(["compare", "--image-opts", "--object"])
                    .arg(format!("secret,id=key,file={folder}key"))
                    .arg(format!("driver=qcow2,file.filename={folder}base.qcow2"))
                    .arg(opened.replace("D/", &folder))
                    .output()
                    .unwrap();
                assert!(same.status.success(), "{disk}: {}", said(&same));
            }
            // Another file of this name is refused, and stays.
            place.write(&format!("images/{name}"), b"precious");
            let refused = run(&place, is_script, SYSTEM);
            assert_eq!(refused.status.code(), Some(1), "{disk}: {}", said(&refused));
            assert_eq!(place.read(&format!("images/{name}")), "precious");
            let script = place.read("make.sh");
            assert!(
                !script.contains(KEY) && !script.contains("cloud-config"),
                "{disk}"
            );
        }
    }
}

#[test]
fn a_run_that_fails_or_is_killed_at_any_step_leaves_nothing_that_passes_for_an_image() {
    if !are_here() {
        return;
    }
    let mut tried = 0;
    // A key takes seconds, and is an option of the same steps.
    for (disk, ..) in DISKS.iter().filter(|(disk, ..)| !disk.contains("key-file")) {
        let steps = commands(&prepared(disk)).len();
        for (nth, is_script) in (0..steps).flat_map(|nth| [(nth, false), (nth, true)]) {
            let place = prepared(disk);
            let before = images(&place);
            let commands = commands(&place);
            instead_of(&place, &commands[nth], "exit 1");
            let failed = run(&place, is_script, SYSTEM);
            let at = format!("{disk}, step {nth}: {}", said(&failed));
            assert_eq!(failed.status.code(), Some(2), "{at}");
            assert_eq!(images(&place), before, "{at}");
            instead_of(&place, &commands[nth], "kill -KILL $PPID; exit 1");
            let killed = run(&place, is_script, SYSTEM);
            assert_eq!(killed.status.code(), None, "{at}");
            fs::remove_file(place.path(&format!("bin/{}", commands[nth][0]))).unwrap();
            let left = images(&place);
            let again = run(&place, is_script, SYSTEM);
            let at = format!("{disk}, step {nth}: {}", said(&again));
            assert_eq!(again.status.code(), Some(1), "{at}");
            assert!(at.contains(".part exists"), "{at}");
            assert_eq!(images(&place), left, "{at}");
            tried += 1;
        }
    }
    println!("{tried} steps failed and killed: 0 half images without a word");
}

#[test]
fn what_cannot_be_made_is_refused_with_the_way_out() {
    if !are_here() {
        return;
    }
    for is_script in [false, true] {
        let (disk, ..) = DISKS[4];
        let place = prepared(disk);
        let key = place.path("images/key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
        let output = run(&place, is_script, SYSTEM);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("chmod 600"), "{}", said(&output));
        let (seed, ..) = DISKS[5];
        let place = prepared(seed);
        let output = run(&place, is_script, "");
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(
            said(&output).contains("install the package xorriso"),
            "{}",
            said(&output)
        );
        // The source may be gone when the copy is there.
        let (copy, ..) = DISKS[0];
        let place = prepared(copy);
        assert!(run(&place, is_script, SYSTEM).status.success());
        fs::remove_file(place.path("images/base.qcow2")).unwrap();
        assert!(run(&place, is_script, SYSTEM).status.success());
        fs::remove_file(place.path("images/web.qcow2")).unwrap();
        let output = run(&place, is_script, SYSTEM);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(
            said(&output).contains("base.qcow2 does not exist"),
            "{}",
            said(&output)
        );
    }
    let place = prepared(DISKS[0].0);
    let folder = place.path("images");
    let base = format!(
        "source.path={0}/base.qcow2,source.format=qcow2",
        folder.display()
    );
    for (keys, help) in [
        ("size=2M,SOURCE", "write `size=4M` or more"),
        ("SOURCE,mode=rw", "such as '0640'"),
        ("SOURCE,mode=4755", "such as '0640'"),
        ("SOURCE,mode=0700", "such as '0640'"),
        ("SOURCE,mode=00640", "such as '0640'"),
        ("owner=root", "needs `size`"),
        (
            "SOURCE,size=8M,encryption.secret.usage=a",
            "write `encryption.key-file`",
        ),
        (
            "SOURCE,size=8M,backing.path=/b,backing.format=raw",
            "but not both",
        ),
        ("source.path=/gone,source.format=raw", "write `size`"),
    ] {
        let keys = keys.replace("SOURCE", &base);
        let disk = format!("qcow2:{}/x.qcow2,{keys}", folder.display());
        let refused = place.run(&["generate", "--live", "--disk", &disk]);
        assert_ne!(refused.code, 0, "{keys}");
        assert!(refused.stderr.contains(help), "{keys}: {}", refused.stderr);
    }
    // With facts, the size is that of the source.
    let disk = format!("qcow2:{}/x.qcow2,{base}", folder.display());
    let steps = place.run(&["generate", "--live", "--disk", &disk, "--to", "steps"]);
    assert!(
        steps.stdout.contains("\"4M\""),
        "{}{}",
        steps.stdout,
        steps.stderr
    );
    let empty = place.run(&["generate", "--disk", "empty:cdrom", "--to", "disk-xml"]);
    assert!(empty.stdout.contains("device='cdrom'"), "{}", empty.stderr);
}

/// Stands for `zfs` and `virsh`: each thing is a file.
const MANAGER: &str = r#"cd THINGS || exit 9
file() { echo "$1" | tr / :; }
case "$*" in
'list -H -- '*) [ -e "$(file "$4")" ] ;;
'create -V '*) echo "$3" >"$(file "$5")" ;;
'get -Hp '*) cat "$(file "$7")" ;;
'pool-info -- '*) [ -e "$3" ] ;;
'vol-info --pool '*) [ -e "$3:$5" ] ;;
'vol-create-as --pool '*) echo "<capacity unit='bytes'>$7</capacity><format type='$9'/>" >"$3:$5" ;;
'vol-dumpxml --pool '*) cat "$3:$5" ;;
*) exit 9 ;;
esac
"#;

#[test]
fn volumes_of_zfs_and_of_pools_are_made_once() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    let disks = [
        (
            "zvol: {dataset: tank/vm/web1, size: 1G}",
            "zfs",
            "tank:vm",
            "tank:vm:web1",
        ),
        (
            "volume: {pool: images, volume: w.qcow2, size: 1G, format: qcow2}",
            "virsh",
            "images",
            "images:w.qcow2",
        ),
    ];
    for ((disk, manager, above, made), is_script) in
        disks.iter().flat_map(|disk| [(disk, false), (disk, true)])
    {
        let place = prepared(disk);
        fs::create_dir(place.path("things")).unwrap();
        place.program(
            &format!("bin/{manager}"),
            &MANAGER.replace("THINGS", place.path("things").to_str().unwrap()),
        );
        let output = run(&place, is_script, SYSTEM);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(
            said(&output).contains("does not exist"),
            "{}",
            said(&output)
        );
        place.write(&format!("things/{above}"), b"");
        let output = run(&place, is_script, SYSTEM);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let contents = place.read(&format!("things/{made}"));
        assert!(contents.contains("1073741824"), "{contents}");
        let again = run(&place, is_script, SYSTEM);
        assert_eq!(again.status.code(), Some(0), "{}", said(&again));
        assert!(said(&again).contains("already"), "{}", said(&again));
        place.write(&format!("things/{made}"), b"1\n");
        assert_eq!(run(&place, is_script, SYSTEM).status.code(), Some(1));
        assert_eq!(place.read(&format!("things/{made}")), "1\n");
    }
    let place = Place::with(&[]);
    let disk = [
        "generate",
        "--disk",
        "zvol:tank/a,size=1G",
        "--to",
        "disk-xml",
    ];
    assert!(place.run(&disk).stdout.contains("discard='unmap'"));
}

/// The driver for tests keeps its volumes as long as virsh runs.
#[test]
fn libvirt_takes_each_command_about_a_volume_and_says_what_is_compared() {
    if needed(installed("virsh")).is_none() {
        return;
    }
    let place = prepared("volume: {pool: default-pool, volume: w.qcow2, size: 1G, format: qcow2}");
    let steps = place.run(&["generate", "web1.yaml", "--to", "steps"]);
    let steps: Value = serde_json::from_str(&steps.stdout).unwrap();
    let argv = |of: &str| -> String {
        let words: Vec<String> = serde_json::from_value(steps["steps"][0][of].clone()).unwrap();
        words[1..].join(" ")
    };
    let of_volume = "--pool default-pool -- w.qcow2";
    let commands = [
        "pool-info -- default-pool".to_owned(),
        argv("argv"),
        format!("vol-info {of_volume}"),
        format!("vol-dumpxml {of_volume}"),
        argv("undo"),
    ];
    let mut virsh = Command::new("virsh");
    virsh.args(["-c", "test:///default", "-q", &commands.join("; ")]);
    let output = virsh.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    for text in [
        "<capacity unit='bytes'>1073741824<",
        "<format type='qcow2'/>",
    ] {
        assert!(said(&output).contains(text), "{}", said(&output));
    }
    let script = place.read("make.sh");
    assert!(
        script.contains(&commands[2]) && script.contains(&commands[3]),
        "{script}"
    );
}

/// A guide's program, line by line.
struct Program {
    kind: String,
    text: String,
}

fn programs_of_the_guide() -> Vec<Program> {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/generate.md");
    let guide = fs::read_to_string(guide).unwrap();
    let (_, section) = guide.split_once("\n## Three guests\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```").skip(1).step_by(2);
    blocks
        .map(|block| {
            let (kind, text) = block.split_once('\n').unwrap();
            Program {
                kind: kind.to_owned(),
                text: text.to_owned(),
            }
        })
        .collect()
}

#[test]
fn each_program_of_the_guide_makes_its_guest_and_a_second_run_changes_nothing() {
    if !are_here() || needed(installed("python3")).is_none() {
        return;
    }
    let programs = programs_of_the_guide();
    let kinds: Vec<&str> = programs
        .iter()
        .map(|program| program.kind.as_str())
        .collect();
    assert_eq!(kinds, ["sh", "python", "sh", "python", "sh", "python"]);
    // The real libvirt where it starts; elsewhere, a program that keeps the definition in a file.
    let root = tempfile::tempdir().unwrap();
    let has_libvirt = needed(libvirt_driver(root.path())).is_some();
    let libvirt = format!("qemu:///embed?root={}", root.path().display());
    for Program { kind, text } in programs {
        assert!(text.lines().count() <= 15, "{text}");
        let place = prepared("raw: {path: D/none}");
        fs::rename(
            place.path("images/base.qcow2"),
            place.path("images/debian-12.qcow2"),
        )
        .unwrap();
        for name in ["user-data", "meta-data", "windows.iso", "virtio-win.iso"] {
            place.write(&format!("images/{name}"), &[0; 4096]);
        }
        if !has_libvirt {
            let virsh = format!(
                "case $1 in\ndefine) exec cat <\"$2\" >{0} ;;\ndumpxml) cat {0} 2>/dev/null || {{ echo 'error: failed to get domain' >&2; exit 1; }} ;;\nesac",
                place.path("defined.xml").display()
            );
            place.program("bin/virsh", &virsh);
        }
        std::os::unix::fs::symlink(crate::program(), place.path("bin/vmdisk")).unwrap();
        // The libvirt of a test has no KVM.
        let text = text
            .replace("/srv/img", place.path("images").to_str().unwrap())
            .replace("{name: ", "{type: qemu, name: ")
            .replace("{\"name\": ", "{\"type\": \"qemu\", \"name\": ");
        place.write("program", text.as_bytes());
        let started = |program: &str, arguments: &[&str]| {
            let path = format!("{}{SYSTEM}", place.path("bin").display());
            let mut command = Command::new(program);
            command.args(arguments).env("PATH", path);
            command.env("LIBVIRT_DEFAULT_URI", &libvirt);
            command.current_dir(place.path("")).output().unwrap()
        };
        let run = || started(if kind == "sh" { "sh" } else { "python3" }, &["program"]);
        let virsh = |command: &str| {
            let script = format!("virsh {command} \"$(virsh list --all --name)\"");
            said(&started("sh", &["-c", &script]))
        };
        let definition = || virsh("dumpxml --inactive --");
        let first = run();
        assert!(first.status.success(), "{text}\n{}", said(&first));
        let (made, guest) = (images(&place), definition());
        assert!(guest.contains("<domain"), "{guest}");
        let second = run();
        assert!(second.status.success(), "{text}\n{}", said(&second));
        assert!(said(&second).contains("nothing-to-do"), "{}", said(&second));
        assert!(images(&place) == made, "{text}");
        assert_eq!(definition(), guest);
        virsh("undefine");
    }
}
