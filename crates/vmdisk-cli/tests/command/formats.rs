//! Data formats: versioned, complete, and as their schemas say.

use serde_json::Value;

use crate::{CLEAN, Place, UNSAFE, sarif_schema};

/// A place with a finding, an allowed finding, a fix and an input that cannot be read.
fn mixed() -> Place {
    let allowed = UNSAFE.replace("vda", "vdb").replace("web1", "scratch");
    let text = format!(
        "<devices>\n{UNSAFE}<!-- vmdisk: allow(cache-unsafe) rebuilt each night -->\n{allowed}</devices>\n"
    );
    Place::with(&[
        ("d/mixed disks.xml", &text),
        ("d/broken.xml", "<domain>\n<os>\n</domain>\n"),
    ])
}

fn data(place: &Place, format: &str) -> Value {
    let run = place.run(&["lint", "d", "--format", format]);
    assert_eq!(run.code, 2, "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn the_report_is_what_its_published_schema_says() {
    let place = mixed();
    let report = data(&place, "json");
    let schema: Value =
        serde_json::from_str(&place.run(&["print", "schema", "report"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&report)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    let mut wrong = report.clone();
    wrong["findings"][0]["severity"] = "fatal".into();
    assert!(
        !validator.is_valid(&wrong),
        "the schema would take anything"
    );
    assert_eq!(report["schema_version"], "1.6");
    assert_eq!(report["summary"]["failed_inputs"], 1);
    assert_eq!(report["summary"]["allowed"], 1);
    assert_eq!(
        report["allowed"][0]["allowed_by"]["reason"],
        "rebuilt each night"
    );
}

#[test]
fn edits_in_the_report_mend_the_text_as_fix_does() {
    let place = mixed();
    let report = data(&place, "json");
    let finding = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["rule"] == "cache-unsafe")
        .unwrap();
    let place_of = |part: &str| finding["place"]["start"][part].as_u64().unwrap();
    assert_eq!((place_of("line"), place_of("column")), (3, 43));
    let edit = &finding["fix"]["edits"][0];
    let offset = |end: &str| usize::try_from(edit[end]["offset"].as_u64().unwrap()).unwrap();
    let mut text = place.read("d/mixed disks.xml");
    text.replace_range(
        offset("start")..offset("end"),
        edit["text"].as_str().unwrap(),
    );
    assert!(text.contains("cache='writeback'"), "{text}");
}

#[test]
fn sarif_is_what_the_standard_says() {
    let log = data(&mixed(), "sarif");
    sarif_schema::assert_valid(&log);
    let run = &log["runs"][0];
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    let uris: Vec<&str> = run["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|artifact| artifact["location"]["uri"].as_str().unwrap())
        .collect();
    assert_eq!(uris, ["d/broken.xml", "d/mixed%20disks.xml"]);
    let results = run["results"].as_array().unwrap();
    let suppressed = results
        .iter()
        .find(|result| result["suppressions"][0]["kind"] == "inSource")
        .unwrap();
    assert_eq!(
        suppressed["suppressions"][0]["justification"],
        "rebuilt each night"
    );
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(
            run["tool"]["driver"]["rules"][index]["id"],
            result["ruleId"]
        );
    }
}

#[test]
fn sarif_counts_unchecked_places_in_singular_and_plural() {
    let text = CLEAN.replace("web1", "web2").replace("vda", "vdb");
    let both =
        format!("<domain type='kvm'><name>w</name><devices>{CLEAN}{text}</devices></domain>");
    for (text, places) in [(CLEAN, "1 place:"), (&both, "2 places:")] {
        let run = Place::with(&[("a.xml", text)]).run(&["lint", "a.xml", "--format", "sarif"]);
        let log: Value = serde_json::from_str(&run.stdout).unwrap();
        let notifications = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
            .as_array()
            .unwrap();
        let of_rule =
            |notification: &&Value| notification["associatedRule"]["id"] == "backing-missing";
        let found = notifications.iter().find(of_rule).unwrap();
        let message = found["message"]["text"].as_str().unwrap();
        assert!(message.contains(places), "{message}");
    }
}

#[test]
fn fingerprints_survive_edits_elsewhere_and_moves() {
    let domain = |extra: &str, disk: &str| {
        format!("<domain type='kvm'><name>web1</name>{extra}<devices>\n{disk}</devices></domain>")
    };
    let fingerprints = |name: &str, text: &str| -> Vec<String> {
        let place = Place::with(&[(name, text)]);
        let run = place.run(&["lint", name, "--format", "sarif"]);
        let log: Value = serde_json::from_str(&run.stdout).unwrap();
        log["runs"][0]["results"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|result| result["ruleId"] == "cache-unsafe")
            .map(|result| {
                result["partialFingerprints"]["vmdiskField/v1"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    };
    let before = fingerprints("a.xml", &domain("", UNSAFE));
    assert_eq!(before.len(), 1);
    let another = crate::CLEAN.replace("vda", "vdz").replace("web1", "other");
    let after = fingerprints(
        "moved/b.xml",
        &domain("<!-- line\n -->\n\n", &format!("{another}{UNSAFE}")),
    );
    assert_eq!(before, after);
    let other_disk = fingerprints("a.xml", &domain("", &UNSAFE.replace("vda", "vdb")));
    assert_ne!(before, other_disk);
}

/// Two guests that open one image, and a third one.
fn guests_with_a_conflict() -> Place {
    let guest = |name: &str, image: &str| {
        format!(
            "<domain type='kvm'><name>{name}</name><memory>1</memory><os><type arch='x86_64' machine='q35'>hvm</type></os><devices>\n<disk type='file' device='disk'><driver name='qemu' type='raw' cache='unsafe' discard='unmap'/><source file='{image}'/><target dev='vda' bus='virtio'/></disk></devices></domain>\n"
        )
    };
    Place::with(&[
        ("a.xml", &guest("a", "/srv/a.img")),
        ("b.xml", &guest("b", "/srv/a.img")),
        ("c.xml", &guest("c", "/srv/c.img")),
    ])
}

#[test]
fn every_report_has_each_input_once() {
    let place = guests_with_a_conflict();
    for hosts in [&[][..], &["--host", "h=*.xml"]] {
        let lint = |format: &str| {
            let run = place.run(&[&["lint", ".", "--format", format], hosts].concat());
            assert_eq!(run.code, 1, "{run:?}");
            run.stdout
        };
        let conflicts = usize::from(!hosts.is_empty());
        let html = lint("html");
        assert_eq!(html.matches("<section").count(), 3, "{html}");
        // In the table of rules, and with the finding.
        assert_eq!(
            html.matches("image-shared-by-guests</").count(),
            2 * conflicts
        );
        assert!(!html.contains("No findings"), "{html}");
        let junit = lint("junit");
        assert_eq!(junit.matches("<testsuite ").count(), 3, "{junit}");
        assert!(!junit.contains("no findings"), "{junit}");
        for format in ["json", "sarif", "gitlab"] {
            let report = lint(format);
            assert!(
                report.matches("\"image-shared-by-guests\"").count() >= conflicts,
                "{report}"
            );
        }
        let checkstyle = lint("checkstyle");
        assert_eq!(checkstyle.matches("<file ").count(), 3, "{checkstyle}");
    }
}

#[test]
fn a_page_about_a_fleet_is_small_starts_with_the_numbers_and_folds_clean_guests() {
    let guest = |number: usize, cache: &str| {
        format!(
            "<domain type='kvm'><name>g{number}</name><memory>1048576</memory><os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os><features><acpi/></features><devices>\n<disk type='file' device='disk'><driver name='qemu' type='raw' cache='{cache}' discard='unmap'/><source file='/srv/{number}.img'/><target dev='vda' bus='virtio'/></disk></devices></domain>\n"
        )
    };
    let place = Place::with(&[]);
    for number in 0..400 {
        let cache = if number % 2 == 0 {
            "unsafe"
        } else {
            "writeback"
        };
        place.write(
            &format!("g{number:03}.xml"),
            guest(number, cache).as_bytes(),
        );
    }
    let lint = ["lint", ".", "--format", "html", "--select", "cache-unsafe"];
    let page = place.run(&lint).stdout;
    assert!(page.len() < 1_000_000, "{}", page.len());
    assert_eq!(page.matches("<section").count(), 200);
    assert_eq!(page.matches("<details").count(), 1);
    assert!(page.contains("200 inputs without findings"));
    let pictures = page.matches("class=\"picture\"").count();
    assert!((1..=40).contains(&pictures), "{pictures}");
    let [table, section] = ["<table", "<section"].map(|it| page.find(it).unwrap());
    assert!(table < section);
    let link = "<a href=\"https://github.com/vmdisk/vmdisk/blob/main/docs/rules/cache-unsafe.md\">cache-unsafe</a>";
    assert_eq!(page.matches(link).count(), 201);
    assert!(page.contains("<h3>error: <code>vda</code> discards"));
    assert!(page.contains(concat!("vmdisk ", env!("CARGO_PKG_VERSION"), ", 20")));
}

#[test]
fn annotations_are_sorted_by_severity_and_grouped_by_rule_above_ten() {
    let place = guests_with_a_conflict();
    let kinds = |place: &Place| -> Vec<(String, String)> {
        let run = place.run(&["lint", ".", "--format", "github"]);
        let lines = run.stdout.lines().map(|line| {
            let (kind, rest) = line[2..].split_once(' ').unwrap();
            (kind.to_owned(), rest.to_owned())
        });
        lines.collect()
    };
    let found = kinds(&place);
    let order: Vec<&str> = found[1..].iter().map(|(kind, _)| kind.as_str()).collect();
    let mut sorted = order.clone();
    sorted.sort_by_key(|kind| {
        ["error", "warning", "notice"]
            .iter()
            .position(|it| it == kind)
    });
    assert_eq!(order, sorted);
    let errors = |found: &[(String, String)]| -> Vec<String> {
        let errors = found.iter().filter(|(kind, _)| kind == "error");
        errors.map(|(_, rest)| rest.clone()).collect()
    };
    assert_eq!(errors(&found).len(), 3, "{found:?}");
    for number in 0..9 {
        let text = place
            .read("c.xml")
            .replace("c.img", &format!("{number}.img"));
        place.write(&format!("d{number}.xml"), text.as_bytes());
    }
    let errors = errors(&kinds(&place));
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("%0A11 more:%0A"), "{errors:?}");
    assert_eq!(errors[0].matches(".xml:2: ").count(), 11, "{errors:?}");
}
