//! Settings of an endpoint.

use std::sync::Arc;

use marline_wire::ConnectionId;

use super::ClientLimits;
use crate::crypto::{QuicLb, ResetKey, TokenKey, WorkerField, WorkerKey, hmac_sha256};
use crate::limits::LOCAL_CIDS;
use crate::rng::SecureRng;
use crate::settings::{Domain, Settings, field};

/// Settings shared by all connections of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Length of our connection IDs in bytes, 4 to 20, unless they are those of `quic_lb`.
    pub connection_id_len: usize,
    /// The connection IDs of a server behind a load balancer that reads the server from them; without it, they are random.
    pub quic_lb: Option<Arc<QuicLb>>,
    /// Key of stateless reset tokens. If it is kept across restarts, clients of a restarted server
    /// learn at once that it has lost the state of their connections.
    pub reset_key: Arc<ResetKey>,
    /// Key that seals the tokens of Retry and NEW_TOKEN. If it is kept across restarts, returning
    /// clients stay validated.
    pub token_key: Arc<TokenKey>,
    /// Whether packets with a cleared QUIC bit are accepted (RFC 9287).
    pub grease_fixed_bit: bool,
    /// Limits on clients of one address or network.
    pub clients: ClientLimits,
    /// Key that hides the number of a worker in connection IDs. If it is kept across restarts, a server can pass on what
    /// is for the one before it.
    pub worker_key: Arc<WorkerKey>,
    /// The number that the connection IDs of this endpoint carry, if it is one of several with the same address.
    pub worker: Option<u8>,
    /// Seed of all randomness of this endpoint and its connections, except keys.
    pub rng_seed: [u8; 32],
}

impl EndpointConfig {
    /// Settings whose keys derive from `seed`: 32 unpredictable bytes, or any 32 bytes if runs must be reproducible.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self {
            connection_id_len: 8,
            quic_lb: None,
            reset_key: Arc::new(ResetKey::new(&hmac_sha256(&seed, b"stateless reset"))),
            token_key: Arc::new(TokenKey::new(&hmac_sha256(&seed, b"address tokens"))),
            grease_fixed_bit: true,
            clients: ClientLimits::default(),
            worker_key: Arc::new(WorkerKey::new(&hmac_sha256(&seed, b"connection IDs"))),
            worker: None,
            rng_seed: seed,
        }
    }

    /// The length of our connection IDs, in bytes.
    pub fn id_len(&self) -> usize {
        let of_quic_lb = self.quic_lb.as_ref().map(|quic_lb| quic_lb.id_len());
        of_quic_lb.unwrap_or(self.connection_id_len)
    }

    /// The bytes of our connection IDs that have to do with the worker's number.
    pub fn worker_field(&self) -> WorkerField {
        let of_quic_lb = self.quic_lb.as_ref().map(|quic_lb| quic_lb.worker_field());
        of_quic_lb.unwrap_or(WorkerField::FIRST)
    }

    /// A new connection ID of this end.
    pub(crate) fn connection_id(&self, rng: &mut SecureRng) -> ConnectionId {
        if let Some(quic_lb) = &self.quic_lb {
            return quic_lb.connection_id(self.worker.unwrap_or(0), &self.worker_key, rng);
        }
        let id = rng.connection_id(self.connection_id_len);
        let Some(worker) = self.worker else {
            return id;
        };
        let mut bytes = id.to_vec();
        self.worker_key
            .write(&mut bytes, WorkerField::FIRST, worker);
        ConnectionId::new(&bytes).unwrap_or(id)
    }

    /// The number of connection IDs of a path that a peer may have at once, as far as this end is concerned.
    pub(crate) fn ids_of_path(&self) -> usize {
        match &self.quic_lb {
            Some(quic_lb) if quic_lb.is_readable() => 1,
            _ => LOCAL_CIDS,
        }
    }

    /// The keys in settings: all except secrets.
    pub const SETTINGS: Settings<Self> = &[
        field!(connection_id_len: Domain::integer(4, 20), "Length of this end's connection IDs in bytes"),
        field!(grease_fixed_bit: Domain::SWITCH, "Whether packets with a cleared QUIC bit are accepted (RFC 9287)"),
        field!(
            clients.max_connections_per_address: Domain::integer(1, 1_000_000),
            "Maximum number of connections per IPv4 address or IPv6 /64"
        ),
        field!(
            clients.max_connections_per_prefix: Domain::integer(1, 1_000_000),
            "Maximum number of connections per IPv4 /24 or IPv6 /48"
        ),
        field!(
            clients.max_handshakes_per_address: Domain::integer(1, 1_000_000),
            "Maximum number of handshakes in progress per address; beyond it clients need a Retry, then are refused"
        ),
        field!(
            clients.max_handshakes_per_prefix: Domain::integer(1, 1_000_000),
            "Maximum number of handshakes in progress per IPv4 /24 or IPv6 /48; beyond it clients need a Retry, then are refused"
        ),
        field!(clients.evict_idle: Domain::SWITCH, "Whether a full server closes an idle connection for a new client"),
    ];
}

/// The condition for a server to validate client addresses before it keeps state (RFC 9000, section 8.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Never.
    Never,
    /// Always.
    Always,
    /// While at least this many handshakes are in progress.
    WhenBusy {
        /// Number of handshakes in progress.
        handshakes: usize,
    },
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::WhenBusy { handshakes: 1000 }
    }
}
