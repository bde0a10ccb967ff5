//! Protocols with unencrypted first bytes.

use super::records::HANDSHAKE_STARTS;

/// The first bytes of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// A handshake of TLS.
    Tls,
    /// A request of HTTP/1 with any method.
    Request,
    /// A status line of HTTP/1.
    Response,
    /// The preface of a client of HTTP/2.
    Preface,
    /// A SETTINGS frame of HTTP/2, with which a server begins.
    Settings,
    /// The identification of an end of SSH, which both send.
    Ssh,
    /// More bytes are needed.
    Incomplete,
    /// An unknown protocol.
    Unknown,
}

/// The preface of a client of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The version in request lines and status lines of HTTP/1 (RFC 9112, section 2.3), without its minor number.
const VERSION: &[u8] = b"HTTP/1.";

/// The identification of an end of SSH (RFC 4253, section 4.2).
const SSH: &[u8] = b"SSH-";

/// The beginning of the header of a proxy, as a line of text that has at most 107 bytes, and in binary, with a length at the end
/// (The PROXY protocol, sections 2.1 and 2.2).
const PROXY_V1: &[u8] = b"PROXY ";
const MAX_PROXY_V1: usize = 107;
const PROXY_V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const PROXY_V2_HEADER: usize = 16;

/// The header of a frame of HTTP/2 (RFC 9113, section 4.1).
const FRAME_HEADER: usize = 9;

/// The longest request line that is inspected: RFC 9112, section 3, recommends supporting at least 8000 bytes; nginx and Apache
/// allow 8 KiB by default, Node.js and IIS 16 KiB.
const MAX_REQUEST_LINE: usize = 16 << 10;

/// Bytes from which on only the end of a request line is conclusive.
pub(super) const LONG: usize = 128;

/// The longest method: those in use, WebDAV's included, have at most 17 bytes.
const MAX_METHOD: usize = 32;

impl Beginning {
    pub(super) fn of(stream: &[u8]) -> Self {
        let [hello, change] = &HANDSHAKE_STARTS;
        for (start, beginning) in [
            (&hello[..], Self::Tls),
            (change, Self::Tls),
            (PREFACE, Self::Preface),
            (SSH, Self::Ssh),
        ] {
            if stream.starts_with(start) {
                return beginning;
            }
            if start.starts_with(stream) {
                return Self::Incomplete;
            }
        }
        let candidates = [status_line(stream), settings(stream), request(stream)];
        let is_known = |beginning: &Self| !matches!(beginning, Self::Incomplete | Self::Unknown);
        match candidates.into_iter().find(is_known) {
            Some(beginning) => beginning,
            None if candidates.contains(&Self::Incomplete) => Self::Incomplete,
            None => Self::Unknown,
        }
    }
}

/// A status line: a version, and three digits after a space (RFC 9112, section 4).
fn status_line(stream: &[u8]) -> Beginning {
    let is_part = stream
        .iter()
        .take(VERSION.len() + 5)
        .enumerate()
        .all(|(at, byte)| match at.checked_sub(VERSION.len()) {
            None => *byte == VERSION[at],
            Some(1) => *byte == b' ',
            Some(_) => byte.is_ascii_digit(),
        });
    match is_part {
        true if stream.len() >= VERSION.len() + 5 => Beginning::Response,
        true => Beginning::Incomplete,
        false => Beginning::Unknown,
    }
}

/// A SETTINGS frame (RFC 9113, section 6.5): a multiple of six bytes, type 4, on stream 0; the first one acknowledges nothing.
fn settings(stream: &[u8]) -> Beginning {
    /// Settings of a frame of the smallest size that every peer accepts.
    const LARGEST: usize = 1 << 14;
    let Some(header) = stream.first_chunk::<FRAME_HEADER>() else {
        return match stream.iter().zip([0]).all(|(byte, zero)| *byte == zero) {
            true => Beginning::Incomplete,
            false => Beginning::Unknown,
        };
    };
    let length = usize::from(header[1]) << 8 | usize::from(header[2]);
    let is_settings = header[0] == 0 && length <= LARGEST && length.is_multiple_of(6);
    match is_settings && header[3..] == [4, 0, 0, 0, 0, 0] {
        true => Beginning::Settings,
        false => Beginning::Unknown,
    }
}

/// Whether a request begins with these bytes, or may with more of them.
pub(super) fn may_be_request(stream: &[u8]) -> bool {
    matches!(request(stream), Beginning::Request | Beginning::Incomplete)
}

/// A request, also behind the header of a proxy.
fn request(stream: &[u8]) -> Beginning {
    match behind_proxy_header(stream) {
        Some(rest) => request_line(rest),
        None => Beginning::Incomplete,
    }
}

/// The bytes after a header of the PROXY protocol, version 1 or 2, if any; `None` if its end is missing.
fn behind_proxy_header(stream: &[u8]) -> Option<&[u8]> {
    for start in [PROXY_V1, PROXY_V2] {
        if !stream.starts_with(&start[..start.len().min(stream.len())]) {
            continue;
        }
        let length = match start == PROXY_V1 {
            true => {
                let line = &stream[..stream.len().min(MAX_PROXY_V1)];
                match line.iter().position(|byte| *byte == b'\n') {
                    Some(end) => end + 1,
                    None if line.len() == MAX_PROXY_V1 => continue,
                    None => return None,
                }
            }
            false => {
                let header = stream.first_chunk::<PROXY_V2_HEADER>()?;
                PROXY_V2_HEADER + usize::from(u16::from_be_bytes([header[14], header[15]]))
            }
        };
        return stream.get(length..);
    }
    Some(stream)
}

/// A request line: a token, a target and a version, with spaces between them (RFC 9112, section 3). Servers ignore empty lines
/// before it (section 2.2).
fn request_line(stream: &[u8]) -> Beginning {
    let empty = stream.iter().take_while(|byte| b"\r\n".contains(byte));
    let stream = &stream[empty.count()..];
    let method = stream.iter().position(|byte| !is_token(*byte));
    match method {
        None if stream.len() <= MAX_METHOD => return Beginning::Incomplete,
        Some(length @ 1..=MAX_METHOD) if stream[length] == b' ' => {}
        _ => return Beginning::Unknown,
    }
    let Some(end) = stream.iter().position(|byte| *byte == b'\n') else {
        // A line is text, whatever its length.
        let is_text = stream.iter().all(|byte| *byte >= b' ' || *byte == b'\r');
        return match is_text && stream.len() < MAX_REQUEST_LINE {
            true => Beginning::Incomplete,
            false => Beginning::Unknown,
        };
    };
    let line = stream[..end].trim_ascii_end();
    let version = line.rsplit(|byte| *byte == b' ').next();
    match version.and_then(|version| version.strip_prefix(VERSION)) {
        Some([minor]) if minor.is_ascii_digit() => Beginning::Request,
        _ => Beginning::Unknown,
    }
}

/// Whether a byte may be in a method (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::Beginning;

    #[test]
    fn beginnings_of_http_tls_and_ssh_are_told_apart() {
        for (stream, beginning) in [
            (
                &b"GET /index.html HTTP/1.1\r\nHost: a\r\n"[..],
                Beginning::Request,
            ),
            (b"VERSION-CONTROL /a b HTTP/1.0\n", Beginning::Request),
            (b"m-search * HTTP/1.1\r\n", Beginning::Request),
            (b"GET /index.ht", Beginning::Incomplete),
            (b"\r\nGET / HTTP/1.1\r\n", Beginning::Request),
            (
                b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\nGET / HTTP/1.1\r\n",
                Beginning::Request,
            ),
            (b"PROXY UNKNOWN\r\n\x01\x02", Beginning::Unknown),
            (
                b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\x02abGET / HTTP/1.1\r\n",
                Beginning::Request,
            ),
            (b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\x02a", Beginning::Incomplete),
            (b"PROPFIND / HTTP/1.1\r\n", Beginning::Request),
            (b"GET a line without a version\n", Beginning::Unknown),
            (b"OPTIONS rtsp://a RTSP/1.0\r\n", Beginning::Unknown),
            (b"GET / HTTP/1.10\r\n", Beginning::Unknown),
            (b"HTTP/1.1 200 OK\r\n", Beginning::Response),
            (b"HTTP/1.0 404\r\n", Beginning::Response),
            (b"HTTP/1.1 2", Beginning::Incomplete),
            (b"HTTP/1.1 OK\r\n", Beginning::Unknown),
            (
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0",
                Beginning::Preface,
            ),
            (b"PRI * HTTP", Beginning::Incomplete),
            (b"\0\0\x12\x04\0\0\0\0\0\0\x03", Beginning::Settings),
            (b"\0\0\x12\x04", Beginning::Incomplete),
            (b"\0\0\x11\x04\0\0\0\0\0", Beginning::Unknown),
            (b"\0\0\x12\x04\0\0\0\0\x01", Beginning::Unknown),
            (b"SSH-2.0-x\r\n", Beginning::Ssh),
            (&[22, 3, 1, 2, 0], Beginning::Tls),
            (&[22], Beginning::Incomplete),
            (b"", Beginning::Incomplete),
            (b"220 mail.example.org ESMTP\r\n", Beginning::Unknown),
            (b"GET \x01\x02\x03", Beginning::Unknown),
            (&[b'A'; 100], Beginning::Unknown),
        ] {
            assert_eq!(Beginning::of(stream), beginning, "{stream:?}");
        }
    }
}
