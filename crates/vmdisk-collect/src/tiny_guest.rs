//! A minimal guest that does the same as every guest: handle a timer interrupt, enable paging, run 64-bit code, and
//! report success.

/// The guest's message on [`PORT`].
pub(crate) const SAYS: &str = "vmdisk\n";

/// The port of QEMU's `isa-debugcon`.
pub(crate) const PORT: u16 = 0xe9;

/// Size of the disk.
const DISK_BYTES: usize = 1 << 20;

/// The code after the first byte of the boot sector, assembled from the instructions in the comments.
#[rustfmt::skip]
const CODE: &[u8] = &[
    0x31, 0xc0,                               // xor ax, ax
    0x8e, 0xd8,                               // mov ds, ax
    0x8e, 0xc0,                               // mov es, ax
    0x8e, 0xd0,                               // mov ss, ax
    0xbc, 0x00, 0x7c,                         // mov sp, 0x7c00
    // The firmware counts timer ticks at 0x46c: wait for the next one.
    0xfb,                                     // sti
    0xa1, 0x6c, 0x04,                         // mov ax, [0x46c]
    0xf4,                                     // tick: hlt
    0x3b, 0x06, 0x6c, 0x04,                   // cmp ax, [0x46c]
    0x74, 0xf9,                               // je tick
    0xfa,                                     // cli
    // Page tables at 0x1000, 0x2000 and 0x3000: identity mapping of the first 2 MiB.
    0xfc,                                     // cld
    0xbf, 0x00, 0x10,                         // mov di, 0x1000
    0xb9, 0x00, 0x18,                         // mov cx, 0x1800
    0x31, 0xc0,                               // xor ax, ax
    0xf3, 0xab,                               // rep stosw
    0xc7, 0x06, 0x00, 0x10, 0x03, 0x20,       // mov word [0x1000], 0x2003
    0xc7, 0x06, 0x00, 0x20, 0x03, 0x30,       // mov word [0x2000], 0x3003
    0xc7, 0x06, 0x00, 0x30, 0x83, 0x00,       // mov word [0x3000], 0x83
    // Enable PAE, load the tables, enable long mode and paging.
    0x0f, 0x20, 0xe0,                         // mov eax, cr4
    0x0c, 0x20,                               // or al, 0x20
    0x0f, 0x22, 0xe0,                         // mov cr4, eax
    0x66, 0xb8, 0x00, 0x10, 0x00, 0x00,       // mov eax, 0x1000
    0x0f, 0x22, 0xd8,                         // mov cr3, eax
    0x66, 0xb9, 0x80, 0x00, 0x00, 0xc0,       // mov ecx, 0xc0000080
    0x0f, 0x32,                               // rdmsr
    0x0d, 0x00, 0x01,                         // or ax, 0x100
    0x0f, 0x30,                               // wrmsr
    0x0f, 0x01, 0x16, 0x98, 0x7c,             // lgdt [0x7c98]
    0x0f, 0x20, 0xc0,                         // mov eax, cr0
    0x66, 0x0d, 0x01, 0x00, 0x00, 0x80,       // or eax, 0x80000001
    0x0f, 0x22, 0xc0,                         // mov cr0, eax
    0xea, 0x68, 0x7c, 0x08, 0x00,             // jmp 8:0x7c68
    // 64-bit code starts here.
    0xbe, 0x7b, 0x7c, 0x00, 0x00,             // mov esi, 0x7c7b
    0xb9, 0x07, 0x00, 0x00, 0x00,             // mov ecx, 7
    0x66, 0xba, 0xe9, 0x00,                   // mov dx, 0xe9
    0xf3, 0x6e,                               // rep outsb
    0xf4,                                     // end: hlt
    0xeb, 0xfd,                               // jmp end
    b'v', b'm', b'd', b'i', b's', b'k', b'\n',
    // The segment descriptor table is aligned to 8 bytes.
    0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x9a, 0x20, 0x00,
    0x0f, 0x00, 0x88, 0x7c, 0x00, 0x00,       // its length less one, and where it is
];

/// Returns a bootable disk image with the guest.
pub(crate) fn disk() -> Vec<u8> {
    let mut disk = vec![0; DISK_BYTES];
    disk[..CODE.len()].copy_from_slice(CODE);
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    disk
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The load address of a boot sector.
    const ORIGIN: u16 = 0x7c00;

    #[test]
    fn the_addresses_in_the_code_are_correct() {
        let at = |address: u16| usize::from(address - ORIGIN);
        assert!(CODE[at(0x7c7b)..].starts_with(SAYS.as_bytes()));
        assert_eq!(CODE.len() - at(0x7c98), 6);
        assert_eq!(CODE[at(0x7c68)], 0xbe, "64-bit code begins here");
        assert_eq!(at(0x7c88) % 8, 0);
        let low = u16::from_le_bytes([CODE[at(0x7c74)], CODE[at(0x7c75)]]);
        assert_eq!(low, PORT);
        assert!(
            CODE.len() <= 440,
            "some firmware keeps a table after the code"
        );
        assert_eq!(disk().len(), DISK_BYTES);
    }
}
