//! Scales and their ticks.

use super::Interval;

/// Values beyond this, on either side, are drawn at the edge: ticks need exact integers.
pub(super) const LARGEST: f64 = 1e15;
/// Smallest difference between the ends of a scale.
pub(super) const SMALLEST: f64 = 1e-12;

/// A mapping from values to pixels, with its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) length: f64,
    pub(super) logarithmic: bool,
    pub(super) ticks: Vec<(f64, String)>,
    pub(super) title: String,
}

impl Scale {
    /// Pixels from the start, clamped to the length.
    pub(super) fn at(&self, value: f64) -> f64 {
        self.unclamped(value).clamp(0.0, self.length)
    }

    /// Pixels from the start, not clamped.
    pub(super) fn unclamped(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(SMALLEST) / self.from).log10() / (self.to / self.from).log10()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        share * self.length
    }
}

/// Both ends of a scale, and its ticks.
#[derive(Clone, Debug)]
pub(super) struct Range {
    pub(super) from: f64,
    pub(super) to: f64,
    /// Distance between ticks; zero if it varies.
    pub(super) step: f64,
    pub(super) ticks: Vec<f64>,
}

impl Range {
    /// The absolute value of the larger end.
    pub(super) const fn largest(&self) -> f64 {
        self.from.abs().max(self.to.abs())
    }
}

/// A linear scale with about `count` ticks.
pub(super) fn linear(
    values: impl Iterator<Item = f64>,
    span: Option<Interval>,
    count: f64,
) -> Range {
    let (mut from, mut to) = span.map(|span| (span.low, span.high)).unwrap_or_else(|| {
        values.fold((0.0, 0.0), |(low, high): (f64, f64), value| {
            let value = value.clamp(-LARGEST, LARGEST);
            (low.min(value), high.max(value))
        })
    });
    if to - from < SMALLEST {
        to = from + 1.0;
    }
    let step = nice_step((to - from) / count);
    if span.is_none() {
        from = (from / step).floor() * step;
        to = (to / step).ceil() * step;
    }
    let first = (from / step).ceil();
    // The choice of the step limits the number of ticks.
    let ticks = (0..64)
        .map(|n| (first + f64::from(n)) * step)
        .take_while(|&tick| tick <= to + step * 1e-6)
        .collect();
    Range {
        from,
        to,
        step,
        ticks,
    }
}

/// A logarithmic scale with about `count` ticks.
pub(super) fn logarithmic(
    values: impl Iterator<Item = f64>,
    span: Option<Interval>,
    count: f64,
) -> Range {
    let (from, to) = span.map(|span| (span.low, span.high)).unwrap_or_else(|| {
        let (low, high) = values
            .filter(|&value| value > 0.0)
            .map(|value| value.clamp(SMALLEST, LARGEST))
            .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| {
                (low.min(value), high.max(value))
            });
        if low > high {
            return (1.0, 10.0);
        }
        let from = round_steps().rfind(|&step| step <= low * (1.0 + 1e-9));
        let from = from.unwrap_or(SMALLEST);
        let to = round_steps().find(|&step| step > from && step >= high * (1.0 - 1e-9));
        (from, to.unwrap_or(LARGEST * 10.0))
    });
    let inside = |step: &f64| (from * (1.0 - 1e-9)..=to * (1.0 + 1e-9)).contains(step);
    let ticks_per_decade = count / (to / from).log10();
    // The gap from 1 to 2 is 0.3 of a decade; numbers need about half the space of a linear tick.
    let ticks: Vec<f64> = if ticks_per_decade >= 1.6 {
        round_steps().filter(inside).collect()
    } else {
        let every = (0.5 / ticks_per_decade).ceil() as usize;
        let decades = round_steps().step_by(3);
        decades.filter(inside).step_by(every.max(1)).collect()
    };
    Range {
        from,
        to,
        step: 0.0,
        ticks: if ticks.is_empty() { vec![from] } else { ticks },
    }
}

/// 1, 2 and 5 of every decade, ascending.
fn round_steps() -> impl DoubleEndedIterator<Item = f64> + Clone {
    (-13..=15_i32).flat_map(|decade| {
        [1.0, 2.0, 5.0].into_iter().map(move |factor| {
            // Powers of this size are exact, so that quotients print exactly.
            let power: f64 = (0..decade.abs()).fold(1.0, |power, _| power * 10.0);
            if decade < 0 {
                factor / power
            } else {
                factor * power
            }
        })
    })
}

/// The smallest step of 1, 2 or 5 times a power of ten that is at least `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// A multiple of `step`, with the decimals of the step.
pub(super) fn tick_text(value: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    // Ticks are multiples of the step, so a smaller value is a rounding error of zero.
    let value = if value.abs() < step / 2.0 { 0.0 } else { value };
    format!("{value:.decimals$}").replace('-', "\u{2212}")
}
