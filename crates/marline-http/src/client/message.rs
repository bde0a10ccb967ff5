//! The parts of a request besides its URL: method, header fields and content.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, Method};

use super::upload::Upload;

/// The message that is sent to the server of a [`Target`](super::Target).
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// The method.
    pub method: Method,
    /// Header fields, instead of those with the same names in the [configuration](super::ClientConfig::headers).
    pub headers: HeaderMap,
    /// The content.
    pub upload: Upload,
    /// The credentials for the server of the URL. After a redirect, another server gets them only if the
    /// [policy](super::Redirects::trusts_others) says so.
    pub credentials: Option<Credentials>,
}

/// The value of `Authorization` (RFC 9110, section 11.6.2). It is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials(HeaderValue);

impl Credentials {
    /// A user and a password, by the scheme Basic (RFC 7617).
    pub fn basic(user: &[u8], password: &[u8]) -> Self {
        let joined = [user, b":", password].concat();
        Self::of(&format!("Basic {}", STANDARD.encode(joined))).expect("base64 is visible ASCII")
    }

    /// A token, by the scheme Bearer (RFC 6750); `None` if it has characters that a header field cannot have.
    pub fn bearer(token: &str) -> Option<Self> {
        Self::of(&format!("Bearer {token}"))
    }

    fn of(value: &str) -> Option<Self> {
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    pub(super) fn value(&self) -> &HeaderValue {
        &self.0
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(..)")
    }
}
