//! No command prints a secret that it was given. A row of a table is a place in which one may be.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::Place;

const SECRET: &str = "Zq7xSeKrEt";

/// Names of images, which are written in XML, on a command line, and as a place of `advise`.
const NAMES: [&str; 24] = [
    "nbd://me:SECRET@h/x",
    "smb://me:SECRET@h/x",
    "smb://h/x?password=SECRET",
    "https://me:SECRET@h/x",
    "https://me:A/SECRET@h",
    "https://h/x?sig=SECRET",
    "https://h/x?a=b&token=SECRET",
    "ftp://me:SECRET@h/x",
    "ssh://me:SECRET@h/x",
    "sftp://me:SECRET@h/x",
    "iscsi://me%SECRET@h/t/0",
    "gluster+tcp://me:SECRET@h/v/x",
    "ceph+unknown://me:SECRET@h/x",
    "rbd:pool/x:id=me:key=SECRET",
    "rbd:pool/x:id=me:key=SECRET:auth_supported=cephx",
    "json:{\"driver\":\"ssh\",\"password\":\"SECRET\"}",
    "json:{\"driver\":\"ssh\",\"password\":\"A SECRET\"}",
    "json:{\"driver\":\"https\",\"url\":\"https://me:SECRET@h/\"}",
    "json:{\"driver\":\"https\",\"url\":\"https://h/\",\"cookie\":\"c=SECRET\"}",
    "json:{\"file.password\":\"SECRET\"}",
    "json:{\"driver\":\"rbd\",\"pool\":\"p\",\"image\":\"i\",\"key\":\"SECRET\"}",
    "/srv/password=SECRET",
    "/srv/token=SECRET.qcow2",
    "https://me:SECRET@{{h}}/x",
];

/// Elements of a guest.
const ELEMENTS: [&str; 27] = [
    "<graphics type='vnc' passwd='SECRET'/>",
    "<graphics type='spice' passwd=\"SECRET\"/>",
    "<secret type='passphrase' value='SECRET'/>",
    "<secret type='passphrase' uuid='u' value=\"SECRET\"/>",
    "<qemu:env name='CEPH_ARGS' value='--key SECRET'/>",
    "<qemu:env name='AWS_ACCESS_KEY' value='SECRET'/>",
    "<qemu:env value='SECRET' name='PLAIN'/>",
    "<qemu:arg value='--key SECRET'/>",
    "<qemu:arg value='secret,id=s0,data=SECRET'/>",
    "<qemu:arg value='secret,id=s0,data=A,,SECRET'/>",
    "<qemu:arg value='{\"qom-type\":\"secret\",\"id\":\"s\",\"data\":\"SECRET\"}'/>",
    "<qemu:arg value=\"{&quot;id&quot;:&quot;s&quot;,&quot;data&quot;:&quot;SECRET&quot;}\"/>",
    "<qemu:arg value='driver=https,cookie=SECRET'/>",
    "<qemu:arg value='x,passwd=SECRET'/>",
    "<qemu:arg value='x,password=A:SECRET'/>",
    "<qemu:arg value='driver=qcow2,encrypt.key=SECRET'/>",
    "<qemu:arg value='name=opt/com.coreos/config,string=SECRET'/>",
    "<qemu:arg value='type=11,value=io.systemd.credential:x=SECRET'/>",
    "<sysinfo type='fwcfg'><entry name='opt/x'>SECRET</entry></sysinfo>",
    "<sysinfo type='smbios'><oemStrings><entry>SECRET</entry></oemStrings></sysinfo>",
    "<metadata><m:a xmlns:m='http://m'>SECRET</m:a></metadata>",
    "<metadata><m:a xmlns:m='http://m' b='SECRET'/></metadata>",
    "<metadata><m:a xmlns:m='http://m'><m:b/><![CDATA[SECRET]]></m:a></metadata>",
    "<cookies><cookie name='c'>SECRET</cookie></cookies>",
    "<cookies><cookie name='c'><![CDATA[SECRET]]></cookie></cookies>",
    "<cmdline>root=/dev/vda ks.password=SECRET</cmdline>",
    "<!-- api_key: SECRET -->",
];

/// Options of a command line.
const OPTIONS: [&str; 16] = [
    "-object secret,id=s0,data=SECRET",
    "-object 'secret,id=s0,data=A SECRET'",
    "-object '{\"qom-type\":\"secret\",\"id\":\"s1\",\"data\":\"SECRET\"}'",
    "-fw_cfg name=opt/com.coreos/config,string=SECRET",
    "-smbios type=11,value=SECRET",
    "-vnc :1,password=SECRET",
    "-spice password=SECRET",
    "-append 'root=/dev/vda password=SECRET'",
    "-blockdev driver=ssh,node-name=a,host=h,path=/x,password=SECRET",
    "-blockdev driver=https,node-name=b,url=https://me:SECRET@h/x,cookie=c",
    "-blockdev driver=https,node-name=c,url=https://h/x,cookie=SECRET",
    "-blockdev driver=qcow2,node-name=d,encrypt.format=aes,encrypt.key=SECRET,file=e",
    "-drive driver=rbd,pool=p,image=i,key=SECRET",
    "-drive file=rbd:p/i:key=SECRET:mon_host=m",
    "-iscsi user=u,password=SECRET",
    "-chardev socket,id=c0,path=/x,authorization=SECRET",
];

/// Lines of a spec.
const OF_SPECS: [&str; 8] = [
    "- rbd: {pool: p, image: i, key: SECRET}",
    "- rbd:\n    pool: p\n    key: SECRET",
    "- qcow2: {path: /srv/a, key: SECRET}",
    "- qcow2: {path: 'nbd://me:SECRET@h/x'}",
    "- raw: {path: 'json:{\"password\":\"SECRET\"}'}",
    "- raw: {path: /srv/a, password: SECRET}",
    "- raw: {path: /srv/a, serial: 'token=SECRET'}",
    "- http: {url: 'https://me:SECRET@h/x?sig=SECRET'}",
];

/// Texts that cannot be read.
const BROKEN: [(&str, &str); 12] = [
    ("xml", "<domain>\n<graphics passwd=SECRET/></domain>"),
    (
        "xml",
        "<domain>\n<graphics passwd=SECRET type='vnc'/></domain>",
    ),
    (
        "xml",
        "<domain>\n<graphics passwd='SECRET type='vnc'/></domain>",
    ),
    ("xml", "<domain>\n<secret value=SECRET/></domain>"),
    ("xml", "<domain>\n<source file=nbd://me:SECRET@h/></domain>"),
    ("xml", "<domain>\n<cookie name='c'>SECRET</domain>"),
    ("xml", "<domain>\n<metadata><a>SECRET</metadata></domain>"),
    (
        "xml",
        "<domain>\n<qemu:env name='A' value='SECRET' value='SECRET'/></domain>",
    ),
    ("yaml", "version: 1\ndisks:\n- rbd: {key: SECRET\n"),
    (
        "yaml",
        "version: 1\ndisks:\n- raw: {path: 'nbd://me:SECRET@h/x}\n",
    ),
    ("args", "qemu-system-x86_64 -object 'secret,data=SECRET\n"),
    (
        "args",
        "qemu-system-x86_64 -drive file=rbd:p/i:key=SECRET\"\n",
    ),
];

/// Texts with a secret of its own in each row, and the numbers of the rows.
struct Planted {
    texts: Vec<(String, String)>,
    count: usize,
}

impl Planted {
    fn next(&mut self, text: &str) -> String {
        self.count += 1;
        text.replace("SECRET", &format!("{SECRET}{}", self.count))
    }

    fn all() -> Self {
        let mut all = Planted {
            texts: Vec::new(),
            count: 0,
        };
        let escape = |text: &str| text.replace('&', "&amp;").replace('\'', "&apos;");
        // Each on the line of a finding, which is quoted.
        let (mut of_names, mut of_elements) = (String::new(), String::new());
        for (nth, name) in NAMES
            .iter()
            .enumerate()
            .filter(|(_, name)| !name.contains("{{"))
        {
            let name = escape(&all.next(name));
            let letter = char::from(b'a' + nth as u8);
            let _ = writeln!(
                of_names,
                "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='unsafe' foo='{name}'/><source file='{name}'/><target dev='vd{letter}' bus='virtio'/></disk>"
            );
        }
        for element in ELEMENTS {
            let element = all.next(element);
            let _ = writeln!(
                of_elements,
                "{element}<disk type='file' device='disk'><driver name='qemu' type='raw' cache='unsafe' foo='x'/><source file='/srv/a'/><target dev='vda'/></disk>"
            );
        }
        for (name, disks) in [("names.xml", of_names), ("elements.xml", of_elements)] {
            let text = format!(
                "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n<name>g</name><devices>\n{disks}</devices></domain>\n"
            );
            all.texts.push((name.to_owned(), text));
        }
        for name in NAMES.iter().filter(|name| name.contains("{{")) {
            let text = format!(
                "<disk type='file'>\n<driver cache='unsafe'/><source file='{}'/><target dev='vda'/></disk>\n",
                all.next(name)
            );
            all.texts.push(("template.xml.j2".to_owned(), text));
        }
        let mut options: String = NAMES
            .iter()
            .map(|name| {
                format!(
                    " -drive 'file={},if=virtio,cache=unsafe,xyz=1'",
                    all.next(&name.replace(',', ",,"))
                )
            })
            .collect();
        options.extend(OPTIONS.iter().map(|option| {
            format!(
                " {} -drive file=/srv/a,if=virtio,cache=unsafe",
                all.next(option)
            )
        }));
        all.texts.push((
            "a.args".to_owned(),
            format!("qemu-system-x86_64 -name g{options}\n"),
        ));
        for (nth, line) in OF_SPECS.iter().enumerate() {
            let text = format!("version: 1\ndisks:\n{}\n", all.next(line));
            all.texts.push((format!("{nth}.yaml"), text));
        }
        for (nth, (ending, text)) in BROKEN.iter().enumerate() {
            let text = all.next(text);
            all.texts.push((format!("broken{nth}.{ending}"), text));
        }
        all
    }
}

/// What was printed of secrets.
#[derive(Default)]
struct Leaks(BTreeSet<String>);

impl Leaks {
    fn see(&mut self, what: &str, text: &str) {
        // A part of a secret is one too.
        for (at, _) in text.match_indices(&SECRET[..6]) {
            let is_start = |at: &usize| text.is_char_boundary(*at);
            let start = (0..=at.saturating_sub(60))
                .rfind(is_start)
                .unwrap_or_default();
            let end = (at + 20..text.len()).find(is_start).unwrap_or(text.len());
            self.0
                .insert(format!("{what}: {}", &text[start..end].replace('\n', "⏎")));
        }
    }

    fn see_both(&mut self, what: &str, run: &crate::Run) {
        self.see(what, &run.stdout);
        self.see(what, &run.stderr);
    }
}

#[test]
fn no_command_prints_one_of_100_secrets_in_any_format() {
    let planted = Planted::all();
    assert!(planted.count >= 100, "{}", planted.count);
    let place = Place::with(&[
        ("facts.json", "{\"schema_version\": \"1.0\"}"),
        ("salt", "a salt that nobody guesses"),
    ]);
    for (name, text) in &planted.texts {
        place.write(name, text.as_bytes());
    }
    let mut leaks = Leaks::default();
    for format in [
        "full",
        "concise",
        "json",
        "json-lines",
        "github",
        "gitlab",
        "sarif",
        "junit",
        "checkstyle",
        "html",
        "prometheus",
    ] {
        let run = place.run(&[
            "lint",
            ".",
            "--facts",
            "facts.json",
            "-v",
            "--format",
            format,
        ]);
        assert!(run.stdout.contains("cache-unsafe"), "{format}: {run:?}");
        leaks.see_both(&format!("lint --format {format}"), &run);
    }
    for arguments in [
        &["lint", ".", "--show-allowed", "--statistics"][..],
        &["lint", ".", "--show-files"],
        &["lint", ".", "--write-baseline", "--baseline", "b.json"],
    ] {
        leaks.see_both(&arguments.join(" "), &place.run(arguments));
    }
    // Facts have the names of the images; redaction takes them out.
    let facts = place.run(&["facts", "--for", ".", "--output", "f.json"]);
    leaks.see_both("facts --for .", &facts);
    for level in ["full", "shareable", "minimal"] {
        let words = [
            "facts",
            "redact",
            "f.json",
            "--level",
            level,
            "--salt-file",
            "salt",
        ];
        let run = place.run(&words);
        assert!(run.stdout.contains("\"files\""), "{run:?}");
        leaks.see_both(&words.join(" "), &run);
    }
    for name in NAMES {
        let place_of = name.replace("SECRET", SECRET);
        for format in ["text", "json"] {
            let run = place.run(&[
                "advise",
                "--in",
                &place_of,
                "--size",
                "1G",
                "--facts",
                "facts.json",
                "--format",
                format,
            ]);
            leaks.see_both(&format!("advise --format {format}"), &run);
        }
    }
    for (file, _) in &planted.texts {
        for arguments in [
            &["trace", file][..],
            &["trace", file, "--format", "json"],
            &["trace", file, "--format", "svg"],
            &["decide", file],
            &["generate", file],
            &["apply", file, "--dry-run"],
            &["convert", file, "--to", "spec"],
            &["convert", file, "--to", "qmp"],
            &["convert", file, "--to", "libvirt-xml", "--explain"],
        ] {
            let run = place.run(arguments);
            leaks.see(&arguments.join(" "), &run.stderr);
            // A configuration has the secrets of the one that it was made of.
            if ["trace", "decide"].contains(&arguments[0]) {
                leaks.see(&arguments.join(" "), &run.stdout);
            }
        }
        let run = place.run(&["decide", file, "--format", "json"]);
        for errors in run.stdout.split("\"errors\":").skip(1) {
            leaks.see("decide --format json", errors.split(']').next().unwrap());
        }
        for level in ["full", "shareable", "minimal"] {
            let run = place.run(&[
                "facts",
                "redact",
                file,
                "--level",
                level,
                "--salt-file",
                "salt",
            ]);
            leaks.see_both(&format!("facts redact --level {level} {file}"), &run);
            let is_text = level == "full";
            assert!(
                !is_text || run.code == 0 && run.stdout.contains("redacted"),
                "{file}: {run:?}"
            );
        }
    }
    let all: Vec<_> = leaks.0.into_iter().collect();
    assert!(all.is_empty(), "{} leaks:\n{}", all.len(), all.join("\n"));
}
