//! The identity of a server.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
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

use super::current::Replaceable;
use super::{CertificateStatus, ClientCertificates, ServerConfig, StatusQuery};
use crate::HostPattern;
use crate::file::read_regular_file;
use crate::pem::{self, Dates, PemProblem, Validity};
use crate::tls::crypto_provider;

/// The largest size of a file with a certificate chain or a key, in bytes.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// A certificate chain and its key, which can be replaced while servers use them: all clones are one.
#[derive(Clone)]
pub struct Identity(Arc<Replaceable<Material>>);

/// The present certificate chain of an identity, and its key.
struct Material {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    pin: Option<String>,
    /// Both as TLS needs them, with the status that is stapled, once a server uses them.
    certified: OnceLock<Arc<CertifiedKey>>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let material = self.0.get();
        f.debug_struct("Identity")
            .field("certificates", &material.chain.len())
            .field("pin", &material.pin)
            .finish_non_exhaustive()
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
    /// A certificate or a key that is not in a file cannot be used.
    #[error("a certificate or its key cannot be used: {0}")]
    Pem(#[from] PemProblem),
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
        Ok(Self::new(certificates, found.key, None))
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        pin: Option<String>,
    ) -> Self {
        Self(Arc::new(Replaceable::new(Material {
            chain,
            key,
            pin,
            certified: OnceLock::new(),
        })))
    }

    /// An identity of its own with the present certificate and key of this one.
    pub fn detached(&self) -> Self {
        let material = self.0.get();
        Self::new(
            material.chain.clone(),
            material.key.clone_key(),
            material.pin.clone(),
        )
    }

    /// Replaces certificate, key and stapled status by the present ones of `other`: handshakes that begin from now on have them, in every server
    /// with this identity or a clone of it. Open connections stay.
    ///
    /// # Errors
    /// [`IdentityError::Mismatch`]; nothing has changed.
    pub fn replace(&self, other: &Self) -> Result<(), IdentityError> {
        other.certified()?;
        // Shared material is never changed: it is replaced as a whole.
        self.0.replace_shared(other.0.get());
        Ok(())
    }

    /// Reads a certificate chain, leaf first, and its key from PEM.
    ///
    /// # Errors
    /// [`IdentityError::Pem`].
    pub fn from_pem(chain: &str, key: &str) -> Result<Self, IdentityError> {
        let provider = crypto_provider(false);
        let certificates = pem::certificates(chain.as_bytes())?;
        let found = pem::private_key(key.as_bytes(), &provider)?;
        pem::check_pair(&certificates, &found, &provider)?;
        Ok(Self::new(certificates, found.key, None))
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
        let material = Self::from_pem_files(path, path)?.0.get();
        let key = KeyPair::try_from(&material.key).map_err(|_| IdentityError::File {
            what: "a private key",
            path: path.to_owned(),
            problem: PemProblem::DamagedKey,
        })?;
        let hash = Sha256::of(&key.subject_public_key_info());
        Ok(Self::new(
            material.chain.clone(),
            material.key.clone_key(),
            Some(STANDARD.encode(hash)),
        ))
    }

    /// The certificates in PEM, leaf first.
    pub fn certificate_pem(&self) -> String {
        let material = self.0.get();
        let blocks = material.chain.iter().map(|one| block("CERTIFICATE", one));
        blocks.collect()
    }

    /// The private key.
    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.0.get().key.clone_key()
    }

    /// The private key in PEM.
    pub fn key_pem(&self) -> String {
        let material = self.0.get();
        let label = match material.key {
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
            _ => "PRIVATE KEY",
        };
        block(label, material.key.secret_der())
    }

    fn sign(params: &CertificateParams, key: &KeyPair) -> Result<Self, IdentityError> {
        let certificate = params.self_signed(key)?;
        let hash = Sha256::of(&key.subject_public_key_info());
        Ok(Self::new(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            Some(STANDARD.encode(hash)),
        ))
    }

    /// The SHA-256 of a self-signed certificate's public key (SPKI) in base64, for Chromium's
    /// `--ignore-certificate-errors-spki-list`.
    pub fn pin(&self) -> Option<String> {
        self.0.get().pin.clone()
    }

    /// The first certificate that is not valid at `unix_time`, if any.
    pub fn validity(&self, unix_time: Duration) -> Option<Validity> {
        let seconds = i64::try_from(unix_time.as_secs()).ok()?;
        pem::validity(
            &self.0.get().chain,
            OffsetDateTime::from_unix_timestamp(seconds).ok()?,
        )
    }

    /// The validity of the first certificate, if its dates can be read.
    pub fn dates(&self) -> Option<Dates> {
        pem::dates(self.0.get().chain.first()?)
    }

    /// The certificates, leaf first.
    pub fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.0.get().chain.clone()
    }

    /// The question for the status of the first certificate, if it asks to be stapled (RFC 7633).
    pub fn status_query(&self) -> Option<StatusQuery> {
        StatusQuery::of(&self.0.get().chain)
    }

    /// Staples `status` to handshakes that begin from now on, in every server with this identity or a clone of it; without one, or
    /// with that of another certificate, nothing.
    ///
    /// # Errors
    /// [`IdentityError::Mismatch`]; nothing has changed.
    pub fn staple(&self, status: Option<&CertificateStatus>) -> Result<(), IdentityError> {
        self.certified()?;
        self.0.update(|material| {
            let status =
                status.filter(|status| material.chain.first() == Some(status.certificate()));
            let response = status.map(|status| status.response().to_vec());
            let certified = material.certified.get()?;
            (certified.ocsp != response).then(|| Material {
                chain: material.chain.clone(),
                key: material.key.clone_key(),
                pin: material.pin.clone(),
                certified: Arc::new(CertifiedKey {
                    ocsp: response,
                    ..(**certified).clone()
                })
                .into(),
            })
        });
        Ok(())
    }

    /// The certificate with its key, as TLS needs them.
    fn certified(&self) -> Result<Arc<CertifiedKey>, IdentityError> {
        let material = self.0.get();
        if let Some(certified) = material.certified.get() {
            return Ok(Arc::clone(certified));
        }
        // The suites of a provider make no difference to keys.
        let provider = crypto_provider(false);
        let key = material.key.clone_key();
        let certified = CertifiedKey::from_der(material.chain.clone(), key, &provider)
            .map_err(IdentityError::Mismatch)?;
        Ok(Arc::clone(
            material.certified.get_or_init(|| Arc::new(certified)),
        ))
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
    named: Vec<(HostPattern, Vec<Identity>)>,
    /// For clients that ask for no name, or for another.
    others: Identity,
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = self.named.iter().map(|(name, keys)| (name, keys));
        let identities = hello
            .server_name()
            .and_then(|name| HostPattern::best(name, named));
        // All have been checked.
        let Some(identities) = identities else {
            return self.others.certified().ok();
        };
        let schemes = hello.signature_schemes();
        let is_usable = |key: &Arc<CertifiedKey>| key.key.choose_scheme(schemes).is_some();
        let mut keys = identities.iter().flat_map(Identity::certified);
        let first = keys.next()?;
        match is_usable(&first) {
            true => Some(first),
            false => keys.find(is_usable).or(Some(first)),
        }
    }
}

/// TLS settings with the certificates of `config`, with `alpn` in order of preference, and the algorithms of `provider`, which ask for
/// certificates of clients by `rules`.
///
/// # Errors
/// There is no certificate, or one does not match its key.
pub(super) fn settings(
    config: &ServerConfig,
    provider: Arc<CryptoProvider>,
    alpn: &[&[u8]],
    versions: &[&'static rustls::SupportedProtocolVersion],
    rules: Option<&ClientCertificates>,
) -> Result<rustls::ServerConfig, IdentityError> {
    let mut named: Vec<(HostPattern, Vec<Identity>)> = Vec::new();
    for one in &config.named_identities {
        one.identity.certified()?;
        for name in &one.names {
            match named.iter_mut().find(|(known, _)| known == name) {
                Some((_, all)) => all.push(one.identity.clone()),
                None => named.push((name.clone(), vec![one.identity.clone()])),
            }
        }
    }
    let first = config.named_identities.first();
    let others = config
        .identity
        .as_ref()
        .or(first.map(|first| &first.identity));
    let others = others.ok_or(IdentityError::Missing)?.clone();
    others.certified()?;
    let certificates = Certificates { named, others };
    let settings = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(IdentityError::Mismatch)?;
    let settings = match rules {
        Some(rules) => settings.with_client_cert_verifier(rules.verifier()),
        None => settings.with_no_client_auth(),
    };
    let mut settings = settings.with_cert_resolver(Arc::new(certificates));
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
