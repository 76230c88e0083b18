//! The npm package, in Node and in a browser.

use std::path::Path;
use std::process::Command;

use vmdisk_testing::{cases, cases_file, check_reports, installed, needed};

use crate::{built, copy, output, report, repository};

/// The package as it is installed below a directory; `None` if something is missing.
fn package(place: &Path, program: &str) -> Option<()> {
    needed(installed(program))?;
    let wasm = needed(built("wasm/vmdisk.wasm", "wasm"))?;
    let package = place.join("node_modules/vmdisk");
    let files = [
        "beside-node.js",
        "beside-web.js",
        "package.json",
        "vmdisk.d.ts",
        "vmdisk.js",
    ];
    for name in files {
        copy(&repository("bindings/npm").join(name), &package.join(name));
    }
    copy(&wasm, &package.join("vmdisk.wasm"));
    for name in ["each.mjs", "module.mjs", "types.mts"] {
        copy(
            &Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/it")
                .join(name),
            &place.join(name),
        );
    }
    Some(())
}

#[test]
fn node_gets_the_report_of_each_fixture() {
    let place = tempfile::tempdir().unwrap();
    if package(place.path(), "node").is_none() {
        return;
    }
    let cases = cases();
    std::fs::write(place.path().join("cases"), cases_file(&cases)).unwrap();
    let program = "import { readFileSync, writeSync } from 'node:fs';
import { load } from 'vmdisk';
import { reports } from './each.mjs';
const text = Buffer.from(reports(await load(), readFileSync('cases', 'utf8')));
for (let at = 0; at < text.length; at += writeSync(1, text, at));";
    std::fs::write(place.path().join("all.mjs"), program).unwrap();
    let mut node = Command::new("node");
    let printed = output(node.arg("all.mjs").current_dir(place.path()));
    check_reports(&cases, &printed, report);
}

#[test]
fn the_package_does_what_the_guide_says() {
    let place = tempfile::tempdir().unwrap();
    if package(place.path(), "node").is_none() {
        return;
    }
    let guide = std::fs::read_to_string(repository("docs/wasm.md")).unwrap();
    let example = guide.split("```js\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    std::fs::write(place.path().join("example.mjs"), example).unwrap();
    copy(
        &repository("fixtures/mistakes/09-cache-unsafe.xml"),
        &place.path().join("web1.xml"),
    );
    let node = |file: &str| {
        let mut node = Command::new("node");
        let printed = output(node.arg(file).current_dir(place.path()));
        String::from_utf8(printed).unwrap()
    };
    assert!(node("module.mjs").contains("as documented"));
    let said = node("example.mjs");
    assert!(said.contains("12: error[cache-unsafe]"), "{said}");
}

#[test]
fn bundlers_for_browsers_take_the_package_without_settings() {
    let place = tempfile::tempdir().unwrap();
    let bundler = |name: &str| {
        let path = format!("node/node_modules/.bin/{name}");
        needed(built(&path, "wasm --typescript"))
    };
    let (Some(esbuild), Some(webpack)) = (bundler("esbuild"), bundler("webpack")) else {
        return;
    };
    if package(place.path(), "node").is_none() {
        return;
    }
    let program = "import { load } from 'vmdisk';\nglobalThis.report = load().then((it) => it.lint('<disk/>'));\n";
    std::fs::write(place.path().join("main.js"), program).unwrap();
    let mut esbuild = Command::new(esbuild);
    esbuild.args([
        "--bundle",
        "--format=esm",
        "main.js",
        "--outfile=esbuild.js",
    ]);
    output(esbuild.current_dir(place.path()));
    let mut webpack = Command::new(webpack);
    webpack.args([
        "--mode",
        "production",
        "--entry",
        "./main.js",
        "-o",
        "webpack",
    ]);
    output(webpack.current_dir(place.path()));
    for bundle in ["esbuild.js", "webpack/main.js"] {
        let text = std::fs::read_to_string(place.path().join(bundle)).unwrap();
        assert!(!text.contains("node:fs"), "{bundle}");
    }
}

#[test]
fn typescript_accepts_a_program_and_refuses_unknown_members() {
    let compiler = built("node/node_modules/.bin/tsc", "wasm --typescript");
    let Some(compiler) = needed(compiler) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    if package(place.path(), "node").is_none() {
        return;
    }
    let checked = |file: &str| {
        let mut check = Command::new(&compiler);
        // As editors write it: a program for Node has no types of browsers.
        check.args([
            "--strict", "--noEmit", "--module", "nodenext", "--lib", "es2022", file,
        ]);
        let done = check.current_dir(place.path()).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    assert_eq!(checked("types.mts"), "");
    let text = std::fs::read_to_string(place.path().join("types.mts")).unwrap();
    let wrong = text.replace("found.rule", "found.rules");
    std::fs::write(place.path().join("wrong.mts"), wrong).unwrap();
    assert!(checked("wrong.mts").contains("'rules' does not exist"));
}
