//! Path MTU discovery.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

fn mtu(pair: &mut Pair, server: ConnectionHandle) -> u16 {
    pair.server(server).stats().paths[0].mtu
}

#[test]
fn mtu_discovery_finds_the_limit_without_congestion_events() {
    for limit in [1200, 1210, 1280, 1350, 1400, 1452, 1472] {
        let mut pair = Pair::new();
        pair.network.set(Conditions {
            mtu: limit,
            ..Conditions::default()
        });
        let ends = pair.establish();
        download(&mut pair, ends, &pattern(2_000_000));
        pair.drive(Duration::from_secs(5));
        let found = usize::from(mtu(&mut pair, ends.server));
        assert!(
            found <= limit && limit - found <= 16,
            "{found} found of {limit}"
        );
        let path = &pair.server(ends.server).stats().paths[0];
        assert_eq!(path.congestion_events, 0, "{limit}");
    }
}

#[test]
fn a_smaller_path_mtu_is_detected_during_a_transfer() {
    for limit in [1200, 1300, 1400] {
        let mut pair = Pair::new();
        pair.network.set(Conditions {
            rate: Some(1_250_000),
            queue: 50_000,
            ..Conditions::default()
        });
        let ends = pair.establish();
        let mut transfer = Transfer::down(&mut pair, ends, &pattern(3_000_000));
        pair.drive_until(Duration::from_secs(1), |pair| transfer.advance(pair));
        assert_eq!(mtu(&mut pair, ends.server), 1472);
        pair.network.conditions(Direction::ToClient).mtu = limit;
        let took = transfer.complete(&mut pair);
        assert!(took < Duration::from_secs(6), "{limit}: took {took:?}");
        pair.drive(Duration::from_secs(5));
        let found = usize::from(mtu(&mut pair, ends.server));
        assert!(
            found <= limit && limit - found <= 16,
            "{found} found of {limit}"
        );
    }
}

#[test]
fn datagrams_stay_at_1200_bytes_without_mtu_discovery() {
    let mut config = TransportConfig::default();
    config.mtu.discover = false;
    let mut pair = both(config);
    pair.network.filter = Some(Box::new(|_, datagram| {
        assert!(datagram.bytes.len() <= 1200);
        false
    }));
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(100_000));
}

#[test]
fn a_peer_makes_datagrams_no_larger_than_it_is_told() {
    for (limit, largest) in [(1200, 1200), (1350, 1350), (65527, 9000)] {
        let mut server = TransportConfig::default();
        server.mtu.ceiling = 9000;
        let mut pair = Pair::with(PairConfig {
            client: TransportConfig {
                max_udp_payload_size: limit,
                ..TransportConfig::default()
            },
            server,
            ..PairConfig::default()
        });
        pair.network.conditions(Direction::ToClient).mtu = 9000;
        let ends = pair.establish();
        download(&mut pair, ends, &pattern(1_000_000));
        pair.drive(Duration::from_secs(2));
        assert_eq!(mtu(&mut pair, ends.server), largest, "{limit}");
    }
}

/// A connection, and the number of PMTU probes that its server has sent.
fn counted(late_mtu_probes: bool) -> (Pair, Ends, Arc<AtomicU64>) {
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            late_mtu_probes,
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    });
    let probes = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&probes);
    pair.network.filter = Some(Box::new(move |direction, datagram| {
        let is_probe = direction == Direction::ToClient && datagram.bytes.len() > 1200;
        seen.fetch_add(u64::from(is_probe), Ordering::Relaxed);
        false
    }));
    let ends = pair.establish();
    pair.flush();
    (pair, ends, probes)
}

/// The first PMTU probe takes an eighth of the initial window.
#[test]
fn a_probe_for_larger_datagrams_waits_until_the_first_response_may_have_left() {
    for (late, probes_at_once) in [(true, 0), (false, 1)] {
        let (mut pair, _, probes) = counted(late);
        assert_eq!(probes.load(Ordering::Relaxed), probes_at_once);
        pair.drive(Duration::from_millis(20));
        let has_begun = probes.load(Ordering::Relaxed) > 0;
        assert_eq!(has_begun, !late, "a request that was lost may still come");
        pair.drive(Duration::from_millis(100));
        assert!(probes.load(Ordering::Relaxed) > 0);
    }
}

#[test]
fn a_request_lets_the_first_probe_for_larger_datagrams_leave_after_a_round_trip() {
    let (mut pair, ends, probes) = counted(true);
    let client = pair.client(ends.client);
    let id = client.open(Dir::Bi).expect("a stream");
    client.write(id, b"a request").expect("room");
    pair.drive(Duration::from_millis(5));
    assert_eq!(probes.load(Ordering::Relaxed), 0);
    pair.drive(Duration::from_millis(20));
    assert_eq!(probes.load(Ordering::Relaxed), 1);
}

/// A sender that always has data would never send the probe after them.
#[test]
fn a_probe_that_waited_is_not_forgotten_where_data_fill_the_window() {
    for rate in (1..=20).map(|step| step * 125_000) {
        let mut pair = Pair::new();
        pair.network.set(Conditions {
            rate: Some(rate),
            ..Conditions::default()
        });
        let ends = pair.establish();
        let mut transfer = Transfer::down(&mut pair, ends, &pattern(3_000_000));
        pair.drive_until(Duration::from_millis(400), |pair| transfer.advance(pair));
        assert_eq!(mtu(&mut pair, ends.server), 1472, "{rate} bytes/s");
    }
}
