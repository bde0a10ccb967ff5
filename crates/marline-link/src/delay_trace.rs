//! Replay of recorded delays.
//!
//! A delay trace is a text file of lines with a time and a delay, both in milliseconds with decimals, separated by
//! spaces or a comma: a delay applies from its time on, until the next line. Times begin with 0 and increase. The time of
//! the last line is the end, at which the trace repeats; its delay only counts if the trace is played once. Empty
//! lines, and lines that begin with `#`, are skipped.

use std::sync::Arc;
use std::time::Duration;

use crate::delay_line::DelayLine;
use crate::{Exit, Link, Packet, Time};

/// A sequence of delays. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayTrace {
    /// The delays by their times, of which the first is 0 and the last the end; at least two.
    steps: Arc<[Step]>,
}

/// A delay from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    from: Duration,
    delay: Duration,
}

/// The reason why a delay trace could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DelayTraceError {
    /// It has no end.
    #[error("fewer than two lines; the time of the last is the end of the trace")]
    TooShort,
    /// A line is not two numbers.
    #[error("line {line}: not a time and a delay in milliseconds, as `1500 32.5`")]
    NotNumbers {
        /// Line number, from 1.
        line: usize,
    },
    /// The first time is not 0.
    #[error("line {line}: the first time must be 0")]
    Late {
        /// Line number, from 1.
        line: usize,
    },
    /// A time is not later than the previous one.
    #[error("line {line}: its time is not later than that of the previous line")]
    NotLater {
        /// Line number, from 1.
        line: usize,
    },
}

impl DelayTrace {
    /// Parses a delay trace.
    ///
    /// # Errors
    ///
    /// Names the first invalid line.
    pub fn parse(text: &str) -> Result<Self, DelayTraceError> {
        let mut steps: Vec<Step> = Vec::new();
        for (line, entry) in (1..).zip(text.lines().map(str::trim)) {
            if entry.is_empty() || entry.starts_with('#') {
                continue;
            }
            let words = entry.split([' ', '\t', ',']);
            let mut numbers = words.filter(|word| !word.is_empty()).map(millis);
            let (Some(Some(from)), Some(Some(delay)), None) =
                (numbers.next(), numbers.next(), numbers.next())
            else {
                return Err(DelayTraceError::NotNumbers { line });
            };
            match steps.last() {
                None if !from.is_zero() => return Err(DelayTraceError::Late { line }),
                Some(last) if last.from >= from => {
                    return Err(DelayTraceError::NotLater { line });
                }
                _ => steps.push(Step { from, delay }),
            }
        }
        match steps.len() {
            0 | 1 => Err(DelayTraceError::TooShort),
            _ => Ok(Self {
                steps: steps.into(),
            }),
        }
    }

    /// The time after which it repeats.
    pub fn period(&self) -> Duration {
        self.steps.last().map_or(Duration::ZERO, |last| last.from)
    }

    /// The mean of the delays over a period.
    pub fn mean(&self) -> Duration {
        let areas = self.steps.windows(2).map(|pair| {
            let time = pair[1].from.saturating_sub(pair[0].from);
            time.as_nanos().saturating_mul(pair[0].delay.as_nanos())
        });
        let mean = areas
            .fold(0_u128, u128::saturating_add)
            .checked_div(self.period().as_nanos());
        Duration::from_nanos(u64::try_from(mean.unwrap_or(0)).unwrap_or(u64::MAX))
    }

    /// The delay at `time` since the start.
    fn at(&self, time: Duration) -> Duration {
        let index = self.steps.partition_point(|step| step.from <= time);
        let step = self.steps.get(index.saturating_sub(1));
        step.map_or(Duration::ZERO, |step| step.delay)
    }
}

/// A number of milliseconds, up to about 584 years.
fn millis(text: &str) -> Option<Duration> {
    let millis: f64 = text.parse().ok()?;
    let nanos = millis * 1e6;
    (nanos >= 0.0 && nanos < u64::MAX as f64).then(|| Duration::from_nanos(nanos.round() as u64))
}

/// A delay line that takes its delays from a [`DelayTrace`], by the time at which a packet arrives.
pub struct TracedDelay<B> {
    trace: DelayTrace,
    /// Whether the last delay applies for ever, instead of a repetition.
    once: bool,
    /// Offset of the epoch in the trace.
    phase: Duration,
    line: DelayLine<B>,
}

impl<B> TracedDelay<B> {
    /// Plays `trace` repeatedly, from its start at the epoch. Without `reorder` a packet waits for those before it, so
    /// that a delay that becomes shorter takes effect with the next packets.
    pub const fn new(trace: DelayTrace, reorder: bool) -> Self {
        Self {
            trace,
            once: false,
            phase: Duration::ZERO,
            line: DelayLine::new(reorder),
        }
    }

    /// Plays the trace once; its last delay applies after its end.
    #[must_use]
    pub const fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Starts at offset `phase` in the trace.
    #[must_use]
    pub const fn starting_at(mut self, phase: Duration) -> Self {
        self.phase = phase;
        self
    }

    fn delay(&self, now: Time) -> Duration {
        let time = now.since(Time::ZERO).saturating_add(self.phase);
        let period = self.trace.period();
        if self.once || time < period {
            return self.trace.at(time);
        }
        let rest = time.as_nanos().checked_rem(period.as_nanos()).unwrap_or(0);
        self.trace.at(Duration::from_nanos(
            u64::try_from(rest).unwrap_or(u64::MAX),
        ))
    }
}

impl<B: Send> Link<B> for TracedDelay<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        let at = now + self.delay(now);
        self.line.push(at, packet);
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        self.line.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        self.line.next_event()
    }
}

#[cfg(test)]
mod tests;
