//! Whether the files of UEFI fit a guest: whether they exist, whether QEMU takes their sizes, and whether code and variables
//! belong together.
//!
//! Sizes are the sizes that the guest sees. QEMU 7.2 refuses others on a PC: `system firmware block device pflash0 has invalid
//! size`, `combined size of system firmware exceeds 8388608 bytes` (`hw/i386/pc_sysfw.c`). On the machine `virt` of Arm each
//! flash has 64 MiB: `device requires 67108864 bytes` (`hw/arm/virt.c`, `hw/block/block.c`).

use crate::fact::Fact;
use crate::index::HostIndex;
use crate::missing::Missing;

/// The files of UEFI that a guest names.
#[derive(Clone, Copy, Debug)]
pub struct FlashFiles<'a> {
    /// The code.
    pub code: &'a str,
    /// The variables of the guest.
    pub variables: Option<&'a str>,
    /// The file that libvirt copies the variables from, if they do not exist.
    pub template: Option<&'a str>,
    /// True for flash; a ROM has other limits.
    pub is_flash: bool,
}

/// The board that the files are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashBoard {
    /// An x86 PC.
    Pc,
    /// The machine `virt` of Arm.
    ArmVirt,
    /// Another board, or one that is not known: sizes are not checked.
    Other,
}

/// One of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirmwareRole {
    /// The code.
    Code,
    /// The variables of the guest.
    Variables,
    /// The template of the variables.
    Template,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlashFault {
    /// The file.
    pub file: FirmwareRole,
    /// Its path.
    pub path: String,
    /// The fault.
    pub kind: FlashFaultKind,
}

/// A fault of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlashFaultKind {
    /// It does not exist.
    Missing,
    /// The machine takes no flash of this size.
    Size {
        /// Its bytes.
        size: u64,
        /// What the machine takes.
        expected: &'static str,
    },
    /// It is of a build with flash of another size than the code.
    OtherBuild,
    /// The host's descriptors have other variables for the code.
    OtherTemplate {
        /// The file that they name.
        expected: String,
    },
}

/// The sizes of code and variables of the builds of OVMF: flash of 2 MiB and of 4 MiB.
const BUILDS: [(u64, u64); 2] = [(1_966_080, 131_072), (3_653_632, 540_672)];

const PAGE: u64 = 4096;
/// QEMU's `max-fw-size` of a PC.
const MOST_ON_PC: u64 = 8 << 20;
const FLASH_OF_VIRT: u64 = 64 << 20;

/// The faults of the files, and the facts that are missing.
pub fn flash_faults(
    host: &HostIndex<'_>,
    files: FlashFiles<'_>,
    board: FlashBoard,
) -> (Vec<FlashFault>, Vec<Missing>) {
    let (mut faults, mut missing) = (Vec::new(), Vec::new());
    let mut size = |file: FirmwareRole, path: &str| match size_of(host, path) {
        Ok(Some(size)) => Some((file, path.to_owned(), size)),
        Ok(None) => {
            faults.push(fault(file, path, FlashFaultKind::Missing));
            None
        }
        Err(why) => {
            missing.push(why);
            None
        }
    };
    let code = size(FirmwareRole::Code, files.code);
    // A package that is gone has taken the variables with it.
    if host.file(files.code).is_some_and(|file| file.is_missing()) {
        return (faults, missing);
    }
    let own = files.variables.filter(|path| match files.template {
        // libvirt makes it.
        Some(_) => !host.file(path).is_some_and(|file| file.is_missing()),
        None => true,
    });
    let variables = match (own, files.template) {
        (Some(path), _) => size(FirmwareRole::Variables, path),
        (None, Some(path)) => size(FirmwareRole::Template, path),
        (None, None) => None,
    };
    if files.is_flash {
        let found = [code, variables];
        faults.extend(sizes(&found, board));
        if let Some(template) = files.template.filter(|_| faults.is_empty()) {
            faults.extend(other_template(host, files.code, template));
        }
    }
    (faults, missing)
}

fn fault(file: FirmwareRole, path: &str, kind: FlashFaultKind) -> FlashFault {
    FlashFault {
        file,
        path: path.to_owned(),
        kind,
    }
}

/// The bytes that the guest sees of a file; `None` if it does not exist.
fn size_of(host: &HostIndex<'_>, path: &str) -> Result<Option<u64>, Missing> {
    let what = || format!("the size of {path}");
    let file = host
        .file(path)
        .ok_or_else(|| Missing::new(what(), Missing::NOT_COLLECTED))?;
    if file.is_missing() {
        return Ok(None);
    }
    match file.image.value().and_then(|it| it.virtual_size.value()) {
        Some(size) => Ok(Some(*size)),
        None => file.size.clone().needed(what),
    }
}

type Found = Option<(FirmwareRole, String, u64)>;

fn sizes(found: &[Found; 2], board: FlashBoard) -> Vec<FlashFault> {
    let known = || found.iter().flatten();
    let (is_fit, expected): (fn(u64) -> bool, &'static str) = match board {
        FlashBoard::Pc => (
            |size| size > 0 && size.is_multiple_of(PAGE),
            "a multiple of 4 KiB",
        ),
        FlashBoard::ArmVirt => (|size| size == FLASH_OF_VIRT, "64 MiB"),
        FlashBoard::Other => return Vec::new(),
    };
    let of_size = |(file, path, size): &(FirmwareRole, String, u64), expected| {
        let size = *size;
        fault(*file, path, FlashFaultKind::Size { size, expected })
    };
    let unfit = known().filter(|(_, _, size)| !is_fit(*size));
    let mut faults: Vec<FlashFault> = unfit.map(|it| of_size(it, expected)).collect();
    if !faults.is_empty() || board != FlashBoard::Pc {
        return faults;
    }
    let sum: u64 = known().map(|(_, _, size)| *size).sum();
    if let Some(largest) = known().max_by_key(|(_, _, size)| *size)
        && sum > MOST_ON_PC
    {
        return vec![of_size(largest, "at most 8 MiB for code and variables")];
    }
    if let [Some((_, _, code)), Some((file, path, variables))] = found
        && BUILDS
            .iter()
            .any(|(of_code, of)| of_code == code && of != variables)
        && BUILDS.iter().any(|(_, of)| of == variables)
    {
        faults.push(fault(*file, path, FlashFaultKind::OtherBuild));
    }
    faults
}

/// A template that no descriptor of the host has for the code.
fn other_template(host: &HostIndex<'_>, code: &str, template: &str) -> Option<FlashFault> {
    let of_code = host.facts().firmware.iter();
    let of_code = of_code.filter(|it| it.code.value().is_some_and(|it| it == code));
    let mut named = of_code.filter_map(|it| match &it.variables {
        Fact::Known(variables) => Some(variables),
        _ => None,
    });
    let first = named.next()?;
    if first == template || named.any(|it| it == template) {
        return None;
    }
    let expected = first.clone();
    Some(fault(
        FirmwareRole::Template,
        template,
        FlashFaultKind::OtherTemplate { expected },
    ))
}
