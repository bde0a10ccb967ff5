//! Protocols whose first bytes are not encrypted.

use super::HttpVersion;
use super::records::begins_handshake;

/// What a stream begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// A handshake of TLS.
    Tls,
    /// A request, so that its sender is the client.
    Request(HttpVersion),
    /// A response, so that its sender is the server.
    Response(HttpVersion),
    /// More bytes are needed.
    Incomplete,
    /// Nothing that is known.
    Unknown,
}

/// Methods of HTTP with the space after them: those of RFC 9110 and PATCH.
const METHODS: [&[u8]; 9] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"CONNECT ",
    b"OPTIONS ",
    b"TRACE ",
    b"PATCH ",
];

/// What a client of HTTP/2 begins with (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The status line of an HTTP/1 response (RFC 9112, section 4).
const STATUS_LINE: &[u8] = b"HTTP/1.";

/// The identification of an end of SSH (RFC 4253, section 4.2), which both send.
const SSH: &[u8] = b"SSH-";

/// The longest request line that is looked at: RFC 9112, section 3, recommends that 8000 bytes be supported.
const MAX_REQUEST_LINE: usize = 8192;

impl Beginning {
    pub(super) fn of(stream: &[u8]) -> Self {
        if begins_handshake(stream) {
            return Self::Tls;
        }
        if stream.starts_with(PREFACE) {
            return Self::Request(HttpVersion::H2);
        }
        if stream.starts_with(STATUS_LINE) {
            return Self::Response(HttpVersion::H1);
        }
        if stream.starts_with(SSH) {
            return Self::Response(HttpVersion::Other);
        }
        let known = METHODS
            .into_iter()
            .chain([PREFACE, STATUS_LINE, SSH, &[22, 3]]);
        if METHODS.iter().any(|method| stream.starts_with(method)) {
            let line = stream
                .split(|byte| *byte == b'\n')
                .next()
                .unwrap_or_default();
            return match line
                .windows(STATUS_LINE.len())
                .any(|part| part == STATUS_LINE)
            {
                true => Self::Request(HttpVersion::H1),
                false if line.len() == stream.len() && line.len() < MAX_REQUEST_LINE => {
                    Self::Incomplete
                }
                false => Self::Unknown,
            };
        }
        match known.into_iter().any(|start| start.starts_with(stream)) {
            true => Self::Incomplete,
            false => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Beginning, HttpVersion};

    #[test]
    fn beginnings_of_http_tls_and_ssh_are_told_apart() {
        for (stream, beginning) in [
            (
                &b"GET /index.html HTTP/1.1\r\nHost: a\r\n"[..],
                Beginning::Request(HttpVersion::H1),
            ),
            (b"GET /index.ht", Beginning::Incomplete),
            (b"GET a line without a version\n", Beginning::Unknown),
            (b"HTTP/1.1 200 OK\r\n", Beginning::Response(HttpVersion::H1)),
            (
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0",
                Beginning::Request(HttpVersion::H2),
            ),
            (b"PRI * HTTP", Beginning::Incomplete),
            (b"SSH-2.0-x\r\n", Beginning::Response(HttpVersion::Other)),
            (&[22, 3, 1, 2, 0], Beginning::Tls),
            (&[22], Beginning::Incomplete),
            (b"", Beginning::Incomplete),
            (b"220 mail.example.org ESMTP", Beginning::Unknown),
        ] {
            assert_eq!(Beginning::of(stream), beginning, "{stream:?}");
        }
    }
}
