//! Certificates of clients, which sites ask for (RFC 8446, section 4.3.2).

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline::{SessionKind, Sha256};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use x509_cert::der::Decode;

use crate::HostPattern;
use crate::file::read_regular_file;
use crate::pem::{self, PemProblem};
use crate::tls::crypto_provider;

/// The largest size of a file of authorities or of revoked certificates, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The certificates that clients of a site may or must present. Cheap to clone.
#[derive(Clone)]
pub struct ClientCertificates(Arc<Rules>);

struct Rules {
    verifier: Arc<dyn ClientCertVerifier>,
    /// A hash of all that decides about a certificate.
    id: RulesId,
    /// The list of revoked certificates that expires first.
    first_to_expire: Option<RevocationList>,
}

/// A list of revoked certificates. With an expired one, no certificate of its authority is accepted (RFC 5280, section 6.3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationList {
    path: PathBuf,
    /// Its number in the file, from 1.
    number: usize,
    /// When the next one is to replace it, in time since 1970.
    until: Duration,
}

impl RevocationList {
    /// The list `der`, unless it does not say when it expires.
    fn read(path: &Path, number: usize, der: &[u8]) -> Option<Self> {
        let list = x509_cert::crl::CertificateList::from_der(der).ok()?;
        Some(Self {
            path: path.to_owned(),
            number,
            until: list.tbs_cert_list.next_update?.to_unix_duration(),
        })
    }
}

impl fmt::Display for RevocationList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: list number {} of revoked certificates expired at {}: certificates of its authority are refused; replace it",
            self.path.display(),
            self.number,
            pem::shown(self.until)
        )
    }
}

type RulesId = [u8; 32];

impl fmt::Debug for ClientCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificates").finish_non_exhaustive()
    }
}

impl PartialEq for ClientCertificates {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

/// The reason why certificates of clients cannot be verified.
#[derive(Debug, thiserror::Error)]
pub enum ClientCertificatesError {
    /// The file of the authorities cannot be used.
    #[error("cannot use {} as certificates of authorities: {problem}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: PemProblem,
    },
    /// The file of revoked certificates cannot be used.
    #[error("cannot use {} as lists of revoked certificates: {problem}", path.display())]
    Revoked {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A certificate is not that of an authority.
    #[error("{} has a certificate that no authority can have: {cause}", path.display())]
    NoAuthority {
        /// The file.
        path: PathBuf,
        /// The problem.
        cause: rustls::Error,
    },
    /// The verifier refuses what the files have.
    #[error("certificates of clients cannot be verified: {0}")]
    Verifier(#[from] VerifierBuilderError),
}

impl ClientCertificates {
    /// Certificates that the authorities in the PEM file `authorities` have signed, and that the lists in `revoked`, which must be
    /// current and of all authorities of a chain, do not have. Unless one `is_required`, clients need not present any.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn from_pem_files(
        authorities: &Path,
        revoked: Option<&Path>,
        is_required: bool,
    ) -> Result<Self, ClientCertificatesError> {
        let of_authorities = |problem| ClientCertificatesError::Authorities {
            path: authorities.to_owned(),
            problem,
        };
        let content = read_regular_file(authorities, MAX_FILE_BYTES)
            .map_err(|error| of_authorities(PemProblem::Unreadable(error.to_string())))?;
        let mut hash = Sha256::new();
        hash.update(&[u8::from(is_required)]);
        let mut roots = RootCertStore::empty();
        for certificate in pem::certificates(&content).map_err(of_authorities)? {
            add(&mut hash, &certificate);
            roots.add(certificate).map_err(|cause| {
                let path = authorities.to_owned();
                ClientCertificatesError::NoAuthority { path, cause }
            })?;
        }
        let mut lists = Vec::new();
        let mut first_to_expire = None;
        if let Some(path) = revoked {
            lists = read_lists(path).map_err(|problem| {
                let path = path.to_owned();
                ClientCertificatesError::Revoked { path, problem }
            })?;
            let each = (1..).zip(&lists);
            let read = each.filter_map(|(number, der)| RevocationList::read(path, number, der));
            first_to_expire = read.min_by_key(|list| list.until);
            hash.update(b"revoked");
            lists.iter().for_each(|list| add(&mut hash, list));
        }
        let provider = crypto_provider(false);
        let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        if !lists.is_empty() {
            builder = builder.with_crls(lists).enforce_revocation_expiration();
        }
        if !is_required {
            builder = builder.allow_unauthenticated();
        }
        Ok(Self(Arc::new(Rules {
            verifier: Arc::new(Explaining(builder.build()?)),
            id: hash.finish(),
            first_to_expire,
        })))
    }

    /// The list of revoked certificates that has expired at `unix_time`, the first one if there are several.
    pub fn expired_list(&self, unix_time: Duration) -> Option<&RevocationList> {
        let first = self.0.first_to_expire.as_ref();
        first.filter(|list| list.until <= unix_time)
    }

    /// The verifier of handshakes.
    pub(super) fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.0.verifier)
    }

    /// Has `tls` resume the sessions of these rules alone: a session has the certificate of its client, which other rules may refuse.
    pub(super) fn bind_sessions(&self, tls: &mut rustls::ServerConfig) {
        let prefix = [MARK, &self.0.id].concat();
        SessionKind::with_prefix(&prefix).bind(tls);
    }

    /// The certificate of a client that presented `chain`, if it is valid at `unix_time`.
    fn verified(
        &self,
        chain: &[CertificateDer<'_>],
        unix_time: Duration,
    ) -> Option<Arc<ClientCertificate>> {
        self.accept(chain, unix_time)
            .then(|| ClientCertificate::read(chain).map(Arc::new))
            .flatten()
    }

    /// Whether a certificate that was verified before, by these rules or by others, is valid at `unix_time`, or was in the minute before.
    pub fn still_accept(&self, certificate: &ClientCertificate, unix_time: Duration) -> bool {
        let mut checks = certificate
            .checks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        checks.retain(|check| check.at <= unix_time && unix_time - check.at < CHECK_LIFETIME);
        if let Some(check) = checks.iter().find(|check| check.rules == self.0.id) {
            return check.is_accepted;
        }
        let is_accepted = self.accept(&certificate.chain, unix_time);
        checks.push(Check {
            rules: self.0.id,
            at: unix_time,
            is_accepted,
        });
        is_accepted
    }

    fn accept(&self, chain: &[CertificateDer<'_>], unix_time: Duration) -> bool {
        let now = UnixTime::since_unix_epoch(unix_time);
        let verify = |(own, others): (&CertificateDer<'_>, &[CertificateDer<'_>])| {
            self.0.verifier.verify_client_cert(own, others, now).is_ok()
        };
        chain.split_first().is_some_and(verify)
    }
}

/// A verifier that says more about certificates that it refuses than their kind of error.
#[derive(Debug)]
struct Explaining(Arc<dyn ClientCertVerifier>);

/// A certificate without extensions, which many tools issue unless they are told otherwise.
#[derive(thiserror::Error)]
#[error("the certificate is of an older version than 3 of X.509; have one with extensions issued")]
struct OldVersion;

impl fmt::Debug for OldVersion {
    /// As text, for rustls shows errors of others this way.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ClientCertVerifier for Explaining {
    fn offer_client_auth(&self) -> bool {
        self.0.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.0.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[rustls::DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.0.verify_client_cert(end_entity, intermediates, now);
        verified.map_err(|error| match &error {
            rustls::Error::InvalidCertificate(CertificateError::Other(other))
                if matches!(
                    other.0.downcast_ref(),
                    Some(webpki::Error::UnsupportedCertVersion)
                ) =>
            {
                CertificateError::Other(OtherError(Arc::new(OldVersion))).into()
            }
            _ => error,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

fn add(hash: &mut Sha256, der: &[u8]) {
    hash.update(&(der.len() as u64).to_be_bytes());
    hash.update(der);
}

/// The lists in a PEM file, at least one.
fn read_lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let content = read_regular_file(path, MAX_FILE_BYTES).map_err(|error| error.to_string())?;
    let lists = CertificateRevocationListDer::pem_slice_iter(&content);
    let lists = lists.collect::<Result<Vec<_>, _>>();
    let lists = lists.map_err(|error| error.to_string())?;
    match lists.is_empty() {
        true => Err("it has no block X509 CRL; give a PEM file".to_owned()),
        false => Ok(lists),
    }
}

/// The certificates that sites ask their clients for, by the name that a client asks for.
#[derive(Clone, Debug, Default)]
pub struct ClientRules {
    named: Vec<(HostPattern, Option<ClientCertificates>)>,
    /// For clients that ask for no name, or for one that is not there.
    others: Option<ClientCertificates>,
}

impl ClientRules {
    /// Adds a site with these names, or with those that no other site has if there are none.
    pub fn add(&mut self, names: &[HostPattern], certificates: Option<&ClientCertificates>) {
        if names.is_empty() {
            self.others = certificates.cloned();
        }
        let named = names
            .iter()
            .map(|name| (name.clone(), certificates.cloned()));
        self.named.extend(named);
    }

    /// Those of the site that a client asks for.
    pub(super) fn of(&self, name: Option<&str>) -> Option<&ClientCertificates> {
        let found = name.and_then(|name| self.matched(name));
        found.unwrap_or(&self.others).as_ref()
    }

    /// Those of the site that has this name.
    fn matched(&self, name: &str) -> Option<&Option<ClientCertificates>> {
        let named = self.named.iter().map(|(name, rules)| (name, rules));
        HostPattern::best(name, named)
    }

    /// Those that clients who ask for one of `names` are asked for, or for any name if there are none. Clients do not ask for addresses.
    pub fn of_names(&self, names: &[HostPattern]) -> Vec<ClientCertificates> {
        if names.is_empty() {
            return self.all().into_iter().cloned().collect();
        }
        let mut found: Vec<ClientCertificates> = Vec::new();
        for name in names {
            let text = name.to_string();
            let is_address = text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
            let is_below = |(other, _): &&(HostPattern, _)| name.matches(&other.to_string());
            let below = self.named.iter().filter(is_below);
            let below: Vec<_> = below.map(|(_, rules)| rules).collect();
            let asked = if is_address {
                vec![&self.others]
            } else if below.is_empty() {
                vec![self.matched(&text).unwrap_or(&self.others)]
            } else {
                below
            };
            for rules in asked.into_iter().flatten() {
                if !found.contains(rules) {
                    found.push(rules.clone());
                }
            }
        }
        found
    }

    /// All that differ.
    pub fn all(&self) -> Vec<&ClientCertificates> {
        let named = self.named.iter().map(|(_, rules)| rules);
        let mut all: Vec<&ClientCertificates> = Vec::new();
        for rules in named.chain([&self.others]).flatten() {
            if !all.contains(&rules) {
                all.push(rules);
            }
        }
        all
    }

    /// The client of a connection that asked for `name`, and presented `chain` then or when its session began.
    pub(super) fn client(
        &self,
        name: Option<&str>,
        chain: Option<&[CertificateDer<'_>]>,
        unix_time: Duration,
    ) -> TlsClient {
        let rules = self.of(name);
        let verified = rules.and_then(|rules| rules.verified(chain?, unix_time));
        TlsClient {
            rules: rules.map(|rules| rules.0.id),
            certificate: verified,
        }
    }
}

/// The extension of a request over TLS that says which certificates its connection was asked for.
#[derive(Clone, Debug, Default)]
pub struct TlsClient {
    rules: Option<RulesId>,
    certificate: Option<Arc<ClientCertificate>>,
}

impl TlsClient {
    /// Whether the connection was asked for the certificates of `rules`; `None` asks for none.
    pub fn was_asked_for(&self, rules: Option<&ClientCertificates>) -> bool {
        self.rules == rules.map(|rules| rules.0.id)
    }

    /// The certificate of the client, if it has presented a valid one.
    pub fn certificate(&self) -> Option<&ClientCertificate> {
        self.certificate.as_deref()
    }
}

/// The time for which a verified certificate is not verified again by the same rules.
const CHECK_LIFETIME: Duration = Duration::from_secs(60);

/// A verification of a certificate.
#[derive(Debug)]
struct Check {
    rules: RulesId,
    /// The time of Unix.
    at: Duration,
    is_accepted: bool,
}

/// A certificate that a client has presented, and that was verified.
#[derive(Debug)]
pub struct ClientCertificate {
    /// The latest verifications, one by each rules.
    checks: Mutex<Vec<Check>>,
    /// The certificate, and those of its authorities that were presented.
    chain: Vec<CertificateDer<'static>>,
    subject: String,
    issuer: String,
    serial: String,
    fingerprint: String,
}

impl ClientCertificate {
    fn read(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let der = chain.first()?;
        let certificate = x509_cert::Certificate::from_der(der).ok()?;
        let serial = certificate.tbs_certificate.serial_number.as_bytes();
        Some(Self {
            checks: Mutex::default(),
            subject: ascii(&certificate.tbs_certificate.subject.to_string()),
            issuer: ascii(&certificate.tbs_certificate.issuer.to_string()),
            // A leading zero keeps the number positive.
            serial: hex(serial
                .strip_prefix(&[0])
                .filter(|rest| !rest.is_empty())
                .unwrap_or(serial)),
            fingerprint: hex(&Sha256::of(der)),
            chain: chain.iter().map(|one| one.clone().into_owned()).collect(),
        })
    }

    /// The certificate in DER.
    pub fn der(&self) -> &[u8] {
        self.chain.first().map_or(&[], |own| own)
    }

    /// Its subject as text of RFC 4514 in ASCII.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Its issuer, in the same form.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Its serial number in hexadecimal.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// Its SHA-256 in hexadecimal.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `text` with the bytes of other characters as `\\XX` (RFC 4514, section 2.4).
fn ascii(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' => all.push(byte.into()),
            _ => all.push_str(&format!("\\{byte:02X}")),
        }
    }
    all
}

/// The prefix of the sessions of one set of rules, before the ID of the set; those of rustls begin with a TLS version.
const MARK: &[u8] = b"client certificates";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_text_of_a_header_field() {
        assert_eq!(ascii("CN=ana, O=x"), "CN=ana, O=x");
        assert_eq!(ascii("CN=caf\u{e9}\r\nX: y"), "CN=caf\\C3\\A9\\0D\\0AX: y");
    }

    /// An authority, and the rules that accept its certificates.
    fn authority() -> (rcgen::Issuer<'static, rcgen::KeyPair>, ClientCertificates) {
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        std::fs::write(&path, params.self_signed(&key).unwrap().pem()).unwrap();
        let rules = ClientCertificates::from_pem_files(&path, None, false).unwrap();
        (rcgen::Issuer::new(params, key), rules)
    }

    #[test]
    fn names_have_the_authorities_that_their_clients_meet() {
        let [staff, guests, press] = [(); 3].map(|()| authority().1);
        let mut rules = ClientRules::default();
        let names = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.parse().unwrap())
                .collect::<Vec<HostPattern>>()
        };
        rules.add(&names(&["vpn.example.org"]), Some(&staff));
        rules.add(&names(&["*.press.example.org"]), Some(&press));
        rules.add(&names(&["192.0.2.1", "open.example.org"]), None);
        rules.add(&[], Some(&guests));
        for (asked, expected) in [
            (&["vpn.example.org"][..], vec![&staff]),
            (&["a.press.example.org"], vec![&press]),
            (&["*.press.example.org"], vec![&press]),
            (&["*.example.org"], vec![&staff]),
            (&["open.example.org"], vec![]),
            (&["192.0.2.1"], vec![&guests]),
            (&["other.example"], vec![&guests]),
            (&["vpn.example.org", "open.example.org"], vec![&staff]),
            (&[], vec![&staff, &press, &guests]),
        ] {
            let found = rules.of_names(&names(asked));
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{asked:?}");
        }
    }

    #[test]
    fn a_certificate_is_verified_again_after_a_minute() {
        let (issuer, rules) = authority();
        let mut params = rcgen::CertificateParams::default();
        params.not_after = rcgen::date_time_ymd(2030, 1, 1);
        let client = rcgen::KeyPair::generate().unwrap();
        let der = params.signed_by(&client, &issuer).unwrap().der().clone();
        // The beginning of 2030.
        let end = Duration::from_secs(1_893_456_000);
        let before = end - Duration::from_secs(30);
        let certificate = rules.verified(&[der], before).expect("it is valid");
        assert!(rules.still_accept(&certificate, before));
        let others = authority().1;
        assert!(
            !others.still_accept(&certificate, before),
            "of another authority"
        );
        assert!(rules.still_accept(&certificate, end + Duration::from_secs(29)));
        assert!(!rules.still_accept(&certificate, end + Duration::from_secs(31)));
        assert!(
            rules.still_accept(&certificate, before),
            "the clock was put back"
        );
    }

    #[test]
    fn a_certificate_without_extensions_is_refused_with_the_reason() {
        use rcgen::{CertificateParams, KeyPair, SigningKey};
        use x509_cert::der::Encode;
        use x509_cert::der::asn1::BitString;

        let (issuer, rules) = authority();
        let client = KeyPair::generate().unwrap();
        let signed = CertificateParams::default().signed_by(&client, &issuer);
        let mut certificate = x509_cert::Certificate::from_der(signed.unwrap().der()).unwrap();
        // As `openssl x509 -req` makes it without a file of extensions.
        certificate.tbs_certificate.version = x509_cert::Version::V1;
        certificate.tbs_certificate.extensions = None;
        let signed = certificate.tbs_certificate.to_der().unwrap();
        let signature = issuer.key().sign(&signed).unwrap();
        certificate.signature = BitString::from_bytes(&signature).unwrap();
        let der = CertificateDer::from(certificate.to_der().unwrap());
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));
        let refused = rules.verifier().verify_client_cert(&der, &[], now);
        let error = refused.unwrap_err().to_string();
        assert!(
            error.contains("an older version than 3 of X.509"),
            "{error}"
        );
    }
}
