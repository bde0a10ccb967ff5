//! Connections of TCP that end at both ends of the tunnel, and are streams of its connection between them.
//!
//! A client answers the connections of its host: `segment` rewrites their packets so that a listener of this host's kernel
//! accepts them, `table` keeps which is which, and `client` opens a stream for each by CONNECT (RFC 9110, section 9.3.6; RFC
//! 9114, section 4.4). The server connects to the destination (`server`). Both pass the bytes on by `relay`.

pub(crate) mod client;
pub(crate) mod local;
pub(crate) mod relay;
pub(crate) mod segment;
pub(crate) mod server;
pub(crate) mod table;

pub use self::local::LocalError;

use http::HeaderName;
use marline::TransportConfig;

/// The field of a server's responses about TCP: [`STREAMS`] in that to CONNECT-IP offers CONNECT; [`PACKETS`] in a refusal of
/// CONNECT says that the connection is carried as packets.
pub(crate) const FIELD: HeaderName = HeaderName::from_static("marline-tcp");

/// See [`FIELD`].
pub(crate) const STREAMS: &str = "streams";

/// See [`FIELD`].
pub(crate) const PACKETS: &str = "packets";

/// The most bytes of one connection that wait for a program that does not read.
const STREAM_WINDOW: u64 = 4 << 20;

/// The bytes of one connection that may wait at first. More is granted while its program reads quickly.
const FIRST_STREAM_WINDOW: u64 = 128 << 10;

/// The most bytes of all connections that wait for programs.
const WINDOW: u64 = 128 << 20;

// Neither some programs that were fast and do not read any more stop the others, nor many that never did.
const _: () = assert!(2 * 16 * STREAM_WINDOW <= WINDOW);
const _: () = assert!(server::MAX_STREAMS * FIRST_STREAM_WINDOW <= WINDOW);

/// Limits what waits at this end for programs, or destinations, that do not read.
pub(crate) fn set_windows(transport: &mut TransportConfig) {
    transport.stream_receive_window = Some(FIRST_STREAM_WINDOW);
    transport.max_stream_receive_window = STREAM_WINDOW;
    transport.receive_window = Some(WINDOW);
    transport.max_receive_window = WINDOW;
}
