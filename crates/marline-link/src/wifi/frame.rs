//! How many bytes packets become.

/// QoS header and frame check sequence of an MPDU.
const MAC_BYTES: u32 = 26 + 4;
/// The LLC and SNAP headers of a packet.
const LLC_BYTES: u32 = 8;
/// Addresses and length of a packet in an A-MSDU.
const SUBFRAME_BYTES: u32 = 14;
/// What separates MPDUs in an A-MPDU.
const DELIMITER_BYTES: u32 = 4;
/// Bytes of an A-MPDU of one MPDU of one packet, besides the packet's own.
pub(super) const OVERHEAD: u32 = DELIMITER_BYTES + MAC_BYTES + LLC_BYTES;

/// Bytes of the MPDU that carries one packet of `ip` bytes.
pub(super) const fn mpdu(ip: u32) -> u32 {
    MAC_BYTES + LLC_BYTES + ip
}

/// Bytes of the MPDU that carries an A-MSDU of `bytes`.
pub(super) const fn mpdu_of_amsdu(bytes: u32) -> u32 {
    MAC_BYTES + bytes
}

/// Bytes of an A-MSDU that was `bytes` long, with another packet of `ip` bytes; the first joins nothing.
pub(super) const fn amsdu(bytes: u32, ip: u32) -> u32 {
    pad(bytes) + SUBFRAME_BYTES + LLC_BYTES + ip
}

/// Bytes of an A-MPDU that was `bytes` long, with another MPDU of `mpdu` bytes; the first joins nothing.
pub(super) const fn ampdu(bytes: u32, mpdu: u32) -> u32 {
    pad(bytes) + DELIMITER_BYTES + mpdu
}

/// All but the last of an aggregate end at a multiple of 4 bytes.
const fn pad(bytes: u32) -> u32 {
    bytes.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::{ampdu, amsdu, mpdu, mpdu_of_amsdu};

    #[test]
    fn aggregates_pad_all_but_the_last() {
        assert_eq!(mpdu(1500), 1538);
        assert_eq!(ampdu(0, 1538), 1542);
        assert_eq!(ampdu(1542, 1538), 1544 + 1542);
        assert_eq!((0..42).fold(0, |sum, _| ampdu(sum, 1538)), 41 * 1544 + 1542);
    }

    #[test]
    fn five_packets_fill_the_larger_amsdu() {
        let five = (0..5).fold(0, |sum, _| amsdu(sum, 1500));
        assert_eq!(five, 7618);
        assert!(amsdu(five, 1500) > 7935);
        assert_eq!(mpdu_of_amsdu(five), 7648);
    }
}
