//! Records a transfer at both ends: the packets that arrived are compared with those that the
//! sender declared lost.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use marline::observe::events::PacketKind;
use marline::observe::{Event, Observer};
use marline::{Instant, MakeObserver, PathId};
use marline_wire::frame::{Frame, Frames};

use crate::features::{Feature, PacketEvent, PhaseSince, Trace, TransferPhase};

/// Sums of so many intervals are compared for [`Dispersion`](crate::stats::Dispersion), beside single ones.
const BURSTS: [BurstWindow; 3] = [
    BurstWindow {
        intervals: 10,
        names: ["server_burstiness_10", "client_burstiness_10"],
    },
    BurstWindow {
        intervals: 50,
        names: ["server_burstiness_50", "client_burstiness_50"],
    },
    BurstWindow {
        intervals: 100,
        names: ["server_burstiness_100", "client_burstiness_100"],
    },
];

struct BurstWindow {
    intervals: usize,
    /// Of the metrics at the server and at the client.
    names: [&'static str; 2],
}

/// At most this many bytes in all queues are no standing queue: two full packets.
const NEARLY_EMPTY: u64 = 3_000;

/// Reads how many bytes are queued in the whole network.
#[derive(Clone)]
pub struct QueueGauge(Arc<dyn Fn() -> u64 + Send + Sync>);

impl QueueGauge {
    /// A gauge that calls `read`.
    pub fn new(read: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }
}

impl fmt::Debug for QueueGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueueGauge")
    }
}

/// Records the packets of one connection at both ends, and the states of its sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder {
    record: Arc<Mutex<Record>>,
    gauge: Option<QueueGauge>,
}

/// A packet with data.
#[derive(Debug)]
struct SentPacket {
    at: Instant,
    arrived: Option<Instant>,
    declared_lost: bool,
}

/// The record of the transfer so far.
#[derive(Debug, Default)]
struct Record {
    begin: Instant,
    sent: Vec<SentPacket>,
    /// By path and packet number: the index in `sent`.
    numbers: HashMap<(PathId, u64), usize>,
    /// Indices of packets in the order in which they arrived.
    received: Vec<usize>,
    acks: u64,
    windows: Vec<f64>,
    phases: Vec<PhaseSince>,
    phase: Option<TransferPhase>,
    /// Whether an acknowledgment arrived since the last window was recorded.
    is_acked: bool,
    has_left_slow_start: bool,
    smoothed_rtt: Duration,
    /// Bytes queued in the network while the sender was in slow start, of the last round trip.
    queued: VecDeque<Queued>,
    /// Packets declared lost at the present moment.
    losing: Losses,
    exits: Vec<SlowStartExit>,
    /// The packets whose losses began each recovery.
    recoveries: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    at: Instant,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Losses {
    at: Instant,
    packets: Vec<usize>,
}

/// The end of slow start.
#[derive(Debug)]
struct SlowStartExit {
    /// The packets whose losses ended it; none if it was the delay.
    losses: Vec<usize>,
    /// Whether the queues of the network were nearly empty at some time in the round trip before; unknown without
    /// a gauge.
    without_queue: Option<bool>,
}

/// An end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Sender,
    Receiver,
}

impl Recorder {
    /// A recorder that reads queues by `gauge`.
    pub(super) fn new(gauge: Option<QueueGauge>) -> Self {
        Self {
            record: Arc::default(),
            gauge,
        }
    }

    /// Makes the observers of the end that sends data.
    pub(super) fn of_sender(&self) -> MakeObserver {
        self.of(End::Sender)
    }

    /// Makes the observers of the other end.
    pub(super) fn of_receiver(&self) -> MakeObserver {
        self.of(End::Receiver)
    }

    fn of(&self, end: End) -> MakeObserver {
        let recorder = self.clone();
        Arc::new(move |_| {
            Some(Box::new(EndRecorder {
                recorder: recorder.clone(),
                end,
            }) as Box<dyn Observer>)
        })
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Discards all packets: the transfer begins at `now`.
    pub(super) fn begin(&self, now: Instant) {
        let mut record = self.record();
        let phase = record.phase;
        *record = Record {
            begin: now,
            phase,
            phases: phase
                .map(|phase| PhaseSince { phase, at_us: 0.0 })
                .into_iter()
                .collect(),
            has_left_slow_start: record.has_left_slow_start,
            smoothed_rtt: record.smoothed_rtt,
            ..Record::default()
        };
    }

    /// The metrics of the transfer, which ended at `now`. Undefined ones are missing.
    pub(super) fn metrics(&self, now: Instant) -> BTreeMap<String, f64> {
        let record = self.record();
        let trace = record.trace(now);
        let mut features = trace.features(1);
        for window in &BURSTS {
            let values = trace.burstiness(window.intervals).into_iter();
            let named = window.names.into_iter().zip(values);
            features.extend(named.map(|(name, value)| Feature { name, value }));
        }
        let mut metrics: BTreeMap<String, f64> = features
            .into_iter()
            .filter_map(|feature| Some((feature.name.to_owned(), feature.value?)))
            .collect();
        let mut count = |name: &str, count: usize| {
            metrics.insert(name.to_owned(), count as f64);
        };
        let lost = || record.sent.iter().filter(|packet| packet.declared_lost);
        count("declared_lost", lost().count());
        count(
            "spurious_losses",
            lost().filter(|packet| packet.arrived.is_some()).count(),
        );
        count("recoveries", record.recoveries.len());
        let had_arrived = |packets: &&Vec<usize>| record.all_arrived(packets);
        let spurious = record.recoveries.iter().filter(had_arrived).count();
        count("spurious_recoveries", spurious);
        count("slow_start_exits", record.exits.len());
        if self.gauge.is_some() {
            let spurious = record.exits.iter().filter(|exit| record.is_spurious(exit));
            count("spurious_slow_start_exits", spurious.count());
        }
        metrics
    }
}

impl Record {
    fn micros(&self, at: Instant) -> f64 {
        at.saturating_since(self.begin).as_nanos() as f64 * 1e-3
    }

    fn trace(&self, now: Instant) -> Trace {
        let passage = |number: usize, at| PacketEvent {
            number: number as u64,
            at_us: self.micros(at),
        };
        let arrived = |&index: &usize| Some(passage(index, self.sent[index].arrived?));
        Trace {
            sent: (0..)
                .zip(&self.sent)
                .map(|(number, packet)| passage(number, packet.at))
                .collect(),
            received: self.received.iter().filter_map(arrived).collect(),
            acks: self.acks,
            windows: self.windows.clone(),
            phases: self.phases.clone(),
            end_us: self.micros(now),
        }
    }

    /// Whether all of these packets, which were declared lost, arrived.
    fn all_arrived(&self, packets: &[usize]) -> bool {
        let mut all = packets.iter().map(|&packet| &self.sent[packet]);
        !packets.is_empty() && all.all(|packet| packet.arrived.is_some())
    }

    /// Whether the bottleneck was not full: there was no standing queue, or the losses were
    /// spurious.
    fn is_spurious(&self, exit: &SlowStartExit) -> bool {
        match exit.losses.is_empty() {
            true => exit.without_queue == Some(true),
            false => self.all_arrived(&exit.losses),
        }
    }

    fn on_sender(&mut self, now: Instant, event: &Event<'_>, gauge: Option<&QueueGauge>) {
        match event {
            Event::PacketSent(packet) if packet.kind == PacketKind::OneRtt => {
                self.watch_queue(now, gauge);
                let (Some(number), true) = (packet.number, has_data(packet.payload)) else {
                    return;
                };
                self.numbers.insert((packet.path, number), self.sent.len());
                self.sent.push(SentPacket {
                    at: now,
                    arrived: None,
                    declared_lost: false,
                });
            }
            Event::PacketsAcked(_) => {
                self.watch_queue(now, gauge);
                self.is_acked = true;
            }
            Event::PacketLost(packet) if packet.kind == PacketKind::OneRtt => {
                if self.losing.at != now {
                    self.losing = Losses {
                        at: now,
                        packets: Vec::new(),
                    };
                }
                if let Some(&index) = self.numbers.get(&(packet.path, packet.number)) {
                    self.sent[index].declared_lost = true;
                    self.losing.packets.push(index);
                }
            }
            Event::MetricsUpdated(metrics) => {
                self.smoothed_rtt = metrics.smoothed_rtt;
                if std::mem::take(&mut self.is_acked) {
                    self.windows.push(metrics.congestion_window as f64);
                }
                if metrics.ssthresh.is_some() && !self.has_left_slow_start {
                    self.watch_queue(now, gauge);
                    self.has_left_slow_start = true;
                    let nearly_empty = |queued: &Queued| queued.bytes <= NEARLY_EMPTY;
                    let exit = SlowStartExit {
                        losses: self.losses_at(now),
                        without_queue: gauge.map(|_| self.queued.iter().any(nearly_empty)),
                    };
                    self.exits.push(exit);
                    self.queued.clear();
                }
            }
            Event::CongestionStateUpdated(state) => {
                let phase = TransferPhase::of(state.new);
                self.phase = Some(phase);
                let at_us = self.micros(now);
                self.phases.push(PhaseSince { phase, at_us });
                if phase == TransferPhase::Recovery {
                    let losses = self.losses_at(now);
                    self.recoveries.push(losses);
                }
            }
            _ => {}
        }
    }

    fn on_receiver(&mut self, now: Instant, event: &Event<'_>) {
        match event {
            Event::PacketReceived(packet) if packet.kind == PacketKind::OneRtt => {
                let number = packet.number.and_then(|number| {
                    let index = self.numbers.get(&(packet.path, number));
                    index.copied()
                });
                if let Some(index) = number
                    && self.sent[index].arrived.is_none()
                {
                    self.sent[index].arrived = Some(now);
                    self.received.push(index);
                }
            }
            Event::PacketSent(packet) if packet.kind == PacketKind::OneRtt => {
                self.acks += u64::from(has(packet.payload, |frame| matches!(frame, Frame::Ack(_))));
            }
            _ => {}
        }
    }

    /// The packets that were declared lost at `now`.
    fn losses_at(&self, now: Instant) -> Vec<usize> {
        match self.losing.at == now {
            true => self.losing.packets.clone(),
            false => Vec::new(),
        }
    }

    /// Samples the queues while the sender is in slow start.
    fn watch_queue(&mut self, now: Instant, gauge: Option<&QueueGauge>) {
        let Some(QueueGauge(read)) = gauge.filter(|_| !self.has_left_slow_start) else {
            return;
        };
        let is_old = |queued: &Queued| now.saturating_since(queued.at) > self.smoothed_rtt;
        while self.queued.front().is_some_and(is_old) {
            self.queued.pop_front();
        }
        self.queued.push_back(Queued {
            at: now,
            bytes: read(),
        });
    }
}

fn has_data(payload: &[u8]) -> bool {
    has(payload, |frame| matches!(frame, Frame::Stream(_)))
}

fn has(payload: &[u8], is_it: impl Fn(&Frame<'_>) -> bool) -> bool {
    Frames::new(payload).flatten().any(|frame| is_it(&frame))
}

struct EndRecorder {
    recorder: Recorder,
    end: End,
}

impl Observer for EndRecorder {
    fn on_event(&mut self, now: Instant, event: &Event<'_>) {
        let mut record = self.recorder.record();
        match self.end {
            End::Sender => record.on_sender(now, event, self.recorder.gauge.as_ref()),
            End::Receiver => record.on_receiver(now, event),
        }
    }
}

#[cfg(test)]
mod tests;
