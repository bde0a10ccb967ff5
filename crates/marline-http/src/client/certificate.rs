//! Why a server's certificate is refused.

/// Why a server's certificate is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateProblem {
    /// It is none of the trusted certificates, and none of them has signed it.
    NotTrusted,
    /// It has no subjectAltName, the only place for a server's names (RFC 9525).
    NoName,
    /// It is another host's, has expired, or has another defect, which the error of TLS states.
    Invalid,
}

impl CertificateProblem {
    /// Reads the message of rustls, because the error of QUIC contains nothing else of it.
    pub(super) fn of(message: &str) -> Self {
        // A certificate of an authority that the server shows as its own is refused before its signer is looked for.
        let untrusted = ["UnknownIssuer", "CaUsedAsEndEntity"];
        if untrusted.iter().any(|one| message.contains(one)) {
            Self::NotTrusted
        } else if message.contains("is not valid for any names") {
            Self::NoName
        } else {
            Self::Invalid
        }
    }

    /// The rest of a sentence that begins with the certificate.
    pub(super) fn explain(self, host: &str, cause: &dyn std::error::Error) -> String {
        match self {
            Self::NotTrusted => {
                "is not trusted: it is another certificate than the trusted ones, and none of \
                                 them has signed it"
                    .to_owned()
            }
            Self::NoName => format!("has no subjectAltName, and so no name for {host}"),
            Self::Invalid => format!("is not valid: {cause}"),
        }
    }
}
