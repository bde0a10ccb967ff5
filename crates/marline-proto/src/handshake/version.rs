//! Which version a connection has, and how both ends agree on it (RFC 9368; RFC 9369, section 4).

use marline_wire::packet::{ProtectedHeader, ProtectedKind, VERSION_1};
use marline_wire::params::{TransportParameters, VersionInformation};
use marline_wire::{ErrorCode, Side, TransportError, Version};

use crate::config::Versions;

/// What a client does about a Version Negotiation packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Nothing: it lists the version that the client uses, or is not the first one.
    Ignored,
    /// It ends: no version is in common.
    NothingInCommon,
    /// It begins again with this version.
    Version(Version),
}

/// The versions of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionState {
    side: Side,
    supported: Versions,
    /// That of the client's first packet, after a Version Negotiation packet of the first one that followed.
    original: u32,
    /// That of the packets sent now.
    current: u32,
    /// Whether the current version is the negotiated one.
    settled: bool,
    /// Client: whether it has acted on a Version Negotiation packet.
    restarted: bool,
}

impl VersionState {
    pub(crate) fn new(side: Side, supported: Versions, original: u32) -> Self {
        Self {
            side,
            supported,
            original,
            current: original,
            settled: false,
            restarted: false,
        }
    }

    /// What the other end is offered.
    pub(crate) fn offered(&self) -> Vec<u32> {
        match Self::information(self.side, self.supported, self.original) {
            Some(information) => information.available,
            None => vec![self.original],
        }
    }

    /// The version of packets that are sent, but for 0-RTT packets.
    pub(crate) const fn current(&self) -> u32 {
        self.current
    }

    /// The version of the client's first packet, and of all its 0-RTT packets.
    pub(crate) const fn original(&self) -> u32 {
        self.original
    }

    /// The current version, as far as it decides about keys and formats: those of version 1 for one that is not
    /// known.
    pub(crate) fn format(&self) -> Version {
        Version::from_number(self.current).unwrap_or_default()
    }

    /// Client: whether the server may answer its first packet in another version.
    pub(crate) fn may_change(supported: Versions, original: u32) -> bool {
        is_changeable(supported, original)
    }

    /// The versions that this end supports.
    pub(crate) const fn supported(&self) -> Versions {
        self.supported
    }

    /// Whether a packet with `header` is of another version than those that are sent.
    pub(crate) fn is_other(&self, header: &ProtectedHeader) -> bool {
        header
            .version
            .is_some_and(|version| version.number() != self.current)
    }

    /// Whether the current version is the negotiated one, as far as this end knows.
    pub(crate) const fn is_settled(&self) -> bool {
        self.settled
    }

    /// The current version is the negotiated one.
    pub(crate) fn settle(&mut self) {
        self.settled = true;
    }

    /// The negotiated version is `version`.
    pub(crate) fn settle_on(&mut self, version: Version) {
        self.current = version.number();
        self.settled = true;
    }

    /// Client: what to do about a Version Negotiation packet with the versions `offered` (RFC 9368, section 2.1).
    pub(crate) fn select(&self, offered: &[u32]) -> Selection {
        if self.restarted || offered.contains(&self.original) {
            return Selection::Ignored;
        }
        match self.supported.select(|number| offered.contains(&number)) {
            Some(version) => Selection::Version(version),
            None => Selection::NothingInCommon,
        }
    }

    /// Client: begins again with `version`.
    pub(crate) fn restart(&mut self, version: Version) {
        *self = Self {
            restarted: true,
            ..Self::new(self.side, self.supported, version.number())
        };
    }

    /// Whether packets with this header can belong to the connection.
    pub(crate) fn accepts(&self, header: &ProtectedHeader) -> bool {
        let Some(version) = header.version else {
            return true;
        };
        let number = version.number();
        let may_follow = self.side.is_client()
            && !self.settled
            && self.supported.contains(version)
            && is_changeable(self.supported, self.original);
        match header.kind {
            ProtectedKind::ZeroRtt => number == self.original,
            // A client's packets may be of before it learned the negotiated version.
            ProtectedKind::Initial { .. } if self.side.is_server() => {
                number == self.current || number == self.original
            }
            _ => number == self.current || may_follow,
        }
    }

    /// What the peer is told; `None` if it is not told of versions.
    pub(crate) fn information(
        side: Side,
        supported: Versions,
        chosen: u32,
    ) -> Option<VersionInformation> {
        if !supported.are_announced() {
            return None;
        }
        let mut available = match side {
            Side::Client if !is_changeable(supported, chosen) => Vec::new(),
            _ => supported.numbers(),
        };
        if side.is_client() && !available.contains(&chosen) {
            available.insert(0, chosen);
        }
        Some(VersionInformation { chosen, available })
    }

    /// Validates what the peer says (RFC 9368, section 4).
    ///
    /// # Errors
    ///
    /// VERSION_NEGOTIATION_ERROR.
    pub(crate) fn check(&self, params: &TransportParameters) -> Result<(), TransportError> {
        let refuse = |reason| {
            let code = ErrorCode::VERSION_NEGOTIATION_ERROR;
            Err(TransportError::new(code, reason))
        };
        let Some(information) = &params.version_information else {
            // A server without the parameter knows version 1 alone (RFC 9368, section 8).
            let needs_proof = self.restarted || self.current != self.original;
            return match self.side {
                Side::Client if needs_proof && self.current != VERSION_1 => {
                    refuse("the server does not confirm the version that was negotiated")
                }
                Side::Client if self.current != self.original => {
                    refuse("the server does not confirm the version that it changed to")
                }
                _ => Ok(()),
            };
        };
        if self.side.is_server() {
            return match information.chosen == self.original {
                true => Ok(()),
                false => refuse("the client's chosen version is not that of its packets"),
            };
        }
        if information.chosen != self.current {
            return refuse("the server's chosen version is not that of its packets");
        }
        // Whether the same version had been attempted with knowledge of what the server supports.
        let offered = |number| number == self.current || information.available.contains(&number);
        let attempted = self.supported.select(offered).map(Version::number);
        if self.restarted && (information.available.is_empty() || attempted != Some(self.original))
        {
            return refuse("the server supports a version that its Version Negotiation lacked");
        }
        Ok(())
    }
}

/// Whether a first flight of version `original` can be answered in another version that is supported. The two
/// known versions are compatible (RFC 9369, section 4).
fn is_changeable(supported: Versions, original: u32) -> bool {
    Version::from_number(original)
        .is_some_and(|original| supported.iter().any(|other| other != original))
}
