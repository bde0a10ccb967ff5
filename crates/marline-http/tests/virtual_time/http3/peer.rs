//! Peers that write HTTP/3 by hand over marline's streams.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use marline::{
    Connection, ConnectionError, Endpoint, EndpointConfig, Runtime, TransportConfig, tls,
};
use marline_h3::frame::FrameType;
use marline_h3::qpack::{Encoder, EncoderLimits, FieldRef};
use marline_h3::{Config, ErrorCode, Side, StreamEvent, StreamId};
use marline_http::client::Client;
use marline_sim::Host;
use rustls::pki_types::PrivatePkcs8KeyDer;

use crate::setup::PORT;

/// The beginning of a control stream: its type, and empty SETTINGS.
pub(crate) const CONTROL: &[u8] = &[0x00, 0x04, 0x00];

/// The same with SETTINGS_H3_DATAGRAM.
pub(crate) const CONTROL_WITH_DATAGRAMS: &[u8] = &[0x00, 0x04, 0x02, 0x33, 0x01];

/// A frame; payloads are shorter than 2^14 bytes.
pub(crate) fn frame(kind: FrameType, payload: &[u8]) -> Vec<u8> {
    let kind = u32::try_from(kind.0).unwrap() | 0x8000_0000;
    let length = u16::try_from(payload.len()).unwrap() | 0x4000;
    [&kind.to_be_bytes()[..], &length.to_be_bytes(), payload].concat()
}

/// A HEADERS frame with these fields.
pub(crate) fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
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
    frame(FrameType::HEADERS, &section)
}

/// A HEADERS frame of a request for `path`, with more fields.
pub(crate) fn request(method: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let target = [
        (":method", method),
        (":scheme", "https"),
        (":authority", "example.test"),
        (":path", path),
    ];
    headers(&[&target, fields].concat())
}

/// A DATA frame.
pub(crate) fn data(content: &[u8]) -> Vec<u8> {
    frame(FrameType::DATA, content)
}

/// A connection of `client`, on which nothing was sent.
pub(crate) async fn connect(
    client: &Client,
    address: SocketAddr,
) -> Result<Connection, ConnectionError> {
    let endpoint = client.endpoint(address).unwrap();
    let config = client.quic_config().unwrap();
    let connecting = endpoint.connect_with(config, address, "example.test");
    connecting.unwrap().await
}

/// The answer on a request stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Response {
        status: u16,
        content: Vec<u8>,
    },
    /// The stream was reset.
    Reset(ErrorCode),
}

/// The response with this status and content.
pub(crate) fn response(status: u16, content: &[u8]) -> Answer {
    let content = content.to_vec();
    Answer::Response { status, content }
}

/// Sends `bytes` as a request stream, and waits for the answer.
pub(crate) async fn exchange(connection: &Connection, bytes: &[u8]) -> Answer {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(bytes).await.unwrap();
    send.finish().unwrap();
    read_answer(&mut recv).await
}

/// Reads the answer on a request stream.
pub(crate) async fn read_answer(recv: &mut marline::RecvStream) -> Answer {
    let id = StreamId::new(Side::Client, marline::Dir::Bi, 0);
    let mut http3 = marline_h3::Connection::new(Side::Client, &Config::default());
    let sent = Request::get("https://example.test/").body(()).unwrap();
    http3.encode_request(id, &sent).unwrap();
    let mut status = 0;
    let mut content = Vec::new();
    loop {
        let chunk = match recv.read_chunk(usize::MAX).await {
            Err(marline::ReadError::Reset(code)) => return Answer::Reset(ErrorCode::new(code)),
            chunk => chunk.unwrap(),
        };
        let is_end = chunk.is_none();
        http3
            .on_stream_data(id, chunk.unwrap_or_default(), is_end)
            .unwrap();
        while let Some(event) = http3.poll_stream(id) {
            match event {
                StreamEvent::Response(response) => status = response.status().as_u16(),
                StreamEvent::Data(data) => content.extend_from_slice(&data),
                StreamEvent::Finished => return Answer::Response { status, content },
                event => panic!("{event:?}"),
            }
        }
    }
}

/// The code and the reason with which the peer closes the connection.
pub(crate) async fn closed_with(connection: &Connection) -> ErrorCode {
    match connection.closed().await {
        ConnectionError::PeerApplication { code, reason } => {
            assert!(!reason.is_empty(), "the reason names what is wrong");
            ErrorCode::new(code)
        }
        error => panic!("{error:?}"),
    }
}

/// Listens on `host`, and answers each request with the next of `answers`, in the order of requests.
pub(crate) fn answer_with(host: &Host, answers: Vec<Vec<u8>>) -> SocketAddr {
    let endpoint = listen(host);
    host.run(async move {
        let mut connection = Accepted::next(&endpoint).await;
        for answer in answers {
            connection.answer(answer).await;
        }
        connection.quic.closed().await;
    });
    host.at(PORT)
}

/// Listens on `host`, and closes the first connection.
pub(crate) fn close_with(host: &Host, code: u64, reason: &'static [u8]) -> SocketAddr {
    let endpoint = listen(host);
    host.run(async move {
        let connection = Accepted::next(&endpoint).await;
        connection.quic.close(code, reason);
        connection.quic.closed().await;
    });
    host.at(PORT)
}

/// Listens on `host`. The first connection answers one request, and rejects all others by GOAWAY; the second one answers
/// one request, too.
pub(crate) fn answer_once_each(host: &Host, answer: Vec<u8>) -> SocketAddr {
    let endpoint = listen(host);
    host.run(async move {
        let mut first = Accepted::next(&endpoint).await;
        let goaway = frame(FrameType::GOAWAY, &[4]);
        first.control.write_all(&goaway).await.unwrap();
        first.answer(answer.clone()).await;
        let mut second = Accepted::next(&endpoint).await;
        second.answer(answer).await;
        second.quic.closed().await;
    });
    host.at(PORT)
}

/// Listens on `host`, and sends `frames` on the control stream instead of answering.
pub(crate) fn flood_with(host: &Host, frames: Vec<u8>) -> SocketAddr {
    let endpoint = listen(host);
    host.run(async move {
        let mut connection = Accepted::next(&endpoint).await;
        // The client closes the connection before the end.
        let _ = connection.control.write_chunk(Bytes::from(frames)).await;
        connection.quic.closed().await;
    });
    host.at(PORT)
}

/// Listens on `host`, and opens up to `number` streams of a reserved type instead of answering, each of which ends at once.
pub(crate) fn open_streams(host: &Host, number: u64) -> SocketAddr {
    let endpoint = listen(host);
    host.run(async move {
        let connection = Accepted::next(&endpoint).await;
        for _ in 0..number {
            let Ok(mut stream) = connection.quic.open_uni().await else {
                break;
            };
            if stream.write_all(&[0x21]).await.is_err() || stream.finish().is_err() {
                break;
            }
        }
        connection.quic.closed().await;
    });
    host.at(PORT)
}

/// Listens on `host` without datagrams of QUIC, and announces those of HTTP.
pub(crate) fn announce_datagrams(host: &Host) -> SocketAddr {
    let transport = TransportConfig {
        datagram_receive_buffer: None,
        ..TransportConfig::default()
    };
    let endpoint = listen_with(host, transport);
    host.run(async move {
        let quic = endpoint.accept().await.unwrap().await.unwrap();
        let mut control = quic.open_uni().await.unwrap();
        control.write_all(CONTROL_WITH_DATAGRAMS).await.unwrap();
        quic.closed().await;
    });
    host.at(PORT)
}

fn listen(host: &Host) -> Endpoint {
    listen_with(host, TransportConfig::default())
}

fn listen_with(host: &Host, transport: TransportConfig) -> Endpoint {
    let runtime: Arc<dyn Runtime> = Arc::new(host.clone());
    let identity = rcgen::generate_simple_self_signed(vec!["example.test".into()]).unwrap();
    let chain = vec![identity.cert.into()];
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der()).into();
    let mut config = tls::server_config(chain, key, &[b"h3"]).unwrap();
    config.transport = Arc::new(transport);
    let socket = runtime.bind(([0, 0, 0, 0], PORT).into()).unwrap();
    let settings = EndpointConfig::from_seed([7; 32]);
    Endpoint::new(settings, Some(config), socket, runtime).unwrap()
}

/// A connection of a client, whose control stream has begun.
struct Accepted {
    quic: Connection,
    control: marline::SendStream,
}

impl Accepted {
    async fn next(endpoint: &Endpoint) -> Self {
        let quic = endpoint.accept().await.unwrap().await.unwrap();
        let mut control = quic.open_uni().await.unwrap();
        control.write_all(CONTROL).await.unwrap();
        Self { quic, control }
    }

    /// Answers the next request with these bytes.
    async fn answer(&mut self, bytes: Vec<u8>) {
        // The client may close the connection before its request, or before it has everything.
        let Ok((mut send, mut recv)) = self.quic.accept_bi().await else {
            return;
        };
        recv.read_to_end(10_000).await.unwrap();
        let _ = send.write_chunk(Bytes::from(bytes)).await;
        let _ = send.finish();
    }
}
