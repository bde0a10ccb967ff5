//! Cross traffic.

use super::*;

fn yielding(coexist: bool) -> Bbr3Config {
    Bbr3Config {
        random_loss: true,
        coexist,
        ..Bbr3Config::default()
    }
}

fn bench(buffer: u64) -> Bench {
    let config = yielding(true);
    Bench {
        bbr: Bbr3::with_settings(&ControllerConfig::new(MTU), config),
        ..Bench::with(RATE, buffer)
    }
}

fn cruising() -> Bench {
    let mut bench = bench(4 * PRODUCT);
    bench.run(Duration::from_secs(3));
    bench.until(CRUISE);
    assert!(!bench.bbr.cross_traffic.is_present());
    bench
}

#[test]
fn a_flow_alone_sees_no_others() {
    for buffer in [PRODUCT / 2, PRODUCT, 4 * PRODUCT, u64::MAX] {
        let mut bench = bench(buffer);
        for _ in 0..60 {
            bench.run(Duration::from_millis(500));
            assert!(
                !bench.bbr.cross_traffic.is_present(),
                "{buffer} at {:?}",
                bench.now
            );
        }
    }
}

#[test]
fn a_queue_that_stays_between_probes_is_of_others_until_it_is_gone() {
    let mut bench = cruising();
    bench.rtt += RTT / 2;
    bench.run(RTT * 6);
    assert!(bench.bbr.cross_traffic.is_present(), "{:?}", bench.states);
    assert!(bench.bbr.cross_traffic.headroom() > super::super::bounds::HEADROOM);
    bench.rtt = RTT;
    bench.run(Duration::from_secs(30));
    assert!(!bench.bbr.cross_traffic.is_present());
}

/// In `CRUISE`, with a window of a product, and round-trip times of twice the path's.
fn beside_a_queue(coexist: bool) -> Bbr3 {
    let mut bbr = Bbr3::with_settings(&ControllerConfig::new(MTU), yielding(coexist));
    bbr.min_rtt.update(at(0), Some(RTT));
    bbr.bandwidth.update(RATE);
    bbr.full_pipe.set_reached(true);
    bbr.start_down(at(0));
    bbr.cycle = Cycle::default();
    bbr.state = CRUISE;
    bbr.put(PRODUCT);
    bbr.note_queue(&sampled(RTT * 2));
    bbr
}

#[test]
fn losses_of_others_take_what_they_take_of_loss_based_flows() {
    let answered = |coexist: bool, cruises_since: Instant| {
        let mut bbr = beside_a_queue(coexist);
        bbr.cross_traffic.set_room(cruises_since, true);
        let rate = RateSample {
            delivered: PRODUCT - 4 * MTU,
            lost: 4 * MTU,
            in_flight_at_send: PRODUCT,
            interval: RTT,
            prior_delivered: 0,
            delivered_total: PRODUCT,
            app_limited: false,
        };
        bbr.latest.update(&rate);
        bbr.latest.on_loss(0);
        for number in 0..4 {
            bbr.count_lost(number, MTU);
            bbr.cross_traffic.on_lost(at(5), MTU);
        }
        bbr.answer_congestion(at(10), &rate);
        bbr.bounds.short_in_flight
    };
    let delivered = PRODUCT - 4 * MTU;
    assert_eq!(answered(false, at(0)), delivered);
    assert_eq!(answered(true, at(0)), PRODUCT * 7 / 10);
    assert_eq!(answered(true, at(6)), delivered, "sent before, by a probe");
}

/// A managed queue marks packets with ECT(0) where it drops those of others.
#[test]
fn marks_in_place_of_drops_are_answered_as_losses_of_others() {
    let answered = |l4s: bool, cruises_since: Instant| {
        let mut bbr = beside_a_queue(true);
        bbr.cross_traffic.set_room(cruises_since, true);
        bbr.latest.update(&rated(RATE, 0));
        let sent_at = at(5);
        bbr.on_ce(
            at(6),
            &CeSample {
                sent_at,
                l4s,
                ..mark(1)
            },
        );
        bbr.answer_congestion(at(10), &rated(RATE, 0));
        (bbr.bounds.short_bandwidth, bbr.cross_traffic.is_present())
    };
    assert_eq!(answered(false, at(0)), (RATE * 85 / 100, true));
    assert_eq!(
        answered(false, at(6)),
        (RATE, false),
        "sent before, by a probe"
    );
    assert_eq!(answered(true, at(0)), (UNBOUNDED, false));
}

#[test]
fn a_mark_in_place_of_a_drop_ends_a_probe() {
    for (coexist, state) in [(false, UP), (true, DOWN)] {
        let mut bbr = Bbr3::with_settings(&ControllerConfig::new(MTU), yielding(coexist));
        bbr.min_rtt.update(at(0), Some(RTT));
        bbr.bandwidth.update(RATE);
        bbr.full_pipe.set_reached(true);
        bbr.start_up(&rated(RATE, 0));
        bbr.round_begins = true;
        bbr.delivered = PRODUCT;
        bbr.on_ce(at(0), &mark(1));
        bbr.update_marks(at(0), &rated(RATE, 0));
        assert_eq!(bbr.state, state);
    }
}

#[test]
fn beside_others_the_first_losses_beyond_chance_end_a_probe_and_take_a_part_of_the_bound() {
    let probed = |is_present: bool| {
        let mut bbr = beside_a_queue(true);
        if is_present {
            bbr.cross_traffic.on_seen(at(0));
        }
        bbr.start_up(&rated(RATE, 0));
        bbr.on_packet_lost(at(5), &lost_packet(1, MTU, 100 * MTU));
        (bbr.state, bbr.bounds.in_flight)
    };
    assert_eq!(probed(false), (UP, UNBOUNDED), "one of a hundred");
    let (state, bound) = probed(true);
    assert_eq!(state, DOWN);
    assert_eq!(bound, 99 * MTU * 95 / 100, "what was in flight before it");
}

#[test]
fn beside_others_the_bound_grows_by_a_datagram_a_round_and_leaves_room_after_a_probe() {
    let grown = |is_present: bool| {
        let mut bbr = Bbr3::with_settings(&ControllerConfig::new(MTU), yielding(true));
        bbr.min_rtt.update(at(0), Some(RTT));
        bbr.bandwidth.update(RATE);
        bbr.full_pipe.set_reached(true);
        if is_present {
            bbr.cross_traffic.on_seen(at(0));
        }
        bbr.put(2 * PRODUCT);
        bbr.bounds.in_flight = PRODUCT;
        bbr.start_up(&rated(RATE, 0));
        bbr.window_use.on_sent(true);
        for _ in 0..3 {
            bbr.round_begins = true;
            bbr.raise_long_term(2 * PRODUCT);
        }
        let grown = bbr.bounds.in_flight - PRODUCT;
        bbr.start_down(at(100));
        bbr.update_window(&acked(PRODUCT));
        assert_eq!(bbr.window() < bbr.bounds.in_flight, is_present);
        grown
    };
    assert!((2 * MTU..=4 * MTU).contains(&grown(true)));
    assert!(grown(false) > 5 * MTU);
}

/// The delays of a radio fluctuate within a round; a queue of other flows hardly changes.
#[test]
fn delays_that_come_and_go_are_not_of_other_flows() {
    let mut others = CrossTraffic::default();
    let mut round = |rtts: [u32; 3]| {
        for rtt in rtts {
            others.on_rtt(MS * rtt, true);
        }
        others.end_round(at(0), true, Some(MS * 40));
        others.is_present()
    };
    assert!(!round([60, 60, 60]), "cruising began in this round");
    assert!(!round([60, 75, 90]));
    assert!(round([60, 65, 70]));
}

#[test]
fn others_may_return_for_an_eighth_of_the_time_for_which_they_were_known() {
    let mut others = CrossTraffic::default();
    let may_return = |others: &CrossTraffic, empty_since: u64, millis: u64| {
        others.may_return(at(empty_since + millis), at(empty_since))
    };
    for seen in [0, 400] {
        others.on_seen(at(seen));
    }
    assert!(may_return(&others, 800, 99));
    assert!(!may_return(&others, 800, 100));
    others.restart(at(5000));
    assert!(
        !may_return(&others, 5040, 5),
        "they may have gone in a pause"
    );
    for _ in 0..4 {
        others.on_cycle();
    }
    assert!(!others.is_present());
    others.on_seen(at(10_000));
    assert!(
        !may_return(&others, 10_080, 10),
        "those before were forgotten"
    );
}

#[test]
fn a_pause_does_not_count_as_an_empty_queue() {
    let mut early = FastReprobe::default();
    early.on_rtt(false);
    early.end_round(at(0), true);
    early.restart(at(5000));
    early.on_rtt(false);
    early.end_round(at(5040), true);
    assert_eq!(early.empty_since(), Some(at(5000)));
}

#[test]
fn an_acknowledgment_for_many_packets_does_not_show_that_the_queue_of_a_probe_is_gone() {
    let cruises = |coexist: bool, acked_bytes: u64| {
        let mut bbr = beside_a_queue(coexist);
        bbr.start_down(at(100));
        let ack = AckSample {
            bytes: acked_bytes,
            prior_in_flight: PRODUCT * 9 / 10 + acked_bytes,
            rate: Some(rated(RATE, 0)),
            ..acked(PRODUCT * 9 / 10)
        };
        bbr.on_ack(at(100), &ack);
        bbr.state == CRUISE
    };
    assert!(cruises(true, MTU));
    assert!(!cruises(true, PRODUCT / 2));
    assert!(cruises(false, PRODUCT / 2), "the draft");
}

#[test]
fn the_short_queue_of_a_managed_bottleneck_is_one_whatever_the_round_trip_time() {
    let meets = |coexist: bool, rate: u64, delay: Duration| {
        let mut bbr = Bbr3::with_settings(&ControllerConfig::new(MTU), yielding(coexist));
        bbr.min_rtt.update(at(0), Some(RTT * 5));
        bbr.bandwidth.update(rate);
        bbr.note_queue(&sampled(RTT * 5 + delay));
        bbr.meets_queue()
    };
    assert!(meets(true, RATE, MS * 5));
    assert!(!meets(true, RATE, MS * 3));
    assert!(!meets(false, RATE, MS * 5), "less than an eighth of 200 ms");
    // Four datagrams take 19 ms.
    assert!(!meets(true, RATE / 10, MS * 18));
    assert!(meets(true, RATE / 10, MS * 20));
}
