use super::*;
use crate::Instant;
use crate::samples::{AckSample, RttView};
use conformance::conformance;

const MTU: u64 = 1200;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn sample(rtt: Duration, packets: u64) -> SlowStartSample {
    SlowStartSample {
        rtt: Some(rtt),
        min_rtt: ms(40),
        window: packets * MTU,
        max_datagram_size: MTU,
        rate: None,
    }
}

/// One round of `count` samples; returns the last decision.
fn round(exit: &mut dyn SlowStartExit, rtt: Duration, count: usize) -> SlowStartDecision {
    exit.on_round_start();
    let decisions: Vec<_> = (0..count).map(|_| exit.on_ack(&sample(rtt, 40))).collect();
    decisions.last().copied().unwrap_or(SlowStartDecision::Stay)
}

#[test]
fn hybrid_leaves_when_a_whole_round_is_late() {
    let mut exit = HybridSlowStart::default();
    assert_eq!(round(&mut exit, ms(40), 8), SlowStartDecision::Stay);
    assert_eq!(
        round(&mut exit, ms(45), 8),
        SlowStartDecision::Stay,
        "5 ms are allowed"
    );
    assert_eq!(
        round(&mut exit, ms(46), 7),
        SlowStartDecision::Stay,
        "too few samples"
    );
    assert_eq!(round(&mut exit, ms(46), 8), SlowStartDecision::Exit);
}

#[test]
fn hybrid_looks_at_the_smallest_of_the_round() {
    let mut exit = HybridSlowStart::default();
    exit.on_round_start();
    exit.on_ack(&sample(ms(41), 40));
    for _ in 0..20 {
        assert_eq!(exit.on_ack(&sample(ms(90), 40)), SlowStartDecision::Stay);
    }
}

#[test]
fn hybrid_leaves_small_windows_alone() {
    let mut exit = HybridSlowStart::default();
    exit.on_round_start();
    for _ in 0..20 {
        assert_eq!(exit.on_ack(&sample(ms(90), 15)), SlowStartDecision::Stay);
    }
    assert_eq!(exit.on_ack(&sample(ms(90), 16)), SlowStartDecision::Exit);
}

#[test]
fn hystart_pp_slows_down_for_five_rounds_then_leaves() {
    let mut exit = HyStartPp::default();
    assert_eq!(round(&mut exit, ms(40), 8), SlowStartDecision::Stay);
    assert_eq!(
        round(&mut exit, ms(44), 8),
        SlowStartDecision::Stay,
        "less than 5 ms more"
    );
    assert_eq!(round(&mut exit, ms(50), 8), SlowStartDecision::Slow(4));
    for _ in 0..4 {
        assert_eq!(round(&mut exit, ms(50), 8), SlowStartDecision::Slow(4));
    }
    assert_eq!(round(&mut exit, ms(50), 1), SlowStartDecision::Exit);
}

#[test]
fn hystart_pp_resumes_slow_start_when_the_delay_falls_again() {
    let mut exit = HyStartPp::default();
    round(&mut exit, ms(40), 8);
    assert_eq!(round(&mut exit, ms(50), 8), SlowStartDecision::Slow(4));
    assert_eq!(round(&mut exit, ms(42), 8), SlowStartDecision::Stay);
    exit.reset();
    assert_eq!(
        round(&mut exit, ms(90), 8),
        SlowStartDecision::Stay,
        "nothing to compare with"
    );
}

#[test]
fn every_exit_conforms() {
    EXITS.check_each(|make| conformance(|| make()));
}

#[test]
fn absurd_hybrid_settings_cause_no_panic() {
    for factor in [-1.0, 0.0, f64::MAX, f64::NAN] {
        let config = HybridConfig {
            factor,
            min_rise: Duration::MAX,
            ..HybridConfig::default()
        };
        let late = Round {
            session_min: ms(40),
            round_min: ms(90),
            samples: 8,
            window_packets: 40,
        };
        assert_eq!(config.threshold(&late), Some(ms(16)), "{factor}");
    }
}

#[test]
fn hystart_pp_judges_rounds_of_eight_samples_and_more() {
    let mut exit = HyStartPp::default();
    round(&mut exit, ms(40), 8);
    assert_eq!(round(&mut exit, ms(50), 7), SlowStartDecision::Stay);
}

#[test]
fn hybrid_forgets_the_round_when_slow_start_begins_anew() {
    let mut exit = HybridSlowStart::default();
    assert_eq!(round(&mut exit, ms(90), 7), SlowStartDecision::Stay);
    exit.reset();
    assert_eq!(exit.on_ack(&sample(ms(90), 40)), SlowStartDecision::Stay);
}

#[test]
fn exits_have_the_names_of_their_settings() {
    let exits: [Box<dyn SlowStartExit>; 4] = [
        Box::new(NoExit),
        Box::new(HybridSlowStart::default()),
        Box::new(HyStartPp::default()),
        Box::new(ConfirmedExit::default()),
    ];
    assert!(exits.iter().map(|exit| exit.name()).eq(EXITS.names()));
}

/// Decides the same for every acknowledgment.
#[derive(Debug)]
struct Always(SlowStartDecision);

impl SlowStartExit for Always {
    fn on_round_start(&mut self) {}

    fn on_ack(&mut self, _sample: &SlowStartSample) -> SlowStartDecision {
        self.0
    }

    fn reset(&mut self) {}

    fn name(&self) -> &'static str {
        "always"
    }
}

fn acknowledged(bytes: u64) -> AckSample {
    AckSample {
        bytes,
        bytes_in_flight: 0,
        prior_in_flight: bytes,
        largest_acked: 0,
        largest_sent: 0,
        largest_acked_sent_at: Instant::EPOCH,
        rtt: RttView {
            latest: ms(40),
            adjusted: ms(40),
            smoothed: ms(40),
            min: ms(40),
            variance: Duration::ZERO,
        },
        rtt_updated: true,
        rate: None,
        app_limited: false,
    }
}

#[test]
fn window_grows_by_the_part_of_what_is_acknowledged_that_was_decided() {
    let ack = acknowledged(10_000);
    for (decision, growth) in [
        (SlowStartDecision::Stay, Some(10_000)),
        (SlowStartDecision::Slow(4), Some(2_500)),
        (SlowStartDecision::Exit, None),
    ] {
        let mut slow_start = SlowStart::new(Box::new(Always(decision)), 2.0);
        let grown = slow_start.on_ack(Instant::EPOCH, &ack, 20_000, MTU);
        assert_eq!(grown, growth);
    }
}

#[test]
fn window_grows_by_the_configured_factor_in_a_round_trip() {
    for (growth, added) in [(2.0, 10_001), (1.5, 5_000), (1.1, 1_000)] {
        let mut slow_start = SlowStart::new(Box::new(NoExit), growth);
        let grown = slow_start.on_ack(Instant::EPOCH, &acknowledged(10_001), 20_000, MTU);
        assert_eq!(grown, Some(added));
    }
    let mut slow_start = SlowStart::new(Box::new(NoExit), 1.5);
    let one = acknowledged(1);
    let bytes = (0..4).filter_map(|_| slow_start.on_ack(Instant::EPOCH, &one, 20_000, MTU));
    assert_eq!(bytes.sum::<u64>(), 2, "halves of bytes add up");
}
