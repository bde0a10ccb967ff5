//! Errors of certificates.

use std::path::PathBuf;
use std::time::Duration;

use marline_http::client::ClientError;
use marline_http::server::{IdentityError, StateError};

/// The reason why a certificate cannot be obtained.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// No authority gives a certificate for a wildcard by the challenges that a server can answer.
    #[error(
        "{place}: an authority validates the wildcard {name} by DNS-01 only, which a server cannot answer; give the site `cert` and `key`, or list its names"
    )]
    Wildcard {
        /// The site.
        place: String,
        /// The name.
        name: String,
    },
    /// The settings cannot be used.
    #[error("{place}, acme: {reason}")]
    Config {
        /// The site.
        place: String,
        /// The problem, and what to set.
        reason: &'static str,
    },
    /// There is no directory for accounts and certificates.
    #[error(
        "certificates by ACME need a state directory, or each start would ask for new ones; give --state DIR"
    )]
    NoState,
    /// A file of the state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A file of the state directory has no account.
    #[error("{} is not an account of this version of marline; remove it to make a new one", path.display())]
    Account {
        /// The file.
        path: PathBuf,
    },
    /// The certificate that was issued cannot be used.
    #[error("the authority's certificate cannot be used: {0}")]
    Issued(#[from] IdentityError),
    /// The key or the request could not be made.
    #[error("cannot make a request for a certificate: {0}")]
    Request(#[from] rcgen::Error),
    /// The authority cannot be reached.
    #[error("cannot reach the certificate authority: {0}")]
    Unreachable(#[from] ClientError),
    /// The authority refused, or a validation failed.
    #[error("{}", refused(.what, .kind.as_deref(), .detail.as_deref()))]
    Refused {
        /// The name that it is about, or the order.
        what: String,
        /// The type of the problem (RFC 8555, section 6.7), without its prefix.
        kind: Option<String>,
        /// The authority's own words.
        detail: Option<String>,
    },
    /// The authority offers no challenge that the server can answer.
    #[error(
        "the authority does not offer to validate {name} by {}; set `redirect_http` to answer over HTTP, or give `cert` and `key`",
        can_answer
    )]
    NoChallenge {
        /// The name.
        name: String,
        /// The challenges that the server can answer.
        can_answer: String,
    },
    /// The authority answered something unexpected.
    #[error("the certificate authority did not answer as expected: {0}")]
    Protocol(String),
    /// The order took too long.
    #[error("the certificate authority did not issue the certificate within {} minutes", .0.as_secs() / 60)]
    Timeout(Duration),
}

impl CertificateError {
    /// Whether it is this problem of an authority.
    pub(crate) fn is(&self, problem: &str) -> bool {
        matches!(self, Self::Refused { kind: Some(kind), .. } if kind == problem)
    }
}

impl From<instant_acme::Error> for CertificateError {
    fn from(error: instant_acme::Error) -> Self {
        match error {
            instant_acme::Error::Api(problem) => Self::of_problem("the order", &problem),
            instant_acme::Error::Other(cause) => match cause.downcast::<ClientError>() {
                Ok(cause) => Self::Unreachable(*cause),
                Err(cause) => Self::Protocol(cause.to_string()),
            },
            other => Self::Protocol(other.to_string()),
        }
    }
}

impl CertificateError {
    /// The problem document of an authority about `what`.
    pub(crate) fn of_problem(what: &str, problem: &instant_acme::Problem) -> Self {
        let kind = |kind: &Option<String>| {
            let kind = kind.as_deref()?;
            let name = kind.rsplit(':').next().unwrap_or(kind);
            Some(name.to_owned())
        };
        // A problem of one name says more than that of the order.
        if let Some(first) = problem.subproblems.first() {
            let named = first.identifier.as_ref();
            let named = named.map(|one| one.authorized(false).to_string());
            return Self::Refused {
                what: named.unwrap_or_else(|| what.to_owned()),
                kind: kind(&first.r#type),
                detail: first.detail.clone(),
            };
        }
        Self::Refused {
            what: what.to_owned(),
            kind: kind(&problem.r#type),
            detail: problem.detail.clone(),
        }
    }
}

/// A problem (RFC 8555, section 6.7) in plain words, with what to do.
fn refused(what: &str, kind: Option<&str>, detail: Option<&str>) -> String {
    let plain = match kind {
        Some("dns") => "its address cannot be looked up; let its DNS records name this machine",
        Some("connection") => {
            "the authority cannot connect to it; let ports 80 and 443 of its addresses reach this server"
        }
        Some("unauthorized" | "incorrectResponse") => {
            "another server answered in place of this one; let all its addresses be of this machine"
        }
        Some("tls") => "the authority's handshake failed; let port 443 reach this server unchanged",
        Some("caa") => "its CAA records forbid this authority; add the authority to them",
        Some("rejectedIdentifier") => "the authority gives no certificates for this name",
        Some("rateLimited") => "too many requests; the next attempt waits",
        Some("externalAccountRequired") => {
            "the authority gives certificates to accounts of its own only; set `eab_key_id` and `eab_hmac`"
        }
        Some("invalidContact" | "unsupportedContact") => {
            "the authority does not accept the contact; set another"
        }
        Some("userActionRequired") => "the authority waits for you to visit the page that it names",
        Some("accountDoesNotExist") => "the authority does not know the account",
        Some("serverInternal") => "the authority has an error of its own",
        _ => "the authority refused",
    };
    let mut text = format!("{what}: {plain}");
    if let Some(kind) = kind {
        text += &format!(" ({kind}");
        if let Some(detail) = detail {
            text += &format!(": {detail}");
        }
        text.push(')');
    } else if let Some(detail) = detail {
        text += &format!(" ({detail})");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_shown_in_plain_words_with_those_of_the_authority() {
        let document = r#"{"type": "urn:ietf:params:acme:error:malformed", "detail": "several",
            "subproblems": [{"type": "urn:ietf:params:acme:error:dns", "detail": "NXDOMAIN",
            "identifier": {"type": "dns", "value": "example.org"}}]}"#;
        let problem = serde_json::from_str(document).unwrap();
        let error = CertificateError::of_problem("the order", &problem);
        assert!(error.is("dns"));
        let expected = "example.org: its address cannot be looked up; let its DNS records name this machine (dns: NXDOMAIN)";
        assert_eq!(error.to_string(), expected);
    }
}
