//! A round-trip time of 1.5 seconds, longer than the first probe timeout.

use super::*;

#[test]
fn a_round_trip_longer_than_the_first_probe_timeout_slows_nothing_down() {
    let mut pair = Pair::new();
    pair.network.set(Conditions {
        delay: Duration::from_millis(750),
        rate: Some(1_250_000),
        ..Conditions::default()
    });
    let began = pair.now;
    let ends = pair.establish();
    // Two round trips, and the time to send the packets at the link's rate.
    assert!(pair.now - began < Duration::from_millis(3_010));
    let took = download(&mut pair, ends, &pattern(3_000_000));
    assert!(took < Duration::from_secs(15), "took {took:?}");
    let stats = pair.server(ends.server).stats();
    let shortest = stats.paths[0].min_rtt.expect("there was a sample");
    assert!((1500..1510).contains(&shortest.as_millis()), "{shortest:?}");
    assert!(
        stats.packets_lost() <= 2,
        "{} packets declared lost",
        stats.packets_lost()
    );
}
