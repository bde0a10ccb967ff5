//! Files of certificates and keys in PEM (RFC 7468), and their faults.

mod der;
mod problem;

use std::fmt;
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

pub use self::der::KeyKind;
use self::der::{Object, identify};
pub use self::problem::{PemProblem, Validity};
use self::problem::{RSA_BITS, Wanted};

/// The byte order mark with which editors of Windows begin text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The certificates in a file, at least one.
///
/// # Errors
/// There is none, or one is damaged.
pub(crate) fn certificates(content: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemProblem> {
    let content = without_mark(content);
    let read = CertificateDer::pem_slice_iter(content).collect::<Result<Vec<_>, _>>();
    let certificates =
        read.map_err(|error| problem::explain(content, Wanted::Certificate, Some(&error)))?;
    if certificates.is_empty() {
        return Err(problem::explain(content, Wanted::Certificate, None));
    }
    for (number, certificate) in (1..).zip(&certificates) {
        match identify(certificate) {
            Some(Object::Certificate(_)) => {}
            _ => return Err(PemProblem::DamagedCertificate { number }),
        }
    }
    Ok(certificates)
}

/// The private key in a file, the first of several, and how many there are.
pub(crate) struct FoundKey {
    pub(crate) key: PrivateKeyDer<'static>,
    count: usize,
}

/// The private key in a file.
///
/// # Errors
/// There is none, it is encrypted or damaged, or the algorithms of `provider` do not support it.
pub(crate) fn private_key(
    content: &[u8],
    provider: &CryptoProvider,
) -> Result<FoundKey, PemProblem> {
    let content = without_mark(content);
    let explain = |error: Option<&pem::Error>| problem::explain(content, Wanted::PrivateKey, error);
    let keys = PrivateKeyDer::pem_slice_iter(content)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| explain(Some(&error)))?;
    let count = keys.len();
    let key = keys.into_iter().next().ok_or_else(|| explain(None))?;
    if provider
        .key_provider
        .load_private_key(key.clone_key())
        .is_err()
    {
        return Err(match identify(key.secret_der()) {
            Some(Object::PrivateKey(KeyKind::Rsa { bits })) if !RSA_BITS.contains(&bits) => {
                PemProblem::RsaSize { bits }
            }
            Some(Object::PrivateKey(KeyKind::Rsa { .. })) => PemProblem::DamagedKey,
            Some(Object::PrivateKey(kind)) => PemProblem::Unsupported { kind },
            Some(Object::EncryptedKey) => PemProblem::Encrypted,
            _ => PemProblem::DamagedKey,
        });
    }
    Ok(FoundKey { key, count })
}

/// Checks that the key is that of the first certificate.
///
/// # Errors
/// The key is another certificate's, or clients do not accept a certificate from a server.
pub(crate) fn check_pair(
    chain: &[CertificateDer<'static>],
    found: &FoundKey,
    provider: &CryptoProvider,
) -> Result<(), PemProblem> {
    let certificates: Vec<_> = chain.iter().filter_map(|der| certificate(der)).collect();
    if certificates
        .first()
        .is_some_and(|first| !first.has_extensions)
    {
        return Err(PemProblem::NoExtensions);
    }
    let signer = provider
        .key_provider
        .load_private_key(found.key.clone_key());
    let public = signer
        .ok()
        .and_then(|signer| Some(signer.public_key()?.to_vec()));
    let Some(public) = public else {
        return Ok(());
    };
    match certificates.iter().position(|one| one.public_key == public) {
        Some(0) => Ok(()),
        Some(place) => Err(PemProblem::WrongOrder { number: place + 1 }),
        None if found.count > 1 => Err(PemProblem::SeveralKeys { count: found.count }),
        None => Err(PemProblem::OtherKey),
    }
}

/// The first certificate of a chain that is not valid at `now`, if there is one.
pub(crate) fn validity(chain: &[CertificateDer<'static>], now: OffsetDateTime) -> Option<Validity> {
    (1..).zip(chain).find_map(|(number, der)| {
        let certificate = certificate(der)?;
        let not_before = certificate.not_before.filter(|from| now < *from);
        let not_after = certificate.not_after.filter(|until| now > *until);
        not_before
            .map(|from| Validity::NotYet { number, from })
            .or_else(|| not_after.map(|until| Validity::Expired { number, until }))
    })
}

/// The validity of a certificate, in times since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dates {
    /// Its first moment.
    pub not_before: Duration,
    /// Its last moment.
    pub not_after: Duration,
}

impl fmt::Display for Dates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "until {}", shown(self.not_after))
    }
}

/// A time since 1970 in a message.
pub(crate) fn shown(since_1970: Duration) -> String {
    let seconds = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX);
    let moment = OffsetDateTime::from_unix_timestamp(seconds);
    let shown = moment.ok().and_then(|moment| moment.format(&Rfc3339).ok());
    shown.unwrap_or_default()
}

/// The validity of the certificate `der`, if it can be read.
pub(crate) fn dates(der: &[u8]) -> Option<Dates> {
    let certificate = certificate(der)?;
    let since_1970 = |moment: OffsetDateTime| {
        let seconds = u64::try_from(moment.unix_timestamp()).ok()?;
        Some(Duration::from_secs(seconds))
    };
    Some(Dates {
        not_before: since_1970(certificate.not_before?)?,
        not_after: since_1970(certificate.not_after?)?,
    })
}

fn certificate(der: &[u8]) -> Option<der::Certificate> {
    match identify(der)? {
        Object::Certificate(certificate) => Some(certificate),
        _ => None,
    }
}

fn without_mark(content: &[u8]) -> &[u8] {
    content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content)
}
