//! Forms of command lines: files, shells, JSON, key=value.

mod arithmetic;
mod batch;
mod expansion;
pub(crate) mod form;
pub(crate) mod hole;
pub(crate) mod json_text;
mod language;
mod makefile;
pub(crate) mod option;
pub(crate) mod pairs;
pub(crate) mod program;
pub(crate) mod properties;
mod script;
mod script_text;
mod shell_commands;
mod shell_functions;
mod shell_input;
mod shell_loops;
mod shell_output;
mod shell_state;
mod shell_tests;
pub(crate) mod shell_words;
pub(crate) mod start;
mod starts;
pub(crate) mod text;
mod unit;
pub(crate) mod value;
