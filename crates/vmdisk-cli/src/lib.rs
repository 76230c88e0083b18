//! The vmdisk command: lint, generate, facts, explain.
