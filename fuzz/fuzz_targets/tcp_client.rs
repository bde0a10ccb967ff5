//! The bytes of a client over TCP that the steps of an input stand for.

use marline_proto::testing::fuzz::Step;

use super::http2;

/// The start of a connection of HTTP/2: the preface and empty SETTINGS.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

/// Field sections of `https://a/`, encoded with HPACK's static table.
const GET: &[u8] = &[0x82, 0x87, 0x84, 0x41, 0x01, b'a'];
const POST: &[u8] = &[0x83, 0x87, 0x84, 0x41, 0x01, b'a'];

/// The bytes of a step over HTTP/1.1: a request with them as content or as further fields, or the bytes alone.
pub fn over_http1(step: Step<'_>) -> Vec<u8> {
    let Step { action, bytes, .. } = step;
    let len = bytes.len();
    let (head, tail): (String, &[u8]) = match action % 6 {
        0 => ("GET / HTTP/1.1\r\nHost: a\r\n".into(), b"\r\n\r\n"),
        1 => (
            format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n"),
            b"",
        ),
        2 => (
            format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{len:x}\r\n"),
            b"\r\n0\r\n\r\n",
        ),
        3 => (format!("{len:x}\r\n"), b"\r\n"),
        _ => (String::new(), b""),
    };
    [head.as_bytes(), bytes, tail].concat()
}

/// The bytes of a step over HTTP/2: a frame whose stream and flags the number gives, or the bytes alone.
pub fn over_http2(step: Step<'_>) -> Vec<u8> {
    let Step {
        action,
        number,
        bytes,
        ..
    } = step;
    let stream = u32::from(number & 7) * 2 + 1;
    let ends = number >> 7;
    match action % 10 {
        0 => http2::frame(1, 4 | 1, stream, GET),
        1 => http2::frame(1, 4 | ends, stream, &[POST, bytes].concat()),
        2 => http2::frame(0, ends, stream, bytes),
        3 => http2::frame(3, 0, stream, &[0, 0, 0, 8]),
        4 => http2::frame(4, 0, 0, bytes),
        5 => http2::frame(6, 0, 0, bytes),
        6 => http2::frame(8, 0, if ends == 0 { 0 } else { stream }, bytes),
        7 => http2::frame(9, 4, stream, bytes),
        8 => http2::frame(number, step.len, stream, bytes),
        _ => bytes.to_vec(),
    }
}
