//! A certificate for tests.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::handshake::{Cipher, crypto_provider};

/// A self-signed certificate and its key.
///
/// The key is an Ed25519 key, whose signatures have a constant size, while those of ECDSA vary by some
/// bytes: handshakes that differ only in keys have equal sizes, as the simulator requires.
pub struct TestIdentity {
    /// The certificate, also the root that clients trust.
    pub certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl TestIdentity {
    /// A certificate for `names` with a new key.
    ///
    /// # Panics
    ///
    /// If `names` are not DNS names.
    pub fn new(names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate_for(&PKCS_ED25519).expect("the provider knows Ed25519");
        let mut params = CertificateParams::new(names).expect("the names are DNS names");
        // The default is derived from the key, with varying length.
        params.serial_number = Some(SerialNumber::from(1));
        let certificate = params.self_signed(&key).expect("the key can sign");
        Self {
            certificate: certificate.into(),
            key: key.serialize_der(),
        }
    }

    /// A server with the certificate and the application protocols `alpn`; `only` restricts it to one cipher.
    ///
    /// # Panics
    ///
    /// Never: key and certificate match.
    pub fn server(&self, alpn: &[&[u8]], only: Option<Cipher>) -> ServerConfig {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.clone()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(crypto_provider(only)))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("the provider has TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .expect("key and certificate match");
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        config
    }

    /// A client that trusts the certificate, with the application protocols `alpn`; `only` restricts it to one
    /// cipher.
    ///
    /// # Panics
    ///
    /// Never: the certificate is well formed.
    pub fn client(&self, alpn: &[&[u8]], only: Option<Cipher>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots
            .add(self.certificate.clone())
            .expect("the certificate is well formed");
        let mut config = ClientConfig::builder_with_provider(Arc::new(crypto_provider(only)))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("the provider has TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        config
    }
}

impl std::fmt::Debug for TestIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TestIdentity")
    }
}
