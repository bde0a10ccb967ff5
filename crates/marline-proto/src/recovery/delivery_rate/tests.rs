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
