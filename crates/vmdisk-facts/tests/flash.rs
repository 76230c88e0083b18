//! The files of UEFI that fit a guest, and those that do not.

use vmdisk_facts::verdict::flash::{
    FirmwareRole, FlashBoard, FlashFaultKind, FlashFiles, flash_faults,
};
use vmdisk_facts::{Facts, HostIndex};

const MIB: u64 = 1 << 20;

/// Code, variables and template of these sizes; no file where there is no size.
fn faults(
    board: FlashBoard,
    code: u64,
    variables: Option<u64>,
    template: Option<(&str, u64)>,
) -> Vec<String> {
    let file = |path: &str, size: u64| format!("- {{path: {path}, size: {size}}}\n");
    let own = variables.map_or_else(
        || "- {path: /own, present: false}\n".to_owned(),
        |size| file("/own", size),
    );
    let copied = template.map_or_else(String::new, |(path, size)| file(path, size));
    let facts = format!(
        "schema_version: '1.0'\nfiles:\n{}{own}{copied}firmware:\n- {{code: /other, variables: /x}}\n\
         - {{code: /code, variables: /a}}\n- {{code: /code, variables: /b}}\n",
        file("/code", code)
    );
    let facts = Facts::parse(&facts).expect("the facts are valid").facts;
    let files = FlashFiles {
        code: "/code",
        variables: (variables.is_some() || template.is_some()).then_some("/own"),
        template: template.map(|(path, _)| path),
        is_flash: true,
    };
    let (faults, missing) = flash_faults(&HostIndex::new(&facts), files, board);
    assert!(missing.is_empty(), "{missing:?}");
    let words = faults.iter().map(|fault| {
        let role = match fault.file {
            FirmwareRole::Code => "code",
            FirmwareRole::Variables => "variables",
            FirmwareRole::Template => "template",
        };
        let kind = match &fault.kind {
            FlashFaultKind::Missing => "missing",
            FlashFaultKind::Size { .. } => "size",
            FlashFaultKind::OtherBuild => "build",
            FlashFaultKind::OtherTemplate { expected } => expected,
        };
        format!("{role} {kind}")
    });
    words.collect()
}

#[test]
fn sizes_and_builds_are_held_against_the_machine() {
    let (large, small, of_large, of_small) = (3_653_632, 1_966_080, 540_672, 131_072);
    for (board, code, variables, expected) in [
        (FlashBoard::Pc, large, Some(of_large), &[][..]),
        (FlashBoard::Pc, small, Some(of_small), &[]),
        (FlashBoard::Pc, large, Some(of_small), &["variables build"]),
        (FlashBoard::Pc, small, Some(of_large), &["variables build"]),
        (FlashBoard::Pc, large, Some(4096), &[]),
        (FlashBoard::Pc, 4 * MIB, Some(of_small), &[]),
        (FlashBoard::Pc, 0, None, &["code size"]),
        (FlashBoard::Pc, 5120, Some(9 * MIB), &["code size"]),
        (FlashBoard::Pc, 4 * MIB, Some(4 * MIB), &[]),
        (FlashBoard::Pc, 4 * MIB, Some(5 * MIB), &["variables size"]),
        (FlashBoard::ArmVirt, 64 * MIB, Some(64 * MIB), &[]),
        (FlashBoard::ArmVirt, 2 * MIB, None, &["code size"]),
        (FlashBoard::Other, 2 * MIB, None, &[]),
    ] {
        let found = faults(board, code, variables, None);
        assert_eq!(found, expected, "{board:?} {code} {variables:?}");
    }
}

#[test]
fn a_template_is_one_that_the_host_has_for_the_code() {
    let of = |path, own| faults(FlashBoard::Pc, 4 * MIB, own, Some((path, 540_672)));
    assert_eq!(of("/a", None), [""; 0]);
    assert_eq!(of("/b", None), [""; 0]);
    assert_eq!(of("/x", None), ["template /a"]);
    assert_eq!(of("/x", Some(5120)), ["variables size"]);
}
