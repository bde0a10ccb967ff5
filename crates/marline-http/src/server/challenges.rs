//! Answers to the challenges by which a certificate authority validates names (RFC 8555, section 8).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::ClientHello;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::IdentityError;
use crate::tls::crypto_provider;

/// The protocol of the challenge over TLS (RFC 8737, section 6.2).
pub(super) const ACME_TLS: &[u8] = b"acme-tls/1";

/// The directory of the resources of the challenge over HTTP (RFC 8555, section 8.3).
const HTTP_PATH: &str = "/.well-known/acme-challenge/";

/// The answers to the challenges of orders that are under way: over HTTP on port 80 (`http-01`), and over TLS on port 443
/// (`tls-alpn-01`, RFC 8737). All clones are one.
#[derive(Clone, Default)]
pub struct Challenges(Arc<Mutex<Pending>>);

/// At most one for each name of the order that is under way.
#[derive(Default)]
struct Pending {
    /// Key authorizations by token.
    http: HashMap<String, String>,
    /// TLS by name.
    tls: HashMap<String, Arc<rustls::ServerConfig>>,
}

/// A challenge that is answered until this is dropped.
#[must_use]
#[derive(Debug)]
pub struct AnsweredChallenge {
    challenges: Challenges,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Http { token: String },
    Tls { name: String },
}

impl fmt::Debug for Challenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending = self.pending();
        f.debug_struct("Challenges")
            .field("http", &pending.http.len())
            .field("tls", &pending.tls.len())
            .finish()
    }
}

impl Challenges {
    /// Answers requests for `token` with `key_authorization`.
    pub fn answer_http(&self, token: &str, key_authorization: &str) -> AnsweredChallenge {
        let token = token.to_owned();
        let mut pending = self.pending();
        pending
            .http
            .insert(token.clone(), key_authorization.to_owned());
        AnsweredChallenge {
            challenges: self.clone(),
            kind: Kind::Http { token },
        }
    }

    /// Answers handshakes of `acme-tls/1` for `name` with a certificate that has `digest`, the SHA-256 of the key authorization
    /// (RFC 8737, section 3).
    ///
    /// # Errors
    /// `name` is not valid in certificates.
    pub fn answer_tls(
        &self,
        name: &str,
        digest: &[u8],
    ) -> Result<AnsweredChallenge, IdentityError> {
        let name = name.to_ascii_lowercase();
        let mut params = CertificateParams::new(vec![name.clone()])?;
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let provider = crypto_provider(false);
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let key = provider
            .key_provider
            .load_private_key(key)
            .map_err(IdentityError::Mismatch)?;
        // Not compared with the certificate, whose critical extension is unknown there.
        let certified = CertifiedKey::new(vec![certificate.der().clone()], key);
        let mut settings = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(IdentityError::Mismatch)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        settings.alpn_protocols = vec![ACME_TLS.to_vec()];
        let mut pending = self.pending();
        pending.tls.insert(name.clone(), Arc::new(settings));
        Ok(AnsweredChallenge {
            challenges: self.clone(),
            kind: Kind::Tls { name },
        })
    }

    /// The content of the response to a request for `path`, if it is of a challenge.
    pub fn response(&self, path: &str) -> Option<String> {
        let token = path.strip_prefix(HTTP_PATH)?;
        self.pending().http.get(token).cloned()
    }

    /// The TLS of a client that validates a name.
    pub(super) fn tls(&self, hello: &ClientHello<'_>) -> Option<Arc<rustls::ServerConfig>> {
        // Only this one is offered (RFC 8737, section 3).
        let mut offered = hello.alpn()?;
        if offered.next() != Some(ACME_TLS) || offered.next().is_some() {
            return None;
        }
        let name = hello.server_name()?.to_ascii_lowercase();
        self.pending().tls.get(&name).cloned()
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AnsweredChallenge {
    fn drop(&mut self) {
        let mut pending = self.challenges.pending();
        match &self.kind {
            Kind::Http { token } => drop(pending.http.remove(token)),
            Kind::Tls { name } => drop(pending.tls.remove(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_of_a_pending_challenge_has_a_response() {
        let challenges = Challenges::default();
        let answered = challenges.answer_http("token", "token.thumbprint");
        let path = "/.well-known/acme-challenge/token";
        assert_eq!(challenges.response(path).unwrap(), "token.thumbprint");
        for other in [
            "/token",
            "/.well-known/acme-challenge/",
            "/.well-known/acme-challenge/other",
        ] {
            assert_eq!(challenges.response(other), None, "{other}");
        }
        drop(answered);
        assert_eq!(challenges.response(path), None);
    }
}
