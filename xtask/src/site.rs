//! The documentation as a site: the README and all pages below `docs/` as a book of mdBook, whose links lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::dist::{install_all, output};
use crate::{release, repository};

/// Pages beside `docs/`.
const PAGES: [&str; 6] = [
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    "STYLE.md",
];

const BOOK: &str = "[book]\ntitle = \"vmdisk\"\nlanguage = \"en\"\n\n[output.html]\ndefault-theme = \"light\"\npreferred-dark-theme = \"ayu\"\nno-section-label = true\n\n[output.html.search]\nboost-title = 4\n\n[output.html.fold]\nenable = true\n";

/// Writes `target/site/book`, and fails if a link of it leads nowhere.
pub(crate) fn run() -> anyhow::Result<()> {
    let folder = release::target_folder().join("site");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let source = folder.join("src");
    let files = files()?;
    for file in &files {
        let to = source.join(file);
        fs::create_dir_all(to.parent().context("every file is in a folder")?)?;
        let from = repository().join(file);
        match is_page(file) {
            true => fs::write(to, with_links(&fs::read_to_string(from)?, file, &files))?,
            false => drop(fs::copy(from, to)?),
        }
    }
    fs::write(source.join("SUMMARY.md"), summary(&source, &files)?)?;
    fs::write(folder.join("book.toml"), BOOK)?;
    let program = std::env::var_os("MDBOOK").unwrap_or_else(|| "mdbook".into());
    output(Command::new(program).arg("build").arg(&folder))
        .context("`cargo install mdbook` installs the program, and MDBOOK names another one")?;
    let book = folder.join("book");
    let playground = release::target_folder().join("playground");
    if playground.exists() {
        install_all(&playground, &book.join("playground"))?;
    }
    let dead = dead_links(&book)?;
    if !dead.is_empty() {
        bail!("links that lead nowhere:\n{}", dead.join("\n"));
    }
    println!("{}", book.join("index.html").display());
    Ok(())
}

fn is_page(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "md")
}

/// The files of the site, by their paths in the repository.
fn files() -> anyhow::Result<BTreeSet<PathBuf>> {
    let listed = output(
        Command::new("git")
            .args(["ls-files", "docs"])
            .current_dir(repository()),
    )?;
    let shown = |path: &&str| [".md", ".svg"].iter().any(|end| path.ends_with(end));
    let docs = listed.lines().filter(shown).map(PathBuf::from);
    Ok(docs.chain(PAGES.map(PathBuf::from)).collect())
}

/// The page with links to files that the site does not have as links to the repository.
fn with_links(text: &str, page: &Path, files: &BTreeSet<PathBuf>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_code = false;
    for line in text.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        let mut rest = line;
        while let Some(at) = rest.find("](").filter(|_| !is_code) {
            let (before, link) = rest.split_at(at + 2);
            let end = link.find(')').unwrap_or(link.len());
            out.push_str(before);
            let target = &link[..end];
            let file = target.split('#').next().unwrap_or_default();
            let resolved = resolved(page, file);
            let is_elsewhere =
                !file.is_empty() && !file.contains("://") && !files.contains(&resolved);
            if is_elsewhere {
                let _ = write!(
                    out,
                    "{}/blob/main/{}",
                    env!("CARGO_PKG_REPOSITORY"),
                    resolved.display()
                );
                out.push_str(&target[file.len()..]);
            } else {
                // mdBook makes the index of its directory of this page.
                out.push_str(&target.replace("README.md", "index.md"));
            }
            rest = &link[end..];
        }
        out.push_str(rest);
    }
    out
}

/// The path of a link of a page, from the root.
fn resolved(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

/// The contents: the README, the guides by title, the rules, and the rest.
fn summary(source: &Path, files: &BTreeSet<PathBuf>) -> anyhow::Result<String> {
    let mut out = "# Contents\n\n[vmdisk](README.md)\n\n# Guides\n\n".to_owned();
    let title = |file: &Path| -> anyhow::Result<String> {
        let text = fs::read_to_string(source.join(file))?;
        let title = text.lines().find_map(|line| line.strip_prefix("# "));
        Ok(title
            .with_context(|| file.display().to_string())?
            .to_owned())
    };
    let below = |folder: &str| {
        let pages = files.iter().filter(|file| is_page(file));
        pages
            .filter(|file| file.parent() == Some(Path::new(folder)))
            .collect::<Vec<_>>()
    };
    let mut guides = BTreeMap::new();
    for file in below("docs") {
        guides.insert(title(file)?, file);
    }
    for (title, file) in guides {
        let _ = writeln!(out, "- [{title}]({})", file.display());
    }
    out.push_str("\n# Rules\n\n- [Rules](docs/rules/README.md)\n");
    for file in below("docs/rules")
        .into_iter()
        .filter(|file| !file.ends_with("README.md"))
    {
        let _ = writeln!(out, "  - [{}]({})", title(file)?, file.display());
    }
    out.push_str("\n# Project\n\n");
    for page in &PAGES[1..] {
        let _ = writeln!(out, "- [{}]({page})", title(Path::new(page))?);
    }
    Ok(out)
}

/// The links of all pages to a file or a heading that does not exist.
fn dead_links(book: &Path) -> anyhow::Result<Vec<String>> {
    let listed = output(Command::new("find").arg(book).args(["-name", "*.html"]))?;
    let mut pages: BTreeMap<PathBuf, String> = BTreeMap::new();
    for file in listed.lines().map(PathBuf::from) {
        let text = fs::read_to_string(&file)?;
        pages.insert(file, text);
    }
    let mut dead = BTreeSet::new();
    // The page of all pages, and that of missing ones, repeat the links of others.
    let is_own = |page: &Path| !page.ends_with("print.html") && !page.ends_with("404.html");
    for (page, text) in pages.iter().filter(|(page, _)| is_own(page)) {
        let links = ["href=\"", "src=\"", "srcset=\""];
        let links = links.iter().flat_map(|name| text.split(name).skip(1));
        for link in links.filter_map(|rest| rest.split('"').next()) {
            if link.contains("://") || link.starts_with("data:") || link.starts_with("javascript:")
            {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => resolved(page, file),
            };
            let has_heading = |text: &String| text.contains(&format!("id=\"{heading}\""));
            let is_alive = match pages.get(&target) {
                Some(text) => heading.is_empty() || has_heading(text),
                None => target.exists(),
            };
            if !is_alive {
                dead.insert(format!("{}: {link}", page.strip_prefix(book)?.display()));
            }
        }
    }
    Ok(dead.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_into_the_site_or_to_the_repository() {
        let files = ["docs/a.md", "docs/rules/README.md", "docs/rules/b.md"]
            .map(PathBuf::from)
            .into();
        let page = Path::new("docs/a.md");
        let text = "[b](rules/b.md#x) [c](../c.rs) [r](rules/README.md) [d](#d) [e](https://e) `x`\n```\n[f](f.rs)\n```\n";
        let home = env!("CARGO_PKG_REPOSITORY");
        let expected = text.replace("../c.rs", &format!("{home}/blob/main/c.rs"));
        let expected = expected.replace("README", "index");
        assert_eq!(with_links(text, page, &files), expected);
    }
}
