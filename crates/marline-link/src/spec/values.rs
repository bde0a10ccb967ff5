//! Types of values that are not plain numbers.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use marline_settings::{
    Named, Share, Word, find_unit, read_bytes, read_share, read_time, refused_unit, split,
    text_values, write_bytes, write_time,
};

use crate::outage::Schedule;
use crate::queue::Isolation;
use crate::wifi::{RateControl, Waypoint};

text_values!(
    Alternation,
    Buffer,
    Burst,
    DelayRange,
    DistributionName,
    Schedule,
    ShareRange,
    Walk,
);

/// A queue limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// Size in bytes, of IP packets.
    Bytes(u64),
    /// Number of packets.
    Packets(u64),
    /// The bytes that the mean rate transmits in this time.
    Time(Duration),
    /// A multiple of the bandwidth-delay product: mean rate times round-trip time of the wire.
    Bdp(f64),
}

impl Buffer {
    const UNITS: [&str; 16] = [
        "B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "p", "ns", "us", "ms", "s", "min", "h", "d",
        "bdp",
    ];
}

impl FromStr for Buffer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let quantity = split(text).and_then(|(number, unit)| {
            let unit = find_unit(unit, Self::UNITS)?;
            Some((number, unit))
        });
        match quantity {
            Some((number, "p")) => number
                .replace('_', "")
                .parse()
                .map(Self::Packets)
                .map_err(|_| format!("\"{text}\" is not a number of packets")),
            Some((number, "bdp")) => real(number)
                .map(Self::Bdp)
                .ok_or_else(|| format!("\"{text}\" is out of range")),
            Some((_, unit)) if unit.ends_with('B') => read_bytes(text).map(Self::Bytes),
            Some(_) => read_time(text).map(Self::Time),
            None => Err(refused_unit(text, "queue limit", Self::UNITS)),
        }
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.write_str(&write_bytes(*bytes)),
            Self::Packets(packets) => write!(f, "{packets}p"),
            Self::Time(time) => f.write_str(&write_time(*time)),
            Self::Bdp(products) => write!(f, "{products}bdp"),
        }
    }
}

/// A number that is not negative.
fn real(text: &str) -> Option<f64> {
    let number: f64 = text.replace('_', "").parse().ok()?;
    (number >= 0.0 && number.is_finite()).then_some(number)
}

/// Mean length of loss bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Burst {
    /// In packets, at least 1.
    Packets(f64),
    /// In time.
    Time(Duration),
}

impl FromStr for Burst {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [&str; 8] = ["p", "ns", "us", "ms", "s", "min", "h", "d"];
        let out_of_range = |least| format!("\"{text}\" is out of range; write {least} or more");
        match split(text).and_then(|(number, unit)| Some((number, find_unit(unit, UNITS)?))) {
            Some((number, "p")) => match real(number) {
                Some(packets) if (1.0..=1e9).contains(&packets) => Ok(Self::Packets(packets)),
                _ => Err(out_of_range("1p")),
            },
            Some(_) => match read_time(text)? {
                time if time >= crate::loss::Timed::SHORTEST => Ok(Self::Time(time)),
                _ => Err(out_of_range("1us")),
            },
            None => Err(refused_unit(text, "length of bursts", UNITS)),
        }
    }
}

impl fmt::Display for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => write!(f, "{packets}p"),
            Self::Time(time) => f.write_str(&write_time(*time)),
        }
    }
}

/// The queueing discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QueueKind {
    /// FIFO; arriving packets are dropped when it is full.
    #[default]
    DropTail,
    /// FIFO; the oldest packets are dropped when it is full.
    DropHead,
    /// CoDel (RFC 8289).
    CoDel,
    /// FQ-CoDel (RFC 8290).
    FqCoDel,
    /// Random early detection (RED).
    Red,
    /// CAKE, with one tin.
    Cake,
    /// DualPI2 (RFC 9332): a queue of low latency for ECT(1), coupled with one for all others.
    DualPi2,
}

impl Named for QueueKind {
    const WORDS: &'static [Word<Self>] = &[
        Word::new(
            "droptail",
            "drops arriving packets when it is full",
            Self::DropTail,
        ),
        Word::new(
            "drophead",
            "drops the oldest packets when it is full",
            Self::DropHead,
        ),
        Word::new("codel", "CoDel (RFC 8289)", Self::CoDel),
        Word::new("fq-codel", "FQ-CoDel (RFC 8290)", Self::FqCoDel),
        Word::new("red", "random early detection", Self::Red),
        Word::new("cake", "CAKE, fair to hosts and flows", Self::Cake),
        Word::new("dualpi2", "DualPI2 (RFC 9332)", Self::DualPi2),
    ];
}

impl Named for Isolation {
    const WORDS: &'static [Word<Self>] = &[
        Word::new("flows", "fair to flows", Self::Flows),
        Word::new(
            "dual-srchost",
            "fair to source hosts, and to the flows of each",
            Self::SourceHosts,
        ),
        Word::new(
            "dual-dsthost",
            "fair to destination hosts, and to the flows of each",
            Self::DestinationHosts,
        ),
        Word::new(
            "triple-isolate",
            "fair to flows, and neither a source nor a destination has more by having more flows",
            Self::Triple,
        ),
    ];
}

/// The name of a [`Distribution`](crate::jitter::Distribution) of jitter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum DistributionName {
    /// `normal`: the jitter is the standard deviation.
    #[default]
    Normal,
    /// `uniform`: from minus to plus the jitter.
    Uniform,
    /// `pareto`: the jitter is the standard deviation.
    Pareto,
    /// `paretonormal`: the jitter is the standard deviation.
    ParetoNormal,
    /// `exponential`: the jitter is the mean; never early.
    Exponential,
    /// `picoquic-wifi`: see [`Distribution::PicoquicWifi`](crate::jitter::Distribution::PicoquicWifi).
    PicoquicWifi,
    /// `table:FILE`: a netem table, in units of the jitter.
    Table(String),
}

impl DistributionName {
    const NAMES: [(&str, Self); 6] = [
        ("normal", Self::Normal),
        ("uniform", Self::Uniform),
        ("pareto", Self::Pareto),
        ("paretonormal", Self::ParetoNormal),
        ("exponential", Self::Exponential),
        ("picoquic-wifi", Self::PicoquicWifi),
    ];
}

impl FromStr for DistributionName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(file) = text.strip_prefix("table:") {
            return Ok(Self::Table(file.to_owned()));
        }
        let named = Self::NAMES.into_iter().find(|(name, _)| *name == text);
        named.map(|(_, value)| value).ok_or_else(|| {
            marline_settings::unknown("distribution", text, Self::NAMES.map(|(name, _)| name))
        })
    }
}

impl fmt::Display for DistributionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Table(file) = self {
            return write!(f, "table:{file}");
        }
        let named = Self::NAMES.into_iter().find(|(_, value)| value == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

/// A period relative to the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// The start.
    pub from: Duration,
    /// The end, which is not part of the period.
    pub to: Duration,
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed =
            || format!("\"{text}\" is not written 2s..2.5s, with the end after the start");
        let (from, to) = text.split_once("..").ok_or_else(malformed)?;
        let (from, to) = (read_time(from)?, read_time(to)?);
        (from < to)
            .then_some(Self { from, to })
            .ok_or_else(malformed)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", write_time(self.from), write_time(self.to))
    }
}

/// Distances over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk(Vec<Waypoint>);

impl Walk {
    /// The distances, in order of time.
    pub fn waypoints(&self) -> &[Waypoint] {
        &self.0
    }
}

impl FromStr for Walk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || {
            format!(
                "\"{text}\" is not written 10m, or 10m@0s+60m@20s: distances, and times that increase"
            )
        };
        let waypoint = |text: &str| {
            let (meters, at) = text.split_once('@').unwrap_or((text, "0s"));
            let meters = meters.trim().strip_suffix('m').and_then(real);
            let meters = meters.filter(|meters| *meters <= 100_000.0);
            let at = read_time(at).map_err(|_| malformed())?;
            meters
                .map(|meters| Waypoint { at, meters })
                .ok_or_else(malformed)
        };
        let waypoints = text.split('+').map(waypoint);
        let waypoints = waypoints.collect::<Result<Vec<_>, _>>()?;
        let is_ordered = waypoints.windows(2).all(|pair| pair[0].at < pair[1].at);
        is_ordered.then_some(Self(waypoints)).ok_or_else(malformed)
    }
}

impl fmt::Display for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Waypoint { at, meters }) in self.0.iter().enumerate() {
            let plus = if index > 0 { "+" } else { "" };
            write!(f, "{plus}{meters}m@{}", write_time(*at))?;
        }
        Ok(())
    }
}

impl Named for RateControl {
    const WORDS: &'static [Word<Self>] = &[
        Word::new("fixed", "always the configured modulation", Self::Fixed),
        Word::new(
            "minstrel",
            "by the success of earlier transmissions",
            Self::Minstrel,
        ),
        Word::new("ideal", "the best for the present signal", Self::Ideal),
    ];
}

/// The mean lengths of alternating periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alternation {
    /// Of those in which the path is clear.
    pub clear: Duration,
    /// Of those in which it is blocked.
    pub blocked: Duration,
}

impl FromStr for Alternation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || {
            format!(
                "\"{text}\" is not written 5s/300ms: mean clear and mean blocked, 1us or more each"
            )
        };
        let (clear, blocked) = text.split_once('/').ok_or_else(malformed)?;
        let (clear, blocked) = (read_time(clear)?, read_time(blocked)?);
        let is_valid = clear.min(blocked) >= Duration::from_micros(1);
        is_valid
            .then_some(Self { clear, blocked })
            .ok_or_else(malformed)
    }
}

impl fmt::Display for Alternation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [clear, blocked] = [self.clear, self.blocked].map(write_time);
        write!(f, "{clear}/{blocked}")
    }
}

/// A range of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DelayRange {
    /// The smallest.
    pub least: Duration,
    /// The largest.
    pub most: Duration,
}

impl FromStr for DelayRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        let (least, most) = (read_time(least)?, read_time(most)?);
        (least <= most)
            .then_some(Self { least, most })
            .ok_or_else(|| {
                format!("\"{text}\" is not written 2ms..8ms, with the larger delay last")
            })
    }
}

impl fmt::Display for DelayRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", write_time(self.least), write_time(self.most))
    }
}

/// A range of shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShareRange {
    /// The smallest.
    pub least: Share,
    /// The largest.
    pub most: Share,
}

impl FromStr for ShareRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        let (least, most) = (read_share(least)?, read_share(most)?);
        (least <= most)
            .then_some(Self { least, most })
            .ok_or_else(|| {
                format!("\"{text}\" is not written 20%..100%, with the larger share last")
            })
    }
}

impl fmt::Display for ShareRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.least, self.most)
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || {
            format!(
                "\"{text}\" is not written 100ms..250ms/3s: shortest, longest, and interval, which must be longer"
            )
        };
        let (lengths, every) = text.split_once('/').ok_or_else(malformed)?;
        let (shortest, longest) = lengths.split_once("..").unwrap_or((lengths, lengths));
        let schedule = Self {
            every: read_time(every)?,
            shortest: read_time(shortest)?,
            longest: read_time(longest)?,
        };
        let ordered = schedule.shortest <= schedule.longest && schedule.longest < schedule.every;
        let is_valid = ordered && schedule.every >= Duration::from_micros(1);
        is_valid.then_some(schedule).ok_or_else(malformed)
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [shortest, longest, every] = [self.shortest, self.longest, self.every].map(write_time);
        write!(f, "{shortest}..{longest}/{every}")
    }
}
