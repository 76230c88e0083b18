//! A name that leads to another device while a run goes on: that device keeps every byte.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vmdisk_bench_runner::engines::{Workspace, engine};
use vmdisk_bench_runner::safety::{ClaimedDevice, DeviceCheck, prepare};
use vmdisk_bench_runner::{
    Cancel, CellView, Engine, EngineKind, Error, Limits, Plan, PlanOptions, RunContext, read_plan,
};
use vmdisk_testing::{LoopDevice, needed, run};

use crate::engines::has;

/// A prepared device with a link to it, and a device with data that nobody prepared.
struct Named {
    directory: tempfile::TempDir,
    prepared: LoopDevice,
    other: LoopDevice,
    link: PathBuf,
    serial: String,
    data: Vec<u8>,
}

impl Named {
    fn new() -> Result<Self, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let at = |name: &str| directory.path().join(name);
        let prepared = LoopDevice::new(&at("prepared.img"), 16 << 20, &[])?;
        let other = LoopDevice::new(&at("other.img"), 16 << 20, &[])?;
        let data: Vec<u8> = (0..16_u32 << 18).flat_map(u32::to_le_bytes).collect();
        fs::write(other.path(), &data).map_err(|error| error.to_string())?;
        let link = at("the-given-name");
        symlink(prepared.path(), &link).map_err(|error| error.to_string())?;
        let preparation = prepare(&link).map_err(|refused| refused.to_string())?;
        let serial = preparation.identity().value.clone();
        let marked = preparation.confirm(&serial, "2026-11-20T05:00:00Z");
        marked.map_err(|refused| refused.to_string())?;
        Ok(Self {
            directory,
            prepared,
            other,
            link,
            serial,
            data,
        })
    }

    fn plan(&self, kind: EngineKind, backend: &str) -> Plan {
        let text = format!(
            "version: 1\nname: t\nquestion: q\nsize: 8M\nseconds: 0.2\nramp: 0\nphases: [steady]\n\
             workloads: [4k-random-write-qd1, 64k-sequential-write-qd4]\n\
             fixed: {{engine: {kind}, backend: {backend}}}\n"
        );
        let options = PlanOptions {
            limits: Limits {
                device: Some((self.link.clone(), self.serial.clone())),
                group: Some(group()),
                ..Limits::default()
            },
            ..PlanOptions::default()
        };
        read_plan(&text, "t", &options).unwrap()
    }

    /// Runs a plan as `Runner` does, and calls `at` at each boundary. Returns what ended it, and everything that it gave to
    /// programs.
    fn run(&self, kind: EngineKind, at: &mut dyn FnMut(&str)) -> (Result<(), Error>, Vec<String>) {
        self.run_on("device", kind, at)
    }

    /// As [`run`](Self::run), with another kind of storage.
    fn run_on(
        &self,
        backend: &str,
        kind: EngineKind,
        at: &mut dyn FnMut(&str),
    ) -> (Result<(), Error>, Vec<String>) {
        let plan = self.plan(kind, backend);
        let scratch = self.directory.path().join("scratch");
        let _ = fs::create_dir(&scratch);
        let workspace = Workspace::with_changes_in(&scratch, &scratch.join("changes"));
        let cancel = Cancel::new();
        let mut engine = engine(kind, &workspace).unwrap();
        let cells: Vec<CellView<'_>> = plan.views().collect();
        engine.versions(&cells).unwrap();
        let mut given = Vec::new();
        let mut measure = |engine: &mut dyn Engine| {
            workspace.check(&plan.configurations)?;
            at("claimed");
            engine.prepare(&cells, &cancel)?;
            for (nth, cell) in cells.iter().enumerate() {
                at(["first", "second"][nth]);
                let context = RunContext {
                    round: 1,
                    cancel: &cancel,
                    seed: 42,
                };
                let mut failed = Ok(());
                engine.run(&[*cell], &context, &mut |_, result| match result {
                    Ok(measured) => {
                        let commands = measured.commands.iter();
                        given.extend(commands.flat_map(|command| command.argv.clone()));
                        given.extend(measured.inputs.values().cloned());
                    }
                    Err(error) => failed = Err(error),
                })?;
                failed?;
            }
            at("done");
            Ok(())
        };
        let ended = measure(engine.as_mut());
        engine.cleanup().unwrap();
        (ended, given)
    }

    fn point_to(&self, device: &LoopDevice) {
        let new = self.link.with_extension("new");
        symlink(device.path(), &new).unwrap();
        fs::rename(&new, &self.link).unwrap();
    }

    #[track_caller]
    fn other_is_whole(&self) {
        run("sync", &[]).unwrap();
        let bytes = fs::read(self.directory.path().join("other.img")).unwrap();
        assert!(bytes == self.data, "the other device was written");
        assert!(fs::read(self.other.path()).unwrap() == self.data);
    }
}

/// The volume group of the stand-ins.
fn group() -> String {
    format!("vmdisk-test-{}", std::process::id())
}

/// The engines that measure devices here. A guest takes minutes where it is emulated.
const ENGINES: [EngineKind; 2] = [EngineKind::HostFio, EngineKind::StorageDaemon];

#[test]
fn a_name_that_leads_elsewhere_ends_the_run_at_each_boundary() {
    if !has(&["qemu-storage-daemon", "fio"]) {
        return;
    }
    let Some(named) = needed(Named::new()) else {
        return;
    };
    for kind in ENGINES {
        for boundary in ["claimed", "first", "second", "during"] {
            let mut later = None;
            let (ended, _) = named.run(kind, &mut |at| {
                if at == boundary {
                    named.point_to(&named.other);
                }
                if (at, boundary) == ("first", "during") {
                    let (link, other) = (named.link.clone(), named.other.path().to_owned());
                    later = Some(std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_millis(100));
                        fs::remove_file(&link).unwrap();
                        symlink(other, &link).unwrap();
                    }));
                }
            });
            if let Some(later) = later {
                later.join().unwrap();
            }
            match ended {
                Err(Error::Endangered(refused)) => {
                    assert!(
                        refused.names(DeviceCheck::SameDevice),
                        "{kind} {boundary}: {refused}"
                    );
                }
                other => panic!("{kind} {boundary}: {other:?}"),
            }
            named.other_is_whole();
            named.point_to(&named.prepared);
        }
        let (ended, given) = named.run(kind, &mut |_| {});
        ended.unwrap();
        assert!(!given.is_empty(), "{kind}");
        for word in given {
            for path in [named.link.to_str().unwrap(), named.prepared.path()] {
                assert!(!word.contains(path), "{kind}: {word}");
            }
        }
    }
    ClaimedDevice::claim(Path::new(&named.link)).unwrap();
}

#[test]
fn a_name_that_leads_elsewhere_at_any_time_harms_no_other_device() {
    if !has(&["qemu-storage-daemon", "fio"]) {
        return;
    }
    let Some(named) = needed(Named::new()) else {
        return;
    };
    for nth in 0..30_u64 {
        let (link, other) = (named.link.clone(), named.other.path().to_owned());
        let swap = std::thread::spawn(move || {
            // Spread over the time of a run, in no order.
            std::thread::sleep(Duration::from_millis(nth * 47 % 31 * 60));
            fs::remove_file(&link).unwrap();
            symlink(other, &link).unwrap();
        });
        let kind = ENGINES[usize::from(nth % 2 == 1)];
        let (ended, _) = named.run(kind, &mut |_| {});
        swap.join().unwrap();
        // The run may have been over, or the name may have been gone when it began.
        if let Err(error) = ended {
            let is_expected = matches!(error, Error::Endangered(_) | Error::Unusable { .. });
            assert!(is_expected, "{nth}: {error}");
        }
        named.other_is_whole();
        named.point_to(&named.prepared);
    }
}

/// Replacement for LVM: a volume is a link to the device of its group, and is not removed while the run has it open.
const LVM: &str = r#"#!/bin/sh
for last; do :; done
case "${0##*/} $*" in
lvcreate*'--type thin '*) cp -P "/dev/$last/device" "/dev/$last/$(echo "$*" | sed 's/.*--name \([^ ]*\) .*/\1/')" ;;
lvs*) echo vmdisk-bench ;;
lvremove*)
    device=$(readlink "/dev/${last%/*}/device")
    ! ls -l /proc/$PPID/fd | grep -q " $device\$" || { echo "$last is in use" >&2; exit 5; }
    rm -f "/dev/$last"* ;;
esac
"#;

#[test]
fn a_thin_volume_is_used_by_its_descriptor_and_removed() {
    const WITH_STAND_INS: &str = "VMDISK_TEST_WITH_LVM";
    if std::env::var_os(WITH_STAND_INS).is_none() {
        let bin = tempfile::tempdir().unwrap();
        for name in ["lvcreate", "lvs", "lvremove"] {
            vmdisk_testing::write_program(&bin.path().join(name), LVM);
        }
        let path = std::env::var("PATH").unwrap();
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again
            .args([
                "--exact",
                "renamed::a_thin_volume_is_used_by_its_descriptor_and_removed",
            ])
            .env(WITH_STAND_INS, "yes")
            .env("PATH", format!("{}:{path}", bin.path().display()));
        assert!(again.status().unwrap().success());
        return;
    }
    if !has(&["qemu-storage-daemon", "fio"]) {
        return;
    }
    let Some(named) = needed(Named::new()) else {
        return;
    };
    let folder = Path::new("/dev").join(group());
    fs::create_dir(&folder).unwrap();
    symlink(named.prepared.path(), folder.join("device")).unwrap();
    let volumes = || {
        let names = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        names
            .filter(|path| !path.ends_with("device"))
            .collect::<Vec<_>>()
    };
    let mut left = Vec::new();
    for kind in ENGINES {
        let (ended, given) = named.run_on("thin", kind, &mut |at| {
            for volume in volumes().iter().filter(|_| at != "done") {
                fs::remove_file(volume).unwrap();
                symlink(named.other.path(), volume).unwrap();
            }
        });
        ended.unwrap();
        named.other_is_whole();
        assert!(!given.is_empty(), "{kind}");
        let of_group = folder.to_str().unwrap();
        assert!(
            given.iter().all(|word| !word.contains(of_group)),
            "{given:?}"
        );
        left.extend(volumes());
    }
    fs::remove_dir_all(&folder).unwrap();
    assert!(left.is_empty(), "{left:?}");
}
