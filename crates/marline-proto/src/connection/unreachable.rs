//! ICMP messages about the peer's address.

use std::net::SocketAddr;

use marline_wire::packet;

use super::Connection;
use super::events::{ConnectionError, Unreachable};
use crate::time::Instant;

impl Connection {
    /// Ends the connection with [`ConnectionError::Unreachable`] if an ICMP message applies to it: one about a
    /// datagram to `remote` whose payload begins with `quote`. Returns whether it did.
    ///
    /// "ICMP message validation MUST include matching IP addresses and UDP ports and, when possible, connection IDs
    /// to an active QUIC session" (RFC 9000, section 14.2.1). Anyone can forge the former, so the destination
    /// connection ID of the quote must be the random one of the client's first flight, and all are ignored by
    /// servers and by connections that have received anything.
    pub fn handle_unreachable(
        &mut self,
        now: Instant,
        what: Unreachable,
        remote: SocketAddr,
        quote: &[u8],
    ) -> bool {
        let destination = packet::destination(quote, 0);
        let applies = self.awaits_first_datagram()
            && self.lifecycle.is_open()
            && is_same_address(remote, self.establishment.progress().remote())
            && destination == Some(&*self.establishment.progress().original_destination());
        if applies {
            self.end_silently(now, ConnectionError::Unreachable(what));
        }
        applies
    }

    /// Whether this is a client's connection that has received no datagram yet, valid or not.
    pub fn awaits_first_datagram(&self) -> bool {
        self.side.is_client() && self.telemetry.counters.datagrams_received == 0
    }
}

/// Whether both are the same address, which dual-stack sockets may represent as IPv6.
fn is_same_address(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}
