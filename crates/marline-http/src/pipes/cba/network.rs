//! Network awareness: the mean of the radio's quality.

use marline::settings::{Named, Word};

/// The method of averaging SINR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mean {
    /// Of the sample and the last two means, as in eq. 2.
    #[default]
    Recursive,
    /// Of the last three samples, as in the paper's text.
    Fir,
}

impl Named for Mean {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "recursive",
            about: "Of the sample and the last two means (eq. 2)",
            value: Self::Recursive,
        },
        Word {
            name: "fir",
            about: "Of the last three samples (the paper's text)",
            value: Self::Fir,
        },
    ];
}

/// NA_t: averages SINR over three intervals (eq. 2). Missing values at the start are those of the first sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkAwareness {
    mean: Mean,
    /// The two values before: means or samples, the older one first.
    before: Option<[f64; 2]>,
    current: Option<f64>,
}

impl NetworkAwareness {
    /// A mean without a sample.
    pub fn new(mean: Mean) -> Self {
        Self {
            mean,
            ..Self::default()
        }
    }

    /// The mean in dB after a sample of `sinr_db`.
    pub fn on_sample(&mut self, sinr_db: f64) -> f64 {
        let [older, last] = self.before.unwrap_or([sinr_db; 2]);
        let mean = (older + last + sinr_db) / 3.0;
        let kept = match self.mean {
            Mean::Recursive => mean,
            Mean::Fir => sinr_db,
        };
        self.before = Some([last, kept]);
        self.current = Some(mean);
        mean
    }

    /// The mean in dB, once there is a sample.
    pub fn current(&self) -> Option<f64> {
        self.current
    }
}
