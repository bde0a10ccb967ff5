//! Metrics of transfers, and the ideal performance of links.

use marline::{Instant, PathId};
use marline_link::LinkSpec;

use super::{Probe, Seen, SeenBundle, Testbed};
use crate::scenario::{
    Background, Direction, LinkDef, Outcome, Settings, Topology, Traffic, Watched,
};

/// The ideal performance of the links of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Ideal {
    /// The path on which connections begin.
    pub first: PathCapacity,
    /// The other paths that they use.
    pub others: Vec<PathCapacity>,
}

/// The capacity of the links of one path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathCapacity {
    /// Round-trip time of a small packet without any queue, in seconds.
    pub rtt_s: f64,
    /// Rate of the bottleneck link towards the client, in bits per second, including headers.
    pub rate_bps: f64,
}

/// Bytes of an IP packet for each byte of content in it, in full datagrams: IPv4 and UDP, the short
/// header with its tag, and the header of a STREAM frame.
const OVERHEAD: f64 = 1480.0 / 1412.0;

/// The ideal performance of the links between client and server, if they are a chain with fixed limits: without queues,
/// losses and other traffic.
pub fn ideal(topology: &Topology) -> Option<Ideal> {
    let is_chain = topology.links.len() == topology.hosts.len() + topology.routers.len() - 1
        && topology.hosts.len() == 2;
    if !is_chain {
        return None;
    }
    let wires = topology.links.iter().filter(|link| link.channel.is_none());
    let mut ideal = of_chain(wires)?;
    for channel in &topology.channels {
        // Its links share the time.
        let channel = channel.read(topology).ok()?;
        if !channel.spec.has_fixed_limits() {
            return None;
        }
        let rates = channel.spec.unloaded_rates();
        let seconds_per_bit: f64 = rates.map(|rate| 1.0 / rate).sum();
        ideal.rate_bps = ideal.rate_bps.min(1.0 / seconds_per_bit);
    }
    Some(Ideal::of(ideal))
}

fn of_chain<'a>(links: impl IntoIterator<Item = &'a LinkDef>) -> Option<PathCapacity> {
    let mut ideal = PathCapacity {
        rtt_s: 0.0,
        rate_bps: f64::INFINITY,
    };
    for link in links {
        let spec = link.spec.parse::<LinkSpec>().ok()?;
        let unloaded = spec.has_fixed_limits().then(|| spec.unloaded())?;
        ideal.rtt_s += unloaded.rtt.as_secs_f64();
        ideal.rate_bps = ideal.rate_bps.min(unloaded.down.unwrap_or(f64::INFINITY));
    }
    Some(ideal)
}

/// The same of `settings`: of the path on which connections begin and the others that they use. `None` if links
/// change, or have no fixed limits.
pub fn ideal_of(settings: &Settings) -> Option<Ideal> {
    if !settings.changes.is_empty() {
        return None;
    }
    let Some(path) = settings.path else {
        return ideal(&settings.topology);
    };
    let links = &settings.topology.links;
    let capacity = |number: usize| of_chain(links.get(number.checked_sub(1)?..number)?);
    let last = match settings.is_multipath() {
        true => links.len(),
        false => 0,
    };
    Some(Ideal {
        first: capacity(path)?,
        others: (1..=last)
            .filter(|&number| number != path)
            .map(capacity)
            .collect::<Option<_>>()?,
    })
}

/// The goodput that the links would allow, in Mbit/s; `None` if it is not known or not limited.
pub(super) fn capacity_mbps(testbed: &Testbed) -> Option<f64> {
    let ideal = testbed.ideal.as_ref()?;
    Some(ideal.goodput_bps() * 1e-6).filter(|capacity| capacity.is_finite())
}

/// Whether all content goes to the client over links of constant rates, so that it shares one capacity.
pub(super) fn has_shared_capacity(settings: &Settings) -> bool {
    let is_steady = |link: &LinkDef| {
        let spec = link.spec.parse::<LinkSpec>();
        // The links of a channel have no rates of their own.
        link.channel.is_some() || spec.is_ok_and(|spec| spec.has_steady_rate())
    };
    let is_to_client = |background: &Background| {
        let direction = match &background.traffic {
            Traffic::Flows { direction, .. } => *direction,
            Traffic::Tcp(flows) => flows.direction,
            // They are not counted.
            Traffic::OnOff { .. } | Traffic::Poisson { .. } => return true,
        };
        let receiver = match direction {
            Direction::Down => &background.from,
            Direction::Up => &background.to,
        };
        receiver == Topology::CLIENT
    };
    settings.topology.links.iter().all(is_steady) && settings.background.iter().all(is_to_client)
}

impl Ideal {
    /// Of one path alone.
    pub const fn of(path: PathCapacity) -> Self {
        Self {
            first: path,
            others: Vec::new(),
        }
    }

    fn paths(&self) -> impl Iterator<Item = &PathCapacity> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Bits of content per second.
    pub fn goodput_bps(&self) -> f64 {
        self.paths().map(|path| path.rate_bps).sum::<f64>() / OVERHEAD
    }

    /// Seconds to fetch `bytes`, when the request leaves after `handshakes` round trips. It takes the
    /// path of the smallest round-trip time, and the answer all paths at once.
    pub fn seconds(&self, bytes: u64, handshakes: u32) -> f64 {
        let bits = bytes as f64 * OVERHEAD * 8.0;
        if self.others.is_empty() {
            let round_trips = f64::from(handshakes) + 1.0;
            return round_trips * self.first.rtt_s + bits / self.first.rate_bps;
        }
        let shortest = self
            .paths()
            .map(|path| path.rtt_s)
            .fold(f64::INFINITY, f64::min);
        let asked = f64::from(handshakes) * self.first.rtt_s + shortest / 2.0;
        let mut begins: Vec<(f64, f64)> = self
            .paths()
            .map(|path| (asked + path.rtt_s / 2.0, path.rate_bps))
            .collect();
        begins.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (mut rate, mut left, mut at) = (0.0, bits, 0.0);
        for (begin, more) in begins {
            let until = left - rate * (begin - at);
            if until <= 0.0 {
                break;
            }
            (left, at, rate) = (until, begin, rate + more);
        }
        at + left / rate
    }
}

/// The measurement of a transfer.
pub(super) struct Measured {
    /// When it started.
    pub(super) start: Instant,
    /// Until the last byte had arrived, in seconds.
    pub(super) completion_s: f64,
    /// Bytes of content.
    pub(super) bytes: u64,
    /// Round trips that the handshake costs, if it is part of the time.
    pub(super) handshakes: u32,
}

impl Measured {
    /// The outcome, with the observations of the sender by `probe`.
    pub(super) fn outcome(&self, probe: &Probe, ideal: Option<&Ideal>, watch: bool) -> Outcome {
        let seen = probe.seen();
        let mut outcome = Outcome::default();
        count(&seen, &mut outcome);
        let mut metric = |name: &str, value: f64| {
            outcome.metrics.insert(name.to_owned(), value);
        };
        metric("completion_s", self.completion_s);
        metric(
            "goodput_mbps",
            self.bytes as f64 * 8e-6 / self.completion_s.max(1e-9),
        );
        // Without any fluctuation, the end of the transfer counts as the first.
        let (at_s, packets, window) = match seen.first_fluctuation {
            Some(first) => (
                first.at.saturating_since(self.start).as_secs_f64(),
                first.packets_sent,
                first.window,
            ),
            None => (self.completion_s, seen.packets_sent, seen.largest_window),
        };
        metric("first_fluctuation_s", at_s);
        metric("first_fluctuation_packets", packets as f64);
        metric("first_fluctuation_window_bytes", window as f64);
        if !seen.bundles.is_empty() {
            let left = seen.bundles.values().filter_map(|b| b.left_slow_start);
            // As above: slow start that does not end counts until the end of the transfer.
            let left_s = left.min().map_or(self.completion_s, |first| {
                first.saturating_since(self.start).as_secs_f64()
            });
            metric("bundle_left_slow_start_s", left_s);
        }
        if let Some(ideal) = ideal {
            metric("ideal_s", ideal.seconds(self.bytes, self.handshakes));
        }
        drop(seen);
        if watch {
            outcome.series = Some(watched(probe, self.start));
        }
        outcome
    }
}

/// Adds the sender's counters.
pub(super) fn count(seen: &Seen, outcome: &mut Outcome) {
    let mut metric = |name: &str, value: f64| {
        outcome.metrics.insert(name.to_owned(), value);
    };
    metric("packets_sent", seen.packets_sent as f64);
    metric("packets_lost", seen.packets_lost as f64);
    metric(
        "packets_lost_spuriously",
        seen.packets_lost_spuriously as f64,
    );
    metric(
        "loss_ratio",
        seen.packets_lost as f64 / seen.packets_sent.max(1) as f64,
    );
    metric("largest_window_bytes", seen.largest_window as f64);
    metric(
        "fluctuations",
        f64::from(u32::try_from(seen.fluctuations).unwrap_or(u32::MAX)),
    );
    if let Some(rtt) = seen.min_rtt_s {
        metric("min_rtt_s", rtt);
    }
    for (name, part) in [("rtt_median_ms", 0.5), ("rtt_p99_ms", 0.99)] {
        if let Some(rtt) = seen.rtts.as_ref().and_then(|rtts| rtts.quantile_ms(part)) {
            metric(name, rtt);
        }
    }
    if !seen.bundles.is_empty() {
        let sum = |count: fn(&SeenBundle) -> u64| {
            let counts = seen.bundles.values().map(count);
            counts.sum::<u64>() as f64
        };
        metric("bundle_decisions", sum(|bundle| bundle.decisions));
        metric("bundle_fluctuations", sum(|bundle| bundle.fluctuations));
        metric("coalesced", sum(|bundle| bundle.coalesced));
    }
}

/// The series of every path of every connection; times count from `start`.
pub(super) fn watched(probe: &Probe, start: Instant) -> Watched {
    let seconds = |at: Instant| (at.as_nanos() as f64 - start.as_nanos() as f64) * 1e-9;
    let mut watched = Watched {
        start_s: start.as_nanos() as f64 * 1e-9,
        ..Watched::default()
    };
    let seen = probe.seen();
    let several = seen.paths.len() > 1;
    // Each connection has a path 0.
    let is_one = seen
        .paths
        .iter()
        .filter(|path| path.path == PathId::INITIAL)
        .count()
        == 1;
    for (number, path) in seen.paths.iter().enumerate() {
        let name = |what: &str| match (several, is_one) {
            (true, true) => format!("{what} path ID {}", path.path),
            (true, false) => format!("{what} {number}"),
            (false, _) => what.to_owned(),
        };
        for (what, series) in [
            ("window_bytes", &path.window),
            ("in_flight_bytes", &path.in_flight),
            ("rtt_s", &path.rtt),
        ] {
            let points = series.iter().map(|&(at, value)| (seconds(at), value));
            watched.series.insert(name(what), points.collect());
        }
        let losses = path.losses.iter().map(|&at| seconds(at));
        watched.moments.insert(name("lost"), losses.collect());
    }
    for &(action, at) in &seen.engine_actions {
        let moments = watched.moments.entry(action.name().to_owned());
        moments.or_default().push(seconds(at));
    }
    watched
}

#[cfg(test)]
mod tests;
