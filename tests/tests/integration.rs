//! Tests across crates, in one binary.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

/// Path of the command under test.
const VMDISK: &str = env!("CARGO_BIN_EXE_vmdisk-under-test");

#[path = "integration/allowances.rs"]
mod allowances;
#[path = "integration/architecture.rs"]
mod architecture;
#[path = "integration/articles.rs"]
mod articles;
#[path = "integration/bench_command.rs"]
mod bench_command;
#[path = "integration/bench_guest.rs"]
mod bench_guest;
#[path = "integration/bench_killed.rs"]
mod bench_killed;
#[path = "integration/bench_report.rs"]
mod bench_report;
#[path = "integration/bench_socket.rs"]
mod bench_socket;
#[path = "convert/main.rs"]
mod convert;
#[path = "integration/corpus.rs"]
mod corpus;
#[path = "integration/corpus_refused.rs"]
mod corpus_refused;
#[path = "integration/facts_read.rs"]
mod facts_read;
#[path = "fixes/main.rs"]
mod fixes;
#[path = "integration/fleet.rs"]
mod fleet;
mod fuzz_corpus;
#[path = "integration/generate_into.rs"]
mod generate_into;
#[path = "integration/generated_is_accepted.rs"]
mod generated_is_accepted;
#[path = "integration/generated_matrix.rs"]
mod generated_matrix;
#[path = "integration/guides.rs"]
mod guides;
#[path = "integration/host_states.rs"]
mod host_states;
#[path = "integration/hostlab.rs"]
mod hostlab;
#[path = "integration/lint_page.rs"]
mod lint_page;
#[path = "integration/mistakes.rs"]
mod mistakes;
#[path = "integration/packaged_facade.rs"]
mod packaged_facade;
#[path = "integration/picture.rs"]
mod picture;
#[path = "integration/plan_then_lint.rs"]
mod plan_then_lint;
#[path = "integration/readme.rs"]
mod readme;
#[path = "integration/remedies.rs"]
mod remedies;
#[path = "integration/script_is_run.rs"]
mod script_is_run;
#[path = "integration/silent.rs"]
mod silent;
mod spec_lint;
#[path = "integration/stack_verdict.rs"]
mod stack_verdict;
#[path = "integration/touches_nothing.rs"]
mod touches_nothing;
#[path = "integration/trace.rs"]
mod trace;
