//! Recorded signals.

use marline::Instant;

use super::{RadioSample, RadioSignal};
use crate::limits::MAX_SIGNAL_SAMPLES;

/// The reason why a recorded signal cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignalError {
    /// A line is not a time and its SINR.
    #[error(
        "line {line}: \"{text}\" is not a time in seconds and SINR in dB, as 1.5 12; times must not decrease"
    )]
    Line {
        /// Its number, from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
    /// There are too many lines.
    #[error("it has more than {MAX_SIGNAL_SAMPLES} samples")]
    TooLong,
    /// There is no sample.
    #[error("it has no sample")]
    Empty,
}

/// A recorded signal: a sample holds from its moment until the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalTrace {
    start: Instant,
    samples: Vec<TraceSample>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct TraceSample {
    at_s: f64,
    sinr_db: f64,
}

impl SignalTrace {
    /// Reads a trace that begins at `start`: a line for each sample, with its time in seconds and its SINR in dB. Empty
    /// lines and those that begin with `#` are ignored.
    ///
    /// # Errors
    /// A line is wrong, or there are none or too many.
    pub fn parse(text: &str, start: Instant) -> Result<Self, SignalError> {
        let mut samples: Vec<TraceSample> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let Some(sample) = TraceSample::parse(number, line)? else {
                continue;
            };
            if samples.len() >= MAX_SIGNAL_SAMPLES {
                return Err(SignalError::TooLong);
            }
            if samples.last().is_some_and(|last| last.at_s > sample.at_s) {
                return Err(wrong_line(number, line));
            }
            samples.push(sample);
        }
        match samples.is_empty() {
            true => Err(SignalError::Empty),
            false => Ok(Self { start, samples }),
        }
    }

    /// A signal that does not change.
    pub fn constant(sinr_db: f64) -> Self {
        Self {
            start: Instant::EPOCH,
            samples: vec![TraceSample { at_s: 0.0, sinr_db }],
        }
    }

    /// The same, beginning at `start`.
    #[must_use]
    pub fn starting_at(self, start: Instant) -> Self {
        Self { start, ..self }
    }
}

impl TraceSample {
    /// Reads a line; `None` if it has no sample.
    fn parse(number: usize, line: &str) -> Result<Option<Self>, SignalError> {
        let Some(mut numbers) = numbers(line) else {
            return Ok(None);
        };
        let mut next = || numbers.next().flatten();
        match (next(), next()) {
            (Some(at_s), Some(sinr_db)) => Ok(Some(Self { at_s, sinr_db })),
            _ => Err(wrong_line(number, line)),
        }
    }
}

fn wrong_line(line: usize, text: &str) -> SignalError {
    SignalError::Line {
        line,
        text: beginning(text),
    }
}

/// The beginning of a line, as much as fits into a message.
pub(super) fn beginning(line: &str) -> String {
    line.chars().take(80).collect()
}

/// The fields of a line, `None` for those that are not finite numbers; `None` as a whole for an empty line and a
/// comment.
pub(super) fn numbers(line: &str) -> Option<impl Iterator<Item = Option<f64>>> {
    let text = line.trim();
    if text.is_empty() || text.starts_with('#') {
        return None;
    }
    let fields = text.split([' ', '\t', ',']);
    let fields = fields.filter(|field| !field.is_empty());
    Some(fields.map(|field| field.parse().ok().filter(|number: &f64| number.is_finite())))
}

impl RadioSignal for SignalTrace {
    fn sample(&self, now: Instant) -> Option<RadioSample> {
        let elapsed = now.saturating_since(self.start).as_secs_f64();
        let later = self
            .samples
            .partition_point(|sample| sample.at_s <= elapsed);
        let current = self.samples.get(later.checked_sub(1)?)?;
        Some(RadioSample::of_sinr(current.sinr_db))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_sample_of_a_trace_holds_until_the_next() {
        let start = Instant::EPOCH + Duration::from_secs(5);
        let trace = SignalTrace::parse("# SINR\n1 20\n\n2.5,-3 -110\n", start).unwrap();
        let sinr = |ms| {
            let sample = trace.sample(start + Duration::from_millis(ms))?;
            sample.sinr_db
        };
        assert_eq!(sinr(999), None);
        assert_eq!(sinr(1000), Some(20.0));
        assert_eq!(sinr(2499), Some(20.0));
        assert_eq!(sinr(90_000), Some(-3.0));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for text in ["1", "a 2", "1 nan", "2 5\n1 5"] {
            let error = SignalTrace::parse(text, Instant::EPOCH).unwrap_err();
            assert!(matches!(error, SignalError::Line { .. }), "{text}");
        }
        let empty = SignalTrace::parse("# none\n", Instant::EPOCH);
        assert!(matches!(empty, Err(SignalError::Empty)));
    }
}
