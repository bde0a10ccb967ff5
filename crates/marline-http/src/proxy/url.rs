//! The URLs of applications.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use http::Uri;
use http::uri::Authority;
use marline::settings::text_values;

use crate::authority::port_of;

/// The protocol by which a proxy reaches an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamProtocol {
    /// HTTP/1.1 without TLS.
    Http,
    /// HTTP/2 without TLS.
    H2c,
    /// HTTP/2 over TLS, or HTTP/1.1 if the application does not select HTTP/2 by ALPN.
    Https,
    /// HTTP/3.
    H3,
}

impl UpstreamProtocol {
    const ALL: [Self; 4] = [Self::Http, Self::H2c, Self::Https, Self::H3];

    /// The scheme of its URLs.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::H2c => "h2c",
            Self::Https => "https",
            Self::H3 => "h3",
        }
    }

    /// Whether TLS protects it.
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::Https | Self::H3)
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Http | Self::H2c => 80,
            Self::Https | Self::H3 => 443,
        }
    }
}

/// An application that a proxy passes requests to: `http://HOST:PORT`, `https://HOST:PORT`, `h2c://HOST:PORT`,
/// `h3://HOST:PORT`, or `unix:PATH` and `h2c://unix:PATH` for a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpstreamUrl {
    protocol: UpstreamProtocol,
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// Host and port.
    Host(Authority),
    /// The path of a Unix socket.
    Socket(PathBuf),
}

impl UpstreamUrl {
    /// The protocol by which it is reached.
    pub fn protocol(&self) -> UpstreamProtocol {
        self.protocol
    }

    /// Host and port; none of a Unix socket.
    pub fn host(&self) -> Option<&Authority> {
        match &self.place {
            Place::Host(authority) => Some(authority),
            Place::Socket(_) => None,
        }
    }

    /// The path of its Unix socket, if it has one.
    pub fn socket(&self) -> Option<&Path> {
        match &self.place {
            Place::Host(_) => None,
            Place::Socket(path) => Some(path),
        }
    }

    /// The host that requests name if they do not name that of the client.
    pub(super) fn authority(&self) -> Authority {
        match &self.place {
            Place::Host(authority) => authority.clone(),
            Place::Socket(_) => Authority::from_static("localhost"),
        }
    }

    /// Makes the path of a Unix socket relative to `base`.
    pub fn resolve(&mut self, base: &Path) {
        if let Place::Socket(path) = &mut self.place {
            *path = base.join(&path);
        }
    }
}

impl fmt::Display for UpstreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.protocol.scheme();
        match &self.place {
            Place::Host(authority) => write!(f, "{scheme}://{authority}"),
            Place::Socket(path) if self.protocol == UpstreamProtocol::Http => {
                write!(f, "unix:{}", path.display())
            }
            Place::Socket(path) => write!(f, "{scheme}://unix:{}", path.display()),
        }
    }
}

/// A text is not the URL of an application that a proxy can pass requests to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an application: {reason}; {advice}")]
pub struct InvalidUpstream {
    text: String,
    reason: &'static str,
    advice: &'static str,
}

const URLS: &str = "write http://HOST:PORT, https://HOST:PORT, h2c://HOST:PORT for HTTP/2 without TLS, h3://HOST:PORT for HTTP/3, or unix:PATH";

impl FromStr for UpstreamUrl {
    type Err = InvalidUpstream;

    fn from_str(text: &str) -> Result<Self, InvalidUpstream> {
        let invalid = |reason| InvalidUpstream {
            text: text.to_owned(),
            reason,
            advice: URLS,
        };
        if let Some((protocol, path)) = unix_socket(text) {
            if protocol.is_encrypted() {
                return Err(invalid("a Unix socket is used without TLS"));
            }
            if path.is_empty() {
                return Err(invalid("the path of the socket is missing"));
            }
            if cfg!(not(unix)) {
                return Err(invalid("this system has no Unix sockets"));
            }
            let place = Place::Socket(path.into());
            return Ok(Self { protocol, place });
        }
        let uri: Uri = text.parse().map_err(|_| invalid("it is not a URL"))?;
        let scheme = uri
            .scheme_str()
            .ok_or_else(|| invalid("it has no scheme"))?;
        let protocol = protocol_of(scheme).ok_or_else(|| invalid("its scheme is not supported"))?;
        let authority = uri.authority().ok_or_else(|| invalid("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(invalid("it has a user"));
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(invalid("it has a path, and requests keep theirs"));
        }
        let port =
            port_of(authority).map_err(|_| invalid("its port is not a number below 65536"))?;
        let authority = match port {
            Some(_) => authority.clone(),
            None => format!("{}:{}", authority.host(), protocol.default_port())
                .parse()
                .map_err(|_| invalid("its host is invalid"))?,
        };
        let place = Place::Host(authority);
        Ok(Self { protocol, place })
    }
}

fn protocol_of(scheme: &str) -> Option<UpstreamProtocol> {
    let mut all = UpstreamProtocol::ALL.into_iter();
    all.find(|protocol| protocol.scheme() == scheme)
}

/// The protocol and the path of a Unix socket, if `text` names one.
fn unix_socket(text: &str) -> Option<(UpstreamProtocol, &str)> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Some((UpstreamProtocol::Http, path));
    }
    let (scheme, rest) = text.split_once("://")?;
    Some((protocol_of(scheme)?, rest.strip_prefix("unix:")?))
}

/// An application, and its share of the requests in relation to those of others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WeightedUpstream {
    /// The application.
    pub url: UpstreamUrl,
    /// Its weight, from 1 to [`MAX_WEIGHT`](Self::MAX_WEIGHT).
    pub weight: u32,
}

impl WeightedUpstream {
    /// The largest weight.
    pub const MAX_WEIGHT: u32 = 1000;
}

impl From<UpstreamUrl> for WeightedUpstream {
    /// With the weight 1.
    fn from(url: UpstreamUrl) -> Self {
        Self { url, weight: 1 }
    }
}

impl fmt::Display for WeightedUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.weight {
            1 => write!(f, "{}", self.url),
            weight => write!(f, "{} weight={weight}", self.url),
        }
    }
}

impl FromStr for WeightedUpstream {
    type Err = InvalidUpstream;

    fn from_str(text: &str) -> Result<Self, InvalidUpstream> {
        let invalid = |reason| InvalidUpstream {
            text: text.to_owned(),
            reason,
            advice: URLS,
        };
        if text.contains(',') && text.matches("://").count() > 1 {
            return Err(invalid("several are a list of texts"));
        }
        let (url, weight) = match text.split_once(" weight=") {
            None => (text, 1),
            Some((url, weight)) => {
                let weight = weight.parse().ok();
                let allowed = weight.filter(|weight| (1..=Self::MAX_WEIGHT).contains(weight));
                let wrong = || InvalidUpstream {
                    advice: "write http://HOST:PORT weight=3, and leave out an application that is to get no requests",
                    ..invalid("its weight is not a whole number from 1 to 1000")
                };
                (url.trim_end(), allowed.ok_or_else(wrong)?)
            }
        };
        let url = url.parse()?;
        Ok(Self { url, weight })
    }
}

text_values!(WeightedUpstream);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_is_a_host_with_or_without_a_port() {
        for (text, shown) in [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("http://app/", "http://app:80"),
            ("https://app", "https://app:443"),
            ("h2c://[::1]:50051", "h2c://[::1]:50051"),
            ("h3://app", "h3://app:443"),
        ] {
            assert_eq!(text.parse::<UpstreamUrl>().unwrap().to_string(), shown);
        }
        for (text, words) in [
            ("app:8000", "no scheme"),
            ("ftp://app", "its scheme is not supported"),
            ("http://app/base", "has a path"),
            ("http://user@app", "has a user"),
            ("", "not a URL"),
            ("https://unix:/run/app.sock", "without TLS"),
            ("h3://unix:/run/app.sock", "without TLS"),
            ("unix:", "path of the socket is missing"),
        ] {
            let error = text.parse::<UpstreamUrl>().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_weight_follows_the_url() {
        for text in [
            "http://app:80",
            "https://app:443 weight=3",
            "unix:/run/a.sock weight=1000",
        ] {
            assert_eq!(text.parse::<WeightedUpstream>().unwrap().to_string(), text);
        }
        for (text, words) in [
            ("http://app weight=0", "from 1 to 1000"),
            ("http://app weight=0", "leave out an application"),
            ("http://app weight=1001", "from 1 to 1000"),
            ("http://app weight=-1", "from 1 to 1000"),
            ("http://a, http://b", "a list of texts"),
            ("http://app slow", "not a URL"),
        ] {
            let error = text.parse::<WeightedUpstream>().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_unix_socket_has_a_path_that_may_be_relative() {
        for (text, shown) in [
            ("unix:/run/app.sock", "unix:/run/app.sock"),
            ("http://unix:/run/app.sock", "unix:/run/app.sock"),
            ("h2c://unix:app.sock", "h2c://unix:/etc/marline/app.sock"),
        ] {
            let mut url: UpstreamUrl = text.parse().unwrap();
            url.resolve(Path::new("/etc/marline"));
            assert_eq!(url.to_string(), shown);
            assert_eq!(url.host(), None);
        }
    }
}
