//! Specs, plans and creation scripts.

pub use vmdisk_plan::{
    AuthenticationSpec, BackendSpec, BackingSpec, BusSpec, CannotEdit, ChangeKind, ChangePlan,
    Choice, ChoiceSource, Condition, Decided, DefinitionChange, DeviceAccess, DeviceSpec,
    Difference, DirectorySpec, DiskSpec, DownTime, EmptySpec, EncryptionSpec, Equality, ErrorList,
    GuestChannel, GuestConsole, GuestDevices, GuestDrivers, GuestNetwork, GuestOs, GuestSpec,
    GuestType, HugePagesSpec, IoThreadCount, IoThreadOptions, IoThreadSpec, IotuneSpec, KeptImage,
    LiveChange, LiveCopy, LvmSpec, LvmThinSpec, MAX_SPEC_BYTES, MediaSpec, Named, NetworkHostSpec,
    NetworkIdentitySpec, NetworkSpec, NotCarried, NvmeSpec, Plan, PlanError, PlanErrors,
    PlannedChange, PlannedSpec, PresentImage, PresentState, Qcow2Spec, RULES, RawSpec, Resize,
    ScriptDefinition, ScriptWork, SecretSpec, SeedSpec, SpaceShortage, Spec, SpecDocument,
    SpecError, SpecErrors, SpecMistake, SpecPath, SpecPlace, SpecSegment, SpecSpeller, SpecVersion,
    Step, StepKind, StorageChange, StorageCopy, VhostUserBlkSpec, VhostVdpaSpec, VolumeSpec,
    ZvolSpec, change_script, decide, facts_after, is_spec, not_installed, plan, plan_changes,
    plan_into, renamed, script, set_options, shell_word, shortages,
};
