//! Receive windows that grow until they no longer limit the sender.

use super::*;

/// 100 Mbit/s and 200 ms: a bandwidth-delay product of two and a half megabytes.
fn long_fat(pair: &mut Pair) {
    pair.network.set(Conditions {
        rate: Some(12_500_000),
        queue: 2_500_000,
        delay: Duration::from_millis(100),
        ..Conditions::default()
    });
}

/// The rate of the last 12 MB of 30, in bytes per second.
fn late_rate(mut pair: Pair) -> f64 {
    long_fat(&mut pair);
    let ends = pair.establish();
    let mut transfer = Transfer::down(&mut pair, ends, &pattern(30_000_000));
    let early = pair.drive_until(TIMEOUT, |pair| {
        transfer.advance(pair);
        transfer.received() > 18_000_000
    });
    assert!(early, "stalled after {} bytes", transfer.received());
    let rest = 30_000_000 - transfer.received();
    rest as f64 / transfer.complete(&mut pair).as_secs_f64()
}

#[test]
fn receive_windows_grow_until_they_fill_a_long_fat_path() {
    let rate = late_rate(Pair::new());
    assert!(rate > 0.85 * 12_500_000.0, "{rate:.0} bytes/s");
}

#[test]
fn a_receive_window_of_constant_size_limits_the_rate() {
    let fixed = TransportConfig {
        max_stream_receive_window: 512 << 10,
        ..TransportConfig::default()
    };
    let rate = late_rate(both(fixed));
    // One window per round trip.
    let most = f64::from(512 << 10) / 0.2;
    assert!(rate < 1.05 * most && rate > 0.4 * most, "{rate:.0} bytes/s");
}

#[test]
fn an_application_that_does_not_read_receives_no_more_than_its_window() {
    let mut pair = both(TransportConfig {
        stream_receive_window: Some(2 << 20),
        ..TransportConfig::default()
    });
    let ends = pair.establish();
    let id = pair.server(ends.server).open(Dir::Uni).unwrap();
    let mut rest = pattern(5_000_000);
    for _ in 0..100 {
        let _ = pair.server(ends.server).write_chunk(id, &mut rest);
        pair.drive(Duration::from_millis(50));
    }
    let received = pair.client(ends.client).streams.stats().bytes_received;
    assert_eq!(received, 2 << 20);
}
