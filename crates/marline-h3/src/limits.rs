//! Every limit on what a peer can make a connection store, and the reason for its value.

/// Bytes of one field section, as RFC 9114 section 4.2.2 counts them: names, values, and 32 per field. The largest
/// cookies in use are below 16 KiB; the rest is for other fields.
pub const MAX_FIELD_SECTION_BYTES: u64 = 32 * 1024;

/// Bytes of the dynamic table that the peer's encoder may use. The fields of a page's requests fit: a user agent, a
/// few cookies, an authority.
pub const QPACK_TABLE_BYTES: u64 = 4096;

/// Streams that may wait for the peer's encoder stream. Each holds a field section; with none, an encoder would have
/// to wait a round trip before it uses what it inserted.
pub const QPACK_BLOCKED_STREAMS: u64 = 16;

/// Bytes that a stream holds back while its field section waits for the encoder stream. A caller that stops reading
/// such a stream, as [`Connection::is_blocked`](crate::Connection::is_blocked) asks, holds one chunk at most.
pub const MAX_HELD_BYTES: usize = 1 << 20;

/// Bytes of a SETTINGS frame. There are ten registered settings, and each takes at most 16 bytes.
pub const MAX_SETTINGS_BYTES: u64 = 1024;

/// Bytes of a priority field value. `u=7, i` is 6; the rest is for extensions.
pub const MAX_PRIORITY_BYTES: u64 = 256;

/// Priorities that are kept for requests which have not arrived, as many as browsers have requests in progress.
pub const MAX_EARLY_PRIORITIES: usize = 128;

/// Unidirectional streams that the peer has open: three that the connection needs, and others whose types are
/// reserved to check that they are ignored.
pub const MAX_UNI_STREAMS: usize = 64;

/// Interim responses before a response. A server sends one or two; progress reports, some tens.
pub const MAX_INTERIM_RESPONSES: u32 = 64;
