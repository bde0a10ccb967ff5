//! What a pool knows of its pipes, and how it decides.

use std::sync::Arc;
use std::time::Duration;

use marline::{Instant, PathStats};
use slab::Slab;

use super::super::cba::{
    CbaConfig, Conditions, Maximum, NetworkAwareness, ObjectProgress, Pick, PipeCounts, PipeLoad,
    Request, Srtt, available_burst, creation, history_allows_spare, margin, maximum, pick,
};
use super::super::rates::RateWindow;
use super::super::{
    ObjectKind, ObjectKinds, PipePolicy, PipeState, PipesConfig, RadioSignal, RoundRobin,
};
use crate::client::Connection;

/// The mean size of a packet in bytes, if a connection has not received any.
const PACKET_BYTES: f64 = 1200.0;

/// Samples of SINR that are made up for: the mean depends little on those before.
const MAX_MISSED_SAMPLES: u32 = 16;

/// The pipes of a pool.
pub(super) struct State {
    policy: Policy,
    kinds: ObjectKinds,
    signal: Arc<dyn RadioSignal>,
    pipes: Vec<Pipe>,
    /// Pipes with objects, in the order of their creation.
    created: Vec<usize>,
    history: History,
}

/// A policy and what it remembers.
enum Policy {
    RoundRobin(RoundRobin),
    BurstAware(BurstAware),
}

/// What CBA knows of radio and connection.
struct BurstAware {
    config: CbaConfig,
    radio: NetworkAwareness,
    /// When SINR is sampled next.
    next_sample: Option<Instant>,
    srtt: Srtt,
}

/// One pipe.
struct Pipe {
    state: PipeState,
    /// Objects that are not complete.
    objects: Slab<ObjectProgress>,
    /// Those that are, together.
    done: ObjectProgress,
    /// How many were assigned.
    count: u64,
    assigned: RateWindow,
    delivered: RateWindow,
    /// Mu in bytes per second, of the last second in which something arrived.
    service: Option<f64>,
    /// The last round-trip time that was taken as a sample.
    last_rtt: Option<Duration>,
    /// Since when it has carried nothing.
    idle_since: Option<Instant>,
    /// Whether something waits to close it when it is idle for long enough.
    has_timer: bool,
}

/// Losses that a client can see: gaps in the numbers of the server's packets, and its own packets that were lost.
#[derive(Default)]
struct Losses {
    sent: u64,
    lost: u64,
    peer_sent: u64,
    peer_missing: u64,
}

impl Losses {
    fn count(&mut self, path: &PathStats) {
        self.sent += path.packets_sent;
        self.lost += path.packets_lost;
        self.peer_sent += path.peer_packets_sent;
        self.peer_missing += path.peer_packets_missing;
    }

    /// The worse of both directions. A single number that is missing may have been skipped by the server.
    fn share(&self) -> Option<f64> {
        let share = |lost: u64, sent: u64| (sent > 0).then(|| lost as f64 / sent as f64);
        let missing = self.peer_missing.saturating_sub(1);
        let down = share(missing, self.peer_sent);
        let up = share(self.lost, self.sent);
        [down, up].into_iter().flatten().reduce(f64::max)
    }
}

/// How many objects a fetch or page load requests.
#[derive(Default)]
struct History {
    sessions: u32,
    mean: Option<f64>,
    current: u64,
}

/// An object of a pipe.
#[derive(Clone, Copy)]
pub(super) struct ObjectId {
    pub(super) pipe: usize,
    key: usize,
}

/// The decision for an object.
pub(super) struct Placed {
    pub(super) object: ObjectId,
    /// The pipe to open in advance.
    pub(super) spare: Option<usize>,
}

/// What becomes of an idle pipe.
pub(super) enum Closing {
    /// It carries objects again, or is closed.
    Never,
    /// It has not been idle for long enough; this is left.
    Later(Duration),
    /// These are to be closed.
    Now(Vec<usize>),
}

/// What a pipe has carried.
pub(super) struct PipeTotal {
    pub(super) state: PipeState,
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

impl State {
    pub(super) fn new(config: &PipesConfig, most: usize) -> Self {
        Self {
            policy: match config.policy {
                PipePolicy::RoundRobin(rr) => Policy::RoundRobin(RoundRobin::new(rr)),
                PipePolicy::BurstAware(cba) => Policy::BurstAware(BurstAware {
                    config: cba,
                    radio: NetworkAwareness::new(cba.mean),
                    next_sample: None,
                    srtt: Srtt::new(cba.gamma),
                }),
            },
            kinds: config.kinds.clone(),
            signal: Arc::clone(&config.signal),
            pipes: (0..most).map(|_| Pipe::new()).collect(),
            created: Vec::new(),
            history: History::default(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pipes.iter().all(|pipe| pipe.objects.is_empty())
    }

    /// The first of the pipes that have objects, for policies whose next choice depends on what is measured there.
    pub(super) fn first_pipe(&self) -> Option<usize> {
        match self.policy {
            Policy::RoundRobin(_) => None,
            Policy::BurstAware(_) => self.created.first().copied(),
        }
    }

    /// Chooses a pipe for an object of `kind`; `connections` has the open connection of each pipe.
    pub(super) fn place(
        &mut self,
        now: Instant,
        kind: ObjectKind,
        connections: &[Option<Arc<Connection>>],
    ) -> Placed {
        self.history.current += 1;
        let mut spare = None;
        let pipe = match &mut self.policy {
            Policy::RoundRobin(rr) => rr.assign().pipe,
            Policy::BurstAware(cba) => {
                let most = cba.most(now, &*self.signal, &mut self.pipes, connections);
                let request = Request {
                    priority: self.kinds.priority(kind),
                    bytes: None,
                    foreground: cba.config.foreground,
                };
                let alphas: Vec<_> = (self.created.iter())
                    .map(|&pipe| {
                        self.pipes[pipe].alpha(&cba.config, now, connections[pipe].as_deref())
                    })
                    .collect();
                let picked = pick(&alphas, most, request, cba.config.high_rule);
                let counts = PipeCounts {
                    created: self.created.len(),
                    spare: self
                        .pipes
                        .iter()
                        .filter(|pipe| pipe.state == PipeState::Spare)
                        .count(),
                    // A background application has one pipe.
                    most: if cba.config.foreground { most } else { 1 },
                };
                let decision = creation(cba.config.creation, counts, picked == Pick::Create);
                let place = |wanted| self.pipes.iter().position(|pipe| pipe.state == wanted);
                let new = match (decision.promote, decision.establish) {
                    (true, _) => place(PipeState::Spare),
                    (_, true) => place(PipeState::Closed),
                    _ => None,
                };
                let pipe = match picked {
                    Pick::Use(index) => self.created[index],
                    // Only if there is room for one.
                    Pick::Create => new.unwrap_or(0),
                };
                self.pipes[pipe].state = PipeState::Used;
                let created = self.created.len() + usize::from(new.is_some());
                let allowed =
                    !cba.config.history || history_allows_spare(self.history.mean, created);
                if decision.precreate && allowed {
                    let closed = |pipe: &Pipe| pipe.state == PipeState::Closed;
                    spare = self.pipes.iter().position(closed);
                }
                pipe
            }
        };
        if let Some(spare) = spare {
            self.pipes[spare].state = PipeState::Spare;
        }
        if !self.created.contains(&pipe) {
            self.created.push(pipe);
        }
        let key = self.pipes[pipe].begin(now, kind.usual_bytes());
        Placed {
            object: ObjectId { pipe, key },
            spare,
        }
    }

    pub(super) fn on_size(&mut self, object: ObjectId, bytes: u64) {
        if let Some(progress) = self.pipes[object.pipe].objects.get_mut(object.key) {
            progress.size = bytes;
        }
    }

    pub(super) fn on_received(&mut self, object: ObjectId, bytes: u64, now: Instant) {
        let pipe = &mut self.pipes[object.pipe];
        if let Some(progress) = pipe.objects.get_mut(object.key) {
            progress.received += bytes;
            progress.size = progress.size.max(progress.received);
        }
        pipe.delivered.add(now, bytes);
    }

    /// An object is complete, or has failed. Returns whether its pipe is idle now and nothing waits to close it.
    pub(super) fn on_done(&mut self, object: ObjectId, now: Instant) -> bool {
        let pipe = &mut self.pipes[object.pipe];
        if let Some(progress) = pipe.objects.try_remove(object.key) {
            pipe.done.size += progress.received;
            pipe.done.received += progress.received;
        }
        let is_idle = pipe.objects.is_empty();
        pipe.idle_since = is_idle.then_some(now);
        let needs_timer = is_idle && !pipe.has_timer;
        pipe.has_timer |= needs_timer;
        needs_timer
    }

    /// A pipe could not be opened in advance.
    pub(super) fn spare_failed(&mut self, pipe: usize) {
        let pipe = &mut self.pipes[pipe];
        if pipe.state == PipeState::Spare {
            pipe.state = PipeState::Closed;
        }
    }

    /// Closes `pipe` if it has been idle for `limit`, and spare ones with the last.
    pub(super) fn close_idle(&mut self, pipe: usize, now: Instant, limit: Duration) -> Closing {
        let idle = match self.pipes[pipe].idle_since {
            Some(since) if self.pipes[pipe].state == PipeState::Used => now.saturating_since(since),
            _ => {
                self.pipes[pipe].has_timer = false;
                return Closing::Never;
            }
        };
        if idle < limit {
            return Closing::Later(limit - idle);
        }
        self.created.retain(|one| *one != pipe);
        let mut closed = vec![pipe];
        if self.created.is_empty() {
            let is_spare = |one: &usize| self.pipes[*one].state == PipeState::Spare;
            closed.extend((0..self.pipes.len()).filter(is_spare));
        }
        for &pipe in &closed {
            self.pipes[pipe].on_closed();
        }
        Closing::Now(closed)
    }

    pub(super) fn end_session(&mut self) {
        let requests = std::mem::take(&mut self.history.current) as f64;
        self.history.sessions = self.history.sessions.saturating_add(1);
        let mean = self.history.mean.unwrap_or(requests);
        self.history.mean = Some(mean + (requests - mean) / f64::from(self.history.sessions));
    }

    pub(super) fn totals(&self) -> Vec<PipeTotal> {
        let total = |pipe: &Pipe| PipeTotal {
            state: pipe.state,
            objects: pipe.count,
            bytes: pipe.done.received
                + pipe
                    .objects
                    .iter()
                    .map(|(_, object)| object.received)
                    .sum::<u64>(),
        };
        self.pipes.iter().map(total).collect()
    }
}

impl BurstAware {
    /// Pipe_max by what is known now.
    fn most(
        &mut self,
        now: Instant,
        signal: &dyn RadioSignal,
        pipes: &mut [Pipe],
        connections: &[Option<Arc<Connection>>],
    ) -> usize {
        self.sample_radio(now, signal);
        let mut losses = Losses::default();
        for (pipe, connection) in pipes.iter_mut().zip(connections) {
            let Some(quic) = connection.as_ref().and_then(|connection| connection.quic()) else {
                continue;
            };
            let stats = quic.stats();
            for path in &stats.paths {
                losses.count(path);
            }
            let rtt = stats.paths.first().and_then(|path| path.latest_rtt);
            if rtt.is_some() && rtt != pipe.last_rtt {
                pipe.last_rtt = rtt;
                self.srtt
                    .on_sample(rtt.unwrap_or_default().as_secs_f64() * 1e3);
            }
        }
        let conditions = Conditions {
            na_db: self.radio.current(),
            srtt_ms: self.srtt.ms(),
            loss: losses.share(),
        };
        let Maximum { pipes: most, .. } = maximum(self.config.maximum_rule(), conditions);
        most.min(pipes.len())
    }

    /// Takes the samples that are due.
    fn sample_radio(&mut self, now: Instant, signal: &dyn RadioSignal) {
        let mut next = self.next_sample.unwrap_or(now);
        let missed = now.saturating_since(next).as_nanos() / self.config.interval.as_nanos().max(1);
        let missed = u32::try_from(missed).unwrap_or(u32::MAX);
        next += self.config.interval * missed.saturating_sub(MAX_MISSED_SAMPLES);
        while next <= now {
            if let Some(sinr_db) = signal.sample(next).and_then(|sample| sample.sinr_db) {
                self.radio.on_sample(sinr_db);
            }
            next += self.config.interval;
        }
        self.next_sample = Some(next);
    }
}

impl Pipe {
    fn new() -> Self {
        Self {
            state: PipeState::Closed,
            objects: Slab::new(),
            done: ObjectProgress {
                size: 0,
                received: 0,
                done: true,
            },
            count: 0,
            assigned: RateWindow::default(),
            delivered: RateWindow::default(),
            service: None,
            last_rtt: None,
            idle_since: None,
            has_timer: false,
        }
    }

    /// An object that has `size` bytes, as far as is known.
    fn begin(&mut self, now: Instant, size: u64) -> usize {
        self.state = PipeState::Used;
        self.idle_since = None;
        self.count += 1;
        self.assigned.add(now, size);
        self.objects.insert(ObjectProgress {
            size,
            received: 0,
            done: false,
        })
    }

    fn on_closed(&mut self) {
        self.state = PipeState::Closed;
        self.idle_since = None;
        self.has_timer = false;
        self.last_rtt = None;
        self.service = None;
    }

    /// What it may take beside its queue; `None` if more arrives for it than it serves.
    fn alpha(
        &mut self,
        config: &CbaConfig,
        now: Instant,
        connection: Option<&Connection>,
    ) -> Option<f64> {
        let done = std::iter::once(self.done);
        let objects = self.objects.iter().map(|(_, object)| *object);
        let objects: Vec<_> = objects.chain(done).collect();
        if let Some(rate) = self.delivered.per_second(now) {
            self.service = Some(rate);
        }
        let packet_bytes = connection.and_then(packet_bytes).unwrap_or(PACKET_BYTES);
        let load = PipeLoad {
            available: available_burst(config.buffer, config.mode, &objects),
            // Nothing is known of a queue before something was delivered.
            arrival_pps: match self.service {
                Some(_) => self.assigned.per_second(now).unwrap_or(0.0) / packet_bytes,
                None => 0.0,
            },
            service_pps: self.service.unwrap_or(0.0) / packet_bytes,
            packet_bytes,
            beta: config.beta,
            unit: config.unit,
        };
        margin(load).alpha
    }
}

/// The mean size of the datagrams that a connection has received.
fn packet_bytes(connection: &Connection) -> Option<f64> {
    let received = connection.quic()?.stats().udp_received;
    (received.datagrams > 0).then(|| received.bytes as f64 / received.datagrams as f64)
}
