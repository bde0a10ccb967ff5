//! Random loss, with the parameter and without.

use super::*;

const CHANCE: Bbr3Config = Bbr3Config {
    random_loss: true,
    coexist: false,
    rare_probe_rtt: false,
    startup_by_window: false,
    fast_reprobe: false,
    jitter: false,
    coupled: false,
};

impl Bench {
    /// A controller on a path with a buffer of a product and a random loss rate of `loss`.
    fn losing(config: Bbr3Config, loss: f64) -> Self {
        let bbr = Bbr3::with_settings(&ControllerConfig::new(MTU), config);
        Self {
            bbr,
            loss,
            ..Self::with(RATE, PRODUCT)
        }
    }
}

#[test]
fn a_path_that_loses_by_chance_is_used_fully() {
    for loss in [0.01, 0.03, 0.05, 0.08] {
        let mut bench = Bench::losing(CHANCE, loss);
        bench.run(Duration::from_secs(2));
        let used = bench.utilization(Duration::from_secs(20));
        assert!(used > 0.88 - loss, "{loss}: {used:.3}");
        let mut draft = Bench::losing(Bbr3Config::default(), loss);
        draft.run(Duration::from_secs(2));
        let before = draft.utilization(Duration::from_secs(20));
        assert!(used > before, "{loss}: {used:.3}, the draft {before:.3}");
    }
}

#[test]
fn the_share_of_chance_is_learnt_and_forgotten() {
    let mut bench = Bench::losing(CHANCE, 0.04);
    bench.run(Duration::from_secs(10));
    let share = bench.bbr.random_loss.share();
    assert!((0.02..0.06).contains(&share), "{share:.3}");
    bench.loss = 0.0;
    bench.run(Duration::from_secs(10));
    let share = bench.bbr.random_loss.share();
    assert!(share < 0.002, "{share:.3}");
}

/// After an acknowledgment with a reported acknowledgment delay: with one packet to acknowledge the receiver waits for
/// another.
fn held_back() -> Bbr3 {
    let mut bbr = modelled();
    let mut ack = acked(MTU);
    ack.rtt.latest += MS * 25;
    bbr.on_ack(at(40), &ack);
    bbr
}

#[test]
fn what_a_receiver_holds_back_is_no_part_of_the_largest_queue() {
    let mut bbr = held_back();
    assert!(!bbr.has_queues());
    bbr.note_queue(&sampled(RTT + MS * 25));
    assert!(bbr.has_queues());
}

/// Otherwise it could hide cross traffic from the sender.
#[test]
fn a_receiver_cannot_hide_a_queue() {
    assert!(held_back().meets_queue());
}

#[test]
fn losses_of_a_full_buffer_are_not_learnt_as_chance() {
    for part in [4, 2, 1] {
        let mut bench = Bench::losing(CHANCE, 0.0);
        bench.buffer = PRODUCT / part;
        for _ in 0..20 {
            bench.run(Duration::from_secs(1));
            let share = bench.bbr.random_loss.share();
            assert!(share < 0.005, "1/{part}: {share:.3}");
        }
        assert!(bench.lost > 0, "1/{part}");
    }
}

#[test]
fn few_losses_are_caused_beyond_those_by_chance() {
    for loss in [0.0, 0.01, 0.03, 0.05] {
        let mut bench = Bench::losing(CHANCE, loss);
        bench.run(Duration::from_secs(2));
        let lost = bench.loss_rate(Duration::from_secs(20));
        assert!(lost < loss + 0.02, "{loss}: {lost:.3}");
    }
}

/// As with a policer, packets are dropped from the rate of the bottleneck on while hardly any queue: that is not random
/// loss.
#[test]
fn losses_of_a_buffer_of_three_packets_are_not_learnt_as_chance() {
    let mut bench = Bench::losing(CHANCE, 0.0);
    bench.buffer = 3 * MTU;
    bench.run(Duration::from_secs(4));
    let lost = bench.loss_rate(Duration::from_secs(20));
    assert!(lost < 0.05, "{lost:.3}");
    let used = bench.utilization(Duration::from_secs(20));
    assert!(used > 0.8, "{used:.3}");
}

#[test]
fn startup_goes_on_while_the_rate_grows_and_the_queue_is_empty() {
    let end = |config: Bbr3Config| {
        let mut bench = Bench::losing(config, 0.06);
        bench.rate = 40 * RATE;
        bench.buffer = 40 * PRODUCT;
        bench.run_while(|bench| bench.bbr.state == State::Startup);
        bench.bbr.bandwidth.get() as f64 / bench.rate as f64
    };
    let (draft, chance) = (end(Bbr3Config::default()), end(CHANCE));
    assert!(draft < 0.5, "{draft:.2}");
    assert!(chance > 0.8, "{chance:.2}");
}

#[test]
fn losses_beside_a_queue_end_startup_before_the_round_ends() {
    let lost = |config: Bbr3Config| {
        let mut bench = Bench::losing(config, 0.0);
        bench.buffer = PRODUCT / 2;
        bench.run(Duration::from_secs(1));
        bench.lost
    };
    let (draft, chance) = (lost(Bbr3Config::default()), lost(CHANCE));
    assert!(chance < draft, "{chance} bytes, the draft {draft}");
}

/// The estimated random loss rate, after one loss whose packets came just after one that met a queue, and after another a
/// little later.
fn learnt(beside_others: bool) -> [f64; 2] {
    let mut bbr = Bbr3::with_settings(&ControllerConfig::new(MTU), Bbr3Config::WIRELESS);
    bbr.min_rtt.update(at(0), Some(RTT));
    bbr.full_pipe.set_reached(true);
    bbr.state = State::ProbeBw(ProbeBwPhase::Cruise);
    if beside_others {
        bbr.cross_traffic.on_seen(at(0));
    }
    bbr.note_queue(&sampled(RTT * 2));
    [10, 20].map(|packet_number| {
        bbr.note_queue(&sampled(RTT));
        bbr.count_lost(packet_number, MTU);
        bbr.random_loss.share()
    })
}

#[test]
fn beside_others_a_loss_just_after_a_queue_is_not_by_chance() {
    let [first, second] = learnt(false);
    assert!(0.0 < first && first < second, "{first} {second}");
    let [first, second] = learnt(true);
    assert!(first == 0.0 && second > 0.0, "{first} {second}");
}

#[test]
fn without_losses_by_chance_two_of_a_hundred_beside_a_queue_are_congestion() {
    let mut bbr = Bbr3::with_settings(&ControllerConfig::new(MTU), CHANCE);
    bbr.min_rtt.update(at(0), Some(RTT));
    bbr.note_queue(&sampled(RTT * 2));
    assert!(bbr.is_loss_too_high(3 * MTU, 100 * MTU));
    assert!(!bbr.is_loss_too_high(2 * MTU, 100 * MTU));
    bbr.note_queue(&sampled(RTT));
    assert!(!bbr.is_loss_too_high(2 * MTU, 30 * MTU), "no queue");
    assert!(bbr.is_loss_too_high(3 * MTU, 30 * MTU));
}

/// A flow that begins in a queue of other flows takes the delay of that queue for the path's, until they respond to
/// losses.
#[test]
fn what_was_learnt_in_a_queue_of_others_is_forgotten_when_it_empties() {
    let mut bbr = Bbr3::with_settings(&ControllerConfig::new(MTU), CHANCE);
    bbr.min_rtt.update(at(0), Some(RTT * 2));
    bbr.note_queue(&sampled(RTT * 2));
    for number in 0..20 {
        bbr.count_arrived(10 * MTU);
        bbr.count_lost(10 * number, MTU);
    }
    assert!(bbr.random_loss.share() > 0.05);
    bbr.min_rtt.update(at(100), Some(RTT * 2 - RTT / 32));
    bbr.note_queue(&sampled(RTT * 2 - RTT / 32));
    assert!(bbr.random_loss.share() > 0.05, "delays vary");
    bbr.min_rtt.update(at(200), Some(RTT));
    bbr.note_queue(&sampled(RTT));
    assert_eq!(bbr.random_loss.share(), 0.0);
    bbr.note_queue(&sampled(RTT * 2));
    assert!(bbr.meets_queue());
}
