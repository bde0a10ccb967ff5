//! TLS settings of the peers that use rustls.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CipherSuite, DigitallySignedStruct, SignatureScheme};

/// The ALPN token of HTTP/3.
const ALPN: &[u8] = b"h3";

/// Accepts any certificate and counts them: a resumed handshake has none.
#[derive(Debug)]
pub struct TrustAny {
    provider: Arc<CryptoProvider>,
    seen: AtomicUsize,
}

impl TrustAny {
    /// Certificates seen so far.
    pub fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }
}

impl ServerCertVerifier for TrustAny {
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
        Err(rustls::Error::General("QUIC is TLS 1.3 only".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// A client's TLS settings for `case` over ring, and the verifier that counts full handshakes.
///
/// # Errors
/// If the provider lacks TLS 1.3.
pub fn client_config(case: &str) -> anyhow::Result<(rustls::ClientConfig, Arc<TrustAny>)> {
    let mut provider = ring::default_provider();
    if case == "chacha20" {
        provider
            .cipher_suites
            .retain(|suite| suite.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }
    client_config_with(provider, case)
}

/// The same with all algorithms of `provider`.
///
/// # Errors
/// If the provider lacks TLS 1.3.
pub fn client_config_with(
    provider: CryptoProvider,
    case: &str,
) -> anyhow::Result<(rustls::ClientConfig, Arc<TrustAny>)> {
    let provider = Arc::new(provider);
    let verifier = Arc::new(TrustAny {
        provider: Arc::clone(&provider),
        seen: AtomicUsize::new(0),
    });
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&verifier) as Arc<dyn ServerCertVerifier>)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_early_data = case == "zerortt";
    Ok((config, verifier))
}

/// A server's TLS settings for `case`.
///
/// # Errors
/// If certificate or key cannot be read.
pub fn server_config(case: &str, cert: &Path, key: &Path) -> anyhow::Result<rustls::ServerConfig> {
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let mut config =
        rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    if case == "zerortt" {
        // RFC 9001, section 4.6.1: QUIC permits only this value and zero.
        config.max_early_data_size = u32::MAX;
    }
    Ok(config)
}

/// The suite that protects Initial packets (RFC 9001, section 5.2), if the provider has it.
#[must_use]
pub fn initial_suite() -> Option<rustls::quic::Suite> {
    ring::default_provider()
        .cipher_suites
        .iter()
        .find_map(|suite| match suite {
            rustls::SupportedCipherSuite::Tls13(suite)
                if suite.common.suite == CipherSuite::TLS13_AES_128_GCM_SHA256 =>
            {
                suite.quic_suite()
            }
            _ => None,
        })
}
