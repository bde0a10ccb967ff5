//! The version of a connection and its negotiation (RFC 9368; RFC 9369, section 4).

use marline_wire::packet::{ProtectedHeader, ProtectedKind, VERSION_1};
use marline_wire::params::{TransportParameters, VersionInformation};
use marline_wire::{ErrorCode, Side, TransportError, Version};

use crate::handshake::Versions;

/// A client's reaction to a Version Negotiation packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Ignores it: it lists the version that the client uses, or is not the first one.
    Ignored,
    /// Ends the connection: there is no common version.
    NothingInCommon,
    /// Restarts with this version.
    Version(Version),
}

/// The versions of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionState {
    side: Side,
    supported: Versions,
    /// Version of the client's first packet, or after a Version Negotiation packet of the first one that followed it.
    original: u32,
    /// Version of the packets sent now.
    current: u32,
    /// Whether the current version is the negotiated one.
    settled: bool,
    /// Client: whether it has restarted because of a Version Negotiation packet.
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

    /// The versions offered to the peer.
    pub(crate) fn offered(&self) -> Vec<u32> {
        match Self::information(self.side, self.supported, self.original) {
            Some(information) => information.available,
            None => vec![self.original],
        }
    }

    /// The version of sent packets, except 0-RTT packets.
    pub(crate) const fn current(&self) -> u32 {
        self.current
    }

    /// The version of the client's first packet, and of all its 0-RTT packets.
    pub(crate) const fn original(&self) -> u32 {
        self.original
    }

    /// The current version for the choice of keys and formats: version 1 for an unknown one.
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

    /// Whether a packet with `header` has another version than the packets sent.
    pub(crate) fn is_other(&self, header: &ProtectedHeader) -> bool {
        header
            .version
            .is_some_and(|version| version.number() != self.current)
    }

    /// Whether the current version is known to be the negotiated one.
    pub(crate) const fn is_settled(&self) -> bool {
        self.settled
    }

    /// Records that the current version is the negotiated one.
    pub(crate) fn settle(&mut self) {
        self.settled = true;
    }

    /// Records `version` as the negotiated one.
    pub(crate) fn settle_on(&mut self, version: Version) {
        self.current = version.number();
        self.settled = true;
    }

    /// Client: the reaction to a Version Negotiation packet with the versions `offered` (RFC 9368, section 2.1).
    pub(crate) fn select(&self, offered: &[u32]) -> Selection {
        if self.restarted || offered.contains(&self.original) {
            return Selection::Ignored;
        }
        match self.supported.select(|number| offered.contains(&number)) {
            Some(version) => Selection::Version(version),
            None => Selection::NothingInCommon,
        }
    }

    /// Client: restarts with `version`.
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
            // A client may have sent the packet before it learned the negotiated version.
            ProtectedKind::Initial { .. } if self.side.is_server() => {
                number == self.current || number == self.original
            }
            _ => number == self.current || may_follow,
        }
    }

    /// The Version Information sent to the peer; `None` if the parameter is omitted.
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

    /// Validates the peer's Version Information (RFC 9368, section 4).
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
            // A server without the parameter supports only version 1 (RFC 9368, section 8).
            let needs_proof = self.restarted || self.current != self.original;
            return match self.side {
                Side::Client if needs_proof && self.current != VERSION_1 => {
                    refuse("the server does not confirm the negotiated version")
                }
                Side::Client if self.current != self.original => {
                    refuse("the server does not confirm the version to which it changed")
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
        // Whether the same version would have been attempted with knowledge of the server's versions.
        let offered = |number| number == self.current || information.available.contains(&number);
        let attempted = self.supported.select(offered).map(Version::number);
        if self.restarted && (information.available.is_empty() || attempted != Some(self.original))
        {
            return refuse(
                "the server supports a version that its Version Negotiation packet did not list",
            );
        }
        Ok(())
    }
}

/// Whether a first flight of version `original` can be answered in another supported version. The two known
/// versions are compatible (RFC 9369, section 4).
fn is_changeable(supported: Versions, original: u32) -> bool {
    Version::from_number(original)
        .is_some_and(|original| supported.iter().any(|other| other != original))
}
