//! Known cycles. Rows may only be removed from this list.

/// The files of each cycle, below `crates/`.
pub(super) const KNOWN: &[&[&str]] = &[
    &[
        "vmdisk-bench-runner/src/engines/generator.rs",
        "vmdisk-bench-runner/src/engines/generator/job.rs",
    ],
    &[
        "vmdisk-bench-runner/src/journal.rs",
        "vmdisk-bench-runner/src/method/estimate.rs",
        "vmdisk-bench-runner/src/method/run.rs",
        "vmdisk-bench-runner/src/method/values.rs",
    ],
    &[
        "vmdisk-bench-runner/src/report/answer.rs",
        "vmdisk-bench-runner/src/report/remarks.rs",
        "vmdisk-bench-runner/src/report/result.rs",
        "vmdisk-bench-runner/src/report/table.rs",
    ],
    &[
        "vmdisk-bench-runner/src/report/compare.rs",
        "vmdisk-bench-runner/src/report/compare/differences.rs",
    ],
    &[
        "vmdisk-bench-runner/src/report/html.rs",
        "vmdisk-bench-runner/src/report/html/group.rs",
    ],
];
