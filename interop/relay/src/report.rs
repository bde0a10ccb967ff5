//! Statistics of a relay.

use std::net::SocketAddr;

use serde::Serialize;

use crate::impair::Outcome;
use crate::packet::PublicFields;
use crate::socket::Ecn;

/// Statistics of a relay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Client to server.
    pub to_server: Traffic,
    /// Server to client.
    pub to_client: Traffic,
    /// One entry a client address, in order of appearance.
    pub flows: Vec<Flow>,
    /// Connections that clients began, by the source connection IDs of their Initial packets; at most 4096 are counted.
    pub connections: u64,
    /// Times the relay changed the address a server sees.
    pub rebinds: u64,
    /// The largest ratio of bytes a server sent to bytes it had received on a flow, before its client's address
    /// was validated (RFC 9000, section 8.1: at most 3).
    pub amplification: f64,
}

/// Datagrams of one direction. Packets are counted by the datagrams that hold at least one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Traffic {
    /// Datagrams received.
    pub datagrams: u64,
    /// Their payload, bytes.
    pub bytes: u64,
    /// Lost at random.
    pub lost: u64,
    /// Dropped by number.
    pub listed: u64,
    /// Dropped while the link was off.
    pub swallowed: u64,
    /// Dropped because the queue was full.
    pub overflowed: u64,
    /// Forwarded with one byte changed.
    pub corrupted: u64,
    /// Marked ECT(0).
    pub ect0: u64,
    /// Marked ECT(1).
    pub ect1: u64,
    /// Marked CE.
    pub ce: u64,
    /// With an Initial packet.
    pub initial: u64,
    /// With a 0-RTT packet.
    pub zero_rtt: u64,
    /// With a Handshake packet.
    pub handshake: u64,
    /// With an Initial packet, that begin with a packet of version 2.
    pub initial_v2: u64,
    /// With a Handshake packet, that begin with a packet of version 2.
    pub handshake_v2: u64,
    /// With a Retry packet.
    pub retry: u64,
    /// With a Version Negotiation packet.
    pub version_negotiation: u64,
}

/// Traffic of one client address.
#[derive(Clone, Debug, Serialize)]
pub struct Flow {
    /// The client's address.
    pub client: SocketAddr,
    /// Bytes to the server.
    pub to_server_bytes: u64,
    /// Bytes to the client.
    pub to_client_bytes: u64,
    /// For a flow that began without a handshake, a migrated connection: whether it uses a connection ID that no other
    /// flow had used (RFC 9000, section 9.5). Absent if that cannot be determined.
    pub fresh_connection_id: Option<bool>,
}

impl Traffic {
    pub(crate) fn came_in(&mut self, bytes: usize, ecn: Ecn, seen: &PublicFields<'_>) {
        self.datagrams += 1;
        self.bytes += bytes as u64;
        match ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.ect0 += 1,
            Ecn::Ect1 => self.ect1 += 1,
            Ecn::Ce => self.ce += 1,
        }
        self.initial += u64::from(seen.initial);
        self.zero_rtt += u64::from(seen.zero_rtt);
        self.handshake += u64::from(seen.handshake);
        self.initial_v2 += u64::from(seen.initial && seen.is_v2());
        self.handshake_v2 += u64::from(seen.handshake && seen.is_v2());
        self.retry += u64::from(seen.retry);
        self.version_negotiation += u64::from(seen.version_negotiation);
    }

    pub(crate) fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Forward => {}
            Outcome::Corrupted => self.corrupted += 1,
            Outcome::Lost => self.lost += 1,
            Outcome::Listed => self.listed += 1,
        }
    }
}
