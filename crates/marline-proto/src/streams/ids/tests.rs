use super::*;

const NO: [u64; 2] = [0, 0];

fn client_with(max_local: u64) -> StreamIds {
    let mut ids = StreamIds::new(Side::Client, NO);
    ids.on_max_streams(Dir::Bi, max_local);
    for _ in 0..max_local {
        assert!(ids.open(Dir::Bi).is_some());
    }
    ids
}

/// RFC 9000, section 19.14.
#[test]
fn streams_blocked_is_due_once_for_each_limit_that_blocks() {
    let mut ids = client_with(3);
    assert_eq!(ids.blocked(Dir::Bi), None, "nothing waits");
    let mut ids = client_with(3);
    assert_eq!(ids.open(Dir::Bi), None);
    assert_eq!(ids.blocked(Dir::Uni), None);
    assert_eq!(ids.blocked(Dir::Bi), Some(3));
    assert_eq!(ids.blocked(Dir::Bi), None);
    assert!(ids.on_max_streams(Dir::Bi, 4));
    assert!(ids.open(Dir::Bi).is_some());
    assert_eq!(ids.open(Dir::Bi), None);
    assert_eq!(ids.blocked(Dir::Bi), Some(4));
}

#[test]
fn application_that_does_not_wait_is_not_blocked() {
    let mut ids = client_with(3);
    assert!(!ids.is_blocked_at(Dir::Bi, 3));
    ids.open(Dir::Bi);
    assert!(ids.is_blocked_at(Dir::Bi, 3));
    assert!(!ids.is_blocked_at(Dir::Bi, 2));
    ids.on_max_streams(Dir::Bi, 4);
    assert!(!ids.is_blocked_at(Dir::Bi, 3));
    assert!(!ids.is_blocked_at(Dir::Bi, 4));
}

#[test]
fn larger_limit_is_news_only_for_an_application_that_waits() {
    let mut ids = client_with(3);
    assert!(!ids.on_max_streams(Dir::Bi, 4), "nothing waits");
    assert!(ids.open(Dir::Bi).is_some());
    assert_eq!(ids.open(Dir::Bi), None);
    assert!(!ids.on_max_streams(Dir::Bi, 3), "it is smaller");
    assert!(!ids.on_max_streams(Dir::Bi, 4), "it is the same");
    assert!(ids.on_max_streams(Dir::Bi, 6));
    assert!(!ids.on_max_streams(Dir::Bi, 7), "it was reported");
}

/// A new limit after rejected 0-RTT may be below the number of open streams.
#[test]
fn limit_below_the_open_streams_lets_none_be_opened() {
    let mut ids = client_with(3);
    assert_eq!(ids.open(Dir::Bi), None);
    ids.forget_limits();
    assert!(!ids.on_max_streams(Dir::Bi, 2));
    assert!(!ids.on_max_streams(Dir::Bi, 3));
    assert!(ids.on_max_streams(Dir::Bi, 4));
}

/// RFC 9000, section 4.6: limits are cumulative. Not every closed stream needs a frame.
#[test]
fn new_limit_is_advertised_after_an_eighth_of_the_streams_is_closed() {
    let mut ids = StreamIds::new(Side::Server, [16, 16]);
    let id = |index| StreamId::new(Side::Client, Dir::Bi, index);
    assert_eq!(ids.on_frame_for(id(15)), Ok(0..16));
    assert_eq!(ids.on_frame_for(id(7)), Ok(16..16));
    assert!(!ids.on_closed(id(0)));
    assert!(ids.on_closed(id(1)));
    assert_eq!(ids.advertised(Dir::Bi), 16);
    assert_eq!(ids.advertise(Dir::Bi), 18);
    assert_eq!(ids.advertised(Dir::Bi), 18);
    assert_eq!(ids.advertised(Dir::Uni), 16);
    assert!(!ids.on_closed(id(2)));
    assert!(!ids.on_closed(StreamId::new(Side::Server, Dir::Bi, 0)));
    assert_eq!(ids.remote_limit(Dir::Bi), 19);
}
