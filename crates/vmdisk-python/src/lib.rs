//! The compiled part of the Python package `vmdisk`, internal to it: `python/vmdisk/__init__.py` has its functions.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use vmdisk::calls::{self, CallError, CallOptions};
use vmdisk::facts::FactsNeeded;
use vmdisk_collect::Request;

/// The facts of a host.
#[pyclass(frozen, module = "vmdisk")]
#[derive(Debug)]
struct Host(vmdisk::Host);

fn refused(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Host {
    /// A host by its facts in JSON or YAML.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        py.detach(|| vmdisk::Host::parse(text))
            .map(Host)
            .map_err(refused)
    }

    /// The facts of this host that guests need.
    #[staticmethod]
    #[pyo3(signature = (*texts))]
    fn collect(py: Python<'_>, texts: Vec<String>) -> PyResult<Self> {
        let time = py.import("time")?;
        let now = time.call_method0("gmtime")?;
        let now = time.call_method1("strftime", ("%Y-%m-%dT%H:%M:%SZ", now))?;
        let now: String = now.extract()?;
        py.detach(|| {
            let mut needed = FactsNeeded::default();
            for text in texts {
                needed.extend(vmdisk::read(&text).map_err(refused)?.facts_needed());
            }
            let facts = vmdisk_collect::collect(&Request::of(&needed, now));
            Ok(Host(vmdisk::Host::new(facts)))
        })
    }

    /// The facts as JSON.
    fn to_json(&self) -> String {
        self.0.facts().to_json()
    }
}

/// The result of a function of `vmdisk::calls`, or the error, as JSON.
#[pyfunction]
fn call(
    py: Python<'_>,
    name: &str,
    text: &str,
    host: Option<&Bound<'_, Host>>,
    options: &str,
) -> PyResult<String> {
    let function = match name {
        "lint" => calls::lint,
        "fix" => calls::fix,
        "decide" => calls::decide,
        "trace" => calls::trace,
        "plan" => calls::plan,
        "convert" => |text: &str, _: Option<&_>, options: &_| calls::convert(text, options),
        other => return Err(refused(format!("no function {other}"))),
    };
    let host = host.map(|host| &host.get().0);
    let result = py.detach(|| function(text, host, &CallOptions::parse(options)?));
    Ok(result.unwrap_or_else(|error: CallError| error.to_json()))
}

/// A command line as the text in which places count.
#[pyfunction]
fn command_line(arguments: Vec<String>) -> String {
    calls::command_line(&arguments)
}

#[pymodule]
fn _vmdisk(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Host>()?;
    module.add_function(wrap_pyfunction!(call, module)?)?;
    module.add_function(wrap_pyfunction!(command_line, module)?)
}
