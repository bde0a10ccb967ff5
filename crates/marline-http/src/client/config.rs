//! The configuration of a client.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use marline::{PathPolicy, Runtime};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use super::proxies::Proxies;
use super::trusted::Trusted;
use super::{AltServices, ClientError, CookieJar, Credentials, Hsts, Network, Redirects, Schemes};
use crate::file::read_regular_file;
use crate::pipes::PipesConfig;
use crate::server::{Identity, IdentityError};
use crate::tcp::{TcpProtocol, TcpSockets};
use crate::tls::TlsVersions;
use crate::tls::crypto_provider;
use crate::transport::QuicOptions;
use crate::{limits, pem};

/// The version of HTTP, and its transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpVersion {
    /// HTTP/1.1 over TLS.
    Http11,
    /// HTTP/1.1 over TCP in the clear.
    Http11Cleartext,
    /// HTTP/2 over TLS.
    Http2,
    /// HTTP/3 over QUIC.
    #[default]
    Http3,
}

impl HttpVersion {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http11 => "HTTP/1.1",
            Self::Http11Cleartext => "cleartext HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
        }
    }

    /// Its name in reports.
    pub fn label(self) -> &'static str {
        match self {
            Self::Http11 => "1.1",
            Self::Http11Cleartext => "1.1c",
            Self::Http2 => "2",
            Self::Http3 => "3",
        }
    }

    /// The protocol's name in TLS (RFC 7301).
    pub(crate) fn alpn(self) -> &'static [u8] {
        match self {
            Self::Http11 | Self::Http11Cleartext => b"http/1.1",
            Self::Http2 => b"h2",
            Self::Http3 => b"h3",
        }
    }

    /// The most connections that browsers open to one host.
    pub fn connections_of_browsers(self) -> usize {
        match self {
            Self::Http11 | Self::Http11Cleartext => 6,
            Self::Http2 | Self::Http3 => 1,
        }
    }

    /// Requests that share one connection at a time.
    pub(crate) fn requests_at_once(self) -> usize {
        match self {
            Self::Http11 | Self::Http11Cleartext => 1,
            Self::Http2 | Self::Http3 => 100,
        }
    }
}

/// The certificates that a client trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The certificates of this machine's trust store.
    #[default]
    System,
    /// Only the certificates in a PEM file, and those that they have signed.
    File(PathBuf),
    /// Every certificate, without verification: for tests only.
    Insecure,
}

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The version of HTTP.
    pub version: HttpVersion,
    /// Whether HTTP/2 is used where HTTP/3 does not connect, as by default: a connection over TCP is tried too if there is none over QUIC
    /// after [`HTTP3_HEAD_START`](crate::limits::HTTP3_HEAD_START), and the first that opens is used. Where HTTP/2 was
    /// faster, later connections use it. Where the handshake behind requests in 0-RTT does not complete, they are repeated over
    /// HTTP/2. For HTTP/3 without [`bundle`](Self::bundle),
    /// [`paths`](Self::paths) and [`pipes`](Self::pipes); needs tokio.
    pub fallback: bool,
    /// With [`HttpVersion::Http2`]: whether HTTP/1.1 is used where a server does not select HTTP/2 by ALPN, as servers without
    /// ALPN (RFC 9113, section 3.2). The fallback of HTTP/3 does so in any case.
    pub or_http11: bool,
    /// The certificates to trust.
    pub trust: Trust,
    /// The certificate, with its key, for servers that ask for one.
    pub identity: Option<Identity>,
    /// The versions of TLS over TCP. QUIC always uses TLS 1.3.
    pub tls: TlsVersions,
    /// Header fields of every request.
    pub headers: HeaderMap,
    /// Whether requests of extended CONNECT over HTTP/3 have HTTP datagrams (RFC 9297): their responses have the extension
    /// [`Datagrams`](crate::http3::Datagrams).
    pub datagrams: bool,
    /// The time limit for a connection, including the handshake.
    pub connect_timeout: Duration,
    /// The time that a request may wait without progress of its connection: for the header of its response, and for its
    /// next bytes. Interim responses do not count as progress. `None`: as long as the connection lasts.
    pub stall_timeout: Option<Duration>,
    /// Bytes of the header of a response, at least 8192.
    pub max_header_bytes: u32,
    /// Its fields.
    pub max_header_fields: usize,
    /// The transport of HTTP/2 and HTTP/1.1. With [`TcpProtocol::Multipath`], connections fail where the server or this
    /// kernel has no Multipath TCP.
    pub tcp_protocol: TcpProtocol,
    /// The factory of TCP sockets; by default [`SystemSockets`](crate::tcp::SystemSockets).
    pub tcp_sockets: Option<Arc<dyn TcpSockets>>,
    /// The settings of QUIC.
    pub quic: QuicOptions,
    /// Whether QUIC connections to one origin announce that they belong to one bundle: a server that supports
    /// bundles coordinates them ([`marline::coordination::bundle`]). The bundle has a random identifier for each
    /// client and origin, by which the server can link the connections.
    pub bundle: bool,
    /// Whether each QUIC connection has a socket of its own, and so a port: networks that balance flows by port may route
    /// each differently. Otherwise all share one for each address family. With [`bundle`](Self::bundle) the
    /// connections may meet several bottlenecks, of which window-based controllers take the narrowest for all. The socket of a connection that has ended stays open until the next one
    /// begins.
    pub own_sockets: bool,
    /// The addresses of this machine that QUIC connections use, and how; without it, the one that
    /// the system chooses. Several at once also need
    /// [`multipath`](marline::TransportConfig::multipath) in [`quic`](Self::quic), and a server
    /// with multipath.
    pub paths: Option<PathPolicy>,
    /// Whether QUIC connections with one path migrate when their network is gone or gets no answers
    /// ([`PathManager::follow`](marline::PathManager::follow)): to the address of another of the [`paths`](Self::paths), or without
    /// these, to the one that the system then chooses or that answers. With an [address of this end](Network::local) they stay there.
    pub migrate: bool,
    /// The policy for the number of connections to an origin, and for the one that carries each object; for HTTP/3.
    /// With it, numbers of connections in the options of a fetch or a page load are not used, and objects are fetched
    /// whole.
    pub pipes: Option<PipesConfig>,
    /// A directory for qlog files, one per QUIC connection.
    pub qlog: Option<PathBuf>,
    /// The addresses of hosts, by lower-case name; all others are resolved by the system. Port 0 stands for
    /// the port of the URL.
    pub resolve: BTreeMap<String, SocketAddr>,
    /// Proxies between the client and servers. HTTP/3 does not go through them: with [`fallback`](Self::fallback), HTTP/2 is used where
    /// there is one, and without it, they are for versions over TCP only.
    pub proxies: Proxies,
    /// The addresses of servers and of this machine.
    pub network: Network,
    /// Redirects that [fetches](super::Client::fetch) follow; `None` follows none.
    pub redirects: Option<Redirects>,
    /// The schemes of the URLs that are fetched.
    pub schemes: Schemes,
    /// The cookies that fetches send and keep.
    pub cookies: Option<Arc<CookieJar>>,
    /// The hosts that fetches reach over TLS only, and that responses announce. Nothing is kept from servers whose
    /// certificates are [not verified](Trust::Insecure).
    pub hsts: Option<Arc<Hsts>>,
    /// The servers that origins name for HTTP/3 by `Alt-Svc`, from fetches. As for [`hsts`](Self::hsts), nothing is kept from
    /// servers whose certificates are not verified.
    pub alt_services: Option<Arc<AltServices>>,
    /// Credentials for hosts, by lower-case name. Those of a [message](super::Message::credentials) come first.
    pub credentials: BTreeMap<String, Credentials>,
    /// Whether fetches ask for compressed content, and decode it.
    pub decompress: bool,
    /// The runtime; by default, the tokio runtime in which the client is created. TCP and name resolution
    /// need tokio in any case.
    pub runtime: Option<Arc<dyn Runtime>>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            version: HttpVersion::default(),
            fallback: true,
            or_http11: false,
            trust: Trust::default(),
            identity: None,
            tls: TlsVersions::default(),
            headers: HeaderMap::new(),
            datagrams: false,
            connect_timeout: limits::HANDSHAKE_TIMEOUT,
            stall_timeout: Some(limits::STALL_TIMEOUT),
            max_header_bytes: limits::MAX_HEADER_BYTES,
            max_header_fields: limits::MAX_RESPONSE_FIELDS,
            tcp_protocol: TcpProtocol::default(),
            tcp_sockets: None,
            quic: QuicOptions::default(),
            bundle: false,
            own_sockets: false,
            paths: None,
            migrate: true,
            pipes: None,
            qlog: None,
            resolve: BTreeMap::new(),
            proxies: Proxies::default(),
            network: Network::default(),
            redirects: None,
            schemes: Schemes::default(),
            cookies: None,
            hsts: None,
            alt_services: None,
            credentials: BTreeMap::new(),
            decompress: false,
            runtime: None,
        }
    }
}

impl ClientConfig {
    /// Whether connections over TCP may stand in for QUIC.
    pub(super) fn falls_back(&self) -> bool {
        let needs_quic = self.bundle || self.paths.is_some() || self.pipes.is_some();
        self.fallback && self.version == HttpVersion::Http3 && !needs_quic
    }

    /// The same for HTTP/2.
    pub(super) fn over_http2(&self) -> Self {
        Self {
            version: HttpVersion::Http2,
            or_http11: true,
            ..self.clone()
        }
    }

    /// The same for `http` URLs.
    pub(super) fn in_the_clear(&self) -> Self {
        Self {
            version: HttpVersion::Http11Cleartext,
            ..self.clone()
        }
    }

    /// The verifier of server certificates.
    pub(crate) fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, ClientError> {
        let provider = crypto_provider(self.quic.chacha20_only);
        Ok(match &self.trust {
            Trust::Insecure => Arc::new(Insecure(provider)),
            Trust::System => {
                let roots = Arc::new(system_roots()?);
                WebPkiServerVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|error| ClientError::Trust {
                        path: None,
                        reason: error.to_string(),
                    })?
            }
            Trust::File(path) => Arc::new(file_trust(path, provider)?),
        })
    }

    /// TLS settings for these versions of TLS, with the decisions of `verifier`.
    pub(crate) fn tls(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<rustls::ClientConfig, ClientError> {
        let provider = crypto_provider(self.quic.chacha20_only);
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(|error| ClientError::Quic(error.to_string()))?;
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut tls = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(identity.chain().to_vec(), identity.key())
                .map_err(|error| ClientError::Identity(IdentityError::Mismatch(error)))?,
        };
        tls.alpn_protocols = vec![self.version.alpn().to_vec()];
        if self.version == HttpVersion::Http2 && self.or_http11 {
            tls.alpn_protocols.push(HttpVersion::Http11.alpn().to_vec());
        }
        tls.require_ems = true;
        if let Some(log) = &self.quic.key_log {
            tls.key_log = log.log();
        }
        Ok(tls)
    }
}

fn system_roots() -> Result<RootCertStore, ClientError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let reason = match found.errors.first() {
            Some(error) => error.to_string(),
            None => "this machine has none".to_owned(),
        };
        return Err(ClientError::Trust { path: None, reason });
    }
    Ok(roots)
}

fn file_trust(path: &Path, provider: Arc<CryptoProvider>) -> Result<Trusted, ClientError> {
    let failed = |reason: String| ClientError::Trust {
        path: Some(path.to_owned()),
        reason,
    };
    let content = read_regular_file(path, limits::MAX_TRUST_BYTES)
        .map_err(|error| failed(error.to_string()))?;
    let certificates =
        pem::certificates(&content).map_err(|problem| failed(problem.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots
            .add(certificate.clone())
            .map_err(|error| failed(error.to_string()))?;
    }
    Trusted::new(certificates, roots, provider).map_err(|error| failed(error.to_string()))
}

/// Accepts every certificate, but verifies signatures.
#[derive(Debug)]
struct Insecure(Arc<CryptoProvider>);

impl ServerCertVerifier for Insecure {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
