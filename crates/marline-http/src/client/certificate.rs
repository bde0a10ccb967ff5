//! The reasons why a server's certificate is refused.

use rustls::CertificateError;

/// Why a server's certificate is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateProblem {
    /// It is not among the trusted certificates, and none of them has signed it.
    NotTrusted,
    /// It has no subjectAltName, the only place for a server's names (RFC 9525).
    NoName,
    /// It is another host's, has expired, or has another defect, which the error of TLS states.
    Invalid,
}

impl CertificateProblem {
    /// The problem for which rustls refused a certificate.
    pub(super) fn of(error: &CertificateError) -> Self {
        match error {
            CertificateError::UnknownIssuer => Self::NotTrusted,
            // rustls refuses an authority's certificate that the server presents as its own before it looks for the
            // signer.
            CertificateError::Other(other)
                if matches!(
                    other.0.downcast_ref(),
                    Some(webpki::Error::CaUsedAsEndEntity)
                ) =>
            {
                Self::NotTrusted
            }
            CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
                Self::NoName
            }
            _ => Self::Invalid,
        }
    }

    /// The explanation as the rest of a sentence whose subject is the certificate.
    pub(super) fn explain(self, host: &str, cause: &dyn std::error::Error) -> String {
        match self {
            Self::NotTrusted => {
                "is not trusted: it is not among the trusted certificates, and none of \
                                 them has signed it"
                    .to_owned()
            }
            Self::NoName => format!("has no subjectAltName, and so no name for {host}"),
            Self::Invalid => format!("is not valid: {cause}"),
        }
    }
}
