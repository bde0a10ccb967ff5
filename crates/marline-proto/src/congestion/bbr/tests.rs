use super::*;

const MTU: u64 = 1200;
const RTT: Duration = Duration::from_millis(40);

/// A bottleneck of `rate` bytes per second behind `RTT`, one ACK per packet.
struct Bottleneck {
    bbr: Bbr,
    rate: u64,
    /// Round-trip time of the empty path.
    rtt: Duration,
    now: Instant,
    delivered: u64,
    in_flight: std::collections::VecDeque<Packet>,
    /// When the queue becomes empty.
    free_at: Instant,
    next_send: Instant,
    phases: Vec<Phase>,
}

struct Packet {
    sent_at: Instant,
    acked_at: Instant,
    delivered: u64,
    delivered_at: Instant,
}

impl Bottleneck {
    fn new(rate: u64) -> Self {
        Self {
            bbr: Bbr::new(&ControllerConfig::new(MTU)),
            rate,
            rtt: RTT,
            now: Instant::EPOCH,
            delivered: 0,
            in_flight: std::collections::VecDeque::new(),
            free_at: Instant::EPOCH,
            next_send: Instant::EPOCH,
            phases: Vec::new(),
        }
    }

    fn bytes_in_flight(&self) -> u64 {
        self.in_flight.len() as u64 * MTU
    }

    fn rtt(&self) -> RttView {
        RttView {
            latest: RTT,
            adjusted: RTT,
            smoothed: RTT,
            min: RTT,
            variance: Duration::ZERO,
        }
    }

    fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut delivered_at = self.now;
        while self.now < end {
            let can_send = self.bytes_in_flight() + MTU <= self.bbr.window();
            let ack_at = self.in_flight.front().map(|packet| packet.acked_at);
            if can_send && ack_at.is_none_or(|at| self.next_send <= at) {
                self.now = self.now.max(self.next_send);
                self.send(delivered_at);
            } else if let Some(packet) = self.in_flight.pop_front() {
                self.now = packet.acked_at;
                delivered_at = self.now;
                self.ack(&packet);
            }
            let phase = self.bbr.phase();
            if self.phases.last() != Some(&phase) {
                self.phases.push(phase);
            }
        }
    }

    fn send(&mut self, delivered_at: Instant) {
        let transmission = Duration::from_nanos(MTU * 1_000_000_000 / self.rate);
        self.free_at = self.free_at.max(self.now) + transmission;
        self.in_flight.push_back(Packet {
            sent_at: self.now,
            acked_at: self.free_at + self.rtt,
            delivered: self.delivered,
            delivered_at,
        });
        let pace = MTU * 1_000_000_000 / self.bbr.pacing_rate(&self.rtt());
        self.next_send = self.now + Duration::from_nanos(pace);
    }

    fn ack(&mut self, packet: &Packet) {
        self.delivered += MTU;
        let latest = self.now - packet.sent_at;
        let ack = AckSample {
            bytes: MTU,
            bytes_in_flight: self.bytes_in_flight(),
            prior_in_flight: self.bytes_in_flight() + MTU,
            largest_acked: 0,
            largest_sent: 0,
            largest_acked_sent_at: packet.sent_at,
            rtt: RttView {
                latest,
                adjusted: latest,
                ..self.rtt()
            },
            rtt_updated: true,
            rate: Some(RateSample {
                delivered: self.delivered - packet.delivered,
                interval: self.now - packet.delivered_at,
                prior_delivered: packet.delivered,
                delivered_total: self.delivered,
                in_flight_at_send: 0,
                lost: 0,
                app_limited: false,
            }),
            app_limited: false,
        };
        self.bbr.on_ack(self.now, &ack);
    }
}

#[test]
fn startup_finds_the_bandwidth_and_probe_bw_keeps_it() {
    let rate = 1_250_000;
    let mut path = Bottleneck::new(rate);
    path.run(Duration::from_secs(5));
    assert_eq!(
        path.phases,
        [Phase::Startup, Phase::Drain, Phase::ProbeBw],
        "one way up"
    );
    let bandwidth = path.bbr.bandwidth().unwrap();
    assert!(bandwidth.abs_diff(rate) < rate / 10, "{bandwidth}");
    let product = rate * 40 / 1000;
    let window = path.bbr.window();
    assert!(window < 3 * product, "{window} bytes, product {product}");

    let before = path.delivered;
    path.run(Duration::from_secs(4));
    let carried = path.delivered - before;
    assert!(carried > 4 * rate * 95 / 100, "{carried} of {}", 4 * rate);
}

#[test]
fn probe_rtt_drains_the_path_when_min_rtt_expires() {
    let mut path = Bottleneck::new(1_250_000);
    path.run(Duration::from_secs(2));
    path.rtt = 2 * RTT;
    path.run(Duration::from_secs(20));
    let probes = path
        .phases
        .iter()
        .filter(|phase| **phase == Phase::ProbeRtt)
        .count();
    assert!((1..=2).contains(&probes), "{:?}", path.phases);
    let measured = path.bbr.min_rtt.get().unwrap();
    assert!(
        measured > 2 * RTT && measured < RTT * 22 / 10,
        "{measured:?}"
    );
    let before = path.delivered;
    path.run(Duration::from_secs(1));
    assert!(path.delivered - before > 1_150_000, "back at full speed");
}

#[test]
fn follows_a_slower_bottleneck() {
    let mut path = Bottleneck::new(2_500_000);
    path.run(Duration::from_secs(3));
    path.rate = 625_000;
    path.run(Duration::from_secs(8));
    let bandwidth = path.bbr.bandwidth().unwrap();
    assert!(bandwidth.abs_diff(625_000) < 100_000, "{bandwidth}");
}

/// Packets in flight measure the old rate and do not restore it.
#[test]
fn a_lowered_bandwidth_holds_until_more_is_measured() {
    let mut path = Bottleneck::new(2_500_000);
    path.run(Duration::from_secs(1));
    let before = path.bbr.window();
    path.bbr.set_bandwidth(500_000);
    assert_eq!(path.bbr.bandwidth(), Some(500_000));
    assert!(path.bbr.pacing_rate(&path.rtt()) <= 500_000 * 5 / 4);
    // Two products of 20 kB, and three bursts.
    assert!(path.bbr.window() < before / 2 && path.bbr.window() < 50_000);
    path.run(RTT);
    assert_eq!(path.bbr.bandwidth(), Some(500_000), "the old flight");
    path.run(Duration::from_millis(100));
    let bandwidth = path.bbr.bandwidth().unwrap();
    assert!(
        bandwidth < 750_000,
        "probes, but does not jump: {bandwidth}"
    );
    path.run(Duration::from_secs(8));
    let bandwidth = path.bbr.bandwidth().unwrap();
    assert!(bandwidth > 2_250_000, "finds what is there: {bandwidth}");
}

#[test]
fn a_bandwidth_set_too_high_is_replaced_by_measurements() {
    let mut path = Bottleneck::new(1_250_000);
    path.run(Duration::from_secs(2));
    let before = path.bbr.window();
    path.bbr.set_bandwidth(2_500_000);
    assert!(path.bbr.pacing_rate(&path.rtt()) > 1_800_000);
    path.run(RTT * 2);
    assert_eq!(path.bbr.bandwidth(), Some(2_500_000));
    assert!(path.bbr.window() > before, "the window follows as it grows");
    path.run(Duration::from_secs(3));
    let bandwidth = path.bbr.bandwidth().unwrap();
    assert!(bandwidth.abs_diff(1_250_000) < 125_000, "{bandwidth}");
}

#[test]
fn the_bandwidth_can_be_set_in_every_mode() {
    for (elapsed, mode) in [
        (60, Phase::Startup),
        (2_000, Phase::ProbeBw),
        (10_150, Phase::ProbeRtt),
    ] {
        let mut path = Bottleneck::new(2_500_000);
        path.run(Duration::from_millis(100));
        path.rtt = RTT + RTT / 20;
        path.run(Duration::from_millis(elapsed));
        assert_eq!(path.bbr.phase(), mode);
        path.bbr.set_bandwidth(600_000);
        let high = path.bbr.target(HIGH_GAIN) + 3 * path.bbr.send_quantum();
        assert!(path.bbr.window() <= high, "{mode:?}");
        path.run(Duration::from_millis(300));
        assert_ne!(path.bbr.phase(), Phase::ProbeRtt);
        path.run(Duration::from_secs(8));
        let bandwidth = path.bbr.bandwidth().unwrap();
        assert!(bandwidth > 2_250_000, "{mode:?}: {bandwidth}");
    }
}

/// Startup neither ends because its bandwidth was set, nor lasts forever because it is set often.
#[test]
fn startup_measures_its_progress_from_what_was_set() {
    let mut path = Bottleneck::new(12_500_000);
    path.run(RTT * 3);
    assert!(path.bbr.in_slow_start());
    let reached = path.bbr.bandwidth().unwrap();
    path.bbr.set_bandwidth(reached / 4);
    path.run(RTT * 4);
    assert!(path.bbr.in_slow_start(), "goes on");
    assert!(path.bbr.bandwidth().unwrap() > reached / 4);
    path.run(RTT * 30);
    assert!(!path.bbr.in_slow_start());
    let bandwidth = path.bbr.bandwidth().unwrap();
    assert!(bandwidth > 11_000_000, "found all: {bandwidth}");

    let mut path = Bottleneck::new(1_250_000);
    for _ in 0..40 {
        path.run(RTT * 2);
        path.bbr.set_bandwidth(1_250_000);
    }
    assert!(!path.bbr.in_slow_start(), "comes to an end");
}

#[test]
fn a_window_set_before_the_model_is_the_initial_window() {
    let mut path = Bottleneck::new(1_250_000);
    let rate = path.bbr.pacing_rate(&path.rtt());
    path.bbr.set_window(5 * MTU);
    assert_eq!(path.bbr.window(), 5 * MTU);
    assert_eq!(path.bbr.target(1.0), 5 * MTU);
    assert!(path.bbr.pacing_rate(&path.rtt()).abs_diff(rate / 2) <= 1);
    path.run(Duration::from_secs(2));
    let product = path.bbr.target(1.0);
    path.bbr.set_window(5 * MTU);
    assert_eq!(path.bbr.target(1.0), product, "with a model it is no more");
}

#[test]
fn min_rtt_is_measured_while_startup_is_entered_and_left() {
    let mut path = Bottleneck::new(1_250_000);
    path.run(Duration::from_millis(100));
    path.rtt = 2 * RTT;
    while path.bbr.phase() != Phase::ProbeRtt {
        path.run(Duration::from_millis(10));
    }
    path.bbr.enter_slow_start();
    assert!(path.bbr.in_slow_start());
    assert_eq!(path.bbr.phase(), Phase::ProbeRtt);
    path.bbr.exit_slow_start();
    assert!(!path.bbr.in_slow_start());
    path.run(Duration::from_millis(500));
    assert_eq!(path.bbr.phase(), Phase::ProbeBw);
}

#[test]
fn loss_conserves_packets_for_a_round() {
    let mut path = Bottleneck::new(1_250_000);
    path.run(Duration::from_secs(2));
    let in_flight = path.bytes_in_flight();
    let loss = LossSample {
        bytes: MTU,
        packets: 1,
        largest_lost: 0,
        latest_sent_at: path.now,
        largest_sent: 0,
        bytes_in_flight: in_flight,
        persistent: false,
    };
    path.bbr.on_loss(path.now, &loss);
    assert_eq!(path.bbr.phase(), Phase::Recovery);
    assert_eq!(path.bbr.window(), in_flight);
    path.run(Duration::from_secs(1));
    assert_eq!(path.bbr.phase(), Phase::ProbeBw);
}

const MS: Duration = Duration::from_millis(1);

fn at(millis: u32) -> Instant {
    Instant::EPOCH + MS * millis
}

fn bbr() -> Bbr {
    Bbr::new(&ControllerConfig::new(MTU))
}

/// A bandwidth of 10 MB/s and a delay of 40 ms: a product of 400 kB, and bursts of 10 kB.
fn modelled() -> Bbr {
    let mut bbr = bbr();
    bbr.set_bandwidth(10_000_000);
    bbr.min_rtt.update(at(0), &acked(0));
    bbr
}

fn acked(bytes_in_flight: u64) -> AckSample {
    AckSample {
        bytes: MTU,
        bytes_in_flight,
        prior_in_flight: bytes_in_flight + MTU,
        largest_acked: 0,
        largest_sent: 0,
        largest_acked_sent_at: at(0),
        rtt: RttView {
            latest: RTT,
            adjusted: RTT,
            smoothed: RTT,
            min: RTT,
            variance: Duration::ZERO,
        },
        rtt_updated: true,
        rate: None,
        app_limited: false,
    }
}

/// A sample of `rate` bytes per second, of a packet sent when `prior` bytes were delivered.
fn rated(rate: u64, prior: u64) -> RateSample {
    RateSample {
        delivered: rate / 10,
        interval: MS * 100,
        prior_delivered: prior,
        delivered_total: prior + rate / 10,
        in_flight_at_send: 0,
        lost: 0,
        app_limited: false,
    }
}

fn lost(bytes_in_flight: u64, sent_at: Instant) -> LossSample {
    LossSample {
        bytes: MTU,
        packets: 1,
        largest_lost: 0,
        latest_sent_at: sent_at,
        largest_sent: 0,
        bytes_in_flight,
        persistent: false,
    }
}

#[test]
fn bandwidth_is_unknown_before_the_first_sample() {
    let mut bbr = bbr();
    assert_eq!(bbr.bandwidth(), None);
    bbr.min_rtt.update(at(0), &acked(0));
    assert_eq!(bbr.target(1.0), 10 * MTU, "the initial window");
}

#[test]
fn burst_is_what_a_millisecond_delivers_within_bounds() {
    let mut bbr = bbr();
    for (rate, burst) in [
        (1_000, 2_400),
        (10_000_000, 10_000),
        (1_000_000_000, 65_536),
    ] {
        bbr.set_bandwidth(rate);
        assert_eq!(bbr.send_quantum(), burst);
    }
}

#[test]
fn window_is_bounded_by_products_and_three_bursts() {
    let mut bbr = modelled();
    assert_eq!(bbr.target(2.0), 800_000);
    assert_eq!(bbr.bound(2.0), 830_000);
    bbr.window = bbr.bound(HIGH_GAIN);
    bbr.grow(&acked(0));
    assert_eq!(bbr.window, bbr.bound(HIGH_GAIN), "startup goes no further");
    bbr.window -= 1;
    bbr.grow(&acked(0));
    assert_eq!(bbr.window, bbr.bound(HIGH_GAIN) - 1 + MTU);
}

#[test]
fn application_limited_samples_count_if_they_are_larger() {
    let mut bbr = bbr();
    let sample = |rate, nth: u64| RateSample {
        app_limited: true,
        ..rated(rate, nth * 1_000_000)
    };
    bbr.on_rate(&rated(1_000_000, 0));
    for nth in 1..20 {
        bbr.on_rate(&sample(500_000, nth));
    }
    assert_eq!(bbr.bandwidth(), Some(1_000_000), "a lower bound");
    assert!(bbr.in_slow_start());
    bbr.on_rate(&sample(2_000_000, 20));
    assert_eq!(bbr.bandwidth(), Some(2_000_000));
}

/// Startup ends after three rounds in which the bandwidth grew by less than a quarter.
#[test]
fn startup_ends_when_three_rounds_bring_no_quarter_more() {
    let mut bbr = bbr();
    let mut prior = 0;
    let mut full = Vec::new();
    for rate in [1_000_000, 1_250_000, 1_375_000, 1_500_000, 1_550_000] {
        assert!(bbr.on_rate(&rated(rate, prior)), "a round each");
        prior += 1_000_000;
        full.push(!bbr.in_slow_start());
    }
    assert_eq!(full, [false, false, false, false, true]);
}

#[test]
fn packets_sent_after_a_lowered_bandwidth_measure_again() {
    let mut bbr = bbr();
    bbr.on_rate(&rated(1_000_000, 0));
    let sent = SentSample {
        packet_number: 0,
        bytes: MTU,
        bytes_in_flight: 50_000,
        app_limited: false,
    };
    bbr.on_sent(at(0), &sent);
    bbr.set_bandwidth(200_000);
    // 100 000 bytes were delivered and 50 000 in flight.
    bbr.on_rate(&rated(900_000, 149_999));
    assert_eq!(bbr.bandwidth(), Some(200_000));
    bbr.on_rate(&rated(900_000, 150_000));
    assert_eq!(bbr.bandwidth(), Some(900_000));
}

#[test]
fn gains_of_the_cycle_follow_each_other() {
    let mut bbr = modelled();
    bbr.exit_slow_start();
    let mut gains = Vec::new();
    for phase in 0..CYCLE.len() {
        bbr.mode = Mode::ProbeBw {
            phase,
            since: at(0),
        };
        gains.push(bbr.pacing_gain());
        bbr.lost_in_round = true;
        bbr.advance(at(41), &acked(0));
        let Mode::ProbeBw { phase: next, since } = bbr.mode else {
            panic!("the cycle goes on");
        };
        assert_eq!((next, since), ((phase + 1) % 8, at(41)));
        assert!(!bbr.lost_in_round);
    }
    assert_eq!(gains, CYCLE);
}

/// A phase lasts more than a round trip: longer if a probe for bandwidth finds none, shorter if the queue is
/// empty.
#[test]
fn phase_ends_by_time_queue_and_loss() {
    let mut bbr = modelled();
    let product = 400_000;
    let mut is_over = |phase, elapsed, in_flight, lost| {
        bbr.mode = Mode::ProbeBw {
            phase,
            since: at(0),
        };
        bbr.lost_in_round = lost;
        bbr.phase_is_over(at(elapsed), at(0), in_flight)
    };
    // Up.
    assert!(!is_over(0, 40, 2 * product, true), "exactly a round trip");
    assert!(is_over(0, 41, product * 5 / 4, false));
    assert!(!is_over(0, 41, product * 5 / 4 - 1, false));
    assert!(is_over(0, 41, 0, true));
    // Down.
    assert!(is_over(1, 1, product, false));
    assert!(!is_over(1, 40, product + 1, false));
    assert!(is_over(1, 41, product + 1, false));
    // Neither.
    assert!(!is_over(2, 40, 0, true));
    assert!(is_over(2, 41, 0, false));
    assert!(is_over(2, 41, 2 * product, false));
}

#[test]
fn paths_begin_the_cycle_anywhere_but_in_the_phase_that_drains() {
    let phases: Vec<_> = (0..8).map(first_phase).collect();
    assert_eq!(phases, [0, 2, 3, 4, 5, 6, 7, 0]);
}

#[test]
fn delay_is_probed_once_the_path_is_drained() {
    let mut bbr = modelled();
    bbr.probe_rtt(at(0), &acked(0), true, false);
    assert_eq!(bbr.phase(), Phase::ProbeRtt);
    let until = |bbr: &Bbr| match bbr.mode {
        Mode::ProbeRtt { until, .. } => until,
        _ => panic!("it is measuring"),
    };
    let mut bbr = modelled();
    bbr.probe_rtt(at(0), &acked(4 * MTU + 1), true, false);
    assert_eq!(until(&bbr), None);
    bbr.probe_rtt(at(10), &acked(4 * MTU), false, false);
    assert_eq!(until(&bbr), Some(at(210)));
}

#[test]
fn delay_is_not_probed_when_sending_resumes_after_a_pause() {
    let mut bbr = modelled();
    bbr.on_idle(at(20_000), MS * 10_000);
    bbr.on_ack(at(20_000), &acked(0));
    assert_ne!(bbr.phase(), Phase::ProbeRtt);
    bbr.on_ack(at(40_000), &acked(0));
    assert_eq!(bbr.phase(), Phase::ProbeRtt, "the next time it is");
}

#[test]
fn window_that_follows_the_probe_is_bounded_when_the_bandwidth_is_lowered() {
    for (is_full, gain) in [(true, WINDOW_GAIN), (false, HIGH_GAIN)] {
        let mut bbr = modelled();
        bbr.window = 10_000_000;
        bbr.probe_rtt(at(0), &acked(0), true, false);
        bbr.pipe_is_full = is_full;
        bbr.set_bandwidth(1_000_000);
        let Mode::ProbeRtt { window, .. } = bbr.mode else {
            panic!("it is measuring");
        };
        assert_eq!(window, bbr.bound(gain));
        assert_eq!(bbr.window, bbr.bound(gain));
    }
}

#[test]
fn lack_of_data_is_shown_as_a_phase() {
    let mut bbr = modelled();
    assert_eq!(bbr.phase(), Phase::Startup);
    let ack = AckSample {
        app_limited: true,
        ..acked(0)
    };
    bbr.on_ack(at(1), &ack);
    assert_eq!(bbr.phase(), Phase::ApplicationLimited);
    bbr.on_loss(at(2), &lost(MTU, at(1)));
    assert_eq!(bbr.phase(), Phase::Recovery);
    bbr.on_spurious_loss(at(3), at(1));
    assert_eq!(bbr.phase(), Phase::ApplicationLimited);
}

#[test]
fn measurement_of_the_delay_expires_after_ten_seconds() {
    let mut min_rtt = MinRtt::default();
    assert!(!min_rtt.update(at(0), &acked(0)));
    let slower = |millis| {
        let mut ack = acked(0);
        ack.rtt.latest = MS * millis;
        ack
    };
    assert!(!min_rtt.update(at(10_000), &slower(50)));
    assert_eq!(min_rtt.get(), Some(RTT));
    min_rtt.confirm(at(9_000));
    assert!(!min_rtt.update(at(19_000), &slower(50)));
    assert!(min_rtt.update(at(19_001), &slower(50)));
    assert_eq!(min_rtt.get(), Some(MS * 50));
}

#[test]
fn restarted_round_ends_with_a_packet_sent_since() {
    let mut rounds = Rounds::default();
    assert!(rounds.update(&rated(1_000, 0)));
    rounds.restart(5_000);
    assert!(!rounds.update(&rated(1_000, 4_999)));
    assert!(rounds.update(&rated(1_000, 5_000)));
    assert_eq!(rounds.count(), 2);
}

#[test]
fn recovery_conserves_packets_for_a_round_then_grows_like_slow_start() {
    let mut recovery = BbrRecovery::default();
    recovery.on_ack(at(0), 9_000, 9_000, true);
    assert_eq!(recovery.window(), None);
    recovery.on_loss(at(100), at(50), 10_000);
    recovery.on_loss(at(110), at(100), 1);
    assert_eq!(recovery.window(), Some(10_000), "one flight, one reaction");
    recovery.on_ack(at(60), 1_000, 8_000, false);
    assert_eq!(recovery.window(), Some(10_000));
    recovery.on_ack(at(70), 1_000, 8_000, true);
    assert_eq!(recovery.window(), Some(11_000));
    recovery.on_ack(at(100), 1_000, 8_000, false);
    assert_eq!(recovery.window(), Some(12_000));
    recovery.on_ack(at(101), 1_000, 8_000, false);
    assert_eq!(recovery.window(), None, "a packet sent since");
}
