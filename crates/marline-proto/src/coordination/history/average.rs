//! The average of the windows that connections reached.

use crate::congestion::MAXIMUM_WINDOW;

/// Samples that [`Average::Window`] can look back on.
pub const MAX_WINDOW_SAMPLES: usize = 32;

/// Samples that [`Average::Mean`] counts; each one beyond replaces one of average size, so that sums stay
/// exact and old networks fade.
const MEAN_SAMPLES: u64 = 1 << 20;

/// Which average; the paper leaves the choice between the first two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Average {
    /// The arithmetic mean of all samples.
    Mean,
    /// The mean of the latest so many samples, 1 to [`MAX_WINDOW_SAMPLES`].
    Window(usize),
    /// A moving average that the first sample initializes.
    Ewma {
        /// The part that a new sample has in it, above 0 and at most 1; anything else counts as 1.
        weight: f64,
    },
}

/// What an average remembers of its samples; none at first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Windows(pub(super) State);

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum State {
    #[default]
    Empty,
    /// At most [`MEAN_SAMPLES`].
    Mean {
        sum: u64,
        count: u64,
    },
    /// At most [`MAX_WINDOW_SAMPLES`], the oldest first.
    Latest(Vec<u64>),
    Ewma(f64),
}

impl Windows {
    /// Takes in a sample, of at most [`MAXIMUM_WINDOW`] bytes. What another kind of average had learnt
    /// counts as one sample.
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

    /// Whether samples could have made it: what was read back may be anything.
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
