//! The control stream: settings, going away, pushes, priorities.

use super::*;
use crate::priority::Priority;

/// RFC 9114, section 6.2.1.
#[test]
fn the_control_stream_begins_with_settings() {
    for kind in [0x00, 0x01, 0x03, 0x07, 0x0d, 0x21] {
        let mut server = server();
        let id = uni(&server, 0);
        let bytes = [&[0x00][..], &frame_of(FrameType(kind), &[0])].concat();
        let error = server.on_stream_data(id, bytes.into(), false).unwrap_err();
        assert_eq!(error.code(), ErrorCode::MISSING_SETTINGS, "{kind:#x}");
    }
}

/// RFC 9114, section 7.2.4.
#[test]
fn settings_come_once() {
    let again = frame_of(FrameType::SETTINGS, &[]);
    let received = on_control(&mut server(), &again);
    assert_eq!(received, Err(ErrorCode::FRAME_UNEXPECTED));
}

#[test]
fn settings_are_reported() {
    let mut client = client();
    let id = uni(&client, 0);
    let settings = frame_of(FrameType::SETTINGS, &integers(&[0x06, 100, 0x08, 1]));
    let bytes = [&[0x00], &settings[..]].concat();
    client.on_stream_data(id, bytes.into(), false).unwrap();
    let expected = Settings {
        max_field_section_size: Some(100),
        enable_connect_protocol: true,
        ..Settings::default()
    };
    assert_eq!(events(&mut client), [Event::Settings(expected)]);
    assert_eq!(client.peer_settings(), &expected);
}

#[test]
fn long_settings_are_refused() {
    let mut server = server();
    let id = uni(&server, 0);
    let bytes = integers(&[0x00, 0x04, crate::limits::MAX_SETTINGS_BYTES + 1]);
    let error = server.on_stream_data(id, bytes.into(), false).unwrap_err();
    assert_eq!(error.code(), ErrorCode::EXCESSIVE_LOAD);
}

/// RFC 9114, sections 7.2.1, 7.2.2, 7.2.5 and 7.2.8.
#[test]
fn frames_of_requests_and_of_http_2_are_unexpected() {
    for kind in [0x00, 0x01, 0x05, 0x02, 0x06, 0x08, 0x09] {
        for mut connection in [server(), client()] {
            let frame = frame_of(FrameType(kind), &[0]);
            let received = on_control(&mut connection, &frame);
            assert_eq!(received, Err(ErrorCode::FRAME_UNEXPECTED), "{kind:#x}");
        }
    }
}

/// RFC 9114, section 7.2.7; RFC 9218, section 7.2.
#[test]
fn frames_of_clients_are_unexpected_from_servers() {
    for kind in [0x0d, 0xf0700, 0xf0701] {
        let frame = frame_of(FrameType(kind), &[0]);
        let received = on_control(&mut client(), &frame);
        assert_eq!(received, Err(ErrorCode::FRAME_UNEXPECTED), "{kind:#x}");
    }
}

/// RFC 9114, section 7.2.8.
#[test]
fn unknown_frames_are_ignored() {
    let unknown = frame_of(FrameType(0x21), &[0; 70]);
    let goaway = frame_of(FrameType::GOAWAY, &[0]);
    let mut server = server();
    on_control(&mut server, &[unknown, goaway].concat()).unwrap();
    let last = events(&mut server).pop();
    assert_eq!(last, Some(Event::Goaway { id: 0 }));
}

/// RFC 9114, section 7.1.
#[test]
fn frames_of_an_identifier_have_its_size() {
    for kind in [
        FrameType::GOAWAY,
        FrameType::MAX_PUSH_ID,
        FrameType::CANCEL_PUSH,
    ] {
        for payload in [&[][..], &[0x40], &[0, 0], &[0; 9]] {
            let frame = frame_of(kind, payload);
            let received = on_control(&mut server(), &frame);
            assert_eq!(received, Err(ErrorCode::FRAME_ERROR), "{kind:?}");
        }
    }
}

/// RFC 9114, section 5.2.
#[test]
fn goaway_rejects_the_requests_that_it_names() {
    let mut client = client();
    let sent = http::Request::get("https://a/").body(()).unwrap();
    for index in 0..3 {
        client.encode_request(request(index), &sent).unwrap();
    }
    on_control(&mut client, &frame_of(FrameType::GOAWAY, &[4])).unwrap();
    assert_eq!(
        events(&mut client)[1..],
        [
            Event::Goaway { id: 4 },
            Event::Readable(request(1)),
            Event::Readable(request(2))
        ]
    );
    assert_eq!(seen(&mut client, request(0)), []);
    for index in [1, 2] {
        let rejected = Seen::Failed(ErrorCode::REQUEST_REJECTED);
        assert_eq!(seen(&mut client, request(index)), [rejected]);
    }
    let refused = client.encode_request(request(3), &sent);
    assert_eq!(refused, Err(SendError::GoingAway));
}

/// RFC 9114, section 5.2.
#[test]
fn the_identifier_of_goaway_does_not_grow() {
    for mut connection in [server(), client()] {
        on_control(&mut connection, &frame_of(FrameType::GOAWAY, &[8])).unwrap();
        on_more_control(&mut connection, &frame_of(FrameType::GOAWAY, &[8])).unwrap();
        on_more_control(&mut connection, &frame_of(FrameType::GOAWAY, &[4])).unwrap();
        let received = on_more_control(&mut connection, &frame_of(FrameType::GOAWAY, &[8]));
        assert_eq!(received, Err(ErrorCode::ID_ERROR));
    }
}

/// RFC 9114, section 7.2.6.
#[test]
fn goaway_of_a_server_names_a_request() {
    for id in 1..4 {
        let received = on_control(&mut client(), &frame_of(FrameType::GOAWAY, &[id]));
        assert_eq!(received, Err(ErrorCode::ID_ERROR), "{id}");
        // That of a client names a push.
        assert_eq!(
            on_control(&mut server(), &frame_of(FrameType::GOAWAY, &[id])),
            Ok(())
        );
    }
}

/// RFC 9114, section 5.2.
#[test]
fn a_server_that_goes_away_rejects_later_requests() {
    let mut server = server();
    server.on_request_stream(request(0));
    server.on_request_stream(request(1));
    while server.poll_transmit().is_some() {}
    server.go_away();
    let goaway = server.poll_transmit().unwrap();
    assert_eq!(goaway.bytes, frame_of(FrameType::GOAWAY, &[8]));
    server.go_away();
    assert_eq!(server.poll_transmit(), None);
    for index in 0..3 {
        let bytes = headers(GET).into();
        server.on_stream_data(request(index), bytes, true).unwrap();
    }
    let accepted = [Seen::Request("https://a/".to_owned()), Seen::Finished];
    assert_eq!(seen(&mut server, request(0)), accepted);
    assert_eq!(seen(&mut server, request(1)), accepted);
    let rejected = Seen::Failed(ErrorCode::REQUEST_REJECTED);
    assert_eq!(seen(&mut server, request(2)), [rejected]);
}

/// RFC 9114, section 5.2.
#[test]
fn a_server_that_is_about_to_go_away_accepts_requests() {
    let mut server = server();
    while server.poll_transmit().is_some() {}
    server.announce_going_away();
    server.on_request_stream(request(0));
    server
        .on_stream_data(request(0), headers(GET).into(), true)
        .unwrap();
    let accepted = [Seen::Request("https://a/".to_owned()), Seen::Finished];
    assert_eq!(seen(&mut server, request(0)), accepted);
    server.go_away();
    server.announce_going_away();
    let mut client = client();
    let sent: Vec<_> = std::iter::from_fn(|| server.poll_transmit())
        .filter(|transmit| transmit.stream == LocalStream::Control)
        .flat_map(|transmit| transmit.bytes)
        .collect();
    on_control(&mut client, &sent).unwrap();
    let goaways = [Event::Goaway { id: (1 << 62) - 4 }, Event::Goaway { id: 4 }];
    let is_goaway = |event: &Event| matches!(event, Event::Goaway { .. });
    let seen: Vec<_> = events(&mut client).into_iter().filter(is_goaway).collect();
    assert_eq!(seen, goaways);
}

#[test]
fn a_client_can_go_away() {
    let (mut client, mut server) = (client(), server());
    client.go_away();
    pump(&mut client, &mut server);
    assert!(events(&mut server).contains(&Event::Goaway { id: 0 }));
    assert!(server.is_peer_going_away());
}

/// RFC 9114, section 7.2.7.
#[test]
fn max_push_id_does_not_shrink() {
    let mut server = server();
    on_control(&mut server, &frame_of(FrameType::MAX_PUSH_ID, &[5])).unwrap();
    on_more_control(&mut server, &frame_of(FrameType::MAX_PUSH_ID, &[5])).unwrap();
    on_more_control(&mut server, &frame_of(FrameType::MAX_PUSH_ID, &[6])).unwrap();
    let received = on_more_control(&mut server, &frame_of(FrameType::MAX_PUSH_ID, &[5]));
    assert_eq!(received, Err(ErrorCode::ID_ERROR));
}

/// RFC 9114, section 7.2.3: no push exists that could be cancelled.
#[test]
fn cancel_push_names_no_push() {
    for mut connection in [server(), client()] {
        let received = on_control(&mut connection, &frame_of(FrameType::CANCEL_PUSH, &[0]));
        assert_eq!(received, Err(ErrorCode::ID_ERROR));
    }
}

fn update(id: u64, value: &str) -> Vec<u8> {
    let payload = [&integers(&[id]), value.as_bytes()].concat();
    frame_of(FrameType::PRIORITY_UPDATE_REQUEST, &payload)
}

fn priority_of(server: &mut Connection, id: StreamId, fields: &[(&str, &str)]) -> Priority {
    let bytes = headers(fields).into();
    server.on_stream_data(id, bytes, true).unwrap();
    match server.poll_stream(id) {
        Some(StreamEvent::Request(head)) => head.priority,
        event => panic!("{event:?}"),
    }
}

/// RFC 9218, section 7: an update may arrive before its request, and overrides the field.
#[test]
fn a_priority_update_before_the_request_is_kept() {
    let mut server = server();
    on_control(&mut server, &update(4, "u=1, i")).unwrap();
    let field = [GET, &[("priority", "u=5")]].concat();
    let priority = priority_of(&mut server, request(0), &field);
    assert_eq!(priority, Priority::parse(b"u=5"));
    let priority = priority_of(&mut server, request(1), &field);
    assert_eq!(priority, Priority::parse(b"u=1, i"));
}

/// RFC 9218, section 7.
#[test]
fn a_priority_update_of_a_request_is_reported() {
    let mut server = server();
    server.on_request_stream(request(0));
    on_control(&mut server, &update(0, "u=2")).unwrap();
    // Its header comes later.
    let priority = priority_of(&mut server, request(0), GET);
    assert_eq!(priority, Priority::parse(b"u=2"));
    events(&mut server);
    on_more_control(&mut server, &update(0, "u=7")).unwrap();
    assert_eq!(
        events(&mut server),
        [Event::Priority {
            stream: request(0),
            priority: Priority::parse(b"u=7")
        }]
    );
    server.forget(request(0));
    on_more_control(&mut server, &update(0, "u=7")).unwrap();
    assert_eq!(events(&mut server), []);
    assert_eq!(server.priorities.take(request(0)), None);
}

#[test]
fn priorities_of_requests_that_do_not_arrive_are_limited() {
    let mut server = server();
    on_control(&mut server, &[]).unwrap();
    let limit = crate::limits::MAX_EARLY_PRIORITIES as u64;
    for index in 0..2 * limit {
        on_more_control(&mut server, &update(index * 4, "u=0")).unwrap();
    }
    assert!(server.priorities.take(request(limit - 1)).is_some());
    assert!(server.priorities.take(request(limit)).is_none());
    let long = "x".repeat(crate::limits::MAX_PRIORITY_BYTES as usize + 9);
    let received = on_more_control(&mut server, &update(0, &long));
    assert_eq!(received, Err(ErrorCode::EXCESSIVE_LOAD));
}

/// RFC 9218, section 7.2.
#[test]
fn a_priority_update_names_a_request() {
    for id in 1..4 {
        let received = on_control(&mut server(), &update(id, "u=0"));
        assert_eq!(received, Err(ErrorCode::ID_ERROR), "{id}");
    }
    let push = frame_of(FrameType::PRIORITY_UPDATE_PUSH, &[0]);
    assert_eq!(on_control(&mut server(), &push), Err(ErrorCode::ID_ERROR));
    let empty = frame_of(FrameType::PRIORITY_UPDATE_REQUEST, &[]);
    assert_eq!(
        on_control(&mut server(), &empty),
        Err(ErrorCode::FRAME_ERROR)
    );
}

#[test]
fn a_client_changes_a_priority() {
    let (mut client, mut server) = (client(), server());
    server.on_request_stream(request(0));
    let priority = Priority::parse(b"u=1, i");
    client.update_priority(request(0), priority);
    pump(&mut client, &mut server);
    assert_eq!(priority_of(&mut server, request(0), GET), priority);
}
