//! Input that is made to be seen in another place than it stands: no output for people lets it.

use serde_json::Value;

use crate::{Place, Run};

/// A workflow command on a line of its own, an escape sequence, a change of direction.
const HOSTILE: &str = "\n::error::x\u{1b}[2J\u{202e}\u{2066}";

const DOMAIN: &str = "<domain type='kvm'><name>web1</name><uuid>u1</uuid>
  <os><type arch='x86_64' machine='pc'>hvm</type></os><features><acpi/></features>
  <devices>
    <emulator>/usr/bin/qemu</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='unsafe' io='native' discard='unmap'/>
      <source file='/srv/a.img'/><target dev='vda' bus='virtio'/><serial>s1</serial>
      <alias name='ua-a'/><boot order='1'/>
    </disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/>
      <source file='/srv/b.img'><seclabel model='dac'/></source>
      <target dev='vda' bus='virtio'/><serial>s1</serial><wwn>5000c50015ea71aa</wwn>
    </disk>
    <disk type='network' device='cdrom'>
      <source protocol='https' name='a.iso'><host name='store' port='443'/>
        <cookies><cookie name='c'>v</cookie></cookies></source>
      <target dev='sda' bus='sata'/><readonly/>
    </disk>
  </devices>
</domain>
";

const LINE: [&str; 9] = [
    "qemu-system-x86_64",
    "-name",
    "web1",
    "-blockdev",
    "driver=file,filename=/srv/a.img,node-name=f0,aio=nativ,cache.direct=on",
    "-device",
    "virtio-blk-pci,drive=f0,id=vda,serial=s1,bootindex=1",
    "-drive",
    "file=/srv/b.img,if=virtio,cache=unsafe,id=vdb",
];

/// Every format but that of GitHub, whose lines are commands.
const FORMATS: [&str; 10] = [
    "full",
    "concise",
    "json",
    "json-lines",
    "sarif",
    "gitlab",
    "junit",
    "checkstyle",
    "prometheus",
    "html",
];

fn assert_harmless(run: &Run, what: &str) {
    for output in [&run.stdout, &run.stderr] {
        for line in output.lines() {
            assert!(!line.trim_start().starts_with("::"), "{what}: {output}");
        }
        assert!(
            !output.contains(['\u{1b}', '\u{202e}', '\u{2066}']),
            "{what}: {output}"
        );
    }
}

/// A text with something put in at each end of a value between two quotes, one at a time.
fn planted(text: &str, quote: char, hostile: &str) -> Vec<String> {
    let ends = text.match_indices(quote).skip(1).step_by(2);
    ends.map(|(at, _)| format!("{}{hostile}{}", &text[..at], &text[at..]))
        .collect()
}

#[test]
fn no_string_of_a_domain_begins_a_line_of_output() {
    let hostile = "&#10;::error::x&#x202e;&#x2066;";
    let all = planted(DOMAIN, '\'', hostile);
    assert!(all.len() > 30);
    let elements = ["web1<", "s1<", "v<", "u1<"].map(|end| {
        let hostile = HOSTILE.replace('\u{1b}', "");
        DOMAIN.replace(end, &format!("{}{hostile}<", end.trim_end_matches('<')))
    });
    let place = Place::with(&[]);
    for (nth, text) in all.iter().chain(&elements).enumerate() {
        place.write(&format!("{nth}.xml"), text.as_bytes());
    }
    for format in FORMATS {
        assert_harmless(&place.run(&["lint", ".", "-v", "--format", format]), format);
    }
    for (nth, _) in all.iter().chain(&elements).enumerate().step_by(5) {
        let run = place.run(&["convert", &format!("{nth}.xml"), "--to", "qemu"]);
        let Run { code, stderr, .. } = run;
        let stdout = String::new();
        assert_harmless(
            &Run {
                code,
                stdout,
                stderr,
            },
            "convert",
        );
    }
}

#[test]
fn no_word_of_a_command_line_begins_a_line_of_output() {
    let place = Place::with(&[]);
    let mut count = 0;
    for word in 0..LINE.len() {
        for (at, _) in LINE[word]
            .match_indices([',', '='])
            .chain([(LINE[word].len(), "")])
        {
            let mut words = LINE.map(str::to_owned);
            words[word].insert_str(at, HOSTILE);
            place.write(&format!("{count}.cmdline"), words.join("\0").as_bytes());
            count += 1;
        }
    }
    assert!(count > 20);
    for format in FORMATS {
        assert_harmless(&place.run(&["lint", ".", "-v", "--format", format]), format);
    }
}

/// The value with something hostile behind every string, and behind every key of a map of names.
fn poisoned(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(format!("{text}{HOSTILE}")),
        Value::Array(values) => Value::Array(values.iter().map(poisoned).collect()),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(key, value)| (key.clone(), poisoned(value)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The value once for each of its strings, which alone is hostile.
fn poisoned_one_by_one(value: &Value) -> Vec<Value> {
    match value {
        Value::String(_) => vec![poisoned(value)],
        Value::Array(values) => (0..values.len())
            .flat_map(|nth| {
                poisoned_one_by_one(&values[nth])
                    .into_iter()
                    .map(move |bad| {
                        let mut all = values.clone();
                        all[nth] = bad;
                        Value::Array(all)
                    })
            })
            .collect(),
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, value)| {
                poisoned_one_by_one(value).into_iter().map(move |bad| {
                    let mut all = members.clone();
                    all.insert(key.clone(), bad);
                    Value::Object(all)
                })
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

#[test]
fn no_string_of_a_facts_file_begins_a_line_of_output() {
    let facts = vmdisk_facts_file();
    let value: Value = serde_json::from_str(&facts).unwrap();
    let place = Place::with(&[("a.xml", DOMAIN), ("good.json", &facts)]);
    let all = poisoned_one_by_one(&value);
    assert!(all.len() > 20, "{}", all.len());
    let most = 40;
    let step = all.len().div_ceil(most);
    for bad in all.iter().step_by(step).chain([&poisoned(&value)]) {
        let text = bad.to_string();
        place.write("bad.json", text.as_bytes());
        for arguments in [
            &["facts", "show", "bad.json"][..],
            &["facts", "check", "bad.json"],
            &["facts", "diff", "good.json", "bad.json"],
            &["lint", "a.xml", "-v", "--facts", "bad.json"],
        ] {
            assert_harmless(&place.run(arguments), &text);
        }
    }
}

#[test]
fn no_string_of_a_benchmark_begins_a_line_of_its_report() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/measurements");
    let result =
        std::fs::read_to_string(format!("{fixtures}/file-systems-storage-daemon.json")).unwrap();
    let all = poisoned_one_by_one(&serde_json::from_str(&result).unwrap());
    assert!(all.len() > 100, "{}", all.len());
    let place = Place::with(&[]);
    let mut reported = 0;
    for bad in all.iter().step_by(all.len().div_ceil(40)) {
        let text = bad.to_string();
        place.write("bad.json", text.as_bytes());
        for format in ["text", "markdown", "csv"] {
            let mut run = place.run(&["bench", "report", "bad.json", "--format", format]);
            // Lines of CSV end with both.
            run.stdout = run.stdout.replace("\r\n", "\n");
            reported += usize::from(run.code == 0);
            assert_harmless(&run, format);
        }
    }
    // Words of which there are few are refused.
    assert!(reported > 45, "{reported}");
}

fn vmdisk_facts_file() -> String {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/facts");
    std::fs::read_to_string(format!("{fixtures}/btrfs-checksums-6.1.json")).unwrap()
}

#[test]
fn no_name_of_a_file_or_a_spec_begins_a_line_of_output() {
    let place = Place::with(&[("a.xml", DOMAIN)]);
    let name = format!("b{HOSTILE}.xml");
    place.write(&name, DOMAIN.as_bytes());
    let spec = format!("version: 1\ndisks:\n- file: {name:?}\n  format: {HOSTILE:?}\n");
    place.write("spec.yaml", spec.as_bytes());
    for arguments in [
        &["lint", "."][..],
        &["lint", &name],
        &["lint", &name, "--format", "concise"],
        &["lint", &name, "--format", "junit"],
        &["lint", &name, "--format", "checkstyle"],
        &["lint", &name, "--format", "gitlab"],
        &["lint", &name, "--format", "json-lines"],
        &["lint", &name, "--format", "prometheus"],
        &["lint", &name, "--format", "html"],
        &["trace", &name],
        &["decide", &name],
        &["decide", "a.xml", &name],
        &["decide", "--disk", &name],
        &[
            "advise",
            "--size",
            "1G",
            "--facts",
            "facts.json",
            "--in",
            &name,
        ],
        &["trace", "a.xml", &name],
        &["lint", &name, "--show-files"],
        &["lint", "a.xml", "--report", &name],
        &["lint", "a.xml", "--facts", &name],
        &["lint", "a.xml", "--ignore", &name],
        &["facts", "show", &name, &name],
        &["facts", "check", &name],
        &["facts", &name, "--format", "text"],
        &["convert", &name, "--to", &name],
        &["generate", "spec.yaml"],
        &["generate", "--disk", &name],
        &["bench", "report", &name],
        &["explain", &name],
    ] {
        assert_harmless(&place.run(arguments), &format!("{arguments:?}"));
    }
}

const SECRET: &str = "hunter2CorrectHorse";

#[test]
fn no_output_of_a_finding_shows_a_secret_beside_it() {
    let line = format!(
        "qemu-system-x86_64 -object secret,id=s0,data={SECRET} -object '{{\"qom-type\":\"secret\",\"id\":\"s1\",\"data\":\"{SECRET}\"}}' \
         -spice password={SECRET} -drive file=nbd://me:{SECRET}@host/x,if=virtio,cache=unsafe \
         -drive file=https://host/x?token={SECRET},if=virtio,cache=unsafe -drive file=rbd:p/i:id=me:key={SECRET},if=virtio,cach=none \
         -blockdev driver=https,url=https://h/x,cookie='a={SECRET}; b={SECRET}',node-name=n0,aio=nativ \
         -blockdev driver=ssh,host.host=h,password={SECRET},node-name=n1,xyz=1 -device virtio-blk-pci,drive=n0\n"
    );
    let xml = DOMAIN
        .replace(">v<", &format!(">{SECRET}<"))
        .replace("name='a.iso'", &format!("name='a.iso' query='token={SECRET}' cach='x'"))
        .replace("</devices>", &format!("</devices><qemu:commandline xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><qemu:arg value='-object'/><qemu:arg value='secret,id=x,data={SECRET}'/></qemu:commandline>"));
    let spec = format!(
        "version: 1\ndisks:\n- {{url: 'https://me:{SECRET}@h/x', password: {SECRET}, formt: raw}}\n"
    );
    let place = Place::with(&[
        ("a.args", &line),
        ("a.xml", &xml),
        ("b.xml", &xml.replace('\n', " ")),
        ("s.yaml", &spec),
    ]);
    let nul = line
        .trim_end()
        .replace("; b", ";b")
        .replace('\'', "")
        .replace(' ', "\0");
    place.write("b.cmdline", nul.as_bytes());
    for format in FORMATS.into_iter().chain(["github"]) {
        let run = place.run(&["lint", ".", "-v", "--format", format]);
        for output in [&run.stdout, &run.stderr] {
            assert!(!output.contains(SECRET), "{format}: {output}");
        }
    }
    for (file, form) in [
        ("a.args", "libvirt-xml"),
        ("b.cmdline", "spec"),
        ("a.xml", "qemu"),
        ("b.xml", "qmp"),
    ] {
        let run = place.run(&["convert", file, "--to", form]);
        assert!(!run.stderr.contains(SECRET), "{file}: {}", run.stderr);
    }
    let run = place.run(&["generate", "s.yaml"]);
    assert!(!run.stderr.contains(SECRET), "{}", run.stderr);
}

/// Texts that hold a secret, written as `SECRET`.
const FORMS: [&str; 20] = [
    "nbd://me:SECRET@host/x",
    "https://me:SECRET@host/x",
    "ssh://me:SECRET@host/x",
    "ftp://me:SECRET@host/x",
    "gluster+tcp://me:SECRET@host/volume/x",
    "iscsi://me%SECRET@host/target/0",
    "https://host/x?token=SECRET",
    "https://host/x?X-Amz-Signature=SECRET&b=1",
    "rbd:pool/x:id=me:key=SECRET:auth_supported=cephx",
    "pool/x:id=me:key=SECRET",
    r#"json:{"driver":"https","url":"https://me:SECRET@host/","cookie":"c"}"#,
    r#"json:{"driver":"https","url":"https://host/","cookie":"a=SECRET"}"#,
    r#"json:{"driver":"ssh","host":"h","password":"SECRET"}"#,
    r#"json:{"file":{"driver":"nbd","x-password":"SECRET"}}"#,
    r#"json:{"file.password":"SECRET"}"#,
    r#"json:{"driver":"http","access-token":"SECRET"}"#,
    "driver=https,url=https://me:SECRET@host/x",
    "driver=ssh,password=SECRET",
    "password=SECRET",
    "me:x,authorization=SECRET",
];

/// Places of a disk in XML, written as `TEXT`.
const IN_XML: [&str; 10] = [
    "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='unsafe'/><source file='TEXT'/><target dev='DEV' bus='virtio'/></disk>",
    "<disk type='block' device='disk'><driver name='qemu' type='raw' io='native'/><source dev='TEXT'/><target dev='DEV' bus='virtio'/></disk>",
    "<disk type='network' device='disk'><driver name='qemu' type='raw' cache='unsafe'/><source protocol='rbd' name='TEXT'/><target dev='DEV' bus='virtio'/></disk>",
    "<disk type='network' device='cdrom'><source protocol='https' name='TEXT'><host name='h'/></source><target dev='DEV' bus='sata'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/srv/a'/><backingStore type='file'><format type='raw'/><source file='TEXT'/></backingStore><target dev='DEV' bus='virtio'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='TEXT'/><source file='/srv/a'/><target dev='DEV' bus='virtio'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='TEXT'/><source file='/srv/a'/><target dev='DEV' bus='virtio'/></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/srv/a'/><target dev='DEV' bus='virtio'/><serial>TEXT</serial></disk>",
    "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/srv/a' startupPolicy='TEXT'/><target dev='DEV' bus='TEXT'/></disk>",
    "<disk type='volume' device='disk'><driver name='qemu' type='raw'/><source pool='TEXT' volume='TEXT'/><target dev='DEV' bus='virtio'/></disk>",
];

/// Places of a disk on a command line, written as `TEXT`.
const ON_COMMAND_LINES: [&str; 10] = [
    "-drive 'file=TEXT,if=virtio,cache=unsafe'",
    "-drive 'file=DOUBLED,if=virtio,cache=unsafe'",
    "-drive 'file=/srv/a,if=virtio,serial=TEXT,xyz=TEXT'",
    "-drive 'file=/srv/a,if=virtio,cache=TEXT'",
    "-blockdev 'driver=file,filename=TEXT,node-name=DEV,aio=nativ' -device virtio-blk-pci,drive=DEV",
    "-blockdev 'driver=raw,file.driver=file,file.filename=DOUBLED,node-name=DEV' -device virtio-blk-pci,drive=DEV",
    "-blockdev 'driver=https,url=TEXT,node-name=DEV,xyz=1' -device virtio-blk-pci,drive=DEV",
    "-blockdev driver=file,filename=/srv/a,node-name=DEV -device 'virtio-blk-pci,drive=DEV,serial=TEXT,xyz=TEXT'",
    "-hda 'TEXT'",
    "-drive 'TEXT,if=virtio'",
];

/// A guest for each place; it has a disk for each text with a secret. The third is the number of secrets.
fn guests_with_secrets() -> (Vec<(String, String)>, usize) {
    let mut guests = Vec::new();
    let mut count = 0;
    let mut disk = |place: &str, nth: usize, escape: fn(&str) -> String| {
        count += 1;
        let form = FORMS[nth].replace("SECRET", &format!("{SECRET}{count}"));
        place
            .replace("TEXT", &escape(&form))
            .replace("DOUBLED", &escape(&form.replace(',', ",,")))
            .replace("DEV", &format!("vd{}", char::from(b'a' + nth as u8)))
    };
    for (number, place) in IN_XML.iter().enumerate() {
        let disks: String = (0..FORMS.len())
            .map(|nth| disk(place, nth, |text| text.replace('&', "&amp;")))
            .collect();
        let text = format!(
            "<domain type='kvm'>\n<name>g</name>\n<devices>\n{disks}\n</devices>\n</domain>\n"
        );
        guests.push((format!("{number}.xml"), text));
    }
    for (number, place) in ON_COMMAND_LINES.iter().enumerate() {
        let disks: Vec<String> = (0..FORMS.len())
            .map(|nth| disk(place, nth, str::to_owned))
            .collect();
        let text = format!("qemu-system-x86_64 -name g {}\n", disks.join(" "));
        guests.push((format!("{number}.args"), text));
    }
    (guests, count)
}

#[test]
fn no_output_of_any_format_shows_one_of_400_secrets() {
    let (guests, count) = guests_with_secrets();
    assert_eq!(count, 400);
    let place = Place::with(&[]);
    for (name, text) in &guests {
        place.write(name, text.as_bytes());
    }
    let mut leaks = std::collections::BTreeSet::new();
    let mut see = |what: &str, text: &str| {
        // A part of a secret is one too.
        for (at, _) in text.match_indices(&SECRET[..7]) {
            let start = text.floor_char_boundary(at.saturating_sub(90));
            let end = text.ceil_char_boundary((at + 30).min(text.len()));
            leaks.insert((what.to_owned(), text[start..end].to_owned()));
        }
    };
    for format in FORMATS.into_iter().chain(["github"]) {
        let run = place.run(&["lint", ".", "-v", "--format", format]);
        assert!(
            run.stdout.contains("g") && run.code != 2,
            "{format}: {}",
            run.stderr
        );
        see(format, &run.stdout);
        see(format, &run.stderr);
        let is_quoting = !["prometheus", "github"].contains(&format);
        assert!(
            !is_quoting || run.stdout.contains("***"),
            "{format} masks nothing"
        );
    }
    let facts = place.run(&["facts", "--for", "."]);
    see("facts --for", &facts.stdout);
    see("facts --for", &facts.stderr);
    for (name, _) in &guests {
        for format in ["text", "json", "svg"] {
            let run = place.run(&["trace", name, "--format", format]);
            assert_ne!(run.code, 2, "{name}: {}", run.stderr);
            see(&format!("trace --format {format}"), &run.stdout);
            see(&format!("trace --format {format}"), &run.stderr);
        }
    }
    #[cfg(feature = "lsp")]
    {
        let program = std::path::Path::new(crate::program());
        let mut editor = vmdisk_testing::Editor::start(program, &[], &place.path(""));
        for (name, text) in &guests {
            let uri = format!("file://{}", place.path(name).display());
            editor.open(&uri, text);
            // A document without findings is not announced.
            let run = place.run(&["lint", name, "--format", "concise"]);
            if !run.stdout.contains(&format!("{name}:")) {
                continue;
            }
            for found in editor.findings(&uri) {
                see("lsp", &found["message"].to_string());
                see("lsp", &found["relatedInformation"].to_string());
            }
        }
    }
    let leaks: Vec<String> = leaks
        .iter()
        .map(|(what, text)| format!("{what}: {text}"))
        .collect();
    assert!(
        leaks.is_empty(),
        "{} leaks:\n{}",
        leaks.len(),
        leaks.join("\n")
    );
}

#[test]
fn a_masked_window_keeps_its_carets() {
    let line =
        "qemu-system-x86_64 -object secret,id=s0,data=pass -drive file=/x,if=virtio,cache=unsafe\n";
    let run = Place::with(&[("a.args", line)]).run(&["lint", "a.args"]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    let quoted = lines
        .iter()
        .position(|line| line.contains("data=****"))
        .unwrap();
    let at = lines[quoted].find("unsafe").unwrap();
    assert_eq!(&lines[quoted + 1][at..at + 6], "^^^^^^", "{}", run.stdout);
}

#[test]
fn two_disks_are_written_so_that_they_are_read_again() {
    let place = Place::with(&[("a.xml", DOMAIN)]);
    for arguments in [
        &["convert", "a.xml", "--to", "disk-xml"][..],
        &[
            "generate", "--to", "disk-xml", "--disk", "raw:/a", "--disk", "raw:/b",
        ],
    ] {
        let written = place.run(arguments);
        assert_eq!(written.code, 0, "{}", written.stderr);
        let read = place.run_with_input(&["lint", "-"], written.stdout.as_bytes());
        assert_ne!(read.code, 2, "{}", read.stderr);
    }
}

#[test]
fn the_input_errors_of_concise_are_single_lines_and_a_comment_is_no_error() {
    let place = Place::with(&[
        ("a.xml", "<disk>\n<x></disk>"),
        (
            "b.xml",
            "<disk type='file' device='disk'><!-- vmdisk: ignore(x) --><source file='/a'/><target dev='vda'/></disk>",
        ),
    ]);
    let run = place.run(&["lint", "a.xml", "--format", "concise", "-q"]);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(run.stderr.starts_with("a.xml:2:"), "{}", run.stderr);
    let run = place.run(&["lint", "b.xml", "--format", "concise"]);
    assert!(
        run.stdout.contains("warning[allowance-unknown-rule]"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_text_that_cannot_be_read_shows_no_secret_that_it_masks() {
    let is_shown = |text: &str| text.contains(&SECRET[..7]);
    let mut failures = 0;
    let mut leaks = std::collections::BTreeSet::new();
    for (_, text) in guests_with_secrets().0 {
        for at in (0..text.len()).step_by(211) {
            let (before, after) = text.split_at(text.floor_char_boundary(at));
            for broken in ["", "</x ", "<x a='", "&", "'", "{"] {
                let rest = if broken.is_empty() { "" } else { after };
                let broken = format!("{before}{broken}{rest}");
                let Err(failure) = vmdisk::read(&broken) else {
                    continue;
                };
                failures += 1;
                // The source line is masked so, and what is no secret there is none in a message.
                if is_shown(&vmdisk_source::secrets::mask(&broken)) {
                    continue;
                }
                let related = failure.related.into_iter().map(|(_, text)| text);
                let texts = related.chain([failure.message]).chain(failure.help);
                leaks.extend(texts.filter(|text| is_shown(text)));
            }
        }
    }
    assert!(failures > 1000, "{failures}");
    assert!(leaks.is_empty(), "{leaks:#?}");
}
