//! Protocols negotiated by TLS (RFC 7301), and their versions of HTTP.

use std::fmt::Write;

use super::QuicVersion;
use crate::limits::MAX_PROTOCOLS;

/// A version of HTTP, or another protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HttpVersion {
    /// HTTP/1.1 and earlier.
    H1,
    /// HTTP/2, and SPDY before it.
    H2,
    /// HTTP/3.
    H3,
    /// Another protocol.
    Other,
}

impl HttpVersion {
    /// Its name in records.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::H1 => "h1",
            Self::H2 => "h2",
            Self::H3 => "h3",
            Self::Other => "other",
        }
    }

    /// The version that an ALPN identifier denotes.
    pub(super) fn of_protocol(id: &[u8]) -> Self {
        match id {
            b"h2" | b"h2c" => Self::H2,
            b"h3" => Self::H3,
            _ if id.starts_with(b"h3-") => Self::H3,
            _ if id.starts_with(b"http/") => Self::H1,
            _ if id.starts_with(b"spdy/") => Self::H2,
            _ => Self::Other,
        }
    }
}

/// The source of a label, the most reliable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LabelSource {
    /// The packets show it.
    Handshake,
    /// Secrets of a key log decrypted the packets that show it.
    KeyLog,
    /// The access log of a server.
    ServerLog,
}

impl LabelSource {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::KeyLog => "keylog",
            Self::ServerLog => "server_log",
        }
    }
}

/// A version of HTTP and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) version: HttpVersion,
    pub(crate) source: LabelSource,
}

/// The findings at the beginning of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    pub(crate) sni: Option<Box<str>>,
    /// Identifiers separated by commas.
    pub(crate) alpn_offered: Option<Box<str>>,
    pub(crate) alpn_chosen: Option<Box<str>>,
    pub(crate) label: Option<Label>,
    pub(crate) quic_version: Option<QuicVersion>,
}

impl Labels {
    /// Whether nothing was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.sni.is_none()
            && self.alpn_offered.is_none()
            && self.alpn_chosen.is_none()
            && self.label.is_none()
            && self.quic_version.is_none()
    }

    /// The server chose a protocol, which is not a label until both ends completed the handshake.
    pub(super) fn choose(&mut self, protocol: &[u8]) {
        self.alpn_chosen = Some(printable(protocol).into());
    }

    /// Both ends completed the handshake in which the server chose a protocol, if it did.
    pub(super) fn confirm(&mut self, source: LabelSource) {
        // Identifiers of HTTP are printable.
        if let Some(protocol) = &self.alpn_chosen {
            let version = HttpVersion::of_protocol(protocol.as_bytes());
            self.label = Some(Label { version, source });
        }
    }
}

/// Text of a peer: printable ASCII, percent-encoded otherwise, or where it would end a value of a list. A semicolon ends a
/// cell for spreadsheets in some languages.
pub(super) fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'!'..=b'~' if !matches!(byte, b',' | b';' | b'%' | b'"') => {
                text.push(char::from(*byte));
            }
            _ => {
                // A `String` takes everything.
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

/// The protocols that a ClientHello offers, separated by commas. GREASE (RFC 8701) is left out.
pub(super) fn list(protocols: &[&[u8]]) -> String {
    let real = protocols
        .iter()
        .filter(|id| !matches!(id, [a, b] if a == b && a & 0xf == 0xa));
    let mut room = MAX_PROTOCOLS;
    let texts: Vec<_> = real
        .map_while(|id| {
            room = room.checked_sub(id.len() + 1)?;
            Some(printable(id))
        })
        .collect();
    texts.join(",")
}
