//! The page of `vmdisk lint --format html`: whole, harmless, and no wider than a telephone.

use vmdisk_tests::{has_program, real, run};

use crate::bench_report::in_browser;

fn page(arguments: &[&str]) -> String {
    let mut all = vec!["lint", "--format", "html"];
    all.extend(arguments);
    let run = run(crate::VMDISK, &all, "");
    assert!(run.stdout.starts_with("<!DOCTYPE html>"), "{}", run.stderr);
    assert!(run.stdout.trim_end().ends_with("</main></body></html>"));
    run.stdout
}

const ARTICLES: &str = "fixtures/articles";

#[test]
fn the_page_has_each_finding_with_its_path_and_its_fix_and_refers_to_no_file() {
    let folder = format!("{ARTICLES}/000-btrfs-cache-modes");
    let (domain, facts) = (
        format!("{folder}/domain.xml"),
        format!("{folder}/facts.json"),
    );
    let page = page(&[&domain, "--facts", &facts]);
    for expected in [
        "<h2>freebsd</h2>",
        "btrfs-dio-csum-corruption",
        "error: btrfs-dio-csum-corruption</text>",
        "vmdisk lint --fix",
        "<span class=\"removed\">-",
        "<span class=\"added\">+",
        "btrfs on /",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    assert_eq!(
        page.matches("class=\"io-path\"").count(),
        2,
        "a picture for each disk"
    );
    for foreign in [
        "<script", "<link", "src=", "href=", "url(", "@import", "http:", "https:",
    ] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn each_kind_of_host_has_its_own_pictures() {
    let page = page(&[
        &format!("{ARTICLES}/000-btrfs-cache-modes/domain.xml"),
        "--facts",
        &format!("{ARTICLES}/000-btrfs-cache-modes/facts.json"),
        "--facts",
        &format!("{ARTICLES}/003-qcow2-io-native/facts.json"),
    ]);
    assert_eq!(page.matches("<h3>I/O paths on ").count(), 2);
    assert_eq!(page.matches("class=\"io-path\"").count(), 4);
}

#[test]
fn text_of_the_input_is_text_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a<b>.xml");
    let text = "<domain type='kvm'><name>&lt;script&gt;alert(1)&lt;/script&gt;\u{202e}</name><devices>
      <disk type='file' device='disk'><driver name='qemu' type='raw' cache='unsafe'/>
      <source file='/srv/&lt;img src=x&gt;.img'/><target dev='vda' bus='virtio'/></disk></devices></domain>";
    std::fs::write(&path, text).unwrap();
    let page = page(&[path.to_str().unwrap()]);
    for hazard in ["<script", "<img", "a<b>", "\u{202e}"] {
        assert!(!page.contains(hazard), "{hazard}: {page}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
}

#[test]
fn in_a_browser_nothing_sticks_out_of_the_page() {
    let mut programs = ["chromium", "chromium-browser", "google-chrome"].into_iter();
    let browser = programs.find(|program| has_program(program));
    if !real(
        browser.is_some(),
        "in_a_browser_nothing_sticks_out_of_the_page",
        "chromium",
    ) {
        return;
    }
    for arguments in [
        &[
            "fixtures/articles",
            "--facts",
            "fixtures/articles/002-md-btrfs-schedulers/facts.json",
        ][..],
        &["fixtures/mistakes", "fixtures/command-lines"],
    ] {
        let found = in_browser(browser.unwrap(), &page(arguments));
        let expected = "[\"1280: true elements, 0 pictures\",\"390: true elements, 0 pictures\"]";
        assert_eq!(found, expected, "{arguments:?}");
    }
}
