//! From intent and facts to a disk: specs, choices with reasons, creation steps.

mod plan;
mod spec;
mod steps;

pub use plan::{Choice, ChoiceSource, Plan, PlanError, RULES, plan};
pub use spec::{
    BackendSpec, BackingSpec, BusSpec, DeviceAccess, DeviceSpec, DiskSpec, GuestSpec, GuestType,
    HugePagesSpec, IoThreadCount, IoThreadSpec, IotuneSpec, LvmSpec, LvmThinSpec, MAX_SPEC_BYTES,
    MediaSpec, Qcow2Spec, RawSpec, Spec, SpecError, SpecPath, SpecPlace, SpecSegment, SpecVersion,
    VhostUserBlkSpec,
};
pub use steps::{Condition, Step, script};
