//! Measurements of links with packets of known sizes at known times.

use std::time::Duration;

use marline_link::spec::{Radio, SpecError};
use marline_link::{DropReason, Ecn, LinkSpec, Seed, Time};
use rand::RngExt;

use super::line::{End, Flow, Line};
use super::quantity::Stations;
use super::{Quantity, Subject, experiment};
use crate::scenario::RunError;
use crate::stats::Summary;

/// Bytes of a ping, IP header included.
const PING: u32 = 84;
/// Bytes of a full packet, IP header included.
const FULL: u32 = 1500;
/// The UDP payload of a full packet, in bytes.
const PAYLOAD: u32 = 1472;
/// Bytes of an acknowledgment, IP header included.
const ACK: u32 = 64;
/// Bytes of a packet where only the number of packets matters; more than the size up to which radios treat a
/// packet as an acknowledgment.
const SMALL: u32 = 250;
/// Bytes of a packet that fills an LTE cell, where only the number of bytes matters.
const LARGE: u32 = 60_000;
/// The time for which packets are sent before the measurement.
const WARM_UP: Duration = Duration::from_secs(2);
/// The interval of small packets in each direction.
const PACE: Duration = Duration::from_micros(500);
/// The load on a link without a rate, in bits per second.
const DEFAULT_FEED: u64 = 100_000_000;
/// The rate in bits per second above which large packets fill a link.
const FAST: u64 = 200_000_000;
/// The interval of a sparse flow.
const SPARSE: Duration = Duration::from_millis(97);
/// The time for which a queue settles under a constant load.
const SETTLED: Duration = Duration::from_secs(20);
/// The time for which a queue is flooded.
const FLOOD: Duration = Duration::from_secs(10);
/// Packets of a window.
const WINDOW: u64 = 256;

/// A kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Probe {
    /// Pings, each sent when the one before has returned.
    Pings,
    /// More than the link can carry.
    Download,
    /// The same, with an acknowledgment for every second packet.
    AcknowledgedDownload,
    /// A low constant rate in each direction.
    Trickle,
    /// More than the buffer holds, sent at once in packets of this size.
    Burst { bytes: u32 },
    /// A download over all hops, and one over a single hop.
    Hops,
    /// Five flows that each overload the link, and a sparse one.
    Crowd,
    /// Packets at random times, fewer than the link carries.
    Random,
    /// Packets at constant intervals, slightly more than the link carries.
    Overload,
    /// Twice what the link carries.
    Flood,
    /// Acknowledgments from the client.
    Acks,
    /// Packets in both directions after pauses as long as a NAT keeps mappings.
    Pauses,
    /// Downloads limited by a window, acknowledged often and rarely.
    Window,
    /// Stations of a Wi-Fi channel that always have packets to send to its access point.
    Saturation(Stations),
    /// A run of an experiment in the simulator.
    Experiment,
}

/// The extent of measurements of links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// The number of pings.
    pub(super) pings: u64,
    /// The time for which an LTE cell is loaded, whose rate changes slowly.
    pub(super) cell: Duration,
    /// The time for which a channel is loaded that is busy with other traffic at times.
    pub(super) channel: Duration,
    /// The time for which other links are loaded.
    pub(super) steady: Duration,
    /// The number of packets in each direction of a lossy link.
    pub(super) lossy: u64,
    /// The number of packets in each direction of other links.
    pub(super) lossless: u64,
}

/// The measured quantities.
pub(super) type Measured = Vec<(Quantity, f64)>;

impl Probe {
    /// Measures the link of `subject`.
    ///
    /// # Errors
    /// The link cannot be built, or an experiment fails.
    pub(super) fn measure(
        self,
        subject: &Subject,
        seed: Seed,
        extent: &Extent,
    ) -> Result<Measured, RunError> {
        let failed = |error: SpecError| RunError::Failed(error.to_string());
        let link = subject.link.as_str();
        let spec: LinkSpec = link.parse().map_err(failed)?;
        let draws = seed.of("probe");
        let mut line = Line::new(link, seed)?;
        Ok(match self {
            Self::Pings => pings(&mut line, extent.pings, draws),
            Self::Download => download(&mut line, &Feed::of(&spec, extent), None),
            Self::AcknowledgedDownload => download(&mut line, &Feed::of(&spec, extent), Some(2)),
            Self::Trickle => trickle(&mut line, &spec, extent),
            Self::Burst { bytes } => burst(&mut line, bytes),
            Self::Crowd => crowd(&mut line, &Feed::of(&spec, extent)),
            Self::Random => random(&mut line, &spec, extent.lossy, draws),
            Self::Overload => overload(&mut line, &spec, extent.steady),
            Self::Flood => flood(&mut line, &spec),
            Self::Acks => acks(&mut line, extent.lossless),
            Self::Pauses => pauses(&mut line, &spec),
            Self::Hops => {
                let feed = Feed::of(&spec, extent);
                let all = payload(&download(&mut line, &feed, None));
                let single = spec.with("wifi.hops", "1").map_err(failed)?.to_string();
                let mut line = Line::new(&single, seed)?;
                let one = payload(&download(&mut line, &feed, None));
                vec![(Quantity::HopShare, all / one)]
            }
            Self::Window => {
                let often = window(&mut line, 2, extent.steady);
                let seldom = window(&mut Line::new(link, seed)?, 10, extent.steady);
                vec![(Quantity::FewerAcks, 100.0 * (seldom / often - 1.0))]
            }
            Self::Saturation(stations) => {
                // All else is of the channel.
                let channel = link.strip_prefix("model=wifi,").unwrap_or(link);
                let mut line = Line::of_channel(channel, stations.count(), seed)?;
                let payload = saturation(&mut line, stations, extent.steady);
                vec![(Quantity::Saturated(stations), payload)]
            }
            Self::Experiment => experiment::measure(subject, seed)?,
        })
    }
}

fn payload(measured: &Measured) -> f64 {
    let found = measured
        .iter()
        .find(|(quantity, _)| *quantity == Quantity::Payload);
    found.map_or(f64::NAN, |(_, value)| *value)
}

fn pings(line: &mut Line, count: u64, draws: Seed) -> Measured {
    let mut rng = draws.rng();
    let mut times = Vec::new();
    let mut now = Time::ZERO;
    for number in 0..count {
        // A random interval, so that pings do not synchronize with the period of a radio.
        now += Duration::from_micros(rng.random_range(100_000..150_000));
        let sent = now;
        line.send(now, End::Client, PING, number);
        while let Some(outcome) = line.next(Time::MAX) {
            now = outcome.at;
            if outcome.lost.is_some() {
                continue;
            }
            match outcome.from {
                End::Client => line.send(now, End::Server, PING, number),
                End::Server => times.push(millis(now.since(sent))),
            }
        }
    }
    let Some(summary) = Summary::of(&times, 0, draws) else {
        return Vec::new();
    };
    let late = summary.min.map(|least| {
        let late = times
            .iter()
            .filter(|time| (7.0..15.0).contains(&(**time - least)));
        100.0 * late.count() as f64 / times.len() as f64
    });
    let found = [
        (Quantity::RttMedian, summary.median),
        (Quantity::RttMean, summary.mean),
        (Quantity::RttDeviation, summary.std),
        (Quantity::RttRetried, late),
    ];
    let found = found.into_iter();
    found
        .filter_map(|(quantity, value)| Some((quantity, value?)))
        .collect()
}

/// Five flows of full packets, and one of small packets.
fn crowd(line: &mut Line, feed: &Feed) -> Measured {
    const FLOWS: u32 = 5;
    let Some(gap) = feed.gap else {
        return Vec::new();
    };
    let host = |number: u32| if number < FLOWS { 1 } else { number };
    let flow = |number: u32| Flow {
        number: number.into(),
        hosts: [host(number), 100 + number],
        ..Flow::default()
    };
    let begin = Time::ZERO + WARM_UP;
    let end = begin + feed.time;
    let (mut now, mut bytes) = (Time::ZERO, [0_u64; FLOWS as usize]);
    let (mut sent, mut delays) = (Time::ZERO, Vec::new());
    while now < end {
        for number in 1..=FLOWS {
            line.send_in(flow(number), now, End::Server, feed.bytes, number.into());
        }
        if now.since(sent) >= SPARSE {
            sent = now;
            line.send_in(flow(FLOWS + 1), now, End::Server, PING, 0);
        }
        now += gap;
        while let Some(outcome) = line.next(now) {
            if outcome.lost.is_some() || outcome.at < begin {
                continue;
            }
            let number = usize::try_from(outcome.number).unwrap_or(0);
            match number.checked_sub(1).and_then(|flow| bytes.get_mut(flow)) {
                Some(bytes) => *bytes += u64::from(outcome.bytes),
                None => delays.push(millis(outcome.at.since(sent))),
            }
        }
    }
    let [.., lone] = bytes;
    let all: u64 = bytes.iter().sum();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    vec![
        (Quantity::LoneShare, 100.0 * lone as f64 / all as f64),
        (Quantity::SparseDelay, mean),
    ]
}

/// The delays and losses of full packets from the server.
#[derive(Debug)]
struct Arrivals {
    ecn: Ecn,
    /// When each was sent.
    sent: Vec<Time>,
    /// The time from which sent packets count.
    from: Time,
    /// The sum of the one-way delays of those that arrived, in milliseconds.
    delays: f64,
    arrived: u64,
    lost: u64,
    /// Those of the lost packets that queue management dropped.
    dropped: u64,
    /// Those of the others that a queue marked.
    marked: u64,
}

impl Arrivals {
    /// Counts packets that are sent from `from` on.
    const fn since(from: Time, ecn: Ecn) -> Self {
        Self {
            ecn,
            sent: Vec::new(),
            from,
            delays: 0.0,
            arrived: 0,
            lost: 0,
            dropped: 0,
            marked: 0,
        }
    }

    /// Sends a packet.
    fn send(&mut self, line: &mut Line, now: Time) {
        let flow = Flow {
            ecn: self.ecn,
            ..Flow::default()
        };
        line.send_in(flow, now, End::Server, FULL, self.sent.len() as u64);
        self.sent.push(now);
    }

    /// Counts the packets that arrived or were lost by `until`.
    fn count(&mut self, line: &mut Line, until: Time) {
        while let Some(outcome) = line.next(until) {
            let number = usize::try_from(outcome.number).unwrap_or(usize::MAX);
            let Some(sent) = self.sent.get(number).filter(|sent| **sent >= self.from) else {
                continue;
            };
            match outcome.lost {
                None => {
                    self.arrived += 1;
                    self.marked += u64::from(outcome.is_marked);
                    self.delays += millis(outcome.at.since(*sent));
                }
                Some(reason) => {
                    self.lost += 1;
                    self.dropped += u64::from(reason == DropReason::QueueManagement);
                }
            }
        }
    }

    fn delay(&self) -> f64 {
        self.delays / self.arrived as f64
    }

    fn loss_percent(&self) -> f64 {
        100.0 * self.lost as f64 / (self.lost + self.arrived) as f64
    }
}

/// The time in which a link without a radio transmits a full packet, in seconds.
fn packet_time(spec: &LinkSpec) -> f64 {
    let rate = spec.down.rate.unwrap_or(DEFAULT_FEED);
    f64::from(FULL) * 8.0 / rate as f64
}

/// Poisson arrivals at 80 % of the rate.
fn random(line: &mut Line, spec: &LinkSpec, count: u64, draws: Seed) -> Measured {
    let mean = packet_time(spec) / 0.8;
    let mut rng = draws.rng();
    let (mut now, mut arrivals) = (Time::ZERO, Arrivals::since(Time::ZERO, Ecn::Ect1));
    for _ in 0..count {
        let part: f64 = rng.random();
        now += Duration::from_secs_f64(-mean * libm::log(1.0 - part));
        arrivals.count(line, now);
        arrivals.send(line, now);
    }
    arrivals.count(line, Time::MAX);
    vec![
        (Quantity::RandomDelay, arrivals.delay()),
        (Quantity::RandomLoss, arrivals.loss_percent()),
        (
            Quantity::RandomMarked,
            100.0 * arrivals.marked as f64 / arrivals.arrived as f64,
        ),
    ]
}

/// 105 % of the rate, after the queue has settled.
fn overload(line: &mut Line, spec: &LinkSpec, time: Duration) -> Measured {
    let gap = Duration::from_secs_f64(packet_time(spec) / 1.05);
    let settled = Time::ZERO + SETTLED;
    let (mut now, mut arrivals) = (Time::ZERO, Arrivals::since(settled, Ecn::NotEct));
    while now < settled + time {
        arrivals.send(line, now);
        now += gap;
        arrivals.count(line, now);
    }
    arrivals.count(line, Time::MAX);
    vec![
        (Quantity::OverloadDelay, arrivals.delay()),
        (Quantity::OverloadLoss, arrivals.loss_percent()),
    ]
}

/// Twice the rate.
fn flood(line: &mut Line, spec: &LinkSpec) -> Measured {
    let gap = Duration::from_secs_f64(packet_time(spec) / 2.0);
    let (mut now, mut arrivals) = (Time::ZERO, Arrivals::since(Time::ZERO, Ecn::Ect1));
    while now < Time::ZERO + FLOOD {
        arrivals.send(line, now);
        now += gap;
        arrivals.count(line, now);
    }
    vec![
        (Quantity::Drops, arrivals.dropped as f64),
        (Quantity::Marks, arrivals.marked as f64),
    ]
}

/// The client sends a packet after each pause, and the server one to the port that it saw last just before that.
fn pauses(line: &mut Line, spec: &LinkSpec) -> Measured {
    const PAUSES: u64 = 400;
    const INSIDE: [u16; 2] = [4000, 443];
    let Some(kept) = spec.nat else {
        return Vec::new();
    };
    let second = Duration::from_secs(1);
    let (mut now, mut seen, mut rebound, mut unmapped) = (Time::ZERO, None, 0_u64, 0_u64);
    for number in 0..=PAUSES {
        let ports = |ports| Flow {
            ports,
            ..Flow::default()
        };
        line.send_in(ports(INSIDE), now, End::Client, PING, number);
        let pause = match number % 2 {
            0 => kept.saturating_sub(second),
            _ => kept + second,
        };
        now += pause;
        while let Some(outcome) = line.next(now) {
            let [port, _] = outcome.ports;
            if outcome.from == End::Client && seen.replace(port).is_some_and(|last| last != port) {
                rebound += 1;
            }
        }
        if let (Some(port), true) = (seen, number < PAUSES) {
            line.send_in(ports([INSIDE[1], port]), now, End::Server, PING, number);
        }
        now += second / 2;
        while let Some(outcome) = line.next(now) {
            unmapped += u64::from(outcome.lost == Some(DropReason::NoMapping));
        }
    }
    let percent = |count: u64| 100.0 * count as f64 / PAUSES as f64;
    vec![
        (Quantity::Rebound, percent(rebound)),
        (Quantity::Unmapped, percent(unmapped)),
    ]
}

fn acks(line: &mut Line, count: u64) -> Measured {
    let mut passed = 0_u64;
    for number in 0..count {
        let now = Time::ZERO + PACE * u32::try_from(number).unwrap_or(u32::MAX);
        line.send(now, End::Client, ACK, number);
        let until = if number + 1 == count { Time::MAX } else { now };
        while let Some(outcome) = line.next(until) {
            passed += u64::from(outcome.lost.is_none());
        }
    }
    vec![(Quantity::AcksPassed, 100.0 * passed as f64 / count as f64)]
}

/// The load on a link, from the server to the client.
struct Feed {
    /// Bytes of a packet, IP header included.
    bytes: u32,
    /// Packets that are sent at first.
    first: u64,
    /// From one packet to the next after that; `None` if another is sent for each that has arrived
    /// or was lost.
    gap: Option<Duration>,
    /// The time for which packets are sent after the warm-up.
    time: Duration,
}

impl Feed {
    /// A rate above the capacity of `spec`.
    fn of(spec: &LinkSpec, extent: &Extent) -> Self {
        // Excess packets are lost at a full buffer. In a chain of stations, they would be lost at a later
        // station, after they have used airtime.
        let (rate, bytes, time) = match &spec.radio {
            Radio::Wifi(wifi) => {
                return Self {
                    bytes: FULL,
                    first: WINDOW,
                    gap: None,
                    time: match wifi.busy.is_none() {
                        true => extent.steady,
                        false => extent.channel,
                    },
                };
            }
            // Three standard deviations above the mean; queued packets bridge longer gaps.
            Radio::Lte(lte) => (lte.rate + 4 * lte.std, LARGE, extent.cell),
            Radio::None => {
                let limits = [spec.down.rate, spec.down.shaper].into_iter().flatten();
                let rate = limits.min().unwrap_or(DEFAULT_FEED);
                let is_fast = rate > FAST;
                let varies = spec.down.blockage.is_some()
                    || spec.down.handover.is_some()
                    || spec.down.rate_std > 0;
                (
                    rate + (rate / 10).max(3 * spec.down.rate_std),
                    if is_fast { LARGE } else { FULL },
                    if varies { extent.cell } else { extent.steady },
                )
            }
        };
        Self {
            bytes,
            first: 1,
            gap: Some(Duration::from_nanos(
                u64::from(bytes) * 8_000_000_000 / rate,
            )),
            time,
        }
    }
}

/// The throughput of an overloaded link, with an acknowledgment for every `acks` packets.
fn download(line: &mut Line, feed: &Feed, acks: Option<u64>) -> Measured {
    let begin = Time::ZERO + WARM_UP;
    let end = begin + feed.time;
    let mut windows = vec![0_u64; usize::try_from(feed.time.as_secs()).unwrap_or(0)];
    let (mut now, mut arrived) = (Time::ZERO, 0);
    for _ in 0..feed.first {
        line.send(now, End::Server, feed.bytes, 0);
    }
    while now < end {
        now = feed.gap.map_or(end, |gap| now + gap);
        while let Some(outcome) = line.next(now) {
            if outcome.from == End::Client {
                continue;
            }
            if feed.gap.is_none() {
                line.send(outcome.at, End::Server, feed.bytes, 0);
            }
            if outcome.lost.is_some() {
                continue;
            }
            arrived += 1;
            if acks.is_some_and(|every| arrived % every == 0) {
                line.send(outcome.at, End::Client, ACK, 0);
            }
            if outcome.at >= begin {
                let second =
                    usize::try_from(outcome.at.since(begin).as_secs()).unwrap_or(usize::MAX);
                if let Some(window) = windows.get_mut(second) {
                    *window += u64::from(outcome.bytes);
                }
            }
        }
        if feed.gap.is_some() {
            line.send(now, End::Server, feed.bytes, 0);
        }
    }
    let megabits = |bytes: &u64| *bytes as f64 * 8e-6;
    let windows: Vec<_> = windows.iter().map(megabits).collect();
    let summary = Summary::of(&windows, 0, Seed::new(0));
    let summary = summary.and_then(|summary| summary.mean.zip(summary.std));
    let Some((mean, deviation)) = summary else {
        return Vec::new();
    };
    let payload = mean * f64::from(PAYLOAD) / f64::from(FULL);
    if acks.is_some() {
        return vec![(Quantity::PayloadAcknowledged, payload)];
    }
    vec![
        (Quantity::Goodput, mean),
        (Quantity::GoodputDeviation, deviation),
        (Quantity::Payload, payload),
    ]
}

fn trickle(line: &mut Line, spec: &LinkSpec, extent: &Extent) -> Measured {
    let is_lossless = [&spec.up, &spec.down].iter().all(|way| {
        let has_chance = [way.loss, way.duplicate, way.corrupt];
        has_chance.iter().all(|share| share.is_none()) && way.handover_gap.is_zero()
    }) && !matches!(spec.radio, Radio::Lte(_));
    let count = if is_lossless {
        extent.lossless
    } else {
        extent.lossy
    };
    let (mut lost_up, mut lost_down) = (0_u64, 0_u64);
    // Of those from the server.
    let (mut arrived, mut corrupted) = (0_u64, 0_u64);
    // Of those from the server: how often a loss followed none, and which was the last.
    let (mut runs, mut last) = (0_u64, None);
    // Of those from the server: which arrived without a delay, and which after one that was sent later.
    let (mut ahead, mut reordered, mut newest) = (0_u64, 0_u64, 0);
    let mut now = Time::ZERO;
    for number in 0..count {
        line.send(now, End::Client, SMALL, number);
        line.send(now, End::Server, SMALL, number);
        now += PACE;
        let until = if number + 1 == count { Time::MAX } else { now };
        while let Some(outcome) = line.next(until) {
            if outcome.lost.is_none() {
                if outcome.from == End::Server {
                    arrived += 1;
                    corrupted += u64::from(outcome.is_corrupted);
                    let sent = u32::try_from(outcome.number).unwrap_or(u32::MAX);
                    ahead += u64::from(outcome.at == Time::ZERO + PACE * sent);
                    reordered += u64::from(outcome.number < newest);
                    newest = newest.max(outcome.number);
                }
                continue;
            }
            match outcome.from {
                End::Client => lost_up += 1,
                End::Server => {
                    lost_down += 1;
                    runs += u64::from(last.is_none_or(|last| last + 1 != outcome.number));
                    last = Some(outcome.number);
                }
            }
        }
    }
    let percent = |lost: u64| 100.0 * lost as f64 / count as f64;
    let mut measured = vec![
        (Quantity::LossUp, percent(lost_up)),
        (Quantity::LossDown, percent(lost_down)),
        (Quantity::Arrived, percent(arrived)),
    ];
    let of_arrived = [
        (Quantity::Corrupted, corrupted),
        (Quantity::Ahead, ahead),
        (Quantity::Reordered, reordered),
    ];
    let of_arrived =
        of_arrived.map(|(quantity, count)| (quantity, 100.0 * count as f64 / arrived as f64));
    measured.extend(of_arrived);
    if runs > 0 {
        measured.push((Quantity::LossRun, lost_down as f64 / runs as f64));
    }
    measured
}

fn burst(line: &mut Line, bytes: u32) -> Measured {
    // Of 3 MB: no buffer of a preset holds as much.
    for number in 0..u64::from(3_000_000 / bytes) {
        line.send(Time::ZERO, End::Server, bytes, number);
    }
    let mut waiting = line.waiting();
    let mut times = Vec::new();
    while let Some(outcome) = line.next(Time::MAX) {
        waiting = waiting.max(line.waiting());
        if outcome.lost.is_none() {
            times.push(outcome.at);
        }
    }
    let span = |times: &[Time]| match times {
        [first, .., last] => last.since(*first),
        _ => Duration::ZERO,
    };
    let at_once = times.iter().filter(|at| Some(*at) == times.first()).count();
    let mut measured = vec![
        (Quantity::Buffer, waiting as f64 / 1e3),
        (Quantity::BufferPackets, (waiting / u64::from(bytes)) as f64),
        (Quantity::BufferTime, millis(span(&times))),
        (Quantity::AtOnce, at_once as f64),
    ];
    if let Some(next @ [_, rest @ ..]) = times.get(at_once..at_once + 10) {
        let bits = 8 * u64::from(bytes) * rest.len() as u64;
        let rate = bits as f64 / span(next).as_nanos() as f64 * 1e3;
        measured.push((Quantity::BurstRate, rate));
    }
    measured
}

/// Packets a second of a window that moves with acknowledgments, each for `every` packets.
fn window(line: &mut Line, every: u64, time: Duration) -> f64 {
    let begin = Time::ZERO + WARM_UP;
    let end = begin + time;
    let (mut allowed, mut arrived, mut counted) = (WINDOW, 0_u64, 0_u64);
    let mut now = Time::ZERO;
    while now < end {
        for _ in 0..std::mem::take(&mut allowed) {
            line.send(now, End::Server, FULL, 0);
        }
        let Some(outcome) = line.next(Time::MAX) else {
            break;
        };
        now = outcome.at;
        match outcome.from {
            End::Server if outcome.lost.is_none() => {
                arrived += 1;
                counted += u64::from(now >= begin);
                if arrived % every == 0 {
                    line.send(now, End::Client, ACK, 0);
                }
            }
            // A lost packet does not reduce the window.
            End::Server => allowed = 1,
            End::Client => allowed = every,
        }
    }
    counted as f64 / time.as_secs_f64()
}

/// The throughput of `stations` in megabits of payload a second, each of which sends another packet for each that arrived or
/// was lost.
fn saturation(line: &mut Line, stations: Stations, time: Duration) -> f64 {
    /// Packets of a station: one on the air and one waiting.
    const FIRST: usize = 2;
    for station in 0..usize::from(stations.count()) {
        for _ in 0..FIRST {
            line.send_from(station, Time::ZERO, FULL);
        }
    }
    let begin = Time::ZERO + WARM_UP;
    let mut arrived = 0_u64;
    while let Some(outcome) = line.next(begin + time) {
        let station = usize::try_from(outcome.number).unwrap_or(usize::MAX);
        line.send_from(station, outcome.at, FULL);
        arrived += u64::from(outcome.lost.is_none() && outcome.at >= begin);
    }
    arrived as f64 * f64::from(PAYLOAD) * 8e-6 / time.as_secs_f64()
}

fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}
