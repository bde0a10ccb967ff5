use proptest::prelude::*;

use super::*;
use crate::congestion::conformance::conformance;
use crate::congestion::slow_start::NoExit;
use crate::congestion::{Algorithm, ControllerFactory};
use crate::limits::COUPLED_PATHS;

const MTU: u64 = 1200;

#[test]
fn olia_conforms() {
    for metric in [OliaMetric::PerSquaredRtt, OliaMetric::SquaredPerRtt] {
        conformance(|config| OliaGroup::new(metric).build(config));
    }
}

fn config() -> ControllerConfig {
    ControllerConfig {
        slow_start_exit: Box::new(NoExit),
        ..ControllerConfig::new(MTU)
    }
}

/// A path in congestion avoidance whose every window is acknowledged in a round trip.
struct Path {
    controller: Box<dyn Controller>,
    rtt: Duration,
    now: Instant,
}

impl Path {
    fn new(factory: &dyn ControllerFactory, packets: u64, millis: u64) -> Self {
        let mut controller = factory.build(config());
        controller.set_window(packets * MTU);
        controller.exit_slow_start();
        Self {
            controller,
            rtt: Duration::from_millis(millis),
            now: Instant::EPOCH,
        }
    }

    fn packets(&self) -> f64 {
        self.controller.window() as f64 / MTU as f64
    }

    /// One window, acknowledged packet by packet.
    fn round(&mut self) {
        let sent_at = self.now;
        self.now += self.rtt;
        for packet in 0..self.controller.window() / MTU {
            let ack = AckSample {
                bytes: MTU,
                bytes_in_flight: self.controller.window() - MTU,
                prior_in_flight: self.controller.window(),
                largest_acked: packet,
                largest_sent: packet,
                largest_acked_sent_at: sent_at,
                rtt: RttView {
                    latest: self.rtt,
                    adjusted: self.rtt,
                    smoothed: self.rtt,
                    min: self.rtt,
                    variance: Duration::ZERO,
                },
                rtt_updated: true,
                rate: None,
                app_limited: false,
            };
            self.controller.on_ack(self.now, &ack);
        }
        self.now += Duration::from_micros(1);
    }

    fn lose(&mut self) {
        let loss = LossSample {
            bytes: MTU,
            packets: 1,
            largest_lost: 0,
            latest_sent_at: self.now,
            largest_sent: 0,
            bytes_in_flight: 0,
            persistent: false,
        };
        self.now += Duration::from_micros(1);
        self.controller.on_loss(self.now, &loss);
        self.now += Duration::from_micros(1);
    }
}

#[test]
fn one_path_grows_like_reno() {
    let mut alone = Path::new(&OliaGroup::default(), 20, 50);
    let mut reno = Path::new(&Algorithm::NewReno, 20, 50);
    for _ in 0..50 {
        alone.round();
        reno.round();
    }
    let (alone, reno) = (alone.packets(), reno.packets());
    assert!((alone - reno).abs() < 2.0, "{alone} and {reno} packets");
}

/// Windows after `rounds` on two paths of one group.
fn two(group: &OliaGroup, millis: [u64; 2], rounds: usize) -> [f64; 2] {
    let mut paths = millis.map(|millis| Path::new(group, 20, millis));
    for _ in 0..rounds {
        for path in &mut paths {
            path.round();
        }
    }
    [paths[0].packets(), paths[1].packets()]
}

#[test]
fn equal_paths_together_grow_by_half_of_reno() {
    let windows = two(&OliaGroup::default(), [50, 50], 80);
    for window in windows {
        assert!(
            (window - 40.0).abs() < 1.5,
            "a quarter datagram a round trip: {windows:?}"
        );
    }
}

#[test]
fn windows_move_to_the_better_path() {
    let group = OliaGroup::default();
    let (mut bad, mut good) = (Path::new(&group, 60, 50), Path::new(&group, 10, 50));
    for round in 0..60 {
        bad.round();
        good.round();
        if round % 10 == 0 {
            bad.lose();
        }
    }
    let shrunk = bad.packets();
    assert!(good.packets() > 20.0, "{} packets", good.packets());
    assert!(shrunk < 20.0, "{shrunk} packets");
    assert!(!bad.controller.in_slow_start());
}

#[test]
fn a_window_may_shrink_without_slow_start() {
    let group = OliaGroup::default();
    let (mut large, mut best) = (Path::new(&group, 40, 1000), Path::new(&group, 10, 50));
    for path in [&mut large, &mut best] {
        path.round();
    }
    large.lose();
    let before = large.packets();
    for _ in 0..4 {
        large.round();
    }
    assert!(
        large.packets() < before,
        "the best path has the small window: {} to {} packets",
        before,
        large.packets()
    );
    assert!(!large.controller.in_slow_start());
}

#[test]
fn a_closed_path_does_not_count() {
    let group = OliaGroup::default();
    let mut path = Path::new(&group, 20, 50);
    let mut other = Path::new(&group, 200, 5);
    other.round();
    path.round();
    assert!(path.packets() < 20.6, "it has a small part");
    drop(other);
    for _ in 0..10 {
        path.round();
    }
    assert!(path.packets() > 29.0, "now it has all: {}", path.packets());
}

#[test]
fn paths_beyond_the_limit_grow_independently() {
    let group = OliaGroup::default();
    let mut paths: Vec<_> = (0..=COUPLED_PATHS)
        .map(|_| Path::new(&group, 20, 50))
        .collect();
    for path in &mut paths {
        path.round();
    }
    assert!(paths[COUPLED_PATHS].packets() > 20.9);
    let connection = group.of_connection().expect("groups are of connections");
    let mut path = Path::new(connection.as_ref(), 20, 50);
    path.round();
    assert!(path.packets() > 20.9, "another connection's path");
}

#[test]
fn a_spurious_loss_restores_the_coupling_state() {
    let group = OliaGroup::default();
    let mut olia = Olia::new(config(), &group);
    olia.set_window(20 * MTU);
    olia.exit_slow_start();
    olia.window.growth.since_loss = 70_000;
    olia.window.growth.between_losses = 9000;
    let now = Instant::EPOCH + Duration::from_secs(1);
    let loss = LossSample {
        bytes: MTU,
        packets: 1,
        largest_lost: 3,
        latest_sent_at: Instant::EPOCH,
        largest_sent: 4,
        bytes_in_flight: 0,
        persistent: false,
    };
    let counts = |olia: &Olia| {
        let growth = &olia.window.growth;
        (growth.between_losses, growth.since_loss)
    };
    olia.on_loss(now, &loss);
    assert_eq!(counts(&olia), (70_000, 0));
    olia.on_loss(now, &loss);
    assert_eq!(counts(&olia), (70_000, 0), "one flight, one loss");
    olia.on_spurious_loss(now, Instant::EPOCH);
    assert_eq!(counts(&olia), (9000, 70_000));
    assert_eq!(olia.window(), 20 * MTU);
}

proptest! {
    #[test]
    fn the_sum_of_alphas_is_zero(
        paths in proptest::collection::vec((1..1000_u32, 0..500_000_000_u64, 0..1_000_000_u64, 0..1_000_000_u64), 1..10)
    ) {
        let paths: Vec<_> = paths.into_iter().map(|(window, rtt, between_losses, since_loss)| OliaPath {
            window: f64::from(window),
            rtt: Duration::from_nanos(rtt),
            between_losses,
            since_loss,
        }).collect();
        let coupling = OliaCoupling::of(&paths, OliaMetric::default());
        let sum: f64 = paths.iter().map(|path| coupling.alpha(path)).sum();
        prop_assert!(sum.abs() < 1e-12);
        for path in &paths {
            let growth = coupling.growth(path);
            prop_assert!((-1.0..=2.0).contains(&growth), "{growth}");
        }
        if paths.len() == 1 {
            prop_assert_eq!(coupling.growth(&paths[0]), 1.0);
        }
    }
}

fn rated(window: f64, millis: u64, between_losses: u64, since_loss: u64) -> OliaPath {
    OliaPath {
        window,
        rtt: Duration::from_millis(millis),
        between_losses,
        since_loss,
    }
}

/// By l / rtt^2 the first of two paths is best, by l^2 / rtt another.
#[test]
fn metric_decides_which_path_is_best() {
    let is_first_best = |paths: [OliaPath; 2], metric| {
        let coupling = OliaCoupling::of(&paths, metric);
        let best = paths.map(|path| coupling.is_best(&path));
        assert_ne!(best[0], best[1]);
        best[0]
    };
    let paths = [rated(10.0, 100, 2_000, 4_000), rated(10.0, 500, 40_000, 0)];
    assert!(is_first_best(paths, OliaMetric::PerSquaredRtt));
    assert!(!is_first_best(paths, OliaMetric::SquaredPerRtt));
    let short = [rated(10.0, 10, 1_000, 0), rated(10.0, 100, 2_000, 0)];
    assert!(is_first_best(short, OliaMetric::SquaredPerRtt));
    let long = [rated(10.0, 100, 1_000, 0), rated(10.0, 300, 2_000, 0)];
    assert!(!is_first_best(long, OliaMetric::SquaredPerRtt));
}

/// Khalili et al., equation 4: the share of the rate, squared, over the window, and alpha.
#[test]
fn growth_is_the_squared_share_of_the_rate_and_alpha() {
    // Rates 100, 100 and 200; the last has the largest window, the second is best.
    let paths = [
        rated(10.0, 100, 1_000, 0),
        rated(20.0, 200, 90_000, 0),
        rated(100.0, 500, 1_000, 0),
    ];
    let coupling = OliaCoupling::of(&paths, OliaMetric::SquaredPerRtt);
    let alphas = paths.map(|path| coupling.alpha(&path));
    assert_eq!(alphas, [0.0, 1.0 / 3.0, -1.0 / 3.0]);
    let growths = paths.map(|path| coupling.growth(&path));
    assert_eq!(growths, [0.0625, 0.0625 + 1.0 / 3.0, 0.25 - 1.0 / 3.0]);
    let increases = paths.map(|path| coupling.increase(&path));
    let expected = [0, 1, 2].map(|nth| growths[nth] / paths[nth].window);
    assert_eq!(increases, expected);
    // Two with the largest window share the loss, two that are collected the gain.
    let pairs = [paths[2], paths[1], paths[2], paths[1]];
    let coupling = OliaCoupling::of(&pairs, OliaMetric::SquaredPerRtt);
    let alphas = pairs.map(|path| coupling.alpha(&path));
    assert_eq!(alphas, [-0.125, 0.125, -0.125, 0.125]);
}

#[test]
fn what_is_not_growth_is_as_with_newreno() {
    let mut olia = Olia::new(config(), &OliaGroup::default());
    olia.set_window(20 * MTU);
    let rtt = RttView {
        latest: Duration::from_millis(100),
        adjusted: Duration::from_millis(100),
        smoothed: Duration::from_millis(100),
        min: Duration::from_millis(100),
        variance: Duration::ZERO,
    };
    assert_eq!(olia.pacing_rate(&rtt), 2 * 20 * MTU * 10);
    let mark = CeSample {
        sent_at: Instant::EPOCH,
        new_ce: 1,
        l4s: false,
        largest_sent: 0,
    };
    olia.on_ce(Instant::EPOCH + Duration::from_secs(1), &mark);
    assert_eq!(olia.window(), 10 * MTU);
}

#[test]
fn share_of_a_coordinator_slows_growth() {
    let mut whole = Path::new(&OliaGroup::default(), 20, 50);
    let mut half = Path::new(&OliaGroup::default(), 20, 50);
    half.controller.set_share(0.5);
    for _ in 0..20 {
        whole.round();
        half.round();
    }
    let (whole, half) = (whole.packets() - 20.0, half.packets() - 20.0);
    assert!((half - whole / 2.0).abs() < 1.0, "{half} of {whole}");
}
