//! The names under which vmdisk starts itself for a step.

/// Makes the namespaces and mounts.
pub(crate) const SANDBOX: &str = "vmdisk-capture-sandbox";

/// Traces in the sandbox.
pub(crate) const TRACER: &str = "vmdisk-capture-tracer";

/// Traces without one.
pub(crate) const UNBOXED: &str = "vmdisk-capture-unboxed";

/// Becomes the command.
pub(crate) const COMMAND: &str = "vmdisk-capture-command";

/// This very program, however it is mounted.
pub(crate) const MYSELF: &str = "/proc/self/exe";
