//! Which keys exist at present.

use marline_wire::packet::ProtectedKind;

use crate::crypto::{DirectionalKeys, Keys, OneRttKeys};
use crate::level::SpaceId;

/// The keys of all encryption levels; each appears and disappears with the handshake (RFC 9001,
/// section 4).
#[derive(Default)]
pub(super) struct KeyRing {
    pub(super) initial: Option<Box<Keys>>,
    pub(super) handshake: Option<Box<Keys>>,
    /// For sealing at the client, for opening at the server.
    pub(super) zero_rtt: Option<Box<DirectionalKeys>>,
    pub(super) one_rtt: Option<Box<OneRttKeys>>,
}

impl KeyRing {
    pub(super) fn early(&self, space: SpaceId) -> Option<&Keys> {
        match space {
            SpaceId::Initial => self.initial.as_deref(),
            SpaceId::Handshake => self.handshake.as_deref(),
            SpaceId::Data => None,
        }
    }

    /// Whether packets of `kind` can be opened, or could be later.
    pub(super) fn has_opening(&self, kind: ProtectedKind) -> bool {
        match kind {
            ProtectedKind::Initial { .. } => self.initial.is_some(),
            ProtectedKind::Handshake => self.handshake.is_some(),
            ProtectedKind::ZeroRtt => self.zero_rtt.is_some(),
            ProtectedKind::Short => self.one_rtt.is_some(),
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
