//! Reports of fetches. The names of the JSON keys are a stable interface.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Method, StatusCode, Uri};
use rustls::pki_types::CertificateDer;
use serde::Serialize;

use super::ClientError;
use crate::pipes::PipeReport;

/// The report of a fetch: all objects and all connections.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// One for each URL, in the order given.
    pub objects: Vec<ObjectReport>,
    /// In the order opened.
    pub connections: Vec<ConnectionReport>,
    /// The pipes, if the client has [pools](super::ClientConfig::pipes) of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pipes: Vec<PipeReport>,
    /// Whether the connections are a bundle and every server announced that it coordinates them
    /// ([`ClientConfig::bundle`](super::ClientConfig::bundle)).
    pub bundle: bool,
    /// Whether every connection may have several paths.
    pub multipath: bool,
    /// From the start to the last byte of the last object, in seconds.
    pub page_load_s: f64,
}

impl Report {
    /// Whether every object arrived whole with a 2xx status.
    pub fn is_complete(&self) -> bool {
        self.objects.iter().all(ObjectReport::is_complete)
    }
}

/// One object. Times are seconds since the start of the fetch.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ObjectReport {
    /// The URL, as it was given.
    pub url: String,
    /// The response's status, if one came.
    pub status: Option<u16>,
    /// Bytes of the object, including those of an earlier attempt that was resumed.
    pub bytes: u64,
    /// The hash of the object, if it is complete and was hashed.
    pub sha256: Option<String>,
    /// When it was requested.
    pub start_s: f64,
    /// When its connection was open: before that, the request waited for the handshake.
    pub connected_s: Option<f64>,
    /// When the response's header had arrived.
    pub first_byte_s: Option<f64>,
    /// When it was complete, or failed.
    pub end_s: f64,
    /// The ID of the connection.
    pub connection: Option<u64>,
    /// `1.1c`, `1.1`, `2` or `3`.
    pub http_version: &'static str,
    /// The file to which it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The requests for it and the headers of their responses: redirects, and the last.
    #[serde(skip)]
    pub exchanges: Vec<Exchange>,
    /// The reason why it is not complete or not a success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The error as a value, if it was an error and not a status.
    #[serde(skip)]
    pub failure: Option<Arc<ClientError>>,
}

impl ObjectReport {
    /// Whether it arrived whole with a 2xx status, or has not changed as a condition of the request asks.
    pub fn is_complete(&self) -> bool {
        self.error.is_none()
            && self
                .status
                .is_some_and(|status| status / 100 == 2 || status == 304)
    }

    pub(super) fn fail(&mut self, error: ClientError) {
        self.error = Some(error.to_string());
        self.failure = Some(Arc::new(error));
    }
}

/// A request, and the header of its response.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The absolute URI of the request.
    pub uri: Uri,
    /// Its method.
    pub method: Method,
    /// Its header fields. `Host`, and lengths that the connection adds, are not among them.
    pub request: HeaderMap,
    /// The length of its content, if it has some of a known length.
    pub content_length: Option<u64>,
    /// The ID of the connection.
    pub connection: u64,
    /// `1.1c`, `1.1`, `2` or `3`.
    pub http_version: &'static str,
    /// The status of the response.
    pub status: StatusCode,
    /// The header fields of the response.
    pub response: HeaderMap,
}

impl Exchange {
    /// The media type of the response, as the server names it; empty if it does not.
    pub fn content_type(&self) -> &str {
        let named = self.response.get(http::header::CONTENT_TYPE);
        named
            .and_then(|named| named.to_str().ok())
            .unwrap_or_default()
    }

    /// The absolute URL that the response redirects to, if it does.
    pub fn redirect_url(&self) -> Option<String> {
        super::redirect::location(&self.uri, self.status, &self.response)
    }

    /// The header of the response as HTTP/1.1 has it, with the empty line at its end. Later versions have no reason phrase.
    pub fn head(&self) -> Vec<u8> {
        let status = self.status;
        let mut head = match self.http_version {
            "1.1" | "1.1c" => {
                let reason = status.canonical_reason().unwrap_or_default();
                format!("HTTP/1.1 {} {reason}\r\n", status.as_u16())
            }
            version => format!("HTTP/{version} {} \r\n", status.as_u16()),
        }
        .into_bytes();
        for (name, value) in &self.response {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// One connection.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionReport {
    /// Counts from 0.
    pub id: u64,
    /// `1.1c`, `1.1`, `2` or `3`.
    pub http_version: &'static str,
    /// `v1` (RFC 9000) or `v2` (RFC 9369), if it is of HTTP/3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quic_version: Option<&'static str>,
    /// The time for the name of the server, in seconds.
    pub resolve_s: f64,
    /// The time for the connection of TCP before TLS, in seconds; 0 over QUIC.
    pub transport_s: f64,
    /// From the first packet to the end of the handshake, in seconds.
    pub handshake_s: f64,
    /// Bytes of content.
    pub bytes_received: u64,
    /// Packets that this side sent and lost; unknown for TCP.
    pub packets_lost_observed: Option<u64>,
    /// The share of the server's packets that were lost on the way, by the gaps in their numbers
    /// ([`PathStats::peer_loss_estimate`](marline::PathStats::peer_loss_estimate)); unknown for TCP.
    pub peer_loss_estimate: Option<f64>,
    /// Packets that the server sent, estimated from packet numbers; unknown for TCP.
    #[serde(skip)]
    pub peer_packets_sent: Option<u64>,
    /// Packets of the server that have not arrived; unknown for TCP.
    #[serde(skip)]
    pub peer_packets_missing: Option<u64>,
    /// Whether it may have several paths: both ends negotiated multipath.
    pub multipath: bool,
    /// Its subflows at the end, if it is over Multipath TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mptcp_subflows: Option<u32>,
    /// The certificates of the server; none after resumption.
    #[serde(skip)]
    pub certificates: ServerCertificates,
    /// Its paths, including those that are closed.
    pub paths: Vec<PathReport>,
}

/// The certificates that a server has presented, its own first. Only their number is printed: reports stay short, and equal where
/// keys are made anew.
#[derive(Clone, Default)]
pub struct ServerCertificates(Vec<CertificateDer<'static>>);

impl ServerCertificates {
    pub(super) fn new(certificates: Vec<CertificateDer<'static>>) -> Self {
        Self(certificates)
    }

    /// The certificates, in DER.
    pub fn as_slice(&self) -> &[CertificateDer<'static>] {
        &self.0
    }

    /// The certificates in PEM (RFC 7468).
    pub fn to_pem(&self) -> String {
        let mut text = String::new();
        for certificate in &self.0 {
            text.push_str("-----BEGIN CERTIFICATE-----\n");
            let encoded = STANDARD.encode(certificate);
            for line in encoded.as_bytes().chunks(64) {
                text.push_str(&String::from_utf8_lossy(line));
                text.push('\n');
            }
            text.push_str("-----END CERTIFICATE-----\n");
        }
        text
    }
}

impl fmt::Debug for ServerCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} certificates", self.0.len())
    }
}

/// One path of a connection.
#[derive(Clone, Debug, Serialize)]
pub struct PathReport {
    /// Counts from 0.
    pub id: u32,
    /// The address of this end.
    pub local: SocketAddr,
    /// The address of the peer.
    pub remote: SocketAddr,
    /// Smoothed round-trip time in seconds; unknown for TCP.
    pub rtt_s: Option<f64>,
    /// Bytes of UDP payload, or of content for TCP.
    pub bytes_received: u64,
    /// Bytes of UDP payload; unknown for TCP.
    pub bytes_sent: Option<u64>,
    /// Packets that this side sent and lost; unknown for TCP.
    pub packets_lost: Option<u64>,
    /// Why it was abandoned, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
}
