//! Proxies of HTTP between a client and servers, for versions of HTTP over TCP: `https` through a tunnel (RFC 9110, section
//! 9.3.6), `http` by requests with an absolute target (RFC 9112, section 3.2.2).

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::str::FromStr;

use http::header::{HOST, PROXY_AUTHORIZATION};
use http::uri::Scheme;
use http::{Request, StatusCode};
use hyper::client::conn::http1;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_socks::TargetAddr;
use tokio_socks::tcp::Socks5Stream;

use super::Credentials;
use super::target::{Origin, percent_decoded};
use crate::authority::parse_port;
use crate::body::{Body, BoxError, with_source};
use crate::limits::MAX_HEADER_BYTES;

/// The port of a proxy without one, as curl takes it.
const DEFAULT_PORT: u16 = 1080;

/// The proxies of a client, and the servers that they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For `http` URLs.
    pub http: Option<HttpProxy>,
    /// For `https` URLs.
    pub https: Option<HttpProxy>,
    /// Servers that are reached without one.
    pub except: NoProxy,
}

impl Proxies {
    /// The proxy for requests to `origin`.
    pub fn of(&self, origin: &Origin) -> Option<&HttpProxy> {
        let proxy = match origin.scheme == Scheme::HTTP {
            true => self.http.as_ref(),
            false => self.https.as_ref(),
        };
        proxy.filter(|_| !self.except.contains(&origin.host))
    }
}

/// A proxy, written as `http://HOST:PORT`; the scheme, `NAME:PASSWORD@` and the port may be left out. Proxies of SOCKS 5
/// (RFC 1928) have the scheme `socks5`, or `socks5h` if they resolve names.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpProxy {
    pub(super) host: String,
    pub(super) port: u16,
    protocol: Protocol,
    user: Option<User>,
}

/// The protocol of a proxy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http,
    /// The client resolves names.
    Socks5,
    /// The proxy resolves names.
    Socks5Names,
}

/// The name and the password for a proxy.
#[derive(Clone, PartialEq, Eq)]
struct User {
    name: Vec<u8>,
    password: Vec<u8>,
}

impl FromStr for HttpProxy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let protocol = match scheme.to_ascii_lowercase().as_str() {
            "http" => Protocol::Http,
            "socks5" => Protocol::Socks5,
            "socks5h" => Protocol::Socks5Names,
            _ => {
                return Err(format!(
                    "proxies of {}:// are not supported, only http://HOST:PORT and socks5://HOST:PORT",
                    scheme.escape_debug()
                ));
            }
        };
        let wrong = || "it is not a proxy; write http://HOST:PORT".to_owned();
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, authority),
        };
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port = match port {
                    "" => DEFAULT_PORT,
                    port => parse_port(port).map_err(|_| wrong())?,
                };
                (
                    host,
                    Some(port).filter(|port| *port != 0).ok_or_else(wrong)?,
                )
            }
            _ => (address, DEFAULT_PORT),
        };
        let host = match host.strip_prefix('[') {
            Some(host) => host.strip_suffix(']').ok_or_else(wrong)?,
            None => host,
        };
        let is_address = host.parse::<IpAddr>().is_ok();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if host.is_empty() || !(is_address || host.bytes().all(is_name)) {
            return Err(wrong());
        }
        Ok(Self {
            host: host.to_ascii_lowercase(),
            port,
            protocol,
            user: user.map(User::read).transpose()?,
        })
    }
}

impl User {
    /// Reads `NAME:PASSWORD`, of which each may be percent-encoded.
    fn read(text: &str) -> Result<Self, String> {
        let (name, password) = text.split_once(':').unwrap_or((text, ""));
        let decoded = |text| {
            percent_decoded(text)
                .ok_or("a percent sign in its name or password is not followed by two digits")
        };
        Ok(Self {
            name: decoded(name)?,
            password: decoded(password)?,
        })
    }
}

/// Omits name and password.
impl fmt::Display for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.protocol {
            Protocol::Http => "http",
            Protocol::Socks5 => "socks5",
            Protocol::Socks5Names => "socks5h",
        };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Debug for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The reason why there is no connection through a proxy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// Its name has no address.
    #[error("cannot find its host: {0}")]
    Resolve(io::Error),
    /// It cannot be reached.
    #[error("cannot reach it at {address}: {cause}")]
    Connect {
        /// Its address.
        address: SocketAddr,
        /// The error of the system.
        cause: BoxError,
    },
    /// It opens no tunnel.
    #[error("it refuses a tunnel with {0}")]
    Refused(StatusCode),
    /// It does not respond as a proxy does.
    #[error("it does not respond as such a proxy: {0}")]
    Protocol(BoxError),
}

impl HttpProxy {
    /// Opens a tunnel to `origin` over a connection to the proxy.
    pub(super) async fn tunnel(
        &self,
        stream: TcpStream,
        origin: &Origin,
    ) -> Result<TokioIo<Upgraded>, ProxyError> {
        let failed = |error| ProxyError::Protocol(with_source(error));
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEADER_BYTES as usize)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(failed)?;
        tokio::spawn(connection.with_upgrades());
        let target = origin.host_and_port();
        let request = Request::connect(&target).header(HOST, &target);
        let mut request = request
            .body(Body::empty())
            .map_err(|error| ProxyError::Protocol(error.into()))?;
        self.authorize(&mut request);
        let response = sender.send_request(request).await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(ProxyError::Refused(response.status()));
        }
        let tunnel = hyper::upgrade::on(response).await.map_err(failed)?;
        Ok(TokioIo::new(tunnel))
    }

    /// Adds the name and the password for the proxy to a request that it reads.
    pub(super) fn authorize<B>(&self, request: &mut Request<B>) {
        if let Some(user) = &self.user {
            let value = Credentials::basic(&user.name, &user.password);
            let headers = request.headers_mut();
            headers.insert(PROXY_AUTHORIZATION, value.value().clone());
        }
    }

    /// Whether it is a proxy of HTTP, which reads requests that are not encrypted.
    pub(super) fn reads_requests(&self) -> bool {
        self.protocol == Protocol::Http
    }

    /// Opens a connection to `origin` through a proxy of SOCKS.
    pub(super) async fn socks(
        &self,
        stream: TcpStream,
        origin: &Origin,
    ) -> Result<Socks5Stream<TcpStream>, ProxyError> {
        let (host, port) = (origin.host(), origin.port());
        let target = match (self.protocol, host.parse::<IpAddr>()) {
            (_, Ok(ip)) => TargetAddr::Ip(SocketAddr::new(ip, port)),
            (Protocol::Socks5, Err(_)) => {
                let mut found = tokio::net::lookup_host((host, port))
                    .await
                    .map_err(ProxyError::Resolve)?;
                let missing = || ProxyError::Resolve(io::ErrorKind::NotFound.into());
                TargetAddr::Ip(found.next().ok_or_else(missing)?)
            }
            (_, Err(_)) => TargetAddr::Domain(host.into(), port),
        };
        let connected = match &self.user {
            None => Socks5Stream::connect_with_socket(stream, target).await,
            Some(user) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (name, password) = (text(&user.name), text(&user.password));
                Socks5Stream::connect_with_password_and_socket(stream, target, &name, &password)
                    .await
            }
        };
        connected.map_err(|error| ProxyError::Protocol(error.into()))
    }
}

/// Servers that are reached without a proxy: a list of host names, addresses and networks, separated by commas or
/// blanks. A name includes its subdomains; `*` alone is all servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoProxy(Vec<Exception>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Exception {
    Everything,
    Network { ip: IpAddr, bits: u32 },
    Name(String),
}

impl NoProxy {
    /// Reads a list.
    pub fn read(text: &str) -> Self {
        if text.trim() == "*" {
            return Self(vec![Exception::Everything]);
        }
        let entries = text
            .split([',', ' ', '\t'])
            .filter(|entry| !entry.is_empty());
        Self(entries.map(Exception::read).collect())
    }

    /// Whether `host`, a lower-case name or an address without brackets, is one of them.
    pub fn contains(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let ip = host.parse::<IpAddr>().ok();
        self.0.iter().any(|exception| match (exception, ip) {
            (Exception::Everything, _) => true,
            (Exception::Network { ip: network, bits }, Some(ip)) => is_in(ip, *network, *bits),
            (Exception::Name(name), None) => {
                let rest = host.strip_suffix(name.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            _ => false,
        })
    }
}

impl Exception {
    fn read(entry: &str) -> Self {
        let (address, bits) = match entry.split_once('/') {
            Some((address, bits)) => (address, bits.parse().ok()),
            None => (entry, None),
        };
        let address = address.trim_start_matches('[').trim_end_matches(']');
        if let Ok(ip) = address.parse::<IpAddr>() {
            let all = if ip.is_ipv4() { 32 } else { 128 };
            let is_network = entry.contains('/');
            match bits {
                Some(bits) if bits <= all => return Self::Network { ip, bits },
                None if !is_network => return Self::Network { ip, bits: all },
                // Not a network. It matches nothing, as no host has such a name.
                _ => {}
            }
        }
        let name = entry.strip_prefix('.').unwrap_or(entry);
        let name = name.strip_suffix('.').unwrap_or(name);
        Self::Name(name.to_ascii_lowercase())
    }
}

/// Whether the first `bits` of both are equal.
fn is_in(ip: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            let differing = ip.to_bits() ^ network.to_bits();
            differing.leading_zeros() >= bits
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => {
            let differing = ip.to_bits() ^ network.to_bits();
            differing.leading_zeros() >= bits
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_written_with_or_without_scheme_and_port() {
        for (text, shown) in [
            ("http://proxy.test:3128", "http://proxy.test:3128"),
            ("HTTP://Proxy.test:3128/", "http://proxy.test:3128"),
            ("proxy.test", "http://proxy.test:1080"),
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("http://[::1]", "http://[::1]:1080"),
            ("http://me:secret@proxy.test:1", "http://proxy.test:1"),
            ("socks5://me:secret@proxy.test", "socks5://proxy.test:1080"),
            ("SOCKS5H://[::1]:9050", "socks5h://[::1]:9050"),
        ] {
            let proxy: HttpProxy = text.parse().unwrap();
            assert_eq!(proxy.to_string(), shown);
            assert!(!format!("{proxy:?}").contains("secret"));
        }
        let proxy: HttpProxy = "http://me:p%40ss@h".parse().unwrap();
        assert_eq!(proxy.user.unwrap().password, b"p@ss");
        for wrong in [
            "",
            "http://",
            "http://h:0",
            "http://h:99999",
            "http://h:x",
            "http://[::1",
            "http://a b",
            "http://%zz@h",
        ] {
            assert!(wrong.parse::<HttpProxy>().is_err(), "{wrong}");
        }
        for scheme in ["https", "socks4a", "ftp"] {
            let error = format!("{scheme}://h:1").parse::<HttpProxy>().unwrap_err();
            assert!(
                error.contains(scheme) && error.contains("http://HOST"),
                "{error}"
            );
        }
    }

    #[test]
    fn servers_without_a_proxy_are_named_as_for_curl() {
        let list = NoProxy::read(
            "example.org, .inner.test\t10.0.0.0/8,192.0.2.7 2001:db8::/32,[::1],Trailing.test.,1.2.3.4/99",
        );
        for host in [
            "example.org",
            "www.example.org",
            "example.org.",
            "inner.test",
            "a.inner.test",
            "10.1.2.3",
            "192.0.2.7",
            "2001:db8::5",
            "::1",
            "trailing.test",
        ] {
            assert!(list.contains(host), "{host}");
        }
        for host in [
            "notexample.org",
            "org",
            "example.org.evil.test",
            "11.0.0.1",
            "192.0.2.8",
            "2001:db9::1",
            "::2",
            "1.2.3.4",
        ] {
            assert!(!list.contains(host), "{host}");
        }
        assert!(NoProxy::read(" * ").contains("any.test"));
        assert!(!NoProxy::read("a,*").contains("b"), "a star is alone");
        assert!(!NoProxy::read("").contains("any.test"));
        assert!(NoProxy::read("0.0.0.0/0").contains("192.0.2.1"));
    }
}
