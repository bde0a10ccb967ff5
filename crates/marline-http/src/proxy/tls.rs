//! TLS to applications.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use marline::settings::{Domain, Field, Settings, text_values};
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::config::ProxyConfig;
use crate::client::{Client, ClientConfig, ClientError, HttpVersion, Trust};
use crate::server::{Identity, IdentityError};
use crate::tls::TlsVersions;
use crate::transport::QuicOptions;

/// How a proxy verifies applications that it reaches over TLS, and what it presents to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTls {
    /// A PEM file of the certificates to trust, in place of those of this machine.
    pub ca: Option<PathBuf>,
    /// The name to ask for, and that the certificate must have; by default, the host of the URL.
    pub name: Option<TlsName>,
    /// The certificate chain in PEM for applications that ask for one.
    pub cert: Option<PathBuf>,
    /// Its private key in PEM.
    pub key: Option<PathBuf>,
    /// Whether any certificate is accepted: anyone between proxy and application can read and change everything.
    pub insecure: bool,
}

/// The name or the address of a server as certificates have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsName(ServerName<'static>);

/// The ways to reach the applications of a proxy that have TLS; those that no application needs are left out.
#[derive(Clone, Default)]
pub(super) struct Secured {
    /// TLS over TCP.
    pub(super) tcp: Option<TlsConnectors>,
    /// The client whose connections of HTTP/3 all have one socket for each family of addresses.
    pub(super) http3: Option<Arc<Client>>,
}

/// TLS over TCP for the versions of HTTP.
#[derive(Clone)]
pub(super) struct TlsConnectors {
    /// HTTP/2, or HTTP/1.1 if the application does not select that.
    pub(super) any: TlsConnector,
    /// HTTP/1.1, for an Upgrade.
    pub(super) http1: TlsConnector,
}

/// A text is not a name that a certificate can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a name that a certificate can have; write it without a port, as app.example.org"
)]
pub struct InvalidTlsName(String);

impl fmt::Display for TlsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_str())
    }
}

impl FromStr for TlsName {
    type Err = InvalidTlsName;

    fn from_str(text: &str) -> Result<Self, InvalidTlsName> {
        let address = text.trim_start_matches('[').trim_end_matches(']');
        ServerName::try_from(address.to_owned())
            .map(Self)
            .map_err(|_| InvalidTlsName(text.to_owned()))
    }
}

text_values!(TlsName);

/// The settings of TLS to applications cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamTlsError {
    /// There is a certificate without a key, or a key without a certificate.
    #[error("`tls.cert` and `tls.key` belong together; set both")]
    HalfIdentity,
    /// Certificates are named that are not verified.
    #[error(
        "`tls.insecure` accepts every certificate, and `tls.ca` has no effect; leave out one of them"
    )]
    NothingVerified,
    /// The certificate or the key cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The trusted certificates cannot be read, or the certificate cannot be used.
    #[error(transparent)]
    Trust(#[from] ClientError),
    /// The host of an application is not a name that a certificate can have.
    #[error("{0}; set `tls.name`")]
    Name(#[from] InvalidTlsName),
}

const FILE: Domain = Domain::text("the path of a file");

impl UpstreamTls {
    /// Its keys in settings.
    pub(super) const SETTINGS: Settings<Self> = &[
        &Field::new(
            "ca",
            FILE,
            "The certificates in PEM to trust for https:// and h3://, and those that they have signed; by default, those of this machine",
            |c: &mut Self| &mut c.ca,
        ),
        &Field::new(
            "name",
            Domain::text("the name of a host"),
            "The name that https:// and h3:// ask for and that the certificate must have; by default, the host of the URL",
            |c: &mut Self| &mut c.name,
        ),
        &Field::new(
            "cert",
            FILE,
            "The certificate chain in PEM for applications that ask for one",
            |c: &mut Self| &mut c.cert,
        ),
        &Field::new("key", FILE, "Its private key in PEM", |c: &mut Self| {
            &mut c.key
        }),
        &Field::new(
            "insecure",
            Domain::SWITCH,
            "Whether any certificate is accepted, so that anyone on the way can read and change everything: for tests only",
            |c: &mut Self| &mut c.insecure,
        ),
    ];

    /// Makes its paths relative to `base`.
    pub(super) fn resolve(&mut self, base: &Path) {
        let paths = [&mut self.ca, &mut self.cert, &mut self.key];
        for path in paths.into_iter().flatten() {
            *path = base.join(&path);
        }
    }

    /// The name that the certificate of the server at `host` must have.
    ///
    /// # Errors
    /// It is not a name that a certificate can have.
    pub(super) fn name_of(&self, host: &str) -> Result<ServerName<'static>, InvalidTlsName> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => host.parse()?,
        };
        Ok(name.0)
    }

    /// TLS over TCP, for which the files are read.
    ///
    /// # Errors
    /// A file cannot be used, or settings contradict each other.
    pub(super) fn connectors(&self) -> Result<TlsConnectors, UpstreamTlsError> {
        let client = self.client(HttpVersion::Http2)?;
        let any = client.tls(&TlsVersions::default().supported(), client.verifier()?)?;
        let mut http1 = any.clone();
        http1.alpn_protocols = vec![HttpVersion::Http11.alpn().to_vec()];
        Ok(TlsConnectors {
            any: Arc::new(any).into(),
            http1: Arc::new(http1).into(),
        })
    }

    /// A client of HTTP/3 to applications, for which the files are read, with the limits of `config`.
    ///
    /// # Errors
    /// A file cannot be used, settings contradict each other, or there is no runtime.
    pub(super) fn http3(&self, config: &ProxyConfig) -> Result<Client, UpstreamTlsError> {
        let client = ClientConfig {
            connect_timeout: config.connect_timeout,
            max_header_bytes: u32::try_from(config.max_header_bytes).unwrap_or(u32::MAX),
            max_header_fields: config.max_header_fields,
            quic: QuicOptions {
                transport: Arc::new(config.transport()),
                // Without it, a request is sent to an application that answers.
                zero_rtt: false,
                ..QuicOptions::default()
            },
            ..self.client(HttpVersion::Http3)?
        };
        Ok(Client::new(client)?)
    }

    /// The settings of clients of `version`, for which the files are read.
    ///
    /// # Errors
    /// A file cannot be used, or settings contradict each other.
    fn client(&self, version: HttpVersion) -> Result<ClientConfig, UpstreamTlsError> {
        let identity = match (&self.cert, &self.key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some(Identity::from_pem_files(cert, key)?),
            _ => return Err(UpstreamTlsError::HalfIdentity),
        };
        let trust = match (&self.ca, self.insecure) {
            (Some(_), true) => return Err(UpstreamTlsError::NothingVerified),
            (None, true) => Trust::Insecure,
            (Some(path), false) => Trust::File(path.clone()),
            (None, false) => Trust::System,
        };
        Ok(ClientConfig {
            version,
            fallback: false,
            or_http11: true,
            trust,
            identity,
            // The proxy has limits of its own.
            stall_timeout: None,
            ..ClientConfig::default()
        })
    }
}
