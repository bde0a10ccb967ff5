//! The open connections of a server, for the page of its metrics address.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::Version;
use marline::{Instant, PathStats};
use serde::Serialize;

use crate::limits;
use crate::server::metrics::version_name;
use crate::server::record::Recorder;

/// The activity of the requests of a connection.
#[derive(Debug, Default)]
pub(in crate::server) struct Activity {
    requests: AtomicU64,
    in_progress: AtomicUsize,
    /// Bytes of content that were passed to the connection.
    bytes: AtomicU64,
}

impl Activity {
    /// A request has arrived.
    pub(in crate::server) fn on_request(&self) {
        self.requests.fetch_add(1, Relaxed);
        self.in_progress.fetch_add(1, Relaxed);
    }

    /// The record of a request is complete.
    pub(in crate::server) fn on_end(&self) {
        self.in_progress.fetch_sub(1, Relaxed);
    }

    /// Content was passed to the connection.
    pub(in crate::server) fn on_passed(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
    }
}

/// The connections that are open.
#[derive(Debug, Default)]
pub(in crate::server) struct Connections(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    live: BTreeMap<u64, Live>,
    next: u64,
    /// When the counters were last read.
    sampled: Option<Instant>,
    /// The page of that time.
    page: Arc<str>,
}

#[derive(Debug)]
struct Live {
    recorder: Weak<Recorder>,
    version: Version,
    opened: Instant,
    before: Counters,
    /// Since the time before that.
    recent: Counters,
}

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    requests: u64,
    bytes: u64,
    packets_sent: u64,
    packets_lost: u64,
}

impl Counters {
    fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            bytes: self.bytes.saturating_sub(before.bytes),
            packets_sent: self.packets_sent.saturating_sub(before.packets_sent),
            packets_lost: self.packets_lost.saturating_sub(before.packets_lost),
        }
    }
}

/// The page of connections.
#[derive(Serialize)]
struct Page<'a> {
    /// The time over which rates were measured.
    interval_s: f64,
    open: usize,
    /// The most active ones first.
    connections: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct Shown<'a> {
    connection: &'a str,
    client: SocketAddr,
    http_version: &'static str,
    age_s: f64,
    requests: u64,
    in_progress: usize,
    requests_per_s: f64,
    /// Of QUIC: of datagrams; of TCP: of content.
    bytes_sent: u64,
    bytes_sent_per_s: f64,
    /// Of the packets that were sent in the interval.
    lost_share: Option<f64>,
    paths: Vec<ShownPath>,
}

#[derive(Serialize)]
struct ShownPath {
    id: u32,
    local: Option<SocketAddr>,
    remote: SocketAddr,
    stage: String,
    rtt_s: Option<f64>,
    min_rtt_s: Option<f64>,
    window_bytes: u64,
    in_flight_bytes: u64,
    pacing_bytes_per_s: Option<u64>,
    packets_sent: u64,
    packets_lost: u64,
    controller: &'static str,
    phase: &'static str,
}

/// A connection at the time of a sample.
struct Sample {
    recorder: Arc<Recorder>,
    version: Version,
    age: Duration,
    now: Counters,
    recent: Counters,
    paths: Vec<PathStats>,
}

impl Connections {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the connection of `recorder` until [`remove`](Self::remove) gets the result.
    pub(in crate::server) fn add(&self, recorder: &Arc<Recorder>, version: Version) -> u64 {
        let opened = recorder.runtime.now();
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        let live = Live {
            recorder: Arc::downgrade(recorder),
            version,
            opened,
            before: Counters::default(),
            recent: Counters::default(),
        };
        state.live.insert(number, live);
        number
    }

    /// The connection is closed.
    pub(in crate::server) fn remove(&self, number: u64) {
        self.state().live.remove(&number);
    }

    /// The connections that are open.
    pub(in crate::server) fn count(&self) -> usize {
        self.state().live.len()
    }

    /// The page, in JSON. Counters are read at most every [`limits::CONNECTIONS_INTERVAL`], however many ask.
    pub(super) fn page(&self, now: Instant) -> Arc<str> {
        let mut state = self.state();
        let interval = match state.sampled {
            Some(before) => now.saturating_since(before),
            None => Duration::MAX,
        };
        if interval >= limits::CONNECTIONS_INTERVAL {
            let interval = state.sampled.map(|_| interval);
            state.page = state.sample(now, interval);
            state.sampled = Some(now);
        }
        Arc::clone(&state.page)
    }
}

impl State {
    /// Reads all counters. Without an interval, rates are those since each connection was opened.
    fn sample(&mut self, now: Instant, interval: Option<Duration>) -> Arc<str> {
        let mut samples = Vec::with_capacity(self.live.len());
        for live in self.live.values_mut() {
            let Some(recorder) = live.recorder.upgrade() else {
                continue;
            };
            let activity = &recorder.activity;
            let stats = recorder.quic.as_ref().map(marline::Connection::stats);
            let counters = Counters {
                requests: activity.requests.load(Relaxed),
                bytes: match &stats {
                    Some(stats) => stats.udp_sent.bytes,
                    None => activity.bytes.load(Relaxed),
                },
                packets_sent: stats
                    .iter()
                    .flat_map(|s| &s.paths)
                    .map(|p| p.packets_sent)
                    .sum(),
                packets_lost: stats
                    .iter()
                    .flat_map(|s| &s.paths)
                    .map(|p| p.packets_lost)
                    .sum(),
            };
            live.recent = counters.since(live.before);
            live.before = counters;
            samples.push(Sample {
                version: live.version,
                age: now.saturating_since(live.opened),
                now: counters,
                recent: live.recent,
                paths: stats.map(|stats| stats.paths).unwrap_or_default(),
                recorder,
            });
        }
        let open = samples.len();
        let in_progress = |sample: &Sample| sample.recorder.activity.in_progress.load(Relaxed);
        samples.sort_by_cached_key(|sample| {
            let Counters {
                bytes, requests, ..
            } = sample.recent;
            std::cmp::Reverse((bytes, requests, in_progress(sample), sample.now.bytes))
        });
        samples.truncate(limits::SHOWN_CONNECTIONS);
        let page = Page {
            interval_s: interval.unwrap_or_default().as_secs_f64(),
            open,
            connections: samples.iter().map(|one| one.show(interval)).collect(),
        };
        serde_json::to_string(&page).unwrap_or_default().into()
    }
}

impl Sample {
    fn show(&self, interval: Option<Duration>) -> Shown<'_> {
        let Self {
            recorder,
            recent,
            now,
            ..
        } = self;
        let over = interval.map_or(self.age, |interval| interval.min(self.age));
        let seconds = over.as_secs_f64().max(0.001);
        let lost = recent.packets_lost as f64 / recent.packets_sent as f64;
        let client = recorder.client;
        Shown {
            connection: &recorder.connection,
            client: SocketAddr::new(client.ip().to_canonical(), client.port()),
            http_version: version_name(self.version),
            age_s: self.age.as_secs_f64(),
            requests: now.requests,
            in_progress: recorder.activity.in_progress.load(Relaxed),
            requests_per_s: recent.requests as f64 / seconds,
            bytes_sent: now.bytes,
            bytes_sent_per_s: recent.bytes as f64 / seconds,
            lost_share: (recent.packets_sent > 0).then(|| lost.min(1.0)),
            paths: self.paths.iter().map(ShownPath::of).collect(),
        }
    }
}

impl ShownPath {
    fn of(stats: &PathStats) -> Self {
        let seconds = |time: Duration| time.as_secs_f64();
        Self {
            id: stats.id.0,
            local: stats.local,
            remote: stats.remote,
            stage: format!("{:?}", stats.stage).to_lowercase(),
            rtt_s: stats.latest_rtt.map(|_| seconds(stats.smoothed_rtt)),
            min_rtt_s: stats.min_rtt.map(seconds),
            window_bytes: stats.congestion_window,
            in_flight_bytes: stats.bytes_in_flight,
            pacing_bytes_per_s: stats.pacing_rate,
            packets_sent: stats.packets_sent,
            packets_lost: stats.packets_lost,
            controller: stats.controller,
            phase: stats.phase,
        }
    }
}
