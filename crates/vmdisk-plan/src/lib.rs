//! Internal to vmdisk: from intent and facts to a disk: specs, choices with reasons, creation steps.
//!
//! A [`Spec`] sets some options and leaves the others open; it is read from YAML or JSON
//! ([`Spec::from_yaml`]), or one of its disks from one line ([`DiskSpec::from_one_liner`]). [`plan`] chooses
//! the open options from the facts of the host and the target versions, and returns a [`Plan`]: the
//! guest as a [`vmdisk_model::Domain`], every [`Choice`] with its reason, and the [`Step`]s that create
//! the storage. [`script`] writes the steps as a shell script that checks everything first and
//! overwrites nothing.
//!
//! The crate never inspects the machine it runs on, and equal arguments give equal results. An impossible
//! request is refused with its place. An unwise request is carried out, and the linter reports it.
//!
//! ```
//! use vmdisk_facts::{Facts, Target};
//! use vmdisk_model::{AioMode, CacheMode};
//! use vmdisk_plan::{DiskSpec, Spec, plan, script};
//!
//! let spec = Spec::new(vec![
//!     DiskSpec::from_one_liner("qcow2:/srv/web1.qcow2,size=40G,preallocation=metadata")?,
//!     DiskSpec::from_one_liner("lvm:vg0/data")?,
//! ]);
//! let facts = Facts::from_yaml("
//! schema_version: '1.0'
//! mounts: [{id: m1, point: /srv, fs: f1}]
//! filesystems: [{id: f1, kind: xfs}]
//! ").unwrap().facts;
//! let plan = plan(&spec, &facts, &Target::default()).unwrap();
//!
//! // XFS does direct I/O, and so do block devices.
//! let image = &plan.domain.disks[0].backend;
//! assert_eq!(image.cache, Some(CacheMode::None));
//! assert_eq!(plan.domain.disks[1].backend.aio, Some(AioMode::Native));
//!
//! let why = plan.choices.iter().find(|choice| choice.option == "cache").unwrap();
//! assert!(why.reason.starts_with("xfs does direct I/O"));
//!
//! // Only what has a size is made; the volume is there already.
//! assert_eq!(
//!     plan.steps[0].argv,
//!     ["qemu-img", "create", "-f", "qcow2", "-o", "preallocation=metadata", "--", "/srv/web1.qcow2", "40G"]
//! );
//! assert_eq!(plan.steps.len(), 1);
//! assert!(script(&plan).contains("publish 1 /srv/web1.qcow2"));
//! # Ok::<(), vmdisk_plan::SpecErrors>(())
//! ```
//!
//! A spec as YAML:
//!
//! ```
//! use vmdisk_plan::{BackendSpec, Spec};
//!
//! let spec = Spec::from_yaml("
//! version: 1
//! guest: {name: web1, vcpus: 4, memory: 8G}
//! disks:
//! - qcow2: {path: /srv/web1.qcow2, size: 40G, preallocation: metadata}
//!   bus: virtio
//! - lvm-thin: {group: vg0, volume: web1-data, pool: pool0, size: 500G}
//! - device: {path: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4, as: lun}
//! - raw: {path: /srv/install.iso}
//!   media: cdrom
//! ").unwrap();
//! assert!(matches!(spec.disks[1].backend, BackendSpec::LvmThin(_)));
//!
//! let errors = Spec::from_yaml("
//! version: 1
//! disks:
//! - qcow2: {path: /srv/web1.qcow2, clustersize: 128K}
//! ").unwrap_err();
//! assert_eq!(
//!     errors[0].to_string(),
//!     "line 4, column 34: disks[0].qcow2.clustersize: unknown key `clustersize`; did you mean `cluster-size`?"
//! );
//! ```

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod changes;
mod document;
mod errors;
mod plan;
mod spec;
mod steps;

pub use changes::{
    ChangeKind, ChangePlan, DefinitionChange, DownTime, KeptImage, LiveChange, LiveCopy,
    PlannedChange, PresentImage, PresentState, StorageChange, StorageCopy, plan_changes,
};
pub use document::{CannotEdit, PlannedSpec, SpecDocument, SpecMistake, SpecSpeller, is_spec};
pub use errors::ErrorList;
pub use plan::{
    Choice, ChoiceSource, Decided, Plan, PlanError, PlanErrors, RULES, decide, facts_after,
    facts_after_on, plan, plan_into, plan_on, set_options,
};
pub use spec::{
    AuthenticationSpec, BackendSpec, BackingSpec, BusSpec, DeviceAccess, DeviceSpec, Difference,
    DirectorySpec, DiskSpec, EmptySpec, EncryptionSpec, GuestChannel, GuestConsole, GuestDevices,
    GuestDrivers, GuestNetwork, GuestOs, GuestSpec, GuestType, HugePagesSpec, IoThreadCount,
    IoThreadOptions, IoThreadSpec, IotuneSpec, LvmSpec, LvmThinSpec, MAX_SPEC_BYTES, MediaSpec,
    NetworkHostSpec, NetworkIdentitySpec, NetworkSpec, NotCarried, NvmeSpec, Qcow2Spec, RawSpec,
    SecretSpec, SeedSpec, Spec, SpecError, SpecErrors, SpecPath, SpecPlace, SpecSegment,
    SpecVersion, VhostUserBlkSpec, VhostVdpaSpec, VolumeSpec, ZvolSpec,
};
pub use steps::{
    Condition, Equality, Named, Resize, ScriptDefinition, ScriptWork, SpaceShortage, Step,
    StepKind, change_script, not_installed, renamed, script, shell_word, shortages,
};
