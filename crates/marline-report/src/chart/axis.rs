//! Axes and units.

use super::Interval;
use super::scale::{self, LARGEST, SMALLEST, Scale};
use crate::units;

/// The quantity that an axis shows.
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

    /// The unit of tick labels on an axis with values up to `max`.
    pub(super) fn tick_unit(self, max: f64) -> TickUnit {
        let unit = |factor, symbol: &str| TickUnit {
            factor,
            symbol: symbol.to_owned(),
        };
        match self {
            Self::Seconds if max < 1.0 => unit(1e-3, "ms"),
            Self::Seconds => unit(1.0, "s"),
            Self::Bytes | Self::BitsPerSecond => {
                let prefix = units::prefix(max);
                let base = if self == Self::Bytes { "B" } else { "bit/s" };
                unit(prefix.factor, &format!("{}{base}", prefix.symbol))
            }
            Self::Share => unit(0.01, "%"),
            Self::Percent => unit(1.0, "%"),
            Self::Number => unit(1.0, ""),
        }
    }

    /// The unit in the title of an axis whose tick labels are written by [`Self::tick`].
    const fn common(self) -> &'static str {
        match self {
            Self::Bytes => "B",
            Self::BitsPerSecond => "bit/s",
            Self::Share | Self::Percent => "%",
            Self::Seconds | Self::Number => "",
        }
    }

    /// A tick label of a logarithmic axis, with its own prefix.
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
                let units::Prefix { factor, symbol } = units::prefix(value);
                let space = if symbol.is_empty() { "" } else { " " };
                format!("{}{space}{symbol}", plain(value / factor))
            }
            Self::Share => plain(value * 100.0),
            Self::Percent | Self::Number => plain(value),
        }
    }
}

/// The unit of tick labels.
pub(super) struct TickUnit {
    /// The value of 1 on the axis, in the base unit.
    pub(super) factor: f64,
    pub(super) symbol: String,
}

/// An axis. By default linear, including zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    label: String,
    unit: Unit,
    span: Option<Interval>,
    logarithmic: bool,
}

impl Axis {
    /// A linear axis that spans zero and all values.
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self {
            label: label.into(),
            unit,
            span: None,
            logarithmic: false,
        }
    }

    /// Fixes both ends, so that charts can be compared. Ends that are not finite or not in order are
    /// ignored, and on a logarithmic axis ends below zero.
    #[must_use]
    pub fn spanning(mut self, from: f64, to: f64) -> Self {
        if (SMALLEST..LARGEST).contains(&(to - from)) {
            self.span = Some(Interval {
                low: from,
                high: to,
            });
        }
        self
    }

    /// Makes the axis logarithmic. Values that are not above zero are drawn at its lower end.
    #[must_use]
    pub const fn logarithmic(mut self) -> Self {
        self.logarithmic = true;
        self
    }

    /// Its label, without the unit.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Its unit.
    pub const fn unit(&self) -> Unit {
        self.unit
    }

    /// Its fixed ends, if any.
    pub(super) const fn span(&self) -> Option<Interval> {
        self.span
    }

    /// The scale for `values` on `length` pixels, with about one tick per `pixels_per_tick`. Only an
    /// axis without fixed ends is rounded up to its last tick.
    pub(super) fn scale(
        &self,
        values: impl Iterator<Item = f64>,
        length: f64,
        pixels_per_tick: f64,
    ) -> Scale {
        let (range, unit) = if self.logarithmic {
            let span = self.span.filter(|span| span.low >= SMALLEST);
            let range = scale::logarithmic(values, span, length / pixels_per_tick);
            (range, self.unit.common().to_owned())
        } else {
            let range = scale::linear(values, self.span, length / pixels_per_tick);
            let unit = self.unit.tick_unit(range.largest());
            (range, unit.symbol)
        };
        let text = |tick: f64| {
            if self.logarithmic {
                self.unit.tick(tick)
            } else {
                let factor = self.unit.tick_unit(range.largest()).factor;
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
