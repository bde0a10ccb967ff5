//! The target of a CONNECT-UDP request (RFC 9298, sections 2 and 3.2).

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The part of the default template before its variables.
const PREFIX: &str = "/.well-known/masque/udp/";

/// Bytes of a name of DNS.
const MAX_NAME: usize = 253;

/// Characters that a variable of a template does not have as they are (RFC 6570, section 3.2.2).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A host, by name or address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    host: String,
    port: u16,
}

/// Why a text is no target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The path is not of the default template.
    #[error("the path is not {PREFIX}HOST/PORT/")]
    Path,
    /// There is no host.
    #[error("the host {0:?} is neither a name nor an address")]
    Host(String),
    /// There is no port.
    #[error("the port {0:?} is not a number from 1 to 65535")]
    Port(String),
}

impl Target {
    /// A target of these parts, of which the host may be an address of IPv6 without brackets.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn new(host: &str, port: &str) -> Result<Self, TargetError> {
        let number = port.parse().ok().filter(|port| *port != 0);
        let port = number.ok_or_else(|| TargetError::Port(port.to_owned()))?;
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = !host.is_empty() && host.len() <= MAX_NAME && host.chars().all(is_of_name);
        match is_name || host.parse::<IpAddr>().is_ok() {
            true => Ok(Self {
                host: host.to_owned(),
                port,
            }),
            false => Err(TargetError::Host(host.to_owned())),
        }
    }

    /// Reads the path of a request, with or without a query.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn of_path(path: &str) -> Result<Self, TargetError> {
        let path = path.split('?').next().unwrap_or_default();
        let variables = path.strip_prefix(PREFIX).ok_or(TargetError::Path)?;
        let mut parts = variables.split('/');
        let (Some(host), Some(port), Some(""), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TargetError::Path);
        };
        let host = percent_decode_str(host).decode_utf8_lossy();
        Self::new(&host, port)
    }

    /// The path of a request for it, by the default template.
    pub fn path(&self) -> String {
        let host = utf8_percent_encode(&self.host, ENCODED);
        format!("{PREFIX}{host}/{}/", self.port)
    }
}

/// `HOST:PORT`, with brackets around an address of IPv6.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        match inner {
            Some(inner) if inner.parse::<Ipv6Addr>().is_ok() => Self::new(inner, port),
            // Otherwise the last group of an address would be the port.
            None if !host.contains(':') => Self::new(host, port),
            _ => Err(TargetError::Host(host.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_from_paths_and_written_to_them() {
        for (path, shown) in [
            ("192.0.2.6/443/", "192.0.2.6:443"),
            ("target.example.com/53/", "target.example.com:53"),
            ("2001%3Adb8%3A%3A42/443/", "[2001:db8::42]:443"),
        ] {
            let path = format!("{PREFIX}{path}");
            let target = Target::of_path(&path).unwrap();
            assert_eq!(target.to_string(), shown);
            assert_eq!(target.path(), path);
            assert_eq!(shown.parse(), Ok(target.clone()));
            assert_eq!(Target::of_path(&format!("{path}?x=/")), Ok(target));
        }
    }

    #[test]
    fn other_paths_and_hosts_are_refused() {
        let path = |rest: &str| Target::of_path(&format!("{PREFIX}{rest}")).unwrap_err();
        for rest in ["", "a/1", "a", "a/1/x", "a/1//"] {
            assert_eq!(path(rest), TargetError::Path, "{rest}");
        }
        assert_eq!(Target::of_path("/"), Err(TargetError::Path));
        let long = "a".repeat(MAX_NAME + 1);
        for host in ["", "a%2Fb", "a%20b", "%FF", "fe80%3A%3A1%25eth0", &long] {
            let error = path(&format!("{host}/1/"));
            assert!(matches!(error, TargetError::Host(_)), "{host}");
        }
        for port in ["0", "65536", "x", "", "-1"] {
            let error = path(&format!("a/{port}/"));
            assert!(matches!(error, TargetError::Port(_)), "{port}");
        }
        for text in ["a", "::1:53", "[a]:53", "a:", "[::1]"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
