//! Rules about a command line: names, types, ranges, addresses. One file each, with page, evidence and check.
//!
//! A rule that checks both the model and the options of a command line is here too, with both checks.

pub(crate) mod block_size_refused;
pub(crate) mod bus_missing;
pub(crate) mod cache_contradicted;
pub(crate) mod direct_on_one_node;
pub(crate) mod discard_on_one_node;
pub(crate) mod drive_indexes;
mod drive_protocol_unknown;
pub(crate) mod encryption_secret_missing;
pub(crate) mod force_share_writable;
mod invalid_value;
pub(crate) mod iothread_mapping_refused;
pub(crate) mod iothread_without_ioeventfd;
mod line;
pub(crate) mod locking_off;
pub(crate) mod memory_size_mismatch;
mod missing_value;
pub(crate) mod name_refused;
pub(crate) mod node_on_two_iothreads;
pub(crate) mod node_order;
pub(crate) mod node_unused;
pub(crate) mod node_used_twice;
mod nodes;
pub(crate) mod nvme_transfer_size_refused;
mod places;
pub(crate) mod property_refused;
pub(crate) mod qcow2_cache_refused;
pub(crate) mod qcow2_v2_option;
pub(crate) mod queue_count_refused;
pub(crate) mod queue_size_refused;
pub(crate) mod read_only_on_one_node;
mod second_users;
pub(crate) mod serial_too_long;
pub(crate) mod slice_unaligned;
pub(crate) mod slot_taken;
pub(crate) mod snapshot_ignored_by_blockdev;
pub(crate) mod unit_out_of_range;
mod value_kind;
pub(crate) mod vectors_too_few;
pub(crate) mod vhost_user_server_socket;

#[cfg(test)]
#[allow(
    dead_code,
    reason = "`cargo xtask new-rule` copies it; tests compile it"
)]
mod template;

use vmdisk_rule::reading::{INVALID_VALUE, MISSING_VALUE};
use vmdisk_rule::{Context, Outcome, Report, Rule, TextRule};

use crate::document::Document;
use line::Line;

/// Checks a command line.
type Check = fn(&Line<'_>, &mut Report);

/// The rules of this crate, sorted by name.
static TEXT_RULES: &[TextRule<Check>] = &[
    TextRule::checked(&block_size_refused::RULE, block_size_refused::check_line),
    TextRule::checked(&bus_missing::RULE, bus_missing::check),
    TextRule::checked(&cache_contradicted::RULE, cache_contradicted::check),
    TextRule::read(&direct_on_one_node::RULE),
    TextRule::read(&discard_on_one_node::RULE),
    TextRule::checked(&drive_protocol_unknown::RULE, drive_protocol_unknown::check),
    TextRule::checked(
        &encryption_secret_missing::RULE,
        encryption_secret_missing::check,
    ),
    TextRule::checked(&force_share_writable::RULE, force_share_writable::check),
    TextRule::checked(
        &iothread_mapping_refused::RULE,
        iothread_mapping_refused::check_line,
    ),
    TextRule::checked(
        &iothread_without_ioeventfd::RULE,
        iothread_without_ioeventfd::check_line,
    ),
    TextRule::checked(&locking_off::RULE, locking_off::check),
    TextRule::checked(&memory_size_mismatch::RULE, memory_size_mismatch::check),
    TextRule::checked(&name_refused::RULE, name_refused::check),
    TextRule::checked(&node_on_two_iothreads::RULE, node_on_two_iothreads::check),
    TextRule::checked(&node_order::RULE, node_order::check),
    TextRule::checked(&node_unused::RULE, node_unused::check),
    TextRule::checked(&node_used_twice::RULE, node_used_twice::check),
    TextRule::checked(
        &nvme_transfer_size_refused::RULE,
        nvme_transfer_size_refused::check,
    ),
    TextRule::checked(&property_refused::RULE, property_refused::check),
    TextRule::checked(&qcow2_cache_refused::RULE, qcow2_cache_refused::check),
    TextRule::checked(&qcow2_v2_option::RULE, qcow2_v2_option::check_line),
    TextRule::read(&queue_count_refused::RULE),
    TextRule::checked(&queue_size_refused::RULE, queue_size_refused::check_line),
    TextRule::read(&read_only_on_one_node::RULE),
    TextRule::checked(&serial_too_long::RULE, serial_too_long::check_line),
    TextRule::checked(&slice_unaligned::RULE, slice_unaligned::check_line),
    TextRule::checked(&slot_taken::RULE, slot_taken::check),
    TextRule::checked(
        &snapshot_ignored_by_blockdev::RULE,
        snapshot_ignored_by_blockdev::check,
    ),
    TextRule::checked(&unit_out_of_range::RULE, unit_out_of_range::check_line),
    TextRule::checked(&vectors_too_few::RULE, vectors_too_few::check),
    TextRule::checked(
        &vhost_user_server_socket::RULE,
        vhost_user_server_socket::check,
    ),
];

/// Rules of every reader that check command lines again, with the target known.
static SHARED_RULES: &[TextRule<Check>] = &[
    TextRule::checked(&INVALID_VALUE, invalid_value::check),
    TextRule::checked(&MISSING_VALUE, missing_value::check),
];

/// The rules of this crate, sorted by name.
pub static RULES: &[&Rule] = &TextRule::rules::<{ TEXT_RULES.len() }>(TEXT_RULES);

/// Runs the rules about the text on a command line.
pub fn check(document: &Document, context: &Context<'_>, outcome: &mut Outcome) {
    let line = Line::new(context, document);
    for TextRule { rule, check } in TEXT_RULES.iter().chain(SHARED_RULES) {
        if let Some(check) = check {
            outcome.judge(context, rule, |report| check(&line, report));
        }
    }
}
