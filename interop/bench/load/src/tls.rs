//! TLS 1.3 with TLS_AES_128_GCM_SHA256 and X25519, so that all servers have the same to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use quinn::crypto::rustls::QuicClientConfig;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};

use crate::args::{Reuse, Version};

/// Sessions that are kept for the server; each is used once.
const SESSIONS: usize = 8;

/// A client's settings, whose sessions no other client has.
pub(crate) fn config(
    version: Version,
    reuse: Reuse,
    verifier: Arc<Trusting>,
) -> anyhow::Result<ClientConfig> {
    let provider = CryptoProvider {
        cipher_suites: vec![cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![kx_group::X25519],
        ..default_provider()
    };
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![version.alpn().to_vec()];
    config.resumption = match reuse {
        Reuse::Resume => Resumption::in_memory_sessions(SESSIONS),
        Reuse::Keep | Reuse::Full => Resumption::disabled(),
    };
    Ok(config)
}

/// The same for QUIC.
pub(crate) fn quic(config: ClientConfig) -> anyhow::Result<QuicClientConfig> {
    QuicClientConfig::try_from(config).context("no suite for Initial packets")
}

/// Trusts any certificate and any signature, because the client's time is not measured, and counts certificates: a
/// resumed handshake has none.
#[derive(Debug)]
pub(crate) struct Trusting {
    seen: AtomicU64,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Trusting {
    pub(crate) fn new() -> Self {
        Self {
            seen: AtomicU64::new(0),
            algorithms: default_provider().signature_verification_algorithms,
        }
    }

    /// Full handshakes so far.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.seen.fetch_add(1, Ordering::Relaxed);
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("only TLS 1.3 is offered".into()))
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
