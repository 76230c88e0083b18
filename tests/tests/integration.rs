//! Tests across crates, in one binary.

#[path = "integration/architecture.rs"]
mod architecture;
