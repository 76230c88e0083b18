//! Benches of our own code.
