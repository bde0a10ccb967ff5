//! The configuration of a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use marline::Runtime;

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
    /// How QUIC behaves.
    pub quic: transport::QuicOptions,
    /// Where to log requests.
    pub access_log: Option<AccessLog>,
    /// Where to serve metrics as `/metrics`, over cleartext HTTP.
    pub metrics: Option<SocketAddr>,
    /// A directory for one qlog file a QUIC connection.
    pub qlog: Option<PathBuf>,
    /// Connections open at once, over all versions.
    pub max_connections: usize,
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

impl ServerConfig {
    /// `site` at `listen` with the usual settings.
    pub fn new(listen: SocketAddr, identity: Identity, site: Site) -> Self {
        Self {
            listen,
            identity,
            site,
            protocols: Protocols::default(),
            quic: transport::QuicOptions::default(),
            access_log: None,
            metrics: None,
            qlog: None,
            max_connections: limits::MAX_CONNECTIONS,
            runtime: None,
        }
    }
}
