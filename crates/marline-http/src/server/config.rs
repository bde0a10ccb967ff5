//! The configuration of a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use marline::settings::{Domain, Field, Settings};
use marline::{EndpointConfig, Runtime};

use super::{AccessLog, Identity, Site};
use crate::{limits, transport};

/// A server's settings. Start from [`ServerConfig::new`].
#[derive(Debug)]
pub struct ServerConfig {
    /// Where to listen, for TCP and UDP alike. Port 0 finds a free one.
    pub listen: SocketAddr,
    /// Its certificate and key.
    pub identity: Identity,
    /// What answers.
    pub site: Site,
    /// The HTTP versions it speaks.
    pub protocols: Protocols,
    /// What its clients can make it spend.
    pub limits: ServerLimits,
    /// How QUIC behaves.
    pub quic: transport::QuicOptions,
    /// The QUIC endpoint; without, it has the usual settings, and keys that end with the process.
    pub endpoint: Option<EndpointConfig>,
    /// Where to log requests.
    pub access_log: Option<AccessLog>,
    /// Where to serve metrics as `/metrics`, over cleartext HTTP.
    pub metrics: Option<SocketAddr>,
    /// A directory for one qlog file a QUIC connection.
    pub qlog: Option<PathBuf>,
    /// What it runs on; by default, the tokio runtime that binds it. TCP and metrics need tokio anyway.
    pub runtime: Option<Arc<dyn Runtime>>,
}

/// The HTTP versions that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// HTTP/1.1 over TLS.
    pub http1: bool,
    /// HTTP/2 over TLS.
    pub http2: bool,
    /// HTTP/3.
    pub http3: bool,
    /// HTTP/1.1 without TLS on the same TCP port. For laboratories.
    pub cleartext: bool,
}

impl Default for Protocols {
    /// All that are encrypted.
    fn default() -> Self {
        Self {
            http1: true,
            http2: true,
            http3: true,
            cleartext: false,
        }
    }
}

/// What clients can make a server spend. [`limits`] has the reasons of the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections open at once, over all versions.
    pub max_connections: usize,
    /// Requests under way on one connection of HTTP/2. Those of HTTP/3 are streams, which
    /// [`TransportConfig`](marline::TransportConfig) limits.
    pub max_concurrent_requests: u32,
    /// Bytes of one request's header section: 8 KiB to [`limits::MAX_FRAME_BYTES`].
    pub max_header_bytes: u32,
    /// Time for a TLS handshake over TCP. That of QUIC is [`TransportConfig`](marline::TransportConfig)'s.
    pub handshake_timeout: Duration,
    /// Time for the header section of a request to arrive once it began.
    pub header_timeout: Duration,
    /// Time that a connection over TCP, or a response over QUIC, may move no byte.
    pub idle_timeout: Duration,
    /// Time that requests under way have to finish after a shutdown began.
    pub shutdown_grace: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            max_connections: limits::MAX_CONNECTIONS,
            max_concurrent_requests: limits::MAX_CONCURRENT_REQUESTS,
            max_header_bytes: limits::MAX_HEADER_BYTES,
            handshake_timeout: limits::HANDSHAKE_TIMEOUT,
            header_timeout: limits::HEADER_TIMEOUT,
            idle_timeout: limits::IDLE_TIMEOUT,
            shutdown_grace: limits::SHUTDOWN_GRACE,
        }
    }
}

/// Times that a server waits for a client: a day at most.
const WAIT: Domain = Domain::time(Duration::from_millis(1), Duration::from_secs(24 * 3600));

impl ServerLimits {
    /// Its keys in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "max_connections",
            Domain::integer(1, 1_000_000),
            "Connections open at once, over all versions; more are refused",
            |c: &mut Self| &mut c.max_connections,
        ),
        &Field::new(
            "max_concurrent_requests",
            Domain::integer(1, 100_000),
            "Requests under way on one connection of HTTP/2; of HTTP/3: max_concurrent_bidi_streams",
            |c: &mut Self| &mut c.max_concurrent_requests,
        ),
        &Field::new(
            "max_header_bytes",
            // What HTTP/1.1 needs for its buffer at least, and what a frame of HTTP/3 holds at most.
            Domain::bytes(8192, limits::MAX_FRAME_BYTES),
            "Size of a request's header section",
            |c: &mut Self| &mut c.max_header_bytes,
        ),
        &Field::new(
            "handshake_timeout",
            WAIT,
            "How long a TLS handshake over TCP may take",
            |c: &mut Self| &mut c.handshake_timeout,
        ),
        &Field::new(
            "header_timeout",
            WAIT,
            "How long the header section of a request may take once it began",
            |c: &mut Self| &mut c.header_timeout,
        ),
        &Field::new(
            "idle_timeout",
            WAIT,
            "How long a connection over TCP, or a response over QUIC, may move no byte",
            |c: &mut Self| &mut c.idle_timeout,
        ),
        &Field::new(
            "shutdown_grace",
            WAIT,
            "How long requests under way have to finish after a shutdown began",
            |c: &mut Self| &mut c.shutdown_grace,
        ),
    ];
}

impl ServerConfig {
    /// `site` at `listen` with the usual settings.
    pub fn new(listen: SocketAddr, identity: Identity, site: Site) -> Self {
        Self {
            listen,
            identity,
            site,
            protocols: Protocols::default(),
            limits: ServerLimits::default(),
            quic: transport::QuicOptions::default(),
            endpoint: None,
            access_log: None,
            metrics: None,
            qlog: None,
            runtime: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_key() {
        let ServerLimits {
            max_connections: _,
            max_concurrent_requests: _,
            max_header_bytes: _,
            handshake_timeout: _,
            header_timeout: _,
            idle_timeout: _,
            shutdown_grace: _,
        } = ServerLimits::default();
        for setting in ServerLimits::SETTINGS {
            for sample in setting.samples() {
                let mut limits = ServerLimits::default();
                assert_eq!(setting.set(&mut limits, &sample), Ok(()));
                assert!(setting.show(&limits).is_some());
            }
        }
        assert_eq!(ServerLimits::SETTINGS.len(), 7);
    }
}
