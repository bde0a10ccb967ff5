//! The identity of a server.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use marline::{Cipher, Sha256};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, PublicKeyData, SerialNumber};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate chain and its key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    pin: Option<String>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("certificates", &self.chain.len())
            .field("pin", &self.pin)
            .finish_non_exhaustive()
    }
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            key: self.key.clone_key(),
            pin: self.pin.clone(),
        }
    }
}

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file with the certificate or the key could not be used.
    #[error("cannot read {what} from {}: {reason}; give a PEM file", path.display())]
    File {
        /// "a certificate" or "a private key".
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The key does not belong to the certificate, or is of a kind that TLS cannot use.
    #[error(
        "the certificate and the key do not fit: {0}; give the key the certificate was made for"
    )]
    Mismatch(#[source] rustls::Error),
    /// No self-signed certificate could be made for these names.
    #[error("cannot make a self-signed certificate: {0}")]
    SelfSigned(#[from] rcgen::Error),
}

impl Identity {
    /// Reads a certificate chain, leaf first, and its key from PEM files.
    ///
    /// # Errors
    /// [`IdentityError::File`] names the file that is missing or not PEM.
    pub fn from_pem_files(chain: &Path, key: &Path) -> Result<Self, IdentityError> {
        let failed = |what, path: &Path, reason: String| IdentityError::File {
            what,
            path: path.to_owned(),
            reason,
        };
        let certificates = CertificateDer::pem_file_iter(chain)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| failed("a certificate", chain, error.to_string()))?;
        if certificates.is_empty() {
            return Err(failed("a certificate", chain, "it holds none".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| failed("a private key", key, error.to_string()))?;
        Ok(Self {
            chain: certificates,
            key,
            pin: None,
        })
    }

    /// A fresh self-signed certificate for `names` (host names and IP addresses).
    ///
    /// # Errors
    /// A name is not one that certificates may hold.
    pub fn self_signed(names: Vec<String>) -> Result<Self, IdentityError> {
        Self::sign(&CertificateParams::new(names)?, &KeyPair::generate()?)
    }

    /// A fresh self-signed certificate for `names` with which every handshake has the same size, so
    /// that runs in virtual time repeat: signatures by Ed25519, which browsers do not take.
    ///
    /// # Errors
    /// A name is not one that certificates may hold.
    pub fn repeatable(names: Vec<String>) -> Result<Self, IdentityError> {
        let mut params = CertificateParams::new(names)?;
        params.serial_number = Some(SerialNumber::from(1));
        Self::sign(&params, &KeyPair::generate_for(&PKCS_ED25519)?)
    }

    fn sign(params: &CertificateParams, key: &KeyPair) -> Result<Self, IdentityError> {
        let certificate = params.self_signed(key)?;
        let hash = Sha256::of(&key.subject_public_key_info());
        Ok(Self {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            pin: Some(STANDARD.encode(hash)),
        })
    }

    /// SHA-256 of a self-signed certificate's public key (SPKI) in base64, as Chromium's
    /// `--ignore-certificate-errors-spki-list` takes it.
    pub fn pin(&self) -> Option<&str> {
        self.pin.as_deref()
    }

    /// The certificates, leaf first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// TLS settings that offer `alpn` in this order, with `provider`'s algorithms.
    pub(crate) fn config(
        &self,
        provider: Arc<CryptoProvider>,
        alpn: &[&[u8]],
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Result<rustls::ServerConfig, IdentityError> {
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(IdentityError::Mismatch)?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(IdentityError::Mismatch)?;
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Ok(config)
    }
}

/// The algorithms this crate uses; with `chacha20_only`, one cipher suite for TLS 1.3.
pub(crate) fn crypto_provider(chacha20_only: bool) -> Arc<CryptoProvider> {
    Arc::new(if chacha20_only {
        marline::crypto_provider(Some(Cipher::ChaCha20Poly1305))
    } else {
        marline::default_crypto_provider()
    })
}
