//! The page of `vmdisk lint --format html`: whole, harmless, no wider than a telephone, and with whole words.

use std::process::Command;

use vmdisk_tests::{has_program, real, repository, run};

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
        page.matches("class=\"picture\"").count(),
        1,
        "a picture for each disk with findings"
    );
    let rules = "href=\"https://github.com/vmdisk/vmdisk/blob/main/docs/rules/";
    let page = page.replace(rules, "");
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
    assert_eq!(page.matches("class=\"picture\"").count(), 2);
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
        assert_inside(browser.unwrap(), &page(arguments));
    }
    // The page of a run has the same style, and its pictures the same module.
    for name in ["five-backends", "crystaldiskmark"] {
        let result = format!("fixtures/measurements/{name}.json");
        let words = ["bench", "report", &result, "--format", "html"];
        assert_inside(browser.unwrap(), &run(crate::VMDISK, &words, "").stdout);
    }
    assert_inside(browser.unwrap(), &playground());
    assert_inside(browser.unwrap(), &pages_of_the_site());
}

/// The playground with a finding and a path, as its script writes them.
fn playground() -> String {
    let read = |path: &str| {
        std::fs::read_to_string(repository().join("bindings/playground").join(path)).unwrap()
    };
    let (page, _) = read("page.html")
        .split_once("<script>")
        .map(|(page, rest)| (page.to_owned(), rest.to_owned()))
        .unwrap();
    let finding = "<article class='error'><p>error: <code>vda</code> discards the guest's flushes</p>\
        <p class='rule'><a href='#'>cache-unsafe</a> <button class='place'>12:47</button></p><ul><li>after a crash of the host, any \
        of the guest's last writes may be missing, in any order</li></ul><button>Apply the fix</button></article>";
    let words = ["dropped", "cached", "honoured", "split", "unknown"];
    let effects = words
        .map(|word| format!("<span class='{word}'>flush: {word}</span>"))
        .concat();
    let step = format!(
        "<div class='step error'><span class='layer'>block layer</span>QEMU<div class='properties'>cache mode: unsafe</div><div class='effects'>{effects}</div></div>"
    );
    let disk = format!("<div class='disk'><h2>vda</h2>{}</div>", step.repeat(6));
    page.replace("/*STYLE*/", &read("page.css"))
        .replace(
            "<div id=\"findings\"></div>",
            &format!("<div id=\"findings\">{}</div>", finding.repeat(3)),
        )
        .replace("id=\"paths\">", &format!("id=\"paths\">{}", disk.repeat(2)))
}

/// README and the guides, with the least style of a site: wide tables and blocks scroll, and words are whole.
fn pages_of_the_site() -> String {
    let style = ":root { color-scheme: light dark; } body { margin: 0 auto; max-width: 50rem; padding: 1rem; } \
        table { display: block; overflow: auto; } pre { overflow: auto; } img, svg { max-width: 100%; } \
        code { overflow-wrap: anywhere; }";
    let guides = std::fs::read_dir(repository().join("docs")).unwrap();
    let mut pages: Vec<_> = guides.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|end| end == "md"));
    pages.push(repository().join("README.md"));
    pages.sort();
    let mut page = format!(
        "<!DOCTYPE html><html lang='en'><meta name='viewport' content='width=device-width'><style>{style}</style><body>"
    );
    for path in pages {
        let text = std::fs::read_to_string(path).unwrap();
        pulldown_cmark::html::push_html(
            &mut page,
            pulldown_cmark::Parser::new_ext(&text, pulldown_cmark::Options::ENABLE_TABLES),
        );
    }
    page
}

#[track_caller]
fn assert_inside(browser: &str, page: &str) {
    let expected = "[\"1280: true elements\",\"390: true elements\"]";
    for scheme in [Scheme::Dark, Scheme::Light] {
        assert_eq!(
            in_browser(browser, page, scheme),
            expected,
            "{scheme:?}: {:.200}",
            page
        );
    }
}

/// The colours that a reader prefers, by their numbers in the browser.
#[derive(Clone, Copy, Debug)]
enum Scheme {
    Dark,
    Light,
}

/// Opens the page at two widths in frames of their own, and tells what sticks out, which words are broken, and which
/// text has less contrast than WCAG 2 asks for.
const PROBE: &str = "<!doctype html><meta charset='utf-8'><body><script>
const page = atob('PAGE');
const bytes = Uint8Array.from(page, c => c.charCodeAt(0));
const text = new TextDecoder().decode(bytes);
const found = [];
onerror = message => document.body.textContent = message;
const style = element => element.ownerDocument.defaultView.getComputedStyle(element);
const inkOf = element => element.closest('svg') ? style(element).fill : style(element).color;
function background(element) {
  const box = element.getBoundingClientRect();
  const shapes = element.closest('svg')?.querySelectorAll('rect') ?? [];
  const isBelow = shape => {
    const area = shape.getBoundingClientRect();
    return area.left <= box.left && box.right <= area.right && area.top <= box.top && box.bottom <= area.bottom;
  };
  const fills = [...shapes].filter(isBelow).map(shape => style(shape).fill).filter(fill => fill !== 'none');
  if (fills.length) return fills.at(-1);
  for (let at = element; at; at = at.parentElement) {
    const color = style(at).backgroundColor;
    if (color !== 'rgba(0, 0, 0, 0)') return color;
  }
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'rgb(0, 0, 0)' : 'rgb(255, 255, 255)';
}
// As WCAG 2 defines it.
function luminance(color) {
  const [red, green, blue] = color.match(/[0-9.]+/g).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
let left = 2;
for (const width of [1280, 390]) {
  const frame = document.createElement('iframe');
  frame.style.cssText = `width:${width}px;height:3000px;border:0`;
  frame.sandbox = 'allow-same-origin';
  frame.onload = () => {
    const inside = frame.contentDocument, root = inside.documentElement;
    if (root.scrollWidth > width) found.push(`${width}: the page is ${root.scrollWidth} wide`);
    let elements = 0;
    for (const element of inside.querySelectorAll('body *')) {
      elements += 1;
      const box = element.getBoundingClientRect();
      if (box.width > 0 && !element.parentElement.closest('table, pre') && (box.right > width + 0.5 || box.left < -0.5))
        found.push(`${width}: <${element.tagName} class=${element.getAttribute('class')}> from ${box.left} to ${box.right}`);
    }
    const texts = inside.createTreeWalker(inside.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      if (text.parentElement.closest('title, style')) continue;
      const paper = background(text.parentElement), ink = inkOf(text.parentElement);
      const [dark, light] = [luminance(ink), luminance(paper)].sort((a, b) => a - b);
      if (text.data.trim() && (light + 0.05) / (dark + 0.05) < 4.5)
        found.push(`${width}: ${ink} on ${paper}: ${text.data.trim()}`);
      if (text.parentElement.closest('pre, code, svg, details')) continue;
      for (const token of text.data.matchAll(/\\S+/g)) {
        if (/[/.=]/.test(token[0])) continue;
        for (const word of token[0].matchAll(/\\w+/g)) {
          const range = inside.createRange(), start = token.index + word.index;
          range.setStart(text, start);
          range.setEnd(text, start + word[0].length);
          if (new Set([...range.getClientRects()].map(box => box.top)).size > 1)
            found.push(`${width}: the word ${word[0]} is broken`);
        }
      }
    }
    found.push(`${width}: ${elements > 30} elements`);
    left -= 1;
    if (left === 0) document.title = 'done', document.body.textContent = JSON.stringify(found.sort());
  };
  frame.srcdoc = text;
  document.body.append(frame);
}
</script>";

/// What the browser finds on a page.
fn in_browser(browser: &str, page: &str, scheme: Scheme) -> String {
    let folder = tempfile::tempdir().unwrap();
    let probe = folder.path().join("probe.html");
    std::fs::write(&probe, PROBE.replace("PAGE", &base64(page.as_bytes()))).unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!(
            "--blink-settings=preferredColorScheme={}",
            scheme as u8
        ))
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("file://{}", probe.display()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_once("<body>")
        .and_then(|(_, rest)| rest.split_once("</body>"))
        .map(|(found, _)| found.trim().to_owned())
        .unwrap_or_else(|| panic!("{text:.300}"))
}

/// Base64, as `atob` reads it.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let number = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
        for place in 0..4 {
            if place <= chunk.len() {
                let index = (number >> (18 - 6 * place)) & 63;
                text.push(char::from(LETTERS[index as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}
