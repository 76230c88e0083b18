//! All tests of the crate, in one program.

mod chain_by_hand;
mod corpus_libvirt;
mod formats_by_hand;
mod fuzz_replay;
mod properties;
mod qcow2_by_hand;
mod qcow2_extensions_by_hand;
mod raw_by_hand;
mod real_chains;
mod real_formats;
mod real_mutations;
mod real_qcow2;
mod real_refusals;
mod real_refusals_qcow2;
mod support;
