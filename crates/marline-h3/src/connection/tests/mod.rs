//! Rules of RFC 9114, 9204 and 9218, each by its section.

mod control;
mod exchange;
mod requests;
mod streams;

use bytes::Bytes;
use marline_wire::{Dir, Side, StreamId, varint};

use super::*;
use crate::frame::{self, FrameType};
use crate::qpack::FieldRef;

/// The fields of a valid request.
const GET: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "a"),
    (":path", "/"),
];

/// The fields of a valid request with content.
const POST: &[(&str, &str)] = &[
    (":method", "POST"),
    (":scheme", "https"),
    (":authority", "a"),
    (":path", "/"),
];

const OK: &[(&str, &str)] = &[(":status", "200")];

fn server() -> Connection {
    Connection::new(Side::Server, &Config::default())
}

fn client() -> Connection {
    Connection::new(Side::Client, &Config::default())
}

/// The `index`-th request stream.
fn request(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, index)
}

/// The `index`-th unidirectional stream of the peer of `connection`.
fn uni(connection: &Connection, index: u64) -> StreamId {
    StreamId::new(connection.side.peer(), Dir::Uni, index)
}

fn frame_of(kind: FrameType, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::encode(kind, payload, &mut bytes);
    bytes
}

fn integers(values: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &value in values {
        varint::encode(value, &mut bytes);
    }
    bytes
}

/// A HEADERS frame without references to the dynamic table.
fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut encoder = Encoder::new(EncoderLimits {
        table_capacity: 0,
        blocked_streams: 0,
    });
    let mut section = Vec::new();
    let lines = fields.iter().map(|(name, value)| FieldRef {
        name: name.as_bytes(),
        value: value.as_bytes(),
        is_sensitive: false,
    });
    encoder.encode(0, lines, &mut section);
    frame_of(FrameType::HEADERS, &section)
}

fn data(content: &[u8]) -> Vec<u8> {
    frame_of(FrameType::DATA, content)
}

/// An event of a stream, in a form that can be compared.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Request(String),
    Interim(u16),
    Response(u16),
    Data(Vec<u8>),
    Trailers(usize),
    Finished,
    TooLarge,
    Failed(ErrorCode),
    Reset(u64),
}

/// All events of the stream; adjacent content is joined.
fn seen(connection: &mut Connection, id: StreamId) -> Vec<Seen> {
    let mut events = Vec::new();
    while let Some(event) = connection.poll_stream(id) {
        let event = match event {
            StreamEvent::Request(head) => Seen::Request(head.request.uri().to_string()),
            StreamEvent::Interim(response) => Seen::Interim(response.status().as_u16()),
            StreamEvent::Response(response) => Seen::Response(response.status().as_u16()),
            StreamEvent::Data(data) => {
                assert!(!data.is_empty());
                if let Some(Seen::Data(last)) = events.last_mut() {
                    last.extend_from_slice(&data);
                    continue;
                }
                Seen::Data(data.into())
            }
            StreamEvent::Trailers(trailers) => Seen::Trailers(trailers.len()),
            StreamEvent::Finished => Seen::Finished,
            StreamEvent::TooLarge => Seen::TooLarge,
            StreamEvent::Failed(error) => Seen::Failed(error.code()),
            StreamEvent::Reset(code) => Seen::Reset(code),
        };
        events.push(event);
    }
    events
}

/// The events of a server for the bytes of a request stream that ends with them, the same however
/// they are cut.
fn receive(parts: &[&[u8]]) -> Result<Vec<Seen>, ErrorCode> {
    let bytes = parts.concat();
    let whole = receive_cut(server(), &bytes, bytes.len().max(1));
    for cut in 1..=bytes.len().min(40) {
        assert_eq!(receive_cut(server(), &bytes, cut), whole, "{cut}");
    }
    whole
}

fn receive_cut(
    mut connection: Connection,
    bytes: &[u8],
    cut: usize,
) -> Result<Vec<Seen>, ErrorCode> {
    for chunk in bytes.chunks(cut) {
        let chunk = Bytes::copy_from_slice(chunk);
        connection
            .on_stream_data(request(0), chunk, false)
            .map_err(|error| error.code())?;
    }
    connection
        .on_stream_data(request(0), Bytes::new(), true)
        .map_err(|error| error.code())?;
    Ok(seen(&mut connection, request(0)))
}

/// A client that has sent a request by `method`.
fn client_after(method: &str) -> Connection {
    let mut connection = client();
    let sent = http::Request::builder()
        .method(method)
        .uri(match method {
            "CONNECT" => "a:443",
            _ => "https://a/",
        })
        .body(())
        .unwrap();
    connection.encode_request(request(0), &sent).unwrap();
    connection
}

/// The events of a client for the response to `method`, the same however it is cut.
fn receive_response(method: &str, parts: &[&[u8]]) -> Result<Vec<Seen>, ErrorCode> {
    let bytes = parts.concat();
    let whole = receive_cut(client_after(method), &bytes, bytes.len().max(1));
    for cut in 1..=bytes.len().min(40) {
        let got = receive_cut(client_after(method), &bytes, cut);
        assert_eq!(got, whole, "{cut}");
    }
    whole
}

fn events(connection: &mut Connection) -> Vec<Event> {
    std::iter::from_fn(|| connection.poll_event()).collect()
}

/// Gives `connection` the bytes of the peer's control stream after its type and SETTINGS.
fn on_control(connection: &mut Connection, frames: &[u8]) -> Result<(), ErrorCode> {
    let id = uni(connection, 0);
    let mut bytes = vec![0x00];
    bytes.extend(frame_of(FrameType::SETTINGS, &[]));
    bytes.extend_from_slice(frames);
    for byte in bytes {
        connection
            .on_stream_data(id, Bytes::from(vec![byte]), false)
            .map_err(|error| error.code())?;
    }
    Ok(())
}

/// More frames on the control stream.
fn on_more_control(connection: &mut Connection, frames: &[u8]) -> Result<(), ErrorCode> {
    let id = uni(connection, 0);
    connection
        .on_stream_data(id, Bytes::copy_from_slice(frames), false)
        .map_err(|error| error.code())
}

/// Passes on what `from` has to send on its own streams, until both have nothing more to send.
fn pump(one: &mut Connection, other: &mut Connection) {
    loop {
        let moved = pass_on(one, other) + pass_on(other, one);
        if moved == 0 {
            return;
        }
    }
}

fn pass_on(from: &mut Connection, to: &mut Connection) -> usize {
    let mut moved = 0;
    while let Some(Transmit { stream, bytes }) = from.poll_transmit() {
        moved += bytes.len();
        let id = StreamId::new(from.side, Dir::Uni, stream as u64);
        to.on_stream_data(id, bytes, false).unwrap();
    }
    moved
}
