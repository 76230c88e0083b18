//! Rules about a command line: names, types, ranges, addresses. One file each, with page, evidence and check.
//!
//! A rule that checks both the model and the options of a command line is here too, with both checks.

pub(crate) mod block_size_refused;
mod boot_order_ignored_by_uefi;
pub(crate) mod boot_order_twice;
pub(crate) mod bus_missing;
pub(crate) mod cache_contradicted;
pub(crate) mod direct_on_one_node;
pub(crate) mod discard_on_one_node;
pub(crate) mod drive_indexes;
pub(crate) mod drive_protocol_unknown;
pub(crate) mod encryption_secret_missing;
mod fat_directory_refused;
mod fat_directory_writable;
mod flash_refused;
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
mod sd_card_size_refused;
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
use vmdisk_rule::{Context, Outcome, Rule, TextRule};

use crate::document::Document;
use line::{Check, Line, LineRule};

/// The rules of this crate, sorted by name.
static TEXT_RULES: &[&LineRule] = &[
    &block_size_refused::RULE,
    &boot_order_ignored_by_uefi::RULE,
    &boot_order_twice::RULE,
    &bus_missing::RULE,
    &cache_contradicted::RULE,
    &direct_on_one_node::RULE,
    &discard_on_one_node::RULE,
    &drive_protocol_unknown::RULE,
    &encryption_secret_missing::RULE,
    &fat_directory_refused::RULE,
    &fat_directory_writable::RULE,
    &flash_refused::RULE,
    &force_share_writable::RULE,
    &iothread_mapping_refused::RULE,
    &iothread_without_ioeventfd::RULE,
    &locking_off::RULE,
    &memory_size_mismatch::RULE,
    &name_refused::RULE,
    &node_on_two_iothreads::RULE,
    &node_order::RULE,
    &node_unused::RULE,
    &node_used_twice::RULE,
    &nvme_transfer_size_refused::RULE,
    &property_refused::RULE,
    &qcow2_cache_refused::RULE,
    &qcow2_v2_option::RULE,
    &queue_count_refused::RULE,
    &queue_size_refused::RULE,
    &read_only_on_one_node::RULE,
    &sd_card_size_refused::RULE,
    &serial_too_long::RULE,
    &slice_unaligned::RULE,
    &slot_taken::RULE,
    &snapshot_ignored_by_blockdev::RULE,
    &unit_out_of_range::RULE,
    &vectors_too_few::RULE,
    &vhost_user_server_socket::RULE,
];

/// The checks of the rules of every reader that need the target.
static SHARED_RULES: [(&Rule, Check); 2] = [
    (&INVALID_VALUE, invalid_value::check),
    (&MISSING_VALUE, missing_value::check),
];

/// The rules of this crate, sorted by name.
pub static RULES: &[&Rule] = &TextRule::rules::<{ TEXT_RULES.len() }>(TEXT_RULES);

/// Runs the rules about the text on a command line.
pub fn check(document: &Document, context: &Context<'_>, outcome: &mut Outcome) {
    let line = Line::new(context, document);
    let own = TEXT_RULES
        .iter()
        .filter_map(|it| Some((&it.rule, it.check?)));
    for (rule, check) in own.chain(SHARED_RULES) {
        outcome.judge(context, rule, |report| check(&line, report));
    }
}
