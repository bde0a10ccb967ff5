use super::*;
use crate::congestion::slow_start::NoExit;

const MTU: u64 = 1000;
const START: Instant = Instant::EPOCH;

fn at(millis: u64) -> Instant {
    START + Duration::from_millis(millis)
}

/// A controller in congestion avoidance with a window of a hundred datagrams, on a path of `rtt` milliseconds.
struct Path {
    prague: Prague,
    rtt: u64,
    now: u64,
}

impl Path {
    fn new(rtt: u64) -> Self {
        let mut prague = Prague::new(ControllerConfig {
            slow_start_exit: Box::new(NoExit),
            ..ControllerConfig::new(MTU)
        });
        prague.exit_slow_start();
        prague.set_window(100 * MTU);
        Self {
            prague,
            rtt,
            now: 1000,
        }
    }

    /// A round trip in which the window is delivered, with `marked` datagrams in a hundred marked.
    fn round(&mut self, marked: u64) {
        let sent_at = at(self.now);
        self.now += self.rtt;
        let window = self.prague.window();
        if marked > 0 {
            let marks = CeSample {
                sent_at,
                new_ce: window * marked / 100 / MTU,
                l4s: true,
                largest_sent: 0,
            };
            self.prague.on_ce(at(self.now), &marks);
        }
        let rtt = Duration::from_millis(self.rtt);
        let ack = AckSample {
            bytes: window,
            bytes_in_flight: 0,
            prior_in_flight: window,
            largest_acked: 0,
            largest_sent: 0,
            largest_acked_sent_at: sent_at,
            rtt: RttView {
                latest: rtt,
                adjusted: rtt,
                smoothed: rtt,
                min: rtt,
                variance: Duration::ZERO,
            },
            rtt_updated: true,
            rate: None,
            app_limited: false,
        };
        self.prague.on_ack(at(self.now), &ack);
    }

    fn lose(&mut self, sent_at: u64) {
        let loss = LossSample {
            bytes: MTU,
            packets: 1,
            largest_lost: 0,
            latest_sent_at: at(sent_at),
            largest_sent: 0,
            bytes_in_flight: 0,
            persistent: false,
        };
        self.prague.on_loss(at(self.now), &loss);
    }
}

#[test]
fn a_round_without_marks_adds_a_datagram() {
    let path = &mut Path::new(40);
    path.round(0);
    assert_eq!(path.prague.window(), 101 * MTU);
}

#[test]
fn the_average_follows_the_part_that_is_marked_and_reduces_by_half_of_it() {
    let path = &mut Path::new(40);
    for _ in 0..200 {
        path.round(20);
        path.prague.set_window(100 * MTU);
    }
    let alpha = path.prague.alpha.unwrap();
    assert!((alpha - 0.2).abs() < 0.01, "{alpha}");
    let expected = 100.0 * MTU as f64 * (1.0 - alpha / 2.0);
    path.round(20);
    // Unmarked packets grow it.
    let window = path.prague.window() as f64;
    let grown = window - expected;
    assert!((0.5..1.0).contains(&(grown / MTU as f64)), "{window}");
}

#[test]
fn the_first_mark_halves_the_window_and_ends_slow_start() {
    let path = &mut Path::new(40);
    path.prague.enter_slow_start();
    path.round(1);
    assert!(!path.prague.in_slow_start());
    // Then a window of twice that size is delivered, which adds two datagrams.
    let window = path.prague.window();
    assert!((50 * MTU..=52 * MTU).contains(&window), "{window}");
}

#[test]
fn marks_reduce_once_a_round() {
    let path = &mut Path::new(40);
    path.round(10);
    let once = path.prague.window();
    for new_ce in 1..5 {
        let mark = CeSample {
            sent_at: at(path.now - 1),
            new_ce,
            l4s: true,
            largest_sent: 0,
        };
        path.prague.on_ce(at(path.now + 1), &mark);
    }
    assert_eq!(path.prague.window(), once);
}

#[test]
fn a_loss_takes_half_of_the_window_before_the_marks_of_its_flight() {
    let path = &mut Path::new(40);
    for _ in 0..200 {
        path.round(10);
        path.prague.set_window(100 * MTU);
    }
    let sent_at = path.now;
    path.round(10);
    path.lose(sent_at);
    assert_eq!(path.prague.window(), 50 * MTU);
    path.prague.on_spurious_loss(at(path.now), at(sent_at));
    assert_eq!(path.prague.window(), 50 * MTU, "marks stay answered");
    path.lose(sent_at);
    assert_eq!(path.prague.window(), 50 * MTU, "once a flight");
}

#[test]
fn marks_of_a_long_queue_count_as_losses() {
    let path = &mut Path::new(40);
    let mark = CeSample {
        sent_at: at(path.now),
        new_ce: 1,
        l4s: false,
        largest_sent: 0,
    };
    path.prague.on_ce(at(path.now + 1), &mark);
    assert_eq!(path.prague.window(), 50 * MTU);
}

#[test]
fn a_short_path_grows_like_a_longer_one_after_a_while() {
    let path = &mut Path::new(5);
    let growth = |path: &mut Path| {
        path.prague.set_window(100 * MTU);
        let before = path.prague.window();
        // As long as a round of 25 ms.
        (0..5).for_each(|_| path.round(0));
        (path.prague.window() - before) as f64 / MTU as f64
    };
    assert!((growth(path) - 5.0).abs() < 0.2);
    (0..5 * ROUNDS_BEFORE).for_each(|_| path.round(0));
    let later = growth(path);
    // A fifth of the rate of growth in a round, five rounds: windows of equal rates are five times larger there.
    assert!((later - 0.2).abs() < 0.05, "{later}");
}

#[test]
fn pacing_leaves_a_window_a_round_trip_after_slow_start() {
    let mut path = Path::new(40);
    let rtt = Duration::from_millis(40);
    let view = RttView {
        latest: rtt,
        adjusted: rtt,
        smoothed: rtt,
        min: rtt,
        variance: Duration::ZERO,
    };
    assert_eq!(path.prague.pacing_rate(&view), 100 * MTU * 25);
    path.prague.enter_slow_start();
    assert_eq!(path.prague.pacing_rate(&view), 2 * 100 * MTU * 25);
}
