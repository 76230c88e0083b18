//! The compiled part of the Python package `vmdisk`, internal to it: `python/vmdisk/__init__.py` has its functions.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

use pyo3::prelude::*;
use pyo3::types::PyDict;
use vmdisk::calls::{self, CallError, CallOptions};
use vmdisk::facts::FactsNeeded;
use vmdisk_collect::Request;

/// The facts of a host.
#[pyclass(frozen, module = "vmdisk")]
#[derive(Debug)]
struct Host(vmdisk::Host);

/// An exception of the package, with the place in the text.
fn refused(py: Python<'_>, error: &CallError) -> PyErr {
    let exception = || {
        let failed = py.import("json")?;
        let failed = failed.call_method1("loads", (error.to_json(),))?;
        let members = failed.get_item("error")?.cast_into::<PyDict>()?;
        py.import("vmdisk")?
            .getattr("Error")?
            .call((), Some(&members))
    };
    exception().map_or_else(|failed| failed, PyErr::from_value)
}

#[pymethods]
impl Host {
    /// A host by its facts in JSON or YAML.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        py.detach(|| vmdisk::Host::parse(text))
            .map(Host)
            .map_err(|error| refused(py, &CallError::new(error)))
    }

    /// The facts of this host that guests need.
    #[staticmethod]
    #[pyo3(signature = (*texts))]
    fn collect(py: Python<'_>, texts: Vec<String>) -> PyResult<Self> {
        let time = py.import("time")?;
        let now = time.call_method0("gmtime")?;
        let now = time.call_method1("strftime", ("%Y-%m-%dT%H:%M:%SZ", now))?;
        let now: String = now.extract()?;
        let collected = py.detach(|| {
            let mut needed = FactsNeeded::default();
            for text in texts {
                let document = vmdisk::read(&text);
                let document = document.map_err(|it| CallError::unreadable(&text, it))?;
                needed.extend(document.facts_needed());
            }
            let facts = vmdisk_collect::collect(&Request::of(&needed, now));
            Ok(Host(vmdisk::Host::new(facts)))
        });
        collected.map_err(|error| refused(py, &error))
    }

    /// How `pickle` makes it again: from its facts.
    fn __reduce__<'p>(&self, py: Python<'p>) -> PyResult<(Bound<'p, PyAny>, (String,))> {
        let parse = py.get_type::<Host>().getattr("parse")?;
        Ok((parse, (self.to_json(),)))
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
        "lint_all" => calls::lint_all,
        "fix" => calls::fix,
        "decide" => calls::decide,
        "trace" => calls::trace,
        "plan" => calls::plan,
        "convert" => |text: &str, _: Option<&_>, options: &_| calls::convert(text, options),
        other => return Err(refused(py, &CallError::new(format!("no function {other}")))),
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
