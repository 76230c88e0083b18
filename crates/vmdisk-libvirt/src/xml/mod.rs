//! Parses XML text to a tree with the span of every name, value and text.
//!
//! quick-xml finds the tokens. One loop over them checks well-formedness and limits, and builds the tree.

pub(crate) mod character;
mod decode;
mod fault;
pub(crate) mod name;
mod namespace;
mod parser;
pub(crate) mod tag;
mod tree;

pub use parser::MAX_DEPTH;
pub(crate) use parser::parse;
pub(crate) use tree::{Arenas, Attribute, Comment, Node, Tree};
