//! All tests of the crate, in one program.

mod corpus;
mod edit_properties;
mod edits;
mod mistakes;
mod reading;
mod real_libvirt;
mod roundtrip;
mod strategies;
mod well_formedness;
mod xml_rules;
