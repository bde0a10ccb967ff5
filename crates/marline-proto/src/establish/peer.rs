//! The peer's transport parameters that the connection itself uses.

use std::time::Duration;

use marline_wire::params::{PreferredAddress, TransportParameters};

/// The peer's parameters; defaults until they are known (RFC 9000, section 18.2).
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) ack_delay_exponent: u32,
    /// Maximum ACK delay to expect: the peer's `max_ack_delay`, or a longer one that was requested.
    pub(crate) max_ack_delay: Duration,
    /// The peer's `max_ack_delay`.
    pub(crate) usual_ack_delay: Duration,
    /// `None` if the peer has no idle timeout.
    pub(crate) max_idle_timeout: Option<Duration>,
    pub(crate) grease_fixed_bit: bool,
    pub(crate) disable_active_migration: bool,
    /// Minimum ACK delay that may be requested of the peer; `None` if it does not support requests.
    pub(crate) min_ack_delay: Option<Duration>,
    pub(crate) preferred_address: Option<PreferredAddress>,
    pub(crate) active_connection_id_limit: u64,
    pub(crate) max_udp_payload_size: u64,
    /// The peer's initial maximum path ID; `None` if it does not support multipath.
    pub(crate) initial_max_path_id: Option<u32>,
}

impl Default for Peer {
    fn default() -> Self {
        Self::from(&TransportParameters::default())
    }
}

impl From<&TransportParameters> for Peer {
    fn from(params: &TransportParameters) -> Self {
        Self {
            ack_delay_exponent: params.ack_delay_exponent as u32,
            max_ack_delay: Duration::from_millis(params.max_ack_delay),
            usual_ack_delay: Duration::from_millis(params.max_ack_delay),
            max_idle_timeout: (params.max_idle_timeout > 0)
                .then(|| Duration::from_millis(params.max_idle_timeout)),
            grease_fixed_bit: params.grease_quic_bit,
            disable_active_migration: params.disable_active_migration,
            min_ack_delay: params.min_ack_delay.map(Duration::from_micros),
            preferred_address: params.preferred_address,
            active_connection_id_limit: params.active_connection_id_limit,
            max_udp_payload_size: params.max_udp_payload_size,
            initial_max_path_id: params.initial_max_path_id,
        }
    }
}

impl Peer {
    /// The delay of an ACK frame (RFC 9000, section 19.3).
    pub(crate) fn ack_delay(&self, on_wire: u64) -> Duration {
        Duration::from_micros(on_wire.saturating_mul(1 << self.ack_delay_exponent.min(20)))
    }
}
