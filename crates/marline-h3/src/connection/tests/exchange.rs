//! Two ends, and QPACK's dynamic table between them.

use http::{HeaderMap, Request, Response};

use super::*;
use crate::message::Protocol;

/// A configuration whose encoder refers to entries that the peer may not have.
fn eager() -> Config {
    Config {
        qpack_encoder_blocked_streams: 16,
        ..Config::default()
    }
}

fn get(agent: &str) -> Request<()> {
    let builder = Request::get("https://example.com/a?b").header("user-agent", agent);
    builder.body(()).unwrap()
}

fn give(to: &mut Connection, id: StreamId, bytes: Bytes, fin: bool) {
    to.on_stream_data(id, bytes, fin).unwrap();
}

#[test]
fn a_request_and_its_response_arrive() {
    let (mut client, mut server) = (client(), server());
    pump(&mut client, &mut server);
    let mut trailers = HeaderMap::new();
    trailers.insert("checksum", "1".parse().expect("a value"));
    for index in 0..20 {
        let id = request(index);
        let bytes = client.encode_request(id, &get("marline")).unwrap();
        give(&mut server, id, bytes, true);
        pump(&mut client, &mut server);
        let uri = "https://example.com/a?b".to_owned();
        assert_eq!(seen(&mut server, id), [Seen::Request(uri), Seen::Finished]);
        let interim = Response::builder().status(103).body(()).unwrap();
        let interim = server.encode_response(id, &interim).unwrap();
        let head = server.encode_response(id, &Response::new(())).unwrap();
        let end = server.encode_trailers(id, &trailers).unwrap();
        give(&mut client, id, interim, false);
        give(&mut client, id, head, false);
        give(&mut client, id, frame::data_header(5), false);
        give(&mut client, id, Bytes::from_static(b"hello"), false);
        give(&mut client, id, end, true);
        assert_eq!(
            seen(&mut client, id),
            [
                Seen::Interim(103),
                Seen::Response(200),
                Seen::Data(b"hello".to_vec()),
                Seen::Trailers(1),
                Seen::Finished
            ]
        );
        client.forget(id);
        server.forget(id);
        pump(&mut client, &mut server);
    }
    assert!(client.requests.is_empty() && server.requests.is_empty());
}

/// RFC 9204, section 2.1.2.
#[test]
fn repeated_fields_become_small() {
    let (mut client, mut server) = (client(), server());
    pump(&mut client, &mut server);
    let agent = "x".repeat(200);
    let mut sizes = Vec::new();
    for index in 0..3 {
        let bytes = client.encode_request(request(index), &get(&agent)).unwrap();
        sizes.push(bytes.len());
        give(&mut server, request(index), bytes, true);
        pump(&mut client, &mut server);
        assert_eq!(seen(&mut server, request(index)).len(), 2);
    }
    assert!(sizes[2] < 50, "{sizes:?}");
}

/// RFC 9204, section 2.2.1.
#[test]
fn a_blocked_stream_goes_on_when_insertions_arrive() {
    let mut client = Connection::new(Side::Client, &eager());
    let mut server = server();
    pump(&mut client, &mut server);
    events(&mut server);
    let id = request(0);
    let bytes = client.encode_request(id, &get("marline")).unwrap();
    give(&mut server, id, bytes, false);
    assert!(server.is_blocked(id));
    give(&mut server, id, data(b"hel").into(), false);
    give(&mut server, id, data(b"lo").into(), true);
    assert_eq!(seen(&mut server, id), []);
    pump(&mut client, &mut server);
    assert_eq!(events(&mut server), [Event::Readable(id)]);
    assert!(!server.is_blocked(id));
    assert_eq!(
        seen(&mut server, id),
        [
            Seen::Request("https://example.com/a?b".to_owned()),
            Seen::Data(b"hello".to_vec()),
            Seen::Finished
        ]
    );
}

#[test]
fn what_arrives_behind_a_blocked_section_is_limited() {
    let mut client = Connection::new(Side::Client, &eager());
    let mut server = server();
    pump(&mut client, &mut server);
    let id = request(0);
    let bytes = client.encode_request(id, &get("marline")).unwrap();
    give(&mut server, id, bytes, false);
    let chunk = Bytes::from(vec![0; crate::limits::MAX_HELD_BYTES]);
    give(&mut server, id, chunk, false);
    assert_eq!(seen(&mut server, id), []);
    give(&mut server, id, Bytes::from_static(&[0]), false);
    let failed = Seen::Failed(ErrorCode::EXCESSIVE_LOAD);
    assert_eq!(seen(&mut server, id), [failed]);
}

/// RFC 9204, section 2.2.2.2.
#[test]
fn a_blocked_stream_that_is_reset_or_forgotten_is_cancelled() {
    for is_reset in [true, false] {
        let mut client = Connection::new(Side::Client, &eager());
        let mut server = server();
        pump(&mut client, &mut server);
        let id = request(0);
        let bytes = client.encode_request(id, &get("marline")).unwrap();
        give(&mut server, id, bytes, false);
        match is_reset {
            true => server.on_reset(id, 0).unwrap(),
            false => server.forget(id),
        }
        let cancelled = server.poll_transmit().unwrap();
        assert_eq!(cancelled.stream, LocalStream::QpackDecoder);
        // The stream type, and Stream Cancellation of stream 0.
        assert_eq!(cancelled.bytes[..], [0x03, 0x40]);
        let stream = uni(&client, cancelled.stream as u64);
        give(&mut client, stream, cancelled.bytes, false);
        pump(&mut client, &mut server);
    }
}

/// RFC 9204, section 2.2.2.2: field sections after what failed are not decoded.
#[test]
fn a_message_that_failed_is_cancelled_once() {
    let mut server = server();
    while server.poll_transmit().is_some() {}
    let id = request(0);
    give(&mut server, id, headers(&GET[1..]).into(), false);
    let failed = Seen::Failed(ErrorCode::MESSAGE_ERROR);
    assert_eq!(seen(&mut server, id), [failed]);
    server.stop_receiving(id);
    server.forget(id);
    assert_eq!(server.poll_transmit().unwrap().bytes[..], [0x03, 0x40]);
    assert_eq!(server.poll_transmit(), None);
    // One that ended has nothing left.
    let id = request(1);
    give(&mut server, id, headers(GET).into(), true);
    assert_eq!(seen(&mut server, id).len(), 2);
    server.forget(id);
    assert_eq!(server.poll_transmit(), None);
}

/// RFC 9114, section 4.2.2.
#[test]
fn a_message_above_the_limit_of_the_peer_is_not_sent() {
    let config = Config {
        max_field_section_size: 300,
        ..Config::default()
    };
    let mut client = client();
    let mut server = Connection::new(Side::Server, &config);
    pump(&mut client, &mut server);
    let refused = client.encode_request(request(0), &get(&"x".repeat(300)));
    assert!(matches!(
        refused,
        Err(SendError::TooLarge { limit: 300, .. })
    ));
    assert!(client.requests.is_empty());
    client.encode_request(request(0), &get("marline")).unwrap();
}

/// RFC 9220, section 3.
#[test]
fn extended_connect_needs_a_server_that_allows_it() {
    let mut connect = Request::connect("https://example.com/chat")
        .body(())
        .unwrap();
    let websocket = Protocol::new("websocket").unwrap();
    connect.extensions_mut().insert(websocket);
    let config = Config {
        enable_connect_protocol: true,
        ..Config::default()
    };
    let (mut client, mut server) = (client(), Connection::new(Side::Server, &config));
    assert_eq!(
        client.encode_request(request(0), &connect),
        Err(SendError::NoConnectProtocol)
    );
    pump(&mut client, &mut server);
    let bytes = client.encode_request(request(0), &connect).unwrap();
    give(&mut server, request(0), bytes, false);
    let Some(StreamEvent::Request(head)) = server.poll_stream(request(0)) else {
        panic!("no request");
    };
    let protocol = head.request.extensions().get::<Protocol>();
    assert_eq!(protocol.unwrap().as_str(), "websocket");
}

#[test]
fn a_request_without_a_host_is_not_sent() {
    let request_line = Request::get("/a").body(()).unwrap();
    assert_eq!(
        client().encode_request(request(0), &request_line),
        Err(SendError::NoAuthority)
    );
    let switching = Response::builder().status(101).body(()).unwrap();
    assert_eq!(
        server().encode_response(request(0), &switching),
        Err(SendError::SwitchingProtocols)
    );
}
