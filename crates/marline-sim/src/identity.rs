//! The certificate of simulated servers.

use std::sync::{Arc, OnceLock};

use marline::{ClientConfig, ServerConfig, TransportConfig, Version, Versions, tls};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate and its key, for [`Identity::NAME`] and all names under `lab.test`.
#[derive(Debug)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
    roots: RootCertStore,
}

/// The identity of all servers of this process. It is created once; its sizes, and those of its
/// signatures, are the same in every process.
pub fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(Identity::generate)
}

impl Identity {
    /// The first name on the certificate.
    pub const NAME: &'static str = "localhost";

    /// Uses Ed25519, whose signatures all have the same length, so that handshakes have the same size.
    fn generate() -> Self {
        let names = vec![Self::NAME.into(), "*.lab.test".into()];
        let key = KeyPair::generate_for(&PKCS_ED25519).expect("Ed25519 is supported");
        let mut params = CertificateParams::new(names).expect("the names are valid");
        params.serial_number = Some(SerialNumber::from(1));
        let certificate = params.self_signed(&key).expect("the key can sign");
        let certificate = CertificateDer::from(certificate);
        let mut roots = RootCertStore::empty();
        roots
            .add(certificate.clone())
            .expect("the certificate is valid");
        Self {
            certificate,
            key: key.serialize_der().into(),
            roots,
        }
    }

    /// The certificate chain of a server.
    pub fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.clone()]
    }

    /// The key of the certificate.
    pub fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key().into()
    }

    /// The trust anchors of a client.
    pub fn roots(&self) -> RootCertStore {
        self.roots.clone()
    }

    /// A QUIC server with this identity that supports `alpn`.
    ///
    /// # Errors
    /// If the TLS library rejects the configuration.
    pub fn server_config(
        &self,
        alpn: &[&[u8]],
        transport: &Arc<TransportConfig>,
    ) -> Result<ServerConfig, rustls::Error> {
        let mut config = tls::server_config(self.chain(), self.key(), alpn)?;
        config.versions = VERSIONS;
        config.transport = without_grease(transport);
        Ok(config)
    }

    /// A QUIC client that trusts this identity and supports `alpn`.
    ///
    /// # Errors
    /// If the TLS library rejects the configuration.
    pub fn client_config(
        &self,
        alpn: &[&[u8]],
        transport: &Arc<TransportConfig>,
    ) -> Result<ClientConfig, rustls::Error> {
        let mut config = tls::client_config(self.roots(), alpn)?;
        config.versions = VERSIONS;
        config.transport = without_grease(transport);
        Ok(config)
    }
}

/// Published results use version 1; the parameter that announces further versions would make handshakes longer.
const VERSIONS: Versions = Versions::only(Version::V1);

/// Grease has random lengths, which would make equal runs differ.
fn without_grease(transport: &Arc<TransportConfig>) -> Arc<TransportConfig> {
    let mut transport = Arc::clone(transport);
    if transport.grease {
        Arc::make_mut(&mut transport).grease = false;
    }
    transport
}
