//! Versions of QUIC that connections may use.

use marline_wire::Version;

/// The versions that an endpoint accepts: one or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    first: Version,
    second: Option<Version>,
}

impl Versions {
    /// Both versions, with `first` preferred.
    pub const fn preferring(first: Version) -> Self {
        let second = match first {
            Version::V1 => Version::V2,
            Version::V2 => Version::V1,
        };
        Self {
            first,
            second: Some(second),
        }
    }

    /// One version. With version 1 alone, the handshake does not negotiate versions.
    pub const fn only(version: Version) -> Self {
        Self {
            first: version,
            second: None,
        }
    }

    /// The same versions, with `version` preferred if it is one of them.
    #[must_use]
    pub fn with_first(self, version: Version) -> Self {
        match self.second == Some(version) {
            true => Self::preferring(version),
            false => self,
        }
    }

    /// Whether `version` is among them.
    pub fn contains(&self, version: Version) -> bool {
        self.iter().any(|known| known == version)
    }

    /// The versions, the preferred one first.
    pub fn iter(&self) -> impl Iterator<Item = Version> + use<> {
        std::iter::once(self.first).chain(self.second)
    }

    /// The version numbers, the preferred one first.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.iter().map(Version::number).collect()
    }

    /// Whether they are announced to peers: RFC 9369, section 4, requires it of endpoints that
    /// support version 2.
    pub(crate) fn are_announced(&self) -> bool {
        self.contains(Version::V2)
    }

    /// The preferred one among those that `offered` contains.
    pub(crate) fn select(&self, offered: impl Fn(u32) -> bool) -> Option<Version> {
        self.iter().find(|version| offered(version.number()))
    }
}

impl Default for Versions {
    /// Both. Version 1 is preferred: all peers and middleboxes support it, and version 2 differs only in
    /// wire image (RFC 9369, section 1).
    fn default() -> Self {
        Self::preferring(Version::V1)
    }
}
