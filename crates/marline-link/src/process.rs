//! Rates that change with time.

use crate::Time;

/// A rate that is constant for a while, then another.
///
/// What it does depends on time alone, never on how often it is asked: links with equal seeds see equal
/// rates, whatever traffic they carry.
pub trait RateProcess: Send {
    /// What holds at `now`, which never goes back.
    fn at(&mut self, now: Time) -> Segment;
}

/// A stretch of time of one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The rate, in bits per second.
    pub bits_per_second: u64,
    /// When it ends; [`Time::MAX`] if it does not. Later than the moment that was asked about.
    pub until: Time,
}

/// One rate for ever.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// Bits per second.
    pub bits_per_second: u64,
}

impl RateProcess for Steady {
    fn at(&mut self, _now: Time) -> Segment {
        Segment {
            bits_per_second: self.bits_per_second,
            until: Time::MAX,
        }
    }
}
