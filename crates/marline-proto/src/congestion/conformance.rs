//! Rules that every controller must obey under any sequence of calls.
//!
//! The test of a further controller is one line:
//!
//! ```
//! use marline_proto::congestion::{NewReno, conformance};
//!
//! conformance::conformance(|config| Box::new(NewReno::new(config)));
//! ```

mod call;

use std::time::Duration;

use rand::SeedableRng;
use rand_pcg::Pcg32;

use self::call::{Call, magnitude};
use super::slow_start::NoExit;
use super::{Controller, ControllerConfig, MAXIMUM_WINDOW, MINIMUM_WINDOW_PACKETS, PathModel};
use crate::Instant;
use crate::samples::{
    AckSample, CeSample, LossSample, PacketLoss, RateSample, RttView, SentSample,
};

const MTU: u64 = 1200;
const RTT: Duration = Duration::from_millis(40);
/// Bandwidth-delay product of the path, in bytes.
const CAPACITY: u64 = 500 * MTU;
const SEQUENCES: u64 = 64;
const STEPS: usize = 400;

/// Runs every check on the controllers that `make` makes.
///
/// # Panics
///
/// If a controller breaks a rule; the message says which.
pub fn conformance(make: impl Fn(ControllerConfig) -> Box<dyn Controller>) {
    grows_in_slow_start(&make);
    stays_while_app_limited(&make);
    reduces_once_per_flight(&make);
    keeps_what_marks_demand(&make);
    recovers_from_loss(&make);
    collapses_on_persistent_congestion(&make);
    follows_a_coordinator(&make);
    ends_slow_start_at_the_threshold(&make);
    grows_by_its_share(&make);
    measures_a_model(&make);
    begins_from_a_model(&make);
    leaves_a_wrong_model(&make);
    survives_anything(&make);
}

type Make<'a> = &'a dyn Fn(ControllerConfig) -> Box<dyn Controller>;

/// A controller on a path without a queue: packets are acknowledged `RTT` after they were sent.
struct Path {
    controller: Box<dyn Controller>,
    now: Instant,
    next: u64,
    delivered: u64,
}

impl Path {
    fn new(make: Make<'_>) -> Self {
        let controller = make(ControllerConfig {
            slow_start_exit: Box::new(NoExit),
            ..ControllerConfig::new(MTU)
        });
        assert!(!controller.name().is_empty(), "a controller has a name");
        let window = controller.window();
        assert!(
            window >= 2 * MTU,
            "the window of a new controller is {window} bytes; it is at least two datagrams, {} bytes",
            2 * MTU
        );
        Self {
            controller,
            now: Instant::EPOCH + RTT,
            next: 0,
            delivered: 0,
        }
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    /// Sends `bytes` in full datagrams, and acknowledges them two by two a round trip later.
    fn round(&mut self, bytes: u64, app_limited: bool) {
        let packets = (bytes / MTU).max(1);
        let (sent_at, prior_delivered) = (self.now, self.delivered);
        for packet in 1..=packets {
            self.controller.on_sent(
                sent_at,
                &SentSample {
                    packet_number: self.next,
                    bytes: MTU,
                    bytes_in_flight: packet * MTU,
                    app_limited,
                },
            );
            self.next += 1;
        }
        self.now += RTT;
        let mut in_flight = packets * MTU;
        while in_flight > 0 {
            let acked = in_flight.min(2 * MTU);
            self.delivered += acked;
            let prior_in_flight = in_flight;
            in_flight -= acked;
            let ack = AckSample {
                bytes: acked,
                bytes_in_flight: in_flight,
                prior_in_flight,
                largest_acked: self.next - 1 - in_flight / MTU,
                largest_sent: self.next - 1,
                largest_acked_sent_at: sent_at,
                rtt: rtt_of(RTT),
                rtt_updated: true,
                rate: Some(RateSample {
                    delivered: self.delivered - prior_delivered,
                    interval: RTT,
                    prior_delivered,
                    delivered_total: self.delivered,
                    in_flight_at_send: packets * MTU,
                    lost: 0,
                    app_limited,
                }),
                app_limited,
            };
            self.controller.on_ack(self.now, &ack);
        }
        self.now += Duration::from_micros(1);
    }

    /// Fills the window for `rounds` round trips, as far as the path carries it.
    fn fill(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.round(self.window().min(CAPACITY), false);
        }
    }

    fn mark(&mut self, sent_at: Instant) {
        let l4s = self.controller.is_scalable();
        self.controller.on_ce(
            self.now,
            &CeSample {
                sent_at,
                new_ce: 1,
                l4s,
                largest_sent: self.next,
            },
        );
    }

    fn lose(&mut self, latest_sent_at: Instant, persistent: bool) {
        let packet = PacketLoss {
            packet_number: self.next.saturating_sub(1),
            bytes: MTU,
            sent_at: latest_sent_at,
            in_flight_at_send: self.window(),
            lost: MTU,
            delivered_total: self.delivered,
            app_limited: false,
        };
        self.controller.on_packet_lost(self.now, &packet);
        self.controller.on_loss(
            self.now,
            &LossSample {
                bytes: MTU,
                packets: 1,
                largest_lost: self.next.saturating_sub(1),
                latest_sent_at,
                largest_sent: self.next.saturating_sub(1),
                bytes_in_flight: self.window().saturating_sub(MTU),
                persistent,
            },
        );
    }
}

fn rtt_of(rtt: Duration) -> RttView {
    RttView {
        latest: rtt,
        adjusted: rtt,
        smoothed: rtt,
        min: rtt,
        variance: rtt / 8,
    }
}

fn grows_in_slow_start(make: Make<'_>) {
    let mut path = Path::new(make);
    let initial = path.window();
    assert!(
        path.controller.in_slow_start(),
        "a controller begins in slow start"
    );
    path.fill(3);
    let grown = path.window();
    assert!(
        grown >= 4 * initial,
        "slow start grows: {initial} to {grown} bytes in three rounds"
    );
}

fn stays_while_app_limited(make: Make<'_>) {
    let mut path = Path::new(make);
    let initial = path.window();
    for _ in 0..20 {
        path.round(2 * MTU, true);
    }
    let after = path.window();
    assert!(
        after <= initial,
        "a window that is not used does not grow: {initial} to {after} bytes"
    );
}

fn reduces_once_per_flight(make: Make<'_>) {
    let mut path = Path::new(make);
    path.fill(4);
    let before = path.window();
    let sent_at = path.now;
    path.now += RTT;
    path.lose(sent_at, false);
    let once = path.window();
    // A rate-based controller may wait to measure the delivery after the loss.
    let may_wait = path.controller.is_rate_based();
    assert!(
        once < before || may_wait && once == before,
        "a loss reduces the window: {before} to {once}"
    );
    for _ in 0..5 {
        path.now += Duration::from_millis(1);
        path.lose(sent_at, false);
    }
    path.mark(sent_at);
    let again = path.window();
    assert_eq!(again, once, "losses of one flight reduce the window once");
}

/// Controllers that react to losses alone may undo the whole reaction.
fn keeps_what_marks_demand(make: Make<'_>) {
    for marked_first in [true, false] {
        let mut path = Path::new(make);
        path.fill(4);
        let before = path.window();
        let sent_at = path.now;
        path.now += RTT;
        if marked_first {
            path.mark(sent_at);
            if path.window() == before {
                return;
            }
            path.lose(sent_at, false);
        } else {
            path.lose(sent_at, false);
            path.mark(sent_at);
        }
        let reduced = path.window();
        path.controller.on_spurious_loss(path.now, sent_at);
        assert_eq!(
            path.window(),
            reduced,
            "the reaction to a mark stays when the losses beside it were spurious"
        );
    }
}

fn recovers_from_loss(make: Make<'_>) {
    let mut path = Path::new(make);
    path.fill(4);
    let sent_at = path.now;
    path.now += RTT;
    path.lose(sent_at, false);
    let reduced = path.window();
    path.now += Duration::from_millis(1);
    path.fill(100);
    let later = path.window();
    assert!(
        later > reduced,
        "the window grows again after recovery: {reduced} to {later} bytes"
    );
}

fn collapses_on_persistent_congestion(make: Make<'_>) {
    let mut path = Path::new(make);
    path.fill(4);
    let sent_at = path.now;
    path.now += 10 * RTT;
    path.lose(sent_at, true);
    let left = path.window();
    assert!(
        left <= 2 * MINIMUM_WINDOW_PACKETS * MTU,
        "persistent congestion collapses the window: {left} bytes are left"
    );
    path.now += Duration::from_millis(1);
    path.lose(sent_at, false);
    path.fill(3);
    assert!(
        path.window() >= 2 * left,
        "a collapsed window grows again, whatever the old flight still loses"
    );
}

fn follows_a_coordinator(make: Make<'_>) {
    let mut path = Path::new(make);
    path.fill(2);
    path.controller.exit_slow_start();
    assert!(!path.controller.in_slow_start(), "slow start can be ended");
    path.controller.enter_slow_start();
    assert!(path.controller.in_slow_start(), "slow start can be entered");
    for packets in [100, 10, 1000] {
        path.controller.set_window(packets * MTU);
        assert_eq!(path.window(), packets * MTU, "the window can be set");
    }
    path.controller.exit_slow_start();
    path.controller.set_window(10 * MTU);
    assert!(
        !path.controller.in_slow_start(),
        "a smaller window does not begin slow start"
    );
    path.controller.set_window(0);
    assert!(
        path.window() >= MINIMUM_WINDOW_PACKETS * MTU,
        "not below the minimum window"
    );
    path.controller.set_window(u64::MAX);
    assert!(path.window() <= MAXIMUM_WINDOW, "not above the maximum");

    // Back in slow start, further losses of the same flight are ignored.
    path.controller.set_window(100 * MTU);
    let sent_at = path.now;
    path.now += RTT;
    path.lose(sent_at, false);
    path.controller.enter_slow_start();
    path.controller.set_window(100 * MTU);
    path.lose(sent_at, false);
    assert_eq!(
        path.window(),
        100 * MTU,
        "losses of an old flight do not undo what a coordinator set"
    );
    assert!(path.controller.in_slow_start());
}

/// Controllers without a threshold ignore it.
fn ends_slow_start_at_the_threshold(make: Make<'_>) {
    let mut path = Path::new(make);
    path.fill(4);
    let sent_at = path.now;
    path.now += RTT;
    path.lose(sent_at, false);
    path.controller.set_window(20 * MTU);
    let searched = path.controller.in_slow_start();
    path.controller.set_ssthresh(40 * MTU);
    assert_eq!(path.window(), 20 * MTU, "the window stays");
    if path.controller.ssthresh().is_none() {
        let searches = path.controller.in_slow_start();
        assert_eq!(searches, searched, "no threshold, no change");
        return;
    }
    assert_eq!(path.controller.ssthresh(), Some(40 * MTU));
    path.controller.on_spurious_loss(path.now, sent_at);
    assert_eq!(
        (path.window(), path.controller.ssthresh()),
        (20 * MTU, Some(40 * MTU)),
        "no reaction before can be taken back"
    );
    path.now += Duration::from_millis(1);
    path.fill(1);
    assert!(
        path.window() >= 39 * MTU,
        "below its threshold the window doubles: {} bytes",
        path.window()
    );
    path.fill(2);
    assert!(!path.controller.in_slow_start(), "there slow start ends");
    assert!(
        path.window() <= 48 * MTU,
        "and the window grows slowly: {} bytes",
        path.window()
    );
    let window = path.window();
    path.controller.set_ssthresh(10 * MTU);
    assert_eq!(path.window(), window, "a larger window stays");
    assert!(!path.controller.in_slow_start(), "and avoids congestion");
}

fn grows_by_its_share(make: Make<'_>) {
    let grown = |share: f64| {
        let mut path = Path::new(make);
        path.fill(3);
        path.controller.exit_slow_start();
        path.controller.set_share(share);
        path.fill(50);
        path.window()
    };
    let whole = grown(1.0);
    for share in [0.5, 0.1, f64::MIN_POSITIVE] {
        let part = grown(share);
        assert!(
            part <= whole,
            "a share of {share} grows to {part} bytes, the whole to {whole}"
        );
    }
}

/// The rate of the path, in bytes per second.
fn capacity_rate() -> u64 {
    (CAPACITY as f64 / RTT.as_secs_f64()) as u64
}

/// The model of a path on which another connection found `bandwidth`.
fn model_of(bandwidth: u64) -> PathModel {
    PathModel {
        bandwidth,
        is_limit: true,
        min_rtt: RTT,
        random_loss: 0.02,
    }
}

/// Only rate-based controllers have a model, and only once they have measured.
fn measures_a_model(make: Make<'_>) {
    let mut path = Path::new(make);
    assert_eq!(path.controller.model(), None, "nothing was measured");
    path.fill(12);
    let model = path.controller.model();
    assert_eq!(
        model.is_some(),
        path.controller.is_rate_based(),
        "the model of a rate-based controller"
    );
    let Some(model) = model else { return };
    let rate = capacity_rate();
    assert!(
        (rate * 9 / 10..=rate * 11 / 10).contains(&model.bandwidth),
        "{} bytes/s of {rate} were measured",
        model.bandwidth
    );
    assert_eq!(model.min_rtt, RTT);
    assert!(model.is_limit, "the path was full for several rounds");
    assert!(model.random_loss.abs() < f64::EPSILON, "nothing was lost");
    assert_eq!(model.product(), model.bandwidth * 40 / 1000);
}

/// A controller that accepts a seed sends at the first rate at once, and measures it.
fn begins_from_a_model(make: Make<'_>) {
    let mut path = Path::new(make);
    path.fill(1);
    let rate = capacity_rate();
    let before = (path.window(), path.controller.pacing_rate(&rtt_of(RTT)));
    let takes = path.controller.seed(path.now, &model_of(rate), rate / 2);
    let seeded = (path.window(), path.controller.pacing_rate(&rtt_of(RTT)));
    if !takes {
        assert_eq!(seeded, before, "no seed, no change");
        return;
    }
    assert!(
        path.controller.bandwidth().unwrap_or_default() < rate / 4,
        "a seed is not a measurement"
    );
    assert!(path.controller.in_slow_start(), "nothing is confirmed yet");
    assert!(seeded.0 >= CAPACITY / 2, "a window of {} bytes", seeded.0);
    assert!(seeded.1 >= rate / 2, "{} bytes/s", seeded.1);
    assert!(
        !path
            .controller
            .seed(path.now, &model_of(4 * rate), 4 * rate),
        "one seed for each startup"
    );
    path.fill(4);
    let found = path.controller.bandwidth().unwrap_or_default();
    assert!(found >= rate * 9 / 10, "{found} bytes/s of {rate}");
}

/// A seed that exceeds the path is replaced by the measured delivery rate.
fn leaves_a_wrong_model(make: Make<'_>) {
    let mut path = Path::new(make);
    path.fill(1);
    let rate = capacity_rate();
    if !path
        .controller
        .seed(path.now, &model_of(8 * rate), 8 * rate)
    {
        return;
    }
    path.fill(8);
    let found = path.controller.bandwidth().unwrap_or_default();
    assert!(found <= rate * 11 / 10, "{found} bytes/s of {rate}");
    let paced = path.controller.pacing_rate(&rtt_of(RTT));
    assert!(paced <= 3 * rate, "{paced} bytes/s of {rate}");
    assert!(
        path.window() <= 3 * CAPACITY,
        "a window of {} bytes",
        path.window()
    );
}

/// Random calls with random numbers, sensible and absurd, on two controllers that must agree.
fn survives_anything(make: Make<'_>) {
    for seed in 0..SEQUENCES {
        let mut rng = Pcg32::seed_from_u64(seed);
        let mut pair = [Path::new(make).controller, Path::new(make).controller];
        let mut mtu = MTU;
        let mut now = Instant::EPOCH;
        for _ in 0..STEPS {
            now += Duration::from_nanos(magnitude(&mut rng) % 20_000_000_000);
            let call = Call::random(&mut rng, now, &mut mtu);
            for (controller, times) in pair.iter_mut().zip([1, 2]) {
                let searched = controller.in_slow_start();
                call.make(controller.as_mut(), now);
                check(controller.as_ref(), mtu, &call, seed);
                call.check_state(searched, controller.in_slow_start(), seed);
                if times == 2 && call.is_idempotent() {
                    call.make(controller.as_mut(), now);
                }
            }
            let [a, b] = &pair;
            assert_eq!(
                (a.window(), a.phase(), a.ssthresh(), a.bandwidth()),
                (b.window(), b.phase(), b.ssthresh(), b.bandwidth()),
                "equal calls give equal controllers, and what a coordinator says it may say twice: \
                 {call:?} (seed {seed})"
            );
        }
    }
}

fn check(controller: &dyn Controller, mtu: u64, call: &Call, seed: u64) {
    let window = controller.window();
    assert!(
        controller.model().is_none_or(|model| model.is_sound()),
        "a model that others can begin from after {call:?} (seed {seed})"
    );
    assert!(
        (MINIMUM_WINDOW_PACKETS * mtu..=MAXIMUM_WINDOW).contains(&window),
        "window of {window} bytes after {call:?} (seed {seed})"
    );
    for rtt in [Duration::ZERO, RTT, Duration::from_secs(1 << 40)] {
        assert!(
            controller.pacing_rate(&rtt_of(rtt)) > 0,
            "never stops pacing (seed {seed})"
        );
    }
}
