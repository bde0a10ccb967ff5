//! Variable-length integers (RFC 9000, section 16).

/// Maximum value of a variable-length integer: 2^62 - 1.
pub const MAX: u64 = (1 << 62) - 1;

/// Encoded size of `value` in bytes: 1, 2, 4 or 8.
///
/// Values above [`MAX`] cannot be encoded; the result is 8 for them.
pub const fn size(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Appends `value` in its shortest encoding.
///
/// # Panics
///
/// In debug builds, if `value` exceeds [`MAX`]. Callers pass values that were decoded from the wire
/// or counters that cannot reach it.
pub fn encode(value: u64, buf: &mut Vec<u8>) {
    debug_assert!(
        value <= MAX,
        "{value} does not fit a variable-length integer"
    );
    match size(value) {
        1 => buf.push(value as u8),
        2 => buf.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        4 => buf.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => buf.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::{Reader, Truncated};
    use proptest::prelude::*;

    #[test]
    fn examples_of_rfc_9000_appendix_a1() {
        for (bytes, value) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            assert_eq!(Reader::new(bytes).varint(), Ok(value));
        }
    }

    proptest! {
        #[test]
        fn decode_inverts_encode(value in 0..=MAX) {
            let mut buf = Vec::new();
            encode(value, &mut buf);
            prop_assert_eq!(buf.len(), size(value));
            let mut reader = Reader::new(&buf);
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert!(reader.is_empty());
            prop_assert_eq!(Reader::new(&buf[..buf.len() - 1]).varint(), Err(Truncated));
        }
    }
}
