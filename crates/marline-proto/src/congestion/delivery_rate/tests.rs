use std::collections::VecDeque;

use super::*;

const MTU: u64 = 1000;

fn at_ms(ms: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(ms)
}

/// A packet in flight.
struct Packet {
    sent_at: Instant,
    rate: RateSnapshot,
}

fn send(rate: &mut DeliveryRate, now: Instant, bytes_in_flight: u64) -> Packet {
    Packet {
        sent_at: now,
        rate: rate.on_sent(now, bytes_in_flight, MTU),
    }
}

fn acknowledge(rate: &mut DeliveryRate, now: Instant, packet: &Packet) {
    rate.on_packet_acked(now, &packet.rate, packet.sent_at, MTU);
}

fn lose(rate: &mut DeliveryRate, number: u64, packet: &Packet) -> PacketLoss {
    rate.on_packet_lost(number, &packet.rate, packet.sent_at, MTU)
}

#[test]
fn a_steady_flow_measures_its_bottleneck() {
    let mut rate = DeliveryRate::new();
    // 50 packets sent in a burst; from 50 ms on each ACK, one per millisecond, triggers another one.
    let mut flight: VecDeque<_> = (0..50)
        .map(|n| send(&mut rate, at_ms(0), n * MTU))
        .collect();
    let mut samples = Vec::new();
    for now in (50..250).map(at_ms) {
        let packet = flight.pop_front().unwrap();
        acknowledge(&mut rate, now, &packet);
        samples.extend(rate.finish(Duration::from_millis(50)));
        flight.push_back(send(&mut rate, now, 49 * MTU));
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
    let first = send(&mut rate, at_ms(0), 0);
    acknowledge(&mut rate, at_ms(10), &first);
    rate.finish(Duration::ZERO);
    let mut packets: Vec<_> = (0..10)
        .map(|n| send(&mut rate, at_ms(10 + 10 * n), MTU))
        .collect();
    // All acknowledged together: compression must not count.
    for packet in packets.drain(..) {
        acknowledge(&mut rate, at_ms(101), &packet);
    }
    let sample = rate.finish(Duration::ZERO).unwrap();
    assert!(sample.interval >= Duration::from_millis(90));
}

#[test]
fn samples_shorter_than_the_path_are_left_out() {
    let mut rate = DeliveryRate::new();
    let packet = send(&mut rate, at_ms(0), 0);
    acknowledge(&mut rate, at_ms(10), &packet);
    assert_eq!(rate.finish(Duration::from_millis(11)), None);
    assert_eq!(rate.finish(Duration::ZERO), None, "one sample per ACK");
}

#[test]
fn a_pause_marks_what_was_and_what_comes_until_it_is_delivered() {
    let mut rate = DeliveryRate::new();
    let before = send(&mut rate, at_ms(0), 0);
    rate.on_app_limited(MTU);
    let during = send(&mut rate, at_ms(5), MTU);
    acknowledge(&mut rate, at_ms(40), &before);
    assert!(!rate.finish(Duration::ZERO).unwrap().app_limited);
    acknowledge(&mut rate, at_ms(45), &during);
    assert!(rate.finish(Duration::ZERO).unwrap().app_limited);
    let after = send(&mut rate, at_ms(46), 0);
    acknowledge(&mut rate, at_ms(90), &after);
    assert!(!rate.finish(Duration::ZERO).unwrap().app_limited);
}

#[test]
fn the_newest_packet_that_an_ack_acknowledges_is_measured() {
    let mut rate = DeliveryRate::new();
    let first = send(&mut rate, at_ms(0), 0);
    let older = send(&mut rate, at_ms(1), MTU);
    acknowledge(&mut rate, at_ms(50), &first);
    rate.finish(Duration::ZERO);
    let newer = send(&mut rate, at_ms(51), MTU);
    let newest = send(&mut rate, at_ms(60), 2 * MTU);
    for packet in [older, newest, newer] {
        acknowledge(&mut rate, at_ms(110), &packet);
    }
    let sample = rate.finish(Duration::ZERO).unwrap();
    assert_eq!((sample.prior_delivered, sample.delivered), (MTU, 3 * MTU));
    // The next sending interval starts with it.
    let next = send(&mut rate, at_ms(120), MTU);
    assert_eq!(next.rate.first_sent_at, at_ms(60));
}

#[test]
fn samples_are_application_limited_until_more_than_what_was_in_flight_is_delivered() {
    let mut rate = DeliveryRate::new();
    let mut in_flight: VecDeque<_> = (0..3).map(|n| send(&mut rate, at_ms(n), n * MTU)).collect();
    rate.on_app_limited(3 * MTU);
    for now in 50..53 {
        let packet = in_flight.pop_front().unwrap();
        acknowledge(&mut rate, at_ms(now), &packet);
        rate.finish(Duration::ZERO);
        let sent = send(&mut rate, at_ms(now), 2 * MTU);
        assert!(
            sent.rate.app_limited,
            "the last of it may just have arrived"
        );
        in_flight.push_back(sent);
    }
    let packet = in_flight.pop_front().unwrap();
    acknowledge(&mut rate, at_ms(100), &packet);
    rate.finish(Duration::ZERO);
    assert!(!send(&mut rate, at_ms(100), 2 * MTU).rate.app_limited);
}

#[test]
fn a_sample_counts_what_was_lost_since_its_packet_was_sent() {
    let mut rate = DeliveryRate::new();
    let first = send(&mut rate, at_ms(0), 0);
    let second = send(&mut rate, at_ms(1), MTU);
    let third = send(&mut rate, at_ms(2), 2 * MTU);
    let lost = lose(&mut rate, 0, &first);
    assert_eq!((lost.packet_number, lost.bytes), (0, MTU));
    assert_eq!(lost.sent_at, at_ms(0));
    assert_eq!((lost.in_flight_at_send, lost.lost), (MTU, MTU));
    assert_eq!(lose(&mut rate, 1, &second).lost, 2 * MTU);
    let later = send(&mut rate, at_ms(40), MTU);
    acknowledge(&mut rate, at_ms(50), &third);
    let sample = rate.finish(Duration::ZERO).unwrap();
    assert_eq!((sample.in_flight_at_send, sample.lost), (3 * MTU, 2 * MTU));
    acknowledge(&mut rate, at_ms(90), &later);
    let sample = rate.finish(Duration::ZERO).unwrap();
    assert_eq!((sample.in_flight_at_send, sample.lost), (2 * MTU, 0));
}

#[test]
fn packets_that_do_not_count_as_in_flight_add_nothing_to_it() {
    let mut rate = DeliveryRate::new();
    send(&mut rate, at_ms(0), 0);
    let silent = rate.on_sent(at_ms(1), MTU, 0);
    assert_eq!(u64::from(silent.in_flight), MTU);
}
