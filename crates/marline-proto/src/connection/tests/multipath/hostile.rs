//! A peer with valid keys that violates the rules of multipath.

use super::super::craft::varints;
use super::*;

impl Several {
    /// Delivers a 1-RTT packet of `by` with `frames` to the other end immediately.
    fn inject(&mut self, by: Side, frames: &[u8]) {
        let now = self.pair.now;
        let mut datagram = self.end(by).craft(now, SpaceId::Data, frames);
        let victim = self.end(by.peer());
        let tuple = FourTuple {
            local: victim.local_address(),
            remote: victim.remote_address(),
        };
        victim.handle_datagram(now, tuple, None, &mut datagram);
    }

    fn error(&mut self, side: Side) -> Option<ErrorCode> {
        match self.end(side).error() {
            Some(ConnectionError::Transport(error)) => Some(error.code),
            _ => None,
        }
    }
}

/// Asserts that `frames` of either end make the other close with `code`.
fn closes(frames: &[u8], code: ErrorCode) {
    for by in [Side::Client, Side::Server] {
        let mut several = Several::two(Conditions::default());
        several.inject(by, frames);
        assert_eq!(several.error(by.peer()), Some(code), "{frames:?}");
    }
}

/// Asserts that the connection stays open after `frames` of either end.
fn stays_open(frames: &[u8]) {
    for by in [Side::Client, Side::Server] {
        let mut several = Several::two(Conditions::default());
        several.inject(by, frames);
        let error = several.end(by.peer()).error().cloned();
        assert_eq!(error, None, "{frames:?}");
    }
}

fn new_id(path: u64, sequence: u64, id: u8) -> Vec<u8> {
    let mut frame = varints(&[0x3e78, path, sequence, 0]);
    frame.push(4);
    frame.extend([id; 4 + 16]);
    frame
}

#[test]
fn frames_about_a_path_beyond_the_limit_are_a_protocol_violation() {
    for frame in [
        varints(&[0x3e, 4, 0, 0, 0, 0]),
        varints(&[0x3e75, 4, 0]),
        varints(&[0x3e76, 4, 1]),
        varints(&[0x3e77, 4, 1]),
        new_id(4, 0, 9),
        varints(&[0x3e79, 4, 0]),
        varints(&[0x3e7b, 4]),
        varints(&[0x3e7c, 4, 0]),
    ] {
        closes(&frame, ErrorCode::PROTOCOL_VIOLATION);
    }
}

#[test]
fn multipath_frames_that_contradict_earlier_ones_close_the_connection() {
    // MAX_PATH_ID below the earlier value.
    closes(&varints(&[0x3e7a, 2]), ErrorCode::PROTOCOL_VIOLATION);
    stays_open(&varints(&[0x3e7a, 3]));
    // PATH_CIDS_BLOCKED with a sequence number above the next.
    closes(&varints(&[0x3e7c, 2, 3]), ErrorCode::PROTOCOL_VIOLATION);
    stays_open(&varints(&[0x3e7c, 2, 2]));
    // Retires an ID that was not issued.
    closes(&varints(&[0x3e79, 2, 2]), ErrorCode::PROTOCOL_VIOLATION);
    stays_open(&varints(&[0x3e79, 2, 1]));
    // Acknowledges a packet that was not sent.
    closes(
        &varints(&[0x3e, 1, 1000, 0, 0, 0]),
        ErrorCode::PROTOCOL_VIOLATION,
    );
    // The same ID for two paths.
    closes(
        &[new_id(2, 2, 9), new_id(3, 2, 9)].concat(),
        ErrorCode::PROTOCOL_VIOLATION,
    );
    // More IDs than allowed.
    let many: Vec<u8> = (2..20).flat_map(|n| new_id(2, n, n as u8)).collect();
    closes(&many, ErrorCode::CONNECTION_ID_LIMIT_ERROR);
}

#[test]
fn abandoning_the_only_path_closes_with_no_viable_path() {
    for by in [Side::Client, Side::Server] {
        let mut several = Several::new();
        several.inject(by, &varints(&[0x3e75, 0, 0]));
        assert_eq!(several.error(by.peer()), Some(ErrorCode::NO_VIABLE_PATH));
    }
}

#[test]
fn a_flood_of_abandoned_paths_takes_bounded_state() {
    for by in [Side::Client, Side::Server] {
        let mut several = Several::new();
        // No packet reaches the peer.
        several.pair.network.filter = Some(Box::new(|_, _| true));
        let mut next = 1;
        for _ in 0..200 {
            let victim = several.end(by.peer());
            let limit = victim.paths.last_allowed().expect("negotiated");
            while next <= limit.0 {
                several.inject(by, &varints(&[0x3e75, next.into(), 0]));
                several.inject(by, &varints(&[0x3e75, next.into(), 0]));
                next += 1;
            }
            several.pair.drive(Duration::from_millis(20));
            let victim = several.end(by.peer());
            assert!(victim.error().is_none());
            assert!(victim.paths.unopened() <= 3);
        }
        assert_eq!(
            next, 4,
            "no other paths before PATH_ABANDON is acknowledged"
        );
        assert!(several.end(by.peer()).paths.notices() <= 3 * 3 + 2);
        let node = match by.peer() {
            Side::Client => &several.pair.client,
            Side::Server => &several.pair.server,
        };
        assert!(node.endpoint.routes_of_ids() <= 4 + 3 * 2);
    }
}

#[test]
fn an_abandoned_path_is_replaced_once_the_peer_has_acknowledged_path_abandon() {
    for by in [Side::Client, Side::Server] {
        let mut several = Several::new();
        several.pair.network.filter = Some(Box::new(|_, _| true));
        several.inject(by, &varints(&[0x3e75, 2, 0]));
        several.pair.drive(Duration::from_secs(5));
        assert_eq!(
            several.end(by.peer()).paths.last_allowed(),
            Some(PathId(3)),
            "forgotten, but not acknowledged"
        );
        several.pair.network.filter = None;
        several.pair.drive(Duration::from_secs(20));
        assert_eq!(several.end(by.peer()).paths.last_allowed(), Some(PathId(4)));
    }
}

#[test]
fn multipath_frames_that_were_not_negotiated_are_of_an_unknown_type() {
    let large = 1 << 32;
    for frame in [
        varints(&[0x3e, 0, 0, 0, 0, 0]),
        varints(&[0x3e75, 1, 0]),
        varints(&[0x3e76, 1, 1]),
        varints(&[0x3e77, 1, 1]),
        new_id(1, 0, 9),
        varints(&[0x3e79, 1, 0]),
        varints(&[0x3e7a, 7]),
        varints(&[0x3e7a, large]),
        varints(&[0x3e7b, 1]),
        varints(&[0x3e7c, 1, 0]),
        varints(&[0x3e75, large, 0]),
        new_id(large, 0, 9),
    ] {
        let mut pair = Pair::new();
        let ends = pair.establish();
        let now = pair.now;
        let mut datagram = pair.client(ends.client).craft(now, SpaceId::Data, &frame);
        let victim = pair.server(ends.server);
        let tuple = FourTuple {
            local: victim.local_address(),
            remote: victim.remote_address(),
        };
        victim.handle_datagram(now, tuple, None, &mut datagram);
        let error = victim.error().cloned();
        assert!(
            matches!(&error, Some(ConnectionError::Transport(error))
                if error.code == ErrorCode::FRAME_ENCODING_ERROR),
            "{frame:x?}: {error:?}"
        );
    }
}

#[test]
fn path_ids_above_32_bits_close_with_a_protocol_violation() {
    let large = 1 << 32;
    for frame in [
        varints(&[0x3e, large, 0, 0, 0, 0]),
        varints(&[0x3e75, large, 0]),
        varints(&[0x3e76, large, 1]),
        varints(&[0x3e77, large, 1]),
        new_id(large, 0, 9),
        varints(&[0x3e79, large, 0]),
        varints(&[0x3e7a, large]),
        varints(&[0x3e7b, large]),
        varints(&[0x3e7c, large, 0]),
    ] {
        closes(&frame, ErrorCode::PROTOCOL_VIOLATION);
    }
    stays_open(&varints(&[0x3e7a, large - 1]));
}

#[test]
fn a_path_that_is_not_validated_gets_at_most_three_times_what_it_sent() {
    let mut several = Several::new();
    several
        .pair
        .network
        .set_link(address(1), Conditions::default());
    assert_eq!(several.open(1), Ok(ONE));
    // No packet reaches the client, so it does not answer.
    several
        .pair
        .network
        .link(address(1), Direction::ToClient)
        .down = true;
    let ends = several.ends;
    download(&mut several.pair, ends, &pattern(200_000));
    several.pair.drive(Duration::from_millis(800));
    let stats = several.server().stats();
    let path = stats.paths.iter().find(|path| path.id == ONE);
    let path = path.expect("the server knows the path");
    assert!(path.udp_sent.bytes <= 3 * path.udp_received.bytes);
    assert!(path.udp_sent.bytes > 0);
}

#[test]
fn a_flood_of_path_challenges_gets_a_limited_number_of_bytes() {
    let mut several = Several::two(Conditions::default());
    let before = several.sent(Side::Server, PathId::INITIAL);
    let mut frames = Vec::new();
    for n in 0..100u8 {
        frames.push(0x1a);
        frames.extend([n; 8]);
    }
    several.inject(Side::Client, &frames);
    several.pair.drive(Duration::from_millis(100));
    let sent = several.sent(Side::Server, PathId::INITIAL) - before;
    assert!(sent < 4000, "{sent} bytes");
}
