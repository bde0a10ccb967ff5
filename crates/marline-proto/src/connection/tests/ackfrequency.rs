//! Fewer acknowledgments at the sender's request.

use std::sync::{Arc, Mutex};

use marline_wire::PathId;
use marline_wire::frame::{Frame, Frames};

use super::*;
use crate::ack::AckFrequencyConfig;
use crate::config::{EcnMode, MakeObserver};
use crate::congestion::Algorithm;
use crate::observe::events::{AckFrequencyUpdated, Initiator};
use crate::observe::{Event as Observed, Observer};

/// A download of three megabytes.
#[derive(Debug)]
struct Download {
    /// Datagrams that the client sent.
    acknowledgments: u64,
    /// ACK_FREQUENCY frames that it received.
    requests: u64,
    took: Duration,
}

/// Downloads from a server whose window is reduced by losses.
fn acknowledged(ack_frequency: Option<AckFrequencyConfig>, loss: f64) -> Download {
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            ack_frequency,
            controller: Arc::new(Algorithm::Cubic),
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    });
    pair.network.set(Conditions {
        rate: Some(1_250_000),
        queue: 60_000,
        delay: Duration::from_millis(15),
        ..Conditions::default()
    });
    pair.network.conditions(Direction::ToClient).loss = loss;
    let ends = pair.establish();
    let before = pair.network.counts(Direction::ToServer).sent;
    let took = download(&mut pair, ends, &pattern(3_000_000));
    let requests = pair
        .client(ends.client)
        .stats()
        .frames_received
        .ack_frequency;
    assert_eq!(requests > 0, ack_frequency.is_some());
    Download {
        acknowledgments: pair.network.counts(Direction::ToServer).sent - before,
        requests,
        took,
    }
}

const RARELY: AckFrequencyConfig = AckFrequencyConfig {
    threshold: 19,
    max_delay: Duration::from_millis(20),
    reordering_threshold: 3,
    acks_per_window: 0,
    rtt_fraction: 0.0,
    start_after: 0,
};

#[test]
fn ack_frequency_saves_three_quarters_of_acknowledgments_at_the_same_rate() {
    let usual = acknowledged(None, 0.0);
    let rare = acknowledged(Some(RARELY), 0.0);
    assert!(usual.acknowledgments > 900, "{usual:?}");
    assert!(
        rare.acknowledgments < usual.acknowledgments / 4,
        "{rare:?}, {usual:?}"
    );
    assert!(rare.took < usual.took.mul_f64(1.15), "{rare:?}, {usual:?}");
}

#[test]
fn ack_frequency_slows_a_transfer_with_losses_by_at_most_60_percent() {
    let usual = acknowledged(None, 0.005);
    let rare = acknowledged(Some(RARELY), 0.005);
    assert!(
        rare.acknowledgments < usual.acknowledgments / 2,
        "{rare:?}, {usual:?}"
    );
    assert!(rare.took < usual.took.mul_f64(1.6), "{rare:?}, {usual:?}");
}

#[test]
fn nothing_is_asked_where_marks_are_answered_in_proportion() {
    for (ecn, asks) in [(EcnMode::Classic, true), (EcnMode::L4s, false)] {
        let mut pair = Pair::with(PairConfig {
            server: TransportConfig {
                ecn,
                ..TransportConfig::default()
            },
            ..PairConfig::default()
        });
        let ends = pair.establish();
        download(&mut pair, ends, &pattern(1_000_000));
        let received = pair.client(ends.client).stats().frames_received;
        assert_eq!(received.ack_frequency > 0, asks, "{ecn:?}");
    }
}

/// At most ten packets, and an eighth of the window.
const BY_WINDOW: AckFrequencyConfig = AckFrequencyConfig {
    threshold: 9,
    acks_per_window: 8,
    rtt_fraction: 0.25,
    reordering_threshold: 0,
    ..RARELY
};

#[test]
fn a_request_follows_the_window_and_costs_no_rate() {
    let usual = acknowledged(None, 0.0);
    let rare = acknowledged(Some(BY_WINDOW), 0.0);
    assert!((2..=6).contains(&rare.requests), "{rare:?}");
    assert!(
        rare.acknowledgments < usual.acknowledgments / 2,
        "{rare:?}, {usual:?}"
    );
    assert!(rare.took < usual.took.mul_f64(1.02), "{rare:?}, {usual:?}");
}

#[test]
fn a_window_that_losses_keep_small_is_acknowledged_nearly_as_often_as_without_a_request() {
    let usual = acknowledged(None, 0.02);
    let by_window = acknowledged(Some(BY_WINDOW), 0.02);
    let whatever = acknowledged(Some(RARELY), 0.02);
    assert!(
        by_window.took < usual.took.mul_f64(1.1),
        "{by_window:?}, {usual:?}"
    );
    assert!(
        whatever.took > by_window.took,
        "{whatever:?}, {by_window:?}"
    );
}

#[test]
fn a_peer_without_the_extension_is_asked_nothing() {
    for takes_requests in [true, false] {
        let mut pair = Pair::with(PairConfig {
            server: TransportConfig {
                ack_frequency: Some(AckFrequencyConfig {
                    start_after: 50,
                    ..BY_WINDOW
                }),
                ..TransportConfig::default()
            },
            ..PairConfig::default()
        });
        let ends = pair.establish();
        if !takes_requests {
            pair.server(ends.server)
                .establishment
                .peer_mut()
                .min_ack_delay = None;
        }
        download(&mut pair, ends, &pattern(300_000));
        let received = pair.client(ends.client).stats().frames_received;
        assert_eq!(received.ack_frequency > 0, takes_requests);
    }
}

/// The requests reported by an end.
#[derive(Debug, Default)]
struct Reported {
    requests: Vec<AckFrequencyUpdated>,
    /// ACK_FREQUENCY frames that it sent.
    frames_sent: usize,
    /// Packets that it sent.
    packets_sent: usize,
}

#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Reported>>);

impl Reports {
    fn make(&self) -> MakeObserver {
        let reports = self.clone();
        Arc::new(move |_: &ConnectionInfo| Some(Box::new(reports.clone()) as Box<dyn Observer>))
    }

    /// The thresholds requested by `initiator`, in order.
    fn thresholds(&self, initiator: Initiator) -> Vec<u64> {
        let reported = self.0.lock().unwrap();
        let threshold = |request: &AckFrequencyUpdated| {
            assert_eq!(request.initiator, initiator);
            assert_eq!(request.path, PathId::INITIAL);
            assert!(request.requested_max_ack_delay > Duration::ZERO);
            assert_eq!(request.reordering_threshold, 0);
            request.ack_eliciting_threshold
        };
        reported.requests.iter().map(threshold).collect()
    }
}

impl Observer for Reports {
    fn on_event(&mut self, _now: Instant, event: &Observed<'_>) {
        let mut reported = self.0.lock().unwrap();
        match event {
            Observed::AckFrequencyUpdated(update) => reported.requests.push(*update),
            Observed::PacketSent(packet) => {
                reported.packets_sent += 1;
                let frames = Frames::new(packet.payload);
                let is_request = |frame: &Frame<'_>| matches!(frame, Frame::AckFrequency(_));
                reported.frames_sent += frames.flatten().filter(is_request).count();
            }
            _ => {}
        }
    }
}

/// Drops the next two packets with a request, each with the batch in which it is sent.
fn lose_requests(pair: &mut Pair, at_server: &Reports) {
    let reports = at_server.clone();
    let (mut frames, mut passed) = {
        let reported = reports.0.lock().unwrap();
        (reported.frames_sent, reported.packets_sent)
    };
    let (last, mut lost_until) = (frames + 2, 0);
    pair.network.filter = Some(Box::new(move |direction, _| {
        if direction == Direction::ToServer {
            return false;
        }
        // All packets of a batch are reported before the first of them is in the network.
        let reported = reports.0.lock().unwrap();
        if reported.frames_sent > frames && frames < last {
            lost_until = reported.packets_sent;
        }
        frames = reported.frames_sent;
        passed += 1;
        passed <= lost_until
    }));
}

#[test]
fn both_ends_report_a_request_once_however_often_it_is_sent() {
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            ack_frequency: Some(BY_WINDOW),
            ..TransportConfig::default()
        },
        ..PairConfig::default()
    });
    let [at_client, at_server] = [Reports::default(), Reports::default()];
    pair.client_config.observer = Some(at_client.make());
    let observer = at_server.make();
    pair.reconfigure_server(move |server, _| server.observer = Some(observer));
    pair.network.set(Conditions {
        delay: Duration::from_millis(15),
        ..Conditions::default()
    });
    let ends = pair.establish();
    pair.flush();
    lose_requests(&mut pair, &at_server);
    download(&mut pair, ends, &pattern(400_000));
    let sent = at_server.thresholds(Initiator::Local);
    let received = at_client.thresholds(Initiator::Remote);
    let frames = at_server.0.lock().unwrap().frames_sent;
    assert!(
        frames > sent.len(),
        "none was sent again: {frames}, {sent:?}"
    );
    assert!(received.len() > 1, "{received:?}");
    let mut sent = sent.iter();
    let in_order = received.iter().all(|one| sent.any(|other| other == one));
    assert!(in_order, "{received:?}");
}
