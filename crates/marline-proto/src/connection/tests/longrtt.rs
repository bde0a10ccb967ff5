//! A satellite: 750 ms each way, longer than the first probe timeout.

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
    let (client, server) = pair.establish();
    // Two round trips, and the time that the packets take to leave.
    assert!(pair.now - began < Duration::from_millis(3_010));
    let took = download(&mut pair, client, server, &pattern(3_000_000));
    assert!(took < Duration::from_secs(15), "took {took:?}");
    let stats = pair.server(server).stats();
    let shortest = stats.paths[0].min_rtt.expect("there was a sample");
    assert!((1500..1510).contains(&shortest.as_millis()), "{shortest:?}");
    assert!(
        stats.packets_lost() <= 2,
        "{} were taken for lost",
        stats.packets_lost()
    );
}
