//! The property of requests that makes them those of one client.

use std::fmt;
use std::str::FromStr;

use http::header::{HeaderMap, HeaderName};
use marline::settings::text_values;

use crate::header::cookie;

/// A property of requests: those with the same value belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RequestKey {
    /// The address of the client.
    #[default]
    Address,
    /// The value of a field.
    Field(HeaderName),
    /// The value of a cookie.
    Cookie(String),
}

/// A text is not a [`RequestKey`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a request property; write address, header:NAME or cookie:NAME")]
pub struct InvalidRequestKey(String);

impl RequestKey {
    /// That of the field with this name, if it is one.
    pub(crate) fn field(name: &str) -> Option<Self> {
        name.parse().ok().map(Self::Field)
    }

    /// That of the cookie with this name, if it is one: its characters are those of a field's name (RFC 6265, section 4.1.1).
    pub(crate) fn cookie(name: &str) -> Option<Self> {
        let is_name = name.parse::<HeaderName>().is_ok();
        is_name.then(|| Self::Cookie(name.to_owned()))
    }

    /// The value in a request with the fields `headers`, if they have one.
    pub fn value<'a>(&self, headers: &'a HeaderMap) -> Option<&'a [u8]> {
        match self {
            Self::Address => None,
            Self::Field(name) => headers.get(name).map(|value| value.as_bytes()),
            Self::Cookie(name) => cookie(headers, name),
        }
    }
}

impl FromStr for RequestKey {
    type Err = InvalidRequestKey;

    fn from_str(text: &str) -> Result<Self, InvalidRequestKey> {
        let key = match text.split_once(':') {
            None if text == "address" => Some(Self::Address),
            Some(("header", name)) => Self::field(name),
            Some(("cookie", name)) => Self::cookie(name),
            _ => None,
        };
        key.ok_or_else(|| InvalidRequestKey(text.to_owned()))
    }
}

impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => f.write_str("address"),
            Self::Field(name) => write!(f, "header:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
        }
    }
}

text_values!(RequestKey);
