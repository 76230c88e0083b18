//! Specs, plans and creation scripts.

pub use vmdisk_plan::{
    AuthenticationSpec, BackendSpec, BackingSpec, BusSpec, CannotEdit, Choice, ChoiceSource,
    Condition, Decided, DeviceAccess, DeviceSpec, Difference, DirectorySpec, DiskSpec, EmptySpec,
    EncryptionSpec, Equality, ErrorList, GuestChannel, GuestConsole, GuestDevices, GuestDrivers,
    GuestNetwork, GuestOs, GuestSpec, GuestType, HugePagesSpec, IoThreadCount, IoThreadOptions,
    IoThreadSpec, IotuneSpec, LvmSpec, LvmThinSpec, MAX_SPEC_BYTES, MediaSpec, Named,
    NetworkHostSpec, NetworkIdentitySpec, NetworkSpec, NotCarried, NvmeSpec, Plan, PlanError,
    PlanErrors, PlannedSpec, Qcow2Spec, RULES, RawSpec, SecretSpec, SeedSpec, SpaceShortage, Spec,
    SpecDocument, SpecError, SpecErrors, SpecMistake, SpecPath, SpecPlace, SpecSegment,
    SpecSpeller, SpecVersion, Step, StepKind, VhostUserBlkSpec, VhostVdpaSpec, VolumeSpec,
    ZvolSpec, decide, facts_after, is_spec, not_installed, plan, plan_into, renamed, script,
    set_options, shell_word, shortages,
};
