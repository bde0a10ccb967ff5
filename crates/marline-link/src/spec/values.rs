//! Values that more than a number makes.

use std::time::Duration;

use super::Problem;
use super::key::{Value, name_of, named};
use super::units;
use crate::outage::Schedule;

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// Bytes of IP packets.
    Bytes(u64),
    /// Packets of any size.
    Packets(u64),
    /// What the mean rate sends in this time.
    Time(Duration),
    /// So many products of the mean rate and the round trip of the wire.
    Bdp(f64),
}

impl Value for Buffer {
    fn read(text: &str) -> Result<Self, Problem> {
        const UNITS: [&str; 8] = ["B", "kB", "MB", "KiB", "MiB", "p", "ms", "bdp"];
        let (number, unit) = units::split(text)?;
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

/// How long losses last on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Burst {
    /// So many packets, at least 1.
    Packets(f64),
    /// So long, however many packets that are.
    Time(Duration),
}

impl Value for Burst {
    fn read(text: &str) -> Result<Self, Problem> {
        let (number, unit) = units::split(text)?;
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
            // Not in nanoseconds, which it is too long for.
            Self::Time(time) => units::show_time(*time),
        }
    }
}

/// Who waits, who goes, who is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QueueKind {
    /// First in, first out; what finds it full is dropped.
    #[default]
    DropTail,
    /// First in, first out; what waited longest makes room.
    DropHead,
    /// Controlled delay (RFC 8289).
    CoDel,
    /// A queue with controlled delay for each flow (RFC 8290).
    FqCoDel,
    /// Random early detection.
    Red,
}

const QUEUES: &[(&str, QueueKind)] = &[
    ("droptail", QueueKind::DropTail),
    ("drophead", QueueKind::DropHead),
    ("codel", QueueKind::CoDel),
    ("fq-codel", QueueKind::FqCoDel),
    ("red", QueueKind::Red),
];

impl Value for QueueKind {
    fn read(text: &str) -> Result<Self, Problem> {
        named(text, QUEUES)
    }

    fn write(&self) -> String {
        name_of(self, QUEUES)
    }
}

/// A law of delays by its name; see [`Law`](crate::jitter::Law).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum LawName {
    /// `normal`: the jitter is the standard deviation.
    #[default]
    Normal,
    /// `uniform`: from minus to plus the jitter.
    Uniform,
    /// `pareto`: the jitter is the standard deviation.
    Pareto,
    /// `paretonormal`: the jitter is the standard deviation.
    ParetoNormal,
    /// `exponential`: only late, by the jitter on average.
    Exponential,
    /// `picoquic-wifi`: see there.
    PicoquicWifi,
    /// `table:FILE`: a table as netem's, in units of the jitter.
    Table(String),
}

const LAWS: &[(&str, LawName)] = &[
    ("normal", LawName::Normal),
    ("uniform", LawName::Uniform),
    ("pareto", LawName::Pareto),
    ("paretonormal", LawName::ParetoNormal),
    ("exponential", LawName::Exponential),
    ("picoquic-wifi", LawName::PicoquicWifi),
];

impl Value for LawName {
    fn read(text: &str) -> Result<Self, Problem> {
        match text.strip_prefix("table:") {
            Some(file) => Ok(Self::Table(file.to_owned())),
            None => named(text, LAWS),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Table(file) => format!("table:{file}"),
            law => name_of(law, LAWS),
        }
    }
}

/// From a moment up to, not including, another, since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// When it begins.
    pub from: Duration,
    /// When it is over.
    pub to: Duration,
}

impl Value for Window {
    fn read(text: &str) -> Result<Self, Problem> {
        const FORM: &str = "written `2s..2.5s`, the end behind the start";
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
        const FORM: &str = "written `100ms..250ms/3s`: shortest, longest, and from one to the next, which is longer";
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
