//! The C interface of vmdisk, internal to its library: `include/vmdisk.h` documents it.
//!
//! Texts and JSON go in and out, so that the interface does not grow with vmdisk.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]
#![allow(unsafe_code, reason = "C has no other pointers")]

use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use vmdisk::Host;
use vmdisk::calls::{CallError, CallOptions, convert, counts, decide, fix, lint, trace};

/// A host by its facts.
#[derive(Debug)]
pub struct VmdiskHost(Host);

/// A function of [`vmdisk::calls`].
type Call = fn(&str, Option<&Host>, &CallOptions) -> Result<String, CallError>;

/// A text of the caller.
fn text<'a>(what: &str, text: *const c_char) -> Result<&'a str, CallError> {
    if text.is_null() {
        return Err(CallError::new(format!(
            "{what}: expected a text, found NULL"
        )));
    }
    // SAFETY: the header demands a text that ends with a zero byte and lives as long as the call.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|error| CallError::new(format!("{what}: not valid UTF-8: {error}")))
}

/// A text for the caller. JSON has no zero bytes.
fn returned(text: String) -> *mut c_char {
    CString::new(text).unwrap_or_default().into_raw()
}

/// The result of a function that must not unwind into C.
fn caught<T>(function: impl FnOnce() -> Result<T, CallError>) -> Result<T, CallError> {
    let bug = |_| {
        Err(CallError::new(
            "could not be done because of a bug in vmdisk",
        ))
    };
    catch_unwind(AssertUnwindSafe(function)).unwrap_or_else(bug)
}

fn call(
    input: *const c_char,
    host: *const VmdiskHost,
    options: *const c_char,
    function: Call,
) -> *mut c_char {
    let json = caught(|| {
        let options = match options.is_null() {
            true => CallOptions::default(),
            false => CallOptions::parse(text("options", options)?)?,
        };
        // SAFETY: the header demands NULL or a host that is not freed.
        let host = unsafe { host.as_ref() };
        function(text("text", input)?, host.map(|host| &host.0), &options)
    });
    returned(json.unwrap_or_else(|error| error.to_json()))
}

/// Defines a function of the header that makes a call.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $call:expr;)+) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the header says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            text: *const c_char,
            host: *const VmdiskHost,
            options: *const c_char,
        ) -> *mut c_char {
            call(text, host, options, $call)
        }
    )+};
}

calls! {
    /// The report about a configuration.
    vmdisk_lint = lint;
    #[cfg(feature = "guests")]
    /// The report about all guests of a host, of the JSON of a list of names and texts.
    vmdisk_lint_all = vmdisk::calls::lint_all;
    /// A configuration after fixes, and the report of what remains.
    vmdisk_fix = fix;
    /// The options that disks leave open.
    vmdisk_decide = decide;
    /// The I/O paths of disks.
    vmdisk_trace = trace;
    #[cfg(feature = "guests")]
    /// A guest from a spec.
    vmdisk_plan = vmdisk::calls::plan;
    /// A configuration in the other syntax.
    vmdisk_convert = |text, _, options| convert(text, options);
}

/// The numbers of a report.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmdiskCounts {
    /// Findings of severity `error`.
    pub errors: u32,
    /// Findings of severity `warning`.
    pub warnings: u32,
    /// Findings of severity `advice`.
    pub advice: u32,
    /// Findings of severity `pedantic`.
    pub pedantic: u32,
    /// Rules that could not look at something.
    pub rules_not_checked: u32,
    /// Inputs that could not be read.
    pub failed_inputs: u32,
}

/// The numbers of a report; false if the text is not a report.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmdisk_counts(report: *const c_char, found: *mut VmdiskCounts) -> bool {
    let numbers = caught(|| Ok(counts(text("report", report)?)))
        .ok()
        .flatten();
    // SAFETY: the header demands NULL or a pointer that can be written.
    let (Some(numbers), Some(found)) = (numbers, unsafe { found.as_mut() }) else {
        return false;
    };
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    *found = VmdiskCounts {
        errors: number(numbers.errors),
        warnings: number(numbers.warnings),
        advice: number(numbers.advice),
        pedantic: number(numbers.pedantic),
        rules_not_checked: number(numbers.rules_not_checked),
        failed_inputs: number(numbers.failed_inputs),
    };
    true
}

/// The version of the interface: another one is another `libvmdisk.so.N`.
#[unsafe(no_mangle)]
pub extern "C" fn vmdisk_abi_version() -> u32 {
    1
}

/// The version of vmdisk, which the caller does not free.
#[unsafe(no_mangle)]
pub extern "C" fn vmdisk_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// A host by its facts; NULL and an error if they cannot be read.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmdisk_host_parse(
    facts: *const c_char,
    error: *mut *mut c_char,
) -> *mut VmdiskHost {
    let host = caught(|| Host::parse(text("facts", facts)?).map_err(CallError::new));
    let failed = host.as_ref().err().map(CallError::to_json);
    // SAFETY: the header demands NULL or a pointer that can be written.
    if let Some(error) = unsafe { error.as_mut() } {
        *error = failed.map_or(std::ptr::null_mut(), returned);
    }
    host.map_or(std::ptr::null_mut(), |host| {
        Box::into_raw(Box::new(VmdiskHost(host)))
    })
}

/// Frees a host.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmdisk_host_free(host: *mut VmdiskHost) {
    if !host.is_null() {
        // SAFETY: the header demands a host of `vmdisk_host_parse` that is not freed yet.
        drop(unsafe { Box::from_raw(host) });
    }
}

/// Frees a text.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmdisk_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the header demands a text that vmdisk returned and that is not freed yet.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// Room for a text of this many bytes and the zero byte after it, which [`vmdisk_free`] frees: WebAssembly's caller has no
/// allocator of its own.
#[cfg(target_family = "wasm")]
#[unsafe(no_mangle)]
pub extern "C" fn vmdisk_alloc(bytes: usize) -> *mut c_char {
    returned(" ".repeat(bytes))
}
