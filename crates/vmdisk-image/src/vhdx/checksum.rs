//! CRC-32C, which guards the headers and the region table.

/// The polynomial of Castagnoli, its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                value >> 1 ^ POLYNOMIAL
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
}

fn crc32c(bytes: impl Iterator<Item = u8>) -> u32 {
    !bytes.fold(u32::MAX, |value, byte| {
        value >> 8 ^ TABLE[(value as u8 ^ byte) as usize]
    })
}

/// Whether the checksum at byte 4 fits `bytes`, its own four bytes counted as zero; never when they are not `length`.
pub(super) fn fits(bytes: &[u8], length: usize) -> bool {
    let Some(expected) = crate::bytes::le32(bytes, 4) else {
        return false;
    };
    let covered = bytes
        .iter()
        .enumerate()
        .map(|(at, byte)| if (4..8).contains(&at) { 0 } else { *byte });
    bytes.len() == length && crc32c(covered) == expected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_crc_32c_comes_out() {
        // The check value that catalogues of checksums give for CRC-32C, of the nine digits.
        assert_eq!(crc32c(b"123456789".iter().copied()), 0xe306_9283);
    }
}
