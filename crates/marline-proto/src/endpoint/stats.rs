//! Counters of an endpoint.

use std::ops::AddAssign;

/// Counters of an endpoint's new clients over its life, except `handshakes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointStats {
    /// Connections accepted.
    pub accepted: u64,
    /// Handshakes currently in progress that clients started.
    pub handshakes: usize,
    /// Retry packets sent.
    pub retries: u64,
    /// Idle connections closed for new clients.
    pub evicted: u64,
    /// Clients refused, by reason.
    pub refused: Refusals,
    /// Datagrams passed on to other workers.
    pub passed_on: u64,
}

/// Clients refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// [`ServerConfig::max_connections`](crate::ServerConfig::max_connections) was reached.
    pub connections: u64,
    /// [`max_connections_per_address`](crate::ClientLimits::max_connections_per_address) was reached.
    pub connections_of_address: u64,
    /// [`max_connections_per_prefix`](crate::ClientLimits::max_connections_per_prefix) was reached.
    pub connections_of_prefix: u64,
    /// [`max_handshakes_per_address`](crate::ClientLimits::max_handshakes_per_address) was reached.
    pub handshakes_of_address: u64,
    /// [`max_handshakes_per_prefix`](crate::ClientLimits::max_handshakes_per_prefix) was reached.
    pub handshakes_of_prefix: u64,
    /// The token was invalid.
    pub invalid_token: u64,
    /// The connection could not be set up.
    pub internal: u64,
}

impl AddAssign for EndpointStats {
    fn add_assign(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.handshakes += other.handshakes;
        self.retries += other.retries;
        self.evicted += other.evicted;
        self.refused += other.refused;
        self.passed_on += other.passed_on;
    }
}

impl AddAssign for Refusals {
    fn add_assign(&mut self, other: Self) {
        self.connections += other.connections;
        self.connections_of_address += other.connections_of_address;
        self.connections_of_prefix += other.connections_of_prefix;
        self.handshakes_of_address += other.handshakes_of_address;
        self.handshakes_of_prefix += other.handshakes_of_prefix;
        self.invalid_token += other.invalid_token;
        self.internal += other.internal;
    }
}

/// The reason why a client is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Connections,
    ConnectionsOfAddress,
    ConnectionsOfPrefix,
    HandshakesOfAddress,
    HandshakesOfPrefix,
    InvalidToken,
    Internal,
}

impl Refusals {
    pub(super) fn count(&mut self, reason: Refusal) {
        *match reason {
            Refusal::Connections => &mut self.connections,
            Refusal::ConnectionsOfAddress => &mut self.connections_of_address,
            Refusal::ConnectionsOfPrefix => &mut self.connections_of_prefix,
            Refusal::HandshakesOfAddress => &mut self.handshakes_of_address,
            Refusal::HandshakesOfPrefix => &mut self.handshakes_of_prefix,
            Refusal::InvalidToken => &mut self.invalid_token,
            Refusal::Internal => &mut self.internal,
        } += 1;
    }
}
