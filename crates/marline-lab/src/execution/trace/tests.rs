use std::sync::atomic::{AtomicU64, Ordering};

use marline::observe::events::{
    CongestionStateUpdated, Ecn, LossTrigger, MetricsUpdated, PacketLost, PacketNumberSpace,
    PacketReceived, PacketSent, PacketsAcked,
};

use super::*;

/// A STREAM frame.
const DATA: &[u8] = &[0x08, 0x00, 0x41];

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn observer(make: &MakeObserver) -> Box<dyn Observer> {
    let connection = marline::ConnectionInfo {
        side: marline::Side::Server,
        original_destination: marline::ConnectionId::default(),
        remote: ([10, 0, 0, 2], 4433).into(),
    };
    make(&connection).unwrap()
}

/// A transfer whose network has a queue that the test sets.
struct Bench {
    recorder: Recorder,
    queued: Arc<AtomicU64>,
    sender: Box<dyn Observer>,
    receiver: Box<dyn Observer>,
}

impl Bench {
    fn new() -> Self {
        let queued = Arc::new(AtomicU64::new(0));
        let read = Arc::clone(&queued);
        let gauge = QueueGauge::new(move || read.load(Ordering::Relaxed));
        let recorder = Recorder::new(Some(gauge));
        recorder.begin(at(0));
        Self {
            sender: observer(&recorder.of_sender()),
            receiver: observer(&recorder.of_receiver()),
            recorder,
            queued,
        }
    }

    fn send(&mut self, ms: u64, number: u64, queued: u64) {
        self.queued.store(queued, Ordering::Relaxed);
        let packet = PacketSent {
            path: PathId::INITIAL,
            kind: PacketKind::OneRtt,
            number: Some(number),
            size: 1200,
            payload: DATA,
            ecn: Ecn::NotEct,
            datagram: 0,
            is_mtu_probe: false,
            trigger: None,
        };
        self.sender.on_event(at(ms), &Event::PacketSent(packet));
    }

    fn arrive(&mut self, ms: u64, number: u64) {
        let packet = PacketReceived {
            path: PathId::INITIAL,
            kind: PacketKind::OneRtt,
            number: Some(number),
            size: 1200,
            payload: DATA,
            ecn: Ecn::NotEct,
            datagram: 0,
        };
        self.receiver
            .on_event(at(ms), &Event::PacketReceived(packet));
    }

    fn lose(&mut self, ms: u64, number: u64) {
        let packet = PacketLost {
            path: PathId::INITIAL,
            kind: PacketKind::OneRtt,
            number,
            size: 1200,
            is_mtu_probe: false,
            trigger: LossTrigger::TimeThreshold,
        };
        self.sender.on_event(at(ms), &Event::PacketLost(packet));
    }

    fn ack(&mut self, ms: u64) {
        let acked = PacketsAcked {
            path: PathId::INITIAL,
            space: PacketNumberSpace::ApplicationData,
            numbers: &[0],
        };
        self.sender.on_event(at(ms), &Event::PacketsAcked(acked));
    }

    fn window(&mut self, ms: u64, bytes: u64, ssthresh: Option<u64>) {
        let metrics = MetricsUpdated {
            congestion_window: bytes,
            ssthresh,
            smoothed_rtt: Duration::from_millis(20),
            ..MetricsUpdated::default()
        };
        self.sender
            .on_event(at(ms), &Event::MetricsUpdated(metrics));
    }

    fn enter(&mut self, ms: u64, phase: &'static str) {
        let state = CongestionStateUpdated {
            path: PathId::INITIAL,
            old: None,
            new: phase,
            trigger: None,
        };
        let event = Event::CongestionStateUpdated(state);
        self.sender.on_event(at(ms), &event);
    }

    fn metrics(&self, ms: u64) -> BTreeMap<String, f64> {
        self.recorder.metrics(at(ms))
    }
}

#[test]
fn a_loss_is_spurious_if_the_packet_arrived_at_any_time() {
    let mut bench = Bench::new();
    for number in 0..4 {
        bench.send(number, number, 0);
    }
    bench.arrive(10, 3);
    bench.lose(30, 0);
    bench.lose(30, 1);
    bench.window(30, 6000, Some(6000));
    bench.enter(30, "recovery");
    bench.lose(50, 2);
    bench.enter(50, "recovery");
    // Two of the three were only late.
    bench.arrive(60, 0);
    bench.arrive(60, 1);
    let metrics = bench.metrics(100);
    assert_eq!(metrics["declared_lost"], 3.0);
    assert_eq!(metrics["spurious_losses"], 2.0);
    assert_eq!(metrics["recoveries"], 2.0);
    assert_eq!(metrics["spurious_recoveries"], 1.0);
    assert_eq!(metrics["slow_start_exits"], 1.0);
    assert_eq!(metrics["spurious_slow_start_exits"], 1.0);
    assert_eq!(metrics["loss_probability"], 0.25);
    assert_eq!(metrics["out_of_order_probability"], 0.5);
}

#[test]
fn an_exit_by_delay_is_spurious_unless_a_queue_stood_for_a_round_trip() {
    let spurious = |queues: [u64; 3]| {
        let mut bench = Bench::new();
        bench.window(0, 12_000, None);
        // Longer ago than a round trip, it does not matter.
        bench.send(1, 0, 0);
        for (number, queued) in (1..).zip(queues) {
            bench.send(20 + number, number, queued);
        }
        bench.ack(30);
        bench.window(30, 12_000, Some(12_000));
        bench.metrics(100)["spurious_slow_start_exits"]
    };
    assert_eq!(spurious([50_000, 40_000, 60_000]), 0.0);
    assert_eq!(spurious([50_000, 1_500, 60_000]), 1.0);
}

#[test]
fn phases_and_windows_are_those_since_the_beginning() {
    let mut bench = Bench::new();
    bench.window(0, 1, None);
    bench.enter(0, "slow_start");
    bench.recorder.begin(at(100));
    for (ms, window) in [(110, 10_000), (120, 20_000)] {
        bench.ack(ms);
        bench.window(ms, window, None);
        // Not at an acknowledgment.
        bench.window(ms, 1, None);
    }
    bench.enter(175, "congestion_avoidance");
    let metrics = bench.metrics(200);
    assert_eq!(metrics["mean_cwnd_bytes"], 15_000.0);
    assert_eq!(metrics["slow_start_freq_percent"], 75.0);
    assert_eq!(metrics["congestion_avoidance_freq_percent"], 25.0);
    assert!(!metrics.contains_key("mean_delay_us"), "nothing arrived");
}
