//! The client, with a server that writes HTTP/3 by hand.

use std::net::SocketAddr;
use std::sync::Arc;

use marline_h3::frame::FrameType;
use marline_http::client::{Destination, FetchOptions, Message, ObjectReport, Target};
use marline_http::limits;
use marline_sim::Host;

use super::peer::{
    announce_datagrams, answer_once_each, answer_with, close_with, data, flood_with, frame,
    headers, open_streams,
};
use crate::setup::{client, run};

const OK: &[(&str, &str)] = &[(":status", "200")];

/// The report of an object whose response is `answer`, made of these frames.
fn fetch(answer: &[Vec<u8>]) -> ObjectReport {
    let answer = answer.concat();
    fetch_from(|host| answer_with(host, vec![answer.clone()]))
}

/// The report of an object of the server that `listen` starts.
fn fetch_from(listen: impl Fn(&Host) -> SocketAddr) -> ObjectReport {
    run(async |network| {
        let address = listen(&network.servers[0]);
        let client = client(&network.client, [("example.test", address)]);
        let target = Target {
            url: "https://example.test/".to_owned(),
            destination: Destination::Nowhere,
            size: None,
            message: Message::default(),
        };
        let progress = Arc::default();
        let fetched = client.fetch(vec![target], FetchOptions::default(), &progress);
        fetched.await.objects.remove(0)
    })
}

fn assert_failed(object: &ObjectReport, because: &str) {
    let error = object.error.as_deref().unwrap_or_default();
    assert!(error.contains(because), "{object:?}");
}

#[test]
fn content_after_an_empty_data_frame_arrives() {
    let object = fetch(&[headers(OK), data(b"hello"), data(b""), data(b"world")]);
    assert_eq!((object.bytes, object.error), (10, None));
}

#[test]
fn interim_responses_are_passed_over() {
    let interim = headers(&[(":status", "103"), ("link", "</style.css>")]);
    let object = fetch(&[interim, headers(OK), data(b"hello")]);
    assert_eq!(object.error, None);
    assert_eq!((object.status, object.bytes), (Some(200), 5));
}

#[test]
fn content_of_another_length_than_announced_is_an_error() {
    let announced = headers(&[(":status", "200"), ("content-length", "10")]);
    let object = fetch(&[announced.clone(), data(b"hello")]);
    assert_failed(&object, "less content than the content length");
    let object = fetch(&[announced, data(b"hello"), data(b"world!")]);
    assert_failed(&object, "more content than the content length");
}

#[test]
fn malformed_responses_are_errors() {
    let object = fetch(&[headers(&[("content-type", "text/plain")])]);
    assert_failed(&object, "a response without :status");
    let object = fetch(&[headers(&[(":status", "200"), ("Upper", "case")])]);
    assert_failed(&object, "an invalid field name");
}

#[test]
fn a_server_that_violates_http_3_is_named() {
    let object = fetch(&[data(b"hello")]);
    assert_failed(&object, "DATA before a header section");
    let object = fetch(&[headers(OK), frame(FrameType::PUSH_PROMISE, &[0])]);
    assert_failed(&object, "a push, and none was allowed");
}

/// RFC 9297, section 2.1.1.
#[test]
fn a_server_with_http_datagrams_without_those_of_quic_is_named() {
    let object = fetch_from(announce_datagrams);
    assert_failed(
        &object,
        "SETTINGS_H3_DATAGRAM without the transport parameter",
    );
}

#[test]
fn the_code_of_a_close_is_named() {
    let object = fetch_from(|host| close_with(host, 0x107, b"too\x1bmuch"));
    assert_failed(&object, "closed it with H3_EXCESSIVE_LOAD (too\\u{1b}much)");
}

#[test]
fn unknown_frames_are_ignored() {
    let unknown = frame(FrameType(0x21), &[7; 1000]);
    let object = fetch(&[unknown.clone(), headers(OK), unknown, data(b"hello")]);
    assert_eq!((object.bytes, object.error), (5, None));
}

/// More than a client reads without progress, of `frames`.
fn endless(frames: &[u8]) -> Vec<u8> {
    frames.repeat(3 * limits::MAX_IDLE_BYTES as usize / frames.len())
}

#[test]
fn frames_without_end_that_are_no_content_are_an_error() {
    let unknown = frame(FrameType(0x21), &[7; 1000]);
    let huge = [&[0x21, 0xbf, 0xff, 0xff, 0xff][..], &[7; 1000]].concat();
    for frames in [unknown, huge, data(b"")] {
        let flood = endless(&frames);
        let object = fetch(&[headers(OK), flood.clone(), data(b"hello")]);
        assert_failed(&object, "without a response or its content");
        let object = fetch(&[headers(OK), data(b"hello"), flood]);
        assert_failed(&object, "without a response or its content");
    }
    let flood = endless(&frame(FrameType(0x21), &[7; 1000]));
    let object = fetch(&[flood, headers(OK)]);
    assert_failed(&object, "without a response or its content");
}

#[test]
fn content_may_be_longer_than_what_is_read_without_it() {
    let frames = [frame(FrameType(0x21), &[7; 1000]), data(b"hello")].concat();
    let object = fetch(&[headers(OK), endless(&frames)]);
    assert_eq!(object.error, None);
    assert!(object.bytes > 10_000);
}

#[test]
fn control_frames_without_end_are_an_error() {
    for flood in [
        endless(&frame(FrameType::GOAWAY, &[4])),
        endless(&frame(FrameType(0x21), &[])),
    ] {
        let object = fetch_from(|host| flood_with(host, flood.clone()));
        assert_failed(&object, "without a response or its content");
    }
}

#[test]
fn streams_without_end_are_an_error() {
    let object = fetch_from(|host| open_streams(host, limits::MAX_IDLE_BYTES));
    assert_failed(&object, "without a response or its content");
}

/// RFC 9114, section 5.2: a rejected request can be repeated elsewhere.
#[test]
fn a_request_that_goaway_rejects_is_repeated_on_another_connection() {
    let answer = [headers(OK), data(b"hello")].concat();
    run(async |network| {
        let address = answer_once_each(&network.servers[0], answer);
        let client = client(&network.client, [("example.test", address)]);
        let targets = ["/a", "/b"].map(|path| Target {
            url: format!("https://example.test{path}"),
            destination: Destination::Nowhere,
            size: None,
            message: Message::default(),
        });
        let progress = Arc::default();
        let fetched = client.fetch(targets.into(), FetchOptions::default(), &progress);
        let report = fetched.await;
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(report.connections.len(), 2);
    });
}
