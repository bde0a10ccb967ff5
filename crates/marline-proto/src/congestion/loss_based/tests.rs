use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::congestion::cubic::Curve;
use crate::congestion::new_reno::Additive;
use crate::congestion::slow_start::{HyStartPp, HybridSlowStart, NoExit, SlowStartExit};

const MTU: u64 = 1000;
const RTT: Duration = Duration::from_millis(100);

/// A controller whose flight leaves at once and is acknowledged `rtt` later, in ten parts.
struct Path<G> {
    controller: LossBasedController<G>,
    now: Instant,
    rtt: Duration,
}

impl<G: Growth> Path<G> {
    fn new(packets: u64, exit: impl SlowStartExit + 'static) -> Self {
        Self {
            controller: LossBasedController::new(ControllerConfig {
                initial_window: packets * MTU,
                slow_start_exit: Box::new(exit),
                ..ControllerConfig::new(MTU)
            }),
            now: Instant::EPOCH + Duration::from_secs(1),
            rtt: RTT,
        }
    }

    fn avoiding(packets: u64) -> Self {
        let mut path = Self::new(packets, NoExit);
        path.controller.exit_slow_start();
        path
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn state(&self) -> (u64, Phase) {
        (self.window(), self.controller.phase())
    }

    fn ack(&mut self, sent_at: Instant, bytes: u64) {
        let ack = AckSample {
            bytes,
            bytes_in_flight: 0,
            prior_in_flight: bytes,
            largest_acked: 0,
            largest_sent: 0,
            largest_acked_sent_at: sent_at,
            rtt: RttView {
                latest: self.rtt,
                adjusted: self.rtt,
                smoothed: RTT,
                min: RTT,
                variance: Duration::ZERO,
            },
            rtt_updated: true,
            rate: None,
            app_limited: false,
        };
        self.controller.on_ack(self.now, &ack);
    }

    fn round(&mut self) {
        let (sent_at, window) = (self.now, self.window());
        self.now += self.rtt;
        for part in 1..=10 {
            self.ack(sent_at, part * window / 10 - (part - 1) * window / 10);
        }
    }

    fn rounds(&mut self, count: usize) -> u64 {
        for _ in 0..count {
            self.round();
        }
        self.window()
    }

    fn lose(&mut self, sent_at: Instant, persistent: bool) {
        let loss = LossSample {
            bytes: MTU,
            packets: 1,
            largest_lost: 0,
            latest_sent_at: sent_at,
            largest_sent: 0,
            bytes_in_flight: 0,
            persistent,
        };
        self.controller.on_loss(self.now, &loss);
    }

    /// Loses a packet of the flight under way; returns when it was sent.
    fn lose_flight(&mut self) -> Instant {
        let sent_at = self.now;
        self.now += self.rtt;
        self.lose(sent_at, false);
        sent_at
    }

    fn mark(&mut self, sent_at: Instant) {
        let ce = CeSample {
            sent_at,
            new_ce: 1,
            l4s: false,
            largest_sent: 0,
        };
        self.controller.on_ce(self.now, &ce);
    }
}

/// Runs a generic check on each kind of growth.
macro_rules! both {
    ($($name:ident)*) => {$(
        mod $name {
            #[test]
            fn new_reno() {
                super::$name::<super::Additive>();
            }

            #[test]
            fn cubic() {
                super::$name::<super::Curve>();
            }
        }
    )*};
}

both! {
    packets_sent_at_the_moment_of_the_loss_belong_to_its_flight
    a_collapse_is_undone_as_spurious_after_an_exit_by_delay
    the_flight_before_slow_start_does_not_count
    slow_start_goes_on_after_one_round_trip
    a_new_slow_start_resets_the_delay_samples
    a_spurious_reduction_is_undone
    the_reaction_to_a_mark_is_not_undone
    spurious_persistent_congestion_is_undone
    values_set_by_a_coordinator_are_not_undone
    undoing_does_not_re_enter_slow_start_that_a_coordinator_ended
    an_exit_by_delay_is_no_spurious_loss
    a_smaller_window_stays_in_congestion_avoidance
    a_window_set_every_round_grows
    no_share_leaves_the_bounds
    losses_at_the_moment_of_the_reduction_cause_no_further_one
}

/// (N - 1 + b) / N, where b is the part that one connection keeps.
#[test]
fn emulated_flows_keep_what_all_but_one_have_and_a_part_of_the_last() {
    fn left<G: Growth>(emulated_flows: u32, backoff: Option<f64>) -> u64 {
        let mut path = Path::<G>::new(1000, NoExit);
        path.controller = LossBasedController::new(ControllerConfig {
            initial_window: 1000 * MTU,
            emulated_flows,
            backoff,
            ..ControllerConfig::new(MTU)
        });
        path.lose_flight();
        path.window() / MTU
    }
    for (flows, reno, cubic, of_seven_tenths) in [
        (1, 500, 700, 700),
        (2, 750, 850, 850),
        (4, 875, 925, 925),
        (16, 968, 981, 981),
    ] {
        assert_eq!(left::<Additive>(flows, None), reno);
        assert_eq!(left::<Curve>(flows, None), cubic);
        assert_eq!(left::<Additive>(flows, Some(0.7)), of_seven_tenths);
    }
}

/// RFC 9002, section 7.3.2: one reduction for each flight.
fn losses_at_the_moment_of_the_reduction_cause_no_further_one<G: Growth>() {
    let mut path = Path::<G>::new(100, NoExit);
    path.lose_flight();
    let (reduced, reduced_at) = (path.window(), path.now);
    path.now += RTT;
    path.lose(reduced_at, false);
    assert_eq!(path.window(), reduced);
    path.lose(reduced_at + Duration::from_nanos(1), false);
    assert!(path.window() < reduced);
}

/// RFC 9002, section 7.3.2: recovery ends with a packet that was sent after it began.
fn packets_sent_at_the_moment_of_the_loss_belong_to_its_flight<G: Growth>() {
    let mut path = Path::<G>::new(100, NoExit);
    path.lose_flight();
    let (reduced, reduced_at) = (path.window(), path.now);
    path.now += RTT;
    path.ack(reduced_at, reduced);
    assert_eq!(path.state(), (reduced, Phase::Recovery));
    path.ack(reduced_at + Duration::from_nanos(1), reduced);
    assert_eq!(path.controller.phase(), Phase::CongestionAvoidance);
    assert!(path.window() > reduced);
}

fn a_collapse_is_undone_as_spurious_after_an_exit_by_delay<G: Growth>() {
    let mut path = Path::<G>::new(100, HybridSlowStart::default());
    let sent_at = path.now;
    path.now += 10 * RTT;
    path.lose(sent_at, true);
    path.rtt = 2 * RTT;
    path.now += Duration::from_millis(1);
    let reduced = path.controller.ssthresh();
    path.rounds(4);
    assert!(path.controller.ssthresh() < reduced, "left for the delay");
    path.controller.on_spurious_loss(path.now, sent_at);
    assert_eq!(path.window(), 100 * MTU);
}

fn the_flight_before_slow_start_does_not_count<G: Growth>() {
    for set_before in [true, false] {
        let mut path = Path::<G>::new(100, NoExit);
        let sent_at = path.lose_flight();
        if set_before {
            path.controller.set_window(60 * MTU);
        }
        path.controller.enter_slow_start();
        if !set_before {
            path.controller.set_window(60 * MTU);
        }
        path.now += Duration::from_millis(1);
        path.lose(sent_at, false);
        path.mark(sent_at);
        assert_eq!(path.state(), (60 * MTU, Phase::Recovery));
        assert!(path.controller.in_slow_start());
        path.ack(sent_at, 10 * MTU);
        assert_eq!(path.window(), 60 * MTU, "the old flight grows nothing");
    }
}

/// Even where the whole flight leaves at the moment of the loss.
fn slow_start_goes_on_after_one_round_trip<G: Growth>() {
    let mut path = Path::<G>::new(100, NoExit);
    path.lose_flight();
    path.controller.enter_slow_start();
    path.controller.set_window(60 * MTU);
    assert_eq!(path.rounds(1), 120 * MTU);
    assert_eq!(path.controller.phase(), Phase::SlowStart);
}

/// HyStart++ forgets that it grew conservatively, hybrid slow start the samples of its round.
fn a_new_slow_start_resets_the_delay_samples<G: Growth>() {
    let mut path = Path::<G>::new(100, HyStartPp::default());
    path.round();
    path.rtt = 2 * RTT;
    let before = path.window();
    assert!(path.rounds(2) < 3 * before, "conservative by now");
    path.controller.enter_slow_start();
    path.controller.set_window(100 * MTU);
    assert_eq!(path.rounds(2), 400 * MTU, "doubles again");

    let mut path = Path::<G>::new(100, HybridSlowStart::default());
    path.rtt = 2 * RTT;
    path.rounds(1);
    assert!(!path.controller.in_slow_start(), "left for the delay");
    path.controller.enter_slow_start();
    assert!(path.controller.in_slow_start());
    path.rtt = RTT;
    path.rounds(2);
    assert!(path.controller.in_slow_start());
}

fn a_spurious_reduction_is_undone<G: Growth>() {
    let mut path = Path::<G>::new(100, NoExit);
    let sent_at = path.lose_flight();
    assert!(path.window() < 100 * MTU);
    path.controller.on_spurious_loss(path.now, sent_at);
    assert_eq!(path.state(), (100 * MTU, Phase::SlowStart));
    path.lose(sent_at, false);
    path.mark(sent_at);
    path.controller.on_spurious_loss(path.now, sent_at);
    assert_eq!(path.state(), (100 * MTU, Phase::SlowStart), "same flight");
    path.now += Duration::from_millis(1);
    path.lose_flight();
    assert!(path.window() < 100 * MTU, "another flight");
}

fn the_reaction_to_a_mark_is_not_undone<G: Growth>() {
    let mut path = Path::<G>::avoiding(100);
    let sent_at = path.now;
    path.now += RTT;
    path.mark(sent_at);
    let reduced = path.window();
    path.controller.on_spurious_loss(path.now, sent_at);
    assert_eq!(path.window(), reduced, "marks are never spurious");
}

fn spurious_persistent_congestion_is_undone<G: Growth>() {
    let mut path = Path::<G>::new(100, NoExit);
    let sent_at = path.now;
    path.now += 10 * RTT;
    path.lose(sent_at, true);
    assert_eq!(path.window(), 2 * MTU);
    path.controller.on_spurious_loss(path.now, sent_at);
    assert_eq!(path.window(), 100 * MTU);
}

fn values_set_by_a_coordinator_are_not_undone<G: Growth>() {
    let mut path = Path::<G>::new(100, NoExit);
    let sent_at = path.lose_flight();
    path.controller.set_window(30 * MTU);
    path.controller.on_spurious_loss(path.now, sent_at);
    assert_eq!(path.window(), 30 * MTU);
    assert!(!path.controller.in_slow_start());

    let mut path = Path::<G>::avoiding(100);
    let sent_at = path.lose_flight();
    let reduced = path.window();
    path.controller.enter_slow_start();
    path.controller.on_spurious_loss(path.now, sent_at);
    assert_eq!(path.window(), reduced);
    assert!(path.controller.in_slow_start());
}

fn undoing_does_not_re_enter_slow_start_that_a_coordinator_ended<G: Growth>() {
    let mut path = Path::<G>::new(100, NoExit);
    let sent_at = path.lose_flight();
    path.controller.exit_slow_start();
    path.controller.on_spurious_loss(path.now, sent_at);
    assert_eq!(path.state(), (100 * MTU, Phase::CongestionAvoidance));
}

fn an_exit_by_delay_is_no_spurious_loss<G: Growth>() {
    let mut path = Path::<G>::new(100, HybridSlowStart::default());
    let sent_at = path.lose_flight();
    path.controller.enter_slow_start();
    path.rtt = 2 * RTT;
    path.rounds(2);
    assert!(!path.controller.in_slow_start());
    path.controller.on_spurious_loss(path.now, sent_at);
    assert!(!path.controller.in_slow_start());
}

fn a_smaller_window_stays_in_congestion_avoidance<G: Growth>() {
    let mut path = Path::<G>::avoiding(100);
    path.controller.set_window(20 * MTU);
    assert_eq!(path.state(), (20 * MTU, Phase::CongestionAvoidance));
    assert!(path.rounds(1) < 22 * MTU);
}

/// Within and beyond the earlier window, and as fast as without interference.
fn a_window_set_every_round_grows<G: Growth>() {
    let mut alone = Path::<G>::avoiding(100);
    let mut set = Path::<G>::avoiding(100);
    for path in [&mut alone, &mut set] {
        path.lose_flight();
    }
    let mut last = set.window();
    for round in 1..=200 {
        alone.round();
        set.round();
        let window = set.window();
        set.controller.set_window(window);
        assert_eq!(window, alone.window(), "round {round}");
        if round % 50 == 0 {
            assert!(window > last + MTU, "round {round}: {last} to {window}");
            last = window;
        }
    }
    assert!(last > 110 * MTU, "{last} bytes");
}

fn no_share_leaves_the_bounds<G: Growth>() {
    let grown = |share: f64| {
        let mut path = Path::<G>::avoiding(100);
        path.controller.set_share(share);
        path.lose_flight();
        path.rounds(50)
    };
    let whole = grown(1.0);
    for share in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY, 2.0, f64::INFINITY] {
        assert_eq!(grown(share), whole, "{share}");
    }
    assert!(grown(0.5) < whole);
    let reduced = (100.0 * MTU as f64 * G::BACKOFF) as u64;
    assert!(grown(f64::MIN_POSITIVE) < reduced + 2 * MTU);
}

#[test]
fn cubic_takes_a_share_at_any_time() {
    let mut path = Path::<Curve>::avoiding(100);
    path.lose_flight();
    for share in [0.25, 1.0, 0.1, 0.5] {
        let before = path.rounds(20);
        path.controller.set_share(share);
        let after = path.rounds(1);
        assert!((before..before + 3 * MTU).contains(&after), "no jump");
    }
}

/// `members` with a share each against one controller, all of which meet the same congestion; `fate`
/// says in which rounds.
fn shares_grow_in_sum_like_one_controller<G: Growth>(
    members: u64,
    packets: u64,
    fate: &[bool],
) -> Result<(), TestCaseError> {
    let mut one = Path::<G>::avoiding(members * packets);
    let mut all: Vec<_> = (0..members)
        .map(|_| {
            let mut path = Path::<G>::avoiding(packets);
            path.controller.set_share(1.0 / members as f64);
            path
        })
        .collect();
    let mut edges = Vec::new();
    for (round, congestion) in fate.iter().enumerate() {
        let window = one.window();
        // Members stop at their own minimum window, one connection further down. And where a flow
        // begins to count as shrinking, a single byte decides.
        let is_small = window < 6 * members * MTU;
        let is_edge = edges.iter().any(|edge| window.abs_diff(*edge) < edge / 50);
        let congestion = *congestion && !is_small && !is_edge;
        if congestion {
            let converged = window as f64 * (1.0 + G::BACKOFF) / 2.0;
            edges.extend([window, converged as u64]);
        }
        for path in all.iter_mut().chain([&mut one]) {
            if congestion {
                path.lose_flight();
            } else {
                path.round();
            }
        }
        let sum: u64 = all.iter().map(Path::window).sum();
        // Members round their growth each for itself.
        prop_assert!(
            sum.abs_diff(one.window()) <= one.window() / 250 + members,
            "round {round}: {sum} bytes, one has {}",
            one.window()
        );
    }
    Ok(())
}

/// Long stretches without congestion are the rule.
fn fates() -> impl Strategy<Value = Vec<bool>> {
    prop::collection::vec((1..80_usize, 1..3_usize), 1..8).prop_map(|stretches| {
        stretches
            .into_iter()
            .flat_map(|(calm, congestion)| {
                std::iter::repeat_n(false, calm).chain(std::iter::repeat_n(true, congestion))
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn shares_of_new_reno_grow_like_one_controller(members in 1..8_u64, packets in 10..200_u64, fate in fates()) {
        shares_grow_in_sum_like_one_controller::<Additive>(members, packets, &fate)?;
    }

    #[test]
    fn shares_of_cubic_grow_like_one_controller(members in 1..8_u64, packets in 10..200_u64, fate in fates()) {
        shares_grow_in_sum_like_one_controller::<Curve>(members, packets, &fate)?;
    }
}
