//! All rules, one file each, sorted by name.

mod address_beyond_controller;
mod address_twice;
mod aio_ignored;
mod aio_slots_exhausted;
mod alias_dropped;
mod alias_twice;
mod allowance_unknown_rule;
mod allowance_unused;
mod allowance_without_reason;
mod backing_format_missing;
mod backing_image_written;
mod backing_missing;
mod backing_protocol_url;
mod backing_unsupported;
mod bfq_on_fast_media;
mod blkio_device_twice;
mod boot_order_beside_boot_device;
mod btrfs_cow_image;
mod btrfs_dio_buffered;
mod btrfs_dio_csum_corruption;
mod btrfs_dio_raid_mirror_divergence;
mod btrfs_nocow_mirrored;
mod btrfs_nocow_snapshotted;
mod btrfs_raid56;
mod bus_emulated;
mod bus_option_refused;
mod cache_implicit;
mod cache_unsafe;
mod cache_writethrough;
mod chain_too_long;
mod controller_refused;
mod copy_on_read_refused;
mod copy_on_read_without_backing;
mod data_file_missing;
mod data_file_unexpected;
mod data_store_refused;
mod detect_zeroes_unmap_no_discard;
mod device_bus_refused;
mod discard_crypt_blocked;
mod discard_dropped;
mod discard_missing_thin;
mod disk_address_refused;
mod duplicate_disk_source;
mod duplicate_target;
mod emulator_missing;
mod encryption_mismatch;
mod encryption_refused;
mod error_policy_ignore;
mod format_mismatch;
mod format_missing;
mod format_refused;
mod guest_sector_512_on_4kn;
mod guests_exceed_aio_slots;
mod guests_exceed_free_space;
mod guests_exceed_hugepages;
mod hugepages_insufficient;
mod identity_refused;
mod image_empty;
mod image_larger_than_free_space;
mod image_newer_than_qemu;
mod image_on_volatile_filesystem;
mod image_permission_denied;
mod image_shared_by_guests;
mod image_size_unaligned;
mod image_unreachable;
mod image_world_readable;
mod io_native_on_buffered_dio;
mod io_native_sparse_image;
mod io_uring_disabled;
mod iothread_missing_fast_media;
mod iothread_undefined;
mod iothread_unsupported_bus;
mod iothread_unused;
mod iso_writable;
mod known_bad_build;
mod login_refused;
mod loop_device_buffered;
mod lun_on_virtio_blk;
mod lun_option_refused;
mod lun_refused;
mod lun_without_reservations;
mod lvm_origin_with_snapshots;
mod lvm_scans_guest_volumes;
mod lvm_snapshot_fills_up;
mod machine_missing_in_qemu;
mod machine_type_old_defaults;
mod md_degraded;
mod migration_direct_io_differs;
mod migration_discard_granularity_differs;
mod migration_io_uring_differs;
mod migration_machine_differs;
mod migration_sector_size_differs;
mod migration_size_differs;
mod migration_source_missing;
mod mount_nobarrier;
mod multipath_single_path;
mod native_without_direct;
mod nbd_without_reconnect;
mod network_server_refused;
mod network_source_refused;
mod nfs_locks_stay;
mod nfs_soft_mount;
mod nvme_namespace_zero;
mod odirect_silently_buffered;
mod odirect_unsupported;
mod overlay_smaller_than_backing;
mod overlay_volatile;
mod partition_misaligned;
mod passthrough_option_refused;
mod qcow2_aes_encryption;
mod qcow2_clusters_small;
mod qcow2_corrupt_bit;
mod qcow2_device_too_small;
mod qcow2_dirty_bit;
mod qcow2_discard_corruption;
mod qcow2_l2_cache_small;
mod qcow2_lazy_refcounts;
mod qcow2_on_device_fragments;
mod qcow2_on_thin_volume;
mod qcow2_option_refused;
mod queues_gt_vcpus;
mod read_only_filesystem;
mod read_only_ide_disk;
mod refused_by_qemu;
mod relative_path;
mod reservation_conflict_stops_guest;
mod rotation_rate_unknown;
mod scsi_controller_implicit;
mod serial_twice;
mod shareable_cached;
mod slice_beyond_storage;
mod source_is_mounted;
mod source_kind_mismatch;
mod source_missing;
mod source_option_ignored;
mod spec_refused;
mod startup_policy_refused;
mod target_bus_mismatch;
mod target_name_refused;
mod tcg_instead_of_kvm;
mod thin_chunk_large_with_snapshots;
mod thin_discards_ignored;
mod thin_pool_nearly_full;
mod thin_pool_overcommitted;
mod thin_zeroing_off;
mod thread_pool_refused;
mod throttle_group_refused;
mod throttle_limits_refused;
mod transient_disk_refused;
mod unstable_device_path;
mod unsupported_by_target;
mod usb_controller_slow;
mod usb_disabled;
mod usb_drive_empty;
mod vhost_user_flushes_lost;
mod vhost_user_needs_shared_mem;
mod vhost_user_option_refused;
mod vhost_user_without_reconnect;
mod vhost_vdpa_needs_direct;
mod web_source_writable;
mod windows_discard_granularity;
mod zfs_dio_verify;
mod zfs_record_large;
mod zfs_sync_disabled;

#[cfg(test)]
#[allow(
    dead_code,
    reason = "`cargo xtask new-rule` copies it; tests compile it"
)]
mod template;

use vmdisk_rule::Rule;

/// Every rule, sorted by name.
pub static RULES: &[&Rule] = &[
    &address_beyond_controller::RULE,
    &address_twice::RULE,
    &aio_ignored::RULE,
    &aio_slots_exhausted::RULE,
    &alias_dropped::RULE,
    &alias_twice::RULE,
    &allowance_unknown_rule::RULE,
    &allowance_unused::RULE,
    &allowance_without_reason::RULE,
    &backing_format_missing::RULE,
    &backing_image_written::RULE,
    &backing_missing::RULE,
    &backing_protocol_url::RULE,
    &backing_unsupported::RULE,
    &bfq_on_fast_media::RULE,
    &blkio_device_twice::RULE,
    &boot_order_beside_boot_device::RULE,
    &btrfs_cow_image::RULE,
    &btrfs_dio_buffered::RULE,
    &btrfs_dio_csum_corruption::RULE,
    &btrfs_dio_raid_mirror_divergence::RULE,
    &btrfs_nocow_mirrored::RULE,
    &btrfs_nocow_snapshotted::RULE,
    &btrfs_raid56::RULE,
    &bus_emulated::RULE,
    &bus_option_refused::RULE,
    &cache_implicit::RULE,
    &cache_unsafe::RULE,
    &cache_writethrough::RULE,
    &chain_too_long::RULE,
    &controller_refused::RULE,
    &copy_on_read_refused::RULE,
    &copy_on_read_without_backing::RULE,
    &data_file_missing::RULE,
    &data_file_unexpected::RULE,
    &data_store_refused::RULE,
    &detect_zeroes_unmap_no_discard::RULE,
    &device_bus_refused::RULE,
    &discard_crypt_blocked::RULE,
    &discard_dropped::RULE,
    &discard_missing_thin::RULE,
    &disk_address_refused::RULE,
    &duplicate_disk_source::RULE,
    &duplicate_target::RULE,
    &emulator_missing::RULE,
    &encryption_mismatch::RULE,
    &encryption_refused::RULE,
    &error_policy_ignore::RULE,
    &format_mismatch::RULE,
    &format_missing::RULE,
    &format_refused::RULE,
    &guest_sector_512_on_4kn::RULE,
    &guests_exceed_aio_slots::RULE,
    &guests_exceed_free_space::RULE,
    &guests_exceed_hugepages::RULE,
    &hugepages_insufficient::RULE,
    &identity_refused::RULE,
    &image_empty::RULE,
    &image_larger_than_free_space::RULE,
    &image_newer_than_qemu::RULE,
    &image_on_volatile_filesystem::RULE,
    &image_permission_denied::RULE,
    &image_shared_by_guests::RULE,
    &image_size_unaligned::RULE,
    &image_unreachable::RULE,
    &image_world_readable::RULE,
    &io_native_on_buffered_dio::RULE,
    &io_native_sparse_image::RULE,
    &io_uring_disabled::RULE,
    &iothread_missing_fast_media::RULE,
    &iothread_undefined::RULE,
    &iothread_unsupported_bus::RULE,
    &iothread_unused::RULE,
    &iso_writable::RULE,
    &known_bad_build::RULE,
    &login_refused::RULE,
    &loop_device_buffered::RULE,
    &lun_on_virtio_blk::RULE,
    &lun_option_refused::RULE,
    &lun_refused::RULE,
    &lun_without_reservations::RULE,
    &lvm_origin_with_snapshots::RULE,
    &lvm_scans_guest_volumes::RULE,
    &lvm_snapshot_fills_up::RULE,
    &machine_missing_in_qemu::RULE,
    &machine_type_old_defaults::RULE,
    &md_degraded::RULE,
    &migration_direct_io_differs::RULE,
    &migration_discard_granularity_differs::RULE,
    &migration_io_uring_differs::RULE,
    &migration_machine_differs::RULE,
    &migration_sector_size_differs::RULE,
    &migration_size_differs::RULE,
    &migration_source_missing::RULE,
    &mount_nobarrier::RULE,
    &multipath_single_path::RULE,
    &native_without_direct::RULE,
    &nbd_without_reconnect::RULE,
    &network_server_refused::RULE,
    &network_source_refused::RULE,
    &nfs_locks_stay::RULE,
    &nfs_soft_mount::RULE,
    &nvme_namespace_zero::RULE,
    &odirect_silently_buffered::RULE,
    &odirect_unsupported::RULE,
    &overlay_smaller_than_backing::RULE,
    &overlay_volatile::RULE,
    &partition_misaligned::RULE,
    &passthrough_option_refused::RULE,
    &qcow2_aes_encryption::RULE,
    &qcow2_clusters_small::RULE,
    &qcow2_corrupt_bit::RULE,
    &qcow2_device_too_small::RULE,
    &qcow2_dirty_bit::RULE,
    &qcow2_discard_corruption::RULE,
    &qcow2_l2_cache_small::RULE,
    &qcow2_lazy_refcounts::RULE,
    &qcow2_on_device_fragments::RULE,
    &qcow2_on_thin_volume::RULE,
    &qcow2_option_refused::RULE,
    &queues_gt_vcpus::RULE,
    &read_only_filesystem::RULE,
    &read_only_ide_disk::RULE,
    &refused_by_qemu::RULE,
    &relative_path::RULE,
    &reservation_conflict_stops_guest::RULE,
    &rotation_rate_unknown::RULE,
    &scsi_controller_implicit::RULE,
    &serial_twice::RULE,
    &shareable_cached::RULE,
    &slice_beyond_storage::RULE,
    &source_is_mounted::RULE,
    &source_kind_mismatch::RULE,
    &source_missing::RULE,
    &source_option_ignored::RULE,
    &spec_refused::RULE,
    &startup_policy_refused::RULE,
    &target_bus_mismatch::RULE,
    &target_name_refused::RULE,
    &tcg_instead_of_kvm::RULE,
    &thin_chunk_large_with_snapshots::RULE,
    &thin_discards_ignored::RULE,
    &thin_pool_nearly_full::RULE,
    &thin_pool_overcommitted::RULE,
    &thin_zeroing_off::RULE,
    &thread_pool_refused::RULE,
    &throttle_group_refused::RULE,
    &throttle_limits_refused::RULE,
    &transient_disk_refused::RULE,
    &unstable_device_path::RULE,
    &unsupported_by_target::RULE,
    &usb_controller_slow::RULE,
    &usb_disabled::RULE,
    &usb_drive_empty::RULE,
    &vhost_user_flushes_lost::RULE,
    &vhost_user_needs_shared_mem::RULE,
    &vhost_user_option_refused::RULE,
    &vhost_user_without_reconnect::RULE,
    &vhost_vdpa_needs_direct::RULE,
    &web_source_writable::RULE,
    &windows_discard_granularity::RULE,
    &zfs_dio_verify::RULE,
    &zfs_record_large::RULE,
    &zfs_sync_disabled::RULE,
];
