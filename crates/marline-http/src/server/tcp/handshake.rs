//! Handshakes of TLS over TCP.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use marline::TicketKey;
use rustls::AlertDescription;
use rustls::server::{
    Acceptor, ClientHello, ServerConnection, ServerSessionMemoryCache, StoresServerSessions,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::limits::TLS_SESSIONS;
use crate::server::tls::settings;
use crate::server::{
    Challenges, ClientCertificates, ClientRules, IdentityError, Protocols, ServerConfig, TlsClient,
};
use crate::tls::{TlsVersions, crypto_provider};

/// The first byte of the suites of TLS 1.3, which no other version has (RFC 8446, appendix B.4).
const TLS13_SUITES: u16 = 0x13;

/// Types of records (RFC 8446, section 5.1).
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// The type of a message (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;

/// The level of an alert that ends a connection (RFC 8446, section 6).
const FATAL: u8 = 2;

/// The protocol version of TLS 1.2.
const TLS12: [u8; 2] = [3, 3];

/// The length in bytes of a record with a ClientHello up to the client's version: a header of 5 bytes, one of 4, and the version.
const UP_TO_VERSION: usize = 11;

/// The protocol of a connection, as its first bytes show.
pub(super) enum Protocol {
    /// TLS.
    Tls,
    /// TLS of a client without any version from 1.2 on, with the alert for it. rustls would send another one: it first checks
    /// extensions that such clients do not have.
    OldTls([u8; 7]),
    /// Another protocol.
    Other,
}

impl Protocol {
    /// Waits for the first bytes of `stream`, which stay there.
    pub(super) async fn of(stream: &TcpStream) -> io::Result<Self> {
        let mut begin = [0; UP_TO_VERSION];
        match stream.peek(&mut begin).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(Self::of_bytes(&begin[..read])),
        }
    }

    fn of_bytes(begin: &[u8]) -> Self {
        match *begin {
            // A client with TLS 1.3 has the version of TLS 1.2 here (RFC 8446, section 4.1.2).
            [HANDSHAKE, _, _, _, _, CLIENT_HELLO, _, _, _, major, minor]
                if [major, minor] < TLS12 =>
            {
                let alert = AlertDescription::ProtocolVersion.into();
                Self::OldTls([ALERT, major, minor, 0, 2, FATAL, alert])
            }
            [HANDSHAKE, ..] => Self::Tls,
            _ => Self::Other,
        }
    }
}

/// TLS over TCP, of a server.
#[derive(Clone)]
pub(in crate::server) struct Tls(Arc<Inner>);

struct Inner {
    rules: ClientRules,
    /// For sites that ask for no certificates of clients.
    plain: Settings,
    /// For others, by what they ask for.
    asking: Vec<(ClientCertificates, Settings)>,
}

/// Settings of TLS.
struct Settings {
    /// For clients that offer TLS 1.3: with keys that are kept or shared, sessions are in tickets.
    modern: Arc<rustls::ServerConfig>,
    /// For other clients. Sessions are in memory, and clients have their IDs: a ticket of TLS 1.2 passes in the clear with the
    /// secret of its connection inside, so that with the key of tickets, which is in a file, recorded connections could be
    /// decrypted.
    sessions_in_memory: Arc<rustls::ServerConfig>,
}

impl Tls {
    /// The TLS of a server with these protocols.
    pub(in crate::server) fn new(
        config: &ServerConfig,
        protocols: Protocols,
        tickets: Option<&Arc<TicketKey>>,
    ) -> Result<Self, IdentityError> {
        let sessions: Arc<dyn StoresServerSessions> = ServerSessionMemoryCache::new(TLS_SESSIONS);
        let new = |rules| Settings::new(config, protocols, tickets, Arc::clone(&sessions), rules);
        let asking = config.client_rules.all().into_iter();
        Ok(Self(Arc::new(Inner {
            rules: config.client_rules.clone(),
            plain: new(None)?,
            asking: asking
                .map(|rules| Ok((rules.clone(), new(Some(rules))?)))
                .collect::<Result<_, IdentityError>>()?,
        })))
    }

    /// The client of a connection whose handshake is complete.
    pub(super) fn client(&self, session: &ServerConnection, unix_time: Duration) -> TlsClient {
        let (name, chain) = (session.server_name(), session.peer_certificates());
        self.0.rules.client(name, chain, unix_time)
    }

    /// The settings for clients that ask for `name`.
    fn settings(&self, name: Option<&str>) -> &Settings {
        let asking = self.0.rules.of(name);
        let asking = asking.and_then(|rules| self.0.asking.iter().find(|(own, _)| own == rules));
        asking.map_or(&self.0.plain, |(_, settings)| settings)
    }

    /// Completes the handshake of a client, or of one that validates a name by one of the `challenges`.
    pub(super) async fn accept<S>(
        &self,
        stream: S,
        challenges: &Challenges,
    ) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let hello = start.client_hello();
        let config = challenges.tls(&hello).unwrap_or_else(|| {
            let settings = self.settings(hello.server_name());
            Arc::clone(match offers_tls13(&hello) {
                true => &settings.modern,
                false => &settings.sessions_in_memory,
            })
        });
        start.into_stream(config).await
    }
}

impl Settings {
    /// The settings of a server with these protocols, which ask for certificates of clients by `rules`.
    fn new(
        config: &ServerConfig,
        protocols: Protocols,
        tickets: Option<&Arc<TicketKey>>,
        sessions: Arc<dyn StoresServerSessions>,
        rules: Option<&ClientCertificates>,
    ) -> Result<Self, IdentityError> {
        let mut alpn: Vec<&[u8]> = Vec::new();
        if protocols.http2 {
            alpn.push(b"h2");
        }
        if protocols.http1 {
            alpn.push(b"http/1.1");
        }
        let versions = TlsVersions::from_least(config.tls_min).supported();
        let mut tls = settings(config, crypto_provider(false), &alpn, &versions, rules)?;
        tls.require_ems = true;
        tls.session_storage = sessions;
        if let Some(log) = &config.quic.key_log {
            tls.key_log = log.log();
        }
        let mut modern = tls.clone();
        if let Some(tickets) = tickets {
            modern.ticketer = Arc::clone(tickets) as _;
        }
        if let Some(rules) = rules {
            rules.bind_sessions(&mut modern);
            rules.bind_sessions(&mut tls);
        }
        Ok(Self {
            modern: Arc::new(modern),
            sessions_in_memory: Arc::new(tls),
        })
    }
}

/// Whether a client offers TLS 1.3, as its suites show.
fn offers_tls13(hello: &ClientHello<'_>) -> bool {
    let mut suites = hello.cipher_suites().iter();
    suites.any(|suite| u16::from(*suite) >> 8 == TLS13_SUITES)
}
