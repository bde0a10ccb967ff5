//! Versions of TLS over TCP, and cryptographic algorithms. QUIC uses TLS 1.3 only (RFC 9001, section 4.2).

use std::ops::RangeInclusive;
use std::sync::Arc;

use marline::Cipher;
use marline::settings::{Named, Word};
use rustls::SupportedProtocolVersion;
use rustls::crypto::CryptoProvider;

/// A version of TLS. There are no earlier ones: RFC 8996 deprecates them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246), only as still recommended (RFC 9325): a key exchange by ECDHE, AEAD, the extended master
    /// secret (RFC 7627); no compression, no renegotiation. HTTP/2 requires no more (RFC 9113, section 9.2).
    #[default]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl TlsVersion {
    const ALL: [Self; 2] = [Self::Tls12, Self::Tls13];

    fn supported(self) -> &'static SupportedProtocolVersion {
        match self {
            Self::Tls12 => &rustls::version::TLS12,
            Self::Tls13 => &rustls::version::TLS13,
        }
    }
}

impl Named for TlsVersion {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "1.2",
            about: "TLS 1.2, with ECDHE and AEAD only, and TLS 1.3",
            value: Self::Tls12,
        },
        Word {
            name: "1.3",
            about: "TLS 1.3",
            value: Self::Tls13,
        },
    ];
}

/// The versions of TLS that are offered over TCP, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsVersions(RangeInclusive<TlsVersion>);

/// No version of TLS is in the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no version of TLS is {} or later and {} or earlier", least.name(), most.name())]
pub struct NoTlsVersion {
    least: TlsVersion,
    most: TlsVersion,
}

impl TlsVersions {
    /// The versions from `least` to `most`.
    ///
    /// # Errors
    /// There are none.
    pub fn between(least: TlsVersion, most: TlsVersion) -> Result<Self, NoTlsVersion> {
        match least <= most {
            true => Ok(Self(least..=most)),
            false => Err(NoTlsVersion { least, most }),
        }
    }

    /// The versions from `least` on.
    pub fn from_least(least: TlsVersion) -> Self {
        Self(least..=TlsVersion::Tls13)
    }

    /// Whether `version` is among them.
    pub fn contains(&self, version: TlsVersion) -> bool {
        self.0.contains(&version)
    }

    /// For a configuration of rustls.
    pub(crate) fn supported(&self) -> Vec<&'static SupportedProtocolVersion> {
        let all = TlsVersion::ALL.into_iter();
        let offered = all.filter(|version| self.contains(*version));
        offered.map(TlsVersion::supported).collect()
    }
}

impl Default for TlsVersions {
    /// All versions.
    fn default() -> Self {
        Self::from_least(TlsVersion::default())
    }
}

/// The cryptographic algorithms; with `chacha20_only`, a single cipher suite for TLS 1.3.
pub(crate) fn crypto_provider(chacha20_only: bool) -> Arc<CryptoProvider> {
    Arc::new(if chacha20_only {
        marline::crypto_provider(Some(Cipher::ChaCha20Poly1305))
    } else {
        marline::default_crypto_provider()
    })
}
