//! All rules, one file each, sorted by name.

mod address_beyond_controller;
mod address_twice;
mod aio_ignored;
mod aio_slots_exhausted;
mod alias_twice;
mod allowance_unknown_rule;
mod allowance_unused;
mod allowance_without_reason;
mod backing_format_missing;
mod backing_missing;
mod backing_protocol_url;
mod backing_unsupported;
mod blkio_device_twice;
mod block_size_refused;
mod boot_order_beside_boot_device;
mod boot_order_twice;
mod btrfs_cow_image;
mod btrfs_dio_buffered;
mod btrfs_dio_csum_corruption;
mod btrfs_dio_raid_mirror_divergence;
mod btrfs_nocow_snapshotted;
mod bus_emulated;
mod bus_missing;
mod bus_option_refused;
mod cache_contradicted;
mod cache_implicit;
mod cache_unsafe;
mod cache_writethrough;
mod chain_too_long;
mod controller_refused;
mod copy_on_read_refused;
mod data_file_missing;
mod data_file_unexpected;
mod data_store_refused;
mod detect_zeroes_unmap_no_discard;
mod device_bus_refused;
mod direct_on_one_node;
mod discard_crypt_blocked;
mod discard_missing_thin;
mod discard_on_one_node;
mod disk_address_refused;
mod drive_protocol_unknown;
mod duplicate_disk_source;
mod duplicate_target;
mod duplicate_value;
mod encryption_mismatch;
mod encryption_refused;
mod encryption_secret_missing;
mod force_share_writable;
mod format_mismatch;
mod format_missing;
mod format_refused;
mod guest_sector_512_on_4kn;
mod hugepages_insufficient;
mod identity_refused;
mod image_empty;
mod image_size_unaligned;
mod invalid_value;
mod io_native_on_buffered_dio;
mod io_uring_disabled;
mod iothread_mapping_refused;
mod iothread_missing_fast_media;
mod iothread_undefined;
mod iothread_unsupported_bus;
mod iothread_unused;
mod iothread_without_ioeventfd;
mod locking_off;
mod login_refused;
mod lun_on_virtio_blk;
mod lun_option_refused;
mod lun_refused;
mod machine_missing_in_qemu;
mod machine_type_old_defaults;
mod md_degraded;
mod memory_size_mismatch;
mod migration_direct_io_differs;
mod migration_discard_granularity_differs;
mod migration_io_uring_differs;
mod migration_machine_differs;
mod migration_sector_size_differs;
mod migration_source_missing;
mod missing_value;
mod name_refused;
mod native_without_direct;
mod network_server_refused;
mod network_source_refused;
mod node_on_two_iothreads;
mod node_order;
mod node_unused;
mod node_used_twice;
mod nvme_namespace_zero;
mod nvme_transfer_size_refused;
mod odirect_silently_buffered;
mod odirect_unsupported;
mod overlay_smaller_than_backing;
mod passthrough_option_refused;
mod property_refused;
mod qcow2_aes_encryption;
mod qcow2_cache_refused;
mod qcow2_corrupt_bit;
mod qcow2_dirty_bit;
mod qcow2_discard_corruption;
mod qcow2_on_device_fragments;
mod qcow2_option_refused;
mod qcow2_v2_option;
mod queue_count_refused;
mod queue_size_refused;
mod queues_gt_vcpus;
mod read_only_filesystem;
mod read_only_ide_disk;
mod read_only_on_one_node;
mod refused_by_qemu;
mod relative_path;
mod rotation_rate_unknown;
mod scsi_controller_implicit;
mod serial_too_long;
mod serial_twice;
mod shareable_cached;
mod slice_beyond_storage;
mod slice_unaligned;
mod slot_taken;
mod snapshot_ignored_by_blockdev;
mod source_is_mounted;
mod source_kind_mismatch;
mod source_missing;
mod source_option_ignored;
mod startup_policy_refused;
mod target_bus_mismatch;
mod target_name_refused;
mod tcg_instead_of_kvm;
mod thin_chunk_large_with_snapshots;
mod thin_zeroing_off;
mod thread_pool_refused;
mod throttle_group_refused;
mod throttle_limits_refused;
mod transient_disk_refused;
mod undeclared_prefix;
mod unit_out_of_range;
mod unknown_attribute;
mod unknown_element;
mod unstable_device_path;
mod unsupported_by_target;
mod usb_disabled;
mod usb_drive_empty;
mod vectors_too_few;
mod vhost_user_flushes_lost;
mod vhost_user_needs_shared_mem;
mod vhost_user_option_refused;
mod vhost_user_server_socket;
mod vhost_vdpa_needs_direct;
mod web_source_writable;

use crate::Rule;
use crate::reported::{
    compares_hosts, is_behind_change, report_problems, report_problems_if, reported_by_a_trial,
    reported_with_the_allowances,
};

/// Every rule, sorted by name.
pub static RULES: &[&Rule] = &[
    &address_beyond_controller::RULE,
    &address_twice::RULE,
    &aio_ignored::RULE,
    &aio_slots_exhausted::RULE,
    &alias_twice::RULE,
    &allowance_unknown_rule::RULE,
    &allowance_unused::RULE,
    &allowance_without_reason::RULE,
    &backing_format_missing::RULE,
    &backing_missing::RULE,
    &backing_protocol_url::RULE,
    &backing_unsupported::RULE,
    &blkio_device_twice::RULE,
    &block_size_refused::RULE,
    &boot_order_beside_boot_device::RULE,
    &boot_order_twice::RULE,
    &btrfs_cow_image::RULE,
    &btrfs_dio_buffered::RULE,
    &btrfs_dio_csum_corruption::RULE,
    &btrfs_dio_raid_mirror_divergence::RULE,
    &btrfs_nocow_snapshotted::RULE,
    &bus_emulated::RULE,
    &bus_missing::RULE,
    &bus_option_refused::RULE,
    &cache_contradicted::RULE,
    &cache_implicit::RULE,
    &cache_unsafe::RULE,
    &cache_writethrough::RULE,
    &chain_too_long::RULE,
    &controller_refused::RULE,
    &copy_on_read_refused::RULE,
    &data_file_missing::RULE,
    &data_file_unexpected::RULE,
    &data_store_refused::RULE,
    &detect_zeroes_unmap_no_discard::RULE,
    &device_bus_refused::RULE,
    &direct_on_one_node::RULE,
    &discard_crypt_blocked::RULE,
    &discard_missing_thin::RULE,
    &discard_on_one_node::RULE,
    &disk_address_refused::RULE,
    &drive_protocol_unknown::RULE,
    &duplicate_disk_source::RULE,
    &duplicate_target::RULE,
    &duplicate_value::RULE,
    &encryption_mismatch::RULE,
    &encryption_refused::RULE,
    &encryption_secret_missing::RULE,
    &force_share_writable::RULE,
    &format_mismatch::RULE,
    &format_missing::RULE,
    &format_refused::RULE,
    &guest_sector_512_on_4kn::RULE,
    &hugepages_insufficient::RULE,
    &identity_refused::RULE,
    &image_empty::RULE,
    &image_size_unaligned::RULE,
    &invalid_value::RULE,
    &io_native_on_buffered_dio::RULE,
    &io_uring_disabled::RULE,
    &iothread_mapping_refused::RULE,
    &iothread_missing_fast_media::RULE,
    &iothread_undefined::RULE,
    &iothread_unsupported_bus::RULE,
    &iothread_unused::RULE,
    &iothread_without_ioeventfd::RULE,
    &locking_off::RULE,
    &login_refused::RULE,
    &lun_on_virtio_blk::RULE,
    &lun_option_refused::RULE,
    &lun_refused::RULE,
    &machine_missing_in_qemu::RULE,
    &machine_type_old_defaults::RULE,
    &md_degraded::RULE,
    &memory_size_mismatch::RULE,
    &migration_direct_io_differs::RULE,
    &migration_discard_granularity_differs::RULE,
    &migration_io_uring_differs::RULE,
    &migration_machine_differs::RULE,
    &migration_sector_size_differs::RULE,
    &migration_source_missing::RULE,
    &missing_value::RULE,
    &name_refused::RULE,
    &native_without_direct::RULE,
    &network_server_refused::RULE,
    &network_source_refused::RULE,
    &node_on_two_iothreads::RULE,
    &node_order::RULE,
    &node_unused::RULE,
    &node_used_twice::RULE,
    &nvme_namespace_zero::RULE,
    &nvme_transfer_size_refused::RULE,
    &odirect_silently_buffered::RULE,
    &odirect_unsupported::RULE,
    &overlay_smaller_than_backing::RULE,
    &passthrough_option_refused::RULE,
    &property_refused::RULE,
    &qcow2_aes_encryption::RULE,
    &qcow2_cache_refused::RULE,
    &qcow2_corrupt_bit::RULE,
    &qcow2_dirty_bit::RULE,
    &qcow2_discard_corruption::RULE,
    &qcow2_on_device_fragments::RULE,
    &qcow2_option_refused::RULE,
    &qcow2_v2_option::RULE,
    &queue_count_refused::RULE,
    &queue_size_refused::RULE,
    &queues_gt_vcpus::RULE,
    &read_only_filesystem::RULE,
    &read_only_ide_disk::RULE,
    &read_only_on_one_node::RULE,
    &refused_by_qemu::RULE,
    &relative_path::RULE,
    &rotation_rate_unknown::RULE,
    &scsi_controller_implicit::RULE,
    &serial_too_long::RULE,
    &serial_twice::RULE,
    &shareable_cached::RULE,
    &slice_beyond_storage::RULE,
    &slice_unaligned::RULE,
    &slot_taken::RULE,
    &snapshot_ignored_by_blockdev::RULE,
    &source_is_mounted::RULE,
    &source_kind_mismatch::RULE,
    &source_missing::RULE,
    &source_option_ignored::RULE,
    &startup_policy_refused::RULE,
    &target_bus_mismatch::RULE,
    &target_name_refused::RULE,
    &tcg_instead_of_kvm::RULE,
    &thin_chunk_large_with_snapshots::RULE,
    &thin_zeroing_off::RULE,
    &thread_pool_refused::RULE,
    &throttle_group_refused::RULE,
    &throttle_limits_refused::RULE,
    &transient_disk_refused::RULE,
    &undeclared_prefix::RULE,
    &unit_out_of_range::RULE,
    &unknown_attribute::RULE,
    &unknown_element::RULE,
    &unstable_device_path::RULE,
    &unsupported_by_target::RULE,
    &usb_disabled::RULE,
    &usb_drive_empty::RULE,
    &vectors_too_few::RULE,
    &vhost_user_flushes_lost::RULE,
    &vhost_user_needs_shared_mem::RULE,
    &vhost_user_option_refused::RULE,
    &vhost_user_server_socket::RULE,
    &vhost_vdpa_needs_direct::RULE,
    &web_source_writable::RULE,
];

/// The rule with this name.
pub fn find(name: &str) -> Option<&'static Rule> {
    RULES
        .binary_search_by(|rule| rule.name.cmp(name))
        .ok()
        .map(|at| RULES[at])
}
