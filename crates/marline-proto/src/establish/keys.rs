//! The packet protection keys in use.

use marline_wire::ConnectionId;

use crate::crypto::{DirectionalKeys, Keys, OneRttKeys};
use crate::level::EncryptionLevel;

/// The keys of all encryption levels, each installed and discarded during the handshake (RFC 9001, section 4).
#[derive(Default)]
pub(super) struct KeyRing {
    pub(super) initial: Option<Box<Keys>>,
    /// Keys of Initial packets of the other version. Client: the version to which the server may change.
    /// Server: the version with which the client began.
    pub(super) other_initial: Option<Box<Keys>>,
    /// Connection ID from which the keys of Initial packets derive.
    pub(super) initial_source: ConnectionId,
    pub(super) handshake: Option<Box<Keys>>,
    /// Keys for sealing at the client, for opening at the server.
    pub(super) zero_rtt: Option<Box<DirectionalKeys>>,
    pub(super) one_rtt: Option<Box<OneRttKeys>>,
}

impl KeyRing {
    /// Whether there are keys of `level`.
    pub(super) fn has(&self, level: EncryptionLevel) -> bool {
        match level {
            EncryptionLevel::Initial => self.initial.is_some(),
            EncryptionLevel::Handshake => self.handshake.is_some(),
            EncryptionLevel::ZeroRtt => self.zero_rtt.is_some(),
            EncryptionLevel::OneRtt => self.one_rtt.is_some(),
        }
    }
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyRing")
            .field("initial", &self.initial.is_some())
            .field("handshake", &self.handshake.is_some())
            .field("zero_rtt", &self.zero_rtt.is_some())
            .field("one_rtt", &self.one_rtt.is_some())
            .finish()
    }
}
