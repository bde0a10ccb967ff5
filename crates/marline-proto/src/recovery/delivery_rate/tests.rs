use std::collections::VecDeque;

use super::*;

const MTU: u64 = 1000;

fn at_ms(ms: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(ms)
}

#[test]
fn a_steady_flow_measures_its_bottleneck() {
    let mut rate = DeliveryRate::new();
    // 50 packets sent at once; from 50 ms on each ACK, one a millisecond, lets another one leave.
    let mut flight: VecDeque<_> = (0..50).map(|n| rate.on_sent(at_ms(0), n * MTU)).collect();
    let mut samples = Vec::new();
    for now in (50..250).map(at_ms) {
        let packet = flight.pop_front().unwrap();
        rate.on_packet_acked(now, &packet, MTU);
        samples.extend(rate.finish(Duration::from_millis(50)));
        flight.push_back(rate.on_sent(now, 49 * MTU));
    }
    assert_eq!(rate.delivered(), 200 * MTU);
    assert_eq!(samples[0].delivered, MTU);
    assert_eq!(samples[0].interval, Duration::from_millis(50));
    for sample in &samples[100..] {
        assert_eq!(sample.bytes_per_second(), 1000 * MTU);
        assert_eq!(sample.delivered_total - sample.prior_delivered, 50 * MTU);
    }
}

#[test]
fn sending_slower_than_acknowledging_bounds_the_rate() {
    let mut rate = DeliveryRate::new();
    let first = rate.on_sent(at_ms(0), 0);
    rate.on_packet_acked(at_ms(10), &first, MTU);
    rate.finish(Duration::ZERO);
    let mut packets: Vec<_> = (0..10)
        .map(|n| rate.on_sent(at_ms(10 + 10 * n), MTU))
        .collect();
    // All acknowledged together: compression must not count.
    for packet in packets.drain(..) {
        rate.on_packet_acked(at_ms(101), &packet, MTU);
    }
    let sample = rate.finish(Duration::ZERO).unwrap();
    assert!(sample.interval >= Duration::from_millis(90));
}

#[test]
fn samples_shorter_than_the_path_are_left_out() {
    let mut rate = DeliveryRate::new();
    let packet = rate.on_sent(at_ms(0), 0);
    rate.on_packet_acked(at_ms(10), &packet, MTU);
    assert_eq!(rate.finish(Duration::from_millis(11)), None);
    assert_eq!(rate.finish(Duration::ZERO), None, "one sample per ACK");
}

#[test]
fn a_pause_marks_what_was_and_what_comes_until_it_is_delivered() {
    let mut rate = DeliveryRate::new();
    let before = rate.on_sent(at_ms(0), 0);
    rate.on_app_limited(MTU);
    let during = rate.on_sent(at_ms(5), MTU);
    rate.on_packet_acked(at_ms(40), &before, MTU);
    assert!(!rate.finish(Duration::ZERO).unwrap().app_limited);
    rate.on_packet_acked(at_ms(45), &during, MTU);
    assert!(rate.finish(Duration::ZERO).unwrap().app_limited);
    let after = rate.on_sent(at_ms(46), 0);
    rate.on_packet_acked(at_ms(90), &after, MTU);
    assert!(!rate.finish(Duration::ZERO).unwrap().app_limited);
}

#[test]
fn the_newest_packet_that_an_ack_acknowledges_is_measured() {
    let mut rate = DeliveryRate::new();
    let first = rate.on_sent(at_ms(0), 0);
    let older = rate.on_sent(at_ms(1), MTU);
    rate.on_packet_acked(at_ms(50), &first, MTU);
    rate.finish(Duration::ZERO);
    let newer = rate.on_sent(at_ms(51), MTU);
    let newest = rate.on_sent(at_ms(60), 2 * MTU);
    for packet in [older, newest, newer] {
        rate.on_packet_acked(at_ms(110), &packet, MTU);
    }
    let sample = rate.finish(Duration::ZERO).unwrap();
    assert_eq!((sample.prior_delivered, sample.delivered), (MTU, 3 * MTU));
    // The next interval of sending begins with it.
    let next = rate.on_sent(at_ms(120), MTU);
    assert_eq!(next.first_sent_at, at_ms(60));
}

#[test]
fn samples_are_application_limited_until_more_than_what_was_in_flight_is_delivered() {
    let mut rate = DeliveryRate::new();
    let mut in_flight: VecDeque<_> = (0..3).map(|n| rate.on_sent(at_ms(n), n * MTU)).collect();
    rate.on_app_limited(3 * MTU);
    for now in 50..53 {
        let packet = in_flight.pop_front().unwrap();
        rate.on_packet_acked(at_ms(now), &packet, MTU);
        rate.finish(Duration::ZERO);
        let sent = rate.on_sent(at_ms(now), 2 * MTU);
        assert!(sent.app_limited, "the last of it may just have arrived");
        in_flight.push_back(sent);
    }
    let packet = in_flight.pop_front().unwrap();
    rate.on_packet_acked(at_ms(100), &packet, MTU);
    rate.finish(Duration::ZERO);
    assert!(!rate.on_sent(at_ms(100), 2 * MTU).app_limited);
}
