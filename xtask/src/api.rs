//! The public API of the promised crates as texts under `docs/api/`, from the pages of rustdoc: declarations, methods and
//! traits. Of what is re-exported from internal crates, the names are there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::{release, repository};

const CRATES: [&str; 2] = ["vmdisk", "vmdisk-collect"];

/// Traits that types have without a word of ours, and that no program names.
const BY_COMPILER: [&str; 6] = [
    "Freeze",
    "RefUnwindSafe",
    "StructuralPartialEq",
    "Unpin",
    "UnsafeUnpin",
    "UnwindSafe",
];

/// Writes the texts, or fails if one is out of date.
pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    let mut doc = Command::new("cargo");
    doc.args(["doc", "--no-deps", "--quiet", "--locked", "--all-features"]);
    doc.args(CRATES.iter().flat_map(|name| ["--package", name]));
    if !doc.current_dir(repository()).status()?.success() {
        bail!("the documentation could not be built");
    }
    for name in CRATES {
        let text = public_items(
            &release::target_folder()
                .join("doc")
                .join(name.replace('-', "_")),
        )?;
        let file = repository().join(format!("docs/api/{name}.txt"));
        if fs::read_to_string(&file).ok().as_ref() == Some(&text) {
            continue;
        }
        if check {
            bail!(
                "the public API of {name} differs: run `cargo xtask api`, and describe the change in CHANGELOG.md"
            );
        }
        fs::create_dir_all(repository().join("docs/api"))?;
        fs::write(&file, text)?;
        println!("{} is new", file.display());
    }
    Ok(())
}

/// Every item of a crate, sorted by its page.
fn public_items(folder: &Path) -> anyhow::Result<String> {
    let mut out = String::new();
    for page in pages(folder)? {
        let html = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
        // What every type has, and what the compiler derives of its fields, is not written by us.
        let own = html
            .split("<h2 id=\"blanket-implementations\"")
            .next()
            .unwrap_or_default();
        let mut lines = BTreeSet::new();
        for (begin, end) in [
            ("<h3 class=\"code-header\">", "</h3>"),
            ("<h4 class=\"code-header\">", "</h4>"),
            ("id=\"reexport.", "</dt>"),
        ] {
            for part in own.split(begin).skip(1) {
                let part = part.split(end).next().unwrap_or_default();
                let part = part.split_once("\"><code>").map_or(part, |(_, code)| code);
                lines.insert(words(part));
            }
        }
        let declared = own.split_once("<pre class=\"rust item-decl\"><code>");
        let declared =
            declared.map(|(_, rest)| words(rest.split("</code></pre>").next().unwrap_or_default()));
        let path = page.strip_prefix(folder)?.with_extension("");
        if declared.is_some() || !lines.is_empty() {
            out.push_str(&format!("{}\n", path.display()));
            let traits = lines.iter().filter_map(|line| line.strip_prefix("impl"));
            let traits = traits.filter_map(|line| Some(line.rsplit_once(" for ")?.0.trim()));
            let traits: Vec<&str> = traits.filter(|name| !BY_COMPILER.contains(name)).collect();
            let traits = (!traits.is_empty()).then(|| format!("impl {}", traits.join(", ")));
            // Methods of traits are those of the trait.
            let own = lines.iter().filter(|line| line.starts_with("pub")).cloned();
            for line in declared.into_iter().chain(traits).chain(own) {
                out.push_str(&format!("  {line}\n"));
            }
        }
    }
    Ok(out)
}

/// The pages of items and modules, sorted.
fn pages(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    // A page of an item that is gone stays: the list of all items names those that are there.
    let all = fs::read_to_string(folder.join("all.html"))?;
    let linked = all
        .split("<a href=\"")
        .skip(1)
        .filter_map(|it| it.split('"').next());
    let linked =
        linked.filter(|it| it.ends_with(".html") && !it.contains("..") && !it.contains(':'));
    let mut pages: BTreeSet<PathBuf> = linked.map(|it| folder.join(it)).collect();
    let modules: Vec<PathBuf> = pages
        .iter()
        .filter_map(|page| Some(page.parent()?.join("index.html")))
        .collect();
    pages.extend(modules);
    pages.extend(modules_of(folder, "index.html")?);
    Ok(pages.into_iter().filter(|page| page.is_file()).collect())
}

/// The pages of modules that a page links, and of the modules in them: some have nothing but names of other crates.
fn modules_of(folder: &Path, page: &str) -> anyhow::Result<Vec<PathBuf>> {
    let html = fs::read_to_string(folder.join(page))?;
    let mut found = vec![folder.join(page)];
    for link in html.split("<a class=\"mod\" href=\"").skip(1) {
        let link = link.split('"').next().unwrap_or_default();
        let inner = folder.join(link.trim_end_matches("index.html"));
        found.extend(modules_of(&inner, "index.html")?);
    }
    Ok(found)
}

/// The words of a piece of HTML, in one line.
fn words(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<') {
        if part.starts_with("div") {
            text.push(' ');
        }
        text.push_str(part.split_once('>').map_or(part, |(_, rest)| rest));
    }
    for (entity, letter) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ] {
        text = text.replace(entity, letter);
    }
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}
