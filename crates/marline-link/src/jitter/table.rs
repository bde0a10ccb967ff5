//! Distributions as netem's files write them.

use std::str::FromStr;

/// The value of a table that stands for one standard deviation.
const SIGMA: f64 = 8192.0;

/// The most values a table may have.
const LARGEST: usize = 1 << 20;

/// A distribution of deviations: values that are equally likely, 8192 for one standard deviation.
///
/// Read from the text of a `.dist` file of iproute2: whole numbers between white space, and
/// comments from `#` to the end of the line.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// In order, so that a larger number means a larger deviation.
    values: Vec<i16>,
}

impl Table {
    /// The deviation below which `share` of them lie, in standard deviations.
    pub(super) fn at(&self, share: f64) -> f64 {
        let last = self.values.len() - 1;
        let index = (share * self.values.len() as f64) as usize;
        f64::from(self.values[index.min(last)]) / SIGMA
    }

    /// Mean and standard deviation, in units of `jitter`; netem's own tables are not 0 and 1.
    pub fn moments(&self) -> (f64, f64) {
        let count = self.values.len() as f64;
        let values = || self.values.iter().map(|value| f64::from(*value) / SIGMA);
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| value * value).sum::<f64>() / count - mean * mean;
        (mean, variance.max(0.0).sqrt())
    }
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

/// Why a text is no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Something else than a number of 16 bits.
    #[error("line {line}: `{word}` is no whole number from -32768 to 32767")]
    Value {
        /// Where, from 1.
        line: usize,
        /// What stands there.
        word: String,
    },
    /// No numbers at all.
    #[error("the table has no values")]
    Empty,
    /// More numbers than anybody needs.
    #[error("the table has more than {LARGEST} values")]
    TooLong,
}
