//! The collector: facts for a request.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use vmdisk_facts::mount::unescaped;
use vmdisk_facts::path::Dio;
use vmdisk_facts::{CollectError, Collector, Fact, Facts, FileKind, HostName, Reason};

use crate::cgroups;
use crate::chains;
use crate::devices::Devices;
use crate::filesystems::{self, Under};
use crate::firmware;
use crate::host;
use crate::inspection::{Paths, is_device, normalize};
use crate::kvm;
use crate::libvirt;
use crate::memory;
use crate::obstacle::obstacle;
use crate::places;
use crate::programs::{self, Packages};
use crate::record::{ANSWERS, RECORDING, RecordedRequest};
use crate::request::{FactGroup, Request};
use crate::root::Root;
use crate::secrets::without_secrets;
use crate::sysfs;
use crate::trial;

/// Collects facts. Never fails as a whole: facts that could not be collected are unknown with a reason, or listed in `errors`.
pub fn collect(request: &Request) -> Facts {
    let mut root = Root::new(&request.root);
    if let Some(directory) = &request.record {
        root = root.recorded_into(directory);
    }
    let answers = root.read_answers();
    let root = Arc::new(root);
    let again = recorded_request(request, root.answers().asked.as_ref());
    let request = again.as_ref().unwrap_or(request);
    let of_host = with_places(request, &root);
    let request = of_host.as_ref().unwrap_or(request);
    let privileged = if root.is_live() {
        Some(rustix::process::geteuid().is_root())
    } else {
        root.answers().privileged
    };
    let mut facts = Facts {
        collector: Collector {
            name: Fact::Known(env!("CARGO_PKG_NAME").to_owned()),
            version: Fact::Known(env!("CARGO_PKG_VERSION").to_owned()),
            privileged: privileged.map_or(Fact::NotCollected, Fact::Known),
            groups: Fact::Known(
                request
                    .groups
                    .iter()
                    .map(|group| group.name().to_owned())
                    .collect(),
            ),
            probed_dio: Fact::Known(root.is_live() && request.probe_direct_io.is_some()),
            namespace: Fact::Known("self".to_owned()),
        },
        collected_at: Fact::Known(request.collected_at.clone()),
        ..Facts::default()
    };
    if request.groups.contains(&FactGroup::Core) {
        collect_host(&root, request, &mut facts);
    }
    let user = facts
        .libvirt
        .as_ref()
        .and_then(|libvirt| libvirt.qemu_user.clone());
    Paths::new(&root, request, user).collect_into(&mut facts);
    // A configuration may name an address as a file.
    for error in &mut facts.errors {
        error.what = without_secrets(&error.what);
    }
    if let Err(error) = answers {
        facts
            .errors
            .push(CollectError::of(ANSWERS, obstacle(ANSWERS, &error)));
    }
    if let Some(recorder) = root.recorder() {
        recorder.answer(|answers| {
            answers.privileged = privileged;
            answers.asked = Some(RecordedRequest {
                collected_at: request.collected_at.clone(),
                groups: request
                    .groups
                    .iter()
                    .map(|group| group.name().to_owned())
                    .collect(),
                paths: request.paths.clone(),
                chains: request.chains.clone(),
            });
        });
        if let Err(error) = recorder.finish() {
            facts
                .errors
                .push(CollectError::of(RECORDING, obstacle(RECORDING, &error)));
        }
    }
    facts
}

/// Repeats the request of a recording, if the current request names no paths and groups.
fn recorded_request(request: &Request, recorded: Option<&RecordedRequest>) -> Option<Request> {
    let recorded = recorded?;
    let is_open = request.paths.is_empty() && request.chains.is_empty();
    if !is_open || request.groups != BTreeSet::from([FactGroup::Core]) {
        return None;
    }
    Some(Request {
        paths: recorded.paths.clone(),
        chains: recorded.chains.clone(),
        groups: recorded
            .groups
            .iter()
            .filter_map(|name| FactGroup::from_word(name))
            .collect(),
        collected_at: recorded.collected_at.clone(),
        ..request.clone()
    })
}

/// A request with the places where disks can live on the host, if it asks for them.
fn with_places(request: &Request, root: &Root) -> Option<Request> {
    let is_new = |path: &PathBuf| !request.paths.contains(path);
    request.groups.contains(&FactGroup::Places).then(|| {
        let mut wanted = request.clone();
        wanted
            .paths
            .extend(places::paths(root).into_iter().filter(is_new));
        wanted
    })
}

fn collect_host(root: &Root, request: &Request, facts: &mut Facts) {
    let line = |path: &str| root.fact(path, |text| (!text.is_empty()).then(|| text.to_owned()));
    facts.host = HostName {
        id: line("/proc/sys/kernel/hostname"),
        class: Fact::NotCollected,
        boot: line("/proc/sys/kernel/random/boot_id"),
    };
    facts.kernel = host::kernel(root);
    facts.cpu = host::cpu(root);
    facts.kvm = kvm::kvm(root, &facts.cpu);
    facts.memory = memory::memory(root);
    facts.security = host::security(root);
    let packages = Packages::read(root);
    let run = request
        .groups
        .contains(&FactGroup::Programs)
        .then_some(request.timeout);
    facts.qemu = programs::qemu(root, &packages, run);
    facts.libvirt = libvirt::libvirt(root, &packages);
    facts.firmware = firmware::firmware(root);
    facts.limits = host::limits(root);
    if request.groups.contains(&FactGroup::Kvm) {
        let mut kvm = std::mem::take(&mut facts.kvm);
        let limit = request.timeout.max(TRIAL);
        kvm::try_kvm(root, &mut kvm, &facts.cpu.arch, &facts.qemu, limit);
        facts.kvm = kvm;
    }
}

/// Timeout of a trial guest; with working KVM it takes one second.
const TRIAL: Duration = Duration::from_secs(10);

impl Paths<'_> {
    fn collect_into(mut self, facts: &mut Facts) {
        if self.request.groups.contains(&FactGroup::Core) {
            facts.cgroups = cgroups::cgroups(self.root, &self.mounts);
        }
        let requested = self.requested_paths();
        self.inspect(&mut requested.iter().cloned().collect());
        let mut requested: BTreeSet<String> = requested.into_iter().collect();
        requested.extend(chains::follow(&mut self));
        if let Some(directory) = self.request.probe_direct_io.clone() {
            self.try_direct_io(&directory);
        }
        let root: &Root = self.root;
        let mut devices = Devices::new(root, &self.mounts, &self.registry);
        self.add_requested_devices(&requested, &mut devices);
        self.add_loops_over(&requested, &mut devices);
        // A loop device leads to a file, its filesystem, and possibly another loop device.
        let mut places = self.used_mounts();
        loop {
            for place in &places {
                if let Under::Devices(names) =
                    filesystems::under(root, &self.registry, &self.mounts.lines[*place])
                {
                    names.iter().for_each(|name| devices.add(name));
                }
            }
            let mut todo: VecDeque<String> = devices
                .backing_files()
                .into_iter()
                .chain(self.upper_directories(&places))
                .filter(|path| !self.is_known(path))
                .collect();
            if todo.is_empty() {
                break;
            }
            self.inspect(&mut todo);
            let more = self.used_mounts();
            if more == places
                && todo.is_empty()
                && devices
                    .backing_files()
                    .iter()
                    .all(|path| self.is_known(path))
            {
                break;
            }
            places = more;
        }
        self.mark_swap_files();
        self.write(facts, &places, devices);
    }

    /// Returns the requested paths; reports paths that facts cannot hold.
    fn requested_paths(&mut self) -> Vec<String> {
        let mut requested = Vec::new();
        for path in &self.request.paths {
            match path.to_str() {
                Some(text) if text.starts_with('/') => requested.push(normalize(text)),
                Some(text) => self.errors.push(CollectError::new(
                    text.to_owned(),
                    Reason::Parse,
                    "the path is not absolute",
                )),
                None => self.errors.push(CollectError::new(
                    path.to_string_lossy().into_owned(),
                    Reason::Parse,
                    "the path is not valid UTF-8, which facts require",
                )),
            }
        }
        requested
    }

    /// Adds the block devices among the requested paths.
    fn add_requested_devices(&mut self, requested: &BTreeSet<String>, devices: &mut Devices<'_>) {
        for path in requested {
            let Some((file, _)) = self.files.get(path) else {
                continue;
            };
            let (Fact::Known(number), Fact::Known(FileKind::Block)) = (&file.device, &file.kind)
            else {
                continue;
            };
            match devices.name_of(*number) {
                Ok(name) => devices.add_requested(&name),
                Err(error) => {
                    let what = format!("/sys/dev/block/{number}");
                    self.errors
                        .push(CollectError::of(&what, obstacle(&what, &error)));
                }
            }
        }
    }

    /// Adds the loop devices over requested files, and what uses them.
    fn add_loops_over(&self, requested: &BTreeSet<String>, devices: &mut Devices<'_>) {
        let files: HashSet<&str> = requested
            .iter()
            .filter_map(|path| self.files.get(path)?.0.real_path.value())
            .map(String::as_str)
            .collect();
        let names = self.root.names("/sys/class/block").unwrap_or_default();
        for name in names.iter().filter(|name| name.starts_with("loop")) {
            let file = sysfs::backing_file(self.root, name);
            if file
                .value()
                .is_some_and(|file| files.contains(file.as_str()))
            {
                devices.add_requested(name);
            }
        }
    }

    /// Marks the files that the host swaps to.
    fn mark_swap_files(&mut self) {
        let Ok(text) = self.root.text("/proc/swaps") else {
            return;
        };
        let swap: HashSet<String> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let path = words.next()?;
                (words.next() == Some("file")).then(|| unescaped(path))
            })
            .collect();
        for (file, _) in self.files.values_mut() {
            if file.kind.is(&FileKind::Regular) {
                file.swap = file.real_path.as_ref().map(|real| swap.contains(real));
            }
        }
    }

    fn try_direct_io(&mut self, directory: &Path) {
        if !self.root.is_live() {
            self.errors.push(CollectError::new(
                "direct I/O trial",
                Reason::UnsupportedKernel,
                "a recorded system cannot run a trial",
            ));
            return;
        }
        let Some(text) = directory
            .to_str()
            .filter(|text| text.starts_with('/'))
            .map(normalize)
        else {
            self.errors.push(CollectError::new(
                directory.to_string_lossy().into_owned(),
                Reason::Parse,
                "the directory for the direct I/O trial is not absolute, or not valid UTF-8",
            ));
            return;
        };
        let (found, place) = self.directory(&text);
        if found.path != text {
            self.errors.push(CollectError::new(
                text,
                Reason::Other("missing".to_owned()),
                "the directory for the direct I/O trial does not exist",
            ));
            return;
        }
        let tried = {
            let directory = directory.to_owned();
            self.with_timeout(&text, move || trial::in_directory(&directory))
        };
        let entry = self.directories.entry(text).or_insert((found, place));
        entry.0.dio = match tried {
            Ok(dio) => dio,
            Err(unknown) => Dio {
                open: Fact::Unknown(unknown),
                ..Dio::default()
            },
        };
    }

    fn used_mounts(&self) -> BTreeSet<usize> {
        let files = self
            .files
            .values()
            .filter(|(file, _)| !is_device(file))
            .filter_map(|(_, place)| place.as_ref());
        let directories = self
            .directories
            .values()
            .filter_map(|(_, place)| place.as_ref());
        files
            .chain(directories)
            .filter_map(|place| self.mount_of(place))
            .collect()
    }

    /// Returns the upper directories of the overlays in use.
    fn upper_directories(&self, places: &BTreeSet<usize>) -> Vec<String> {
        let overlays = places
            .iter()
            .map(|place| &self.mounts.lines[*place])
            .filter(|line| line.fstype == "overlay");
        overlays
            .filter_map(|line| {
                line.options
                    .iter()
                    .find(|(name, _)| name == "upperdir")
                    .and_then(|(_, value)| value.clone())
            })
            .filter(|path| path.starts_with('/'))
            .map(|path| normalize(&path))
            .collect()
    }
}
