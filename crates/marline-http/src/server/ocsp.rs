//! The status of certificates (OCSP, RFC 6960), which a server staples to its handshakes (RFC 8446, section 4.4.2.1) for
//! certificates that ask for it (RFC 7633).

use std::fmt;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use sha1::{Digest, Sha1};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_cert::Certificate;
use x509_cert::der::asn1::{Null, ObjectIdentifier, OctetString};
use x509_cert::der::{self, Decode, Encode, Header, Reader, SliceReader};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{AuthorityInfoAccessSyntax, SubjectAltName};
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_ocsp::{
    BasicOcspResponse, CertId, CertStatus, OcspRequest, OcspResponse, OcspResponseStatus, Request,
    SingleResponse, TbsRequest,
};

use crate::tls::crypto_provider;

/// The TLS feature extension (RFC 7633, section 4).
const TLS_FEATURE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.1.24");

/// The extension `status_request` of TLS (RFC 6066, section 8), as a TLS feature.
const STATUS_REQUEST: u16 = 5;

/// The access method of responders (RFC 5280, section 4.2.2.1).
const OCSP: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1");

/// SHA-1, by which all responders know certificates (RFC 5019, section 2.1.1). It protects nothing: the signature does.
const SHA1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");

/// The content of responses (RFC 6960, section 4.2.1).
const BASIC_RESPONSE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.1");

/// The extended key usage of responders' certificates: id-kp-OCSPSigning (RFC 6960, section 4.2.2.2), 1.3.6.1.5.5.7.3.9.
const OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];

/// How far the clock of a responder may be ahead.
const CLOCK_SKEW: Duration = Duration::from_secs(300);

/// The most certificates of a response that are tried: responders send one.
const MAX_SIGNERS: usize = 4;

/// The reason why a certificate has no status to staple.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatusError {
    /// The file of the certificate has no issuer.
    #[error("the certificate of its issuer is missing; append it to the file of the certificate")]
    NoIssuer,
    /// The certificate names no responder of plain HTTP.
    #[error("it names no responder with an http URL")]
    NoResponder,
    /// The certificate or that of its issuer cannot be read.
    #[error("the certificate or its issuer's cannot be read: {0}")]
    Certificate(der::Error),
    /// The bytes are not an OCSP response.
    #[error("the answer is not an OCSP response: {0}")]
    Malformed(der::Error),
    /// The responder has no status to give.
    #[error("the responder refuses: {0}")]
    Refused(&'static str),
    /// The response is about other certificates.
    #[error("the response is about another certificate")]
    OtherCertificate,
    /// The responder does not know the certificate.
    #[error("the responder does not know the certificate")]
    Unknown,
    /// Neither the issuer nor a responder that it has certified has signed the response.
    #[error("neither the issuer nor a responder of its has signed the response")]
    Signature,
    /// The response begins later than now.
    #[error("the response begins in the future; check the clock of this machine")]
    NotYet,
    /// The response has ended.
    #[error("the response has expired")]
    Expired,
    /// The response has no end.
    #[error("the response has no end")]
    NoEnd,
}

/// The question for the status of a certificate that asks to be stapled.
#[derive(Clone, Debug)]
pub struct StatusQuery {
    certificate: CertificateDer<'static>,
    name: String,
    responders: Vec<String>,
    issued: Result<Issued, StatusError>,
}

/// The issuer of a certificate, and the identifier of the certificate (RFC 6960, section 4.1.1).
#[derive(Clone, Debug)]
struct Issued {
    issuer: CertificateDer<'static>,
    id: CertId,
}

/// The verified status of a certificate, for a time.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateStatus {
    certificate: CertificateDer<'static>,
    response: Vec<u8>,
    this_update: Duration,
    next_update: Duration,
    is_revoked: bool,
}

impl fmt::Debug for CertificateStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateStatus")
            .field("is_revoked", &self.is_revoked)
            .field("this_update", &self.this_update)
            .field("next_update", &self.next_update)
            .finish_non_exhaustive()
    }
}

/// Whether `certificate` asks that a status be stapled.
fn asks(certificate: &Certificate) -> bool {
    let extensions = certificate.tbs_certificate.extensions.iter().flatten();
    extensions
        .filter(|one| one.extn_id == TLS_FEATURE)
        .filter_map(|one| Vec::<u16>::from_der(one.extn_value.as_bytes()).ok())
        .any(|features| features.contains(&STATUS_REQUEST))
}

/// The name of a certificate in messages: the first one of DNS, or its subject.
fn name(certificate: &Certificate) -> String {
    let tbs = &certificate.tbs_certificate;
    let names = tbs.get::<SubjectAltName>().ok().flatten();
    let names = names.into_iter().flat_map(|(_, names)| names.0);
    let mut names = names.filter_map(|name| match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        _ => None,
    });
    names.next().unwrap_or_else(|| tbs.subject.to_string())
}

/// The http URLs of the responders of a certificate: one of https could need a status of its own.
fn responders(certificate: &Certificate) -> Vec<String> {
    let access = certificate
        .tbs_certificate
        .get::<AuthorityInfoAccessSyntax>();
    let access = access.ok().flatten().into_iter();
    let access = access.flat_map(|(_, access)| access.0);
    let urls = access.filter_map(|one| match one.access_location {
        GeneralName::UniformResourceIdentifier(url) if one.access_method == OCSP => {
            Some(url.to_string())
        }
        _ => None,
    });
    urls.filter(|url| url.starts_with("http://")).collect()
}

impl Issued {
    /// That of `certificate`, whose issuer is one of `others`.
    fn of(
        certificate: &Certificate,
        others: &[CertificateDer<'static>],
    ) -> Result<Self, StatusError> {
        let certificate = &certificate.tbs_certificate;
        let found = others.iter().find_map(|der| {
            let read = Certificate::from_der(der).ok()?.tbs_certificate;
            (read.subject == certificate.issuer).then_some((der, read))
        });
        let (der, issuer) = found.ok_or(StatusError::NoIssuer)?;
        let hash = |bytes: &[u8]| OctetString::new(Sha1::digest(bytes).as_slice());
        let key = issuer.subject_public_key_info.subject_public_key;
        let id = issuer.subject.to_der().and_then(|subject| {
            Ok(CertId {
                hash_algorithm: AlgorithmIdentifierOwned {
                    oid: SHA1,
                    parameters: Some(Null.into()),
                },
                issuer_name_hash: hash(&subject)?,
                issuer_key_hash: hash(key.raw_bytes())?,
                serial_number: certificate.serial_number.clone(),
            })
        });
        Ok(Self {
            issuer: der.clone(),
            id: id.map_err(StatusError::Certificate)?,
        })
    }

    /// Whether a response has the identifier of the request. Responders differ in the parameters of the hash, which has none.
    fn is_subject_of(&self, one: &SingleResponse) -> bool {
        let (asked, has) = (&self.id, &one.cert_id);
        asked.hash_algorithm.oid == has.hash_algorithm.oid
            && asked.issuer_name_hash == has.issuer_name_hash
            && asked.issuer_key_hash == has.issuer_key_hash
            && asked.serial_number == has.serial_number
    }

    /// Verifies that the issuer has signed `signed`, or a responder whose certificate it has signed for that
    /// (RFC 6960, section 4.2.2.2).
    fn verify_signature(
        &self,
        basic: &BasicOcspResponse,
        signed: &[u8],
        unix_time: Duration,
    ) -> Result<(), StatusError> {
        let algorithms = crypto_provider(false).signature_verification_algorithms.all;
        let signature = basic.signature.as_bytes().ok_or(StatusError::Signature)?;
        // The identifiers of rustls are without the header of their sequence.
        let algorithm = &basic.signature_algorithm;
        let parameters = algorithm.parameters.as_ref().map(Encode::to_der);
        let named = algorithm.oid.to_der().and_then(|mut named| {
            named.extend(parameters.transpose()?.unwrap_or_default());
            Ok(named)
        });
        let named = named.map_err(StatusError::Malformed)?;
        let candidates: Vec<&dyn SignatureVerificationAlgorithm> = algorithms
            .iter()
            .copied()
            .filter(|one| one.signature_alg_id().as_ref() == named.as_slice())
            .collect();
        let has_signed = |signer: &CertificateDer<'_>| {
            EndEntityCert::try_from(signer).is_ok_and(|signer| {
                candidates
                    .iter()
                    .any(|one| signer.verify_signature(*one, signed, signature).is_ok())
            })
        };
        if has_signed(&self.issuer) {
            return Ok(());
        }
        let issuer = anchor_from_trusted_cert(&self.issuer).map_err(|_| StatusError::Signature)?;
        let anchors = [issuer];
        let is_delegate = |signer: &CertificateDer<'_>| {
            let Ok(certificate) = EndEntityCert::try_from(signer) else {
                return false;
            };
            let usage = KeyUsage::required(OCSP_SIGNING);
            let now = UnixTime::since_unix_epoch(unix_time);
            let verified =
                certificate.verify_for_usage(algorithms, &anchors, &[], now, usage, None, None);
            verified.is_ok()
        };
        let signers = basic.certs.iter().flatten().take(MAX_SIGNERS);
        let mut signers = signers.filter_map(|one| one.to_der().ok().map(CertificateDer::from));
        match signers.any(|signer| is_delegate(&signer) && has_signed(&signer)) {
            true => Ok(()),
            false => Err(StatusError::Signature),
        }
    }
}

impl StatusQuery {
    /// The question for the first certificate of `chain`; `None` if it does not ask to be stapled, or cannot be read.
    pub(super) fn of(chain: &[CertificateDer<'static>]) -> Option<Self> {
        let (first, others) = chain.split_first()?;
        let certificate = Certificate::from_der(first).ok()?;
        asks(&certificate).then(|| Self {
            certificate: first.clone(),
            name: name(&certificate),
            responders: responders(&certificate),
            issued: Issued::of(&certificate, others),
        })
    }

    /// The certificate, in DER.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// A name of the certificate for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL of the responder for the attempt after `failures`: what failed at one may succeed at another.
    ///
    /// # Errors
    /// [`StatusError::NoResponder`].
    pub fn responder(&self, failures: u32) -> Result<&str, StatusError> {
        let index = (failures as usize).checked_rem(self.responders.len());
        index
            .map(|index| self.responders[index].as_str())
            .ok_or(StatusError::NoResponder)
    }

    /// The content of a request (RFC 6960, section 4.1.1). It has no nonce: responders sign once for all clients.
    ///
    /// # Errors
    /// [`StatusError::NoIssuer`], or a certificate that cannot be read.
    pub fn request(&self) -> Result<Vec<u8>, StatusError> {
        let issued = self.issued.as_ref().map_err(Clone::clone)?;
        let request = OcspRequest {
            tbs_request: TbsRequest {
                request_list: vec![Request {
                    req_cert: issued.id.clone(),
                    single_request_extensions: None,
                }],
                ..TbsRequest::default()
            },
            optional_signature: None,
        };
        request.to_der().map_err(StatusError::Certificate)
    }

    /// Verifies a `response` at `unix_time`, as RFC 6960, section 3.2, requires it.
    ///
    /// # Errors
    /// A client would not accept it.
    pub fn verify(
        &self,
        response: &[u8],
        unix_time: Duration,
    ) -> Result<CertificateStatus, StatusError> {
        let issued = self.issued.as_ref().map_err(Clone::clone)?;
        let outer = OcspResponse::from_der(response).map_err(StatusError::Malformed)?;
        match outer.response_status {
            OcspResponseStatus::Successful => {}
            OcspResponseStatus::MalformedRequest => return Err(StatusError::Refused("malformed")),
            OcspResponseStatus::InternalError => return Err(StatusError::Refused("its own error")),
            OcspResponseStatus::TryLater => return Err(StatusError::Refused("try later")),
            OcspResponseStatus::SigRequired => {
                return Err(StatusError::Refused("it wants signatures"));
            }
            OcspResponseStatus::Unauthorized => return Err(StatusError::Refused("unauthorized")),
        }
        let content = outer
            .response_bytes
            .filter(|content| content.response_type == BASIC_RESPONSE)
            .ok_or(StatusError::Refused("its response is of another type"))?;
        let content = content.response.as_bytes();
        let basic = BasicOcspResponse::from_der(content).map_err(StatusError::Malformed)?;
        let signed = signed_part(content).map_err(StatusError::Malformed)?;
        issued.verify_signature(&basic, signed, unix_time)?;
        let mut about = basic.tbs_response_data.responses.iter();
        let found = about.find(|one| issued.is_subject_of(one));
        let found = found.ok_or(StatusError::OtherCertificate)?;
        let since_1970 = |moment: &x509_ocsp::OcspGeneralizedTime| moment.0.to_unix_duration();
        let this_update = since_1970(&found.this_update);
        let next_update = found.next_update.as_ref().map(since_1970);
        let next_update = next_update.ok_or(StatusError::NoEnd)?;
        if this_update > unix_time + CLOCK_SKEW {
            return Err(StatusError::NotYet);
        }
        if next_update <= unix_time {
            return Err(StatusError::Expired);
        }
        let is_revoked = match found.cert_status {
            CertStatus::Good(_) => false,
            CertStatus::Revoked(_) => true,
            CertStatus::Unknown(_) => return Err(StatusError::Unknown),
        };
        Ok(CertificateStatus {
            certificate: self.certificate.clone(),
            response: response.to_vec(),
            this_update,
            next_update,
            is_revoked,
        })
    }
}

/// The first element of a response, which the signature is of, as it was received.
fn signed_part(content: &[u8]) -> Result<&[u8], der::Error> {
    let mut reader = SliceReader::new(content)?;
    Header::decode(&mut reader)?;
    reader.tlv_bytes()
}

impl CertificateStatus {
    /// The certificate that it is about.
    pub(super) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The response as it was received, in DER.
    pub fn response(&self) -> &[u8] {
        &self.response
    }

    /// The time of the status, since 1970.
    pub fn this_update(&self) -> Duration {
        self.this_update
    }

    /// Its end, since 1970.
    pub fn next_update(&self) -> Duration {
        self.next_update
    }

    /// Whether the issuer has revoked the certificate.
    pub fn is_revoked(&self) -> bool {
        self.is_revoked
    }
}

/// "good, until 2026-01-01T00:00:00Z".
impl fmt::Display for CertificateStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.next_update.as_secs()).unwrap_or(i64::MAX);
        let until = OffsetDateTime::from_unix_timestamp(seconds);
        let until = until.ok().and_then(|until| until.format(&Rfc3339).ok());
        let status = match self.is_revoked {
            false => "good",
            true => "revoked",
        };
        write!(f, "{status}, until {}", until.unwrap_or_default())
    }
}
