//! The identity of a server.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use marline::Sha256;
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, PublicKeyData, SerialNumber};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use time::OffsetDateTime;

use super::ServerConfig;
use crate::HostPattern;
use crate::file::read_regular_file;
use crate::pem::{self, PemProblem, Validity};
use crate::tls::crypto_provider;

/// The largest size of a file with a certificate chain or a key, in bytes.
const MAX_PEM_BYTES: u64 = 1 << 20;

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

/// The reason why an identity cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file of the certificate or the key cannot be used.
    #[error("cannot use {} as {what}: {problem}", path.display())]
    File {
        /// "a certificate" or "a private key".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The problem with the file.
        problem: PemProblem,
    },
    /// The key does not match the certificate, or TLS does not support it.
    #[error(
        "the certificate and the key do not fit: {0}; give the key the certificate was made for"
    )]
    Mismatch(#[source] rustls::Error),
    /// There is no identity.
    #[error("a server of HTTPS needs a certificate and a key")]
    Missing,
    /// A self-signed certificate cannot be made for these names.
    #[error("cannot make a self-signed certificate: {0}")]
    SelfSigned(#[from] rcgen::Error),
}

impl Identity {
    /// Reads a certificate chain, leaf first, and its key from PEM files.
    ///
    /// # Errors
    /// [`IdentityError::File`] names the file that cannot be used.
    pub fn from_pem_files(chain: &Path, key: &Path) -> Result<Self, IdentityError> {
        let failed = |what, path: &Path, problem| IdentityError::File {
            what,
            path: path.to_owned(),
            problem,
        };
        let of_chain = |problem| failed("a certificate", chain, problem);
        let of_key = |problem| failed("a private key", key, problem);
        let read = |path: &Path| {
            read_regular_file(path, MAX_PEM_BYTES)
                .map_err(|error| PemProblem::Unreadable(error.to_string()))
        };
        let provider = crypto_provider(false);
        let certificates = read(chain)
            .and_then(|content| pem::certificates(&content))
            .map_err(of_chain)?;
        let found = read(key)
            .and_then(|content| pem::private_key(&content, &provider))
            .map_err(of_key)?;
        pem::check_pair(&certificates, &found, &provider).map_err(|problem| match problem {
            PemProblem::OtherKey | PemProblem::SeveralKeys { .. } => of_key(problem),
            _ => of_chain(problem),
        })?;
        Ok(Self {
            chain: certificates,
            key: found.key,
            pin: None,
        })
    }

    /// A new self-signed certificate for `names` (host names and IP addresses).
    ///
    /// # Errors
    /// A name is not valid in certificates.
    pub fn self_signed(names: Vec<String>) -> Result<Self, IdentityError> {
        Self::sign(&CertificateParams::new(names)?, &KeyPair::generate()?)
    }

    /// A new self-signed certificate for `names` whose handshakes all have the same size, so that runs in
    /// virtual time are deterministic: it uses Ed25519 signatures, which browsers do not support.
    ///
    /// # Errors
    /// A name is not valid in certificates.
    pub fn repeatable(names: Vec<String>) -> Result<Self, IdentityError> {
        let mut params = CertificateParams::new(names)?;
        params.serial_number = Some(SerialNumber::from(1));
        Self::sign(&params, &KeyPair::generate_for(&PKCS_ED25519)?)
    }

    /// The key of a new self-signed certificate for `names`, and the certificate, in PEM.
    pub(super) fn self_signed_pem(names: Vec<String>) -> Result<String, IdentityError> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(names)?.self_signed(&key)?;
        Ok(key.serialize_pem() + &certificate.pem())
    }

    /// Reads what [`self_signed_pem`](Self::self_signed_pem) has made from a file.
    pub(super) fn from_self_signed_pem(path: &Path) -> Result<Self, IdentityError> {
        let identity = Self::from_pem_files(path, path)?;
        let key = KeyPair::try_from(&identity.key).map_err(|_| IdentityError::File {
            what: "a private key",
            path: path.to_owned(),
            problem: PemProblem::DamagedKey,
        })?;
        let hash = Sha256::of(&key.subject_public_key_info());
        Ok(Self {
            pin: Some(STANDARD.encode(hash)),
            ..identity
        })
    }

    /// The certificates in PEM, leaf first.
    pub fn certificate_pem(&self) -> String {
        let blocks = self.chain.iter().map(|one| block("CERTIFICATE", one));
        blocks.collect()
    }

    /// The private key.
    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }

    /// The private key in PEM.
    pub fn key_pem(&self) -> String {
        let label = match self.key {
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
            _ => "PRIVATE KEY",
        };
        block(label, self.key.secret_der())
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

    /// The SHA-256 of a self-signed certificate's public key (SPKI) in base64, for Chromium's
    /// `--ignore-certificate-errors-spki-list`.
    pub fn pin(&self) -> Option<&str> {
        self.pin.as_deref()
    }

    /// The first certificate that is not valid at `unix_time`, if any.
    pub fn validity(&self, unix_time: Duration) -> Option<Validity> {
        let seconds = i64::try_from(unix_time.as_secs()).ok()?;
        pem::validity(
            &self.chain,
            OffsetDateTime::from_unix_timestamp(seconds).ok()?,
        )
    }

    /// The certificates, leaf first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The certificate with its key, as TLS needs them.
    fn certified(&self, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, IdentityError> {
        CertifiedKey::from_der(self.chain.clone(), self.key.clone_key(), provider)
            .map(Arc::new)
            .map_err(IdentityError::Mismatch)
    }
}

/// The certificate of some names of a server. Several may have the same names and keys of different kinds: a client gets the first
/// that it can verify.
#[derive(Clone, Debug)]
pub struct NamedIdentity {
    /// The names by which clients ask for it (SNI, RFC 6066, section 3).
    pub names: Vec<HostPattern>,
    /// The certificate and its key.
    pub identity: Identity,
}

/// The certificates of a server, by the name that a client asks for.
#[derive(Debug)]
struct Certificates {
    named: Vec<(HostPattern, Vec<Arc<CertifiedKey>>)>,
    /// For clients that ask for no name, or for another.
    others: Arc<CertifiedKey>,
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = self.named.iter().map(|(name, keys)| (name, keys));
        let keys = hello
            .server_name()
            .and_then(|name| HostPattern::best(name, named));
        let Some(keys) = keys else {
            return Some(Arc::clone(&self.others));
        };
        let schemes = hello.signature_schemes();
        let is_usable = |key: &&Arc<CertifiedKey>| key.key.choose_scheme(schemes).is_some();
        let key = keys.iter().find(is_usable).or(keys.first());
        key.map(Arc::clone)
    }
}

/// TLS settings with the certificates of `config`, with `alpn` in order of preference, and the algorithms of `provider`.
///
/// # Errors
/// There is no certificate, or one does not match its key.
pub(super) fn settings(
    config: &ServerConfig,
    provider: Arc<CryptoProvider>,
    alpn: &[&[u8]],
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Result<rustls::ServerConfig, IdentityError> {
    let mut named: Vec<(HostPattern, Vec<Arc<CertifiedKey>>)> = Vec::new();
    for one in &config.named_identities {
        let key = one.identity.certified(&provider)?;
        for name in &one.names {
            match named.iter_mut().find(|(known, _)| known == name) {
                Some((_, keys)) => keys.push(Arc::clone(&key)),
                None => named.push((name.clone(), vec![Arc::clone(&key)])),
            }
        }
    }
    let first = config.named_identities.first();
    let others = config
        .identity
        .as_ref()
        .or(first.map(|first| &first.identity));
    let others = others.ok_or(IdentityError::Missing)?.certified(&provider)?;
    let certificates = Certificates { named, others };
    let mut settings = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(IdentityError::Mismatch)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificates));
    settings.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Ok(settings)
}

/// A block of PEM (RFC 7468).
fn block(label: &str, content: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in STANDARD.encode(content).as_bytes().chunks(64) {
        text += &String::from_utf8_lossy(line);
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}
