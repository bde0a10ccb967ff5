//! The state of a pool's pipes, and its decisions.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use marline::Instant;
use slab::Slab;

use super::losses::Losses;
use super::rates::RateWindow;
use crate::client::Connection;
use crate::pipes::cba::{
    CbaConfig, Conditions, Maximum, NetworkAwareness, ObjectProgress, Pick, PipeCounts, PipeLoad,
    Request, Srtt, available_burst, creation, history_allows_spare, margin, maximum, pick,
};
use crate::pipes::{
    ObjectKind, ObjectKinds, PipePolicy, PipeState, PipesConfig, RadioSignal, RoundRobin, RrConfig,
};

/// The mean size of a packet in bytes, if a connection has not received any.
const PACKET_BYTES: f64 = 1200.0;

/// The most missed samples of SINR that are caught up on: the mean depends little on earlier ones.
const MAX_MISSED_SAMPLES: u32 = 16;

/// The progress of a pipe before its first object is complete.
const NOTHING: ObjectProgress = ObjectProgress {
    size: 0,
    received: 0,
    done: true,
};

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

/// A policy and its state.
enum Policy {
    RoundRobin(RoundRobin),
    BurstAware(BurstAware),
}

/// The state of CBA: radio and connection.
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
    /// The sum of the complete objects of its connection.
    done: ObjectProgress,
    /// Objects that were assigned since the pool was created.
    count: u64,
    /// Bytes that have arrived since the pool was created.
    bytes: u64,
    assigned: RateWindow,
    delivered: RateWindow,
    /// Mu in bytes per second, of the last second in which something arrived.
    service: Option<f64>,
    /// The last round-trip time that was taken as a sample.
    last_rtt: Option<Duration>,
    /// The time since which it has carried nothing.
    idle_since: Option<Instant>,
    /// Whether something waits to close it when it is idle for long enough.
    has_timer: bool,
}

/// The numbers of objects that fetches or page loads request.
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

/// The outcome of the check of an idle pipe.
pub(super) enum Closing {
    /// It carries objects again, or is closed.
    Never,
    /// It has not been idle for long enough; this is the time left.
    Later(Duration),
    /// These are to be closed.
    Now(Vec<usize>),
}

/// The totals of a pipe.
pub(super) struct PipeTotal {
    pub(super) state: PipeState,
    pub(super) objects: u64,
    pub(super) bytes: u64,
    /// Whether it carries nothing now.
    pub(super) is_idle: bool,
}

impl State {
    /// The state of a pool without an open pipe, which may open `most`.
    pub(super) fn new(config: &PipesConfig, most: usize) -> Self {
        Self {
            policy: match config.policy {
                PipePolicy::RoundRobin(_) => {
                    Policy::RoundRobin(RoundRobin::new(RrConfig { pipes: most }))
                }
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
                let mut load = |&pipe: &usize| {
                    self.pipes[pipe].load(&cba.config, now, connections[pipe].as_deref())
                };
                let loads: Vec<_> = self.created.iter().map(&mut load).collect();
                let picked = cba.pick(&loads, most, request);
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
                    // Only if another pipe may be opened.
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
        pipe.bytes += bytes;
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

    /// Whether `pipe` is neither used nor spare.
    pub(super) fn is_closed(&self, pipe: usize) -> bool {
        self.pipes[pipe].state == PipeState::Closed
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

    /// Ends a session that has requested something, if all pipes are closed.
    pub(super) fn end_session_if_closed(&mut self) {
        if self.created.is_empty() && self.history.current > 0 {
            self.end_session();
        }
    }

    pub(super) fn totals(&self) -> Vec<PipeTotal> {
        let total = |pipe: &Pipe| PipeTotal {
            state: pipe.state,
            objects: pipe.count,
            bytes: pipe.bytes,
            is_idle: pipe.objects.is_empty(),
        };
        self.pipes.iter().map(total).collect()
    }
}

impl BurstAware {
    /// Chooses among pipes with `loads`. If more arrives for each than it serves, and there may be no further one, it is
    /// the one with the most room in its buffer: their queues cannot be compared.
    fn pick(&self, loads: &[PipeLoad], most: usize, request: Request) -> Pick {
        let alphas: Vec<_> = loads.iter().map(|load| margin(*load).alpha).collect();
        let all_full = alphas.iter().all(Option::is_none);
        if request.foreground && all_full && most <= loads.len() {
            // Of equals, the earliest.
            let room = |pipe: &usize| (loads[*pipe].available, Reverse(*pipe));
            if let Some(roomiest) = (0..loads.len()).max_by_key(room) {
                return Pick::Use(roomiest);
            }
        }
        pick(&alphas, most, request, self.config.high_rule)
    }

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
            done: NOTHING,
            count: 0,
            bytes: 0,
            assigned: RateWindow::default(),
            delivered: RateWindow::default(),
            service: None,
            last_rtt: None,
            idle_since: None,
            has_timer: false,
        }
    }

    /// An object that has `size` bytes, as far as known.
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

    /// Its next connection has carried nothing.
    fn on_closed(&mut self) {
        self.state = PipeState::Closed;
        self.done = NOTHING;
        self.idle_since = None;
        self.has_timer = false;
        self.last_rtt = None;
        self.service = None;
    }

    /// Its arrival and service rates, and the bytes that it can take.
    fn load(
        &mut self,
        config: &CbaConfig,
        now: Instant,
        connection: Option<&Connection>,
    ) -> PipeLoad {
        let done = std::iter::once(self.done);
        let objects = self.objects.iter().map(|(_, object)| *object);
        let objects: Vec<_> = objects.chain(done).collect();
        if let Some(rate) = self.delivered.per_second(now) {
            self.service = Some(rate);
        }
        let packet_bytes = connection.and_then(packet_bytes).unwrap_or(PACKET_BYTES);
        PipeLoad {
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
        }
    }
}

/// The mean size of the datagrams that a connection has received.
fn packet_bytes(connection: &Connection) -> Option<f64> {
    let received = connection.quic()?.stats().udp_received;
    (received.datagrams > 0).then(|| received.bytes as f64 / received.datagrams as f64)
}
