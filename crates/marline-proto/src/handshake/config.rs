//! TLS configurations for QUIC (RFC 9001, sections 4.2 and 4.6.1).

use std::fmt;
use std::sync::Arc;

use marline_wire::Version;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, ServerConfig, SupportedCipherSuite};

use super::sessions;
use crate::crypto::TrafficSecrets;
use crate::crypto::provider::{self, cipher_suite};

/// An AEAD that may protect packets (RFC 9001, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// `TLS_AES_128_GCM_SHA256`: the fastest on processors with AES instructions.
    Aes128Gcm,
    /// `TLS_AES_256_GCM_SHA384`.
    Aes256Gcm,
    /// `TLS_CHACHA20_POLY1305_SHA256`: the fastest on other processors.
    ChaCha20Poly1305,
}

impl Cipher {
    /// All ciphers, the preferred first.
    pub const ALL: [Self; 3] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::ChaCha20Poly1305];

    fn suite(self) -> SupportedCipherSuite {
        match self {
            Self::Aes128Gcm => cipher_suite::TLS13_AES_128_GCM_SHA256,
            Self::Aes256Gcm => cipher_suite::TLS13_AES_256_GCM_SHA384,
            Self::ChaCha20Poly1305 => cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        }
    }
}

/// The cryptography provider for TLS configurations: the library selected by the cargo feature
/// (`aws-lc-rs`, or else `ring`), with the ciphers in the order of [`Cipher::ALL`], or with `only` one.
pub fn crypto_provider(only: Option<Cipher>) -> CryptoProvider {
    let ciphers = Cipher::ALL
        .into_iter()
        .filter(|cipher| only.is_none_or(|only| only == *cipher));
    CryptoProvider {
        cipher_suites: ciphers.map(Cipher::suite).collect(),
        ..provider::default_provider()
    }
}

/// The provider of the same library with the ciphers in the order that `rustls` prefers.
pub fn default_crypto_provider() -> CryptoProvider {
    provider::default_provider()
}

/// The reason why a TLS configuration does not fit QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsConfigError {
    /// No TLS 1.3 cipher suite is enabled.
    #[error("QUIC needs TLS 1.3 with a cipher suite that has QUIC keys; enable one")]
    NoTls13,
    /// A server must allow unlimited early data or none (RFC 9001, section 4.6.1).
    #[error("max_early_data_size is {0}; QUIC needs 0, or 4294967295 for 0-RTT")]
    MaxEarlyDataSize(u32),
}

/// A client's TLS configuration, checked to fit QUIC; cheap to clone.
///
/// The `resumption` of the `rustls` configuration stores the sessions to resume, with the server's
/// transport parameters.
#[derive(Clone, Debug)]
pub struct TlsClientConfig(Arc<ClientConfig>);

impl TlsClientConfig {
    /// Checks `config`. 0-RTT is attempted if its `enable_early_data` is set.
    ///
    /// # Errors
    ///
    /// [`TlsConfigError::NoTls13`] if no TLS 1.3 cipher suite is enabled.
    pub fn new(config: Arc<ClientConfig>) -> Result<Self, TlsConfigError> {
        check_suites(config.crypto_provider())?;
        Ok(Self(config))
    }

    /// Whether packet keys can be derived from the secrets of all enabled cipher suites, which a change of
    /// version requires.
    pub(crate) fn derives_keys(&self) -> bool {
        let provider = self.0.crypto_provider();
        let mut suites = provider.cipher_suites.iter();
        suites.all(|suite| {
            suite.tls13().is_none_or(|tls13| tls13.quic.is_none())
                || TrafficSecrets::supports(suite.suite())
        })
    }

    /// The application protocols that clients offer.
    pub(crate) fn alpn_protocols(&self) -> &[Vec<u8>] {
        &self.0.alpn_protocols
    }

    pub(super) fn rustls(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0)
    }
}

/// A server's TLS configuration, checked to fit QUIC; cheap to clone.
///
/// A server that accepts 0-RTT must not lower its transport parameters while clients hold its session tickets
/// (RFC 9000, section 7.4.1): to lower them, use a new `rustls` configuration with an empty session storage.
///
/// Its session storage and tickets serve all versions of QUIC; a session is resumed only in its original
/// version (RFC 9369, section 5).
#[derive(Clone, Debug)]
pub struct TlsServerConfig {
    v1: Arc<ServerConfig>,
    v2: Arc<ServerConfig>,
    keep_exporter: bool,
    by_name: Option<ByName>,
}

/// Chooses a configuration by the name that a client asks for.
#[derive(Clone)]
struct ByName(Arc<Choose>);

type Choose = dyn Fn(Option<&str>) -> Option<TlsServerConfig> + Send + Sync;

impl fmt::Debug for ByName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByName")
    }
}

impl TlsServerConfig {
    /// Checks `config`. 0-RTT is accepted if its `max_early_data_size` is 2^32 - 1.
    ///
    /// # Errors
    ///
    /// [`TlsConfigError`] if the configuration does not fit QUIC.
    pub fn new(config: Arc<ServerConfig>) -> Result<Self, TlsConfigError> {
        check_suites(config.crypto_provider())?;
        if !matches!(config.max_early_data_size, 0 | u32::MAX) {
            return Err(TlsConfigError::MaxEarlyDataSize(config.max_early_data_size));
        }
        Ok(Self {
            v1: sessions::of_version(Arc::clone(&config), Version::V1),
            v2: sessions::of_version(config, Version::V2),
            keep_exporter: false,
            by_name: None,
        })
    }

    /// Has `choose` return the configuration for the name that a client asks for (SNI, RFC 6066, section 3), in lower case, before
    /// its handshake begins; this one stays that of clients for which it returns none. Both must have the same
    /// application protocols, and both keep their exporter, or neither.
    #[must_use]
    pub fn choose_by_name(
        mut self,
        choose: impl Fn(Option<&str>) -> Option<Self> + Send + Sync + 'static,
    ) -> Self {
        self.by_name = Some(ByName(Arc::new(choose)));
        self
    }

    /// Whether it depends on the client's name for the server.
    pub(super) fn depends_on_name(&self) -> bool {
        self.by_name.is_some()
    }

    /// The configuration for a client that asks for `name`.
    pub(super) fn of_name(&self, name: Option<&str>) -> Option<Self> {
        self.by_name
            .as_ref()
            .and_then(|ByName(choose)| choose(name))
    }

    /// Whether connections keep their TLS state, tens of KiB each, so that the application can
    /// export keying material (RFC 8446, section 7.5). By default they drop it after the handshake.
    #[must_use]
    pub fn keep_exporter(mut self, keep: bool) -> Self {
        self.keep_exporter = keep;
        self
    }

    /// The application protocols that servers choose from.
    pub(crate) fn alpn_protocols(&self) -> &[Vec<u8>] {
        &self.v1.alpn_protocols
    }

    pub(super) fn keeps_exporter(&self) -> bool {
        self.keep_exporter
    }

    /// The configuration for connections of `version`.
    pub(super) fn rustls(&self, version: Version) -> Arc<ServerConfig> {
        Arc::clone(match version {
            Version::V1 => &self.v1,
            Version::V2 => &self.v2,
        })
    }
}

fn check_suites(provider: &CryptoProvider) -> Result<(), TlsConfigError> {
    let has_quic = |suite: &SupportedCipherSuite| suite.tls13().is_some_and(|s| s.quic.is_some());
    if provider.cipher_suites.iter().any(has_quic) {
        Ok(())
    } else {
        Err(TlsConfigError::NoTls13)
    }
}
