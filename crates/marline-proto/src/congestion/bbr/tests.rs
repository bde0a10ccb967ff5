use super::*;

const MTU: u64 = 1200;
const RTT: Duration = Duration::from_millis(40);

/// A bottleneck of `rate` bytes per second behind `RTT`, one ACK per packet.
struct Bottleneck {
    bbr: Bbr,
    rate: u64,
    /// Of the empty path.
    rtt: Duration,
    now: Instant,
    delivered: u64,
    in_flight: std::collections::VecDeque<Packet>,
    /// When the queue is empty.
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
                ..self.rtt()
            },
            rtt_updated: true,
            rate: Some(RateSample {
                delivered: self.delivered - packet.delivered,
                interval: self.now - packet.delivered_at,
                prior_delivered: packet.delivered,
                delivered_total: self.delivered,
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

/// Packets that were under way measure the old rate and do not bring it back.
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

/// Startup neither ends because its bandwidth was set, nor lasts for good because it is set often.
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
