//! Unidirectional streams.

use super::*;

fn on_uni(connection: &mut Connection, index: u64, bytes: &[u8]) -> Result<(), ErrorCode> {
    let id = uni(connection, index);
    connection
        .on_stream_data(id, Bytes::copy_from_slice(bytes), false)
        .map_err(|error| error.code())
}

/// RFC 9114, section 6.2.1; RFC 9204, section 4.2.
#[test]
fn control_and_qpack_streams_are_unique() {
    for kind in [0x00, 0x02, 0x03] {
        let mut server = server();
        on_uni(&mut server, 0, &[kind]).unwrap();
        let received = on_uni(&mut server, 1, &[kind]);
        assert_eq!(received, Err(ErrorCode::STREAM_CREATION_ERROR), "{kind}");
    }
}

/// RFC 9114, section 6.2.1; RFC 9204, section 4.2.
#[test]
fn control_and_qpack_streams_are_not_closed() {
    let closed = ErrorCode::CLOSED_CRITICAL_STREAM;
    for kind in [0x00, 0x02, 0x03] {
        for mut connection in [server(), client()] {
            let id = uni(&connection, 0);
            on_uni(&mut connection, 0, &[kind]).unwrap();
            let ended = connection.on_stream_data(id, Bytes::new(), true);
            assert_eq!(ended.unwrap_err().code(), closed);
        }
        let mut server = server();
        on_uni(&mut server, 0, &[kind]).unwrap();
        let id = uni(&server, 0);
        let reset = server.on_reset(id, 0);
        assert_eq!(reset.unwrap_err().code(), closed);
    }
    for mut connection in [server(), client()] {
        let own = StreamId::new(connection.side, Dir::Uni, 0);
        let stopped = connection.on_stop_sending(own);
        assert_eq!(stopped.unwrap_err().code(), closed);
        assert_eq!(connection.on_stop_sending(request(0)), Ok(()));
    }
}

/// RFC 9114, section 6.2.2.
#[test]
fn push_streams_are_refused() {
    assert_eq!(
        on_uni(&mut server(), 0, &[0x01, 0x00]),
        Err(ErrorCode::STREAM_CREATION_ERROR)
    );
    assert_eq!(
        on_uni(&mut client(), 0, &[0x01, 0x00]),
        Err(ErrorCode::ID_ERROR)
    );
}

/// RFC 9114, section 6.1.
#[test]
fn bidirectional_streams_of_servers_are_refused() {
    let id = StreamId::new(Side::Server, Dir::Bi, 0);
    let error = client()
        .on_stream_data(id, Bytes::new(), false)
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::STREAM_CREATION_ERROR);
}

/// RFC 9114, sections 6.2 and 6.2.3.
#[test]
fn streams_of_unknown_types_are_ignored() {
    let mut server = server();
    let id = uni(&server, 3);
    // The bytes look like other types.
    on_uni(&mut server, 3, &[0x40]).unwrap();
    assert_eq!(events(&mut server), []);
    on_uni(&mut server, 3, &[0x21, 0x00, 0x04]).unwrap();
    assert_eq!(events(&mut server), [Event::UnknownStream(id)]);
    on_uni(&mut server, 3, &[0x00, 0x01]).unwrap();
    assert_eq!(events(&mut server), []);
    server.on_stream_data(id, Bytes::new(), true).unwrap();
}

/// RFC 9114, section 6.2.
#[test]
fn streams_may_end_before_their_type() {
    let mut server = server();
    let id = uni(&server, 0);
    server.on_stream_data(id, Bytes::new(), true).unwrap();
    on_uni(&mut server, 1, &[0xc0]).unwrap();
    let id = uni(&server, 1);
    server.on_reset(id, 0).unwrap();
}

#[test]
fn unidirectional_streams_are_limited() {
    let mut server = server();
    let limit = crate::limits::MAX_UNI_STREAMS as u64;
    for index in 0..limit {
        on_uni(&mut server, index, &[0x21]).unwrap();
    }
    let received = on_uni(&mut server, limit, &[0x21]);
    assert_eq!(received, Err(ErrorCode::EXCESSIVE_LOAD));
    // Those that are forgotten do not count.
    for index in 0..limit {
        let id = uni(&server, index);
        server.forget(id);
    }
    on_uni(&mut server, limit, &[0x21]).unwrap();
}

/// RFC 9204, section 4.1.3.
#[test]
fn invalid_qpack_instructions_end_the_connection() {
    // A capacity above the maximum, and an increment of 0.
    assert_eq!(
        on_uni(&mut server(), 0, &[0x02, 0x3f, 0xff, 0xff, 0x7f]),
        Err(ErrorCode::QPACK_ENCODER_STREAM_ERROR)
    );
    assert_eq!(
        on_uni(&mut server(), 0, &[0x03, 0x00]),
        Err(ErrorCode::QPACK_DECODER_STREAM_ERROR)
    );
}

/// RFC 9114, sections 6.2.1, 7.2.4.1 and 7.2.8.
#[test]
fn the_control_stream_has_settings_first_and_is_greased() {
    let config = Config {
        grease: Some(7),
        h3_datagram: true,
        ..Config::default()
    };
    let mut greasing = Connection::new(Side::Client, &config);
    let first = greasing.poll_transmit().unwrap();
    assert_eq!(first.stream, LocalStream::Control);
    assert_eq!(first.bytes[..2], [0x00, 0x04]);
    let mut server = server();
    let id = uni(&server, 0);
    let plain = client().poll_transmit().unwrap().bytes.len();
    assert!(first.bytes.len() > plain + 16, "a setting and a frame more");
    server.on_stream_data(id, first.bytes, false).unwrap();
    assert_eq!(server.peer_settings(), &config.settings());
}
