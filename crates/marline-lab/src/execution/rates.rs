//! Throughput over time.

use std::collections::BTreeMap;
use std::time::Duration;

use marline::{Instant, Runtime};

use super::sleep;

/// The interval of samples for charts.
const SAMPLING_INTERVAL: Duration = Duration::from_millis(500);

/// A receiver of bytes, with its name in charts.
pub(super) struct Counted {
    name: String,
    bytes: Box<dyn Fn() -> u64 + Send>,
}

impl Counted {
    /// `bytes` returns the number of bytes received so far.
    pub(super) fn new(name: String, bytes: impl Fn() -> u64 + Send + 'static) -> Self {
        let bytes = Box::new(bytes);
        Self { name, bytes }
    }
}

/// The throughput of each receiver over time.
pub(super) struct RateSeries {
    start: Instant,
    all: Vec<Counted>,
    /// Seconds from the start, and the rate of each in the time before, in Mbit/s.
    rates: Vec<(f64, Vec<f64>)>,
}

impl RateSeries {
    /// Times of the series count from `start`.
    pub(super) fn new(start: Instant, all: Vec<Counted>) -> Self {
        Self {
            start,
            all,
            rates: Vec::new(),
        }
    }

    /// The bytes that each has received so far.
    pub(super) fn bytes(&self) -> Vec<u64> {
        self.all.iter().map(|counted| (counted.bytes)()).collect()
    }

    /// Takes samples until `end`; may be dropped before.
    pub(super) async fn sample_until(&mut self, runtime: &dyn Runtime, end: Instant) {
        loop {
            let (now, before) = (runtime.now(), self.bytes());
            let left = end.saturating_since(now);
            if left.is_zero() {
                return;
            }
            sleep(runtime, left.min(SAMPLING_INTERVAL)).await;
            let seconds = runtime.now().saturating_since(now).as_secs_f64();
            let rates = rates_mbps(&before, &self.bytes(), seconds);
            let at = runtime.now().saturating_since(self.start).as_secs_f64();
            self.rates.push((at, rates));
        }
    }

    /// Adds a series for each receiver.
    pub(super) fn add_to(&self, series: &mut BTreeMap<String, Vec<(f64, f64)>>) {
        for (place, Counted { name, .. }) in self.all.iter().enumerate() {
            let points = self.rates.iter().map(|(at, rates)| (*at, rates[place]));
            series.insert(format!("goodput_mbps {name}"), points.collect());
        }
    }
}

/// The rate of each in Mbit/s, from bytes before and after so many seconds.
pub(super) fn rates_mbps(before: &[u64], after: &[u64], seconds: f64) -> Vec<f64> {
    // Bytes that are fetched again count only when they arrive again, so that a count may fall.
    let rate =
        |(before, after): (&u64, &u64)| after.saturating_sub(*before) as f64 * 8e-6 / seconds;
    before.iter().zip(after).map(rate).collect()
}
