//! Asks the running host for facts.
