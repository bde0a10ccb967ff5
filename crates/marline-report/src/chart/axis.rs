//! What an axis shows.

use super::scale::{self, LARGEST, SMALLEST, Scale};
use crate::units;

/// What numbers on an axis mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds, shown as milliseconds where they are short.
    Seconds,
    /// Bytes, shown with a decimal prefix.
    Bytes,
    /// Bits per second, shown with a decimal prefix.
    BitsPerSecond,
    /// A share from 0 to 1, shown in percent.
    Share,
    /// A number that is in percent already.
    Percent,
    /// A plain number.
    Number,
}

impl Unit {
    /// A single value with its unit, such as `12.3 ms`.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Seconds => units::seconds(value),
            Self::Bytes => units::bytes(value),
            Self::BitsPerSecond => units::bit_rate(value),
            Self::Share => format!("{} %", units::number(value * 100.0)),
            Self::Percent => format!("{} %", units::number(value)),
            Self::Number => units::number(value),
        }
    }

    /// What a shown number counts, for numbers up to `max`.
    pub(super) fn shown(self, max: f64) -> (f64, String) {
        match self {
            Self::Seconds if max < 1.0 => (1e-3, "ms".to_owned()),
            Self::Seconds => (1.0, "s".to_owned()),
            Self::Bytes | Self::BitsPerSecond => {
                let (factor, prefix) = units::prefix(max);
                let unit = if self == Self::Bytes { "B" } else { "bit/s" };
                (factor, format!("{prefix}{unit}"))
            }
            Self::Share => (0.01, "%".to_owned()),
            Self::Percent => (1.0, "%".to_owned()),
            Self::Number => (1.0, String::new()),
        }
    }

    /// What all numbers of an axis count if each is written by [`Self::tick`].
    const fn common(self) -> &'static str {
        match self {
            Self::Bytes => "B",
            Self::BitsPerSecond => "bit/s",
            Self::Share | Self::Percent => "%",
            Self::Seconds | Self::Number => "",
        }
    }

    /// A number of an axis on which numbers of every size stand: it brings its own prefix.
    fn tick(self, value: f64) -> String {
        let plain = |value: f64| {
            if value >= 1.0 {
                units::number(value)
            } else {
                format!("{value}")
            }
        };
        match self {
            Self::Seconds if value < 1e-6 => format!("{} ns", plain(value * 1e9)),
            Self::Seconds => units::seconds(value),
            Self::Bytes | Self::BitsPerSecond => {
                let (factor, prefix) = units::prefix(value);
                let space = if prefix.is_empty() { "" } else { " " };
                format!("{}{space}{prefix}", plain(value / factor))
            }
            Self::Share => plain(value * 100.0),
            Self::Percent | Self::Number => plain(value),
        }
    }
}

/// An axis: linear, and from zero on, unless told otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    label: String,
    unit: Unit,
    span: Option<(f64, f64)>,
    logarithmic: bool,
}

impl Axis {
    /// An axis that spans zero and all its values.
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self {
            label: label.into(),
            unit,
            span: None,
            logarithmic: false,
        }
    }

    /// Fixes both ends, so that charts can be compared. Ends that are none are ignored, and so are
    /// ends below zero on a logarithmic axis.
    #[must_use]
    pub fn spanning(mut self, from: f64, to: f64) -> Self {
        if (SMALLEST..LARGEST).contains(&(to - from)) {
            self.span = Some((from, to));
        }
        self
    }

    /// Makes equal distances mean equal ratios. Values that are not above zero lie on the edge.
    #[must_use]
    pub const fn logarithmic(mut self) -> Self {
        self.logarithmic = true;
        self
    }

    /// What it shows, without the unit.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// What its numbers mean.
    pub const fn unit(&self) -> Unit {
        self.unit
    }

    /// Its ends, if they are fixed.
    pub(super) const fn span(&self) -> Option<(f64, f64)> {
        self.span
    }

    /// The scale for `values` on `length` pixels, with a tick every `pixels_per_tick` or so. Only
    /// an axis without fixed ends is rounded up to its last tick.
    pub(super) fn scale(
        &self,
        values: impl Iterator<Item = f64>,
        length: f64,
        pixels_per_tick: f64,
    ) -> Scale {
        let (range, unit) = if self.logarithmic {
            let span = self.span.filter(|&(from, _)| from >= SMALLEST);
            let range = scale::logarithmic(values, span, length / pixels_per_tick);
            (range, self.unit.common().to_owned())
        } else {
            let range = scale::linear(values, self.span, length / pixels_per_tick);
            let (_, unit) = self.unit.shown(range.largest());
            (range, unit)
        };
        let text = |tick: f64| {
            if self.logarithmic {
                self.unit.tick(tick)
            } else {
                let (factor, _) = self.unit.shown(range.largest());
                scale::tick_text(tick / factor, range.step / factor)
            }
        };
        Scale {
            from: range.from,
            to: range.to,
            length,
            logarithmic: self.logarithmic,
            ticks: range.ticks.iter().map(|&tick| (tick, text(tick))).collect(),
            title: match (self.label.as_str(), unit.as_str()) {
                (label, "") => label.to_owned(),
                ("", unit) => unit.to_owned(),
                (label, unit) => format!("{label} ({unit})"),
            },
        }
    }
}

#[cfg(test)]
mod tests;
