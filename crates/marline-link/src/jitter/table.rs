//! Distribution tables in the format of netem.

use std::str::FromStr;

/// The table value of one standard deviation.
const SIGMA: f64 = 8192.0;

/// The maximum number of values in a table.
const LARGEST: usize = 1 << 20;

/// A distribution of deviations as equally likely values, in units of 1/8192 standard deviation.
///
/// Parsed from a `.dist` file of iproute2: integers separated by white space, with
/// comments from `#` to the end of the line.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Sorted, so that a quantile is an index.
    values: Vec<i16>,
}

impl Table {
    /// The quantile of `share`, in standard deviations.
    pub(super) fn at(&self, share: f64) -> f64 {
        let last = self.values.len() - 1;
        let index = (share * self.values.len() as f64) as usize;
        f64::from(self.values[index.min(last)]) / SIGMA
    }

    /// Mean and standard deviation, in units of `jitter`. Those of netem's own tables are not 0 and 1.
    pub fn moments(&self) -> Moments {
        let count = self.values.len() as f64;
        let values = || self.values.iter().map(|value| f64::from(*value) / SIGMA);
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| value * value).sum::<f64>() / count - mean * mean;
        Moments {
            mean,
            deviation: variance.max(0.0).sqrt(),
        }
    }
}

/// Mean and standard deviation of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
}

impl FromStr for Table {
    type Err = TableError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut values = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let numbers = line.split('#').next().unwrap_or_default();
            for word in numbers.split_whitespace() {
                let value = word.parse().map_err(|_| TableError::Value {
                    line: line_number,
                    word: word.chars().take(20).collect(),
                })?;
                if values.len() == LARGEST {
                    return Err(TableError::TooLong);
                }
                values.push(value);
            }
        }
        if values.is_empty() {
            return Err(TableError::Empty);
        }
        values.sort_unstable();
        Ok(Self { values })
    }
}

/// The reason why a table could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A word that is not a 16-bit integer.
    #[error("line {line}: `{word}` is not an integer from -32768 to 32767")]
    Value {
        /// Line number, from 1.
        line: usize,
        /// The word.
        word: String,
    },
    /// The table is empty.
    #[error("the table has no values")]
    Empty,
    /// The table is too long.
    #[error("the table has more than {LARGEST} values")]
    TooLong,
}
