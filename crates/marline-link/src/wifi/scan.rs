//! Stations that leave the channel temporarily.

use std::time::Duration;

use crate::Station;

/// Periodic scans of a station for other channels: meanwhile it neither sends nor receives, and packets
/// for it wait. A frame exchange in progress is completed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The station.
    pub station: Station,
    /// Start of the first scan.
    pub first: Duration,
    /// Interval from one scan to the next; zero for a single scan.
    pub every: Duration,
    /// Duration of a scan, less than `every`; 100 to 250 ms are common.
    pub length: Duration,
}

impl Scan {
    /// Whether scans do not overlap.
    pub(super) fn is_valid(&self) -> bool {
        !self.length.is_zero() && (self.every.is_zero() || self.length < self.every)
    }

    /// Whether the station is away at `at` nanoseconds.
    pub(super) fn is_away(&self, at: u64) -> bool {
        at.checked_sub(nanos(self.first)).is_some_and(|past| {
            past.checked_rem(nanos(self.every)).unwrap_or(past) < nanos(self.length)
        })
    }

    /// The next time after `at` nanoseconds at which the station leaves or returns.
    pub(super) fn next_change(&self, at: u64) -> Option<u64> {
        let (first, every, length) = (nanos(self.first), nanos(self.every), nanos(self.length));
        let Some(past) = at.checked_sub(first) else {
            return Some(first);
        };
        let round = past.checked_div(every).unwrap_or(0) * every;
        if past - round < length {
            Some(first + round + length)
        } else {
            (every > 0).then(|| first + round + every)
        }
    }
}

/// A duration in nanoseconds.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Scan;

    #[test]
    fn a_scanning_station_leaves_and_returns_periodically() {
        let mut scan = Scan {
            station: 1,
            first: Duration::from_nanos(50),
            every: Duration::from_nanos(100),
            length: Duration::from_nanos(20),
        };
        let mut changes = Vec::new();
        let mut at = 0;
        while let Some(change) = scan.next_change(at).filter(|&change| change < 300) {
            changes.push((change, scan.is_away(change)));
            at = change;
        }
        assert_eq!(
            changes,
            [
                (50, true),
                (70, false),
                (150, true),
                (170, false),
                (250, true),
                (270, false)
            ]
        );
        scan.every = Duration::ZERO;
        assert_eq!(scan.next_change(60), Some(70));
        assert_eq!(scan.next_change(70), None);
        assert!(!scan.is_away(150));
    }
}
