//! QEMU command lines for a disk.
