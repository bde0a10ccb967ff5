//! Observes the connections that send.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use marline::observe::events::{
    BundleAction, BundlePhase, BundleUpdated, CarefulResumePhase, PacketKind,
};
use marline::observe::{Event, Observer};
use marline::{Instant, MakeObserver, PathId};

/// Observes all connections of an endpoint together.
///
/// A *network fluctuation event* is defined by the mQUIC paper (section III-B): a loss event, or the
/// signal of rising round-trip times that ends slow start; the losses of one congestion event count once.
#[derive(Clone, Debug, Default)]
pub struct Probe(Arc<Mutex<Seen>>);

/// The observations so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Packets sent on all connections.
    pub packets_sent: u64,
    /// Bytes of UDP payload sent.
    pub bytes_sent: u64,
    /// Packets declared lost; probes for the datagram size do not count.
    pub packets_lost: u64,
    /// Of those, packets that were acknowledged later.
    pub packets_lost_spuriously: u64,
    /// Network fluctuation events.
    pub fluctuations: u64,
    /// The first of them.
    pub first_fluctuation: Option<Fluctuation>,
    /// The largest window, in bytes.
    pub largest_window: u64,
    /// The smallest round-trip time of any sample, in seconds.
    pub min_rtt_s: Option<f64>,
    /// Round-trip times, one for each acknowledgment that gave a sample; only while they are
    /// [collected](Probe::collect_rtts).
    pub rtts: Option<RoundTrips>,
    /// The first flight, if [`Probe::begin_flight`] was called.
    pub first_flight: Option<FirstFlight>,
    /// Events of careful resume.
    pub careful: SeenCareful,
    /// Events of bundle engines, by the endpoint and the number of the bundle.
    pub bundles: BTreeMap<(usize, u64), SeenBundle>,
    /// Time series of each path of each connection; only if they are recorded.
    pub paths: Vec<PathSeries>,
    /// Actions of bundle engines and their times; only if they are recorded.
    pub engine_actions: Vec<(EngineAction, Instant)>,
    /// Number of observed endpoints.
    endpoints: usize,
}

/// The number of samples of each round-trip time, to a tenth of a millisecond, so that long runs take no more memory
/// than short ones.
#[derive(Clone, Debug, Default)]
pub struct RoundTrips(BTreeMap<u64, u64>);

impl RoundTrips {
    /// Nanoseconds of a step.
    const STEP: u128 = 100_000;

    fn add(&mut self, rtt: Duration) {
        let step = u64::try_from(rtt.as_nanos() / Self::STEP).unwrap_or(u64::MAX);
        *self.0.entry(step).or_default() += 1;
    }

    /// The round-trip time that `part` of them do not exceed, in milliseconds; `None` if there are none.
    pub fn quantile_ms(&self, part: f64) -> Option<f64> {
        let all: u64 = self.0.values().sum();
        let wanted = (all as f64 * part).ceil().max(1.0) as u64;
        let mut seen = 0;
        let step = self.0.iter().find(|(_, count)| {
            seen += **count;
            seen >= wanted
        });
        step.map(|(step, _)| (*step as f64 + 0.5) * 0.1)
    }
}

/// The 1-RTT packets of a first flight: those sent before any of them could be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstFlight {
    /// When it ends.
    pub until: Instant,
    /// The first and the last packet number.
    pub numbers: Option<(u64, u64)>,
    /// The number of packets sent.
    pub sent: u64,
    /// The number of them that were declared lost.
    pub lost: u64,
}

impl FirstFlight {
    fn on_sent(&mut self, now: Instant, number: u64) {
        if now < self.until {
            let first = self.numbers.map_or(number, |(first, _)| first);
            self.numbers = Some((first, number));
            self.sent += 1;
        }
    }

    fn on_lost(&mut self, number: u64) {
        let is_mine = |(first, last)| (first..=last).contains(&number);
        self.lost += u64::from(self.numbers.is_some_and(is_mine));
    }
}

/// Events of careful resume.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeenCareful {
    /// Entries of the Unvalidated Phase.
    pub jumps: u64,
    /// Entries of the Safe Retreat Phase.
    pub retreats: u64,
    /// When the first jump was.
    pub jumped: Option<Instant>,
    /// When the latest attempt ended, successful or not.
    pub ended: Option<Instant>,
}

/// Observations of a bundle. Each decision counts once, regardless of how many members it affects.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeenBundle {
    /// Decisions that changed windows, rates or slow start.
    pub decisions: u64,
    /// Fluctuation events that the engine coalesced with the one before.
    pub coalesced: u64,
    /// Fluctuation events since the bundle began, coalesced ones excepted (i of the paper).
    pub fluctuations: u64,
    /// When the bundle left slow start, unless it is in slow start.
    pub left_slow_start: Option<Instant>,
}

/// An action of a bundle's engine that affects all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineAction {
    /// Windows and slow start were synchronized.
    Synchronized,
    /// Slow start was left.
    Exited,
    /// Windows or rates were made equal.
    Equalized,
    /// All backed off as one connection would.
    BackedOff,
}

impl EngineAction {
    /// The engine action of `action`, if it affects all members.
    const fn of(action: BundleAction) -> Option<Self> {
        match action {
            BundleAction::Synchronized => Some(Self::Synchronized),
            BundleAction::Exited => Some(Self::Exited),
            BundleAction::Equalized | BundleAction::EqualizedRates => Some(Self::Equalized),
            BundleAction::BackedOff => Some(Self::BackedOff),
            BundleAction::None
            | BundleAction::Split
            | BundleAction::Coalesced
            | BundleAction::Shared => None,
        }
    }

    /// Its name in series.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Synchronized => "synchronized",
            Self::Exited => "exited",
            Self::Equalized => "equalized",
            Self::BackedOff => "backed_off",
        }
    }
}

/// A network fluctuation event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fluctuation {
    /// The time.
    pub at: Instant,
    /// Packets sent before it, counted from when the probe was last reset.
    pub packets_sent: u64,
    /// The window just before it, in bytes.
    pub window: u64,
}

/// Time series of one path of one connection.
#[derive(Clone, Debug, Default)]
pub struct PathSeries {
    /// The ID of the path.
    pub path: PathId,
    /// The congestion window, in bytes.
    pub window: Vec<(Instant, f64)>,
    /// Bytes in flight.
    pub in_flight: Vec<(Instant, f64)>,
    /// Round-trip time samples, in seconds.
    pub rtt: Vec<(Instant, f64)>,
    /// When packets were declared lost.
    pub losses: Vec<Instant>,
}

impl Probe {
    /// Makes the observers. With `watch`, they record time series.
    pub fn observers(&self, watch: bool) -> MakeObserver {
        let probe = self.clone();
        let endpoint = {
            let mut seen = probe.seen();
            seen.endpoints += 1;
            seen.endpoints
        };
        Arc::new(move |_| {
            let first = PathState::new(PathId::INITIAL, watch, &mut probe.seen());
            Some(Box::new(ConnectionProbe {
                probe: probe.clone(),
                endpoint,
                watch,
                states: vec![first],
                counted_at: None,
            }) as Box<dyn Observer>)
        })
    }

    /// Resets all counters, to exclude handshakes for example. The states of bundles are kept.
    pub fn reset(&self) {
        let mut seen = self.seen();
        let mut bundles = std::mem::take(&mut seen.bundles);
        for bundle in bundles.values_mut() {
            (bundle.decisions, bundle.coalesced) = (0, 0);
        }
        *seen = Seen {
            bundles,
            paths: std::mem::take(&mut seen.paths),
            engine_actions: std::mem::take(&mut seen.engine_actions),
            endpoints: seen.endpoints,
            ..Seen::default()
        };
    }

    /// Counts packets sent from now `until` then as the first flight.
    pub fn begin_flight(&self, until: Instant) {
        self.seen().first_flight = Some(FirstFlight {
            until,
            numbers: None,
            sent: 0,
            lost: 0,
        });
    }

    /// Collects round-trip times from now on.
    pub fn collect_rtts(&self) {
        self.seen().rtts = Some(RoundTrips::default());
    }

    /// The observations so far.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Observes one connection.
struct ConnectionProbe {
    probe: Probe,
    endpoint: usize,
    watch: bool,
    /// In the order in which paths were first observed.
    states: Vec<PathState>,
    /// When the last fluctuation event was counted: a loss that ends slow start is one event.
    counted_at: Option<Instant>,
}

/// The state of a path.
struct PathState {
    path: PathId,
    series: Option<usize>,
    window: u64,
    out_of_slow_start: bool,
}

impl PathState {
    fn new(path: PathId, watch: bool, seen: &mut Seen) -> Self {
        let series = watch.then(|| {
            seen.paths.push(PathSeries {
                path,
                ..PathSeries::default()
            });
            seen.paths.len() - 1
        });
        Self {
            path,
            series,
            window: 0,
            out_of_slow_start: false,
        }
    }
}

impl ConnectionProbe {
    fn state(&mut self, path: PathId, seen: &mut Seen) -> &mut PathState {
        let known = self.states.iter().position(|state| state.path == path);
        let at = known.unwrap_or_else(|| {
            self.states.push(PathState::new(path, self.watch, seen));
            self.states.len() - 1
        });
        &mut self.states[at]
    }

    fn fluctuation(&mut self, seen: &mut Seen, now: Instant, path: PathId) {
        if self.counted_at.replace(now) == Some(now) {
            return;
        }
        seen.fluctuations += 1;
        let packets_sent = seen.packets_sent;
        let window = self.state(path, seen).window;
        seen.first_fluctuation.get_or_insert(Fluctuation {
            at: now,
            packets_sent,
            window,
        });
    }

    /// The engine decided on a bundle to which this connection belongs.
    fn decided(&mut self, seen: &mut Seen, now: Instant, decision: &BundleUpdated<'_>) {
        if decision.phase == BundlePhase::CongestionAvoidance {
            // A member that the engine makes leave slow start had no event of its own.
            let is_made_to = decision.affected != Some(decision.own);
            let state = self.state(decision.path.unwrap_or(PathId::INITIAL), seen);
            state.out_of_slow_start |= is_made_to;
        }
        let key = (self.endpoint, decision.bundle);
        let bundle = seen.bundles.entry(key).or_default();
        bundle.fluctuations = decision.fluctuations;
        match decision.phase {
            BundlePhase::SlowStart => bundle.left_slow_start = None,
            BundlePhase::CongestionAvoidance => {
                bundle.left_slow_start.get_or_insert(now);
            }
        }
        // Every member reports the decision; only the first counts.
        if decision.own != 0 {
            return;
        }
        if decision.action == BundleAction::Coalesced {
            bundle.coalesced += 1;
        }
        if let Some(action) = EngineAction::of(decision.action) {
            bundle.decisions += 1;
            if self.watch {
                seen.engine_actions.push((action, now));
            }
        }
    }
}

impl Observer for ConnectionProbe {
    fn on_event(&mut self, now: Instant, event: &Event<'_>) {
        let probe = self.probe.clone();
        let mut seen = probe.seen();
        match event {
            Event::PacketSent(packet) => {
                seen.packets_sent += 1;
                seen.bytes_sent += packet.size as u64;
                if let (PacketKind::OneRtt, Some(number), Some(flight)) =
                    (packet.kind, packet.number, &mut seen.first_flight)
                {
                    flight.on_sent(now, number);
                }
            }
            Event::PacketLost(packet) if !packet.is_mtu_probe => {
                seen.packets_lost += 1;
                if let (PacketKind::OneRtt, Some(flight)) = (packet.kind, &mut seen.first_flight) {
                    flight.on_lost(packet.number);
                }
                if let Some(series) = self.state(packet.path, &mut seen).series {
                    seen.paths[series].losses.push(now);
                }
            }
            Event::SpuriousLoss(_) => seen.packets_lost_spuriously += 1,
            Event::CongestionStateUpdated(state) if state.new == "recovery" => {
                self.fluctuation(&mut seen, now, state.path);
            }
            Event::MetricsUpdated(metrics) => {
                let is_out = metrics.ssthresh.is_some();
                let state = self.state(metrics.path, &mut seen);
                // The engine of a bundle may have returned it to slow start.
                let was_out = std::mem::replace(&mut state.out_of_slow_start, is_out);
                if is_out && !was_out {
                    self.fluctuation(&mut seen, now, metrics.path);
                }
                let state = self.state(metrics.path, &mut seen);
                state.window = metrics.congestion_window;
                let series = state.series;
                seen.largest_window = seen.largest_window.max(metrics.congestion_window);
                if let Some(rtt) = metrics.min_rtt {
                    let rtt = rtt.as_secs_f64();
                    seen.min_rtt_s = Some(seen.min_rtt_s.map_or(rtt, |least| least.min(rtt)));
                }
                if let (Some(rtts), Some(rtt)) = (&mut seen.rtts, metrics.latest_rtt) {
                    rtts.add(rtt);
                }
                if let Some(series) = series {
                    let series = &mut seen.paths[series];
                    push(&mut series.window, now, metrics.congestion_window as f64);
                    push(&mut series.in_flight, now, metrics.bytes_in_flight as f64);
                    if let Some(rtt) = metrics.latest_rtt {
                        push(&mut series.rtt, now, rtt.as_secs_f64());
                    }
                }
            }
            Event::CarefulResumePhaseUpdated(update) => match update.new {
                CarefulResumePhase::Unvalidated => {
                    seen.careful.jumps += 1;
                    seen.careful.jumped.get_or_insert(now);
                }
                CarefulResumePhase::SafeRetreat => seen.careful.retreats += 1,
                CarefulResumePhase::Normal => seen.careful.ended = Some(now),
                CarefulResumePhase::Reconnaissance | CarefulResumePhase::Validating => {}
            },
            Event::ConnectionClosed(_) => {
                for series in self.states.iter().filter_map(|state| state.series) {
                    push(&mut seen.paths[series].window, now, 0.0);
                    push(&mut seen.paths[series].in_flight, now, 0.0);
                }
            }
            Event::BundleUpdated(decision) => self.decided(&mut seen, now, decision),
            _ => {}
        }
    }
}

/// Adds a value if it differs from the last.
fn push(series: &mut Vec<(Instant, f64)>, now: Instant, value: f64) {
    if series.last().is_none_or(|&(_, last)| last != value) {
        series.push((now, value));
    }
}

#[cfg(test)]
mod tests;
