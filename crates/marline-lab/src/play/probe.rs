//! What is seen of the connections that send.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marline::observe::events::{
    BundleAction, BundlePhase, BundleUpdated, CarefulResumePhase, PacketKind,
};
use marline::observe::{Event, Observer};
use marline::{Instant, MakeObserver, PathId};

/// Watches every connection of an endpoint, together.
///
/// A *network fluctuation event* is what the mQUIC paper calls so (section III-B): a loss event, or the
/// signal of rising round-trip times that ends slow start; losses of one congestion event are one.
#[derive(Clone, Debug, Default)]
pub struct Probe(Arc<Mutex<Seen>>);

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Packets sent on all connections.
    pub packets_sent: u64,
    /// Bytes of UDP payload sent.
    pub bytes_sent: u64,
    /// Packets declared lost; probes for the datagram size do not count.
    pub packets_lost: u64,
    /// Of those, packets that were acknowledged after all.
    pub packets_lost_spuriously: u64,
    /// Network fluctuation events.
    pub fluctuations: u64,
    /// The first of them.
    pub first_fluctuation: Option<Fluctuation>,
    /// The largest window, in bytes.
    pub largest_window: u64,
    /// The smallest round-trip time of any sample, in seconds.
    pub min_rtt_s: Option<f64>,
    /// What left before anything sent with it could be acknowledged, if that was asked for.
    pub first_flight: Option<FirstFlight>,
    /// What careful resume did.
    pub careful: SeenCareful,
    /// What the engine did, by the endpoint and the number of the bundle; empty without any.
    pub bundles: BTreeMap<(usize, u64), SeenBundle>,
    /// What changed when, a path of a connection each; only when asked for.
    pub strands: Vec<Strand>,
    /// When an engine did what; only when asked for.
    pub turns: Vec<(Turn, Instant)>,
    /// Endpoints that are watched.
    endpoints: usize,
}

/// 1-RTT packets that are sent up to a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstFlight {
    /// The moment.
    pub until: Instant,
    /// Their numbers: the first and the last.
    pub numbers: Option<(u64, u64)>,
    /// How many were sent.
    pub sent: u64,
    /// How many of them were declared lost.
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

/// What careful resume did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeenCareful {
    /// Jumps to a window that the path had not proven to carry.
    pub jumps: u64,
    /// Retreats.
    pub retreats: u64,
    /// When the first jump was.
    pub jumped: Option<Instant>,
    /// When the latest attempt was over, well or not.
    pub ended: Option<Instant>,
}

/// What was seen of a bundle. Each decision counts once, whatever number of members is told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeenBundle {
    /// Decisions that changed windows, rates or slow start.
    pub decisions: u64,
    /// Fluctuation events that the engine took as part of the one before.
    pub coalesced: u64,
    /// Fluctuation events that counted since the bundle began (i).
    pub fluctuations: u64,
    /// When slow start was given up, if it is.
    pub left_slow_start: Option<Instant>,
}

/// What the engine of a bundle did to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Windows and slow start were synchronized.
    Synchronized,
    /// Slow start was given up.
    Exited,
    /// Windows or rates were made equal.
    Equalized,
    /// All backed off as one connection would.
    BackedOff,
}

impl Turn {
    /// What `action` is, if it does something to all.
    const fn of(action: BundleAction) -> Option<Self> {
        match action {
            BundleAction::Synchronized => Some(Self::Synchronized),
            BundleAction::Exited => Some(Self::Exited),
            BundleAction::Equalized | BundleAction::EqualizedRates => Some(Self::Equalized),
            BundleAction::BackedOff => Some(Self::BackedOff),
            BundleAction::None | BundleAction::Split | BundleAction::Coalesced => None,
        }
    }

    /// In a word.
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
    /// When.
    pub at: Instant,
    /// Packets sent before it, counted from when the probe was last reset.
    pub packets_sent: u64,
    /// The window just before it, in bytes.
    pub window: u64,
}

/// The course of one path of one connection: times and values.
#[derive(Clone, Debug, Default)]
pub struct Strand {
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
    /// Makes the observers. With `watch`, they keep what changed when.
    pub fn observers(&self, watch: bool) -> MakeObserver {
        let probe = self.clone();
        let endpoint = {
            let mut seen = probe.seen();
            seen.endpoints += 1;
            seen.endpoints
        };
        Arc::new(move |_| {
            let first = Lane::new(PathId::INITIAL, watch, &mut probe.seen());
            Some(Box::new(Watcher {
                probe: probe.clone(),
                endpoint,
                watch,
                lanes: vec![first],
                counted_at: None,
            }) as Box<dyn Observer>)
        })
    }

    /// Counts from here on: what came before, such as handshakes, is forgotten. Where bundles stand is not.
    pub fn reset(&self) {
        let mut seen = self.seen();
        let mut bundles = std::mem::take(&mut seen.bundles);
        for bundle in bundles.values_mut() {
            (bundle.decisions, bundle.coalesced) = (0, 0);
        }
        *seen = Seen {
            bundles,
            strands: std::mem::take(&mut seen.strands),
            turns: std::mem::take(&mut seen.turns),
            endpoints: seen.endpoints,
            ..Seen::default()
        };
    }

    /// Has what is sent from here on `until` that moment count as the first flight.
    pub fn begin_flight(&self, until: Instant) {
        self.seen().first_flight = Some(FirstFlight {
            until,
            numbers: None,
            sent: 0,
            lost: 0,
        });
    }

    /// What was seen.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches one connection.
struct Watcher {
    probe: Probe,
    endpoint: usize,
    watch: bool,
    /// By when their path was first heard of.
    lanes: Vec<Lane>,
    /// When the last fluctuation event was counted: a loss that ends slow start is one event.
    counted_at: Option<Instant>,
}

/// What is known of a path.
struct Lane {
    path: PathId,
    strand: Option<usize>,
    window: u64,
    out_of_slow_start: bool,
}

impl Lane {
    fn new(path: PathId, watch: bool, seen: &mut Seen) -> Self {
        let strand = watch.then(|| {
            seen.strands.push(Strand {
                path,
                ..Strand::default()
            });
            seen.strands.len() - 1
        });
        Self {
            path,
            strand,
            window: 0,
            out_of_slow_start: false,
        }
    }
}

impl Watcher {
    fn lane(&mut self, path: PathId, seen: &mut Seen) -> &mut Lane {
        let known = self.lanes.iter().position(|lane| lane.path == path);
        let at = known.unwrap_or_else(|| {
            self.lanes.push(Lane::new(path, self.watch, seen));
            self.lanes.len() - 1
        });
        &mut self.lanes[at]
    }

    fn fluctuation(&mut self, seen: &mut Seen, now: Instant, path: PathId) {
        if self.counted_at.replace(now) == Some(now) {
            return;
        }
        seen.fluctuations += 1;
        let packets_sent = seen.packets_sent;
        let window = self.lane(path, seen).window;
        seen.first_fluctuation.get_or_insert(Fluctuation {
            at: now,
            packets_sent,
            window,
        });
    }

    /// The engine decided something, in which this connection took part.
    fn decided(&mut self, seen: &mut Seen, now: Instant, decision: &BundleUpdated<'_>) {
        if decision.phase == BundlePhase::CongestionAvoidance {
            // Who is made to leave slow start has met no event of its own.
            let is_made_to = decision.affected != Some(decision.own);
            let lane = self.lane(decision.path.unwrap_or(PathId::INITIAL), seen);
            lane.out_of_slow_start |= is_made_to;
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
        // All that took part are told; one is enough.
        if decision.own != 0 {
            return;
        }
        if decision.action == BundleAction::Coalesced {
            bundle.coalesced += 1;
        }
        if let Some(turn) = Turn::of(decision.action) {
            bundle.decisions += 1;
            if self.watch {
                seen.turns.push((turn, now));
            }
        }
    }
}

impl Observer for Watcher {
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
                if let Some(strand) = self.lane(packet.path, &mut seen).strand {
                    seen.strands[strand].losses.push(now);
                }
            }
            Event::SpuriousLoss(_) => seen.packets_lost_spuriously += 1,
            Event::CongestionStateUpdated(state) if state.new == "recovery" => {
                self.fluctuation(&mut seen, now, state.path);
            }
            Event::MetricsUpdated(metrics) => {
                let is_out = metrics.ssthresh.is_some();
                let lane = self.lane(metrics.path, &mut seen);
                // The engine of a bundle may have put it back.
                let was_out = std::mem::replace(&mut lane.out_of_slow_start, is_out);
                if is_out && !was_out {
                    self.fluctuation(&mut seen, now, metrics.path);
                }
                let lane = self.lane(metrics.path, &mut seen);
                lane.window = metrics.congestion_window;
                let strand = lane.strand;
                seen.largest_window = seen.largest_window.max(metrics.congestion_window);
                if let Some(rtt) = metrics.min_rtt {
                    let rtt = rtt.as_secs_f64();
                    seen.min_rtt_s = Some(seen.min_rtt_s.map_or(rtt, |least| least.min(rtt)));
                }
                if let Some(strand) = strand {
                    let strand = &mut seen.strands[strand];
                    push(&mut strand.window, now, metrics.congestion_window as f64);
                    push(&mut strand.in_flight, now, metrics.bytes_in_flight as f64);
                    if let Some(rtt) = metrics.latest_rtt {
                        push(&mut strand.rtt, now, rtt.as_secs_f64());
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
            Event::BundleUpdated(decision) => self.decided(&mut seen, now, decision),
            _ => {}
        }
    }
}

/// Adds a value unless nothing changed.
fn push(series: &mut Vec<(Instant, f64)>, now: Instant, value: f64) {
    if series.last().is_none_or(|&(_, last)| last != value) {
        series.push((now, value));
    }
}

#[cfg(test)]
mod tests;
