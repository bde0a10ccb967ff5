//! Flows that share the queue.

use super::*;

fn bench(buffer: u64) -> Bench {
    let config = Bbr3Config {
        chance_losses: true,
        yields: true,
    };
    Bench {
        bbr: Bbr3::with_settings(&ControllerConfig::new(MTU), config),
        ..Bench::with(RATE, buffer)
    }
}

fn cruising() -> Bench {
    let mut bench = bench(4 * PRODUCT);
    bench.run(Duration::from_secs(3));
    bench.until(CRUISE);
    assert!(!bench.bbr.others.are_there());
    bench
}

#[test]
fn a_flow_alone_sees_no_others() {
    for buffer in [PRODUCT, 4 * PRODUCT, u64::MAX] {
        let mut bench = bench(buffer);
        for _ in 0..60 {
            bench.run(Duration::from_millis(500));
            assert!(!bench.bbr.others.are_there(), "{buffer} at {:?}", bench.now);
        }
    }
}

#[test]
fn a_queue_that_stays_between_probes_is_of_others_until_it_is_gone() {
    let mut bench = cruising();
    bench.rtt += RTT / 2;
    bench.run(RTT * 6);
    assert!(bench.bbr.others.are_there(), "{:?}", bench.states);
    assert!(bench.bbr.others.headroom() > super::super::bounds::HEADROOM);
    bench.rtt = RTT;
    bench.run(Duration::from_secs(30));
    assert!(!bench.bbr.others.are_there());
}

#[test]
fn losses_of_others_take_what_they_take_of_loss_based_flows() {
    let answered = |yields: bool| {
        let mut bbr = Bbr3::with_settings(
            &ControllerConfig::new(MTU),
            Bbr3Config {
                chance_losses: true,
                yields,
            },
        );
        bbr.min_rtt.update(at(0), Some(RTT));
        bbr.bandwidth.update(RATE);
        bbr.full_pipe.set_reached(true);
        bbr.start_down(at(0));
        bbr.cycle = Cycle::default();
        bbr.state = CRUISE;
        bbr.put(PRODUCT);
        bbr.count_arrived(0, Some(RTT * 2));
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
        }
        bbr.answer_congestion(&rate);
        bbr.bounds.short_in_flight
    };
    assert_eq!(answered(false), PRODUCT - 4 * MTU, "what was delivered");
    assert_eq!(answered(true), PRODUCT * 7 / 10);
}
