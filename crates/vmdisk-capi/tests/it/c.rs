//! The C interface from C, and with arguments that no program should pass.
use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::ptr::{null, null_mut};

use vmdisk::calls::{self, CallOptions};
use vmdisk_capi::{
    VmdiskCounts, VmdiskHost, vmdisk_abi_version, vmdisk_convert, vmdisk_counts, vmdisk_decide,
    vmdisk_fix, vmdisk_free, vmdisk_host_free, vmdisk_host_parse, vmdisk_lint, vmdisk_lint_all,
    vmdisk_plan, vmdisk_trace, vmdisk_version,
};
use vmdisk_testing::{cases, cases_file, check_reports, installed, needed};

use crate::{output, report, target};

const UNSAFE: &str = "<disk type='file'><driver name='qemu' type='raw' cache='unsafe' io='io_uring'/><source file='/a'/><target dev='vda'/></disk>";
const FACTS: &str = "{\"schema_version\": \"1.0\", \"limits\": {\"io_uring_disabled\": 2}}";

type Function =
    unsafe extern "C" fn(*const c_char, *const VmdiskHost, *const c_char) -> *mut c_char;

const FUNCTIONS: [Function; 7] = [
    vmdisk_lint,
    vmdisk_lint_all,
    vmdisk_fix,
    vmdisk_decide,
    vmdisk_trace,
    vmdisk_plan,
    vmdisk_convert,
];

fn taken(text: *mut c_char) -> String {
    assert!(!text.is_null());
    let copy = unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
    unsafe { vmdisk_free(text) };
    copy
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn null_and_bytes_that_are_not_text_are_refused() {
    let (good, bad) = (CString::new(UNSAFE).unwrap(), c"\xff<disk/>");
    let options = c"{\"unknown\": 1}";
    for function in FUNCTIONS {
        for (text, options, expected) in [
            (null(), null(), "found NULL"),
            (bad.as_ptr(), null(), "not valid UTF-8"),
            (good.as_ptr(), bad.as_ptr(), "options: not valid UTF-8"),
            (good.as_ptr(), options.as_ptr(), "unknown field `unknown`"),
        ] {
            let error = taken(unsafe { function(text, null(), options) });
            assert!(
                error.starts_with("{\"error\":{") && error.contains(expected),
                "{error}"
            );
        }
    }
    for (facts, expected) in [
        (null(), "found NULL"),
        (bad.as_ptr(), "UTF-8"),
        (c"[".as_ptr(), "JSON"),
    ] {
        let mut error = null_mut();
        assert!(unsafe { vmdisk_host_parse(facts, &raw mut error) }.is_null());
        let error = taken(error);
        assert!(error.contains(expected), "{error}");
        assert!(unsafe { vmdisk_host_parse(facts, null_mut()) }.is_null());
    }
    unsafe { vmdisk_host_free(null_mut()) };
    unsafe { vmdisk_free(null_mut()) };
}

#[test]
fn too_many_disks_deep_nesting_and_odd_texts_are_results() {
    let many = format!(
        "<domain><devices>{}</devices></domain>",
        "<disk/>".repeat(20_001)
    );
    let nested = "<disk>".repeat(100_000);
    let brackets = "[".repeat(100_000);
    for (text, expected) in [
        (many.as_str(), "more than 20000 disks"),
        (&nested, "{\"error\":{"),
        (&brackets, "{\"error\":{"),
        ("", "{\"error\":{"),
        ("<domain/>", "\"findings\""),
        ("<disk><target dev='\u{ffff}'/></disk>", "{"),
    ] {
        let text = CString::new(text).unwrap();
        for function in FUNCTIONS {
            let result = taken(unsafe { function(text.as_ptr(), null(), null()) });
            assert!(!result.contains("bug in vmdisk"), "{result:.300}");
        }
        let report = taken(unsafe { vmdisk_lint(text.as_ptr(), null(), null()) });
        assert!(report.contains(expected), "{expected}: {report:.300}");
    }
}

#[test]
fn results_are_those_of_the_library() {
    let facts = CString::new(FACTS).unwrap();
    let mut error = null_mut();
    let host = unsafe { vmdisk_host_parse(facts.as_ptr(), &raw mut error) };
    assert!(!host.is_null() && error.is_null());
    let text = CString::new(UNSAFE).unwrap();
    let known = vmdisk::Host::parse(FACTS).unwrap();
    let options = CallOptions::default();
    let report = taken(unsafe { vmdisk_lint(text.as_ptr(), host, null()) });
    assert_eq!(report, calls::lint(UNSAFE, Some(&known), &options).unwrap());
    assert!(report.contains("io-uring-disabled"), "{report}");
    let fixed = taken(unsafe { vmdisk_fix(text.as_ptr(), host, null()) });
    assert_eq!(fixed, calls::fix(UNSAFE, Some(&known), &options).unwrap());
    unsafe { vmdisk_host_free(host) };
    assert_eq!(vmdisk_abi_version(), 1);
    let version = unsafe { CStr::from_ptr(vmdisk_version()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_report_is_counted_without_reading_json() {
    let text = CString::new(UNSAFE).unwrap();
    let report = unsafe { vmdisk_lint(text.as_ptr(), null(), null()) };
    let fixed = unsafe { vmdisk_fix(text.as_ptr(), null(), null()) };
    let error = unsafe { vmdisk_lint(c"<disk".as_ptr(), null(), null()) };
    let mut found = VmdiskCounts::default();
    assert!(unsafe { vmdisk_counts(report, &raw mut found) });
    let errors = found.errors;
    assert!(errors > 0 && found.rules_not_checked > 0, "{found:?}");
    assert!(unsafe { vmdisk_counts(fixed, &raw mut found) });
    assert!(found.errors < errors, "{found:?}");
    let before = found;
    for other in [error, null_mut(), c"[]".as_ptr().cast_mut()] {
        assert!(!unsafe { vmdisk_counts(other, &raw mut found) });
    }
    assert!(!unsafe { vmdisk_counts(report, null_mut()) });
    assert_eq!(found, before);
    for text in [report, fixed, error] {
        unsafe { vmdisk_free(text) };
    }
}

#[test]
fn the_header_declares_what_the_library_exports() {
    let read = |path: &str| std::fs::read_to_string(folder().join(path)).unwrap();
    let (header, source) = (read("include/vmdisk.h"), read("src/lib.rs"));
    let is_name = |it: char| it.is_ascii_lowercase() || it == '_';
    let called = |text: &str, end: char| -> Vec<String> {
        let before = text
            .split(end)
            .map(|it| it.trim_end().rsplit(|it| !is_name(it)).next());
        let names = before.flatten().filter(|name| name.starts_with("vmdisk_"));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        names.dedup();
        names
    };
    let mut exported = called(&source, '(');
    exported.extend(called(&source, '='));
    exported.sort();
    assert_eq!(called(&header, '('), exported);
    assert_eq!(exported.len(), 14, "{exported:?}");
}

/// The shared library, which cargo builds with this test, under the names that an installation has.
fn install(folder: &Path) {
    let built = target().join("debug/deps/libvmdisk_capi.so");
    std::fs::copy(&built, folder.join("libvmdisk.so.1")).unwrap();
    std::os::unix::fs::symlink("libvmdisk.so.1", folder.join("libvmdisk.so")).unwrap();
}

/// Compiles a program in a directory, beside the library.
fn compile(source: &Path, place: &Path, name: &str) {
    install(place);
    let mut compile = Command::new("cc");
    compile.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
    compile.arg(source).arg("-o").arg(place.join(name));
    compile.arg("-I").arg(folder().join("include"));
    output(compile.arg("-L").arg(place).arg("-lvmdisk"));
}

#[test]
fn c_gets_the_report_of_each_fixture() {
    if needed(installed("cc")).is_none() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    compile(&folder().join("tests/it/each.c"), place.path(), "each");
    let cases = cases();
    std::fs::write(place.path().join("cases"), cases_file(&cases)).unwrap();
    let mut each = Command::new(place.path().join("each"));
    each.arg(place.path().join("cases"));
    let printed = output(each.env("LD_LIBRARY_PATH", place.path()));
    check_reports(&cases, &printed, report);
}

#[test]
fn the_example_is_compiled_and_run() {
    if needed(installed("cc")).is_none() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { place.path().join(name) };
    let source = folder().join("examples/lint.c");
    assert!(std::fs::read_to_string(&source).unwrap().lines().count() < 60);
    compile(&source, place.path(), "lint");
    std::fs::write(path("a.xml"), UNSAFE).unwrap();
    std::fs::write(path("broken.xml"), "<disk").unwrap();
    std::fs::write(path("facts.json"), FACTS).unwrap();
    let run = |wrapper: &[&str], arguments: &[&str]| -> Output {
        let program = path("lint").display().to_string();
        let words: Vec<&str> = wrapper.iter().copied().chain([program.as_str()]).collect();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .args(arguments)
            .current_dir(place.path());
        command
            .env("LD_LIBRARY_PATH", place.path())
            .output()
            .unwrap()
    };
    let valgrind = [
        "valgrind",
        "-q",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite,indirect",
        "--error-exitcode=9",
    ];
    let wrappers: &[&[&str]] = match needed(installed("valgrind")) {
        Some(()) => &[&[], &valgrind],
        None => &[&[]],
    };
    for wrapper in wrappers {
        let good = run(wrapper, &["a.xml", "facts.json"]);
        let printed = String::from_utf8_lossy(&good.stdout);
        assert_eq!(good.status.code(), Some(0), "{good:?}");
        let known = vmdisk::Host::parse(FACTS).unwrap();
        let expected = calls::lint(UNSAFE, Some(&known), &CallOptions::default()).unwrap();
        assert_eq!(printed, expected);
        let bad = run(wrapper, &["broken.xml"]);
        assert_eq!(bad.status.code(), Some(1), "{bad:?}");
        assert!(bad.stderr.starts_with(b"{\"error\":"), "{bad:?}");
    }
}
