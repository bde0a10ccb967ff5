//! Sizes of frames.

/// QoS header and frame check sequence of an MPDU.
const MAC_BYTES: u32 = 26 + 4;
/// The LLC and SNAP headers of a packet.
const LLC_BYTES: u32 = 8;
/// The A-MSDU subframe header: addresses and length.
const SUBFRAME_BYTES: u32 = 14;
/// The delimiter of an MPDU in an A-MPDU.
const DELIMITER_BYTES: u32 = 4;
/// Overhead of an A-MPDU with one MPDU of one packet, in bytes.
pub(super) const OVERHEAD: u32 = DELIMITER_BYTES + MAC_BYTES + LLC_BYTES;

/// Size of an MPDU with one packet of `ip` bytes.
pub(super) const fn mpdu(ip: u32) -> u32 {
    MAC_BYTES + LLC_BYTES + ip
}

/// Size of an MPDU with an A-MSDU of `bytes` bytes.
pub(super) const fn mpdu_of_amsdu(bytes: u32) -> u32 {
    MAC_BYTES + bytes
}

/// Size of an A-MSDU of `bytes` bytes (0 for none) after adding a packet of `ip` bytes.
pub(super) const fn amsdu(bytes: u32, ip: u32) -> u32 {
    pad(bytes) + SUBFRAME_BYTES + LLC_BYTES + ip
}

/// Size of an A-MPDU of `bytes` bytes (0 for none) after adding an MPDU of `mpdu` bytes.
pub(super) const fn ampdu(bytes: u32, mpdu: u32) -> u32 {
    pad(bytes) + DELIMITER_BYTES + mpdu
}

/// Pads to a multiple of 4 bytes, as required for all but the last part of an aggregate.
const fn pad(bytes: u32) -> u32 {
    bytes.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::{ampdu, amsdu, mpdu, mpdu_of_amsdu};

    #[test]
    fn all_but_the_last_subframe_are_padded() {
        assert_eq!(mpdu(1500), 1538);
        assert_eq!(ampdu(0, 1538), 1542);
        assert_eq!(ampdu(1542, 1538), 1544 + 1542);
        assert_eq!((0..42).fold(0, |sum, _| ampdu(sum, 1538)), 41 * 1544 + 1542);
    }

    #[test]
    fn five_full_packets_fit_the_larger_amsdu() {
        let five = (0..5).fold(0, |sum, _| amsdu(sum, 1500));
        assert_eq!(five, 7618);
        assert!(amsdu(five, 1500) > 7935);
        assert_eq!(mpdu_of_amsdu(five), 7648);
    }
}
