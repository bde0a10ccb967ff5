//! Types of values that are not plain numbers.

use std::time::Duration;

use super::Problem;
use super::key::{Value, name_of, named};
use super::units::{self, Quantity};
use crate::outage::Schedule;

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

impl Value for Buffer {
    fn read(text: &str) -> Result<Self, Problem> {
        const UNITS: [&str; 8] = ["B", "kB", "MB", "KiB", "MiB", "p", "ms", "bdp"];
        let Quantity { number, unit } = units::split(text)?;
        let units = || UNITS.to_vec();
        match unit {
            "" => Err(Problem::UnitMissing {
                value: number.to_owned(),
                units: units(),
            }),
            "p" => u64::read(number).map(Self::Packets),
            "bdp" => number
                .parse()
                .map(Self::Bdp)
                .map_err(|_| Problem::not_a_number(number)),
            "s" | "ms" | "us" | "ns" => units::time(text).map(Self::Time),
            "B" | "kB" | "MB" | "KiB" | "MiB" => units::size(text).map(Self::Bytes),
            _ => Err(Problem::UnknownUnit {
                unit: unit.to_owned(),
                units: units(),
            }),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Bytes(bytes) => units::show_size(*bytes),
            Self::Packets(packets) => format!("{packets}p"),
            Self::Time(time) => units::show_time(*time),
            Self::Bdp(products) => format!("{products}bdp"),
        }
    }
}

/// Mean length of loss bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Burst {
    /// In packets, at least 1.
    Packets(f64),
    /// In time.
    Time(Duration),
}

impl Value for Burst {
    fn read(text: &str) -> Result<Self, Problem> {
        let Quantity { number, unit } = units::split(text)?;
        let units = || vec!["p", "s", "ms", "us"];
        match unit {
            "" => Err(Problem::UnitMissing {
                value: number.to_owned(),
                units: units(),
            }),
            "p" => match number.parse() {
                Ok(packets) if (1.0..=1e9).contains(&packets) => Ok(Self::Packets(packets)),
                _ => Err(Problem::out_of_range(text, "1p or more")),
            },
            "s" | "ms" | "us" => match units::time(text)? {
                time if time >= crate::loss::Timed::SHORTEST => Ok(Self::Time(time)),
                _ => Err(Problem::out_of_range(text, "1us or more")),
            },
            _ => Err(Problem::UnknownUnit {
                unit: unit.to_owned(),
                units: units(),
            }),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Packets(packets) => format!("{packets}p"),
            // At least 1 us, so that the unit is never ns.
            Self::Time(time) => units::show_time(*time),
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
    /// DualPI2 (RFC 9332): a queue of low latency for ECT(1), coupled with one for all others.
    DualPi2,
}

const QUEUES: &[(&str, QueueKind)] = &[
    ("droptail", QueueKind::DropTail),
    ("drophead", QueueKind::DropHead),
    ("codel", QueueKind::CoDel),
    ("fq-codel", QueueKind::FqCoDel),
    ("red", QueueKind::Red),
    ("dualpi2", QueueKind::DualPi2),
];

impl Value for QueueKind {
    fn read(text: &str) -> Result<Self, Problem> {
        named(text, QUEUES)
    }

    fn write(&self) -> String {
        name_of(self, QUEUES)
    }
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

const DISTRIBUTIONS: &[(&str, DistributionName)] = &[
    ("normal", DistributionName::Normal),
    ("uniform", DistributionName::Uniform),
    ("pareto", DistributionName::Pareto),
    ("paretonormal", DistributionName::ParetoNormal),
    ("exponential", DistributionName::Exponential),
    ("picoquic-wifi", DistributionName::PicoquicWifi),
];

impl Value for DistributionName {
    fn read(text: &str) -> Result<Self, Problem> {
        match text.strip_prefix("table:") {
            Some(file) => Ok(Self::Table(file.to_owned())),
            None => named(text, DISTRIBUTIONS),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Table(file) => format!("table:{file}"),
            name => name_of(name, DISTRIBUTIONS),
        }
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

impl Value for Window {
    fn read(text: &str) -> Result<Self, Problem> {
        const FORM: &str = "written `2s..2.5s`, with the end after the start";
        let (from, to) = text
            .split_once("..")
            .ok_or_else(|| Problem::out_of_range(text, FORM))?;
        let (from, to) = (units::time(from.trim())?, units::time(to.trim())?);
        if from < to {
            Ok(Self { from, to })
        } else {
            Err(Problem::out_of_range(text, FORM))
        }
    }

    fn write(&self) -> String {
        let [from, to] = [self.from, self.to].map(units::show_time);
        format!("{from}..{to}")
    }
}

impl Value for Schedule {
    fn read(text: &str) -> Result<Self, Problem> {
        const FORM: &str =
            "written `100ms..250ms/3s`: shortest, longest, and interval, which must be longer";
        let malformed = || Problem::out_of_range(text, FORM);
        let (lengths, every) = text.split_once('/').ok_or_else(malformed)?;
        let (shortest, longest) = lengths.split_once("..").unwrap_or((lengths, lengths));
        let schedule = Self {
            every: units::time(every.trim())?,
            shortest: units::time(shortest.trim())?,
            longest: units::time(longest.trim())?,
        };
        let ordered = schedule.shortest <= schedule.longest && schedule.longest < schedule.every;
        if ordered && schedule.every >= Duration::from_micros(1) {
            Ok(schedule)
        } else {
            Err(malformed())
        }
    }

    fn write(&self) -> String {
        let [shortest, longest, every] =
            [self.shortest, self.longest, self.every].map(units::show_time);
        format!("{shortest}..{longest}/{every}")
    }
}
