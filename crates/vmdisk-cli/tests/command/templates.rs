//! Templates at the command line.

use crate::Place;

const TEMPLATE: &str = "{% set pool = '/srv' %}\n<domain type='kvm'>\n<name>{{ name }}</name>\n<memory>{{ memory }}</memory>\n\
    <devices>\n<disk type='file'>\n<driver name='qemu' type='{{ format }}' cache='unsafe'/>\n\
    <source file='{{ pool }}/a.img'/>\n<target dev='vda' bus='virtio'/>\n</disk>\n</devices>\n</domain>\n";

#[test]
fn a_template_is_checked_without_its_values_and_not_converted() {
    let place = Place::with(&[("a.xml", TEMPLATE), ("b.xml", TEMPLATE)]);
    let run = place.run(&["lint", "--format", "concise", "-v", "a.xml"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.contains("a.xml:7:48: error[cache-unsafe]"),
        "{run:?}"
    );
    assert!(!run.stdout.contains("invalid-value"), "{run:?}");
    for said in [
        "the value of `{{ format }}`",
        "a template was checked without the values of 4 placeholders",
    ] {
        assert!(run.stderr.contains(said), "{said}: {run:?}");
    }
    let both = place.run(&["lint", "a.xml", "b.xml"]);
    let said = "2 templates were checked without the values of 8 placeholders";
    assert!(both.stderr.contains(said), "{both:?}");
    let fixed = place.run(&["lint", "--fix", "--unsafe-fixes", "a.xml"]);
    assert_eq!(
        place.read("a.xml"),
        TEMPLATE.replace("unsafe", "writeback"),
        "{fixed:?}"
    );
    for form in ["qemu", "libvirt-xml", "spec", "disk-xml"] {
        let run = place.run(&["convert", "--to", form, "b.xml"]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{form}: {run:?}");
        for name in ["name", "memory", "format", "pool"] {
            let said = format!("the value of `{{{{ {name} }}}}` cannot be carried over");
            assert!(run.stderr.contains(&said), "{form} {name}: {run:?}");
        }
    }
    let trace = place.run(&["trace", "b.xml"]);
    assert!(trace.stderr.contains("4 placeholders"), "{trace:?}");
    assert!(trace.stdout.contains("{{ pool }}/a.img"), "{trace:?}");
    place.write(
        "c.xml",
        TEMPLATE.replace("{{ pool }}", "<%= pool %>").as_bytes(),
    );
    for command in ["trace", "decide"] {
        let run = place.run(&[command, "c.xml"]);
        assert!(run.stdout.contains("<%= pool %>"), "{run:?}");
    }
}

#[test]
fn templates_below_a_directory_are_found_by_the_name_without_their_end() {
    let disk = "<disk type='file'><driver name='qemu' type='raw' cache='unsafe'/>\
        <source file='{{ image }}'/><target dev='vda' bus='virtio'/></disk>\n";
    let found = ["a.xml.j2", "b.xml.tmpl", "c.XML.erb", "d.xml.in", "e.xml"];
    let others = ["f.j2", "g.txt.j2", "h.xml.bak"];
    let files: Vec<(&str, &str)> = found.iter().chain(&others).map(|it| (*it, disk)).collect();
    let place = Place::with(&files);
    let run = place.run(&["lint", "--no-config", "."]);
    assert_eq!(
        run.stdout.matches("[cache-unsafe]").count(),
        found.len(),
        "{run:?}"
    );
    assert!(others.iter().all(|it| !run.stdout.contains(it)), "{run:?}");
}

/// A guest whose placeholders are of each kind and place, and what its readers see instead of some of them.
const KINDS: &[(&str, &str)] = &[
    ("<%= @one[\"abcdef\"] %>", "<%= @two['x'] %>"),
    ("<?= $one[\"abc\"] ?>", "<?= $two ?>"),
    ("{{ one[\"abcdef\"] }}", "{{ two | default('x') }}"),
    ("{{{one}}}", "{{#two}}x{{/two}}"),
    ("{{ .Values.one | quote }}", "{{ index .Two \"x\" }}"),
    ("${one[\"abcdef\"]}", "${two}"),
    ("@ONE@", "@TWO@"),
    ("%(one)s", "%(two)s"),
    ("[[ .One ]]", "[[ .Two ]]"),
];

#[test]
fn every_output_shows_placeholders_as_they_were_written() {
    const OUTPUTS: &[&[&str]] = &[
        &["lint", "-v"],
        &["lint", "--format", "concise", "-v"],
        &["lint", "--format", "json"],
        &["lint", "--format", "sarif"],
        &["lint", "--format", "github"],
        &["lint", "--format", "gitlab"],
        &["lint", "--format", "junit"],
        &["lint", "--format", "html"],
        &["lint", "--format", "prometheus"],
        &["lint", "--diff"],
        &["trace"],
        &["trace", "--format", "json"],
        &["trace", "--format", "svg"],
        &["decide"],
        &["decide", "--format", "json"],
        &["decide", "--format", "xml"],
        &["decide", "--format", "diff"],
        &["convert", "--to", "spec"],
    ];
    let mut shown = 0;
    for (one, two) in KINDS {
        let text = format!(
            "<domain type='kvm'>\n<name>{two}</name>\n<memory>1048576</memory>\n<devices>\n\
             <disk type='file'>\n<driver name='qemu' type='qcow2' cache='unsafe'/>\n\
             <source file='{one}/a.img'/>\n<target dev='vda' bus='virtio'/>\n</disk>\n\
             <disk type='file'>\n<driver name='qemu' type='raw' cache='unsafe' io='native'/>\n\
             <source file='/srv/{two}.img'/>\n<target dev='vd{two}' bus='virtio'/>\n</disk>\n\
             </devices>\n</domain>\n"
        );
        let template =
            vmdisk::source::template::Template::of(&text, vmdisk::source::template::Syntax::Xml);
        let template = template.unwrap_or_else(|| panic!("{one} is no placeholder"));
        let changed = template
            .placeholders
            .iter()
            .map(|it| (template.read_as(it), it.name.as_str()));
        let changed: Vec<(&str, &str)> = changed
            .filter(|(read, name)| read != name && read.len() > 4 && !read.trim().is_empty())
            .collect();
        let place = Place::with(&[("vm.xml", &text)]);
        for output in OUTPUTS {
            let run = place.run(&[output, &["vm.xml"][..]].concat());
            let all = format!("{}{}", run.stdout, run.stderr);
            assert!(!all.contains("panicked"), "{output:?}: {all}");
            for (read, name) in &changed {
                let escapes = [
                    read.to_string(),
                    read.replace('\'', "&#39;"),
                    read.replace('\'', "&apos;"),
                    read.replace('\\', "\\\\"),
                ];
                for read in escapes {
                    assert!(
                        !all.contains(&read),
                        "{output:?} shows {read} for {name}:\n{all}"
                    );
                }
                shown += usize::from(all.contains(name));
            }
            if output[0] == "decide" {
                assert!(
                    !all.contains("is not an absolute path"),
                    "{output:?} {one}: {all}"
                );
            }
        }
    }
    assert!(shown > 20, "{shown}");
}
