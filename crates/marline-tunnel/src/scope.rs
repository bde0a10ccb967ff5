//! The target of a CONNECT-IP request (RFC 9484, sections 3 and 4.6).

use std::net::IpAddr;

use ipnet::IpNet;
use percent_encoding::percent_decode_str;

/// The protocol of extended CONNECT.
pub const PROTOCOL: &str = "connect-ip";

/// The path of requests that are limited to no target and no protocol, by the default template.
pub const UNLIMITED_PATH: &str = "/.well-known/masque/ip/*/*/";

/// The part of the default template before its variables.
const PREFIX: &str = "/.well-known/masque/ip/";

/// The limits of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The only destinations; `None` for all.
    pub target: Option<IpNet>,
    /// The only protocol of payloads, and ICMP; `None` for all.
    pub protocol: Option<u8>,
}

/// Why a path is not one of a CONNECT-IP request that is answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// It is not of the default template.
    #[error("the path is not {PREFIX}TARGET/PROTOCOL/")]
    Path,
    /// The target is neither `*` nor an address or a prefix.
    #[error("the target {0:?} is neither * nor an address or a prefix; names are not resolved")]
    Target(String),
    /// The protocol is neither `*` nor a number.
    #[error("the protocol {0:?} is neither * nor a number from 0 to 255")]
    Protocol(String),
}

impl Scope {
    /// Reads the path of a request, with or without a query.
    ///
    /// # Errors
    /// See [`ScopeError`].
    pub fn of_path(path: &str) -> Result<Self, ScopeError> {
        let path = path.split('?').next().unwrap_or_default();
        let variables = path.strip_prefix(PREFIX).ok_or(ScopeError::Path)?;
        let mut parts = variables.split('/');
        let (Some(target), Some(protocol), Some(""), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(ScopeError::Path);
        };
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let (target, protocol) = (decoded(target), decoded(protocol));
        Ok(Self {
            target: match &*target {
                "*" => None,
                text => Some(prefix(text).ok_or(ScopeError::Target(target))?),
            },
            protocol: match &*protocol {
                "*" => None,
                text => Some(text.parse().map_err(|_| ScopeError::Protocol(protocol))?),
            },
        })
    }
}

/// An address, or a prefix without bits of a host.
fn prefix(text: &str) -> Option<IpNet> {
    match text.parse::<IpAddr>() {
        Ok(address) => Some(address.into()),
        Err(_) => text
            .parse::<IpNet>()
            .ok()
            .filter(|prefix| prefix.trunc() == *prefix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_template_have_a_scope() {
        let path = |rest: &str| Scope::of_path(&format!("{PREFIX}{rest}"));
        assert_eq!(Scope::of_path(UNLIMITED_PATH), Ok(Scope::default()));
        assert_eq!(path("%2A/%2A/"), Ok(Scope::default()));
        let expected = Scope {
            target: Some("192.0.2.0/24".parse().unwrap()),
            protocol: Some(17),
        };
        assert_eq!(path("192.0.2.0%2F24/17/"), Ok(expected));
        let v6 = path("2001%3Adb8%3A%3A42/*/").unwrap();
        assert_eq!(v6.target, Some("2001:db8::42/128".parse().unwrap()));
    }

    #[test]
    fn other_paths_are_refused() {
        let path = |rest: &str| Scope::of_path(&format!("{PREFIX}{rest}")).unwrap_err();
        for rest in ["", "*/*", "*", "*/*/x", "*/*//"] {
            assert_eq!(path(rest), ScopeError::Path, "{rest}");
        }
        assert_eq!(Scope::of_path("/"), Err(ScopeError::Path));
        for target in ["example.org", "192.0.2.1%2F24", "%FF", ""] {
            let error = path(&format!("{target}/*/"));
            assert!(matches!(error, ScopeError::Target(_)), "{target}");
        }
        for protocol in ["tcp", "256", "-1", ""] {
            let error = path(&format!("*/{protocol}/"));
            assert!(matches!(error, ScopeError::Protocol(_)), "{protocol}");
        }
    }
}
