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

/// The most bytes of all connections that wait for programs: some that do not read leave room for the others.
const WINDOW: u64 = 64 << 20;

/// Limits what waits at this end for programs, or destinations, that do not read.
pub(crate) fn set_windows(transport: &mut TransportConfig) {
    transport.stream_receive_window = Some(STREAM_WINDOW / 4);
    transport.max_stream_receive_window = STREAM_WINDOW;
    transport.receive_window = Some(WINDOW);
    transport.max_receive_window = WINDOW;
}
