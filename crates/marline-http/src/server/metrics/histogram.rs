//! Histograms of the text form.

use std::fmt::Write;

use super::super::exposition::head;

/// Counts of values up to each of `N` bounds.
#[derive(Debug)]
pub(super) struct Histogram<const N: usize> {
    counts: [u64; N],
    sum: f64,
    all: u64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Self {
            counts: [0; N],
            sum: 0.0,
            all: 0,
        }
    }
}

impl<const N: usize> Histogram<N> {
    pub(super) fn add(&mut self, bounds: &[f64; N], value: f64) {
        if let Some(bucket) = bounds.iter().position(|bound| value <= *bound) {
            self.counts[bucket] += 1;
        }
        self.sum += value;
        self.all += 1;
    }

    pub(super) fn write(
        &self,
        out: &mut String,
        (name, help): (&str, &str),
        bounds: &[f64; N],
    ) -> std::fmt::Result {
        head(out, name, "histogram", help)?;
        let mut cumulated = 0;
        for (bound, count) in bounds.iter().zip(&self.counts) {
            cumulated += count;
            writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {cumulated}")?;
        }
        let (all, sum) = (self.all, self.sum);
        writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {all}")?;
        writeln!(out, "{name}_sum {sum}\n{name}_count {all}")
    }
}
