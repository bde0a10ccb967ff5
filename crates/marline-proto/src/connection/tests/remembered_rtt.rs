//! The round-trip time of a client's last connection to a server (RFC 9002, section 6.2.2). Round trips take 20 ms.

use super::*;

const ROUND_TRIP: Duration = Duration::from_millis(20);

#[test]
fn the_next_connection_to_a_server_assumes_the_round_trip_time_of_the_last() {
    let wait_of = |remember_rtt| {
        let mut pair = Pair::with(PairConfig {
            client: TransportConfig {
                remember_rtt,
                first_flight_copy: None,
                ..TransportConfig::default()
            },
            ..PairConfig::default()
        });
        pair.establish();
        pair.network.conditions(Direction::ToServer).down = true;
        let client = pair.connect();
        pair.flush();
        pair.client(client).poll_timeout().expect("a probe timeout") - pair.now
    };
    assert_eq!(wait_of(true), ROUND_TRIP * 3);
    assert_eq!(wait_of(false), Duration::from_millis(300));
}

/// A wrong round-trip time costs a retransmitted flight and a probe, but no window.
#[test]
fn a_round_trip_time_that_has_become_longer_costs_a_few_packets() {
    let bytes_of = |remember_rtt| {
        let mut pair = both(TransportConfig {
            remember_rtt,
            ..TransportConfig::default()
        });
        pair.establish();
        pair.network.set(Conditions {
            delay: Duration::from_millis(100),
            ..Conditions::default()
        });
        let before = pair.network.counts(Direction::ToServer).bytes;
        let client = pair.connect();
        let done = pair.drive_until(TIMEOUT, |pair| pair.client(client).is_confirmed());
        assert!(done, "no handshake");
        assert_eq!(pair.client(client).stats().paths[0].congestion_events, 0);
        pair.network.counts(Direction::ToServer).bytes - before
    };
    let more = bytes_of(true).saturating_sub(bytes_of(false));
    assert!(more <= 3 * 1200, "{more} bytes");
}
