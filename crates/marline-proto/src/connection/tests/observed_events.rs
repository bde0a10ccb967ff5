//! Each event is reported exactly once.

use std::collections::{BTreeSet, HashSet};
use std::sync::Mutex;

use super::*;
use crate::config::MakeObserver;
use crate::observe::events::{PacketNumberSpace, StreamHalf, StreamState, TimerChange};
use crate::observe::{Event as Observed, Observer};

/// Contents of the events of all connections of both ends.
#[derive(Debug, Default)]
struct Log {
    sending: Vec<StreamState>,
    receiving: Vec<StreamState>,
    timers: BTreeSet<&'static str>,
    /// Packets reported as acknowledged, by side, space and number.
    acked: HashSet<(Side, PacketNumberSpace, u64)>,
    acked_twice: u64,
    mtu: Option<u16>,
}

struct Recorder {
    side: Side,
    log: Arc<Mutex<Log>>,
}

impl Observer for Recorder {
    fn on_event(&mut self, _now: Instant, event: &Observed<'_>) {
        let mut log = self.log.lock().unwrap();
        match event {
            Observed::StreamStateUpdated(update) => match update.half {
                StreamHalf::Sending => log.sending.push(update.new),
                StreamHalf::Receiving => log.receiving.push(update.new),
            },
            Observed::TimerUpdated(update) => {
                log.timers.insert(match update.change {
                    TimerChange::Set(_) => "set",
                    TimerChange::Expired => "expired",
                    TimerChange::Cancelled => "cancelled",
                });
            }
            Observed::PacketsAcked(acked) => {
                for &number in acked.numbers {
                    if !log.acked.insert((self.side, acked.space, number)) {
                        log.acked_twice += 1;
                    }
                }
            }
            Observed::MtuUpdated(update) => log.mtu = Some(update.new),
            _ => {}
        }
    }
}

/// Observes all connections of a pair from now on.
fn observe(pair: &mut Pair) -> Arc<Mutex<Log>> {
    let log = Arc::<Mutex<Log>>::default();
    let record = |log: &Arc<Mutex<Log>>| -> MakeObserver {
        let log = Arc::clone(log);
        Arc::new(move |info: &ConnectionInfo| {
            let recorder = Recorder {
                side: info.side,
                log: Arc::clone(&log),
            };
            Some(Box::new(recorder) as Box<dyn Observer>)
        })
    };
    pair.client_config.observer = Some(record(&log));
    let observer = record(&log);
    pair.reconfigure_server(move |server, _| server.observer = Some(observer));
    log
}

/// 20 Mbit/s and 40 ms with losses, reordering and CE marks towards the client.
fn lossy() -> Conditions {
    Conditions {
        rate: Some(2_500_000),
        queue: 100_000,
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(8),
        loss: 0.02,
        corrupt: 0.01,
        mark: 0.01,
        ..Conditions::default()
    }
}

#[test]
fn streams_report_each_state_once() {
    let mut pair = Pair::new();
    let log = observe(&mut pair);
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(100_000));
    pair.drive(Duration::from_secs(1));
    let log = log.lock().unwrap();
    use StreamState::*;
    assert_eq!(log.sending, [Ready, Send, DataSent, DataReceived]);
    assert_eq!(log.receiving, [Receive, DataReceived, DataRead]);
}

#[test]
fn a_reset_stream_reports_the_reset_at_both_ends() {
    let mut pair = Pair::new();
    let log = observe(&mut pair);
    let ends = pair.establish();
    let id = pair
        .client(ends.client)
        .open(Dir::Uni)
        .expect("streams are left");
    pair.client(ends.client)
        .write(id, b"to be reset")
        .expect("the window is open");
    pair.drive(Duration::from_millis(100));
    pair.client(ends.client).reset(id, 7).expect("it is open");
    pair.drive(Duration::from_millis(100));
    let now = pair.now;
    let read = pair.server(ends.server).read(|| now, id, 100);
    assert_eq!(read, Err(ReadError::Reset(7)));
    pair.drive(Duration::from_secs(1));
    let log = log.lock().unwrap();
    use StreamState::*;
    assert_eq!(log.sending, [Ready, Send, ResetSent, ResetReceived]);
    assert_eq!(log.receiving, [Receive, ResetReceived, ResetRead]);
}

#[test]
fn packets_are_reported_as_acknowledged_once() {
    let mut pair = Pair::new();
    let log = observe(&mut pair);
    let ends = pair.establish();
    *pair.network.conditions(Direction::ToClient) = lossy();
    download(&mut pair, ends, &pattern(1_000_000));
    let log = log.lock().unwrap();
    assert!(log.acked.len() > 700, "{}", log.acked.len());
    assert_eq!(log.acked_twice, 0);
}

#[test]
fn the_loss_detection_timer_is_reported_as_set_expired_and_cancelled() {
    let mut pair = Pair::new();
    let log = observe(&mut pair);
    let ends = pair.establish();
    *pair.network.conditions(Direction::ToClient) = lossy();
    download(&mut pair, ends, &pattern(1_000_000));
    pair.drive(Duration::from_secs(2));
    let log = log.lock().unwrap();
    let changes: Vec<_> = log.timers.iter().copied().collect();
    assert_eq!(changes, ["cancelled", "expired", "set"]);
}

#[test]
fn the_last_reported_datagram_size_is_that_of_the_statistics() {
    let mut pair = Pair::new();
    let log = observe(&mut pair);
    let ends = pair.establish();
    download(&mut pair, ends, &pattern(1_000_000));
    assert_eq!(
        log.lock().unwrap().mtu,
        Some(pair.server(ends.server).stats().paths[0].mtu)
    );
}

/// Direction and length of each datagram of a transfer with losses. TLS uses its own random bytes, so
/// contents differ from run to run.
fn datagrams(is_observed: bool) -> Vec<(Direction, usize)> {
    let mut pair = Pair::new();
    if is_observed {
        observe(&mut pair);
    }
    let sent = Arc::<Mutex<Vec<_>>>::default();
    let recorded = Arc::clone(&sent);
    pair.network.filter = Some(Box::new(move |direction, datagram| {
        recorded
            .lock()
            .unwrap()
            .push((direction, datagram.bytes.len()));
        false
    }));
    let ends = pair.establish();
    *pair.network.conditions(Direction::ToClient) = lossy();
    download(&mut pair, ends, &pattern(300_000));
    let sent = sent.lock().unwrap();
    sent.clone()
}

#[test]
fn an_observer_does_not_change_what_is_sent() {
    assert_eq!(datagrams(false), datagrams(true));
}
