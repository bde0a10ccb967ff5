//! Scales and their ticks.

use crate::units;

/// Values beyond this, on either side, lie on the edge: ticks need numbers that can be counted in.
const LARGEST: f64 = 1e15;
/// A span below this is no span.
const SMALLEST: f64 = 1e-12;

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
    /// A plain number.
    Number,
}

/// A linear axis. It begins at zero unless told otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    label: String,
    unit: Unit,
    span: Option<(f64, f64)>,
}

impl Axis {
    /// An axis that spans zero and all its values.
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self {
            label: label.into(),
            unit,
            span: None,
        }
    }

    /// Fixes both ends, so that charts can be compared.
    #[must_use]
    pub fn spanning(mut self, from: f64, to: f64) -> Self {
        if (SMALLEST..LARGEST).contains(&(to - from)) {
            self.span = Some((from, to));
        }
        self
    }

    /// The scale for `values` on `length` pixels, with a tick every `pixels_per_tick` or so. Only
    /// an axis without fixed ends is rounded up to its last tick.
    pub(super) fn scale(
        &self,
        values: impl Iterator<Item = f64>,
        length: f64,
        pixels_per_tick: f64,
    ) -> Scale {
        let (mut from, mut to) = self.span.unwrap_or_else(|| {
            values.fold((0.0, 0.0), |(low, high): (f64, f64), value| {
                let value = value.clamp(-LARGEST, LARGEST);
                (low.min(value), high.max(value))
            })
        });
        if to - from < SMALLEST {
            to = from + 1.0;
        }
        let step = nice_step((to - from) / (length / pixels_per_tick));
        if self.span.is_none() {
            from = (from / step).floor() * step;
            to = (to / step).ceil() * step;
        }
        let (factor, unit) = self.unit.shown(from.abs().max(to.abs()));
        let first = (from / step).ceil();
        // A few steps at most, by the choice of the step.
        let ticks = (0..64)
            .map(|n| (first + f64::from(n)) * step)
            .take_while(|&tick| tick <= to + step * 1e-6)
            .map(|tick| (tick, tick_text(tick / factor, step / factor)))
            .collect();
        Scale {
            from,
            to,
            length,
            ticks,
            title: if unit.is_empty() {
                self.label.clone()
            } else {
                format!("{} ({unit})", self.label)
            },
        }
    }
}

impl Unit {
    /// What a shown number counts, for numbers up to `max`.
    fn shown(self, max: f64) -> (f64, String) {
        match self {
            Self::Seconds if max < 1.0 => (1e-3, "ms".to_owned()),
            Self::Seconds => (1.0, "s".to_owned()),
            Self::Bytes | Self::BitsPerSecond => {
                let (factor, prefix) = units::prefix(max);
                let unit = if self == Self::Bytes { "B" } else { "bit/s" };
                (factor, format!("{prefix}{unit}"))
            }
            Self::Share => (0.01, "%".to_owned()),
            Self::Number => (1.0, String::new()),
        }
    }
}

/// Where values lie on a line of pixels, and which of them are written beside it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) from: f64,
    pub(super) to: f64,
    length: f64,
    pub(super) ticks: Vec<(f64, String)>,
    pub(super) title: String,
}

impl Scale {
    /// Pixels from the start, kept on the line.
    pub(super) fn at(&self, value: f64) -> f64 {
        ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0) * self.length
    }
}

/// The step of 1, 2 or 5 times a power of ten that is not less than `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

fn tick_text(value: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    // Ticks are multiples of the step, so what is less than that is zero.
    let value = if value.abs() < step / 2.0 { 0.0 } else { value };
    format!("{value:.decimals$}").replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: &Axis, values: &[f64]) -> (String, Vec<String>) {
        let scale = axis.scale(values.iter().copied(), 200.0, 40.0);
        let texts = scale.ticks.into_iter().map(|(_, text)| text).collect();
        (scale.title, texts)
    }

    #[test]
    fn ticks_are_round_numbers_in_a_fitting_unit() {
        let (title, texts) = ticks(&Axis::new("window", Unit::Bytes), &[123_456.0]);
        assert_eq!(title, "window (kB)");
        assert_eq!(texts, ["0", "50", "100", "150"]);
        let (title, texts) = ticks(&Axis::new("RTT", Unit::Seconds), &[0.0421]);
        assert_eq!(title, "RTT (ms)");
        assert_eq!(texts, ["0", "10", "20", "30", "40", "50"]);
        let (_, texts) = ticks(&Axis::new("ratio", Unit::Number), &[-0.2, 0.61]);
        assert_eq!(texts, ["\u{2212}0.2", "0.0", "0.2", "0.4", "0.6", "0.8"]);
    }

    #[test]
    fn odd_spans_have_ticks_too() {
        for values in [&[][..], &[0.0], &[1e-300], &[1e300], &[f64::MAX]] {
            let scale = Axis::new("", Unit::Number).scale(values.iter().copied(), 200.0, 40.0);
            assert!(scale.ticks.len() < 64);
            assert!(scale.at(0.5).is_finite());
        }
    }
}
