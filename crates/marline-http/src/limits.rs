//! Every limit on what a peer can make this crate spend, and why it has that value.

use std::time::Duration;

/// Connections open at once, over all versions. One idle connection costs tens of KiB: 10,000 fit in a
/// small virtual machine.
pub const MAX_CONNECTIONS: usize = 10_000;

/// Requests under way on one connection. Browsers load pages with some 100 at once (RFC 9114
/// section 6.1 asks for at least 100).
pub const MAX_CONCURRENT_REQUESTS: u32 = 256;

/// Bytes of one request's or response's header section. The largest cookies in use stay below
/// 16 KiB; twice that leaves space for the rest.
pub const MAX_HEADER_BYTES: u32 = 32 * 1024;

/// Bytes of one HTTP/3 frame other than DATA, which is held until all of it is there. Twice
/// [`MAX_HEADER_BYTES`]: a header section that is only a little too large gets its 431.
pub const MAX_FRAME_BYTES: u64 = 2 * MAX_HEADER_BYTES as u64;

/// Time for a TLS or QUIC handshake. Five round trips of a bad satellite link and their losses.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for the header section of a request to arrive once it began: slow-loris clients send one
/// byte now and then.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(15);

/// Time a connection may move no byte in either direction. Longer than the gaps of a phone in a
/// tunnel, shorter than a night.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that requests under way have to finish after a shutdown began.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// Time that connections have to say goodbye when they did not finish within [`SHUTDOWN_GRACE`]: their last
/// packets leave at once.
pub const GOODBYE: Duration = Duration::from_millis(200);

/// Ranges in one request. Viewers of documents ask for tens; more is an attack (RFC 9110 section 17.15).
pub const MAX_RANGES: usize = 64;

/// Bytes read from a file at once: large enough that the system call costs little, small enough
/// for thousands of responses at once.
pub const FILE_CHUNK_BYTES: usize = 64 * 1024;

/// Times a server looks for a port that is free for both TCP and UDP when asked for any.
pub const PORT_ATTEMPTS: usize = 16;

/// Objects of a page that is loaded. The largest pages have some thousands.
pub const MAX_PAGE_OBJECTS: usize = 10_000;

/// Bytes of one object of a page: more than any page has, few enough to count.
pub const MAX_PAGE_OBJECT_BYTES: u64 = 1 << 30;
