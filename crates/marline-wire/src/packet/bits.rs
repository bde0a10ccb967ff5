//! The first byte of a packet (RFC 9000, sections 17.2 and 17.3).

/// Set in long headers, clear in short ones.
pub const LONG_FORM: u8 = 0x80;
/// Fixed bit: set in every packet of version 1, unless the peer sent `grease_quic_bit` (RFC 9287).
pub const FIXED: u8 = 0x40;
/// Short header: the latency spin bit (RFC 9000, section 17.4).
pub const SPIN: u8 = 0x20;
/// Long header: the packet type.
pub const LONG_TYPE: u8 = 0x30;
/// Short header: the key phase bit (RFC 9001, section 6).
pub const KEY_PHASE: u8 = 0x04;
/// Long header: zero once header protection is removed.
pub const RESERVED_LONG: u8 = 0x0c;
/// Short header: zero once header protection is removed.
pub const RESERVED_SHORT: u8 = 0x18;
/// Length of the packet number in bytes, less one.
pub const NUMBER_LEN: u8 = 0x03;
