//! Reads, checks, generates and explains the disk configuration of QEMU/libvirt guests.
