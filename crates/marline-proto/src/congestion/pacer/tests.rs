use super::*;
use proptest::prelude::*;

const MTU: u64 = 1200;

fn at_ms(ms: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(ms)
}

/// Sends datagrams as early as the pacer allows; returns when the last left.
fn send_all(pacer: &mut Pacer, mut now: Instant, rate: u64, packets: u64) -> Instant {
    for _ in 0..packets {
        if let Some(at) = pacer.next_send(now, rate, MTU) {
            assert!(at > now);
            now = at;
            assert_eq!(pacer.next_send(now, rate, MTU), None, "the wait is enough");
        }
        pacer.on_sent(now, rate, MTU);
    }
    now
}

#[test]
fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
    let mut pacer = Pacer::new(MTU);
    let rate = 1_200_000; // one datagram a millisecond
    let start = at_ms(100);
    assert_eq!(send_all(&mut pacer, start, rate, 10), start);
    assert_eq!(pacer.next_send(start, rate, MTU), Some(at_ms(101)));
    assert_eq!(send_all(&mut pacer, start, rate, 50), at_ms(150));
}

#[test]
fn before_a_short_queue_bursts_are_of_two_datagrams() {
    let mut pacer = Pacer::new(MTU).with_short_bursts();
    let rate = 600_000; // one datagram in two milliseconds
    let start = at_ms(100);
    assert_eq!(send_all(&mut pacer, start, rate, 2), start);
    assert_eq!(pacer.next_send(start, rate, MTU), Some(at_ms(102)));
    assert_eq!(pacer.next_send_spread(start, rate, MTU), Some(at_ms(102)));
}

#[test]
fn fast_paths_get_two_milliseconds_of_burst() {
    let mut pacer = Pacer::new(MTU);
    let rate = 120_000_000; // 100 datagrams a millisecond
    let start = at_ms(1);
    assert_eq!(send_all(&mut pacer, start, rate, 200), start);
    assert!(pacer.next_send(start, rate, MTU).is_some());
}

#[test]
fn a_whole_burst_can_be_awaited_with_one_timer() {
    let mut pacer = Pacer::new(MTU);
    let rate = 1_200_000;
    send_all(&mut pacer, at_ms(0), rate, 10);
    assert_eq!(pacer.next_send(at_ms(0), rate, 4 * MTU), Some(at_ms(4)));
    assert_eq!(pacer.next_send(at_ms(0), rate, 1000 * MTU), Some(at_ms(10)));
    assert_eq!(pacer.next_send(at_ms(4), rate, 4 * MTU), None);
}

#[test]
fn idle_time_fills_the_bucket_only_once() {
    let mut pacer = Pacer::new(MTU);
    let rate = 1_200_000;
    send_all(&mut pacer, at_ms(0), rate, 100);
    let later = at_ms(60_000);
    assert_eq!(send_all(&mut pacer, later, rate, 10), later);
    assert!(pacer.next_send(later, rate, MTU).is_some());
}

#[test]
fn a_faster_rate_holds_at_once() {
    let mut pacer = Pacer::new(MTU);
    send_all(&mut pacer, at_ms(1), 12_000, 10);
    assert_eq!(pacer.next_send(at_ms(1), 12_000, MTU), Some(at_ms(101)));
    assert_eq!(pacer.next_send(at_ms(1), 1_200_000, MTU), Some(at_ms(2)));
}

proptest! {
    /// Over any interval, no more leaves than the rate allows plus one burst, and hardly less.
    #[test]
    fn keeps_the_rate(rate in 1_000_u64..2_000_000_000, packets in 1_u64..300) {
        let mut pacer = Pacer::new(MTU);
        let elapsed = send_all(&mut pacer, Instant::EPOCH, rate, packets).as_nanos();
        let burst = (10 * MTU).max(rate / 500) + MTU;
        let carried = (u128::from(rate) * u128::from(elapsed) / 1_000_000_000) as u64;
        prop_assert!(packets * MTU <= carried + burst);
        prop_assert!(packets * MTU + burst >= carried);
    }

    #[test]
    fn arbitrary_numbers_cause_no_panic(calls in prop::collection::vec(any::<(u64, u64, u64)>(), 1..50)) {
        let mut pacer = Pacer::new(MTU);
        for (now, rate, bytes) in calls {
            let now = Instant::from_nanos(now);
            if let Some(at) = pacer.next_send(now, rate, bytes) {
                prop_assert!(at > now);
            }
            pacer.on_sent(now, rate, bytes);
        }
    }
}

#[test]
fn unproven_windows_are_sent_in_bursts_of_ten_at_any_rate() {
    const RATE: u64 = 1_000_000_000;
    let now = Instant::from_nanos(1_000_000_000);
    let burst = |next: fn(&mut Pacer, Instant, u64, u64) -> Option<Instant>| {
        let mut pacer = Pacer::new(1200);
        let mut packets = 0;
        while next(&mut pacer, now, RATE, 1200).is_none() {
            pacer.on_sent(now, RATE, 1200);
            packets += 1;
        }
        packets
    };
    assert_eq!(burst(Pacer::next_send_spread), 10);
    assert!(burst(Pacer::next_send) > 1000);
}

/// The numbers of datagrams that leave together, and the waiting time before each batch.
fn batches(pacer: &mut Pacer, window: u64, rate: u64, packets: u64) -> Vec<(u64, Duration)> {
    let mut now = at_ms(100);
    let mut batches = vec![(0, Duration::ZERO)];
    for _ in 0..packets {
        if let Some(at) = pacer.next_quantum(now, rate, MTU, window) {
            batches.push((0, at - now));
            now = at;
            assert_eq!(pacer.next_quantum(now, rate, MTU, window), None);
        }
        pacer.on_sent(now, rate, MTU);
        batches.last_mut().expect("one at least").0 += 1;
    }
    batches
}

#[test]
fn a_quantum_leaves_together_at_the_same_rate() {
    let rate = 1_200_000; // one datagram a millisecond
    let batch = |packets, ms| (packets, Duration::from_millis(ms));
    let mut pacer = Pacer::new(MTU).with_quantum(4);
    let large = 1000 * MTU;
    assert_eq!(
        batches(&mut pacer, large, rate, 22),
        [batch(10, 0), batch(4, 4), batch(4, 4), batch(4, 4)]
    );
    let mut pacer = Pacer::new(MTU).with_quantum(32);
    assert_eq!(
        batches(&mut pacer, large, rate, 96),
        [batch(32, 0), batch(32, 32), batch(32, 32)],
        "the bucket holds a quantum"
    );
}

#[test]
fn packets_of_a_time_leave_together_at_high_rates_alone() {
    let batch = |packets, us| (packets, Duration::from_micros(us));
    let large = 10_000 * MTU;
    let gathering = || Pacer::new(MTU).with_gather(Duration::from_micros(500));
    let fast = 20 * 1_200_000; // 20 datagrams a millisecond
    assert_eq!(
        batches(&mut gathering(), large, fast, 40 + 20)[1..],
        [batch(10, 500), batch(10, 500)]
    );
    let slow = 1_200_000;
    assert_eq!(
        batches(&mut gathering(), large, slow, 12)[1..],
        [batch(1, 1000), batch(1, 1000)]
    );
}

#[test]
fn a_quantum_is_a_quarter_of_the_window_at_most() {
    let rate = 1_200_000;
    let mut pacer = Pacer::new(MTU).with_quantum(8);
    let sizes = batches(&mut pacer, 12 * MTU, rate, 19).split_off(1);
    assert_eq!(sizes, [(3, Duration::from_millis(3)); 3]);
}

#[test]
fn a_quantum_that_is_awaited_is_not_taken_packet_by_packet() {
    let rate = 1_200_000;
    let mut pacer = Pacer::new(MTU).with_quantum(4);
    send_all(&mut pacer, at_ms(0), rate, 10);
    for ms in 0..4 {
        let next = pacer.next_quantum(at_ms(ms), rate, MTU, 1000 * MTU);
        assert_eq!(next, Some(at_ms(4)), "at {ms} ms");
    }
    assert_eq!(pacer.next_quantum(at_ms(4), rate, MTU, 1000 * MTU), None);
}

#[test]
fn a_quantum_of_one_is_the_plain_pacer() {
    let rate = 1_200_000;
    let mut pacer = Pacer::new(MTU);
    let mut plain = Pacer::new(MTU);
    for ms in (0..50).step_by(3) {
        let next = pacer.next_quantum(at_ms(ms), rate, MTU, 2 * MTU);
        assert_eq!(next, plain.next_send(at_ms(ms), rate, MTU));
        for pacer in [&mut pacer, &mut plain] {
            pacer.on_sent(at_ms(ms), rate, 2 * MTU);
        }
    }
}

#[test]
fn the_wait_counts_all_that_is_sent_before() {
    let mut pacer = Pacer::new(1000);
    let now = Instant::EPOCH + Duration::from_secs(1);
    let rate = 1_000_000;
    assert_eq!(
        pacer.wait(now, rate, 10_000),
        Duration::ZERO,
        "the bucket is full"
    );
    assert_eq!(pacer.wait(now, rate, 25_000), Duration::from_millis(15));
    pacer.on_sent(now, rate, 10_000);
    assert_eq!(pacer.wait(now, rate, 1000), Duration::from_millis(1));
    assert_eq!(
        pacer.next_send(now, rate, 1000),
        Some(now + Duration::from_millis(1))
    );
}
