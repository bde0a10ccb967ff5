//! Request streams: frames and messages.

use super::*;

fn got(uri: &str) -> Seen {
    Seen::Request(uri.to_owned())
}

fn content(bytes: &[u8]) -> Seen {
    Seen::Data(bytes.to_vec())
}

/// RFC 9114, section 4.1.
#[test]
fn a_request_is_complete_at_the_end_of_its_stream() {
    let mut server = server();
    let bytes = headers(GET).into();
    server.on_stream_data(request(0), bytes, false).unwrap();
    assert_eq!(seen(&mut server, request(0)), [got("https://a/")]);
    server
        .on_stream_data(request(0), Bytes::new(), true)
        .unwrap();
    assert_eq!(seen(&mut server, request(0)), [Seen::Finished]);
}

/// RFC 9114, section 7.2.1: a DATA frame may have no content.
#[test]
fn empty_data_frames_are_no_end() {
    for frames in [
        &[&b"hello"[..], b"", b"world"][..],
        &[b"", b"helloworld", b""],
        &[b"", b"", b"hello", b"", b"", b"world", b""],
    ] {
        let frames: Vec<u8> = frames.iter().flat_map(|frame| data(frame)).collect();
        assert_eq!(
            receive(&[&headers(POST), &frames]),
            Ok(vec![
                got("https://a/"),
                content(b"helloworld"),
                Seen::Finished
            ])
        );
        assert_eq!(
            receive_response("GET", &[&headers(OK), &frames]),
            Ok(vec![
                Seen::Response(200),
                content(b"helloworld"),
                Seen::Finished
            ])
        );
    }
}

/// RFC 9114, section 4.1.
#[test]
fn trailers_follow_content() {
    let trailers = headers(&[("checksum", "1")]);
    assert_eq!(
        receive(&[&headers(POST), &data(b"a"), &trailers]),
        Ok(vec![
            got("https://a/"),
            content(b"a"),
            Seen::Trailers(1),
            Seen::Finished
        ])
    );
}

/// RFC 9114, sections 4.1 and 7.2.
#[test]
fn frames_out_of_sequence_are_unexpected() {
    let trailers = headers(&[("checksum", "1")]);
    for parts in [
        &[&data(b"a")[..]][..],
        &[&data(b"")],
        &[&headers(POST), &trailers, &data(b"a")],
        &[&headers(POST), &trailers, &trailers],
        &[&headers(POST), &data(b"a"), &trailers, &trailers],
    ] {
        assert_eq!(receive(parts), Err(ErrorCode::FRAME_UNEXPECTED));
    }
    for parts in [
        &[&data(b"a")[..]][..],
        &[&headers(&[(":status", "103")]), &data(b"a")],
    ] {
        let received = receive_response("GET", parts);
        assert_eq!(received, Err(ErrorCode::FRAME_UNEXPECTED));
    }
}

/// RFC 9114, section 7.2; RFC 9218, section 7.2.
#[test]
fn frames_of_other_streams_and_of_http_2_are_unexpected() {
    for kind in [
        0x02, 0x03, 0x04, 0x06, 0x07, 0x08, 0x09, 0x0d, 0xf0700, 0xf0701,
    ] {
        let frame = frame_of(FrameType(kind), &[0]);
        let expected = Err(ErrorCode::FRAME_UNEXPECTED);
        assert_eq!(receive(&[&frame]), expected, "{kind:#x}");
        assert_eq!(receive(&[&headers(GET), &frame]), expected, "{kind:#x}");
        let received = receive_response("GET", &[&headers(OK), &frame]);
        assert_eq!(received, expected, "{kind:#x}");
    }
}

/// RFC 9114, sections 4.6 and 7.2.5: clients here never allow a push.
#[test]
fn pushes_are_refused() {
    let promise = frame_of(FrameType::PUSH_PROMISE, &[0]);
    assert_eq!(receive(&[&promise]), Err(ErrorCode::FRAME_UNEXPECTED));
    let received = receive_response("GET", &[&promise]);
    assert_eq!(received, Err(ErrorCode::ID_ERROR));
}

/// RFC 9114, section 7.2.8.
#[test]
fn unknown_frames_are_ignored_anywhere() {
    let unknown = frame_of(FrameType(0x21), &[7; 100]);
    let empty = frame_of(FrameType(0x40), &[]);
    assert_eq!(
        receive(&[
            &unknown,
            &headers(POST),
            &empty,
            &data(b"a"),
            &unknown,
            &headers(&[("x", "y")]),
            &unknown,
        ]),
        Ok(vec![
            got("https://a/"),
            content(b"a"),
            Seen::Trailers(1),
            Seen::Finished
        ])
    );
}

/// RFC 9114, section 7.1.
#[test]
fn a_stream_that_ends_within_a_frame_is_a_frame_error() {
    let request = headers(GET);
    for end in 1..request.len() {
        assert_eq!(receive(&[&request[..end]]), Err(ErrorCode::FRAME_ERROR));
    }
    let body = data(b"abc");
    for end in 1..body.len() {
        let received = receive(&[&request, &body[..end]]);
        assert_eq!(received, Err(ErrorCode::FRAME_ERROR));
    }
}

/// RFC 9114, section 4.1.
#[test]
fn a_stream_that_ends_before_the_header_is_incomplete() {
    let incomplete = Ok(vec![Seen::Failed(ErrorCode::REQUEST_INCOMPLETE)]);
    assert_eq!(receive(&[]), incomplete);
    let unknown = frame_of(FrameType(0x21), b"x");
    assert_eq!(receive(&[&unknown]), incomplete);
    let malformed = Seen::Failed(ErrorCode::MESSAGE_ERROR);
    let interim = headers(&[(":status", "103")]);
    assert_eq!(
        receive_response("GET", &[&interim]),
        Ok(vec![Seen::Interim(103), malformed])
    );
}

/// RFC 9114, section 4.1.2.
#[test]
fn a_malformed_message_fails_its_stream_only() {
    let malformed = Ok(vec![Seen::Failed(ErrorCode::MESSAGE_ERROR)]);
    assert_eq!(receive(&[&headers(&GET[1..])]), malformed);
    let twice = [GET, &GET[..1]].concat();
    assert_eq!(receive(&[&headers(&twice), &data(b"a")]), malformed);
    let received = receive_response("GET", &[&headers(&[("a", "b")])]);
    assert_eq!(received, malformed);
    assert_eq!(
        receive_response("GET", &[&headers(&[(":status", "101")])]),
        malformed
    );
}

/// RFC 9114, section 4.1.2.
#[test]
fn content_must_have_the_announced_length() {
    let post = |length| headers(&[POST, &[("content-length", length)]].concat());
    let failed = Seen::Failed(ErrorCode::MESSAGE_ERROR);
    assert_eq!(
        receive(&[&post("3"), &data(b"ab"), &data(b"c")]),
        Ok(vec![got("https://a/"), content(b"abc"), Seen::Finished])
    );
    let short = receive(&[&post("3"), &data(b"ab")]).unwrap();
    assert_eq!(short.last(), Some(&failed));
    let long = receive(&[&post("1"), &data(b"a"), &data(b"b")]).unwrap();
    assert_eq!(long, [got("https://a/"), content(b"a"), failed]);
    // The length is checked before trailers.
    let trailers = headers(&[("x", "y")]);
    let short = receive(&[&post("3"), &data(b"ab"), &trailers]).unwrap();
    assert!(!short.contains(&Seen::Trailers(1)));
    let none = receive(&[&post("3")]).unwrap();
    assert_eq!(
        none.last(),
        Some(&Seen::Failed(ErrorCode::MESSAGE_ERROR)),
        "no content at all"
    );
}

/// RFC 9114, section 4.1.2; RFC 9110, section 6.4.1.
#[test]
fn responses_without_content_may_announce_a_length() {
    let with_length = |status| headers(&[(":status", status), ("content-length", "5")]);
    for (method, status) in [("HEAD", "200"), ("GET", "304"), ("GET", "204")] {
        let head = with_length(status);
        let status = status.parse().unwrap();
        assert_eq!(
            receive_response(method, &[&head, &data(b"")]),
            Ok(vec![Seen::Response(status), Seen::Finished])
        );
        assert_eq!(
            receive_response(method, &[&head, &data(b"hello")]),
            Ok(vec![
                Seen::Response(status),
                Seen::Failed(ErrorCode::MESSAGE_ERROR)
            ])
        );
    }
    // An interim response announces nothing.
    assert_eq!(
        receive_response("GET", &[&with_length("103"), &headers(OK)]),
        Ok(vec![
            Seen::Interim(103),
            Seen::Response(200),
            Seen::Finished
        ])
    );
}

/// RFC 9114, section 4.1.
#[test]
fn interim_responses_precede_the_response() {
    let interim = headers(&[(":status", "103"), ("link", "</a>")]);
    assert_eq!(
        receive_response("GET", &[&interim, &interim, &headers(OK), &data(b"a")]),
        Ok(vec![
            Seen::Interim(103),
            Seen::Interim(103),
            Seen::Response(200),
            content(b"a"),
            Seen::Finished
        ])
    );
}

#[test]
fn interim_responses_are_limited() {
    let interim = headers(&[(":status", "102")]);
    let limit = crate::limits::MAX_INTERIM_RESPONSES as usize;
    let mut client = client_after("GET");
    let all = interim.repeat(limit + 1).into();
    client.on_stream_data(request(0), all, false).unwrap();
    let events = seen(&mut client, request(0));
    assert_eq!(events.len(), limit + 1);
    let last = Seen::Failed(ErrorCode::EXCESSIVE_LOAD);
    assert_eq!(events.last(), Some(&last));
}

/// RFC 9114, section 4.4.
#[test]
fn a_tunnel_has_content_only() {
    let connect = headers(&[(":method", "CONNECT"), (":authority", "a:443")]);
    assert_eq!(
        receive(&[&connect, &data(b"a")]),
        Ok(vec![got("a:443"), content(b"a"), Seen::Finished])
    );
    let received = receive(&[&connect, &headers(&[("x", "y")])]);
    assert_eq!(received, Err(ErrorCode::FRAME_UNEXPECTED));
    let accepted = headers(&[(":status", "200"), ("content-length", "1")]);
    assert_eq!(
        receive_response("CONNECT", &[&accepted, &data(b"abc")]),
        Ok(vec![Seen::Response(200), content(b"abc"), Seen::Finished])
    );
}

/// RFC 9114, section 4.2.2.
#[test]
fn a_field_section_above_the_limit_is_not_decoded() {
    let config = Config {
        max_field_section_size: 200,
        ..Config::default()
    };
    // The encoded bytes are below the limit, the decoded fields above it.
    let small: Vec<_> = [GET, &[("accept", "*/*"); 10]].concat();
    let long = "x".repeat(300);
    let large: Vec<_> = [GET, &[("a", &long)]].concat();
    for fields in [small, large] {
        let bytes = headers(&fields);
        for cut in [1, 7, bytes.len()] {
            let server = Connection::new(Side::Server, &config);
            assert_eq!(
                receive_cut(server, &bytes, cut),
                Ok(vec![Seen::TooLarge]),
                "{cut}"
            );
        }
    }
    let mut client = Connection::new(Side::Client, &config);
    let sent = http::Request::get("https://a/").body(()).unwrap();
    client.encode_request(request(0), &sent).unwrap();
    let response = headers(&[(":status", "200"), ("a", &long)]);
    assert_eq!(
        receive_cut(client, &response, 10),
        Ok(vec![Seen::Failed(ErrorCode::EXCESSIVE_LOAD)])
    );
}

/// RFC 9114, section 10.5.1: a frame is not stored because it is announced.
#[test]
fn a_long_header_frame_is_refused_at_its_header() {
    let bytes = [&[0x01][..], &[0xff; 8]].concat();
    let mut server = server();
    server
        .on_stream_data(request(0), bytes.into(), false)
        .unwrap();
    assert_eq!(seen(&mut server, request(0)), [Seen::TooLarge]);
}

#[test]
fn content_of_any_length_passes_through() {
    let mut server = server();
    let mut bytes = headers(POST);
    bytes.extend([&[0x00][..], &[0xff; 8]].concat());
    server
        .on_stream_data(request(0), bytes.into(), false)
        .unwrap();
    for _ in 0..10 {
        let chunk = Bytes::from(vec![1; 1 << 16]);
        let sent = chunk.clone();
        server.on_stream_data(request(0), chunk, false).unwrap();
        let mut events = std::iter::from_fn(|| server.poll_stream(request(0)));
        let last = events.by_ref().last();
        let Some(StreamEvent::Data(received)) = last else {
            panic!("{last:?}");
        };
        assert!(std::ptr::eq(&received[..], &sent[..]), "it is not copied");
    }
}

#[test]
fn a_reset_ends_the_message() {
    let mut server = server();
    server
        .on_stream_data(request(0), headers(POST).into(), false)
        .unwrap();
    server.on_reset(request(0), 7).unwrap();
    assert_eq!(
        seen(&mut server, request(0)),
        [got("https://a/"), Seen::Reset(7)]
    );
}

/// RFC 9204, section 2.2.1.
#[test]
fn an_invalid_field_section_ends_the_connection() {
    let frame = frame_of(FrameType::HEADERS, &[0x00, 0x00, 0x80]);
    assert_eq!(
        receive(&[&frame]),
        Err(ErrorCode::QPACK_DECOMPRESSION_FAILED)
    );
}
