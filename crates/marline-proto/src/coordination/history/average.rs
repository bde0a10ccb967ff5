//! The average of the congestion windows that connections reached.

use crate::congestion::MAXIMUM_WINDOW;

/// The largest number of samples of [`Average::Window`].
pub const MAX_WINDOW_SAMPLES: usize = 32;

/// The largest number of samples of [`Average::Mean`]. Each further one replaces one of average size, so
/// that sums stay exact and old samples lose their weight.
const MEAN_SAMPLES: u64 = 1 << 20;

/// The average of windows. The paper leaves open which of the first two is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Average {
    /// The arithmetic mean of all samples.
    Mean,
    /// The mean of the latest samples, as many as stated: 1 to [`MAX_WINDOW_SAMPLES`].
    Window(usize),
    /// An exponentially weighted moving average; the first sample initializes it.
    Ewma {
        /// The weight of a new sample, above 0 and at most 1; any other value counts as 1.
        weight: f64,
    },
}

/// The state of an average; empty before the first sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Windows(pub(super) State);

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum State {
    #[default]
    Empty,
    /// Of at most [`MEAN_SAMPLES`] samples.
    Mean {
        sum: u64,
        count: u64,
    },
    /// At most [`MAX_WINDOW_SAMPLES`] samples, the oldest first.
    Latest(Vec<u64>),
    Ewma(f64),
}

impl Windows {
    /// Adds a sample, of at most [`MAXIMUM_WINDOW`] bytes. The average of another kind counts as one sample.
    pub fn add(&mut self, kind: Average, bytes: u64) {
        let bytes = bytes.min(MAXIMUM_WINDOW);
        match (kind, &mut self.0) {
            (_, State::Empty) => self.0 = State::first(kind, bytes),
            (Average::Mean, State::Mean { sum, count }) => {
                if *count >= MEAN_SAMPLES {
                    *sum -= *sum / *count;
                    *count -= 1;
                }
                *sum += bytes;
                *count += 1;
            }
            (Average::Window(samples), State::Latest(latest)) => {
                let spare = latest.len().saturating_sub(in_view(samples) - 1);
                latest.drain(..spare);
                latest.push(bytes);
            }
            (Average::Ewma { weight }, State::Ewma(average)) => {
                let weight = if weight > 0.0 && weight <= 1.0 {
                    weight
                } else {
                    1.0
                };
                let (before, bytes) = (*average, bytes as f64);
                *average = (before + weight * (bytes - before))
                    .clamp(before.min(bytes), before.max(bytes));
            }
            (_, other) => {
                let known = other.average(MAX_WINDOW_SAMPLES).unwrap_or_default();
                self.0 = State::first(kind, known as u64);
                self.add(kind, bytes);
            }
        }
    }

    /// The average, in bytes; `None` before the first sample.
    pub fn average(&self, kind: Average) -> Option<f64> {
        match kind {
            Average::Window(samples) => self.0.average(in_view(samples)),
            Average::Mean | Average::Ewma { .. } => self.0.average(MAX_WINDOW_SAMPLES),
        }
    }
}

impl State {
    fn first(kind: Average, bytes: u64) -> Self {
        match kind {
            Average::Mean => Self::Mean {
                sum: bytes,
                count: 1,
            },
            Average::Window(_) => Self::Latest(vec![bytes]),
            Average::Ewma { .. } => Self::Ewma(bytes as f64),
        }
    }

    fn average(&self, samples: usize) -> Option<f64> {
        match self {
            Self::Empty => None,
            Self::Mean { sum, count } => Some(*sum as f64 / *count as f64),
            Self::Latest(latest) => {
                let latest = &latest[latest.len().saturating_sub(samples)..];
                Some(latest.iter().sum::<u64>() as f64 / latest.len() as f64)
            }
            Self::Ewma(average) => Some(*average),
        }
    }

    /// Whether samples can lead to this state; decoded bytes may be anything.
    pub(super) fn is_sound(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Mean { sum, count } => {
                (1..=MEAN_SAMPLES).contains(count) && *sum <= count * MAXIMUM_WINDOW
            }
            Self::Latest(latest) => {
                (1..=MAX_WINDOW_SAMPLES).contains(&latest.len())
                    && latest.iter().all(|bytes| *bytes <= MAXIMUM_WINDOW)
            }
            Self::Ewma(average) => (0.0..=MAXIMUM_WINDOW as f64).contains(average),
        }
    }
}

fn in_view(samples: usize) -> usize {
    samples.clamp(1, MAX_WINDOW_SAMPLES)
}

#[cfg(test)]
mod tests;
