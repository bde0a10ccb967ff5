//! Persistent congestion (section 7.6).

use super::*;

/// Three probe timeouts, in milliseconds, of a path with two round-trip samples of 50 ms and a peer that delays
/// acknowledgments for 25 ms: the variation is 18.75 ms then.
const DURATION: u64 = 3 * (50 + 75 + 25);

/// Calls `send` with an index every 25 ms from 100 ms on, for twice `DURATION`; returns the time afterwards.
fn send_for_long(bench: &mut Bench, mut send: impl FnMut(&mut Bench, u64, Instant)) -> u64 {
    const PACKETS: u64 = 2 * DURATION / 25;
    for nth in 0..PACKETS {
        send(bench, nth, at(100 + 25 * nth));
    }
    100 + 25 * PACKETS
}

/// Acknowledges three more packets, so that all before are lost.
fn lose_all_before(bench: &mut Bench, now: u64) {
    let first = bench.send(at(now));
    bench.send_many(at(now), 2);
    bench.ack(at(now + 50), first..=first + 2);
}

fn is_persistent(bench: &Bench) -> bool {
    bench.losses().iter().any(|sample| sample.persistent)
}

/// Section 7.6.1.
#[test]
fn losses_that_span_three_probe_timeouts_establish_it() {
    let mut bench = Bench::with_rtt(50);
    let now = send_for_long(&mut bench, |bench, _, now| {
        bench.send(now);
    });
    lose_all_before(&mut bench, now);
    assert!(is_persistent(&bench));
    assert_eq!(
        bench.window(),
        2 * 1_200,
        "the minimum window, section 7.6.2"
    );
}

/// Section 7.6.1.
#[test]
fn losses_within_three_probe_timeouts_do_not() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    bench.send(at(100 + DURATION));
    lose_all_before(&mut bench, 100 + DURATION);
    assert_eq!(bench.losses()[0].packets, 2);
    assert!(!is_persistent(&bench));
}

/// Section 7.6.2.
#[test]
fn an_acknowledged_packet_between_them_prevents_it() {
    let mut bench = Bench::with_rtt(50);
    let now = send_for_long(&mut bench, |bench, nth, now| {
        let number = bench.send(now);
        if nth == 18 {
            bench.ack(now + ms(1), number..=number);
        }
    });
    lose_all_before(&mut bench, now);
    assert!(!is_persistent(&bench));
}

/// Section 7.6.2: even if the timer was late, and losses on both sides of it are detected at the same time.
#[test]
fn an_acknowledged_packet_between_losses_of_one_moment_prevents_it() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    let between = bench.send(at(101));
    bench.ack(at(102), between..=between);
    bench.send(at(110 + 2 * DURATION));
    lose_all_before(&mut bench, 110 + 2 * DURATION);
    assert_eq!(bench.losses()[0].packets, 2);
    assert!(!is_persistent(&bench));
}

/// Loses packets sent at 100 and 400 and then, by the time threshold, one sent slightly more than `DURATION` later with
/// the first acknowledged one: two runs of loss detection. Calls `between` before the second.
fn lose_in_two_runs(between: impl FnOnce(&mut Bench)) -> Bench {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    bench.send(at(400));
    let last = bench.send(at(101 + DURATION));
    let acked = bench.send(at(101 + DURATION));
    bench.ack(at(151 + DURATION), acked..=acked);
    assert_eq!(bench.seen.lost, [1, 2]);
    assert!(!is_persistent(&bench));
    between(&mut bench);
    bench.detect(at(161 + DURATION));
    assert_eq!(bench.seen.lost, [1, 2, last]);
    bench
}

/// Section 7.6.2: the second of two probes may be acknowledged before the first is declared lost.
#[test]
fn losses_that_are_found_one_after_another_establish_it() {
    let bench = lose_in_two_runs(|_| {});
    assert!(is_persistent(&bench));
    assert_eq!(bench.window(), 2 * 1_200);
}

/// Section 7.6.2.
#[test]
fn a_late_packet_between_losses_that_are_found_one_after_another_prevents_it() {
    let bench = lose_in_two_runs(|bench| {
        let now = at(152 + DURATION);
        bench
            .try_ack_ranges(now, SpaceId::Data, &[4..=4, 2..=2], ms(0), None)
            .expect("both were sent");
        assert_eq!(bench.seen.spurious, [2]);
    });
    assert!(!is_persistent(&bench));
}

/// Section 7.6.2: losses before an acknowledged packet do not continue after it, even if it is no longer stored.
#[test]
fn an_acknowledged_packet_between_losses_that_are_found_one_after_another_prevents_it() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    bench.send_many(at(110), 3);
    bench.ack(at(160), 2..=4);
    assert_eq!(bench.seen.lost, [1]);
    let lost = bench.send(at(110 + 2 * DURATION));
    bench.send_many(at(110 + 2 * DURATION), 3);
    bench.ack(at(160 + 2 * DURATION), lost + 1..=lost + 3);
    assert_eq!(bench.seen.lost, [1, lost]);
    assert!(!is_persistent(&bench));
}

#[test]
fn losses_after_it_was_established_begin_a_new_period() {
    let mut bench = Bench::with_rtt(50);
    bench.send(at(100));
    bench.send(at(101 + DURATION));
    bench.send(at(110 + DURATION));
    let acked = bench.send(at(110 + DURATION));
    bench.ack(at(160 + DURATION), acked..=acked);
    assert!(is_persistent(&bench));
    bench.seen.events.clear();
    bench.detect(at(170 + DURATION));
    assert_eq!(bench.seen.lost, [1, 2, 3]);
    assert_eq!(bench.losses().len(), 1);
    assert!(!is_persistent(&bench));
}

/// Section 7.6.2.
#[test]
fn packets_sent_before_the_first_rtt_sample_do_not_count() {
    let mut bench = Bench::new();
    bench.send(at(0));
    bench.send(at(10));
    bench.send(at(2_000));
    bench.send_many(at(2_001), 3);
    bench.ack(at(2_050), 3..=5);
    assert!(!bench.losses().is_empty());
    assert!(!is_persistent(&bench));
}

/// Section 7.6.2: both ends of the period are ack-eliciting.
#[test]
fn the_period_begins_and_ends_with_ack_eliciting_packets() {
    let mut bench = Bench::with_rtt(50);
    let padded = OutgoingPacket {
        ack_eliciting: false,
        ..outgoing(SpaceId::Data)
    };
    bench.send_as(at(100), padded);
    bench.send(at(200 + DURATION));
    bench.send_as(at(900 + DURATION), padded);
    lose_all_before(&mut bench, 910 + DURATION);
    assert_eq!(bench.losses()[0].packets, 3);
    assert!(!is_persistent(&bench));
}

/// Section 7.6.2: only an acknowledged packet between the two matters.
#[test]
fn persistent_congestion_spans_ack_only_packets() {
    let mut bench = Bench::with_rtt(50);
    let now = send_for_long(&mut bench, |bench, nth, now| {
        if nth % 3 == 1 {
            bench.send_ack_only(now);
        } else {
            bench.send(now);
        }
    });
    lose_all_before(&mut bench, now);
    assert!(is_persistent(&bench));
}

#[test]
fn persistent_congestion_spans_probes_for_larger_datagrams() {
    let mut bench = Bench::with_rtt(50);
    let probe = OutgoingPacket {
        mtu_probe: true,
        ..outgoing(SpaceId::Data)
    };
    let now = send_for_long(&mut bench, |bench, nth, now| {
        if nth == 18 {
            bench.send_as(now, probe);
        } else {
            bench.send(now);
        }
    });
    lose_all_before(&mut bench, now);
    assert!(is_persistent(&bench));
}

/// A skipped number was never sent, and so never acknowledged.
#[test]
fn persistent_congestion_spans_skipped_packet_numbers() {
    let mut bench = Bench::with_rtt(50);
    let now = send_for_long(&mut bench, |bench, nth, now| {
        if nth == 18 {
            bench.spaces[SpaceId::Data as usize].skip(now);
        }
        bench.send(now);
    });
    lose_all_before(&mut bench, now);
    assert!(is_persistent(&bench));
}

/// Section 5.2: the minimum round-trip time is reset afterwards.
#[test]
fn it_resets_the_minimum_rtt() {
    let mut bench = Bench::with_rtt(50);
    let now = send_for_long(&mut bench, |bench, _, now| {
        bench.send(now);
    });
    let first = bench.send(at(now));
    bench.send_many(at(now), 2);
    bench.ack(at(now + 120), first..=first + 2);
    assert!(is_persistent(&bench));
    assert_eq!(bench.recovery.rtt().min(), ms(120));
}
