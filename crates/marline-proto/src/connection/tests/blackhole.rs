//! A link that loses all packets for two seconds after every five.

use super::*;

#[test]
fn a_transfer_continues_within_two_seconds_after_each_outage() {
    let mut pair = Pair::new();
    pair.network.set(Conditions {
        rate: Some(1_250_000),
        queue: 50_000,
        delay: Duration::from_millis(15),
        ..Conditions::default()
    });
    let ends = pair.establish();
    let began = pair.now;
    let mut transfer = Transfer::down(&mut pair, ends, &pattern(10 << 20));
    let mut outages = 0;
    let done = loop {
        if pair.drive_until(Duration::from_secs(5), |pair| transfer.advance(pair)) {
            break true;
        }
        if pair.now - began > TIMEOUT {
            break false;
        }
        outages += 1;
        for direction in [Direction::ToServer, Direction::ToClient] {
            pair.network.conditions(direction).down = true;
        }
        pair.drive(Duration::from_secs(2));
        for direction in [Direction::ToServer, Direction::ToClient] {
            pair.network.conditions(direction).down = false;
        }
    };
    assert!(done, "stalled after {} bytes", transfer.received());
    let took = pair.now - began;
    // 8.4 s at full rate, 2 s for each outage, up to 2 s more until a probe gets through.
    let bound = Duration::from_millis(9_500) + Duration::from_secs(4) * outages;
    assert!(took < bound, "took {took:?} with {outages} outages");
}
